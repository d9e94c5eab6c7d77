//! How long a run goes on after it was told to stop: from the abort, or from
//! the deadline, to the outcome. The promise is one millisecond, for busy loops
//! and for long builtins alike.
//!
//! These are wall-clock times: on a busy machine run it with priority
//! (`chrt -f 10`), or the scheduler's waits are measured too.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::{compiled, engine, limits};
use agent99::{AbortSignal, Agent, Engine, ErrorCode, Value, json};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long a run works before it is stopped, in milliseconds.
const BEFORE_MS: u64 = 20;

/// The longest wait for a run to end that counts as kept.
const PROMISE: Duration = Duration::from_millis(1);

/// Name, and the steps of an endless loop.
const WORK: &[(&str, &str)] = &[
    ("busy loop", r#"{"op": "varSet", "key": "x", "value": 1}"#),
    (
        "sort",
        r#"{"op": "varSet", "key": "x", "value": {"$expr": "methodCall",
            "object": {"$expr": "ident", "name": "numbers"}, "method": "toSorted",
            "arguments": []}}"#,
    ),
    (
        "join",
        r#"{"op": "join", "list": "numbers", "sep": ", ", "result": "x"}"#,
    ),
    (
        "split",
        r#"{"op": "split", "str": "text", "sep": "e", "result": "x"}"#,
    ),
    (
        "regexMatch",
        r#"{"op": "regexMatch", "pattern": "(a|b|ab)*c$", "value": "page", "result": "x"}"#,
    ),
    ("hash", r#"{"op": "hash", "value": "text", "result": "x"}"#),
    (
        "jsonStringify",
        r#"{"op": "jsonStringify", "value": "numbers", "result": "x"}"#,
    ),
    (
        "jsonParse",
        r#"{"op": "jsonParse", "str": "document", "result": "x"}"#,
    ),
    (
        "replaceAll",
        r#"{"op": "varSet", "key": "x", "value": {"$expr": "methodCall",
            "object": {"$expr": "ident", "name": "text"}, "method": "replaceAll",
            "arguments": ["e", "ee"]}}"#,
    ),
];

fn args() -> Value {
    let numbers: Vec<u64> = (0..100_000u64)
        .map(|i| i.wrapping_mul(2_654_435_761) % 1_000_003)
        .collect();
    let text = "the quick brown fox jumps over the lazy dog ".repeat(20_000);
    // Patterns are matched against at most 100,000 units.
    let page = &text[..90_000];
    let document = json!(numbers).to_string();
    json!({"numbers": numbers, "text": text, "page": page, "document": document}).into()
}

fn endless(step: &str) -> String {
    format!(
        r#"{{"op": "seq", "steps": [
            {{"op": "varsImport", "keys": ["numbers", "text", "page", "document"]}},
            {{"op": "while", "condition": "true", "body": [{step}]}}]}}"#
    )
}

/// From the abort to the outcome.
fn after_abort(engine: &Engine, agent: &Agent, args: &Value) -> Duration {
    let signal = AbortSignal::new();
    let options = limits().signal(signal.clone());
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let outcome = engine.run_sync(agent, args.clone(), options);
            (Instant::now(), outcome)
        });
        std::thread::sleep(Duration::from_millis(BEFORE_MS));
        let told = Instant::now();
        signal.abort();
        let (ended, outcome) = running.join().expect("the run does not panic");
        let error = outcome
            .error
            .expect("an endless loop ends by the signal only");
        assert_eq!(error.code, ErrorCode::Aborted, "{error:?}");
        ended.saturating_duration_since(told)
    })
}

/// From the deadline to the outcome.
fn after_deadline(engine: &Engine, agent: &Agent, args: &Value) -> Duration {
    let args = args.clone();
    let started = Instant::now();
    let outcome = engine.run_sync(agent, args, limits().timeout_ms(BEFORE_MS));
    let took = started.elapsed();
    black_box(&outcome);
    let error = outcome
        .error
        .expect("an endless loop ends by the deadline only");
    assert_eq!(error.code, ErrorCode::RunTimeout, "{error:?}");
    took.saturating_sub(Duration::from_millis(BEFORE_MS))
}

type Stop = fn(&Engine, &Agent, &Value) -> Duration;

fn stop(c: &mut Criterion) {
    let engine = engine();
    let args = args();
    let mut group = c.benchmark_group("stop");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_secs(1));
    for (name, step) in WORK {
        let agent = compiled(&engine, &endless(step));
        for (how, measure) in [("abort", after_abort as Stop), ("deadline", after_deadline)] {
            let mut worst = Duration::ZERO;
            group.bench_function(format!("{how}/{name}"), |b| {
                b.iter_custom(|n| {
                    (0..n).fold(Duration::ZERO, |sum, _| {
                        let took = measure(&engine, &agent, &args);
                        worst = worst.max(took);
                        sum + took
                    })
                });
            });
            // Nothing was measured where a filter of the command line says so.
            if worst.is_zero() {
                continue;
            }
            let verdict = if worst <= PROMISE {
                "kept"
            } else {
                "NOT KEPT (is the machine busy?)"
            };
            println!("stop/{how}/{name}: longest {worst:?}, promise of {PROMISE:?} {verdict}");
        }
    }
    group.finish();
}

criterion_group!(benches, stop);
criterion_main!(benches);
