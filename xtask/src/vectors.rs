//! `cargo xtask vectors`: replays conformance vectors with the test kit. The
//! project's own are replayed on all engines by `cargo test` too.

use crate::shell::{Failed, cargo, root, run};

/// The vectors whose recorded outcome is not ours, each with its reason.
const DEVIATIONS: &str = "tests/deviations.jsonl";

/// Calls the test kit's runner with these arguments; unless they name another
/// list of deviations, it is the project's.
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
    // The runner's own last line says what failed.
    run(runner.args(args)).map_err(|_| Failed(String::new()))
}
