//! `callAll` under schedules: who answers first changes nothing.

use crate::attack::{bin, call, id, list, lit, ret, seq, set};
use a99_testkit::numbers::Numbers;
use agent99::capabilities::{Capabilities, CapabilityError, Fetch, FixedClock};
use agent99::{AbortSignal, CostModel, Engine, ErrorCode, Next, Outcome, RunOptions, Value, json};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

/// Schedules that are tried; the long form sets the variable.
const SCHEDULES: u64 = 2_000;
const VARIABLE: &str = "A99_SCHEDULES";

type Answer = Result<Value, CapabilityError>;

/// A call that waits for the test.
struct Open {
    url: String,
    answer: Arc<Mutex<Option<Answer>>>,
}

/// Answers when the test says so.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<Vec<Open>>>);

impl Gate {
    fn open(&self) -> usize {
        self.0.lock().expect("nobody panicked").len()
    }

    /// Answers one of the calls that are under way.
    fn answer(&self, at: usize) {
        let call = self.0.lock().expect("nobody panicked").remove(at);
        let answer = match call.url.rsplit('/').next() {
            Some("bad") => Err(CapabilityError::new("no such page")),
            Some(name) => Ok(Value::from(name.repeat(3))),
            None => Ok(Value::Null),
        };
        *call.answer.lock().expect("nobody panicked") = Some(answer);
    }
}

impl Fetch for Gate {
    fn fetch(&self, url: Value, _: Value) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        let answer = Arc::new(Mutex::new(None));
        self.0.lock().expect("nobody panicked").push(Open {
            url: url.as_str().expect("a text").to_owned(),
            answer: answer.clone(),
        });
        Box::pin(poll_fn(move |_| {
            match answer.lock().expect("nobody panicked").take() {
                Some(answer) => Poll::Ready(answer),
                None => Poll::Pending,
            }
        }))
    }
}

fn engine() -> Engine {
    Engine::builder()
        .clock(Arc::new(FixedClock::new(0.0)))
        .build()
}

/// Runs a program; `turn` is asked whenever the run waits, and says whether to go on.
fn run(
    engine: &Engine,
    program: &serde_json::Value,
    options: RunOptions,
    gate: &Gate,
    mut turn: impl FnMut(&Gate) -> bool,
) -> Option<Outcome> {
    let agent = engine.compile(program.to_string()).expect("it compiles");
    let granted = Capabilities::none().with_fetch(gate.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut future = pin!(engine.run(&agent, json!({}), options, granted));
        poll_fn(|context| {
            loop {
                match future.as_mut().poll(context) {
                    Poll::Ready(outcome) => return Poll::Ready(Some(outcome)),
                    Poll::Pending if gate.open() == 0 => return Poll::Pending,
                    Poll::Pending => {
                        if !turn(gate) {
                            return Poll::Ready(None);
                        }
                    }
                }
            }
        })
        .await
    })
}

fn fetches(limit: u32) -> serde_json::Value {
    serde_json::json!({"op": "seq", "steps": [
        {"op": "callAll", "limit": limit, "result": "pages", "items": ["a", "bad", "c", "d", "e", "f"],
         "as": "name", "call": {"op": "httpFetch", "url":
            {"$expr": "binary", "op": "+", "left": {"$expr": "literal", "value": "https://x.example/"},
             "right": {"$expr": "ident", "name": "name"}}}},
        {"op": "return", "schema": {"type": "object", "properties": {"pages": {}}}}
    ]})
}

#[test]
fn any_schedule_gives_one_outcome() {
    let engine = engine();
    let options = || RunOptions::new().trace(true).timeout_ms(600_000);
    let schedules = std::env::var(VARIABLE).map_or(SCHEDULES, |n| n.parse().expect("a number"));
    let mut numbers = Numbers::of_state(16);
    let mut first: Option<String> = None;
    for n in 0..schedules {
        let limit = 1 + (n % 7) as u32;
        let gate = Gate::default();
        let mut most = 0;
        let outcome = run(&engine, &fetches(limit), options(), &gate, |gate| {
            most = most.max(gate.open());
            gate.answer(numbers.below(gate.open()));
            true
        });
        let mut outcome = outcome.expect("it ends");
        assert_eq!(most, limit.min(6) as usize, "calls under way");
        // The input of the step is all that differs with the limit.
        for event in outcome.trace.iter_mut().flatten() {
            event.input = Value::Null;
        }
        if let Some(usage) = &mut outcome.usage {
            usage.time = Duration::ZERO;
        }
        let shown = format!("{outcome:?}");
        match &first {
            None => {
                let pages = outcome.result.to_json()["pages"].clone();
                assert_eq!(pages[0], json!({"value": "aaa"}));
                assert_eq!(pages[1], json!({"error": "no such page"}));
                first = Some(shown);
            }
            Some(first) => assert_eq!(*first, shown, "schedule {n}"),
        }
    }
}

