//! Compile-time warnings about literals that a function's types cannot accept.

use agent99::{AtomSet, AtomSets, Diagnostic, Engine, RunOptions, atom, json};
use schemars::JsonSchema;
use serde::Deserialize;

/// A line of an order.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Line {
    sku: String,
    quantity: u8,
}

#[derive(Clone, Debug, JsonSchema)]
struct Fussy;

impl<'de> Deserialize<'de> for Fussy {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Fussy, D::Error> {
        panic!("a fault of the host")
    }
}

/// Orders.
#[atom(cost = 1)]
fn order(
    lines: Vec<Line>,
    #[atom(default = 1)] times: u8,
    note: Option<String>,
    text: &str,
) -> usize {
    let quantity = |line: &Line| line.sku.len() + usize::from(line.quantity);
    let units: usize = lines.iter().map(quantity).sum();
    units * usize::from(times) + note.map_or(0, |note| note.len()) + text.len()
}

/// Cannot be read.
#[atom(cost = 1)]
fn fuss(it: Fussy) -> bool {
    matches!(it, Fussy)
}

fn engine(lint: bool) -> Engine {
    let atoms = AtomSet::core().with(ORDER).with(FUSS);
    Engine::builder().atoms(atoms).lint(lint).build()
}

/// Pointer, message and excerpt of the findings about such literals.
fn found(engine: &Engine, program: &serde_json::Value) -> Vec<[String; 3]> {
    let agent = engine.compile(program.to_string()).expect("it compiles");
    let of = |d: &Diagnostic| [d.pointer.clone(), d.message.clone(), d.offending.clone()];
    let wrong = |d: &&Diagnostic| d.code == "lint.wrong_literal";
    agent.warnings().iter().filter(wrong).map(of).collect()
}

fn with(step: serde_json::Value) -> serde_json::Value {
    json!({"op": "seq", "steps": [
        {"op": "varSet", "key": "known", "value": 5}, step,
        {"op": "return", "value": {"done": true}},
    ]})
}

#[test]
fn literals_that_no_run_could_read() {
    let good = json!({"op": "order", "lines": [], "text": "t", "result": "n"});
    for (key, literal, pointer, message, offending) in [
        (
            "lines",
            json!([{"sku": "a", "quantity": 1}, {"sku": "b", "quantity": 256}]),
            "/steps/1/lines/1/quantity",
            "`lines` of `order` cannot be this: expected u8, found the number 256",
            "256",
        ),
        (
            "lines",
            json!([{"quantity": 1}]),
            "/steps/1/lines/0",
            "`lines` of `order` cannot be this: /sku: expected a value, found undefined",
            r#"{"quantity":1}"#,
        ),
        (
            "times",
            json!(-1),
            "/steps/1/times",
            "`times` of `order` cannot be this: expected u8, found the number -1",
            "-1",
        ),
        (
            "text",
            json!(null),
            "/steps/1/text",
            "`text` of `order` cannot be this: expected a string, found null",
            "null",
        ),
        (
            "times",
            json!("three"),
            "/steps/1/times",
            "`times` of `order` cannot be this: expected u8, found the string \"three\"",
            "\"three\"",
        ),
    ] {
        let mut step = good.clone();
        step[key] = literal;
        let mut program = with(step);
        for lint in [false, true] {
            let engine = engine(lint);
            let all = found(&engine, &program);
            assert_eq!(all, [[pointer, message, offending].map(str::to_owned)]);
            let agent = engine.compile(program.to_string()).expect("it compiles");
            // One finding per fault, from any check.
            let warnings = agent.warnings().iter();
            let told = warnings.filter(|found| found.code == "lint.wrong_literal");
            assert_eq!(told.count(), 1, "{:?}", agent.warnings());
            let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
            assert!(outcome.error.is_some(), "the run fails as it was said to");
        }
        program["allow"] = json!(["lint.wrong_literal"]);
        assert!(found(&engine(false), &program).is_empty());
    }
}

#[test]
fn nothing_else_is_told() {
    let (first, second) = (
        json!({"sku": "a", "quantity": 1}),
        json!({"$kind": "arg", "path": "q"}),
    );
    for step in [
        json!({"op": "order", "lines": [first], "text": "t", "times": 3, "note": null}),
        json!({"op": "order", "lines": [], "text": "t", "times": null, "note": "n"}),
        // Their values are known only at run time.
        json!({"op": "order", "lines": "args.lines", "text": second, "times": "known"}),
        json!({"op": "order", "lines": [], "text": "known",
               "times": {"$expr": "literal", "value": -1}}),
        // A panic of the type is ignored.
        json!({"op": "fuss", "it": 5}),
    ] {
        for lint in [false, true] {
            let all = found(&engine(lint), &with(step.clone()));
            assert!(all.is_empty(), "{all:?}");
        }
    }
}
