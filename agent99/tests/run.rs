//! Runs driven by hand.

use agent99::capabilities::Capabilities;
use agent99::{
    AbortSignal, AtomError, AtomTimeout, Call, CallId, Capability, Effect, Engine, ErrorCode, Fuel,
    HostReply, Next, Outcome, Run, RunFault, RunOptions, Value, json,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn start(program: &str, options: RunOptions) -> Run {
    let engine = Engine::new();
    let agent = engine.compile(program).expect("a program");
    engine.start(&agent, json!({}), options, Capabilities::none())
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

fn done(run: &mut Run, now: u64) -> Outcome {
    match next(run, now) {
        Next::Done(outcome) => *outcome,
        other => panic!("the end was expected: {other:?}"),
    }
}

/// Two fetches with their results; the second one's error is caught.
const FETCHES: &str = r#"{"op": "seq", "steps": [
    {"op": "httpFetch", "url": "https://a.example", "result": "a"},
    {"op": "try", "try": [
        {"op": "httpFetch", "url": "https://b.example", "result": "b"}
    ], "catch": [{"op": "varSet", "key": "b", "value": "none"}]},
    {"op": "return", "schema": {"type": "object", "properties": {"a": {}, "b": {}}}}
]}"#;

const LOOP: &str = r#"{"op": "seq", "steps": [
    {"op": "while", "condition": "true", "body": []}
]}"#;

#[test]
fn calls_are_numbered_and_answered() {
    let mut run = start(FETCHES, RunOptions::default());
    let first = call(&mut run, 0);
    assert_eq!((first.step, first.index, &*first.atom), (0, 0, "httpFetch"));
    assert_eq!(first.id.to_string(), "0.0");
    assert_eq!(first.pointer().as_deref(), Some("/steps/0"));
    assert_eq!(first.effect, Effect::Read);
    assert_eq!(first.capability, Some(Capability::Fetch));
    assert_eq!(
        first.inputs().to_json_string(),
        r#"{"url":"https://a.example"}"#
    );
    run.answer(&first.id, Ok(Value::from("one").into()))
        .expect("it waits");
    let second = call(&mut run, 0);
    assert_eq!(
        (second.step, second.pointer().as_deref()),
        (1, Some("/steps/1/try/0"))
    );
    let refused = AtomError::new("no such host");
    run.answer(&second.id, Err(refused)).expect("it waits");
    let outcome = done(&mut run, 0);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.result.to_json_string(), r#"{"a":"one","b":"none"}"#);
    // The run has only one outcome.
    let again = done(&mut run, 0).error.expect("an error");
    assert_eq!(again.code, ErrorCode::Options);
}

#[test]
fn an_answer_fits_one_call() {
    let mut run = start(FETCHES, RunOptions::default());
    let first = call(&mut run, 0);
    let answer = || Ok(HostReply::from(Value::Null));
    let of = |text: &str| text.parse::<CallId>().expect("an identity");
    for unknown in ["1.0", "0.1", "0.0/0.0"] {
        let fault = run
            .answer(&of(unknown), answer())
            .expect_err("no such call");
        assert_eq!(fault, RunFault::UnknownCall(of(unknown)));
        assert_eq!(fault.code(), "call.unknown");
    }
    run.answer(&first.id, answer()).expect("it waits");
    let fault = run.answer(&first.id, answer()).expect_err("answered");
    assert_eq!(
        (fault.code(), fault),
        ("call.answered", RunFault::AnsweredCall(of("0.0")))
    );
    let second = call(&mut run, 0);
    assert!(run.answer(&first.id, answer()).is_err(), "an earlier one");
    run.answer(&second.id, answer()).expect("it waits");
    done(&mut run, 0);
    let fault = run.answer(&second.id, answer()).expect_err("over");
    assert_eq!((fault.code(), fault), ("call.run_over", RunFault::Over));
}

