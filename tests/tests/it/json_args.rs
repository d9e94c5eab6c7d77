//! Arguments as JSON text: a run with the text ends as a run with the tree that the text
//! stands for, and text that is no JSON ends it before it begins.

use crate::attack::{ENGINE, seq};
use crate::differential::config;
use a99_core::json::{Document, Limits};
use agent99::{
    Agent, Args, Capabilities, ErrorCode, JsonText, Map, Next, Outcome, RunOptions, Value, json,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Texts of each property, a second or two of a debug build.
const CASES: u32 = 3_000;

/// Names of arguments, some of them paths into others.
const NAMES: [&str; 12] = [
    "a",
    "b",
    "a.b",
    "a.b.c",
    "a.0",
    "b.length",
    "c.1.a",
    "é",
    "long name with blanks",
    "length",
    "__proto__",
    "missing",
];

/// What programs do with what they are given.
pub(crate) static AGENTS: LazyLock<Vec<Agent>> = LazyLock::new(|| {
    let import = |names: &[&str]| {
        let keys: Map = (names.iter().enumerate())
            .map(|(at, name)| (format!("v{at}"), Value::from(*name)))
            .collect();
        let members: Map = (0..names.len())
            .map(|at| (format!("v{at}"), Value::from(Map::new())))
            .collect();
        let mut schema = Map::new();
        schema.insert("type", "object");
        schema.insert("properties", members);
        (
            json!({"op": "varsImport", "keys": Value::from(keys).to_json()}),
            json!({"op": "return", "schema": Value::from(schema).to_json()}),
        )
    };
    let (all, all_returned) = import(&NAMES);
    let (few, few_returned) = import(&["a.b", "a"]);
    let (other, other_returned) = import(&["a", "c"]);
    // Both names are one value: a change of it is seen by both.
    let changed = json!({"op": "try", "try": [
        {"op": "memberSet", "object": "v0", "key": "new", "value": 1},
    ], "catch": []});
    [
        json!([all, all_returned]),
        json!([few, changed, few_returned]),
        json!([other, other_returned]),
        json!([{"op": "return", "value": {"none": 1}}]),
    ]
    .into_iter()
    .map(seq)
    // One that has a tree made of the text, and refuses some.
    .chain([json!({
        "op": "seq",
        "inputSchema": {"type": "object", "properties": {"b": {"type": ["number", "object"]}}},
        "steps": [all, all_returned],
    })
    .to_string()])
    .map(|program| ENGINE.compile(program).expect("a program"))
    .collect()
});

pub(crate) fn run(agent: &Agent, args: impl Into<Args>, options: RunOptions) -> (Outcome, usize) {
    let mut run = ENGINE.start(agent, args, options, Capabilities::none());
    let held = run.memory().counted;
    loop {
        match run.next(Duration::ZERO) {
            Next::Pause => {}
            Next::Done(outcome) => return (*outcome, held),
            other => panic!("it asks for nothing: {other:?}"),
        }
    }
}

/// All that is to be the same of two runs.
fn shown((outcome, _): &(Outcome, usize)) -> String {
    let Outcome {
        result,
        error,
        fuel_used,
        warnings,
        ..
    } = outcome;
    let message = error.as_ref().map(|error| error.message.to_string());
    format!("{fuel_used:?} {error:?} {message:?} {warnings:?} {result:?}")
}

/// A value with its text, and the tree that this stands for.
#[derive(Clone, Debug)]
struct Sample {
    text: String,
    tree: Value,
}

impl Sample {
    fn scalar(text: String) -> Sample {
        let document = Document::parse(text.clone(), &Limits::default()).expect("a scalar");
        let tree = document.to_value(document.root());
        Sample { text, tree }
    }
}

fn blank() -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => Just(""), 1 => Just(" "), 1 => Just("\r\n\t "), 1 => Just("  ")]
}

