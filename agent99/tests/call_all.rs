//! Concurrent calls in runs that their host drives.

use agent99::capabilities::{Capabilities, Clock, FixedClock};
use agent99::{
    Agent, AtomError, AtomTimeout, Call, CallId, Engine, ErrorCode, HostReply, Next, Outcome, Run,
    RunFault, RunOptions, SnapshotError, Value, json,
};
use std::sync::Arc;
use std::time::Duration;

/// Fetches of the letters, with one synchronous call and one invalid entry.
const PROGRAM: &str = r#"{"op": "seq", "steps": [
    {"op": "callAll", "limit": 2, "result": "all", "calls": [
        {"op": "httpFetch", "url": "https://a.example"},
        {"op": "split", "str": "t-t", "sep": "-"},
        {"op": "httpFetch", "url": "https://b.example"},
        {"op": "nothing"},
        {"op": "httpFetch", "url": "https://c.example"}
    ]},
    {"op": "httpFetch", "url": "https://d.example", "result": "d"},
    {"op": "return", "schema": {"type": "object", "properties": {"all": {}, "d": {}}}}
]}"#;

fn engine() -> Engine {
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::new(0.0));
    Engine::builder().clock(clock).build()
}

fn agent(engine: &Engine) -> Agent {
    engine.compile(PROGRAM).expect("a program")
}

fn options() -> RunOptions {
    RunOptions::new().trace(true).timeout_ms(600_000)
}

fn start(options: RunOptions) -> Run {
    let engine = engine();
    engine.start(&agent(&engine), json!({}), options, Capabilities::none())
}

fn restore(bytes: &[u8], options: RunOptions) -> Result<Run, SnapshotError> {
    let engine = engine();
    engine.restore(&agent(&engine), bytes, options, Capabilities::none())
}

/// The next request other than a pause.
fn next(run: &mut Run, now: u64) -> Next {
    loop {
        match run.next(Duration::from_millis(now)) {
            Next::Pause => {}
            next => return next,
        }
    }
}

fn call(run: &mut Run, now: u64) -> Box<Call> {
    match next(run, now) {
        Next::Call(call) => call,
        other => panic!("a call was expected: {other:?}"),
    }
}

fn waits(run: &mut Run, now: u64) -> Option<Duration> {
    match next(run, now) {
        Next::Wait(until) => until,
        other => panic!("nothing was expected: {other:?}"),
    }
}

fn done(run: &mut Run, now: u64) -> Outcome {
    match next(run, now) {
        Next::Done(outcome) => *outcome,
        other => panic!("the end was expected: {other:?}"),
    }
}

fn reply(text: &str) -> Result<HostReply, AtomError> {
    Ok(Value::from(text).into())
}

fn ids(calls: &[&Call]) -> Vec<String> {
    calls.iter().map(|call| call.id.to_string()).collect()
}

#[test]
fn calls_have_places_and_a_limit() {
    let mut run = start(options());
    let a = call(&mut run, 0);
    let b = call(&mut run, 0);
    assert!(waits(&mut run, 0).is_some());
    assert_eq!(a.pointer().as_deref(), Some("/steps/0/calls/0"));
    assert_eq!(b.pointer().as_deref(), Some("/steps/0/calls/2"));
    let answered = |id: &CallId| Err(RunFault::AnsweredCall(id.clone()));
    let unknown = |text: &str| text.parse::<CallId>().expect("an identity");
    for text in ["0.1", "0.4", "0.5", "1.0"] {
        // A synchronous call, one that is not made yet, and an unknown one.
        let id = unknown(text);
        assert_eq!(
            run.answer(&id, reply("")),
            Err(RunFault::UnknownCall(id.clone()))
        );
    }
    run.answer(&b.id, reply("two")).expect("it waits");
    assert_eq!(run.answer(&b.id, reply("again")), answered(&b.id));
    let c = call(&mut run, 0);
    assert_eq!(ids(&[&a, &b, &c]), ["0.0", "0.2", "0.4"]);
    assert!(waits(&mut run, 0).is_some());
    run.answer(&c.id, Err(AtomError::new("no such host")))
        .expect("it waits");
    run.answer(&a.id, reply("one")).expect("it waits");
    // They count as one suspension.
    let d = call(&mut run, 0);
    assert_eq!(d.id.to_string(), "1.0");
    assert_eq!(run.answer(&a.id, reply("late")), answered(&a.id));
    run.answer(&d.id, reply("four")).expect("it waits");
    let outcome = done(&mut run, 0);
    assert_eq!(outcome.error, None);
    assert_eq!(
        outcome.result.to_json_string(),
        r#"{"all":[{"value":"one"},{"value":["t","t"]},{"value":"two"},{"error":"Unknown Atom: nothing"},{"error":"no such host"}],"d":"four"}"#
    );
}

#[test]
fn each_has_its_time() {
    let options = options().atom_timeout("httpFetch", AtomTimeout::Ms(50));
    let mut run = start(options);
    let a = call(&mut run, 0);
    let b = call(&mut run, 20);
    assert_eq!(a.deadline, Some(Duration::from_millis(50)));
    assert_eq!(b.deadline, Some(Duration::from_millis(70)));
    assert_eq!(waits(&mut run, 30), a.deadline);
    // The timeout of the third call begins when the first is given up.
    let c = call(&mut run, 50);
    assert!(a.cancelled().is_set());
    assert!(!b.cancelled().is_set());
    assert_eq!(c.deadline, Some(Duration::from_millis(100)));
    assert!(run.answer(&a.id, reply("late")).is_err());
    run.answer(&b.id, reply("two")).expect("in time");
    run.answer(&c.id, reply("three")).expect("in time");
    let d = call(&mut run, 60);
    run.answer(&d.id, reply("four")).expect("in time");
    let all = done(&mut run, 60).result.to_json()["all"].clone();
    assert_eq!(all[0], json!({"error": "Atom 'httpFetch' timed out"}));
    assert_eq!(all[4], json!({"value": "three"}));
}

