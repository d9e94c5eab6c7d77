//! Random sources give what JavaScript gives: those of the first seeds against what Node
//! gave, many more against Node itself.

use super::source::{in_javascript, read, root, run};
use a99_core::json::{Document, Limits};
use a99_testkit::sources::source;
use agent99::{Engine, ErrorCode, Outcome, Value};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;

/// Programs whose answers by Node are kept.
const KEPT: u64 = 400;

/// What each program is run with, here and in JavaScript.
fn arguments() -> Json {
    json!({"n": 7, "words": ["one", "three", ""]})
}

/// What the host answers; `tests/source/record.mjs` says the same.
fn script() -> Json {
    json!({"fetch": {"https://a.example/": {"n": 3}, "https://b.example/": {"n": 40}}})
}

pub(crate) fn program(source: &str) -> String {
    json!([source, arguments()]).to_string()
}

fn outcome(engine: &Engine, text: &str) -> Result<Outcome, String> {
    let agent = engine.compile_source(text);
    let agent = agent.map_err(|found| found.render(Some(("a.ajs", text.as_bytes()))))?;
    Ok(run(engine, &agent, &arguments(), &script()))
}

/// JSON text as a value; surrogates may be alone.
fn parsed(text: &str) -> Value {
    let document = Document::parse(text, &Limits::default()).expect(text);
    document.to_value(document.root())
}

/// Why an answer is not what JavaScript gave; none where it is.
pub(crate) fn difference(engine: &Engine, text: &str, answer: &str) -> Option<String> {
    let told = |ours: &str| {
        let told = format!("{text}\nJavaScript: {answer}\nhere: {ours}\n");
        Some(told)
    };
    let outcome = match outcome(engine, text) {
        Ok(outcome) => outcome,
        Err(found) => return told(&found),
    };
    if let Some(error) = &outcome.error {
        // Texts of errors are other ones, and JavaScript has no limits.
        let text = error.message.to_string_lossy();
        let is_limit = matches!(error.code, ErrorCode::OutOfFuel | ErrorCode::HeapLimit)
            || text.contains("-byte limit");
        return match is_limit || answer.starts_with("{\"error\":") {
            true => None,
            false => told(&error.message.to_string_lossy()),
        };
    }
    let ours = format!("{{\"result\":{}}}", outcome.result.to_json_string());
    let is_same = parsed(&ours) == parsed(answer);
    match is_same || answer.starts_with("{\"error\":\"Cannot read properties of ") {
        true => None,
        false => told(&ours),
    }
}

pub(crate) fn report(wrong: &[String], of: u64) {
    let mut text = String::new();
    for one in wrong.iter().take(3) {
        let _ = writeln!(text, "{one}");
    }
    assert!(wrong.is_empty(), "{} of {of} differ\n{text}", wrong.len());
}

#[test]
fn random_programs_give_what_javascript_gave() {
    let engine = Engine::new();
    let kept = read("tests/source/random.jsonl");
    let answers: Vec<&str> = kept.lines().collect();
    assert_eq!(answers.len() as u64, KEPT);
    let differences = (0..KEPT).zip(answers);
    let wrong: Vec<String> = differences
        .filter_map(|(seed, answer)| difference(&engine, &source(seed), answer))
        .collect();
    report(&wrong, KEPT);
    let errors = kept
        .lines()
        .filter(|line| line.starts_with("{\"error\""))
        .count();
    assert!(errors * 10 < kept.lines().count(), "{errors} programs fail");
}

/// `cargo xtask sources` asks Node about 20,000 programs, or as many as `A99_SOURCES` says,
/// `cargo xtask slow` about some of them; `BLESS=1` keeps the first answers.
#[test]
#[ignore = "needs Node"]
fn random_programs_give_what_node_gives() {
    let engine = Engine::new();
    let count = std::env::var("A99_SOURCES")
        .ok()
        .and_then(|n| n.parse().ok());
    let count: u64 = count.unwrap_or(20_000);
    let mut wrong = Vec::new();
    for first in (0..count).step_by(KEPT as usize) {
        let seeds = first..count.min(first + KEPT);
        let programs: Vec<String> = seeds.clone().map(|seed| program(&source(seed))).collect();
        let answers = in_javascript(&programs);
        assert_eq!(answers.len(), programs.len());
        if first == 0 && std::env::var_os("BLESS").is_some() {
            let text: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
            std::fs::write(root().join("tests/source/random.jsonl"), text).expect("written");
        }
        let answers = seeds.zip(&answers);
        wrong.extend(
            answers.filter_map(|(seed, answer)| difference(&engine, &source(seed), answer)),
        );
    }
    report(&wrong, count);
}
