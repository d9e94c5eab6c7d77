//! `cargo xtask vectors`: replays conformance vectors with the test kit.

use crate::shell::{Failed, cargo, files_below, root, run};
use std::ffi::OsString;

/// The vectors whose recorded outcome is not ours, each with its reason.
const DEVIATIONS: &str = "tests/deviations.jsonl";

/// Calls the test kit's runner with these arguments; unless they name another
/// list of deviations, it is the project's.
pub fn replay(args: &[&str]) -> Result<(), Failed> {
    replay_with(args.iter().map(OsString::from).collect())
}

/// Replays the project's own vectors on one engine.
pub fn replay_own(engine: &str) -> Result<(), Failed> {
    let files = files_below("tests/vectors", "jsonl");
    if files.is_empty() {
        return Err(Failed("no vectors under tests/vectors".to_owned()));
    }
    let engine = ["--engine", engine].map(OsString::from);
    let files = files.into_iter().map(OsString::from);
    replay_with(engine.into_iter().chain(files).collect())
}

fn replay_with(args: Vec<OsString>) -> Result<(), Failed> {
    let mut runner = cargo("run");
    runner.args([
        "--quiet",
        "--package",
        "a99-testkit",
        "--bin",
        "vectors",
        "--",
    ]);
    if !args.iter().any(|arg| arg == "--deviations") {
        runner.arg("--deviations").arg(root().join(DEVIATIONS));
    }
    // The runner's own last line says what failed.
    run(runner.args(args)).map_err(|_| Failed(String::new()))
}
