//! One-line idioms of JavaScript beside what Node makes of them: `tests/source/idioms.jsonl`.
//!
//! A line has the body of a function (`js`) and its result in Node (`node`, or `throws`), with
//! `refused`, the code with which the source form refuses it, or `differs`, the result here with
//! its reason in docs/source.md. `BLESS=1` writes the last two again.

use crate::source::{root, run};
use agent99::Engine;
use serde_json::{Map, Value as Json, json};
use std::fs;

/// The most idioms that are refused.
const MOST_REFUSED: usize = 25;

fn path() -> std::path::PathBuf {
    root().join("tests/source/idioms.jsonl")
}

fn idioms() -> Vec<Map<String, Json>> {
    let text = fs::read_to_string(path()).expect("the idioms");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("objects")
}

fn source(idiom: &Map<String, Json>) -> String {
    let body = idiom["js"].as_str().expect("a text");
    format!("export default async function agent({{}}) {{\n{body}\n}}")
}

/// What the engine makes of an idiom, in the form of its line.
fn judged(engine: &Engine, idiom: &Map<String, Json>) -> Map<String, Json> {
    let mut line = idiom.clone();
    line.remove("refused");
    line.remove("differs");
    let agent = match engine.compile_source(source(idiom)) {
        Ok(agent) => agent,
        Err(found) => {
            let first = found.iter().next().map(|found| found.code);
            line.insert("refused".into(), json!(first));
            return line;
        }
    };
    let outcome = run(engine, &agent, &json!({}), &json!({}));
    match outcome.error {
        Some(_) if idiom.contains_key("throws") => {}
        Some(error) => {
            line.insert(
                "differs".into(),
                json!({ "throws": error.message.to_string() }),
            );
        }
        None => {
            let result = outcome.result.to_json();
            if idiom.get("node") != Some(&result) {
                line.insert("differs".into(), json!({ "result": result }));
            }
        }
    }
    line
}

#[test]
fn idioms_give_what_javascript_gives() {
    let engine = Engine::new();
    let recorded = idioms();
    let judged: Vec<_> = recorded.iter().map(|one| judged(&engine, one)).collect();
    let lines = judged
        .iter()
        .map(|line| format!("{}\n", Json::Object(line.clone())));
    if std::env::var_os("BLESS").is_some() {
        fs::write(path(), lines.collect::<String>()).expect("written");
    }
    let mut wrong = Vec::new();
    for (now, before) in judged.iter().zip(&recorded) {
        let changed = |key: &str| now.get(key) != before.get(key) && now.contains_key(key);
        if changed("refused") || changed("differs") {
            wrong.push(Json::Object(now.clone()).to_string());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let refused = judged.iter().filter(|line| line.contains_key("refused"));
    assert!(refused.count() <= MOST_REFUSED);
}
