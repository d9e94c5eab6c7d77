//! `cargo xtask fuzz`: cargo-fuzz on the nightly toolchain.
//!
//! `cargo test` runs the same targets on their stored inputs with the stable toolchain, and
//! `cargo xtask slow` compiles them; this task finds new inputs.

use crate::shell::{Failed, cargo_of, files_below, root, run, works};
use std::process::Command;

/// Default seconds for each target.
const DEFAULT_SECONDS: u32 = 60;

/// Runs the unsafe code that Miri supports: the allocator of a test. The rest is WebAssembly,
/// system calls or machine code (`docs/proofs.md`).
pub(crate) fn miri() -> Result<(), Failed> {
    if !has_nightly() {
        let text = "needs the nightly toolchain: rustup toolchain install nightly";
        return Err(Failed(text.to_owned()));
    }
    let mut miri = Command::new("cargo");
    miri.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    miri.args(["+nightly", "miri", "test", "--package", "a99-testkit"]);
    miri.args(["--target-dir", "target/miri", "--test", "memory", "--"]);
    miri.args(["--exact", "the_allocator_counts_what_it_hands_out"]);
    run(miri.current_dir(root()))
}

/// Compiles all targets on this toolchain. Their stored inputs run as ordinary tests.
pub(crate) fn check() -> Result<(), Failed> {
    let mut check = cargo_of(&root().join("fuzz/Cargo.toml"), "check");
    check.args(["--locked", "--bins"]);
    run(check.env("RUSTFLAGS", "--cfg fuzzing"))
}

/// Fuzzes one target or all.
pub(crate) fn fuzz(args: &[&str]) -> Result<(), Failed> {
    let (target, seconds) = match *args {
        [] => (None, DEFAULT_SECONDS),
        ["--seconds", n] => (None, parse(n)?),
        [target] => (Some(target), DEFAULT_SECONDS),
        [target, "--seconds", n] | ["--seconds", n, target] => (Some(target), parse(n)?),
        _ => return Err(Failed("expected [TARGET] [--seconds N]".to_owned())),
    };
    let targets = targets(target)?;
    if !has_nightly() {
        let text = "needs the nightly toolchain: rustup toolchain install nightly";
        return Err(Failed(text.to_owned()));
    }
    if !has_cargo_fuzz() {
        run(Command::new("cargo").args(["install", "cargo-fuzz", "--locked"]))?;
    }
    run_targets(&targets, seconds)
}

/// The names of all targets, or of the wanted one.
fn targets(wanted: Option<&str>) -> Result<Vec<String>, Failed> {
    let files = files_below("fuzz/fuzz_targets", "rs");
    let names = files.iter().filter_map(|path| path.file_stem()?.to_str());
    let names: Vec<String> = names
        .filter(|name| wanted.is_none_or(|wanted| wanted == *name))
        .map(str::to_owned)
        .collect();
    match (wanted, names.is_empty()) {
        (Some(wanted), true) => Err(Failed(format!("there is no fuzz target named {wanted}"))),
        _ => Ok(names),
    }
}

fn run_targets(targets: &[String], seconds: u32) -> Result<(), Failed> {
    for target in targets {
        eprintln!("==> fuzz {target}, {seconds} s");
        let mut fuzz = Command::new("cargo");
        // The environment of this task's toolchain must not leak into nightly.
        fuzz.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        fuzz.args(["+nightly", "fuzz", "run", target, "--"]);
        fuzz.arg(format!("-max_total_time={seconds}"));
        // A program may take its whole heap several times over.
        fuzz.arg("-rss_limit_mb=4096");
        run(fuzz.current_dir(root()))?;
    }
    Ok(())
}

fn parse(seconds: &str) -> Result<u32, Failed> {
    let parsed = seconds.parse();
    parsed.map_err(|_| Failed(format!("{seconds} is no number of seconds")))
}

fn has_nightly() -> bool {
    works(Command::new("rustup").args(["run", "nightly", "rustc", "--version"]))
}

fn has_cargo_fuzz() -> bool {
    works(Command::new("cargo-fuzz").arg("--version"))
}
