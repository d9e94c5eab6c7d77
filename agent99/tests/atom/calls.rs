//! Calls from programs: inputs, answers, errors, prices.

use crate::{failure, run_step, run_step_with, value};
use agent99::{
    AtomCx, AtomDecl, Capabilities, Engine, ErrorCode, Fuel, RunOptions, Text, Value, atom,
    capabilities::MemoryStore, json,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Meter,
    Foot(f64),
}

/// Everything that a parameter can be.
#[atom(cost = 1)]
fn everything(
    small: u8,
    text: &str,
    list: Vec<Option<i32>>,
    map: BTreeMap<String, f64>,
    unit: Unit,
    any: serde_json::Value,
    #[atom(default = "d".to_owned())] fallback: String,
) -> serde_json::Value {
    json!([small, text, list, map, unit, any, fallback])
}

fn everything_step() -> serde_json::Value {
    json!({
        "op": "everything", "small": 3.0, "text": "t", "list": [1, null], "map": {"a": 0.5},
        "unit": {"foot": 2}, "any": {"deep": [true]}, "unknown": 1,
    })
}

#[test]
fn inputs_arrive() {
    let outcome = run_step([EVERYTHING.def()], everything_step());
    assert_eq!(
        value(&outcome).to_json(),
        json!([3, "t", [1, null], {"a": 0.5}, {"foot": 2}, {"deep": [true]}, "d"])
    );
    let mut step = everything_step();
    step["fallback"] = json!(null);
    let outcome = run_step([EVERYTHING.def()], step);
    assert_eq!(value(&outcome).to_json()[6], "d");
}

#[test]
fn inputs_that_do_not_fit_name_the_place() {
    for (key, bad, message) in [
        (
            "small",
            json!(256),
            "/small: expected u8, found the number 256",
        ),
        (
            "small",
            json!(0.5),
            "/small: expected u8, found the number 0.5",
        ),
        (
            "text",
            json!(5),
            "/text: expected a string, found the number 5",
        ),
        (
            "list",
            json!([1, "x"]),
            "/list/1: expected i32, found the string \"x\"",
        ),
        (
            "map",
            json!({"a/b": null}),
            "/map/a~1b: expected f64, found null",
        ),
        (
            "unit",
            json!("mile"),
            "/unit: expected one of \"meter\", \"foot\", found the string \"mile\"",
        ),
        (
            "fallback",
            json!([]),
            "/fallback: expected a string, found an empty array",
        ),
    ] {
        let mut step = everything_step();
        step[key] = bad;
        let (op, text) = failure(&run_step([EVERYTHING.def()], step));
        assert_eq!(op, "everything");
        assert_eq!(
            text,
            format!("Input validation failed for 'everything': {message}")
        );
    }
    for key in ["small", "any"] {
        let mut step = everything_step();
        step.as_object_mut().unwrap().remove(key);
        let (_, text) = failure(&run_step([EVERYTHING.def()], step));
        assert!(text.contains(&format!("/{key}: expected ")), "{text}");
        assert!(text.ends_with(", found undefined"), "{text}");
    }
}

#[test]
fn lone_surrogates_are_no_rust_text() {
    let lone = Value::String(Text::from_wtf8(vec![b'x', 0xED, 0xA0, 0x80]));
    let args = Value::Object([("lone", lone)].into_iter().collect());
    let mut step = everything_step();
    step["text"] = json!({"$kind": "arg", "path": "lone"});
    let outcome = run_step_with([EVERYTHING.def()], step, args, RunOptions::new());
    let (_, text) = failure(&outcome);
    assert!(text.contains("/text: expected well-formed text"), "{text}");
}

static CALLED: AtomicUsize = AtomicUsize::new(0);

/// Counts how often it is called.
#[atom(cost = 1, effect = "io")]
fn counted(n: i8) -> Result<i8, String> {
    CALLED.fetch_add(1, Ordering::Relaxed);
    n.checked_mul(2).ok_or_else(|| format!("{n} is too much"))
}

