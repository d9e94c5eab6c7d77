//! Report of a search, as text and as JSON.

use super::{Finding, Found, Goal};
use serde_json::{Value as Json, json as object};
use std::fmt::Write as _;

/// The findings as text.
pub fn text(found: &Found) -> String {
    let mut out = String::new();
    let (tried, measured) = found.tried;
    let _ = writeln!(
        out,
        "{}, seed {}, {} s: {tried} programs, {measured} of them measured, of {} rows",
        name(found.plan.goal),
        found.plan.seed,
        found.plan.time.as_secs(),
        found.rows
    );
    for finding in &found.findings {
        let _ = writeln!(
            out,
            "{:>6.2} of the bound: {}, of {}, n {}",
            finding.figure.part,
            amount(found.plan.goal, finding),
            finding.rows.join(", "),
            finding.n
        );
        let inputs: Vec<String> = finding
            .inputs
            .iter()
            .map(|(name, shape)| format!("{name} {shape}"))
            .collect();
        let _ = writeln!(out, "       {}", inputs.join(", "));
        let _ = writeln!(out, "       {}", turn(&finding.ast));
    }
    out
}

/// The steps of a program's loop.
fn turn(program: &Json) -> Json {
    let steps = program["steps"].as_array();
    let looped = steps.and_then(|steps| steps.last());
    looped.map_or(Json::Null, |looped| looped["body"].clone())
}

/// The figure of a program, with its unit.
pub(crate) fn amount(goal: Goal, finding: &Finding) -> String {
    let figure = finding.figure;
    match goal {
        Goal::Time => format!("{:.2} us a fuel unit", figure.value),
        Goal::Bytes => format!(
            "{:.2} times the ceiling held, {:.0} bytes allocated a fuel unit",
            figure.value, figure.allocated
        ),
    }
}

fn name(goal: Goal) -> &'static str {
    match goal {
        Goal::Time => "time",
        Goal::Bytes => "bytes",
    }
}

/// The findings as JSON.
pub fn json(found: &Found) -> Json {
    let findings: Vec<Json> = found
        .findings
        .iter()
        .map(|finding| {
            let inputs: serde_json::Map<String, Json> = finding
                .inputs
                .iter()
                .map(|(name, shape)| ((*name).to_owned(), object!(shape)))
                .collect();
            object!({"part": finding.figure.part, "value": finding.figure.value,
                "allocated": finding.figure.allocated, "fuel": finding.figure.fuel,
                "rows": finding.rows, "n": finding.n, "inputs": inputs,
                "program": finding.ast, "bytes": finding.genome.to_bytes()})
        })
        .collect();
    object!({"goal": name(found.plan.goal), "seed": found.plan.seed,
        "seconds": found.plan.time.as_secs(), "tried": found.tried.0,
        "measured": found.tried.1, "rows": found.rows, "findings": findings})
}
