//! Random sources with closures and classes give what JavaScript gives.

use super::source::{in_javascript, read, root};
use super::source_random::{difference, program, report};
use a99_testkit::sources::closures;
use agent99::Engine;

/// Programs whose answers by Node are kept.
const KEPT: u64 = 300;

#[test]
fn random_closures_give_what_javascript_gave() {
    let engine = Engine::new();
    let kept = read("tests/source/closures.jsonl");
    let answers: Vec<&str> = kept.lines().collect();
    assert_eq!(answers.len() as u64, KEPT);
    let differences = (0..KEPT).zip(answers);
    let wrong: Vec<String> = differences
        .filter_map(|(seed, answer)| difference(&engine, &closures(seed), answer))
        .collect();
    report(&wrong, KEPT);
}

/// Asks Node about 5,000 programs; `BLESS=1` keeps the first answers.
#[test]
#[ignore = "needs Node"]
fn random_closures_give_what_node_gives() {
    let engine = Engine::new();
    let count = 5_000;
    let mut wrong = Vec::new();
    for first in (0..count).step_by(KEPT as usize) {
        let sources: Vec<String> = (first..count.min(first + KEPT)).map(closures).collect();
        let programs: Vec<String> = sources.iter().map(|source| program(source)).collect();
        let answers = in_javascript(&programs);
        assert_eq!(answers.len(), programs.len());
        if first == 0 && std::env::var_os("BLESS").is_some() {
            let text: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
            std::fs::write(root().join("tests/source/closures.jsonl"), text).expect("written");
        }
        let answers = sources.iter().zip(&answers);
        wrong.extend(answers.filter_map(|(source, answer)| difference(&engine, source, answer)));
    }
    report(&wrong, count);
}