#[test]
fn a_refused_input_never_reaches_the_function() {
    let call = |n: serde_json::Value| run_step([COUNTED.def()], json!({"op": "counted", "n": n}));
    failure(&call(json!("x")));
    assert_eq!(CALLED.load(Ordering::Relaxed), 0);
    assert_eq!(value(&call(json!(4))).to_json(), json!(8));
    let expected = ("counted".to_owned(), "100 is too much".to_owned());
    assert_eq!(failure(&call(json!(100))), expected);
    assert_eq!(CALLED.load(Ordering::Relaxed), 2);
}

#[test]
fn errors_can_be_caught() {
    let engine = Engine::builder()
        .atoms(agent99::core_atoms().with(REFUSE))
        .build();
    let program = r#"{"op": "seq", "steps": [
        {"op": "try", "try": [{"op": "refuse"}], "catch": [{"op": "varSet", "key": "why", "value": "error"}]},
        {"op": "return", "schema": {"type": "object", "properties": {"why": {}}}}]}"#;
    let agent = engine.compile(program).unwrap();
    let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
    assert_eq!(outcome.result.to_json(), json!({"why": "no such file"}));
}

/// Fails.
#[atom(cost = 0)]
fn refuse() -> std::io::Result<()> {
    Err(std::io::Error::other("no such file"))
}

/// Panics.
#[atom(cost = 0)]
fn panics() {
    panic!("a secret of the host")
}

/// Panics later.
#[atom(cost = 0)]
async fn panics_later() {
    panics()
}

#[test]
fn panics_are_errors_without_their_text() {
    for (atom, op) in [(PANICS, "panics"), (PANICS_LATER, "panicsLater")] {
        let (_, text) = failure(&run_step([atom.def()], json!({"op": op})));
        assert_eq!(text, "The atom failed");
    }
}

/// Gives what its schema does not allow.
#[atom(
    cost = 0,
    output = "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"array\", \"items\": {\"type\": \"integer\"}}}, \"required\": [\"a\"]}"
)]
fn promised(a: serde_json::Value) -> serde_json::Value {
    match a {
        serde_json::Value::Null => json!({}),
        a => json!({ "a": a }),
    }
}

/// Not finite.
#[atom(cost = 0)]
fn not_finite() -> f64 {
    f64::NAN
}

/// More than a number holds.
#[atom(cost = 0)]
fn too_exact() -> Vec<u64> {
    vec![u64::MAX]
}

/// A number or none.
#[atom(cost = 0)]
fn perhaps(n: Option<u8>) -> Option<u8> {
    n
}

/// Nothing.
#[atom(cost = 0)]
fn nothing() {}

#[test]
fn outputs_are_what_was_declared() {
    let call = |a: serde_json::Value| run_step([PROMISED.def()], json!({"op": "promised", "a": a}));
    assert_eq!(value(&call(json!([1, 2]))).to_json(), json!({"a": [1, 2]}));
    let mut long = vec![json!(1); 500];
    long[333] = json!("x");
    for (a, message) in [
        (
            json!([1, 2.5]),
            "/a/1: expected integer, found the number 2.5",
        ),
        (json!("x"), "/a: expected array, found the string \"x\""),
        (json!(null), "/a: expected a value, found undefined"),
        (
            json!(long),
            "/a/333: expected integer, found the string \"x\"",
        ),
    ] {
        let (op, text) = failure(&call(a));
        assert_eq!(op, "promised");
        assert_eq!(
            text,
            format!("Output validation failed for 'promised': {message}")
        );
    }
    let fails = |atom: AtomDecl| failure(&run_step([atom.def()], json!({"op": atom.name}))).1;
    assert_eq!(
        fails(NOT_FINITE),
        "Output validation failed for 'notFinite': expected finite number, found the number NaN"
    );
    assert!(fails(TOO_EXACT).contains("/0: expected an integer that a number"));
    for atom in [PERHAPS, NOTHING] {
        let outcome = run_step([atom.def()], json!({"op": atom.name}));
        assert_eq!(value(&outcome), Value::Null);
    }
}

/// Looks around.
#[atom(cost = 3)]
async fn look(cx: &AtomCx, key: &str) -> serde_json::Value {
    cx.warn("looked");
    let stored = match cx.grants::<Capabilities>().and_then(|c| c.store.clone()) {
        Some(store) => store.get(key.into()).await.map(|v| v.to_json()).ok(),
        None => None,
    };
    json!({
        "op": cx.op(), "user": cx.context().get("user").map(Value::to_json),
        "fuel": cx.fuel_left().to_f64(), "late": cx.deadline().is_some(),
        "cancelled": cx.is_cancelled(), "stored": stored,
    })
}

