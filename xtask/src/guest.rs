//! `cargo xtask guest` and what is done with the guest: its tests, boots in a
//! row, comparison with QEMU.
//!
//! The command builds the image; it is built here with the sandbox in it, so
//! that other tasks do without wasmtime.

use crate::shell::{Failed, cargo, root, run, works};
use crate::stage::Progress;
use std::process::Command;
use std::time::{Duration, Instant};

/// The profile of everything with wasmtime in it.
const PROFILE: [&str; 2] = ["--profile", "sandbox"];

/// The packages with wasmtime in them, always together: so cargo chooses the
/// same features of all dependencies each time, and compiles wasmtime once.
const PACKAGES: [&str; 8] = [
    "-p",
    "a99-cli",
    "-p",
    "a99-sandbox",
    "-p",
    "a99-batteries",
    "--features",
    "a99-cli/sandbox,a99-sandbox/vm,a99-batteries/sandbox",
];

/// Tests that take minutes: a thousand starts, a hundred guests, all programs
/// translated, a guest inside a foreign image.
const LONG: [&str; 6] = [
    "thousand",
    "hundred",
    "programs_pass_translated",
    "random_programs_end_the_same",
    "a_real_shell",
    "much_goes_both_ways",
];

/// Boots in a row unless told otherwise.
const BOOTS: &str = "200";

/// Seconds of load on the network unless told otherwise.
const SOAK_SECONDS: &str = "600";

/// Seconds of comparison with QEMU unless told otherwise.
const COSIM_SECONDS: &str = "600";

/// Sequences of instructions that are compared in one go.
const COSIM_COUNT: &str = "200";

/// Names of QEMU's emulator of programs, as Debian and others install it.
const QEMU: [&str; 2] = ["qemu-riscv64-static", "qemu-riscv64"];

/// A cargo command about all that has wasmtime in it.
pub fn with_wasmtime(command: &str) -> Command {
    let mut cargo = cargo(command);
    cargo.args(PROFILE).args(PACKAGES);
    cargo
}

/// Calls `a99 sandbox build` with these flags.
pub fn build(flags: &[&str]) -> Result<(), Failed> {
    let mut build = cargo("run");
    build.arg("--quiet").args(PROFILE);
    build.args(["--package", "a99-cli", "--features", "sandbox"]);
    build.args(["--", "sandbox", "build"]).args(flags);
    // The command's own last line says what failed.
    run(build.current_dir(root())).map_err(|_| Failed(String::new()))
}

/// Runs all tests of the sandbox, with the image that was built last: without
/// one they fail.
pub fn test() -> Result<(), Failed> {
    run(with_wasmtime("test").args(["--", "--include-ignored"]))
}

/// The short form of [`test()`]: without what takes minutes by itself, and to
/// the end whatever fails.
pub fn test_in_short(progress: &Progress) -> Result<(), Failed> {
    let mut test = with_wasmtime("test");
    test.args(["--no-fail-fast", "--", "--include-ignored"]);
    for long in LONG {
        test.args(["--skip", long]);
    }
    progress.tests(&mut test)
}

/// The value of the one option that a task has, or the usual one.
fn option<'a>(args: &[&'a str], name: &str, usual: &'a str) -> Result<&'a str, Failed> {
    match *args {
        [] => Ok(usual),
        [given, value] if given == name => Ok(value),
        _ => Err(Failed(format!("expected [{name} N]"))),
    }
}

/// Boots the guest from nothing, many times in a row.
pub fn boots(args: &[&str]) -> Result<(), Failed> {
    let count = option(args, "--count", BOOTS)?;
    let mut test = with_wasmtime("test");
    test.args(["--test", "proofs", "boots", "--"]);
    test.args(["--include-ignored", "--nocapture"]);
    run(test.env("A99_BOOTS", count))
}

/// Keeps the network of a guest busy, for a long time.
pub fn soak(args: &[&str]) -> Result<(), Failed> {
    let seconds = option(args, "--seconds", SOAK_SECONDS)?;
    let mut test = with_wasmtime("test");
    test.args(["--test", "soak", "--", "--include-ignored", "--nocapture"]);
    run(test.env("A99_SOAK_SECONDS", seconds))
}

/// Compares random instruction sequences with QEMU, seed after seed, for some
/// time.
pub fn cosim(args: &[&str]) -> Result<(), Failed> {
    let (mut seed, mut seconds) = ("1", COSIM_SECONDS);
    for pair in args.chunks(2) {
        match *pair {
            ["--seed", n] => seed = n,
            ["--seconds", n] => seconds = n,
            _ => return Err(Failed("expected [--seed S] [--seconds N]".to_owned())),
        }
    }
    let number = |text: &str| {
        let number = text.parse::<u64>();
        number.map_err(|_| Failed(format!("{text} is no number")))
    };
    let (mut seed, seconds) = (number(seed)?, Duration::from_secs(number(seconds)?));
    if !QEMU
        .iter()
        .any(|name| works(Command::new(name).arg("--version")))
    {
        let text = "needs qemu-riscv64 (Debian: qemu-user-static)";
        return Err(Failed(text.to_owned()));
    }
    let start = Instant::now();
    while start.elapsed() < seconds {
        eprintln!("==> seed {seed}, {COSIM_COUNT} sequences");
        let mut test = cargo("test");
        test.args(["--quiet", "--release", "-p", "a99-guest", "--test", "cosim"]);
        test.env("A99_COSIM_SEED", seed.to_string());
        run(test.env("A99_COSIM_COUNT", COSIM_COUNT))?;
        seed += 1;
    }
    Ok(())
}
