//! Benchmarks: work that compares engines, our instruction counts, and pairs measured in turns.
//! `benches/benches` measures all other times with criterion.

mod instr;
mod peers;
mod report;
mod work;

pub(crate) use report::markdown;

use crate::shell::{Failed, cargo, failed, root, run, run_program, target};
use crate::stage::{Outcome, unless_installable};
use serde_json::Value;
use std::path::PathBuf;

/// The recorded figures, relative to the workspace; `docs/performance.md` shows them.
pub(crate) const FIGURES: &str = "benches/results/work.json";

/// The recorded instruction counts.
pub(crate) const COUNTS: &str = "benches/results/instructions.json";

/// `bench`, `bench --instr`, `bench --pairs` or `bench --threads`, each with different options.
pub(crate) fn bench(args: &[&str]) -> Result<(), Failed> {
    let rest = |kind: &str| -> Option<Vec<&str>> {
        let at = args.iter().position(|arg| *arg == kind)?;
        Some([&args[..at], &args[at + 1..]].concat())
    };
    if let Some(rest) = rest("--instr") {
        return instr::bench(&rest);
    }
    for kind in ["pairs", "threads"] {
        if let Some(rest) = rest(&format!("--{kind}")) {
            return run_program("a99-benches", kind, &rest);
        }
    }
    work::bench(args)
}

/// Compares the instruction counts of all rows with the recorded ones. A change with intended
/// growth records them again.
pub(crate) fn instructions() -> Result<Outcome, Failed> {
    if let Some(missing) = instr::missing() {
        return unless_installable(missing);
    }
    let counts = root().join(COUNTS);
    instr::bench(&["--baseline", &counts.to_string_lossy()]).map_err(|Failed(reason)| {
        Failed(format!(
            "{reason}\nif that is meant, record it: cargo xtask bench --instr --save {COUNTS}"
        ))
    })?;
    Ok(Outcome::Passed)
}

/// Builds programs with the profile of benchmarks. Returns their folder.
fn build(programs: &[&str]) -> Result<PathBuf, Failed> {
    build_with(&[], programs)
}

/// Builds programs with additional arguments of cargo.
fn build_with(args: &[&str], programs: &[&str]) -> Result<PathBuf, Failed> {
    let mut build = cargo("build");
    build.args(["--quiet", "--profile", "bench", "-p", "a99-benches"]);
    build.args(args);
    for program in programs {
        build.args(["--bin", program]);
    }
    run(&mut build)?;
    Ok(target()?.join("release"))
}

/// The saved report of an earlier run.
fn read(path: &str) -> Result<Value, Failed> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(path, error))?;
    serde_json::from_str(&text).map_err(|error| failed(path, error))
}