#[test]
fn no_call_is_made_if_one_cannot_be_paid() {
    let gate = Gate::default();
    let options = RunOptions::new().fuel(20.0).expect("fuel");
    let outcome = run(&engine(), &fetches(8), options, &gate, |_| false);
    let error = outcome.expect("it ends").error.expect("an error");
    assert_eq!(
        (error.code, &*error.op.to_string()),
        (ErrorCode::OutOfFuel, "httpFetch")
    );
    assert_eq!(gate.open(), 0);
}

#[test]
fn an_abort_ends_all_calls() {
    let gate = Gate::default();
    let signal = AbortSignal::new();
    let options = RunOptions::new().signal(signal.clone());
    let outcome = run(&engine(), &fetches(3), options, &gate, |gate| {
        assert_eq!(gate.open(), 3);
        signal.abort();
        true
    });
    let error = outcome.expect("it ends").error.expect("an error");
    assert_eq!(error.code, ErrorCode::Aborted);
}

#[test]
fn answers_that_the_run_cannot_hold_end_it() {
    #[derive(Clone)]
    struct Large;
    impl Fetch for Large {
        fn fetch(&self, _: Value, _: Value) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
            Box::pin(async { Ok(Value::from("x".repeat(3 << 20))) })
        }
    }
    let engine = engine();
    let agent = engine.compile(fetches(8).to_string()).expect("it compiles");
    let granted = Capabilities::none().with_fetch(Large);
    let options = RunOptions::new()
        .fuel(100_000.0)
        .expect("fuel")
        .heap_bytes(8 << 20);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let outcome =
        runtime
            .expect("a runtime")
            .block_on(engine.run(&agent, json!({}), options, granted));
    assert_eq!(outcome.error.expect("an error").code, ErrorCode::HeapLimit);
}

/// Dropping the run drops its calls.
#[test]
fn a_run_that_is_dropped_drops_its_calls() {
    let gate = Gate::default();
    let ended = run(&engine(), &fetches(4), RunOptions::new(), &gate, |_| false);
    assert!(ended.is_none());
    let open = gate.0.lock().expect("nobody panicked");
    assert_eq!(open.len(), 4);
    assert!(open.iter().all(|call| Arc::strong_count(&call.answer) == 1));
}

#[test]
fn a_run_pays_for_no_compaction_of_the_one_before() {
    let engine = engine();
    let compile = |steps| engine.compile(seq(steps)).expect("it compiles");
    // Values that look at text take longer to look through than to make.
    let views = compile(json!([
        set("i", lit(0)),
        set("text", bin("+", lit("some text "), id("i"))),
        set("kept", list(json!([]))),
        {"op": "while", "condition": bin("<", id("i"), lit(50_000)), "body": [
            {"op": "push", "list": id("kept"),
                "item": call(id("text"), "slice", json!([lit(1), lit(5)]))},
            set("i", bin("+", id("i"), lit(1))),
        ]},
        ret(lit(1)),
    ]));
    let both = compile(json!([
        {"op": "callAll", "result": "pages", "calls": [
            {"op": "httpFetch", "url": "https://example.com/a"},
            {"op": "httpFetch", "url": "https://example.com/b"},
        ]},
        ret(lit(1)),
    ]));
    let metered = || RunOptions::new().cost_model(CostModel::Metered);
    // The answers are more than it can hold.
    let ask = || {
        let options = metered().heap_bytes(64 << 10);
        let mut run = engine.start(&both, json!({}), options, Capabilities::none());
        loop {
            match run.next(Duration::ZERO) {
                Next::Call(call) => {
                    let page = Value::from("x".repeat(60 << 10));
                    run.answer(&call.id, Ok(page.into())).expect("it waits");
                }
                Next::Done(outcome) => return *outcome,
                Next::Pause | Next::Wait(_) => {}
            }
        }
    };
    let first = ask();
    let code = first.error.as_ref().map(|error| error.code);
    assert_eq!(code, Some(ErrorCode::HeapLimit));
    let options = metered().fuel(1e6).expect("a budget");
    assert_eq!(engine.run_sync(&views, json!({}), options).error, None);
    assert_eq!(ask().fuel_used, first.fuel_used);
}
