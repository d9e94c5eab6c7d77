//! The stages of `test`, `extra` and `bless`.

use crate::shell::{Failed, cargo, run, stage};
use crate::{docs, tidy, vectors};

/// Everything a contributor needs before a change, cheapest first.
pub fn test() -> Result<(), Failed> {
    stage("format", || run(cargo("fmt").args(["--all", "--check"])))?;
    stage("tidy", tidy::tidy)?;
    stage("clippy", || {
        let mut clippy = cargo("clippy");
        clippy.args([
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]);
        run(&mut clippy)
    })?;
    stage("vectors on the machine", || vectors::replay_own("vm"))?;
    stage("vectors through .a99b files", || {
        vectors::replay_own("a99b")
    })?;
    stage("vectors on the oracle", || vectors::replay_own("oracle"))?;
    stage("tests", || run(cargo("test").arg("--workspace")))
}

/// What takes long and seldom breaks: documentation, and what needs wasmtime.
pub fn extra() -> Result<(), Failed> {
    stage("documentation", || {
        let mut doc = cargo("doc");
        doc.args(["--quiet", "--workspace", "--no-deps"]);
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    // A feature, because it brings in wasmtime: checked here, apart from what a
    // contributor runs before each change.
    stage("clippy with the sandbox", || {
        let mut clippy = cargo("clippy");
        clippy.args(["--quiet", "-p", "a99-cli", "--features", "sandbox"]);
        clippy.args(["-p", "a99-batteries", "-p", "a99-sandbox"]);
        clippy.args(["--all-targets", "--", "-D", "warnings"]);
        run(&mut clippy)
    })?;
    stage("tests with the sandbox", || {
        run(cargo("test").args(["-p", "a99-sandbox", "--features", "vm", "--lib"]))?;
        // What needs the image is ignored.
        run(cargo("test").args(["-p", "a99-batteries", "--features", "sandbox"]))
    })
}

/// Rewrites golden files and generated documents.
pub fn bless() -> Result<(), Failed> {
    docs::write()?;
    run(cargo("test").arg("--workspace").env("BLESS", "1"))
}
