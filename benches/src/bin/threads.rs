//! `cargo xtask bench --threads`: CPU time of a run on one thread, on all cores with one engine,
//! and on all cores with an engine each.
//!
//! Shared data slows concurrent cores: a reference count that every run changes costs more the more
//! cores change it. Cores that share only the processor show the remaining slow-down.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::work::{bound_condition, condition_inputs, resumed, suspended, waiting};
use a99_benches::{compiled, engine, profile, programs};
use agent99::json;
use cpu_time::ThreadTime;
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: threads [--json]";

/// Duration of each measurement.
const TIME: Duration = Duration::from_millis(500);

/// Number of measurements; the smallest counts.
const ROUNDS: usize = 5;

/// Runs between two reads of the clock.
const RUNS: u32 = 200;

/// Sets up the work of one thread, which takes a number of runs.
type Work = Box<dyn Fn() -> Box<dyn FnMut(u32)> + Sync>;

/// Sets up an engine and its work.
type Make = fn() -> Work;

const WORKS: [(&str, Make); 3] = [
    ("fresh run", fresh),
    ("bound call", bound),
    ("run that waits", runs_that_wait),
];

/// The agent of ten steps in a new context for each run.
fn fresh() -> Work {
    let engine = engine();
    let agent = compiled(&engine, programs::TEN_STEPS);
    let profile = profile(&engine);
    Box::new(move || {
        let (profile, agent) = (profile.clone(), agent.clone());
        // Each thread has separate arguments, as requests have.
        let args = programs::ten_steps_args();
        Box::new(move |runs| {
            (0..runs).for_each(|_| {
                let outcome = profile.run_sync(&agent, args.clone());
                assert!(outcome.error.is_none());
            });
        })
    })
}

/// A condition with a caller for each thread.
fn bound() -> Work {
    let bound = bound_condition();
    Box::new(move || {
        let (mut caller, args) = (bound.caller(), condition_inputs());
        Box::new(move |runs| (0..runs).for_each(|_| assert!(caller.call(&args).is_ok())))
    })
}

/// A run that makes a call, gets its answer, and ends.
fn runs_that_wait() -> Work {
    let (profile, agent) = suspended();
    Box::new(move || {
        let (profile, agent) = (profile.clone(), agent.clone());
        Box::new(move |runs| {
            (0..runs).for_each(|_| waiting(&profile, &agent, 1).into_iter().for_each(resumed));
        })
    })
}

/// Nanoseconds of CPU time for a run, with a concurrent thread for each of these works.
fn nanos(works: &[&Work]) -> f64 {
    let start = Barrier::new(works.len());
    let one = |work: &Work| {
        let mut work = work();
        work(RUNS);
        start.wait();
        let (began, used) = (Instant::now(), ThreadTime::now());
        let mut runs = 0.0;
        while began.elapsed() < TIME {
            work(RUNS);
            runs += f64::from(RUNS);
        }
        (used.elapsed().as_secs_f64() * 1e9, runs)
    };
    std::thread::scope(|scope| {
        let threads = works.iter().map(|work| scope.spawn(|| one(work)));
        let threads: Vec<_> = threads.collect();
        let all = threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread"));
        let (used, runs) = all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        used / runs
    })
}

/// The smallest of several rounds: alone, with one engine, with an engine each.
fn measure(make: Make, cores: usize) -> [f64; 3] {
    let own: Vec<Work> = (0..cores).map(|_| make()).collect();
    let (apart, together) = (own.iter().collect::<Vec<_>>(), vec![&own[0]; cores]);
    let mut least = [f64::INFINITY; 3];
    for _ in 0..ROUNDS {
        // In turns, so that a busy machine slows all of them.
        for (least, works) in least.iter_mut().zip([&apart[..1], &together, &apart]) {
            *least = least.min(nanos(works));
        }
    }
    least
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_json = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--json"] => true,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rows = WORKS.map(|(name, make)| (name, measure(make, cores)));
    if is_json {
        let rows = rows.map(|(name, [alone, together, apart])| {
            json!({"work": name, "alone": alone, "together": together, "apart": apart})
        });
        println!("{}", json!({"threads": cores, "rows": rows}));
        return ExitCode::SUCCESS;
    }
    println!(
        "{:<18}{:>10}{:>14}{:>14}{:>10}",
        "ns of CPU time", "1 thread", "one engine", "one each", "sharing"
    );
    for (name, [alone, together, apart]) in rows {
        let sharing = (together / apart - 1.0) * 100.0;
        println!("{name:<18}{alone:>10.0}{together:>14.0}{apart:>14.0}{sharing:>+8.0} %");
    }
    println!("on {cores} threads");
    ExitCode::SUCCESS
}
