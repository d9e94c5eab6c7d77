//! How fast the interpreter runs bare loops, in million instructions a second.
//!
//! `cargo run --profile bench -p a99-sandbox-guest --example mips`; runs as WebAssembly too.
//! Each figure is the best of several runs, since other work on the machine
//! only ever makes them slower.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use a99_sandbox_guest::RAM_BASE;
use a99_sandbox_guest::host::MemoryHost;
use a99_sandbox_guest::machine::{Machine, MachineConfig};
use std::time::Instant;

/// The loops, assembled from `loops.S`.
const CODE: &[u8] = include_bytes!("../tests/programs/loops.bin");

/// Their names, in the order of the file.
const NAMES: [&str; 5] = ["arithmetic", "memory", "calls", "branches", "floats"];

/// Bytes from loop to loop.
const STRIDE: usize = 256;

/// Where the data are.
const DATA: u64 = RAM_BASE + 0x1_0000;

/// Runs of a loop.
const RUNS: usize = 100;

/// Instructions of a run: longer than the system's grain of processor time, or
/// where that is not given, so short that some runs are not disturbed.
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

/// Processor time of this thread where the system tells it (Linux): a busy
/// neighbour changes it less than the clock on the wall.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}
