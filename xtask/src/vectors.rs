//! `cargo xtask vectors`: replays conformance vectors with the test kit.

use crate::shell::{Failed, cargo, files_below, run};
use std::ffi::OsString;

/// Calls the test kit's runner with these arguments.
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
    runner.args(["--quiet", "--package", "a99-testkit", "--bin", "vectors", "--"]);
    run(runner.args(args))
}
