//! `cargo xtask power`: what the disk holds when the power goes between two writes of a store
//! of agents (`runtime/stores/tests/it/cuts.rs`). strace notes the writes.

use crate::guest::WITHOUT_WASMTIME;
use crate::shell::{Failed, cargo, set_options, works};
use crate::stage::{Outcome, Progress, unless_installable};
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
    set_options(&mut test, args, &OPTIONS, "[--turns N] [--each N]")?;
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
    match works(Command::new("strace").arg("--version")) {
        // It is there, and may trace nothing.
        true => Ok(Outcome::Skipped(missing())),
        false => unless_installable(missing()),
    }
}

/// The long form.
pub(crate) fn long(args: &[&str]) -> Result<(), Failed> {
    match can_trace() {
        true => test(args, &Progress::default()),
        false => Err(Failed(missing())),
    }
}
