//! Heaps that are compacted between any two steps: programs that set, delete and read members
//! by names that they compute, and fill templates, end under every ceiling as they do under a
//! large one, and as on the oracle.

use crate::attack::{ENGINE, bin, call, id, index, list, lit, member, record, set};
use crate::differential::config;
use a99_testkit::differential::difference_of;
use agent99::{Agent, CostModel, ErrorCode, Outcome, RunError, RunOptions, Value, json};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::Value as Json;

/// Programs of the short form, some seconds of a debug build.
const CASES: u32 = 150;

/// Ceilings of each program.
const CEILINGS: usize = 24;

/// More than any of these programs needs.
const LARGE: usize = 16 << 20;

/// Objects that programs change, two of which are the same at first.
const OBJECTS: [&str; 4] = ["o", "p", "q", "n"];

/// Names of members, some of which no constant of the program is.
const NAMES: [&str; 8] = ["k0", "k1", "k2", "k3", "7", "length", "é", "constructor"];

/// Texts with holes, many of the same name.
const TEMPLATES: [&str; 6] = [
    "{{k0}}{{k1}}",
    "é{{k1}}漢{{k1}}{{constructor}}",
    "{{{k2}}} {{é}} {{length}}{{7}}",
    "{{k12}}{{toString}}{{k3}}",
    "plain",
    "{{k0}}{{k1}}{{k2}}{{k3}}",
];

fn object() -> impl Strategy<Value = Json> {
    prop::sample::select(OBJECTS.to_vec()).prop_map(id)
}

/// A name: one of a list, a constant, one that is joined of parts, or a long one.
fn name() -> impl Strategy<Value = Json> {
    prop_oneof![
        (0..NAMES.len()).prop_map(|at| index(id("names"), lit(at))),
        prop::sample::select(NAMES.to_vec()).prop_map(lit),
        (0..24).prop_map(|n| bin("+", lit("k"), lit(n))),
        Just(bin("+", lit("k"), id("i"))),
        Just(id("i")),
        Just(id("long")),
        (1..4).prop_map(|n| call(
            id("long"),
            "slice",
            json!([lit(0), bin("-", lit(n), lit(5))])
        )),
    ]
}

fn value() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(id("i")),
        any::<i8>().prop_map(lit),
        Just(lit("text")),
        Just(bin("+", lit("é"), id("i"))),
        (object(), name()).prop_map(|(object, name)| index(object, name)),
        Just(list(json!([id("i")]))),
        Just(lit(Json::Null)),
    ]
}

fn push(value: Json) -> Json {
    json!({"op": "push", "list": id("seen"), "item": value})
}

/// Both a constant and the same text computed.
fn template(text: &str, vars: &Json) -> Json {
    let (head, tail) = text.split_at(2.min(text.len()) * usize::from(text.is_char_boundary(2)));
    json!([
        {"op": "template", "tmpl": lit(text), "vars": vars, "result": "t"},
        push(id("t")),
        {"op": "template", "tmpl": bin("+", bin("+", lit(head), id("empty")), lit(tail)),
            "vars": vars, "result": "u"},
        push(bin("===", id("t"), id("u"))),
    ])
}

/// A program of its own, whose constants lie where others of this one do.
fn nested(text: &str) -> Json {
    let body = json!([
        {"op": "varsImport", "keys": ["k0", "o", "name"]},
        {"op": "memberSet", "object": id("o"), "key": id("name"), "value": id("k0")},
        {"op": "template", "tmpl": lit(text), "vars": id("o"), "result": "t"},
        {"op": "return", "value": {"t": id("t"), "k1": member(id("o"), "k1"),
            "named": index(id("o"), id("name"))}},
    ]);
    json!([
        {"op": "agentRun", "agentId": {"op": "seq", "steps": body},
            "input": {"k0": id("i"), "o": id("o"), "name": bin("+", lit("k"), id("i"))},
            "result": "x"},
        push(id("x")),
    ])
}

/// Steps, as a list.
fn step() -> impl Strategy<Value = Json> {
    let fields = prop::sample::subsequence(NAMES[..4].to_vec(), 0..4).prop_shuffle();
    prop_oneof![
        8 => (object(), name(), value()).prop_map(|(object, key, value)| {
            json!([{"op": "memberSet", "object": object, "key": key, "value": value}])
        }),
        4 => (object(), name()).prop_map(|(object, key)| {
            json!([{"op": "memberDelete", "object": object, "key": key}])
        }),
        6 => (object(), name()).prop_map(|(object, key)| json!([push(index(object, key))])),
        4 => (object(), prop::sample::select(NAMES[..4].to_vec()))
            .prop_map(|(object, key)| json!([push(member(object, key))])),
        3 => (prop::sample::select(TEMPLATES.to_vec()), object())
            .prop_map(|(text, object)| template(text, &object)),
        2 => (prop::sample::select(OBJECTS.to_vec()), fields, value()).prop_map(
            |(object, fields, value)| {
                let members: Vec<_> = fields.iter().map(|key| (*key, value.clone())).collect();
                json!([set(object, record(&members))])
            }
        ),
        2 => (prop::sample::select(OBJECTS.to_vec()), object(), object()).prop_map(|(to, a, b)| {
            json!([{"op": "merge", "a": a, "b": b, "result": to}])
        }),
        1 => (prop::sample::select(OBJECTS.to_vec()), object())
            .prop_map(|(to, from)| json!([set(to, from)])),
        1 => (prop::sample::select(OBJECTS.to_vec()), object()).prop_map(|(to, from)| json!([
            {"op": "jsonStringify", "value": from, "result": "t"},
            {"op": "jsonParse", "str": id("t"), "result": to},
        ])),
        2 => object().prop_map(|object| json!([
            {"op": "keys", "obj": object, "result": "t"}, push(id("t")),
        ])),
        1 => Just(json!([set("long", bin("+", id("long"), lit("x")))])),
        1 => Just(json!([set("long", bin("+", lit("yy"), id("long")))])),
        1 => Just(json!([set("seen", list(json!([])))])),
        1 => prop::sample::select(TEMPLATES.to_vec()).prop_map(nested),
    ]
}