#[test]
fn a_call_has_its_time() {
    let options = RunOptions::default().atom_timeout("httpFetch", AtomTimeout::Ms(50));
    let mut run = start(FETCHES, options.clone());
    let first = call(&mut run, 20);
    assert_eq!(first.deadline, Some(Duration::from_millis(70)));
    let Next::Wait(Some(until)) = next(&mut run, 69) else {
        panic!("it waits")
    };
    assert_eq!(until, Duration::from_millis(70));
    let outcome = done(&mut run, 70);
    let error = outcome.error.expect("an error");
    assert_eq!(error.code, ErrorCode::AtomTimeout);
    assert_eq!(error.message, "Atom 'httpFetch' timed out");
    // An answer in time counts, independent of the next call of the run.
    let mut run = start(FETCHES, options);
    let first = call(&mut run, 0);
    run.answer(&first.id, Ok(Value::from("in time").into()))
        .expect("it waits");
    assert_eq!(call(&mut run, 60).step, 1);
}

#[test]
fn a_run_has_its_time() {
    let mut run = start(FETCHES, RunOptions::default().timeout_ms(30));
    let first = call(&mut run, 10);
    assert_eq!(first.deadline, Some(Duration::from_millis(30)));
    assert!(matches!(next(&mut run, 29), Next::Wait(Some(_))));
    let error = done(&mut run, 30).error.expect("an error");
    assert_eq!(error.code, ErrorCode::RunTimeout);
    // In a loop too; a fixed clock takes effect at a pause.
    let mut run = start(LOOP, RunOptions::default().timeout_ms(30));
    assert!(matches!(run.next(Duration::from_millis(29)), Next::Pause));
    let error = done(&mut run, 30).error.expect("an error");
    assert_eq!(error.code, ErrorCode::RunTimeout);
}

#[test]
fn an_abort_ends_it() {
    let mut run = start(FETCHES, RunOptions::default());
    let first = call(&mut run, 0);
    assert!(!first.cancelled().is_set());
    run.abort();
    assert!(first.cancelled().is_set(), "the atom is told");
    assert!(run.answer(&first.id, Ok(Value::Null.into())).is_err());
    let outcome = done(&mut run, 0);
    assert_eq!(outcome.error.expect("an error").code, ErrorCode::Aborted);
    // So do the signal, and dropping the run.
    let signal = AbortSignal::new();
    let mut run = start(FETCHES, RunOptions::default().signal(signal.clone()));
    call(&mut run, 0);
    signal.abort();
    let outcome = done(&mut run, 0);
    assert_eq!(outcome.error.expect("an error").code, ErrorCode::Aborted);
    let mut run = start(FETCHES, RunOptions::default());
    let first = call(&mut run, 0);
    drop(run);
    assert!(first.cancelled().is_set());
}

#[test]
fn fuel_is_added_before_it_is_used_up() {
    let budget = |units: f64| RunOptions::default().fuel(units).expect("a budget");
    let spent = |extra: f64| {
        let mut run = start(LOOP, budget(100.0));
        assert!(matches!(run.next(Duration::ZERO), Next::Pause));
        if extra > 0.0 {
            let more = Fuel::from_decimal(extra).expect("fuel");
            let before = run.fuel_left();
            run.refuel(more).expect("it goes on");
            assert_eq!(run.fuel_left().micro() - before.micro(), more.micro());
        }
        let outcome = done(&mut run, 0);
        assert_eq!(outcome.error.expect("an error").code, ErrorCode::OutOfFuel);
        assert_eq!(run.refuel(Fuel::ZERO), Err(RunFault::Over));
        assert_eq!(run.fuel_left(), Fuel::ZERO);
        outcome.fuel_used.to_f64()
    };
    let (less, more) = (spent(0.0), spent(50.0));
    assert!(
        (100.0..101.0).contains(&less) && (150.0..151.0).contains(&more),
        "{less} {more}"
    );
    // At a call; a time limit derived from fuel is extended too.
    let mut run = start(FETCHES, budget(20.0));
    let first = call(&mut run, 0);
    assert_eq!(first.deadline, Some(Duration::from_millis(200)));
    run.refuel(Fuel::from_decimal(30.0).expect("fuel"))
        .expect("it goes on");
    run.answer(&first.id, Ok(Value::Null.into()))
        .expect("it waits");
    assert_eq!(
        call(&mut run, 300).deadline,
        Some(Duration::from_millis(500))
    );
    // No amount overflows.
    run.refuel(Fuel::from_micro(i64::MAX)).expect("it goes on");
    run.refuel(Fuel::from_micro(i64::MAX)).expect("it goes on");
    assert!(run.fuel_left().micro() > i64::MAX / 2);
}

