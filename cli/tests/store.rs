//! Stores in files: `a99 run --store`.

mod harness;

use harness::{Done, a99_in};
use serde_json::json;
use std::fs;
use std::path::Path;
use tempfile::{TempDir, tempdir};

/// Counts its runs.
const COUNT: &str = r#"{"op": "seq", "steps": [
    {"op": "storeGet", "key": "count", "result": "old"},
    {"op": "if", "condition": "old", "then": [
        {"op": "mathCalc", "expr": "old + 1", "vars": {"old": "old"}, "result": "runs"}
    ], "else": [{"op": "varSet", "key": "runs", "value": 1}]},
    {"op": "storeSet", "key": "count", "value": "runs"},
    {"op": "storeGet", "key": "count", "result": "runs"},
    {"op": "return", "schema": {"type": "object", "properties": {"runs": {}}}}
]}"#;

fn folder() -> TempDir {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("agent.json"), COUNT).expect("written");
    folder
}

fn run(folder: &Path, more: &[&str]) -> Done {
    let mut args = vec!["run", "agent.json"];
    args.extend(more);
    a99_in(folder, &args)
}

fn refused(done: &Done) -> (String, String) {
    assert_eq!(done.code, 2, "{done:?}");
    let error = &done.json()["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (
        text("code"),
        format!("{} {}", text("message"), text("help")),
    )
}

#[test]
fn what_is_stored_is_there_in_the_next_run() {
    let folder = folder();
    for runs in 1..4 {
        let done = run(folder.path(), &["--store", "a.db"]);
        assert_eq!(done.json()["runs"], runs, "{done:?}");
    }
    // After closing, one file holds everything.
    assert!(!folder.path().join("a.db-wal").exists());
    for _ in 0..2 {
        assert_eq!(run(folder.path(), &[]).json()["runs"], 1);
    }
    assert_eq!(run(folder.path(), &["--store", "b.db"]).json()["runs"], 1);
}

#[test]
fn a_configuration_names_a_file_beside_it() {
    let folder = folder();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("a folder");
    fs::write(inner.join("agent.json"), COUNT).expect("written");
    fs::write(folder.path().join("agent99.toml"), "store = \"kept.db\"").expect("written");
    let done = run(&inner, &[]);
    assert_eq!(done.json()["runs"], 1, "{done:?}");
    assert!(done.err.contains("store = "), "{done:?}");
    assert!(folder.path().join("kept.db").is_file());
    let shown = a99_in(&inner, &["config", "agent.json"]);
    assert!(shown.out.contains("kept.db"), "{shown:?}");
    // The option wins.
    assert_eq!(run(&inner, &["--store", "mine.db"]).json()["runs"], 1);
    assert!(inner.join("mine.db").is_file());
}

#[test]
fn a_file_that_is_no_store_is_refused_before_the_run() {
    let folder = folder();
    fs::write(folder.path().join("text"), "no database ".repeat(100)).expect("written");
    for (file, code, word) in [
        ("text", "sqlite.not_database", "--store"),
        ("no/folder", "sqlite.not_found", "a folder that exists"),
        (".", "sqlite.not_found", "--store"),
        ("-", "cli.usage", "needs a file"),
    ] {
        let (found, text) = refused(&run(folder.path(), &["--json", "--store", file]));
        assert_eq!(found, code, "{text}");
        assert!(text.contains(word), "{text}");
    }
    let text = fs::read_to_string(folder.path().join("text")).expect("readable");
    assert!(text.starts_with("no database"));
}

#[test]
fn a_store_and_a_scripted_one_exclude_each_other() {
    let folder = folder();
    fs::write(folder.path().join("script.json"), r#"{"store": {}}"#).expect("written");
    let words = ["--json", "--store", "a.db", "--script", "script.json"];
    let (_, text) = refused(&run(folder.path(), &words));
    assert!(text.contains("exclude each other"), "{text}");
}

#[test]
fn a_trace_does_not_overwrite_the_store() {
    let folder = folder();
    for runs in 1..3 {
        let words = ["--json", "--store", "a.db", "--trace", "./a.db"];
        let (_, text) = refused(&run(folder.path(), &words));
        assert!(text.contains("overwrite"), "{text}");
        let done = run(folder.path(), &["--store", "a.db"]);
        assert_eq!(done.json()["runs"], runs);
    }
}

/// Creates a collection, and changes it in each way.
const NOTE: &str = r#"{"op": "seq", "steps": [
    {"op": "storeCreateCollection", "collection": "notes", "dimension": 2},
    {"op": "storeVectorAdd", "collection": "notes", "doc": {"id": "added", "embedding": [1, 0]}},
    {"op": "storeVectorUpsert", "collection": "notes", "doc": {"id": "set", "embedding": [2, 0]}},
    {"op": "storeVectorUpsert", "collection": "notes", "doc": {"id": "set", "embedding": [0, 1.1]}},
    {"op": "storeVectorUpsert", "collection": "notes", "doc": {"id": "gone", "embedding": [1, 1]}},
    {"op": "storeVectorDelete", "collection": "notes", "id": "gone", "result": "wasThere"},
    {"op": "storeSet", "key": "count", "value": 2},
    {"op": "return", "schema": {"type": "object", "properties": {"wasThere": {}}}}
]}"#;

/// Searches the collection in both ways.
const FIND: &str = r#"{"op": "seq", "steps": [
    {"op": "storeVectorSearch", "collection": "notes", "vector": [0.1, 3], "result": "all"},
    {"op": "storeSearch", "collection": "notes", "queryVector": [0.1, 3], "k": 9,
     "filter": {"id": "added"}, "result": "some"},
    {"op": "storeGet", "key": "count", "result": "count"},
    {"op": "return", "schema": {"type": "object", "properties": {
        "all": {}, "some": {}, "count": {}}}}
]}"#;

#[test]
fn vectors_are_there_in_the_next_run() {
    let folder = tempdir().expect("a folder");
    let run = |program: &str| {
        fs::write(folder.path().join("agent.json"), program).expect("written");
        run(folder.path(), &["--store", "a.db"])
    };
    let none = run(FIND);
    assert_eq!(none.code, 1, "{none:?}");
    let unknown = "Collection 'notes' not found. Create it first.";
    assert!(none.err.contains(unknown), "{none:?}");
    let noted = run(NOTE);
    assert_eq!(noted.json()["wasThere"], true, "{noted:?}");
    let added = json!({"id": "added", "embedding": [1, 0]});
    for _ in 0..2 {
        let found = run(FIND).json();
        let set = json!({"id": "set", "embedding": [0, 1.1]});
        assert_eq!(found["all"], json!([set, added]), "{found}");
        assert_eq!(found["some"], json!([added]));
        assert_eq!(found["count"], 2);
    }
}
