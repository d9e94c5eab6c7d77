//! `cargo xtask vectors`: replays conformance vectors with the test kit. `cargo test` also replays
//! the project's own vectors, on all engines.

use crate::shell::{Failed, cargo, root, run};

/// Vectors whose recorded outcome differs from ours, each with its reason.
const DEVIATIONS: &str = "tests/deviations.jsonl";

/// Runs the test kit's runner with these arguments, with the project's list of deviations by
/// default.
pub(crate) fn replay(args: &[&str]) -> Result<(), Failed> {
    let mut runner = cargo("run");
    runner.args([
        "--quiet",
        "--package",
        "a99-testkit",
        "--bin",
        "vectors",
        "--",
    ]);
    if !args.contains(&"--deviations") {
        runner.arg("--deviations").arg(root().join(DEVIATIONS));
    }
    // The runner has printed its error.
    run(runner.args(args)).map_err(|_| Failed(String::new()))
}
