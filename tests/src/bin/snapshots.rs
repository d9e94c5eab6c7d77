//! Suspends and restores runs: `snapshots [--mutants N] [--seed S] [--at N] [FILE]...`
//!
//! Without `--mutants` it replays the vectors of the files: first each suspended at all of its
//! calls, then at all of its calls and many of its pauses, then at one call or pause at a time,
//! up to the `--at`th. Each must end as the vector requires. With it: that many mutated
//! snapshots, each of which is refused or runs on within its limits.
//!
//! The exit code is 1 for a wrong end or a panic.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_testkit::fuzz::artifact::Fate;
use a99_testkit::fuzz::snapshot::{SEEDS, attempt, mutate};
use a99_testkit::numbers::Numbers;
use a99_testkit::vectors::{Deviations, SuspendedEngine, read_deviations, replay};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Work between two pauses, for the passes with pauses.
const SLICES: [u32; 3] = [1, 100, 1_000];

/// Default number of calls or pauses that are tried one at a time.
const AT: usize = 12;

struct Call {
    mutants: Option<u64>,
    seed: u64,
    at: usize,
    files: Vec<PathBuf>,
}

fn read_call() -> Result<Call, String> {
    let mut call = Call {
        mutants: None,
        seed: 1,
        at: AT,
        files: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if !arg.starts_with("--") {
            call.files.push(PathBuf::from(arg));
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        let number = value.parse().map_err(|_| format!("{value} is no number"))?;
        match arg.as_str() {
            "--mutants" => call.mutants = Some(number),
            "--seed" => call.seed = number,
            "--at" => call.at = usize::try_from(number).unwrap_or(usize::MAX),
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(call)
}

/// The vectors and deviations of this project.
fn own(call: &Call) -> Result<(Vec<PathBuf>, Deviations), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = call.files.clone();
    if files.is_empty() {
        let entries = std::fs::read_dir(folder.join("vectors")).map_err(|e| e.to_string())?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(paths.filter(|p| p.extension().is_some_and(|e| e == "jsonl")));
        files.sort();
    }
    Ok((files, read_deviations(&folder.join("deviations.jsonl"))?))
}

/// Replays the vectors on one engine; true if all pass.
fn pass(what: &str, engine: &SuspendedEngine, call: &Call) -> Result<bool, String> {
    let (files, listed) = own(call)?;
    let started = Instant::now();
    let report = replay(engine, &files, &listed)?;
    for (id, why) in &report.failed {
        eprintln!("FAIL {id}\n    {why}");
    }
    println!(
        "{what}: {} vectors passed, {} failed; {} snapshots of {} bytes restored, {:.0} s",
        report.passed,
        report.failed.len(),
        engine.taken(),
        engine.bytes(),
        started.elapsed().as_secs_f64()
    );
    Ok(report.failed.is_empty())
}

fn vectors(call: &Call) -> Result<bool, String> {
    let mut good = pass("at all calls", &SuspendedEngine::at_all(u32::MAX), call)?;
    for slice in SLICES {
        let what = format!("at calls and pauses, slices of {slice}");
        good &= pass(&what, &SuspendedEngine::at_all(slice), call)?;
    }
    for at in 0..call.at {
        let engine = SuspendedEngine::at(at, SLICES[at % SLICES.len()]);
        good &= pass(&format!("once, at call or pause {at}"), &engine, call)?;
    }
    Ok(good)
}

fn mutants(count: u64, seed: u64) {
    let started = Instant::now();
    let mut numbers = Numbers::new(seed);
    let mut fates: BTreeMap<String, u64> = BTreeMap::new();
    let mut mutant = Vec::new();
    for _ in 0..count {
        let like = &SEEDS[numbers.below(SEEDS.len())];
        mutate(&like.bytes, &mut mutant, &mut numbers);
        let fate = match attempt(like, &mutant) {
            Fate::Refused(code) => format!("refused {code}"),
            Fate::Ran(None) => "ran     result".to_owned(),
            Fate::Ran(Some(code)) => format!("ran     {code}"),
        };
        *fates.entry(fate).or_default() += 1;
    }
    for (fate, count) in &fates {
        println!("{count:>12}  {fate}");
    }
    let ran = fates.iter().filter(|(fate, _)| fate.starts_with("ran"));
    println!(
        "{count} mutants of {} snapshots, seed {seed}: {} accepted and run, {:.0} a second",
        SEEDS.len(),
        ran.map(|(_, count)| count).sum::<u64>(),
        count as f64 / started.elapsed().as_secs_f64()
    );
}

fn main() -> ExitCode {
    let done = read_call().and_then(|call| match call.mutants {
        Some(count) => {
            mutants(count, call.seed);
            Ok(true)
        }
        None => vectors(&call),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("snapshots: {why}");
            ExitCode::from(2)
        }
    }
}
