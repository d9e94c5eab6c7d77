//! Test programs in assembly, in the manner of riscv-tests: each checks itself
//! and leaves the number of the check that failed, or zero, in `gp`.
//!
//! The programs are assembled from `programs/*.S` by Debian's `gcc-riscv64-linux-gnu`.
//! Their binaries are stored beside them, so that the tests run without it. If the
//! assembler is installed, the binaries are compared with their sources; `A99_ASSEMBLE=1
//! cargo test -p a99-sandbox-guest --test programs` rewrites them.

use a99_sandbox_guest::RAM_BASE;
use a99_sandbox_guest::host::MemoryHost;
use a99_sandbox_guest::machine::{Machine, MachineConfig, Status};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Self-checking programs; `loops` is for measurements.
const PROGRAMS: [&str; 6] = ["integer", "memory", "frames", "paging", "traps", "code"];

const COMPILER: &str = "riscv64-linux-gnu-gcc";
const COPIER: &str = "riscv64-linux-gnu-objcopy";

/// Many times the instructions of the longest program.
const BUDGET: u64 = 1_000_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn binary(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name).with_extension("bin")).expect("a committed binary")
}

/// Runs a program in supervisor mode; returns the register with the number of the check.
fn run(code: &[u8]) -> u64 {
    let config = MachineConfig {
        ram_bytes: 1 << 20,
        ..MachineConfig::default()
    };
    let mut host = MemoryHost::new(1);
    host.step_ns = 100;
    let mut machine = Machine::new(&config, host);
    let bytes = machine.bus.ram.slice_mut(RAM_BASE, code.len());
    bytes.expect("RAM").copy_from_slice(code);
    let mut left = BUDGET;
    while left > 0 {
        let before = machine.cpu.retired();
        match machine.run(left) {
            Status::PowerOff => return machine.cpu.hart.x[3],
            // Each read advances the clock.
            Status::Wait { until_ns: Some(_) } => {}
            other => panic!("{other:?} in check {}", machine.cpu.hart.x[3]),
        }
        left = left.saturating_sub((machine.cpu.retired() - before).max(1));
    }
    panic!("no end in check {}", machine.cpu.hart.x[3]);
}

#[test]
fn programs_pass() {
    for name in PROGRAMS {
        assert_eq!(run(&binary(name)), 0, "{name}: the check that failed");
    }
}

/// A program's result must not depend on how it is cut into slices.
#[test]
fn programs_pass_in_small_steps() {
    for name in PROGRAMS {
        let code = binary(name);
        let config = MachineConfig {
            ram_bytes: 1 << 20,
            ..MachineConfig::default()
        };
        let mut host = MemoryHost::new(1);
        host.step_ns = 100;
        let mut machine = Machine::new(&config, host);
        let bytes = machine.bus.ram.slice_mut(RAM_BASE, code.len());
        bytes.expect("RAM").copy_from_slice(&code);
        let end = (0..BUDGET).find(|_| {
            let status = machine.run(1);
            machine.cpu.flush(&mut machine.bus);
            status == Status::PowerOff
        });
        assert!(end.is_some(), "{name}: no end");
        assert_eq!(machine.cpu.hart.x[3], 0, "{name}: the check that failed");
    }
}

#[test]
fn binaries_are_those_of_their_sources() {
    if Command::new(COMPILER).arg("--version").output().is_err() {
        eprintln!("no {COMPILER}: nothing assembled");
        return;
    }
    let rewrite = std::env::var_os("A99_ASSEMBLE").is_some();
    let temporary = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for name in PROGRAMS.iter().chain(&["loops"]) {
        let object = temporary.join(name).with_extension("o");
        let built = temporary.join(name).with_extension("bin");
        let source = folder().join(name).with_extension("S");
        let mut compiler = Command::new(COMPILER);
        compiler.args(["-march=rv64gc", "-mabi=lp64d", "-nostdlib", "-static"]);
        compiler.args([
            "-Wl,-Ttext=0x80000000",
            "-Wl,--build-id=none",
            "-Wl,-e0x80000000",
        ]);
        compiler
            .arg("-I")
            .arg(folder())
            .arg("-o")
            .arg(&object)
            .arg(source);
        assert!(
            compiler.status().expect("the assembler").success(),
            "{name}"
        );
        let mut copier = Command::new(COPIER);
        copier
            .args(["-O", "binary", "-j", ".text"])
            .arg(&object)
            .arg(&built);
        assert!(copier.status().expect("objcopy").success(), "{name}");
        let built = std::fs::read(built).expect("what was built");
        if rewrite {
            let path = folder().join(name).with_extension("bin");
            std::fs::write(path, built).expect("the folder of the programs");
        } else {
            assert!(built == binary(name), "{name}: binary and source differ");
        }
    }
}
