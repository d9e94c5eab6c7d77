//! Co-simulation: random instruction sequences on our hart and on QEMU's, compared.
//!
//! A sequence becomes a static ELF that `qemu-riscv64` runs as a user program; our machine
//! runs the same bytes at the same address, bare. Each instruction logs its result, so that
//! a difference identifies its instruction.
//!
//! It needs `qemu-riscv64-static` (Debian: `qemu-user-static`), so `cargo test` ignores it;
//! `cargo xtask slow` and `cargo xtask cosim` run it. `A99_COSIM_SEED` and
//! `A99_COSIM_COUNT` choose other sequences, for example `A99_COSIM_SEED=7
//! A99_COSIM_COUNT=1000 cargo test -p a99-sandbox-guest --test cosim -- --ignored`.

mod elf;
mod generator;
mod random;

use a99_sandbox_guest::RAM_BASE;
use a99_sandbox_guest::host::MemoryHost;
use a99_sandbox_guest::isa::decode::decode;
use a99_sandbox_guest::machine::{Machine, MachineConfig};
use generator::{Program, Step};
use random::Random;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sequences of the short form.
const COUNT: u64 = 40;

/// Names of the emulator on Debian and other systems.
const QEMU: [&str; 2] = ["qemu-riscv64-static", "qemu-riscv64"];

fn qemu() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    QEMU.into_iter().find(runs)
}

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// Final memory on QEMU, written by the program.
fn on_qemu(qemu: &str, program: &Program, file: &Path) -> Vec<u8> {
    elf::write(file, &program.image);
    let output = Command::new(qemu).arg(file).output().expect("qemu runs");
    assert!(output.status.success(), "qemu: {:?}", output.status);
    output.stdout
}

/// Final memory on our machine.
fn on_ours(program: &Program) -> Vec<u8> {
    let config = MachineConfig {
        ram_bytes: program.image.len(),
        ..MachineConfig::default()
    };
    let mut machine = Machine::new(&config, MemoryHost::new(1));
    let ram = machine.bus.ram.slice_mut(RAM_BASE, program.image.len());
    ram.expect("RAM").copy_from_slice(&program.image);
    machine.cpu.hart.fp.state = 1;
    // The program ends in a loop.
    machine.run(4 * program.image.len() as u64);
    let data = machine.bus.ram.slice(program.data, program.data_len);
    data.expect("RAM").to_vec()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Describes the first difference.
fn difference(program: &Program, ours: &[u8], theirs: &[u8]) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("{} bytes here, {} there", ours.len(), theirs.len()));
    }
    let at = (0..ours.len())
        .step_by(8)
        .find(|at| word(ours, *at) != word(theirs, *at))?;
    let values = format!(
        "{:#018x} here, {:#018x} there",
        word(ours, at),
        word(theirs, at)
    );
    let step = at
        .checked_sub(program.log_start)
        .and_then(|at| program.steps.get(at / 8));
    let before = |step: &Step| {
        step.operands(&program.steps, |at| {
            word(theirs, program.log_start + 8 * at)
        })
    };
    Some(match step {
        Some(step) => format!(
            "{:?} ({:#x}): {values}; {}",
            decode(step.bits).0,
            step.bits,
            before(step)
        ),
        None => format!("memory at {at:#x}: {values}"),
    })
}

#[test]
#[ignore = "needs qemu-riscv64"]
fn random_sequences_agree_with_qemu() {
    let qemu = qemu().expect("qemu-riscv64 or qemu-riscv64-static in the path");
    let seed = number("A99_COSIM_SEED", 1);
    let count = number("A99_COSIM_COUNT", COUNT);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("cosim-{}.elf", std::process::id()));
    for sequence in 0..count {
        let mut random = Random::new(seed ^ sequence << 32);
        let program = Program::generate(&mut random);
        let theirs = on_qemu(qemu, &program, &file);
        let ours = on_ours(&program);
        if let Some(difference) = difference(&program, &ours, &theirs) {
            panic!("seed {seed}, sequence {sequence}: {difference}");
        }
    }
    std::fs::remove_file(&file).expect("our file");
}
