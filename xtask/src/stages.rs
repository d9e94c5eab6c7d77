//! The stages of `test`, `extra` and `bless`.

use crate::shell::{Failed, cargo, run, stage};
use crate::{docs, guest, tidy, vectors};

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

/// What takes long and seldom breaks: documentation, what needs wasmtime, and
/// what needs the guest's image, which is built if need be.
pub fn extra() -> Result<(), Failed> {
    stage("documentation", || {
        let mut doc = cargo("doc");
        doc.args(["--quiet", "--workspace", "--no-deps"]);
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    // A feature, because it brings in wasmtime: checked here, apart from what a
    // contributor runs before each change.
    stage("clippy with the sandbox", || {
        let mut clippy = guest::with_wasmtime("clippy");
        clippy.args(["--quiet", "--all-targets", "--", "-D", "warnings"]);
        run(&mut clippy)
    })?;
    if let Err(Failed(text)) = stage("the guest's image", || guest::build(&[])) {
        // Not every machine has Debian's archive; what needs the image is then
        // left to those that have.
        eprintln!("==> skipped: tests with the guest, which need the image. {text}");
        return Ok(());
    }
    stage("tests with the guest", guest::test_in_short)
}

/// Rewrites golden files and generated documents.
pub fn bless() -> Result<(), Failed> {
    docs::write()?;
    run(cargo("test").arg("--workspace").env("BLESS", "1"))
}
