//! Simulations of agents over a range of seeds: `cargo xtask simulate`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_runtime_engine::sim::{Fault, first_violation};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Seeds that a thread takes at a time.
const BATCH: u64 = 1_000;

struct Options {
    from: u64,
    seeds: u64,
    fault: Option<Fault>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        from: 0,
        seeds: 1_000_000,
        fault: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or(format!("{arg} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{value} is no number"));
        match arg.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--fault" => options.fault = Some(value.parse()?),
            _ => return Err("expected [--seeds N] [--from S] [--fault NAME]".to_owned()),
        }
    }
    Ok(options)
}

/// Whether no seed breaks a guarantee or, with a fault, at least one does.
fn run(options: &Options) -> bool {
    let began = Instant::now();
    let end = options.from.saturating_add(options.seeds);
    let next = AtomicU64::new(options.from);
    // The lowest seed found so far; every lower seed is still tried.
    let found = AtomicU64::new(u64::MAX);
    let is_done = AtomicBool::new(false);
    let work = || {
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= end.min(found.load(Ordering::Relaxed)) {
                return;
            }
            let seeds = first..end.min(first.saturating_add(BATCH));
            if let Some((seed, _, _)) = first_violation(seeds, options.fault) {
                found.fetch_min(seed, Ordering::Relaxed);
            }
        }
    };
    let tell = || {
        let mut last = began;
        while !is_done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            if last.elapsed() >= Duration::from_secs(10) {
                last = Instant::now();
                let seeds = next.load(Ordering::Relaxed).min(end) - options.from;
                eprintln!("{seeds} seeds, {} s", began.elapsed().as_secs());
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        scope.spawn(tell);
        let ended = workers.into_iter().all(|worker| worker.join().is_ok());
        is_done.store(true, Ordering::Relaxed);
        assert!(ended, "a simulation panicked");
    });
    let seconds = began.elapsed().as_secs_f64();
    let seed = found.into_inner();
    let Some((seed, history, found)) = first_violation(seed..seed.saturating_add(1), options.fault)
    else {
        println!(
            "{} seeds from {}, {seconds:.1} s: no promise broken",
            options.seeds, options.from
        );
        return options.fault.is_none();
    };
    if options.fault.is_none() {
        for (agent, setup) in history.agents.iter().enumerate() {
            println!("agent {agent}: {setup:?}");
        }
        for fact in &history.facts {
            println!("{fact:?}");
        }
    }
    for violation in &found {
        println!("seed {seed}: {violation}");
    }
    options.fault.is_some()
}

fn main() -> ExitCode {
    match options() {
        Ok(options) if run(&options) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("simulate: {reason}");
            ExitCode::from(2)
        }
    }
}
