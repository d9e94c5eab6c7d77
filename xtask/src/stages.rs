//! The stages of `test`, `slow` and `bless`.

use crate::shell::{Failed, cargo, metadata, output, run, works};
use crate::stage::{Outcome, Progress, Stages};
use crate::{bench, cosim, deny, docs, fuzz, guest, power, tidy};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::thread;

/// Runs all checks that a contributor needs before a change, cheapest first. A failed stage does
/// not stop the others.
pub(crate) fn test() -> Result<(), Failed> {
    let mut stages = Stages::of(5);
    stages.run("format", |_| run(cargo("fmt").args(["--all", "--check"])));
    stages.run("tidy", |_| tidy::tidy());
    stages.run("clippy", |_| {
        let mut clippy = cargo("clippy");
        clippy.args(guest::WITHOUT_WASMTIME).args(CLUSTER);
        clippy.args(["--all-targets", "--", "-D", "warnings"]);
        run(&mut clippy)
    });
    // These tests include the vectors on the machine, through artifacts and on the oracle.
    let mut names = BTreeSet::new();
    let compiled = stages.attempt("compiling tests", |_| {
        names = test_targets()?;
        Ok(Outcome::Passed)
    });
    if compiled {
        stages.run("tests", |progress| side_by_side(progress, &names));
    }
    stages.end()
}

/// A test command for the packages of `cargo xtask test`.
fn all_tests() -> Command {
    let mut test = cargo("test");
    test.args(guest::WITHOUT_WASMTIME).arg("--no-fail-fast");
    test
}

/// Compiles all tests. Returns the names of test targets.
fn test_targets() -> Result<BTreeSet<String>, Failed> {
    let format = "--message-format=json-render-diagnostics";
    let mut compile = all_tests();
    let messages = output(compile.args(["--no-run", format]).stderr(Stdio::inherit()))?;
    let artifacts = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["kind"][0] == "test");
    let names =
        artifacts.filter_map(|artifact| Some(artifact["target"]["name"].as_str()?.to_owned()));
    Ok(names.collect())
}

/// The test targets that together take half of the time.
const LONG: [&str; 2] = ["it", "corpus"];

/// Runs all tests in two parallel halves, because many of them wait more than they compute. Both
/// use the same packages, so that cargo compiles nothing twice.
fn side_by_side(progress: &Progress, names: &BTreeSet<String>) -> Result<(), Failed> {
    let half = |is_long: bool| {
        let names = names
            .iter()
            .filter(|name| LONG.contains(&name.as_str()) == is_long);
        let mut test = all_tests();
        test.args(names.flat_map(|name| ["--test", name]));
        test
    };
    thread::scope(|threads| {
        let long = threads.spawn(|| {
            let tests = progress.tests(&mut half(true));
            progress.tests(all_tests().arg("--doc")).and(tests)
        });
        let short = progress.tests(half(false).args(["--lib", "--bins", "--examples"]));
        long.join().expect("it returns its errors").and(short)
    })
}

/// Features of crates whose tests start PostgreSQL servers. These test targets, and no others, are
/// named `server`: cargo requires the feature where a target is selected by name.
const CLUSTER: [&str; 2] = [
    "--features",
    "a99-postgres/cluster,a99-vectors/cluster,a99-runtime-stores/cluster,a99-cli/cluster",
];

/// The packages that are tested with every loop compiled.
const COMPILED: [&str; 6] = [
    "--package",
    "a99-jit",
    "--package",
    "a99-vm",
    "--package",
    "a99-testkit",
];

/// Random programs in the source form that CI compares with Node.
const SOURCES_OF_CI: u64 = 2_000;

/// Default number of random programs of `cargo xtask sources`.
const SOURCES: u64 = 20_000;

/// The tests that compare the source form with Node.
fn beside_node(count: u64) -> Command {
    let mut test = cargo("test");
    test.args(guest::WITHOUT_WASMTIME);
    test.args(["--test", "it", "--", "--ignored", "source"]);
    test.env("A99_SOURCES", count.to_string());
    test
}

/// Compares random programs with Node.
pub(crate) fn sources(args: &[&str]) -> Result<(), Failed> {
    let count = match *args {
        [] => SOURCES,
        ["--count", n] => n
            .parse()
            .map_err(|_| Failed(format!("`{n}` is no number")))?,
        _ => return Err(Failed("expected [--count N]".to_owned())),
    };
    Progress::default().tests(&mut beside_node(count))
}

/// The tests of a test program that need more than the toolchain.
fn ignored(test: &str) -> Command {
    let mut command = cargo("test");
    command.args(guest::WITHOUT_WASMTIME);
    command.args(["--test", test, "--", "--ignored"]);
    command
}

