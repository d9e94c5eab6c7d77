//! What the security tests share: programs written tersely, and what it means
//! that a run stopped as it must.

use agent99::{Capabilities, Engine, ErrorCode, Outcome, RunError, RunOptions, json};
use cpu_time::ThreadTime;
use serde_json::Value as Json;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// One engine for all tests, as a host would have.
pub static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| Arc::new(Engine::new()));

/// A program of these steps.
pub fn seq(steps: Json) -> String {
    json!({"op": "seq", "steps": steps}).to_string()
}

/// A variable.
pub fn id(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

/// A literal.
pub fn lit(value: impl Into<Json>) -> Json {
    json!({"$expr": "literal", "value": value.into()})
}

/// A binary operation.
pub fn bin(op: &str, left: Json, right: Json) -> Json {
    json!({"$expr": "binary", "op": op, "left": left, "right": right})
}

/// A method call.
pub fn call(object: Json, method: &str, arguments: Json) -> Json {
    json!({"$expr": "methodCall", "object": object, "method": method, "arguments": arguments})
}

/// A function call.
pub fn func(callee: &str, arguments: Json) -> Json {
    json!({"$expr": "call", "callee": callee, "arguments": arguments})
}

/// A member.
pub fn member(object: Json, property: &str) -> Json {
    json!({"$expr": "member", "object": object, "property": property})
}

/// A computed member.
pub fn index(object: Json, property: Json) -> Json {
    json!({"$expr": "member", "object": object, "property": property, "computed": true})
}

/// An array.
pub fn list(elements: Json) -> Json {
    json!({"$expr": "array", "elements": elements})
}

/// An object.
pub fn record(members: &[(&str, Json)]) -> Json {
    let properties: Vec<Json> = members
        .iter()
        .map(|(key, value)| json!({"key": key, "value": value}))
        .collect();
    json!({"$expr": "object", "properties": properties})
}

/// `key = value`.
pub fn set(key: &str, value: Json) -> Json {
    json!({"op": "varSet", "key": key, "value": value})
}

/// `return {r: value}`.
pub fn ret(value: Json) -> Json {
    json!({"op": "return", "value": {"r": value}})
}

/// A loop without end.
pub fn forever(body: Json) -> Json {
    json!({"op": "while", "condition": lit(true), "body": body})
}

/// `n` times.
pub fn times(n: u32, body: Json) -> Json {
    let mut steps = vec![json!({"op": "varSet", "key": "i", "value": bin("+", id("i"), lit(1))})];
    steps.extend(body.as_array().cloned().unwrap_or_default());
    json!({"op": "scope", "steps": [
        set("i", lit(0)),
        {"op": "while", "condition": bin("<", id("i"), lit(n)), "body": steps},
    ]})
}

/// Options with a large budget, so that another limit is met first.
pub fn rich() -> RunOptions {
    RunOptions::new()
        .fuel(1e9)
        .expect("a sane budget")
        .timeout_ms(20_000)
}

/// Runs these steps, granted nothing.
pub fn run_with(steps: Json, args: Json, options: RunOptions) -> Outcome {
    let agent = ENGINE.compile(seq(steps)).expect("a program");
    ENGINE.run_sync(&agent, args, options)
}

/// The same with what is granted.
pub fn run_granted(steps: Json, args: Json, options: RunOptions, granted: Capabilities) -> Outcome {
    let agent = ENGINE.compile(seq(steps)).expect("a program");
    ENGINE.run_sync_with(&agent, args, options, granted)
}

/// Runs these steps with the default options.
pub fn run(steps: Json, args: Json) -> Outcome {
    run_with(steps, args, RunOptions::new())
}

/// The value of `ret` in a run that must not fail.
pub fn value(steps: Json, args: Json) -> Json {
    let outcome = run_with(steps, args, rich());
    assert_eq!(outcome.error, None);
    outcome
        .result
        .to_json()
        .get("r")
        .cloned()
        .unwrap_or(Json::Null)
}

/// The error of a run that must fail with this code, at a place of the
/// program, without a word about the host.
pub fn stopped(outcome: &Outcome, code: ErrorCode) -> RunError {
    let error = outcome
        .error
        .clone()
        .unwrap_or_else(|| panic!("{code}: {:?}", outcome.result));
    assert_eq!(error.code, code, "{error:?}");
    let ends_run = matches!(code, ErrorCode::RunTimeout | ErrorCode::Aborted);
    assert!(error.pointer.is_some() || ends_run, "no place: {error:?}");
    let text = error.message.to_string();
    for leak in ["panicked", "/src/", ".rs:", "RUST_BACKTRACE"] {
        assert!(!text.contains(leak), "{text}");
    }
    error
}

/// The error of steps that must fail with this code.
pub fn fails(steps: Json, args: Json, code: ErrorCode) -> RunError {
    stopped(&run_with(steps, args, rich()), code)
}

/// Most wall-clock time for each unit of CPU time that [`within`] allows: other
/// processes may have the processor meanwhile, and some runs wait.
const WALL_FACTOR: u32 = 20;

/// Runs `act` and fails the test if it takes longer: as CPU time of this thread,
/// so that a busy machine changes nothing, and by far as wall-clock time. Debug
/// builds are slow, so limits here are loose.
pub fn within<T>(limit_ms: u64, act: impl FnOnce() -> T) -> T {
    let limit = Duration::from_millis(limit_ms);
    let (started, computed) = (Instant::now(), ThreadTime::now());
    let value = act();
    let (took, computed) = (started.elapsed(), computed.elapsed());
    assert!(
        computed <= limit && took <= limit * WALL_FACTOR,
        "took {took:?}, {computed:?} of them on the processor, not {limit:?}"
    );
    value
}
