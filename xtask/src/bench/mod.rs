//! Benchmarks: the work that engines are compared by, instruction counts of ours, and pairs
//! that are measured in turns. Times of other things are criterion's, under
//! `benches/benches`.

mod instr;
mod peers;
mod report;
mod work;

pub(crate) use report::markdown;

use crate::shell::{Failed, cargo, failed, root, run, run_program, target};
use crate::stage::{Outcome, unless_installable};
use serde_json::Value;
use std::path::PathBuf;

/// The figures that are recorded, from the workspace's folder; `docs/performance.md` shows
/// them.
pub(crate) const FIGURES: &str = "benches/results/work.json";

/// The instruction counts that are recorded.
pub(crate) const COUNTS: &str = "benches/results/instructions.json";

/// `bench`, `bench --instr`, `bench --pairs` or `bench --threads`, each with options of its
/// own.
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

/// Compares the instructions of all rows with those that are recorded, which a change that
/// is meant to take more records anew.
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

/// Builds programs that do work, as benchmarks are built; gives their folder.
fn build(programs: &[&str]) -> Result<PathBuf, Failed> {
    build_with(&[], programs)
}

/// The same with arguments of cargo's.
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

/// What an earlier run saved.
fn read(path: &str) -> Result<Value, Failed> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(path, error))?;
    serde_json::from_str(&text).map_err(|error| failed(path, error))
}
