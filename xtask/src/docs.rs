//! `cargo xtask docs`: documents generated from tables of the engine, so that they cannot drift
//! from it.

use crate::bench::{self, COUNTS, FIGURES};
use crate::codes;
use crate::reference::{
    AtomFamily, artifact_markdown, atoms_markdown, builtins_markdown, bytecode_markdown,
    code_lines, costs_markdown, errors_markdown,
};
use crate::shell::{Failed, failed, root};
use a99_atoms::{
    all_atoms, battery_atoms, browser_atoms, core_atoms, is_internal, shell_atoms, time_atoms,
    turn_atoms,
};
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::fs;

/// The measurement in `docs/costs.md`; `cargo xtask rates --record` writes it.
const RATES: &str = "benches/results/rates.json";

/// A handwritten page with generated figures, and the markers around them.
const PERFORMANCE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- Figures: written by `cargo xtask docs`; do not edit. -->\n";
const END: &str = "<!-- End of the figures. -->\n";

/// The documents: path in the workspace, and text.
fn documents() -> Result<Vec<(&'static str, String)>, Failed> {
    let atoms = all_atoms();
    let language: Vec<_> = atoms
        .iter()
        .map(|atom| &atom.sig)
        .filter(|sig| !is_internal(&sig.name))
        .collect();
    let mut costs = costs_markdown(&language);
    costs.push_str(&measured()?);
    Ok(vec![
        ("docs/a99b.md", artifact_markdown()),
        ("docs/atoms.md", atoms_page()),
        ("docs/builtins.md", builtins_markdown()),
        ("docs/bytecode.md", bytecode_markdown()),
        ("docs/costs.md", costs),
        ("docs/errors.md", codes::with_sections(errors_markdown)?),
        (PERFORMANCE, performance()?),
        // Meanings for `a99 explain` of codes from crates that it may lack.
        ("cli/src/codes.tsv", codes::with_sections(code_lines)?),
    ])
}

/// The page of the atoms.
fn atoms_page() -> String {
    let sets = [
        ("Core", core_atoms()),
        ("Batteries", battery_atoms()),
        ("Browser", browser_atoms()),
        ("Shell", shell_atoms()),
        ("Turn", turn_atoms()),
        ("Time", time_atoms()),
    ];
    let families = sets.iter().map(|(title, set)| {
        let atoms = set.iter().map(|atom| &atom.sig);
        let atoms = atoms.filter(|sig| !is_internal(&sig.name)).collect();
        AtomFamily { title, atoms }
    });
    atoms_markdown(&families.collect::<Vec<_>>())
}

/// Measured time of a unit of fuel.
fn measured() -> Result<String, Failed> {
    if !root().join(RATES).exists() {
        return Ok(String::new());
    }
    let text = fs::read_to_string(root().join(RATES)).map_err(|error| failed(RATES, error))?;
    let record: Json = serde_json::from_str(&text).map_err(|error| failed(RATES, error))?;
    let shown = |of: &Json, key: &str| match &of[key] {
        Json::String(text) => text.replace('|', "\\|"),
        other => other.to_string(),
    };
    let at = |key| shown(&record, key);
    let mut out = format!(
        "\n## Measured\n\nMicroseconds of CPU time that a unit of fuel bought in the metered \
         model, by `{}` on {}: of {} figures the median is {}, 99 % are below {} and the maximum \
         is {}; {} are above the bound. By group:\n\n\
         | group | figures | median | most | of | size |\n|---|---|---|---|---|---|\n",
        at("command"),
        at("date"),
        at("figures"),
        at("median"),
        at("p99"),
        at("most"),
        at("above"),
    );
    let groups = record["groups"].as_object().into_iter().flatten();
    for (group, line) in groups {
        let at = |key| shown(line, key);
        let _ = writeln!(
            out,
            "| {group} | {} | {} | {} | {} | {} |",
            at("figures"),
            at("median"),
            at("most"),
            at("of"),
            at("n"),
        );
    }
    Ok(out)
}

/// The performance page with the recorded figures and instruction counts.
fn performance() -> Result<String, Failed> {
    let page = read(PERFORMANCE)?;
    let parts = page.split_once(BEGIN);
    let parts = parts.and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.ok_or_else(|| failed(PERFORMANCE, "no marks around the figures"))?;
    let record = |path| -> Result<Json, Failed> {
        serde_json::from_str(&read(path)?).map_err(|error| failed(path, error))
    };
    let figures = bench::markdown(&record(FIGURES)?, &record(COUNTS)?, &record(RATES)?);
    Ok(format!("{head}{BEGIN}\n{figures}\n{END}{tail}"))
}

fn read(path: &str) -> Result<String, Failed> {
    fs::read_to_string(root().join(path)).map_err(|error| failed(path, error))
}

pub(crate) fn write() -> Result<(), Failed> {
    for (path, text) in documents()? {
        fs::write(root().join(path), text).map_err(|error| failed(path, error))?;
    }
    Ok(())
}

/// Checks that the documents are up to date.
pub(crate) fn check() -> Result<(), Failed> {
    for (path, text) in documents()? {
        let found = fs::read_to_string(root().join(path)).map_err(|error| failed(path, error))?;
        if found != text {
            return Err(failed(path, "out of date; run `cargo xtask docs`"));
        }
    }
    Ok(())
}
