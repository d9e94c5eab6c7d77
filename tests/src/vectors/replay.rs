//! Replays files of vectors and reports.

use super::compare::{Difference, condition_difference, outcome_difference};
use super::deviations::{self, Deviation, Deviations};
use super::read::{Subject, Vector, read_file};
use super::{Engine, EngineOutcome};
use a99_core::value::Value;
use agent99::{AtomSet, all_atoms};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Alternatives that a decision makes the expected outcome.
pub const CHOSEN: [(&str, &str); 6] = [
    ("scope-error", "D9"),
    ("while-error", "D10"),
    ("own-members", "D16"),
    ("consts-scoped", "D31"),
    ("literal-copy", "D33"),
    ("no-validate", "D44"),
];

/// Features that the runner knows.
const FEATURES: [&str; 3] = ["battery", "v3", "metered"];

/// Result of a vector.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The outcome is the expected one.
    Pass,
    /// The outcome differs; the text has the reason.
    Fail(String),
    /// The runner does not know a required feature, or the engine does not judge a required
    /// host.
    Skipped,
}

/// The verdicts of a replay.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Vectors that passed.
    pub passed: usize,
    /// Ids and reasons of failures.
    pub failed: Vec<(String, String)>,
    /// Vectors that were skipped.
    pub skipped: usize,
    /// Proposed lines of deviations that would make failures pass.
    pub proposals: Vec<String>,
}

impl Report {
    /// The failures; the last line has the three counts.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        for (id, why) in &self.failed {
            let _ = writeln!(out, "FAIL {id}\n    {why}");
        }
        let (passed, failed, skipped) = (self.passed, self.failed.len(), self.skipped);
        let _ = writeln!(out, "{passed} passed, {failed} failed, {skipped} skipped");
        out
    }
}

/// Outcome of a vector on an engine.
enum Made {
    Program(EngineOutcome, Vec<String>),
    Condition(Result<Value, String>),
}

impl Made {
    fn difference(&self, vector: &Vector, expect: &Value, repaired: bool) -> Option<Difference> {
        match self {
            Made::Program(outcome, _) => outcome_difference(vector, expect, repaired, outcome),
            Made::Condition(got) => condition_difference(expect, got, &vector.ignore),
        }
    }

    fn expect(&self) -> Value {
        let object = |key: &str, value: Value| Value::Object([(key, value)].into_iter().collect());
        match self {
            Made::Program(outcome, _) => deviations::expect_of(outcome),
            Made::Condition(Ok(node)) => object("expr", deviations::encode(node)),
            Made::Condition(Err(_)) => object("rejected", Value::Bool(true)),
        }
    }
}

fn make(engine: &dyn Engine, vector: &Vector) -> Made {
    let spec = match &vector.subject {
        Subject::Condition(text) => return Made::Condition(engine.parse_condition(text)),
        Subject::Program => vector.run_spec(),
    };
    match spec {
        Ok(spec) => {
            let script = spec.script.clone();
            let outcome = engine.run_program(spec);
            let problems = script.lock().unwrap_or_else(|e| e.into_inner()).problems();
            Made::Program(outcome, problems)
        }
        // Invalid options are refused like a program.
        Err(message) => Made::Program(EngineOutcome::Rejected { message }, Vec::new()),
    }
}

/// True for a known feature: one of [`FEATURES`], an atom, or a host atom that the vector
/// defines.
fn is_known(feature: &str, vector: &Vector) -> bool {
    static ATOMS: LazyLock<AtomSet> = LazyLock::new(all_atoms);
    FEATURES.contains(&feature)
        || ATOMS.get(feature).is_some()
        || vector.host_atoms().any(|op| op == feature)
}

/// Reason why an outcome differs from the vector and the decisions; `None` if it matches.
/// Foreign files also accept the reference's outcome where a decision chose an alternative.
fn unmet(vector: &Vector, made: &Made, foreign: bool) -> Option<String> {
    let chosen: Vec<&Value> = CHOSEN
        .iter()
        .filter_map(|(name, _)| vector.alternatives.get(*name))
        .collect();
    if chosen
        .iter()
        .any(|expect| made.difference(vector, expect, true).is_none())
    {
        return None;
    }
    if let (Some(expect), false) = (chosen.first(), foreign) {
        return made
            .difference(vector, expect, true)
            .map(|d| format!("against the alternative: {d}"));
    }
    if let Some(difference) = made.difference(vector, &vector.expect, false) {
        return Some(difference.to_string());
    }
    match made {
        Made::Program(_, problems) if !problems.is_empty() => Some(problems.join("\n    ")),
        _ => None,
    }
}

fn judge(vector: &Vector, made: &Made, listed: Option<&Deviation>, foreign: bool) -> Verdict {
    if matches!(made, Made::Program(EngineOutcome::NotJudged, _)) {
        return Verdict::Skipped;
    }
    let unmet = unmet(vector, made, foreign);
    match (unmet, listed) {
        (None, None) => Verdict::Pass,
        (None, Some(deviation)) if deviation.by_speed => Verdict::Pass,
        (Some(why), None) => Verdict::Fail(why),
        (None, Some(_)) => Verdict::Fail("is listed as a deviation but no longer deviates".into()),
        (Some(_), Some(deviation)) => match made.difference(vector, &deviation.expect, false) {
            None => Verdict::Pass,
            Some(d) => Verdict::Fail(format!(
                "deviates by {} but not as listed: {d}",
                deviation.decision
            )),
        },
    }
}

/// The folder of the vectors in the list of deviations.
fn own_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    folder.canonicalize().unwrap_or(folder)
}

fn is_foreign(file: &Path) -> bool {
    let folder = file
        .canonicalize()
        .ok()
        .and_then(|p| p.parent().map(Path::to_path_buf));
    folder != Some(own_folder())
}

/// Replays files on an engine. A listed id that no replayed file of the own folder has is
/// ignored: a call may replay some files only.
///
/// # Errors
/// A file that cannot be read or has an invalid vector.
pub fn replay(
    engine: &dyn Engine,
    files: &[PathBuf],
    listed: &Deviations,
) -> Result<Report, String> {
    let mut report = Report::default();
    for file in files {
        let foreign = is_foreign(file);
        for vector in read_file(file)? {
            if !vector.requires.iter().all(|r| is_known(r, &vector)) {
                report.skipped += 1;
                continue;
            }
            let made = make(engine, &vector);
            match judge(&vector, &made, listed.get(&vector.id), foreign) {
                Verdict::Pass => report.passed += 1,
                Verdict::Skipped => report.skipped += 1,
                Verdict::Fail(why) => {
                    let decision = listed.get(&vector.id).map_or("D?", |d| &d.decision);
                    let line = [
                        ("id", Value::String(vector.id.as_str().into())),
                        ("decision", Value::String(decision.into())),
                        ("expect", made.expect()),
                    ];
                    let line = Value::Object(line.into_iter().collect());
                    report.proposals.push(line.to_json_string());
                    report
                        .failed
                        .push((vector.id, format!("{}: {why}", vector.title)));
                }
            }
        }
    }
    Ok(report)
}
