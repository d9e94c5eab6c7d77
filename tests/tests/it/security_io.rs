//! Threats N01, N13 to N16 and F05, as far as the engine itself meets them.

use crate::attack::{
    bin, call, fails, id, list, lit, member, ret, rich, run_granted, set, stopped, value, within,
};
use agent99::capabilities::{FnAgentRunner, MemoryStore, ScriptedTranspiler};
use agent99::{Capabilities, ErrorCode, RunOptions, json};
use std::sync::Arc;

#[test]
fn n13_store_keys_are_data_and_capped() {
    let granted = || Capabilities::none().with_store(MemoryStore::new());
    for key in [
        "__proto__",
        "constructor",
        "../../etc/passwd",
        "cache:k",
        "",
        "\u{0}",
    ] {
        let steps = json!([
            {"op": "storeSet", "key": "args.k", "value": {"polluted": true}},
            {"op": "storeGet", "key": "other", "result": "o"},
            {"op": "storeGet", "key": "args.k", "result": "x"},
            ret(list(json!([member(id("o"), "polluted"), member(id("x"), "polluted")]))),
        ]);
        let outcome = run_granted(steps, json!({"k": key}), rich(), granted());
        if outcome.error.is_none() {
            assert_eq!(
                outcome.result.to_json()["r"],
                json!([null, true]),
                "{key:?}"
            );
        }
    }
    let steps = json!([
        set("k", call(lit("x"), "repeat", json!([lit(10 << 20)]))),
        {"op": "storeSet", "key": "k", "value": 1},
    ]);
    let outcome = run_granted(steps, json!({}), rich(), granted());
    let code = outcome.error.expect("refused").code;
    assert!(
        matches!(code, ErrorCode::Boundary | ErrorCode::Program),
        "{code}"
    );
}

#[test]
fn n01_nothing_is_granted_by_default() {
    let steps = [
        json!({"op": "httpFetch", "url": "https://example.com"}),
        json!({"op": "llmPredict", "prompt": "p"}),
        json!({"op": "agentRun", "agentId": "other", "input": {}}),
        json!({"op": "runCode", "code": "x"}),
        json!({"op": "xmlParse", "str": "<a/>"}),
        json!({"op": "storeVectorize", "text": "x"}),
        json!({"op": "shellExec", "command": "ls"}),
        json!({"op": "shellWriteFile", "path": "/a", "content": ""}),
        json!({"op": "shellReadFile", "path": "/etc/passwd"}),
    ];
    for step in steps {
        let error = fails(json!([step]), json!({}), ErrorCode::Capability);
        assert!(error.message.to_string().contains("missing"), "{error:?}");
    }
}

#[test]
fn n14_cache_keys_are_content_hashes() {
    let store = Arc::new(MemoryStore::new());
    let go = |value: i32, tag: &str| {
        let steps = json!([
            set("n", lit(value)),
            {"op": "cache", "steps": [set("result", bin("*", id("n"), lit(2)))], "result": "r"},
            {"op": "varSet", "key": tag, "value": 1},
            ret(id("r")),
        ]);
        let mut granted = Capabilities::none();
        granted.store = Some(store.clone());
        let outcome = run_granted(steps, json!({}), rich(), granted);
        assert_eq!(outcome.error, None);
        outcome.result.to_json()["r"].clone()
    };
    assert_eq!(go(1, "a"), json!(2));
    assert_eq!(go(2, "a"), json!(4), "another input is another entry");
    assert_eq!(go(3, "b"), json!(6), "another program is another entry");
}

#[test]
fn n14_every_variable_of_a_body_is_in_its_key() {
    let names: Vec<String> = (0..80).map(|n| format!("v{n:02}")).collect();
    let sum = names
        .iter()
        .fold(lit(0), |sum, name| bin("+", sum, id(name)));
    let body = json!([set("result", sum)]);
    for op in ["memoize", "cache"] {
        let step = |result: &str| json!({"op": op, "steps": body, "result": result});
        for (at, changed) in names.iter().enumerate() {
            let mut steps: Vec<_> = names.iter().map(|name| set(name, lit(1))).collect();
            steps.extend([step("a"), step("again"), set(changed, lit(2)), step("b")]);
            let shown =
                json!({"op": "return", "schema": {"properties": {"a": {}, "again": {}, "b": {}}}});
            steps.push(shown);
            let mut granted = Capabilities::none();
            granted.store = Some(Arc::new(MemoryStore::new()));
            let outcome = run_granted(json!(steps), json!({}), rich(), granted);
            assert_eq!(outcome.error, None);
            let expected = json!({"a": 80, "again": 80, "b": 81});
            assert_eq!(outcome.result.to_json(), expected, "{op}: variable {at}");
        }
    }
}

#[test]
fn n15_runs_share_nothing_by_default() {
    let write = json!([{"op": "storeSet", "key": "k", "value": "mine"}]);
    let read = json!([{"op": "storeGet", "key": "k", "result": "x"}, ret(id("x"))]);
    let granted = Capabilities::none();
    for _ in 0..3 {
        let outcome = run_granted(write.clone(), json!({}), rich(), granted.clone());
        assert!(
            outcome
                .warnings
                .iter()
                .any(|w| w.to_string().contains("in-memory store"))
        );
        assert_eq!(value(read.clone(), json!({})), json!(null));
        assert!(granted.granted().is_empty());
    }
}

#[test]
fn n16_odd_vectors_are_errors() {
    let setup = json!([
        {"op": "storeCreateCollection", "collection": "c", "dimension": 2},
        {"op": "storeVectorAdd", "collection": "c", "doc": {"id": 1, "embedding": [1, 0]}},
    ]);
    for (vector, k) in [
        (json!([1, 0]), json!(1e9)),
        (json!([1, 0]), json!(-1)),
        (json!(["x", null]), json!(1)),
        (json!([1]), json!(1)),
        (json!([]), json!(1)),
        (json!([1e308, 1e308]), json!(1)),
        (json!([1, 0]), json!("many")),
    ] {
        let mut steps = setup.clone();
        steps.as_array_mut().unwrap().push(json!({"op": "storeSearch", "collection": "c", "queryVector": vector, "k": k, "result": "r"}));
        steps.as_array_mut().unwrap().push(ret(id("r")));
        let options = RunOptions::new().fuel(1e12).unwrap().timeout_ms(20_000);
        let outcome = within(1_000, || {
            run_granted(
                steps,
                json!({}),
                options,
                Capabilities::none().with_store(MemoryStore::new()),
            )
        });
        match outcome.error {
            Some(error) => assert_eq!(error.code, ErrorCode::Program, "{vector} {k}: {error:?}"),
            None => assert!(
                outcome.result.to_json()["r"]
                    .as_array()
                    .is_some_and(|r| r.len() <= 1),
                "{vector} {k}"
            ),
        }
    }
}

#[test]
fn f05_code_that_runs_code_shares_one_budget() {
    let source = json!({"op": "seq", "steps": [{"op": "runCode", "code": "again", "result": "x"}, {"op": "return", "value": {}}]});
    let transpiler = ScriptedTranspiler::new().on("again", source);
    let granted = Capabilities::none().with_transpiler(transpiler);
    let outcome = run_granted(
        json!([{"op": "runCode", "code": "again"}]),
        json!({}),
        rich(),
        granted,
    );
    let error = stopped(&outcome, ErrorCode::Program);
    assert!(
        error.message.to_string().contains("recursion limit"),
        "{error:?}"
    );
    let _ = FnAgentRunner::new(|_, input, _| Ok(input.into()));
}
