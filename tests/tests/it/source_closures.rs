//! Random sources with closures and classes give what JavaScript gives.

use super::source::{in_javascript, read, root, run};
use super::source_random::{difference, program, report};
use a99_testkit::sources::closures;
use agent99::Engine;
use serde_json::{Value as Json, json};

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

/// The programs of `tests/source/closures.txt`.
fn bodies() -> Vec<String> {
    let bodies = read("tests/source/closures.txt");
    let bodies = bodies.lines();
    bodies
        .map(|body| format!("export default function agent({{}}) {{\n{body}\n}}"))
        .collect()
}

/// They give what JavaScript gives, also after they are printed without closures and read again.
#[test]
fn closures_give_what_javascript_gives() {
    let engine = Engine::new();
    let recorded = read("tests/source/closures-results.jsonl");
    let recorded: Vec<&str> = recorded.lines().collect();
    let sources = bodies();
    assert_eq!(sources.len(), recorded.len());
    let mut wrong = Vec::new();
    for (source, expected) in sources.iter().zip(recorded) {
        let expected: Json = serde_json::from_str(expected).expect("JSON");
        let agent = match engine.compile_source(source.as_str()) {
            Ok(agent) => agent,
            Err(found) => {
                wrong.push(found.render(Some(("a.ajs", source.as_bytes()))));
                continue;
            }
        };
        let mut agents = vec![agent];
        match engine.print_source(&agents[0]) {
            Ok(printed) => agents.push(engine.compile_source(printed.as_str()).expect(&printed)),
            Err(found) => assert!(found.to_string().contains("source.unsayable"), "{found}"),
        }
        for agent in &agents {
            let outcome = run(&engine, agent, &json!({}), &json!({}));
            let result = outcome.result.to_json();
            if outcome.error.is_some() || result != expected["result"] {
                wrong.push(format!(
                    "{source}\n{expected}\n{:?} {result}",
                    outcome.error
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// `BLESS=1` records.
#[test]
#[ignore = "needs Node"]
fn node_gives_what_is_recorded_of_closures() {
    let programs: Vec<String> = bodies()
        .into_iter()
        .map(|source| Json::from(source).to_string())
        .collect();
    let answers = in_javascript(&programs);
    let text: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(root().join("tests/source/closures-results.jsonl"), &text).expect("written");
    }
    assert_eq!(read("tests/source/closures-results.jsonl"), text);
}