#[test]
fn memory_is_told() {
    let mut run = start(FETCHES, RunOptions::default().heap_bytes(1 << 20));
    let first = call(&mut run, 0);
    let before = run.memory();
    assert_eq!(before.limit, 1 << 20);
    let page = "x".repeat(100_000);
    run.answer(&first.id, Ok(Value::from(page.as_str()).into()))
        .expect("it waits");
    call(&mut run, 0);
    let after = run.memory();
    assert!(after.counted >= before.counted + 100_000, "{after:?}");
    assert!(after.held >= after.counted);
}

/// An inline program continues its caller's numbering; loading it is no suspension.
#[test]
fn inline_programs_count_on() {
    let inner = r#"{"op": "seq", "steps": [
        {"op": "httpFetch", "url": "https://in.example", "result": "x"},
        {"op": "return", "value": {"x": {"$expr": "ident", "name": "x"}}}
    ]}"#;
    let program = format!(
        r#"{{"op": "seq", "steps": [
            {{"op": "httpFetch", "url": "https://a.example", "result": "a"}},
            {{"op": "agentRun", "agentId": {inner}, "input": {{}}, "result": "b"}},
            {{"op": "httpFetch", "url": "https://c.example", "result": "c"}}
        ]}}"#
    );
    let mut run = start(&program, RunOptions::default());
    let mut seen = Vec::new();
    loop {
        match next(&mut run, 0) {
            Next::Call(call) => {
                seen.push((call.id.to_string(), call.pointer().unwrap_or_default()));
                run.answer(&call.id, Ok(Value::Null.into()))
                    .expect("it waits");
            }
            Next::Done(outcome) => {
                assert_eq!(outcome.error, None);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let seen: Vec<_> = seen
        .iter()
        .map(|(id, at)| (id.as_str(), at.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("0.0", "/steps/0"),
            ("1.0", "/steps/0"),
            ("2.0", "/steps/2")
        ]
    );
}

/// The ids of a child run extend the call that it answers.
#[test]
fn a_child_has_its_parents_identity() {
    let mut parent = start(FETCHES, RunOptions::default());
    let first = call(&mut parent, 0);
    let options = RunOptions {
        parent: Some(Arc::new(first.id.clone())),
        ..RunOptions::default()
    };
    let mut child = start(FETCHES, options);
    let inner = call(&mut child, 0);
    assert_eq!(inner.id.to_string(), "0.0/0.0");
    assert!(child.answer(&first.id, Ok(Value::Null.into())).is_err());
    child
        .answer(&inner.id, Ok(Value::Null.into()))
        .expect("it waits");
    assert_eq!(call(&mut child, 0).id.to_string(), "0.0/1.0");
}

/// The atom's own implementation, polled by hand.
#[test]
fn an_atom_can_answer_itself() {
    let program = r#"{"op": "seq", "steps": [
        {"op": "storeSet", "key": "k", "value": 5},
        {"op": "storeGet", "key": "k", "result": "v"},
        {"op": "return", "schema": {"type": "object", "properties": {"v": {}}}}
    ]}"#;
    let mut run = start(program, RunOptions::default());
    let mut names = Vec::new();
    let outcome = loop {
        match next(&mut run, 0) {
            Next::Call(call) => {
                names.push(call.atom.to_string());
                let id = call.id.clone();
                let mut answer = call.start(None);
                let mut context = Context::from_waker(Waker::noop());
                let Poll::Ready(answer) = Pin::new(&mut answer).poll(&mut context) else {
                    panic!("stores answer at once")
                };
                run.answer(&id, answer).expect("it waits");
            }
            Next::Done(outcome) => break outcome,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(outcome.result.to_json_string(), r#"{"v":5}"#);
    assert_eq!(names, ["storeSet", "storeGet"]);
}
