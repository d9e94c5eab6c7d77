//! Measures the interpreter's speed in bare loops, in million instructions a second.
//!
//! Run it with `cargo run --profile bench -p a99-sandbox-guest --example mips`; it runs as
//! WebAssembly too. Each figure is the best of several runs: other load on the machine only
//! ever slows them down.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use a99_sandbox_guest::RAM_BASE;
use a99_sandbox_guest::host::MemoryHost;
use a99_sandbox_guest::machine::{Machine, MachineConfig};
use std::time::Instant;

/// The loops, assembled from `loops.S`.
const CODE: &[u8] = include_bytes!("../tests/programs/loops.bin");

/// Names of the loops, in the order of the file.
const NAMES: [&str; 5] = ["arithmetic", "memory", "calls", "branches", "floats"];

/// Distance between loops in bytes.
const STRIDE: usize = 256;

/// Address of the data.
const DATA: u64 = RAM_BASE + 0x1_0000;

/// Runs of each loop.
const RUNS: usize = 100;

/// Instructions of a run: long compared to the resolution of processor time, or, where that
/// is unavailable, short enough that some runs are undisturbed.
const BUDGET: u64 = if cfg!(target_family = "wasm") {
    400_000
} else {
    4_000_000
};

fn main() {
    for (at, name) in NAMES.iter().enumerate() {
        let config = MachineConfig {
            ram_bytes: 1 << 20,
            ..MachineConfig::default()
        };
        let mut machine = Machine::new(&config, MemoryHost::new(1));
        let ram = machine.bus.ram.slice_mut(RAM_BASE, CODE.len());
        ram.expect("RAM").copy_from_slice(CODE);
        machine.cpu.hart.jump(RAM_BASE + (at * STRIDE) as u64);
        machine.cpu.hart.x[8] = DATA;
        machine.cpu.hart.fp.state = 1;
        let mips = (0..RUNS).map(|_| run(&mut machine)).fold(0.0, f64::max);
        println!("{name:<12} {mips:6.0} MIPS");
    }
}

fn run(machine: &mut Machine<MemoryHost>) -> f64 {
    let before = machine.cpu.retired();
    let (start, cpu_start) = (Instant::now(), cpu_seconds());
    machine.run(BUDGET);
    let count = machine.cpu.retired() - before;
    let cpu = cpu_seconds().zip(cpu_start).map(|(end, start)| end - start);
    let seconds = cpu.unwrap_or(start.elapsed().as_secs_f64());
    count as f64 / seconds / 1e6
}

/// Processor time of this thread where available (Linux): a busy neighbour affects it less
/// than wall-clock time.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}