#[test]
fn the_ends_of_a_run_end_them_all() {
    let mut run = start(options());
    let (a, b) = (call(&mut run, 0), call(&mut run, 0));
    run.abort();
    assert!(a.cancelled().is_set() && b.cancelled().is_set());
    let error = done(&mut run, 0).error.expect("an error");
    assert_eq!(error.code, ErrorCode::Aborted);

    let mut run = start(options().timeout_ms(100));
    let (a, b) = (call(&mut run, 0), call(&mut run, 0));
    assert_eq!(waits(&mut run, 99), Some(Duration::from_millis(100)));
    run.answer(&a.id, reply("one")).expect("it waits");
    let error = done(&mut run, 100).error.expect("an error");
    assert_eq!(error.code, ErrorCode::RunTimeout);
    assert!(b.cancelled().is_set());

    let mut run = start(options().heap_bytes(1 << 20));
    let (a, b) = (call(&mut run, 0), call(&mut run, 0));
    let long = "x".repeat(600_000);
    run.answer(&a.id, reply(&long)).expect("it waits");
    let c = call(&mut run, 0);
    run.answer(&b.id, reply(&long)).expect("it waits");
    // No call is pending any more.
    assert!(!c.cancelled().is_set());
    let error = done(&mut run, 0).error.expect("an error");
    assert_eq!(error.code, ErrorCode::HeapLimit);
}

/// Random schedules of answers, with snapshots between them, have the same outcome.
#[test]
fn any_order_and_any_snapshot_gives_one_outcome() {
    let mut seed = 7u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
        (seed >> 33) as usize % n
    };
    let mut first: Option<String> = None;
    let mut restored = 0;
    for round in 0..400 {
        let mut run = start(options());
        run.set_slice(1);
        let mut open: Vec<(CallId, String)> = Vec::new();
        let mut outcome = loop {
            if round > 0 && random(3) == 0 {
                let bytes = run.snapshot().expect("it has begun");
                run = restore(&bytes, options()).expect("a snapshot");
                run.set_slice(1);
                assert!(run.snapshot().expect("it waits") == bytes);
                restored += 1;
            }
            match run.next(Duration::ZERO) {
                Next::Pause => {}
                Next::Call(call) => {
                    let url = call.inputs().to_json()["url"].to_string();
                    // The same call once more, after a snapshot, or a new one.
                    open.retain(|(id, _)| *id != call.id);
                    open.push((call.id, url));
                }
                Next::Wait(_) => {
                    let (id, url) = open.swap_remove(random(open.len()));
                    let answer = match url.contains("b.example") {
                        true => Err(AtomError::new("no such host")),
                        false => reply(&url),
                    };
                    run.answer(&id, answer).expect("it waits");
                }
                Next::Done(outcome) => break *outcome,
            }
        };
        // The account belongs to the host: a new one counts from there.
        outcome.usage = None;
        let shown = format!("{outcome:?}");
        match &first {
            None => {
                assert!(outcome.error.is_none() && shown.contains("no such host"));
                first = Some(shown);
            }
            Some(first) => assert_eq!(*first, shown, "round {round}"),
        }
    }
    assert!(restored > 400, "{restored} snapshots");
}

/// The time per answer does not depend on the number of calls.
#[test]
fn answers_of_many_calls_take_linear_time() {
    const MANY: usize = 20_000;
    let items: Vec<usize> = (0..MANY).collect();
    let program = serde_json::json!({"op": "seq", "steps": [
        {"op": "callAll", "limit": 64, "result": "all", "items": items, "as": "n",
            "call": {"op": "httpFetch", "url": "https://a.example"}},
        {"op": "return", "value": {"n": {"$expr": "member", "object":
            {"$expr": "ident", "name": "all"}, "property": "length"}}}
    ]});
    let engine = engine();
    let agent = engine.compile(program.to_string()).expect("a program");
    let options = RunOptions::new()
        .fuel(1_000_000.0)
        .expect("fuel")
        .timeout_ms(600_000);
    let mut run = engine.start(&agent, json!({}), options, Capabilities::none());
    let begun = std::time::Instant::now();
    let (mut calls, mut pauses) = (std::collections::VecDeque::new(), 0);
    let outcome = loop {
        match run.next(Duration::ZERO) {
            Next::Call(call) => calls.push_back(call.id),
            Next::Wait(_) => {
                let id = calls.pop_front().expect("a call is under way");
                run.answer(&id, reply("x")).expect("it waits");
            }
            Next::Pause => pauses += 1,
            Next::Done(outcome) => break *outcome,
        }
    };
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.result.to_json_string(), format!("{{\"n\":{MANY}}}"));
    // A scan of all calls per answer took minutes.
    assert!(begun.elapsed() < Duration::from_secs(60));
    // Preparing them has yield points.
    assert!(pauses > MANY / 64, "{pauses} pauses");
}
