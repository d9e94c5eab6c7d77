//! Runs bare loops (`sandbox/guest/tests/programs/loops.S`) in the emulator under the
//! engine settings of guests, interpreted and translated (to be fast, and to be
//! small), and prints million instructions a second.
//!
//! Run it with `cargo run --profile sandbox -p a99-sandbox --features testing --example
//! loops -- EMULATOR.wasm`. Times are this thread's processor time, since wall-clock time
//! says little on a busy machine. Each figure is the best of several runs: other load on
//! the machine only ever slows them down.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use a99_sandbox::vm::{self, Bare, Execution, VmError};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;

/// The loops, assembled from `loops.S`.
const CODE: &[u8] = include_bytes!("../../guest/tests/programs/loops.bin");

/// Names of the loops, in the order of the file.
const NAMES: [&str; 5] = ["arithmetic", "memory", "calls", "branches", "floats"];

/// Distance between loops in bytes.
const STRIDE: u32 = 256;

/// Offset of the loops in RAM.
const LOOPS: u32 = 0x1_0000;

/// RAM of the machine.
const RAM_BYTES: u32 = 1 << 20;

/// Samples after which a loop is translated.
const SAMPLES: u32 = 2;

/// Runs of each loop.
const RUNS: usize = 100;

/// Instructions of a run: long compared to the clock's resolution, short enough that some
/// runs are undisturbed.
const BUDGET: u64 = 4_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: loops EMULATOR.wasm")?;
    let emulator = std::fs::read(path)?;
    println!(
        "{:<12} {:>12} {:>12} {:>12}",
        "MIPS", "interpreted", "translated", "small"
    );
    for (at, name) in (0..).zip(NAMES) {
        let interpreted = mips(&emulator, at, Execution::Interpreted)?;
        let translated = mips(&emulator, at, Execution::Fast(SAMPLES))?;
        let small = mips(&emulator, at, Execution::Small(SAMPLES))?;
        println!("{name:<12} {interpreted:12.0} {translated:12.0} {small:12.0}");
    }
    Ok(())
}

/// Code that enters a loop: data in `s0`, floating point on.
fn prologue(at: u32) -> Vec<u8> {
    let distance = LOOPS + at * STRIDE - 12;
    let words = [
        0x0002_0417, // auipc s0, 0x20
        0x0000_62b7, // lui t0, 6
        0x1002_a073, // csrs sstatus, t0
        0x6f | distance & 0xf_f000 | (distance >> 11 & 1) << 20 | (distance >> 1 & 0x3ff) << 21,
    ];
    words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect()
}

fn mips(emulator: &[u8], at: u32, execution: Execution) -> Result<f64, VmError> {
    let mut machine = Bare::new(&vm::engine()?, emulator, RAM_BYTES, execution)?;
    machine.load(0, &prologue(at))?;
    machine.load(LOOPS, CODE)?;
    let mut best = 0.0f64;
    for _ in 0..RUNS {
        machine.drain_translations()?;
        let before = machine.retired();
        let start = cpu_seconds();
        machine.run(BUDGET)?;
        let seconds = cpu_seconds() - start;
        best = best.max((machine.retired() - before) as f64 / seconds / 1e6);
    }
    Ok(best)
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
