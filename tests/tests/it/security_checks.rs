//! Work inside single instructions that no size of an operand shows: schemas
//! that are checked, patterns that are compiled, texts that are compared.

use crate::attack::{
    ENGINE, bin, call, forever, func, id, index, list, lit, ret, rich, run_with, seq, set, stopped,
    within,
};
use agent99::{AbortSignal, Agent, CostModel, ErrorCode, Outcome, RunOptions, json};
use serde_json::Value as Json;
use std::time::Duration;

/// Slack over a limit: debug builds on busy machines.
const SLACK_MS: u64 = 400;

/// An `enum` of so many names.
fn names(n: usize) -> Json {
    json!({"enum": (0..n).map(|i| format!("name {i}")).collect::<Vec<_>>()})
}

/// Lists of lists of a text that is the last of the names.
fn leaves(n: usize) -> Json {
    json!(vec![vec![format!("name {}", n - 1); 97]; 97])
}

fn lists(of: Json) -> Json {
    json!({"type": "array", "items": {"type": "array", "items": of}})
}

/// Many patterns, none of which matches, and each of which takes a while to
/// compile.
fn patterns(n: usize) -> Json {
    let each = |i| json!({"pattern": format!("(?:\\s{{1,50}}|\\W{{1,50}}){{9}}q{i}$")});
    json!({"anyOf": (0..n).map(each).collect::<Vec<_>>()})
}

fn compiled(root: Json) -> Agent {
    ENGINE.compile(root.to_string()).expect("a program")
}

/// A program whose arguments must match.
fn with_input(schema: Json) -> Agent {
    compiled(json!({"op": "seq", "inputSchema": schema, "steps": [{"op": "return", "value": {}}]}))
}

/// Where schemas meet data of the program, and what they do with the same.
fn places(schema: &Json, data: &Json) -> Vec<(&'static str, Agent, Json)> {
    let args = json!({"data": data, "schema": schema});
    let input = json!({"type": "object", "properties": {"data": schema}, "required": ["data"]});
    let imported = json!({"op": "varsImport", "keys": ["data", "schema"]});
    let call = |expr: Json| {
        compiled(json!({"op": "seq", "steps": [imported, set("x", expr), ret(id("x"))]}))
    };
    vec![
        ("inputSchema", with_input(input.clone()), args.clone()),
        (
            "return",
            compiled(json!({"op": "seq", "steps": [imported, {"op": "return", "schema": input}]})),
            args.clone(),
        ),
        (
            "filter",
            call(func("filter", json!([id("data"), id("schema")]))),
            args.clone(),
        ),
        (
            "isValid",
            call(crate::attack::call(
                id("Schema"),
                "isValid",
                json!([id("data"), id("schema")]),
            )),
            args,
        ),
    ]
}

fn fuel(outcome: &Outcome) -> f64 {
    assert_eq!(outcome.error, None);
    outcome.fuel_used.to_f64()
}

/// Every leaf is paid, and costs the same whether two names are allowed or
/// thousands.
#[test]
fn a3_checks_are_paid_by_what_they_meet() {
    let spent = |n: usize, rows: usize| -> Vec<f64> {
        let mut data = leaves(n);
        data.as_array_mut().expect("a list").truncate(rows);
        let schema = lists(names(n));
        let mut spent = Vec::new();
        for (place, agent, args) in places(&schema, &data) {
            let outcome = ENGINE.run_sync(&agent, args, rich());
            assert_eq!(outcome.error, None, "{place}");
            spent.push(fuel(&outcome));
        }
        spent
    };
    let (few, many) = (spent(2_000, 10), spent(2_000, 97));
    for (few, many) in few.iter().zip(&many) {
        // 87 rows of 97 leaves, each of nine units and met once.
        let leaves = 87.0 * 97.0 * (0.005 + 0.0009);
        assert!(many - few >= leaves, "{few} {many}");
    }
    // A list a hundred times as long costs little more: its names are longer.
    let (short, long) = (spent(20, 97), spent(2_000, 97));
    for at in [0, 1] {
        assert!(long[at] < 1.2 * short[at], "{} {}", long[at], short[at]);
    }
}