fn string() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z .]{0,4}",
        1 => prop::sample::select(vec![
            "\\n", "\\\"", "\\\\", "\\/", "\\u0041", "\\u0000", "\\ud83d", "\\uDE00",
            "\\ud83d\\ude00", "\\ud800", "\\udfff", "\\u00e9", "\\b\\f\\r\\t", "é", "😀",
            "\u{2028}", "\u{7f}", "\u{fffd}",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(NAMES.to_vec()).prop_map(|name| format!("\"{name}\"")),
        1 => prop::sample::select(NAMES.to_vec()).prop_map(|name| {
            let units: Vec<_> = name.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{}\"", units.concat())
        }),
        1 => Just("\"c\"".to_owned()),
        1 => string(),
    ]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => any::<i32>().prop_map(|n| n.to_string()),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => any::<f64>().prop_filter("JSON", |n| n.is_finite()).prop_map(|n| n.to_string()),
        1 => any::<f64>().prop_filter("JSON", |n| n.is_finite()).prop_map(|n| format!("{n:E}")),
        1 => "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?",
        1 => prop::sample::select(vec!["-0", "0", "1e400", "-1e400", "1e20", "1e21", "1e-7",
            "5e-324", "9007199254740993", "-0.0", "0e0"]).prop_map(str::to_owned),
    ]
}

/// Texts, in which keys may be there twice or not.
fn sample(unique: bool) -> impl Strategy<Value = Sample> {
    let scalar = prop_oneof![
        prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned),
        number(),
        string(),
    ]
    .prop_map(Sample::scalar);
    let value = scalar.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec((blank(), inner.clone(), blank()), 0..6).prop_map(array),
            object(inner, unique),
        ]
    });
    prop_oneof![8 => object(value.clone(), unique), 1 => value]
}

fn array(parts: Vec<(&str, Sample, &str)>) -> Sample {
    let text: Vec<_> = (parts.iter())
        .map(|(before, item, after)| format!("{before}{}{after}", item.text))
        .collect();
    let tree: Vec<Value> = parts.into_iter().map(|(_, item, _)| item.tree).collect();
    Sample {
        text: format!("[{}]", text.join(",")),
        tree: tree.into(),
    }
}

fn object(
    value: impl Strategy<Value = Sample> + Clone,
    unique: bool,
) -> impl Strategy<Value = Sample> {
    let member = (blank(), name(), blank(), value, blank());
    prop::collection::vec(member, 0..8).prop_map(move |members| {
        let mut tree = Map::new();
        let mut text = Vec::new();
        for (one, key, two, value, three) in members {
            let Value::String(name) = Sample::scalar(key.clone()).tree else {
                panic!("a key is a text");
            };
            if unique && tree.get_bytes(name.as_bytes()).is_some() {
                continue;
            }
            text.push(format!("{one}{key}{two}:{three}{}{two}", value.text));
            // Of keys that are there twice the last one counts.
            tree.insert(name, value.tree);
        }
        Sample {
            text: format!("{{{}}}", text.join(",")),
            tree: tree.into(),
        }
    })
}

fn agree(sample: &Sample, options: &RunOptions) -> Result<(), TestCaseError> {
    for agent in &*AGENTS {
        let by_tree = run(agent, sample.tree.clone(), options.clone());
        let texts = [
            JsonText::from(sample.text.as_str()),
            JsonText::from(sample.text.clone().into_bytes()),
        ];
        for text in texts {
            let by_text = run(agent, text, options.clone());
            prop_assert_eq!(shown(&by_text), shown(&by_tree), "{}", sample.text);
        }
    }
    Ok(())
}

