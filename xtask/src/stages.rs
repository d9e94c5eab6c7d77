//! The stages of `test`, `slow` and `bless`.

use crate::shell::{Failed, cargo, run};
use crate::stage::Stages;
use crate::{docs, guest, tidy, vectors};

/// Everything a contributor needs before a change, cheapest first. A stage that
/// fails keeps no other from its verdict.
pub fn test() -> Result<(), Failed> {
    let mut stages = Stages::of(7);
    stages.run("format", |_| run(cargo("fmt").args(["--all", "--check"])));
    stages.run("tidy", |_| tidy::tidy());
    stages.run("clippy", |_| {
        let mut clippy = cargo("clippy");
        clippy.args(["--workspace", "--all-targets", "--", "-D", "warnings"]);
        run(&mut clippy)
    });
    stages.run("vectors on the machine", |_| vectors::replay_own("vm"));
    stages.run("vectors through .a99b files", |_| {
        vectors::replay_own("a99b")
    });
    stages.run("vectors on the oracle", |_| vectors::replay_own("oracle"));
    stages.run("tests", |progress| {
        let mut test = cargo("test");
        progress.tests(test.args(["--workspace", "--no-fail-fast"]))
    });
    stages.end()
}

/// What takes long and seldom breaks: documentation, what needs wasmtime, and
/// what needs the guest's image, which is built if need be.
pub fn slow() -> Result<(), Failed> {
    let mut stages = Stages::of(4);
    stages.run("documentation", |_| {
        let mut doc = cargo("doc");
        doc.args(["--workspace", "--no-deps"]);
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    });
    // A feature, because it brings in wasmtime: checked here, apart from what a
    // contributor runs before each change.
    stages.run("clippy with the sandbox", |_| {
        let mut clippy = guest::with_wasmtime("clippy");
        clippy.args(["--all-targets", "--", "-D", "warnings"]);
        run(&mut clippy)
    });
    if let Err(Failed(text)) = stages.attempt("the guest's image", |_| guest::build(&[])) {
        // Not every machine has Debian's archive; what needs the image is then
        // left to those that have.
        eprintln!("==> skipped: tests with the guest, which need the image. {text}");
        return stages.end();
    }
    stages.run("tests with the guest", guest::test_in_short);
    stages.end()
}

/// Rewrites golden files and generated documents.
pub fn bless() -> Result<(), Failed> {
    docs::write()?;
    let mut test = cargo("test");
    run(test
        .args(["--workspace", "--no-fail-fast"])
        .env("BLESS", "1"))
}
