//! `cargo xtask power`: content of the disk after a power cut between two writes of an agent store
//! (`runtime/stores/tests/it/cuts.rs`). strace records the writes.

use crate::guest::WITHOUT_WASMTIME;
use crate::shell::{Failed, cargo, set_options, works};
use crate::stage::{Outcome, Progress, unless_installable};
use std::process::Command;

/// Options with the test's variables: number of turns, and interval between power cuts in recorded
/// acts of the process.
const OPTIONS: [(&str, &str); 2] = [("--turns", "A99_POWER_TURNS"), ("--each", "A99_POWER_EACH")];

/// Options of the short form, which CI runs: the log is checkpointed once.
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

/// Whether processes can be traced here; containers may forbid it.
fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    works(strace.args(["-f", "-o", "/dev/null", "true"]))
}

fn missing() -> String {
    "needs strace that may trace processes (Debian: `apt-get install strace`)".to_owned()
}

/// Runs the short form. Skipped only if strace cannot be installed or may not trace.
pub(crate) fn short(progress: &Progress) -> Result<Outcome, Failed> {
    if can_trace() {
        return test(&SHORT, progress).map(|()| Outcome::Passed);
    }
    match works(Command::new("strace").arg("--version")) {
        // strace exists, but may not trace.
        true => Ok(Outcome::Skipped(missing())),
        false => unless_installable(missing()),
    }
}

pub(crate) fn long(args: &[&str]) -> Result<(), Failed> {
    match can_trace() {
        true => test(args, &Progress::default()),
        false => Err(Failed(missing())),
    }
}
