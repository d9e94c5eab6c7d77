//! Budgets of random trees of agents, seed after seed: `cargo xtask budgets`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_capabilities::ai::simulate::check;
use std::process::ExitCode;
use std::time::Instant;

/// Seeds, unless it is told.
const SEEDS: u64 = 1_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seeds = match &args[..] {
        [] => Some(SEEDS),
        [option, seeds] if option == "--seeds" => seeds.parse().ok(),
        _ => None,
    };
    let Some(seeds) = seeds else {
        eprintln!("expected [--seeds N]");
        return ExitCode::from(2);
    };
    let began = Instant::now();
    for seed in 0..seeds {
        if let Err(found) = check(seed, None) {
            eprintln!("seed {seed}: {found}");
            return ExitCode::FAILURE;
        }
    }
    println!(
        "{seeds} seeds in {:.1} s, none spent beyond its budget",
        began.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}
