//! Host state, a trace during a run, and JSON forms.

use crate::{run_step_with, value};
use agent99::capabilities::{MemoryStore, Store};
use agent99::{
    AtomCx, AtomError, AtomSet, AtomSets, Capabilities, Engine, ErrorCode, Outcome, RunOptions,
    TraceEvent, Value, atom, json,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// State of the host.
struct Ledger {
    owner: &'static str,
    entries: AtomicUsize,
}

impl Ledger {
    fn of(owner: &'static str) -> Arc<Ledger> {
        let entries = AtomicUsize::new(0);
        Arc::new(Ledger { owner, entries })
    }
}

trait Greets: Send + Sync {
    fn greet(&self, name: &str) -> String;
}

struct Politely;

impl Greets for Politely {
    fn greet(&self, name: &str) -> String {
        format!("Good day, {name}")
    }
}

/// Books an entry.
#[atom(cost = 1)]
fn book(cx: &AtomCx) -> Result<String, AtomError> {
    let ledger = cx.host::<Ledger>()?;
    let n = ledger.entries.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(format!("{} {n}", ledger.owner))
}

/// Greets by whatever the host has for it, waiting.
#[atom(cost = 1)]
async fn greet(cx: &AtomCx, name: &str) -> Result<String, AtomError> {
    let greets = cx.host::<dyn Greets>()?;
    Ok(greets.greet(name))
}

fn engine() -> agent99::EngineBuilder {
    Engine::builder().atoms(AtomSet::core().with(BOOK).with(GREET))
}

const BOOKS: &str = r#"{"op": "seq", "steps": [
    {"op": "book", "result": "it"},
    {"op": "return", "schema": {"type": "object", "properties": {"it": {}}}}]}"#;

#[test]
fn atoms_share_state_of_the_host() {
    let ours = Ledger::of("engine");
    let engine = engine().host(ours.clone()).build();
    let agent = engine.compile(BOOKS).unwrap();
    let it = |options: RunOptions| value(&engine.run_sync(&agent, json!({}), options)).to_json();
    assert_eq!(it(RunOptions::new()), "engine 1");
    assert_eq!(it(RunOptions::new()), "engine 2");
    // A run's value takes precedence, for that run only.
    assert_eq!(it(RunOptions::new().host(Ledger::of("run"))), "run 1");
    assert_eq!(it(RunOptions::new().host(Arc::new(5_u8))), "engine 3");
    assert_eq!(ours.entries.load(Ordering::Relaxed), 3);
    // Runs of a pool also have the engine's values.
    let pool = engine.pool(1 << 30);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let run = pool.run(&agent, json!({}), RunOptions::new(), Capabilities::none());
    assert_eq!(value(&runtime.block_on(run)).to_json(), "engine 4");
}

#[test]
fn state_may_be_a_trait() {
    let options = RunOptions::new().host::<dyn Greets>(Arc::new(Politely));
    let step = json!({"op": "greet", "name": "Ada"});
    let outcome = run_step_with([GREET.def()], step, json!({}), options);
    assert_eq!(value(&outcome).to_json(), "Good day, Ada");
}

#[test]
fn state_that_is_missing_is_named_to_people() {
    let engine = engine().build();
    let agent = engine.compile(BOOKS).unwrap();
    let error = engine
        .run_sync(&agent, json!({}), RunOptions::new())
        .error
        .expect("there is no ledger");
    assert_eq!(error.code, ErrorCode::Capability);
    assert_eq!(
        error.message.to_string(),
        "Atom 'book' needs state that its host did not give"
    );
    let help = error.help.expect("advice");
    let wanted = format!(
        "give an `Arc<{}>` to the run",
        std::any::type_name::<Ledger>()
    );
    assert!(help.starts_with(&wanted), "{help}");
}

#[test]
fn an_engine_is_cheap_to_clone() {
    let engine = engine().host(Ledger::of("shared")).build();
    let agent = engine.compile(BOOKS).unwrap();
    let clone = engine.clone();
    assert!(Arc::ptr_eq(engine.vm(), clone.vm()));
    let other = std::thread::spawn({
        let agent = agent.clone();
        move || value(&clone.run_sync(&agent, json!({}), RunOptions::new())).to_json()
    });
    assert_eq!(other.join().unwrap(), "shared 1");
    let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
    assert_eq!(value(&outcome).to_json(), "shared 2");
}

#[test]
fn what_is_granted_can_be_kept() {
    let store = Arc::new(MemoryStore::new());
    let any: Arc<dyn Store> = store.clone();
    let engine = Engine::new();
    let program = json!({"op": "seq", "steps": [{"op": "storeSet", "key": "k", "value": 7}]});
    let agent = engine.compile(program.to_string()).unwrap();
    for granted in [
        Capabilities::none().with_store(store.clone()),
        Capabilities::none().with_store(any),
    ] {
        let outcome = engine.run_sync_with(&agent, json!({}), RunOptions::new(), granted);
        assert_eq!(outcome.error, None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let kept = runtime.block_on(store.get("k".into())).unwrap();
    assert_eq!(kept.to_json(), json!(7));
}

const NESTED: &str = r#"{"op": "seq", "steps": [
    {"op": "varSet", "key": "n", "value": 1},
    {"op": "if", "condition": "n == 1", "then": [{"op": "varSet", "key": "m", "value": 2}]},
    {"op": "return", "value": {"m": 1}}]}"#;

