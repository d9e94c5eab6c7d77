//! `sleep`: runs that wait for a time to pass.

use agent99::capabilities::{Capabilities, Clock, FixedClock};
use agent99::replay::Recording;
use agent99::{AbortSignal, Engine, ErrorCode, Next, Outcome, RunOptions, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const HOUR: f64 = 3_600_000.0;

fn program(ms: &str) -> String {
    format!(
        r#"{{"a99": 4, "op": "seq", "steps": [
            {{"op": "sleep", "ms": {ms}}},
            {{"op": "return", "value": {{"=": "Date.now()"}}}}
        ]}}"#
    )
}

async fn run(ms: &str, options: RunOptions) -> (Outcome, Duration) {
    let engine = Engine::new();
    let agent = engine.compile(program(ms)).expect("a program");
    let began = Instant::now();
    let outcome = engine
        .run(&agent, json!({}), options, Capabilities::none())
        .await;
    (outcome, began.elapsed())
}

fn code(outcome: &Outcome) -> Option<ErrorCode> {
    outcome.error.as_ref().map(|error| error.code)
}

#[tokio::test]
async fn a_run_sleeps_and_goes_on() {
    let (outcome, took) = run("60", RunOptions::new()).await;
    assert_eq!(code(&outcome), None);
    assert!(took >= Duration::from_millis(60), "{took:?}");
    // A second is the time limit of other atoms.
    let (outcome, took) = run("1200", RunOptions::new()).await;
    assert_eq!(code(&outcome), None);
    assert!(took >= Duration::from_millis(1_200), "{took:?}");
}

#[tokio::test]
async fn it_counts_against_the_run_and_ends_with_an_abort() {
    let late = RunOptions::new().timeout_ms(50);
    let (outcome, took) = run("86400000", late).await;
    assert_eq!(code(&outcome), Some(ErrorCode::RunTimeout));
    assert!(took < Duration::from_secs(20), "{took:?}");

    let signal = AbortSignal::new();
    let aborts = signal.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        aborts.abort();
    });
    let (outcome, took) = run("86400000", RunOptions::new().signal(signal)).await;
    assert_eq!(code(&outcome), Some(ErrorCode::Aborted));
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test]
async fn sleeps_of_one_step_pass_together_on_one_thread() {
    let engine = Engine::new();
    let source = "async function agent() {
      await Promise.all([1, 2, 3, 4].map((n) => sleep({ ms: 100 * n })))
      return 'done'
    }";
    let agent = engine.compile_source(source).expect("a program");
    let began = Instant::now();
    let mut runs = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (engine, agent) = (engine.clone(), agent.clone());
        runs.spawn(async move {
            engine
                .run(&agent, json!({}), RunOptions::new(), Capabilities::none())
                .await
        });
    }
    // The runtime of this test has one thread.
    for outcome in runs.join_all().await {
        assert_eq!(outcome.result.as_str(), Some("done"));
    }
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(400) && took < Duration::from_secs(20),
        "{took:?}"
    );
}

#[tokio::test]
async fn a_time_that_is_too_long_is_refused() {
    for ms in ["86400001", "-1", r#""5""#, r#"{"=": "0 / 0"}"#, "null"] {
        let (outcome, _) = run(ms, RunOptions::new()).await;
        let error = outcome.error.expect(ms);
        assert_eq!(error.code, ErrorCode::Boundary, "{ms}: {error:?}");
        assert_eq!(&*error.op.to_string_lossy(), "sleep");
    }
}

#[tokio::test]
async fn a_replay_does_not_wait_and_a_restored_run_waits_for_the_rest() {
    let engine = Engine::new();
    let agent = engine.compile(program("150")).expect("a program");
    let mut file = Vec::new();
    let none = Capabilities::none;
    let recorded = engine.record(
        &agent,
        json!({}).into(),
        RunOptions::new(),
        none(),
        &mut file,
    );
    let recorded = recorded.await.expect("a recording");
    let recording = Recording::read(&*file).expect("a recording");
    assert!(recorded.result.as_f64() >= Some(recording.began + 150.0));
    let began = Instant::now();
    let again = engine.replay(&agent, &recording, RunOptions::new()).await;
    assert!(
        began.elapsed() < Duration::from_millis(140),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(again.departure, None);
    assert_eq!(
        (again.outcome.result, again.outcome.fuel_used),
        (recorded.result, recorded.fuel_used)
    );

    let clock = Arc::new(FixedClock::new(0.0));
    let engine = Engine::builder()
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .build();
    let hour = engine.compile(program("3600000")).expect("a program");
    let mut run = engine.start(&hour, json!({}), RunOptions::new(), none());
    assert!(matches!(run.next(Duration::ZERO), Next::Call(_)));
    let bytes = run.snapshot().expect("it waits");
    clock.set(HOUR - 50.0);
    let mut run = engine
        .restore(&hour, &bytes, RunOptions::new(), none())
        .expect("a run");
    let Next::Call(call) = run.next(Duration::ZERO) else {
        panic!("the call is made again");
    };
    let (began, id) = (Instant::now(), call.id.clone());
    let answer = call.start(None).await;
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(50) && took < Duration::from_secs(20),
        "{took:?}"
    );
    run.answer(&id, answer).expect("it waits");
    assert!(matches!(run.next(Duration::ZERO), Next::Done(_)));
}