/// The checks stop for fuel, in the arguments too.
#[test]
fn a3_checks_stop_for_fuel() {
    let (schema, data) = (lists(names(50)), leaves(50));
    for (place, agent, args) in places(&schema, &data) {
        let options = RunOptions::new().fuel(20.0).expect("a budget");
        let outcome = ENGINE.run_sync(&agent, args, options);
        let error = outcome.error.expect(place);
        assert_eq!(error.code, ErrorCode::OutOfFuel, "{place} {error:?}");
    }
}

/// The checks stop for a deadline and for an abort, in both models.
#[test]
fn a3_checks_stop_in_time() {
    let (schema, data) = (lists(patterns(10_000)), json!(vec![vec!["w"; 97]; 97]));
    for (place, agent, args) in places(&schema, &data) {
        for model in [CostModel::Metered, CostModel::Flat] {
            let outcome = within(60 + SLACK_MS, || {
                let options = rich().cost_model(model).timeout_ms(60);
                ENGINE.run_sync(&agent, args.clone(), options)
            });
            let error = outcome.error.expect(place);
            assert_eq!(error.code, ErrorCode::RunTimeout, "{place} {error:?}");
        }
        let signal = AbortSignal::new();
        let outcome = std::thread::scope(|scope| {
            let stop = signal.clone();
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(60));
                stop.abort();
            });
            within(120 + SLACK_MS, || {
                ENGINE.run_sync(&agent, args.clone(), rich().signal(signal.clone()))
            })
        });
        let error = outcome.error.expect(place);
        assert_eq!(error.code, ErrorCode::Aborted, "{place} {error:?}");
    }
}

/// A schema of the program's making counts against the heap before it is
/// there, and many names of it are no quadratic work.
#[test]
fn a3_schemas_count_against_the_heap() {
    let parts: Vec<Json> = (0..40_000)
        .map(|i| json!({"minLength": i, "items": {}}))
        .collect();
    let steps = json!([
        {"op": "varsImport", "keys": ["schema"]},
        set("x", call(id("Schema"), "isValid", json!([lit(1), id("schema")]))),
    ]);
    let args = json!({"schema": {"anyOf": parts}});
    let small = rich().heap_bytes(12 << 20);
    let outcome = run_with(steps.clone(), args.clone(), small);
    stopped(&outcome, ErrorCode::HeapLimit);
    assert_eq!(run_with(steps, args, rich()).error, None);
}

/// Patterns cost what compiling them takes, each time, and in schemas too.
#[test]
fn a6_patterns_are_paid_by_their_size() {
    let step = |pattern: &str| json!([{"op": "regexMatch", "pattern": pattern, "value": "w", "result": "x"}]);
    let spent = |pattern: &str| fuel(&run_with(step(pattern), json!({}), rich()));
    let small = spent("a");
    let large = spent("(?:\\s{1,50}|\\W{1,50}){9}qN");
    // 918 positions.
    assert!(large - small > 900.0 * 0.002, "{small} {large}");
    assert_eq!(large, spent("(?:\\s{1,50}|\\W{1,50}){9}qN"));
    let check = with_input(patterns(50));
    let outcome = ENGINE.run_sync(&check, json!("w"), rich());
    let used = outcome.fuel_used.to_f64();
    assert!(
        outcome.error.is_some() && used > 50.0 * 900.0 * 0.002,
        "{used}"
    );
}