/// Runs slow checks that seldom fail: dependencies, features, documentation, and tests that need
/// Node, Python, PostgreSQL, docker-registry, erofs-utils, skopeo, umoci, valgrind, QEMU, wasmtime
/// or the guest's image, which is built if missing.
pub(crate) fn slow() -> Result<(), Failed> {
    let mut stages = Stages::of(19);
    stages.run("dependencies", |_| deny::deny());
    stages.run("without default features", |_| without_default_features());
    stages.run("fuzz targets", |_| fuzz::check());
    stages.run("documentation", |_| {
        let mut doc = cargo("doc");
        doc.args(guest::WITHOUT_WASMTIME).arg("--no-deps");
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    });
    stages.run("code of pages in other languages", |progress| {
        progress.tests(&mut ignored("pages"))?;
        progress.tests(&mut ignored("agent"))
    });
    stages.attempt("types of the examples", |progress| {
        if !works(Command::new("npx").arg("--version")) {
            let missing = "npx is missing: Debian's package `nodejs` lacks it";
            return Ok(Outcome::Skipped(missing.to_owned()));
        }
        progress
            .tests(&mut ignored("types"))
            .map(|()| Outcome::Passed)
    });
    stages.attempt("pages in a browser", |progress| {
        if !works(Command::new("chromium").arg("--version")) {
            let missing = "chromium is missing: install Debian's package `chromium`";
            return Ok(Outcome::Skipped(missing.to_owned()));
        }
        progress
            .tests(&mut ignored("browser"))
            .map(|()| Outcome::Passed)
    });
    stages.run("the source form beside Node", |progress| {
        progress.tests(&mut beside_node(SOURCES_OF_CI))
    });
    // Behind a feature, because it needs the server: the checks before each change need only the
    // toolchain.
    stages.run("tests with PostgreSQL", |progress| {
        let mut test = cargo("test");
        test.args(guest::WITHOUT_WASMTIME).args(CLUSTER);
        progress.tests(test.args(["--test", "server"]))
    });
    // Behind a feature, because it depends on Cranelift.
    stages.run("clippy with the compiled tier", |_| {
        let mut clippy = cargo("clippy");
        clippy.args(COMPILED).args(["--package", "a99-cli"]);
        // The export of spans is the other feature of the command that `full` lacks.
        clippy.args([
            "--features",
            "a99-cli/jit,a99-cli/otlp,a99-testkit/jit-eager",
        ]);
        run(clippy.args(["--all-targets", "--", "-D", "warnings"]))
    });
    stages.run("tests with the compiled tier", |progress| {
        let compiled = || {
            let mut test = cargo("test");
            test.args(COMPILED);
            test.args(["--features", "a99-testkit/jit-eager"]);
            test
        };
        progress.tests(compiled().args(["--lib", "--test", "tier"]))?;
        let of_it = ["vectors", "differential", "snapshots", "tier"];
        progress.tests(compiled().args(["--test", "it", "--"]).args(of_it))
    });
    stages.run("file systems and container images", |progress| {
        let mut test = cargo("test");
        test.args([
            "--package",
            "a99-sandbox-erofs",
            "--package",
            "a99-sandbox-oci",
        ]);
        progress.tests(test.args(["--test", "judge", "--test", "it", "--", "--ignored"]))
    });
    stages.attempt("instructions", |_| bench::instructions());
    stages.attempt("power cuts", power::short);
    stages.attempt("co-simulation with QEMU", cosim::short);
    // Behind a feature, because it depends on wasmtime: checked here, and not before each change.
    stages.run("clippy with the sandbox", |_| {
        let mut clippy = guest::with_wasmtime("clippy");
        clippy.args(["--all-targets", "--", "-D", "warnings"]);
        run(&mut clippy)
    });
    stages.run("documentation with the sandbox", |_| {
        let mut doc = guest::with_wasmtime("doc");
        run(doc.arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings"))
    });
    if stages.attempt("the guest's image", |_| guest::build_where_possible()) {
        stages.run("tests with the guest", guest::test);
    } else {
        stages.run("tests without the guest", guest::test_without_image);
    }
    stages.end()
}

/// Compiles each crate with default features without them, and the sandbox's library, whose
/// features are all optional, without any.
fn without_default_features() -> Result<(), Failed> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array();
    for package in packages.into_iter().flatten() {
        let default = package["features"]["default"].as_array();
        if default.is_none_or(Vec::is_empty) {
            continue;
        }
        let name = package["name"].as_str().unwrap_or_default();
        let mut clippy = cargo("clippy");
        clippy.args(["--package", name, "--no-default-features"]);
        run(clippy.args(["--", "-D", "warnings"]))?;
    }
    // All other stages build it with the feature `vm`, and so with wasmtime.
    let mut clippy = cargo("clippy");
    run(clippy.args(["--package", "a99-sandbox", "--", "-D", "warnings"]))
}

/// Rewrites golden files and generated documents.
pub(crate) fn bless() -> Result<(), Failed> {
    docs::write()?;
    let mut test = cargo("test");
    run(test
        .args(guest::WITHOUT_WASMTIME)
        .arg("--no-fail-fast")
        .env("BLESS", "1"))
}
