//! Mutates artifacts at random, corrects their hash, and runs accepted ones: `mutate [--count
//! N] [--seed S] [--jobs N] [--from N]`.
//!
//! `--from` skips this many thousands, to reproduce a mutant.
//!
//! Prints the rate while it works, and the outcomes of the mutants at the end. The exit code is
//! 1 if a mutant made the engine panic, overdraw its fuel or run on; the mutant is then written
//! to `mutant-SEED-NUMBER.a99b`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_testkit::fuzz::artifact::{Fate, attempt, mutate, seeds};
use a99_testkit::numbers::Numbers;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Default number of mutants.
const COUNT: u64 = 1_000_000;
/// Seed files of each job.
const FILES: usize = 400;
/// Mutants of one seed number, so that a single mutant can be reproduced.
const BATCH: u64 = 1_000;
/// Time between reports.
const REPORT: Duration = Duration::from_secs(10);

struct Call {
    count: u64,
    seed: u64,
    jobs: u64,
    from: u64,
}

fn read_call() -> Result<Call, String> {
    let mut call = Call {
        count: COUNT,
        seed: 1,
        jobs: 2,
        from: 0,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        let number = value.parse().map_err(|_| format!("{value} is no number"))?;
        match arg.as_str() {
            "--count" => call.count = number,
            "--seed" => call.seed = number,
            "--from" => call.from = number / BATCH,
            "--jobs" => call.jobs = number.max(1),
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(call)
}

/// Number of mutants by outcome text.
type Fates = BTreeMap<String, u64>;

/// State shared by all jobs.
struct Shared {
    next: AtomicU64,
    done: AtomicU64,
    failed: AtomicBool,
}

fn work(call: &Call, files: &[Vec<u8>], shared: &Shared) -> Fates {
    let mut fates = Fates::new();
    let mut mutant = Vec::new();
    while !shared.failed.load(Ordering::Relaxed) {
        let batch = shared.next.fetch_add(1, Ordering::Relaxed);
        if batch * BATCH >= call.count {
            break;
        }
        let mut numbers = Numbers::new(call.seed << 40 ^ batch);
        let size = BATCH.min(call.count - batch * BATCH);
        for i in 0..size {
            let file = &files[numbers.below(files.len())];
            mutate(file, &mut mutant, &mut numbers);
            // The engine has no state that a panic could corrupt.
            match catch_unwind(AssertUnwindSafe(|| attempt(&mutant))) {
                Ok(Fate::Refused(code)) => {
                    *fates.entry(format!("refused {code}")).or_default() += 1
                }
                Ok(Fate::Ran(error)) => {
                    let end = error.map_or_else(|| "result".to_owned(), |code| code.to_string());
                    *fates.entry(format!("ran     {end}")).or_default() += 1;
                }
                Err(_) => {
                    shared.failed.store(true, Ordering::Relaxed);
                    let path = format!("mutant-{}-{}.a99b", call.seed, batch * BATCH + i);
                    match std::fs::write(&path, &mutant) {
                        Ok(()) => eprintln!("FAILED on {path}"),
                        Err(error) => eprintln!("FAILED; cannot write {path}: {error}"),
                    }
                    return fates;
                }
            }
        }
        shared.done.fetch_add(size, Ordering::Relaxed);
    }
    fates
}

fn main() -> ExitCode {
    let call = match read_call() {
        Ok(call) => call,
        Err(why) => {
            eprintln!("mutate: {why}");
            return ExitCode::from(2);
        }
    };
    let files = seeds(FILES, call.seed);
    let shared = Shared {
        next: AtomicU64::new(call.from),
        done: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let started = Instant::now();
    let rate = || shared.done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
    let all = std::thread::scope(|scope| {
        let work = || work(&call, &files, &shared);
        let jobs: Vec<_> = (0..call.jobs).map(|_| scope.spawn(work)).collect();
        let mut reported = Instant::now();
        while jobs.iter().any(|job| !job.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
            if reported.elapsed() >= REPORT {
                reported = Instant::now();
                let done = shared.done.load(Ordering::Relaxed);
                eprintln!("{done} of {}, {:.0} a second", call.count, rate());
            }
        }
        let mut all = Fates::new();
        for job in jobs {
            for (fate, count) in job.join().unwrap_or_default() {
                *all.entry(fate).or_default() += count;
            }
        }
        all
    });
    let total: u64 = all.values().sum();
    for (fate, count) in &all {
        println!("{count:>12}  {fate}");
    }
    let ran = all.iter().filter(|(fate, _)| fate.starts_with("ran"));
    let ran: u64 = ran.map(|(_, count)| count).sum();
    let failed = shared.failed.load(Ordering::Relaxed);
    println!(
        "{total} mutants of {} files, seed {}: {ran} accepted and run, {} refused, {:.0} a second, {}",
        files.len(),
        call.seed,
        total - ran,
        rate(),
        if failed {
            "FAILED"
        } else {
            "no panic, no unmetered run"
        }
    );
    ExitCode::from(u8::from(failed))
}
