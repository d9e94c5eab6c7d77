//! Temporary memory of operations: each is tried on a value that doubles up to the ceiling.

use super::terse::{bin, call, func, id, list, lit, record, set};
use super::{Attack, End};
use agent99::json;
use serde_json::Value as Json;

fn object(name: &str) -> Json {
    call(id("Object"), name, json!([id("v")]))
}

fn method(name: &str, arguments: Json) -> Json {
    call(id("v"), name, arguments)
}

fn forever(start: Json, grow: Json, step: Json) -> Json {
    json!([
        set("v", start),
        {"op": "while", "condition": lit(true), "body": [
            step,
            set("x", Json::Null),
            set("v", grow),
        ]},
    ])
}

/// Operations on a text that doubles.
fn of_text() -> Vec<(&'static str, Json)> {
    let json_of = |v: Json| call(id("JSON"), "stringify", json!([v]));
    vec![
        ("split", method("split", json!([lit("")]))),
        (
            "replace_all",
            method("replaceAll", json!([lit("a"), lit("bc")])),
        ),
        ("upper_case", method("toUpperCase", json!([]))),
        ("normal", method("normalize", json!([]))),
        ("trimmed", method("trim", json!([]))),
        (
            "join",
            call(list(json!([id("v"), id("v")])), "join", json!([lit(",")])),
        ),
        ("json", json_of(id("v"))),
        ("json_of_keys", json_of(record(&[("k", id("v"))]))),
        (
            "parsed",
            call(
                id("JSON"),
                "parse",
                json!([json_of(list(json!([id("v")])))]),
            ),
        ),
        ("number", func("Number", json!([id("v")]))),
        ("date", call(id("Date"), "parse", json!([id("v")]))),
        ("error", func("Error", json!([id("v")]))),
        (
            "surrogates",
            bin("+", bin("+", id("v"), lit("x")), lit("y")),
        ),
        ("schema", call(id("Schema"), "const", json!([id("v")]))),
        (
            "valid",
            call(id("Schema"), "isValid", json!([id("v"), lit("x")])),
        ),
    ]
}

/// Operations on a list that doubles.
fn of_list() -> Vec<(&'static str, Json)> {
    let json_of = |v: Json| call(id("JSON"), "stringify", json!([v]));
    vec![
        ("sorted", method("toSorted", json!([]))),
        ("reversed", method("toReversed", json!([]))),
        ("spliced", method("toSpliced", json!([lit(0), lit(1)]))),
        ("sliced", method("slice", json!([]))),
        (
            "flattened",
            call(list(json!([id("v"), id("v")])), "flat", json!([])),
        ),
        ("joined", method("join", json!([]))),
        ("json", json_of(id("v"))),
        (
            "parsed",
            call(id("JSON"), "parse", json!([json_of(id("v"))])),
        ),
        ("set", func("Set", json!([id("v")]))),
        ("entries", object("entries")),
        ("keys", object("keys")),
        ("copied", call(id("Array"), "from", json!([id("v")]))),
        ("filter", func("filter", json!([id("v"), list(json!([]))]))),
        ("schema", call(id("Schema"), "enum", json!([id("v")]))),
        ("text", bin("+", id("v"), lit(""))),
        ("mapped", method("map", json!([id("String")]))),
    ]
}

/// Steps on a value `v` that doubles.
fn steps() -> Vec<(&'static str, Json)> {
    vec![
        (
            "hash",
            json!({"op": "hash", "value": id("v"), "result": "x"}),
        ),
        (
            "template",
            json!({"op": "template", "tmpl": "{{v}}{{v}}", "vars": {"v": "v"}, "result": "x"}),
        ),
        (
            "memo_key",
            json!({"op": "memoize", "key": "v", "steps": [set("result", lit(1))]}),
        ),
        (
            "memo_value",
            json!({"op": "memoize", "key": "k", "steps": [set("result", id("v"))]}),
        ),
        (
            "keyless_memo",
            json!({"op": "memoize", "steps": [set("result", id("v"))]}),
        ),
        (
            "cache_key",
            json!({"op": "cache", "key": "v", "steps": [set("result", lit(1))]}),
        ),
        ("store", json!({"op": "storeSet", "key": "k", "value": "v"})),
        ("warning", json!({"op": "consoleWarn", "message": "v"})),
        ("log", json!({"op": "consoleLog", "message": "v"})),
        (
            "json",
            json!({"op": "jsonStringify", "value": "v", "result": "x"}),
        ),
        (
            "base64",
            json!({"op": "base64Encode", "str": "v", "result": "x"}),
        ),
        (
            "merge",
            json!({"op": "merge", "a": "v", "b": "v", "result": "x"}),
        ),
        (
            "omit",
            json!({"op": "omit", "obj": "v", "keys": ["1"], "result": "x"}),
        ),
        (
            "pick",
            json!({"op": "pick", "obj": "v", "keys": "v", "result": "x"}),
        ),
        ("keys", json!({"op": "keys", "obj": "v", "result": "x"})),
        (
            "agent",
            json!({"op": "agentRun", "agentId": "v", "input": {"v": "v"}}),
        ),
        (
            "program",
            json!({"op": "agentRun", "agentId": {"op": "seq", "steps": []}, "input": {"v": "v"}}),
        ),
        (
            "regex",
            json!({"op": "regexMatch", "pattern": "a", "value": "v", "result": "x"}),
        ),
    ]
}

fn tried(step: &Json) -> Json {
    json!({"op": "try", "try": [step], "catch": []})
}

pub(super) fn attacks() -> Vec<Attack> {
    let text = || call(lit("ab1"), "repeat", json!([lit(1 << 18)]));
    let grown_text = bin("+", id("v"), id("v"));
    let start_list = call(text(), "split", json!([lit("")]));
    let grown_list = method("concat", json!([id("v")]));
    let mut all = Vec::new();
    let mut add = |name: String, steps: Json| {
        let name: &'static str = Box::leak(name.into_boxed_str());
        all.push(Attack::new(name, steps).ends(End::HeapLimit));
    };
    for (name, value) in of_text() {
        let step = tried(&set("x", value));
        add(
            format!("a8_room_of_text_{name}"),
            forever(text(), grown_text.clone(), step),
        );
    }
    for (name, value) in of_list() {
        let step = tried(&set("x", value));
        add(
            format!("a8_room_of_list_{name}"),
            forever(start_list.clone(), grown_list.clone(), step),
        );
    }
    for (name, step) in steps() {
        let step = tried(&step);
        let (text_name, list_name) = (
            format!("a8_room_text_in_{name}"),
            format!("a8_room_list_in_{name}"),
        );
        add(text_name, forever(text(), grown_text.clone(), step.clone()));
        add(
            list_name,
            forever(start_list.clone(), grown_list.clone(), step),
        );
    }
    all
}