#[test]
fn functions_see_the_run() {
    let atoms = agent99::core_atoms().with(LOOK);
    let engine = Engine::builder().atoms(atoms).build();
    let program = json!({"op": "seq", "steps": [
        {"op": "storeSet", "key": "k", "value": 7},
        {"op": "look", "key": "k", "result": "seen"},
        {"op": "return", "schema": {"type": "object", "properties": {"seen": {}}}},
    ]});
    let agent = engine.compile(program.to_string()).unwrap();
    let options = RunOptions::new()
        .fuel(100.0)
        .unwrap()
        .context(json!({"user": "Ada"}));
    let granted = Capabilities::none().with_store(MemoryStore::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(engine.run(&agent, json!({}), options, granted));
    let seen = outcome.result.to_json();
    assert_eq!(
        seen["seen"],
        json!({"op": "look", "user": "Ada", "fuel": 91.9852, "late": true, "cancelled": false, "stored": 7})
    );
    assert_eq!(outcome.warnings.len(), 1);
}

/// Never answers.
#[atom(cost = 1, timeout_ms = 5)]
async fn never() {
    std::future::pending().await
}

#[test]
fn waiting_is_limited() {
    let engine = Engine::builder()
        .atoms(agent99::core_atoms().with(NEVER))
        .build();
    let agent = engine
        .compile(r#"{"op": "seq", "steps": [{"op": "never"}]}"#)
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let run = engine.run(&agent, json!({}), RunOptions::new(), Capabilities::none());
    let error = runtime.block_on(run).error.unwrap();
    assert_eq!(error.code, ErrorCode::AtomTimeout);
    let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
    assert_eq!(outcome.error.unwrap().code, ErrorCode::AsyncInSync);
}

fn by_length(input: &PricedInput) -> f64 {
    match &*input.text {
        "panic" => panic!("no price"),
        "nan" => f64::NAN,
        "negative" => -1000.0,
        text => text.len() as f64,
    }
}

/// Costs what its text is long.
#[atom(cost = by_length)]
fn priced(text: String) -> usize {
    text.len()
}

#[test]
fn prices() {
    let fuel = |step: serde_json::Value, atom: AtomDecl| {
        let options = RunOptions::new().cost_model(agent99::CostModel::Flat);
        let outcome = run_step_with([atom.def()], step, json!({}), options);
        let tenths = Fuel::from_decimal(0.2).unwrap();
        outcome.fuel_used.saturating_sub(tenths).to_f64()
    };
    let priced = |text: &str| fuel(json!({"op": "priced", "text": text}), PRICED);
    assert_eq!(priced("abcd"), 4.0);
    assert_eq!(priced(""), 0.0);
    // An invalid price is replaced by the static default.
    for text in ["panic", "nan", "negative"] {
        assert_eq!(priced(text), 1.0, "{text}");
    }
    assert_eq!(fuel(json!({"op": "perhaps", "n": 3}), PERHAPS), 0.0);
    assert_eq!(fuel(everything_step(), EVERYTHING), 1.0);
    let options = RunOptions::new().fuel(3.0).unwrap();
    let step = json!({"op": "priced", "text": "abcd"});
    let outcome = run_step_with([PRICED.def()], step, json!({}), options);
    assert_eq!(outcome.error.unwrap().code, ErrorCode::OutOfFuel);
}

/// A text of this length.
#[atom(cost = 0)]
fn dots(count: usize) -> String {
    ".".repeat(count)
}

#[test]
fn answers_are_limited_like_those_of_capabilities() {
    let call = |count: usize| run_step([DOTS.def()], json!({"op": "dots", "count": count}));
    assert_eq!(value(&call(1000)), Value::from(".".repeat(1000)));
    let error = call(5 << 20).error.unwrap();
    assert_eq!(error.code, ErrorCode::Boundary);
    let text = error.message.to_string();
    assert!(text.contains("exceeds the 4194304-byte limit"), "{text}");
}