/// A program that does its steps again and again.
fn program() -> impl Strategy<Value = String> {
    (prop::collection::vec(step(), 1..24), 1..40).prop_map(|(steps, turns)| {
        let names: Vec<_> = NAMES
            .iter()
            .map(|name| bin("+", lit(*name), id("empty")))
            .collect();
        let start = record(&[("k1", lit(1)), ("k0", lit("zero"))]);
        let mut body: Vec<Json> = (steps.iter())
            .flat_map(|steps| steps.as_array().expect("a list").clone())
            .collect();
        body.push(set("i", bin("+", id("i"), lit(1))));
        let mut first = vec![
            set("empty", lit("")),
            set("i", lit(0)),
            set("x", lit(Json::Null)),
            set("t", lit("")),
            set("u", lit("")),
            set("names", list(names.into())),
            set("long", call(lit("long name "), "repeat", json!([lit(30)]))),
            set("seen", list(json!([]))),
            set("o", start.clone()),
            set("p", id("o")),
            set("q", record(&[])),
            set("n", start),
            json!({"op": "while", "condition": bin("<", id("i"), lit(turns)), "body": body}),
        ];
        let all = ["seen", "o", "p", "q", "n"].map(|name| (name, id(name)));
        first.push(json!({"op": "return", "value": {"r": record(&all)}}));
        json!({"op": "seq", "steps": first}).to_string()
    })
}

fn run(agent: &Agent, ceiling: usize, model: CostModel) -> Outcome {
    let options = RunOptions::new().cost_model(model).heap_bytes(ceiling);
    ENGINE.run_sync(agent, json!({}), options)
}

fn is_full(outcome: &Outcome) -> bool {
    // A program that a program runs is compiled in what is left under the ceiling.
    let is_full = |e: &RunError| e.message.to_string().starts_with("program too large");
    let error = outcome.error.as_ref();
    error.is_some_and(|e| e.code == ErrorCode::HeapLimit || is_full(e))
}

/// The lowest ceilings under which a run may end, and some that are higher.
fn ceilings(agent: &Agent, model: CostModel) -> Vec<usize> {
    let (mut low, mut high) = (0, LARGE);
    while high - low > 16 {
        let middle = low.midpoint(high);
        match is_full(&run(agent, middle, model)) {
            true => low = middle,
            false => high = middle,
        }
    }
    (0..CEILINGS).map(|n| high + n * (16 + n * n)).collect()
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn ceilings_do_not_matter(program in program(), metered in any::<bool>()) {
        let model = if metered { CostModel::Metered } else { CostModel::Flat };
        let agent = ENGINE.compile(program.as_str()).expect("a program");
        let large = run(&agent, LARGE, model);
        prop_assert!(!is_full(&large), "{large:?}");
        for ceiling in ceilings(&agent, model) {
            let small = run(&agent, ceiling, model);
            if is_full(&small) {
                continue;
            }
            prop_assert_eq!(&small.error, &large.error, "{} {}", ceiling, program);
            prop_assert_eq!(&small.result, &large.result, "{} {}", ceiling, program);
            // Compacting is paid for in the metered model.
            prop_assert!(small.fuel_used >= large.fuel_used, "{} {}", ceiling, program);
            if !metered {
                prop_assert_eq!(small.fuel_used, large.fuel_used, "{} {}", ceiling, program);
            }
        }
    }

    #[test]
    fn the_oracle_agrees(program in program()) {
        agree(&program)?;
    }
}

fn agree(program: &str) -> Result<(), TestCaseError> {
    let ast: Json = serde_json::from_str(program).expect("JSON");
    let case = json!({"id": "compacted", "title": "compacted", "generation": "v3",
        "requires": ["metered", "v3"], "ast": ast, "args": {}, "options": {"fuel": 1_000_000},
        "expect": {}});
    match difference_of(&Value::from(case)) {
        Some(why) => Err(TestCaseError::fail(format!("{why}\n{program}"))),
        None => Ok(()),
    }
}