fn traced(options: RunOptions) -> (Outcome, Vec<TraceEvent>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let options = options
        .trace_to(move |event: &TraceEvent| sink.lock().expect("no panic").push(event.clone()));
    let engine = Engine::new();
    let agent = engine.compile(NESTED).expect("it compiles");
    let outcome = engine.run_sync(&agent, json!({}), options);
    let events = std::mem::take(&mut *seen.lock().expect("no panic"));
    (outcome, events)
}

#[test]
fn a_trace_can_be_followed() {
    let (outcome, events) = traced(RunOptions::new());
    assert_eq!((outcome.error, outcome.trace), (None, None));
    let places: Vec<_> = events
        .iter()
        .map(|e| {
            (
                e.sequence,
                e.depth,
                e.pointer.as_deref(),
                e.index,
                e.op.to_string(),
            )
        })
        .collect();
    let place =
        |n, depth, pointer, index, op: &str| (n, depth, Some(pointer), index, op.to_owned());
    assert_eq!(
        places,
        [
            place(0, 1, "/steps/0", Some(0), "varSet"),
            place(1, 3, "/steps/1/then/0", Some(0), "varSet"),
            place(2, 2, "/steps/1/then", None, "seq"),
            place(3, 1, "/steps/1", Some(1), "if"),
            place(4, 1, "/steps/2", Some(2), "return"),
            place(5, 0, "", None, "seq"),
        ]
    );
    // The trace also keeps the events if requested.
    let (outcome, mut sent) = traced(RunOptions::new().trace(true));
    let mut kept = outcome.trace.expect("it is kept");
    for event in kept.iter_mut().chain(&mut sent) {
        assert!(event.timestamp.ends_with('Z'));
    }
    assert_eq!(kept, sent);
    let first = serde_json::to_value(&kept[0]).unwrap();
    assert_eq!(first, kept[0].to_json().to_json());
    for (key, is) in [
        ("sequence", json!(0)),
        ("depth", json!(1)),
        ("pointer", json!("/steps/0")),
        ("index", json!(0)),
        ("op", json!("varSet")),
        ("input", json!({"key": "n", "value": 1})),
        ("stateDiff", json!({"n": 1})),
    ] {
        assert_eq!(first[key], is, "{key}");
    }
    assert_eq!(kept[0].to_value().get("sequence"), None);
}

#[test]
fn a_trace_holds_nothing_back() {
    let engine = Engine::new();
    let agent = engine
        .compile(
            r#"{"op": "seq", "steps": [{"op": "varSet", "key": "n", "value": 0},
            {"op": "while", "condition": "n < 200", "body": [
                {"op": "mathCalc", "expr": "n + 1", "vars": {"n": "n"}, "result": "n"}]}]}"#,
        )
        .unwrap();
    // Events without room are dropped, which shows in the numbers.
    let (sink, events) = mpsc::sync_channel(8);
    let mut options = RunOptions::new().trace_to(sink);
    options.limits.trace_bytes = 1000;
    let outcome = engine.run_sync(&agent, json!({}), options);
    assert_eq!((outcome.error, outcome.warnings.len()), (None, 0));
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (0..8).collect::<Vec<u64>>());
    // A full log drops the oldest event, and the numbers continue.
    let mut options = RunOptions::new().trace(true);
    options.limits.trace_bytes = 4000;
    let outcome = engine.run_sync(&agent, json!({}), options);
    let kept = outcome.trace.expect("it is kept");
    let (first, last) = (&kept[0], &kept[kept.len() - 1]);
    assert!(first.sequence > 300, "{}", first.sequence);
    assert_eq!(last.sequence - first.sequence + 1, kept.len() as u64);
}

#[test]
fn a_sink_that_panics_is_left_alone() {
    let called = Arc::new(AtomicUsize::new(0));
    let count = called.clone();
    let options = RunOptions::new().trace_to(move |_: &TraceEvent| {
        count.fetch_add(1, Ordering::Relaxed);
        panic!("a fault of the host");
    });
    let engine = Engine::new();
    let agent = engine.compile(NESTED).unwrap();
    let outcome = engine.run_sync(&agent, json!({}), options);
    assert_eq!(
        (outcome.error.as_ref(), called.load(Ordering::Relaxed)),
        (None, 1)
    );
    assert_eq!(
        outcome.warnings[0].to_string(),
        "trace: its sink panicked and was not called again"
    );
}

#[test]
fn outcomes_are_written_as_the_command_writes_them() {
    let (mut outcome, _) = traced(RunOptions::new());
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json["result"], json!({"m": 1}));
    assert_eq!(json["fuel_used"].as_f64(), Some(outcome.fuel_used.to_f64()));
    assert_eq!(json["warnings"], json!([]));
    assert!(json.get("error").is_none() && json.get("trace").is_none());
    outcome.error = Some(agent99::RunError::new(ErrorCode::Program, "x", "bad"));
    outcome.trace = Some(Vec::new());
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json, outcome.to_json().to_json());
    assert_eq!(json["error"]["code"], "program.error");
    assert!(json.get("result").is_none() && json["trace"] == json!([]));
}

/// Gives back what it takes.
#[atom(cost = 1)]
fn same(it: Value) -> Value {
    it
}

#[test]
fn a_value_is_an_input_and_an_answer() {
    let step = json!({"op": "same", "it": {"a": [1, null]}});
    let outcome = run_step_with([SAME.def()], step, json!({}), RunOptions::new());
    assert_eq!(value(&outcome).to_string(), r#"{"a":[1,null]}"#);
    assert_eq!(SAME.output_schema(), json!({}));
}