/// Compiling and matching stop in time, in both models.
#[test]
fn a6_patterns_stop_in_time() {
    let many: Vec<Json> = (0..60)
        .map(|i| {
            let pattern = format!("(?:\\s{{1,50}}|\\W{{1,50}}){{9}}q{i}");
            json!({"op": "regexMatch", "pattern": pattern, "value": "w", "result": "x"})
        })
        .collect();
    let long = json!([
        set("text", call(lit("a"), "repeat", json!([lit(50_000)]))),
        {"op": "regexMatch", "pattern": "(?:a?){999}b", "value": "text", "result": "x"},
    ]);
    for steps in [json!(many), long] {
        let agent = ENGINE
            .compile(seq(json!([forever(steps)])))
            .expect("a program");
        for model in [CostModel::Metered, CostModel::Flat] {
            let options = rich().cost_model(model).timeout_ms(60);
            let outcome = within(60 + SLACK_MS, || {
                ENGINE.run_sync(&agent, json!({}), options)
            });
            stopped(&outcome, ErrorCode::RunTimeout);
        }
    }
}

/// Long texts are paid where they are read: compared, looked up, sorted, found
/// and put into sets.
#[test]
fn a7_long_texts_are_paid_where_they_are_read() {
    const UNITS: u32 = 400_000;
    let texts = json!([
        set("a", call(lit("x"), "repeat", json!([lit(UNITS)]))),
        set(
            "b",
            bin(
                "+",
                call(lit("x"), "repeat", json!([lit(UNITS - 1)])),
                lit("x")
            )
        ),
        set(
            "o",
            call(
                id("Object"),
                "fromEntries",
                json!([list(json!([list(json!([id("a"), lit(1)]))]))])
            )
        ),
        set("l", list(json!([id("a"), id("b"), id("a"), id("b")]))),
    ]);
    let spent = |step: Option<Json>| {
        let mut steps = texts.as_array().expect("steps").clone();
        steps.extend(step);
        fuel(&run_with(json!(steps), json!({}), rich()))
    };
    let before = spent(None);
    let sixteenth = f64::from(UNITS) / 16.0 * 0.0001;
    let steps = [
        ("==", set("r", bin("==", id("a"), id("b"))), sixteenth),
        ("===", set("r", bin("===", id("a"), id("b"))), sixteenth),
        ("<", set("r", bin("<", id("a"), id("b"))), sixteenth),
        (
            "eq",
            json!({"op": "eq", "a": id("a"), "b": id("b"), "result": "r"}),
            sixteenth,
        ),
        (
            "lt",
            json!({"op": "lt", "a": id("a"), "b": id("b"), "result": "r"}),
            sixteenth,
        ),
        ("o[k]", set("r", index(id("o"), id("b"))), 4.0 * sixteenth),
        (
            "hasOwn",
            set("r", call(id("Object"), "hasOwn", json!([id("o"), id("b")]))),
            4.0 * sixteenth,
        ),
        (
            "hasOwnProperty",
            set("r", call(id("o"), "hasOwnProperty", json!([id("b")]))),
            4.0 * sixteenth,
        ),
        (
            "pick",
            json!({"op": "pick", "obj": id("o"), "keys": id("l"), "result": "r"}),
            16.0 * sixteenth,
        ),
        (
            "omit",
            json!({"op": "omit", "obj": id("o"), "keys": id("l"), "result": "r"}),
            16.0 * sixteenth,
        ),
        (
            "includes",
            set("r", call(id("l"), "includes", json!([id("b")]))),
            16.0 * sixteenth,
        ),
        (
            "indexOf",
            set("r", call(id("l"), "indexOf", json!([id("b")]))),
            16.0 * sixteenth,
        ),
        (
            "sort",
            set("r", call(id("l"), "toSorted", json!([]))),
            8.0 * sixteenth,
        ),
        (
            "Set",
            set("r", func("Set", json!([id("l")]))),
            16.0 * sixteenth,
        ),
        (
            "localeCompare",
            set(
                "r",
                call(
                    id("a"),
                    "localeCompare",
                    json!([bin("+", id("b"), lit("y"))]),
                ),
            ),
            16.0 * 10.0 * sixteenth,
        ),
    ];
    for (what, step, least) in steps {
        let used = spent(Some(step)) - before;
        assert!(used >= 0.99 * least, "{what}: {used} of {least}");
    }
}
