//! `cargo xtask vectors`: replays conformance vectors with the test kit. `cargo test` also replays
//! the project's own vectors, on all engines.

use crate::shell::{Failed, cargo, failed, root, run};
use crate::{npm, pypi};
use std::fs;

/// Vectors whose recorded outcome differs from ours, each with its reason.
const DEVIATIONS: &str = "tests/deviations.jsonl";

/// The project's own vectors.
const VECTORS: &str = "tests/vectors";

/// Runs the test kit's runner with these arguments, with the project's list of deviations by
/// default. `--over` runs the programs with a binding to another language.
pub(crate) fn replay(args: &[&str]) -> Result<(), Failed> {
    match args {
        ["--over", over, files @ ..] => {
            let over = Binding::named(over)?;
            over.build("release")?;
            over.replay(files)
        }
        _ => runner(args, &[]),
    }
}

fn runner(args: &[&str], environment: &[(&str, &str)]) -> Result<(), Failed> {
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
    runner.envs(environment.iter().copied());
    // The runner has printed its error.
    run(runner.args(args)).map_err(|_| Failed(String::new()))
}

/// A binding to another language that can run vectors.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    Node,
    Wasm,
    Python,
}

impl Binding {
    fn named(name: &str) -> Result<Binding, Failed> {
        match name {
            "node" => Ok(Binding::Node),
            "wasm" => Ok(Binding::Wasm),
            "python" => Ok(Binding::Python),
            _ => Err(Failed(format!("`{name}` is none of node, wasm and python"))),
        }
    }

    /// Builds what runs the vectors.
    fn build(self, profile: &str) -> Result<(), Failed> {
        match self {
            Binding::Node | Binding::Wasm => npm::npm(&["--profile", profile, "--no-smoke"]),
            Binding::Python => pypi::pypi(&["--profile", profile]),
        }
    }

    /// Runs these files of vectors, or the project's own, with a binding that was built.
    pub(crate) fn replay(self, files: &[&str]) -> Result<(), Failed> {
        let own = own_vectors()?;
        let files = match files {
            [] => own.iter().map(String::as_str).collect(),
            files => files.to_vec(),
        };
        let (driver, environment) = match self {
            Binding::Node => (node_driver(), [("AGENT99_BACKEND", "native")]),
            Binding::Wasm => (node_driver(), [("AGENT99_BACKEND", "wasm")]),
            Binding::Python => (pypi::vectors_driver()?, [("PYTHONUTF8", "1")]),
        };
        let engine = format!("process:{driver}");
        let args = [["--engine", &engine].as_slice(), &files].concat();
        runner(&args, &environment)
    }
}

fn node_driver() -> String {
    let driver = root().join("bindings/js/test/vectors.mjs");
    format!("node {}", driver.display())
}

fn own_vectors() -> Result<Vec<String>, Failed> {
    let folder = root().join(VECTORS);
    let entries = fs::read_dir(&folder).map_err(|error| failed(folder.display(), error))?;
    let mut files: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().to_string_lossy().into_owned()))
        .collect();
    files.sort();
    Ok(files)
}

/// Builds all bindings without optimisation, tests their packages, and runs the project's vectors
/// over each.
pub(crate) fn bindings() -> Result<(), Failed> {
    npm::npm(&["--profile", "dev"])?;
    npm::tests()?;
    pypi::pypi(&["--profile", "dev"])?;
    for binding in [Binding::Node, Binding::Wasm, Binding::Python] {
        println!("vectors over {binding:?}");
        binding.replay(&[])?;
    }
    Ok(())
}
