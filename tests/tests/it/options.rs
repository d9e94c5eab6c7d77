//! Threat F11, and what is wrong with the arguments of a run.

use crate::attack::{ENGINE, ret, seq};
use agent99::{AtomTimeout, ErrorCode, Map, Outcome, RunOptions, Value, json};
use std::sync::Arc;

fn run(args: serde_json::Value, options: RunOptions) -> Outcome {
    let agent = ENGINE
        .compile(seq(json!([ret(json!(1))])))
        .expect("a program");
    ENGINE.run_sync(&agent, args, options)
}

#[test]
fn a_run_that_is_refused_holds_nothing_of_the_one_before() {
    let agent = ENGINE
        .compile(seq(json!([
            {"op": "varsImport", "keys": ["a"]},
            ret(json!(1)),
        ])))
        .expect("a program");
    let none = agent99::Capabilities::none;
    ENGINE.run_sync(&agent, json!({"a": "x".repeat(1000)}), RunOptions::new());
    let options = RunOptions::new().quota("htpFetch", 1).heap_bytes(1 << 20);
    let memory = ENGINE.start(&agent, json!({}), options, none()).memory();
    assert_eq!((memory.counted, memory.limit), (0, 1 << 20));
}

#[test]
fn f11_an_option_for_an_op_that_is_not_there_ends_the_run() {
    let options = [
        RunOptions::new().quota("htpFetch", 1),
        RunOptions::new().cost("HttpFetch", 1.0).unwrap(),
        RunOptions::new().cost_fn("httpFetc", |_, _| 1.0),
        RunOptions::new().atom_timeout("httpfetch", AtomTimeout::None),
    ];
    for options in options {
        let outcome = run(json!({}), options.clone());
        let error = outcome.error.expect("refused");
        assert_eq!(error.code, ErrorCode::UnknownOp, "{error}");
        assert_eq!(error.help.as_deref(), Some("did you mean `httpFetch`?"));
        assert_eq!(outcome.fuel_used.to_f64(), 0.0);
        // The same where runs wait for their turn.
        let agent = ENGINE.compile(seq(json!([ret(json!(1))]))).unwrap();
        let pool = Arc::new(agent99::Engine::new()).pool(1 << 30);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let none = agent99::Capabilities::none();
        let ran = runtime
            .unwrap()
            .block_on(pool.run(&agent, json!({}), options, none));
        assert_eq!(ran.error.map(|e| e.code), Some(ErrorCode::UnknownOp));
    }
    // Names of the engine's own are none that an option could mean.
    let far = run(json!({}), RunOptions::new().quota("nothing like it", 1));
    assert!(far.error.is_some_and(|e| e.code == ErrorCode::UnknownOp));
    let known = run(json!({}), RunOptions::new().quota("httpFetch", 0));
    assert_eq!(known.error, None);
}

#[test]
fn arguments_that_the_schema_refuses_are_told_by_place() {
    let program = json!({
        "op": "seq",
        "inputSchema": {"type": "object", "properties": {
            "rows": {"type": "array", "items": {"type": "object", "properties": {
                "n": {"type": "number", "minimum": 2}}, "required": ["n"]}}}},
        "steps": [],
    });
    let agent = ENGINE.compile(program.to_string()).unwrap();
    for (args, told) in [
        (
            json!({"rows": [{"n": 2}, {"n": "x\u{202e}"}]}),
            "`/rows/1/n`: expected number, found the string \"x\\u{202e}\"",
        ),
        (
            json!({"rows": [{"n": 1}]}),
            "`/rows/0/n`: expected a number of at least 2, found the number 1",
        ),
        (
            json!({"rows": [{}]}),
            "`/rows/0`: expected the member `n`, found none",
        ),
        (
            json!([]),
            "the arguments: expected object, found an empty array",
        ),
    ] {
        let outcome = ENGINE.run_sync(&agent, args, RunOptions::new());
        let error = outcome.error.expect("refused");
        assert_eq!(error.code, ErrorCode::ArgsInvalid);
        let pinned = "Input validation failed: args do not match expected schema";
        assert_eq!(error.message.to_string(), pinned);
        assert_eq!(error.help.as_deref(), Some(told));
    }
    // However long what was given is, the help is short.
    let mut args = Map::new();
    args.insert("rows", "x".repeat(1 << 20));
    let outcome = ENGINE.run_sync(&agent, Value::Object(args), RunOptions::new());
    let help = outcome.error.and_then(|error| error.help).expect("help");
    assert!(help.len() < 200, "{help}");
}
