//! `cargo xtask power`: what the disk holds when the power goes between two writes of a store
//! of agents (`runtime/stores/tests/it/cuts.rs`). strace notes the writes.

use crate::guest::WITHOUT_WASMTIME;
use crate::shell::{Failed, cargo, works};
use crate::stage::{Outcome, Progress};
use std::process::Command;

/// What an option is called where the test reads it: turns, and at each of how many acts of the
/// process the power is cut.
const OPTIONS: [(&str, &str); 2] = [("--turns", "A99_POWER_TURNS"), ("--each", "A99_POWER_EACH")];

/// The short form, which CI runs: the log is copied into the file once.
const SHORT: [&str; 4] = ["--turns", "22", "--each", "19"];

fn test(args: &[&str], progress: &Progress) -> Result<(), Failed> {
    let mut test = cargo("test");
    test.args(WITHOUT_WASMTIME);
    test.args([
        "--test",
        "it",
        "--",
        "--ignored",
        "--nocapture",
        "long_power_cuts",
    ]);
    for pair in args.chunks(2) {
        let known = OPTIONS.iter().find(|(name, _)| pair.first() == Some(name));
        match (known, pair) {
            (Some((_, variable)), [_, value]) => drop(test.env(variable, value)),
            _ => return Err(Failed("expected [--turns N] [--each N]".to_owned())),
        }
    }
    progress.tests(&mut test)
}

/// Whether a process can be traced here; containers may forbid it.
fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    works(strace.args(["-f", "-o", "/dev/null", "true"]))
}

fn missing() -> String {
    "needs strace that may trace processes (Debian: `apt-get install strace`)".to_owned()
}

/// The short form. Skipped only where strace cannot be installed, or may trace nothing.
pub(crate) fn short(progress: &Progress) -> Result<Outcome, Failed> {
    if can_trace() {
        return test(&SHORT, progress).map(|()| Outcome::Passed);
    }
    let is_there = works(Command::new("strace").arg("--version"));
    match works(Command::new("apt-get").arg("--version")) && !is_there {
        true => Err(Failed(missing())),
        false => Ok(Outcome::Skipped(missing())),
    }
}

/// The long form.
pub(crate) fn long(args: &[&str]) -> Result<(), Failed> {
    match can_trace() {
        true => test(args, &Progress::default()),
        false => Err(Failed(missing())),
    }
}