/// Bytes of a text changed, put in or taken out.
fn broken() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(b"{}[]\",:\\u/-+.eE0 1tfn\n'#".to_vec()),
        1 => any::<u8>(),
    ];
    let change = (any::<prop::sample::Index>(), 0..3_u8, byte);
    (sample(false), prop::collection::vec(change, 1..4)).prop_map(|(sample, changes)| {
        let mut text = sample.text.into_bytes();
        for (at, kind, byte) in changes {
            let at = at.index(text.len() + 1);
            match kind {
                0 => text.insert(at, byte),
                1 if at < text.len() => text[at] = byte,
                _ => text.truncate(at),
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn text_and_tree_are_the_same_arguments(sample in sample(false)) {
        agree(&sample, &RunOptions::new())?;
    }

    #[test]
    fn text_and_tree_take_the_same_heap(sample in sample(true)) {
        for agent in &*AGENTS {
            let (_, by_tree) = run(agent, sample.tree.clone(), RunOptions::new());
            let text = JsonText::from(sample.text.as_str());
            let (_, by_text) = run(agent, text, RunOptions::new());
            prop_assert_eq!(by_text, by_tree, "{}", sample.text);
        }
    }

    #[test]
    fn sizes_are_limited_alike(sample in sample(false), max_bytes in 0..120_usize) {
        let mut options = RunOptions::new();
        options.limits.boundary.max_bytes = max_bytes;
        agree(&sample, &options)?;
    }

    #[test]
    fn depths_are_limited_alike(sample in sample(false), max_depth in 0..4_u32) {
        let mut options = RunOptions::new();
        options.limits.boundary.max_depth = max_depth;
        agree(&sample, &options)?;
    }

    #[test]
    fn the_limit_that_is_met_first_is_told(
        sample in sample(false),
        max_depth in 1..4_u32,
        max_bytes in 0..60_usize,
    ) {
        let mut options = RunOptions::new();
        options.limits.boundary.max_depth = max_depth;
        options.limits.boundary.max_bytes = max_bytes;
        agree(&sample, &options)?;
    }

    #[test]
    fn text_is_refused_where_it_is_no_json(text in broken()) {
        let marked = text.starts_with(b"\xEF\xBB\xBF");
        let read = Document::parse(text.clone(), &Limits::default());
        let (outcome, _) = run(&AGENTS[0], JsonText::from(text.clone()), RunOptions::new());
        let refused = outcome.error.as_ref().is_some_and(|e| e.code == ErrorCode::ArgsNotJson);
        match read {
            Ok(document) if !marked => {
                let tree = document.to_value(document.root());
                let (by_tree, _) = run(&AGENTS[0], tree, RunOptions::new());
                prop_assert_eq!(outcome.result, by_tree.result);
            }
            Err(found) if found.iter().all(|f| f.code == "json.duplicate_key") => {
                prop_assert!(!refused, "{outcome:?}");
            }
            _ => prop_assert!(refused, "{outcome:?}"),
        }
    }
}

#[test]
fn numbers_that_round_to_more_digits_count_as_they_are_written() {
    let nines = |digits: usize| "9".repeat(digits);
    for number in (15..24).map(nines) {
        let array = format!("[-{number},0.{number},1]");
        let samples = [number.clone(), format!("-{number}"), array];
        for value in samples.map(Sample::scalar) {
            let sample = Sample {
                text: format!("{{\"a\":{}}}", value.text),
                tree: Map::from_iter([("a", value.tree)]).into(),
            };
            let len = sample.text.len();
            for max_bytes in len - 8..len + 2 {
                let mut options = RunOptions::new();
                options.limits.boundary.max_bytes = max_bytes;
                agree(&sample, &options).expect("the same");
            }
        }
    }
}

#[test]
fn every_way_into_a_run_takes_text() {
    let agent = &AGENTS[2];
    let body = r#"{"c": [1, "x"], "a": {"b": -0, "é": "\ud800"}, "unasked": [[]]}"#;
    let options = RunOptions::new;
    let none = Capabilities::none;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let profile = ENGINE.profile(options(), none()).expect("a profile");
    let shared: Arc<[u8]> = Arc::from(body.as_bytes());
    let text = || JsonText::from(body);
    let mut started = profile.start(agent, text());
    let Next::Done(by_start) = started.next(Duration::ZERO) else {
        panic!("it asks for nothing");
    };
    let pool = ENGINE.pool(1 << 30);
    let outcomes = [
        ENGINE.run_sync(agent, JsonText::from(shared), options()),
        ENGINE.run_sync_with(agent, text(), options(), none()),
        runtime.block_on(ENGINE.run(agent, JsonText::from(body.to_owned()), options(), none())),
        profile.run_sync(agent, text()),
        runtime.block_on(profile.run(agent, text())),
        runtime.block_on(pool.run(agent, text(), options(), none())),
        *by_start,
    ];
    for outcome in outcomes {
        assert_eq!(outcome.error, None);
        let shown = outcome.result.to_json_string();
        assert_eq!(shown, r#"{"v0":{"b":0,"é":"\ud800"},"v1":[1,"x"]}"#);
    }
}

#[test]
fn a_schema_is_kept_to() {
    let agent = ENGINE
        .compile(
            json!({
                "op": "seq",
                "inputSchema": {"type": "object", "properties": {"n": {"type": "number"}}},
                "steps": [
                    {"op": "varsImport", "keys": ["n"]},
                    {"op": "return", "schema": {"type": "object", "properties": {"n": {}}}},
                ],
            })
            .to_string(),
        )
        .expect("a program");
    let run = |text: &str| ENGINE.run_sync(&agent, JsonText::from(text), RunOptions::new());
    assert_eq!(
        run(r#"{"n": 1.5, "m": []}"#).result.to_json(),
        json!({"n": 1.5})
    );
    let tree = ENGINE.run_sync(&agent, json!({"n": "x"}), RunOptions::new());
    let text = run(r#"{"n": "x"}"#);
    assert_eq!(
        tree.error.as_ref().map(|e| e.code),
        Some(ErrorCode::ArgsInvalid)
    );
    assert_eq!(text, tree);
    // The last one counts here, too.
    let repeated =
        run(r#"{"n": "x", "m": {"deep": [[[]], "\u00e9\ud800", -0.5e3, true, {}]}, "n": 2}"#);
    assert_eq!(repeated.result.to_json(), json!({"n": 2}));
    // What is made of the text is not counted, as other trees are not.
    let large = format!("{{\"n\": 3, \"m\": \"\\n{}\"}}", "x".repeat(1 << 20));
    let options = RunOptions::new().heap_bytes(64 << 10);
    let outcome = ENGINE.run_sync(&agent, JsonText::from(large), options);
    assert_eq!(outcome.result.to_json(), json!({"n": 3}));
    let error = run(r#"{"n": 1"#).error.expect("refused");
    assert_eq!(error.code, ErrorCode::ArgsNotJson);
}

#[test]
fn a_suspended_run_has_its_arguments() {
    let agent = ENGINE
        .compile(seq(json!([
            {"op": "varsImport", "keys": ["a", "b"]},
            {"op": "httpFetch", "url": "https://example.com", "result": "page"},
            {"op": "return", "schema": {"type": "object", "properties": {
                "a": {}, "b": {}, "page": {}}}},
        ])))
        .expect("a program");
    let body = r#"{"a": {"text": "plain", "other": "\u00e9"}, "b": [1, 2.5, null]}"#.to_owned();
    let none = Capabilities::none;
    let mut run = ENGINE.start(&agent, JsonText::from(body), RunOptions::new(), none());
    let Next::Call(call) = run.next(Duration::ZERO) else {
        panic!("it fetches");
    };
    let bytes = run.snapshot().expect("a snapshot");
    let mut run = ENGINE
        .restore(&agent, &bytes, RunOptions::new(), none())
        .expect("the run");
    run.answer(&call.id, Ok(Value::from("hi").into()))
        .expect("it waits");
    let Next::Done(outcome) = run.next(Duration::ZERO) else {
        panic!("it ends");
    };
    let expected = json!({"a": {"text": "plain", "other": "é"}, "b": [1, 2.5, null], "page": "hi"});
    assert_eq!(outcome.result.to_json(), expected);
}
