//! Threats C17 to C22: ways around a stop, and runs that keep others waiting.

use crate::attack::{
    ENGINE, call, forever, id, lit, record, ret, rich, run, run_granted, run_with, seq, set,
    stopped,
};
use agent99::capabilities::{MemoryStore, ScriptedFetch};
use agent99::{
    AbortSignal, AtomBody, AtomDef, AtomSig, AtomTimeout, Capabilities, Engine, ErrorCode,
    Executable, HostReply, Outcome, Params, RunOptions, Value, all_atoms, json,
};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Slack over a limit: debug builds on busy machines.
const SLACK_MS: u64 = 250;

/// Programs that are busy in one place each.
fn busy() -> Vec<Json> {
    let work = |expr: Json| forever(json!([set("x", expr)]));
    let mut steps = vec![
        json!([
            set(
                "l",
                call(
                    id("Array"),
                    "from",
                    json!([record(&[("length", lit(100_000))])])
                )
            ),
            work(call(id("l"), "sort", json!([])))
        ]),
        json!([
            set("s", call(lit("ab"), "repeat", json!([lit(1_000_000)]))),
            work(call(id("s"), "split", json!([lit("a")])))
        ]),
        json!([
            set("s", call(lit("ab"), "repeat", json!([lit(1_000_000)]))),
            work(call(id("s"), "replaceAll", json!([lit("ab"), lit("ba")])))
        ]),
        json!([work(call(
            id("JSON"),
            "parse",
            json!([call(lit("["), "repeat", json!([lit(500)]))])
        ))]),
        json!([forever(json!([{"op": "hash", "value": "text"}]))]),
    ];
    // A sort whose error ends the loop would be no work: errors are caught.
    for program in &mut steps {
        let inner = program.take();
        *program = json!([forever(json!([{"op": "try", "try": inner, "catch": []}]))]);
    }
    steps
}

#[test]
fn c17_an_abort_stops_whatever_runs() {
    let signal = AbortSignal::new();
    signal.abort();
    let outcome = run_with(json!([set("a", lit(1))]), json!({}), rich().signal(signal));
    stopped(&outcome, ErrorCode::Aborted);
    assert_eq!(outcome.fuel_used.micro(), 0, "not one step ran");
    for steps in busy() {
        let agent = ENGINE.compile(seq(steps)).unwrap();
        let signal = AbortSignal::new();
        let aborted = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let outcome = ENGINE.run_sync(
                    &agent,
                    json!({"text": "x".repeat(100_000)}),
                    rich().signal(signal.clone()),
                );
                (outcome, Instant::now())
            });
            std::thread::sleep(Duration::from_millis(60));
            let at = Instant::now();
            signal.abort();
            let (outcome, ended) = run.join().expect("no panic");
            assert!(ended.saturating_duration_since(at) < Duration::from_millis(SLACK_MS));
            outcome
        });
        stopped(&aborted, ErrorCode::Aborted);
    }
}

/// An atom that waits so long, and counts how often it began and ended.
#[derive(Clone, Default)]
struct Slow {
    began: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    told: Arc<AtomicBool>,
}

impl Slow {
    fn atom(&self, name: &'static str, ms: u64, blocks: bool) -> AtomDef {
        let slow = self.clone();
        AtomDef {
            sig: AtomSig {
                name: Cow::Borrowed(name),
                params: Params::Raw,
                timeout: AtomTimeout::None,
                ..AtomSig::new("", "Waits.", 100_000)
            },
            body: AtomBody::AsyncDyn(Arc::new(move |call| {
                let slow = slow.clone();
                slow.began.fetch_add(1, Ordering::SeqCst);
                Box::pin(async move {
                    if blocks {
                        // Goes on whatever happens to the run.
                        let (done, wait) = tokio::sync::oneshot::channel();
                        let (stray, cancelled) = (slow.clone(), call.cancelled.clone());
                        std::thread::spawn(move || {
                            std::thread::sleep(Duration::from_millis(ms));
                            stray.told.store(cancelled.is_set(), Ordering::SeqCst);
                            stray.ended.fetch_add(1, Ordering::SeqCst);
                            let _ = done.send(());
                        });
                        let _ = wait.await;
                    } else {
                        tokio::time::sleep(Duration::from_millis(ms)).await;
                        slow.ended.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok(HostReply::from(Value::from("late")))
                })
            })),
            dynamic_cost: None,
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

#[test]
fn c17_an_abort_stops_a_wait_on_the_host() {
    let slow = Slow::default();
    let engine = Engine::builder()
        .atoms(all_atoms().with(slow.atom("wait", 60_000, false)))
        .build();
    let agent = engine
        .compile(seq(json!([{"op": "wait"}, ret(lit(1))])))
        .unwrap();
    let signal = AbortSignal::new();
    let options = rich().signal(signal.clone());
    let outcome = runtime().block_on(async {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            signal.abort();
        });
        let started = Instant::now();
        let outcome = engine
            .run(&agent, json!({}), options, Capabilities::none())
            .await;
        assert!(started.elapsed() < Duration::from_millis(50 + SLACK_MS));
        outcome
    });
    stopped(&outcome, ErrorCode::Aborted);
    assert_eq!(
        slow.ended.load(Ordering::SeqCst),
        0,
        "its future was dropped"
    );
}

#[test]
fn c18_an_atom_that_ignores_its_end_holds_nothing_up() {
    let slow = Slow::default();
    let engine = Engine::builder()
        .atoms(all_atoms().with(slow.atom("stubborn", 300, true)))
        .build();
    let steps = json!([{"op": "try", "try": [{"op": "stubborn", "result": "x"}], "catch": []}, ret(lit(1))]);
    let agent = engine.compile(seq(steps)).unwrap();
    let rt = runtime();
    let started = Instant::now();
    let outcome = rt.block_on(engine.run(
        &agent,
        json!({}),
        rich().timeout_ms(50),
        Capabilities::none(),
    ));
    assert!(
        started.elapsed() < Duration::from_millis(50 + SLACK_MS),
        "{:?}",
        started.elapsed()
    );
    stopped(&outcome, ErrorCode::RunTimeout);
    assert!(outcome.result.get("r").is_none());
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(slow.ended.load(Ordering::SeqCst), 1);
    assert!(
        slow.told.load(Ordering::SeqCst),
        "the stray could see that nobody waits"
    );
}

#[test]
fn c19_nothing_starts_after_the_outcome() {
    let slow = Slow::default();
    let engine = Engine::builder()
        .atoms(all_atoms().with(slow.atom("tick", 5, false)))
        .build();
    let tick = json!([{"op": "tick"}]);
    let programs = [
        json!([forever(tick.clone())]),
        json!([{"op": "map", "items": vec![0; 10_000], "as": "x", "steps": tick}]),
        json!([{"op": "forEach", "items": vec![0; 10_000], "as": "x", "steps": [
            {"op": "tick"}, {"op": "try", "try": [{"op": "continue"}], "catch": tick},
        ]}]),
        json!([{"op": "scope", "steps": [forever(json!([{"op": "try", "try": tick, "catch": tick}]))]}]),
        json!([{"op": "agentRun", "agentId": {"op": "seq", "steps": [forever(tick.clone())]}, "input": {}}]),
    ];
    let rt = runtime();
    for steps in programs {
        let agent = engine.compile(seq(steps)).unwrap();
        let outcome = rt.block_on(engine.run(
            &agent,
            json!({}),
            rich().timeout_ms(40),
            Capabilities::none(),
        ));
        stopped(&outcome, ErrorCode::RunTimeout);
        let (began, ended) = (
            slow.began.load(Ordering::SeqCst),
            slow.ended.load(Ordering::SeqCst),
        );
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(slow.began.load(Ordering::SeqCst), began);
        assert_eq!(slow.ended.load(Ordering::SeqCst), ended);
    }
}

#[test]
fn c20_limits_cannot_be_caught() {
    let handlers = |inner: Json| {
        json!([forever(json!([
            {"op": "try", "try": inner, "catch": [{"op": "storeSet", "key": "after", "value": 1}]},
            {"op": "storeSet", "key": "after", "value": 1},
        ]))])
    };
    let store = Arc::new(MemoryStore::new());
    let granted = || {
        let mut granted = Capabilities::none();
        granted.store = Some(store.clone());
        granted
    };
    let spin = json!([forever(json!([]))]);
    let cases: Vec<(Json, RunOptions, ErrorCode)> = vec![
        (
            handlers(spin.clone()),
            RunOptions::new(),
            ErrorCode::OutOfFuel,
        ),
        (
            handlers(spin.clone()),
            rich().timeout_ms(20),
            ErrorCode::RunTimeout,
        ),
        (
            handlers(json!([set(
                "x",
                call(lit("x"), "repeat", json!([lit(1e9)]))
            )])),
            rich(),
            ErrorCode::HeapLimit,
        ),
        (
            handlers(json!([{"op": "storeGet", "key": "k"}, {"op": "storeGet", "key": "k"}])),
            rich().quota("storeGet", 1),
            ErrorCode::QuotaExceeded,
        ),
        (
            handlers(
                json!([{"op": "try", "try": [{"op": "try", "try": spin, "catch": []}], "catch": []}]),
            ),
            RunOptions::new(),
            ErrorCode::OutOfFuel,
        ),
    ];
    for (steps, options, code) in cases {
        let outcome = run_granted(steps, json!({}), options, granted());
        stopped(&outcome, code);
    }
    let read = run_granted(
        json!([{"op": "storeGet", "key": "after", "result": "x"}, ret(id("x"))]),
        json!({}),
        rich(),
        granted(),
    );
    assert!(
        read.result.get("r").is_none_or(Value::is_undefined),
        "no handler ran"
    );
}

#[test]
fn c21_nothing_runs_when_a_limit_is_met() {
    // There are no finally blocks and no abort handlers in the language; a
    // catch body is part of the run and pays as all code does.
    let steps = json!([
        {"op": "try", "try": [{"op": "nope"}], "catch": [forever(json!([]))]},
    ]);
    let outcome = run(steps, json!({}));
    stopped(&outcome, ErrorCode::OutOfFuel);
    let used = outcome.fuel_used.to_f64();
    assert!((1_000.0..1_001.0).contains(&used), "{used}");
}

/// Starts `spinners` that never end and `short` runs beside them; gives the
/// 99th percentile of how long short runs took from being spawned.
fn crowd(short: usize, spinners: usize, spin: Json) -> Duration {
    let engine = ENGINE.clone();
    let spinner = engine.compile(seq(spin)).expect("it compiles");
    let quick = engine
        .compile(seq(json!([set("x", lit(1)), ret(id("x"))])))
        .expect("it compiles");
    runtime().block_on(async move {
        let signal = AbortSignal::new();
        let granted = || Capabilities::none().with_fetch(ScriptedFetch::new());
        let mut busy = Vec::new();
        for _ in 0..spinners {
            let (engine, agent, options) = (
                engine.clone(),
                spinner.clone(),
                rich().signal(signal.clone()),
            );
            let granted = granted();
            busy.push(tokio::spawn(async move {
                engine.run(&agent, json!({}), options, granted).await
            }));
        }
        let mut runs = Vec::new();
        for i in 0..short {
            if i % 100 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let (engine, agent) = (engine.clone(), quick.clone());
            let spawned = Instant::now();
            runs.push(tokio::spawn(async move {
                let outcome: Outcome = engine
                    .run(&agent, json!({}), RunOptions::new(), Capabilities::none())
                    .await;
                assert_eq!(outcome.error, None);
                spawned.elapsed()
            }));
        }
        let mut times = Vec::new();
        for run in runs {
            times.push(run.await.expect("a run"));
        }
        signal.abort();
        for run in busy {
            stopped(&run.await.expect("a run"), ErrorCode::Aborted);
        }
        times.sort_unstable();
        times[times.len() * 99 / 100]
    })
}

#[test]
fn c22_spinners_do_not_starve_short_runs() {
    let spins = [
        json!([forever(json!([]))]),
        // Heavy builtins and hosts that answer at once must give way too.
        json!([
            set("s", call(lit("ab"), "repeat", json!([lit(20_000)]))),
            forever(json!([set("x", call(id("s"), "toUpperCase", json!([])))]))
        ]),
        json!([forever(json!([{"op": "storeGet", "key": "k"}]))]),
    ];
    for (spin, (short, spinners)) in spins
        .into_iter()
        .zip([(9_900, 100), (300, 10), (1_000, 100)])
    {
        let p99 = crowd(short, spinners, spin.clone());
        // Debug builds do a slice of work in ten to twenty times the time.
        let limit = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 200 });
        assert!(p99 < limit, "{spin}: {p99:?}");
    }
}

/// A program that arrives at run time is linked only as long as somebody waits:
/// every question that linking asks may be its last.
#[test]
fn linking_ends_at_whatever_question_says_stop() {
    let helper = json!({"steps": json!([set("x", lit(1))])});
    let helpers: serde_json::Map<String, Json> = (0..1_000)
        .map(|i| (format!("h{i}"), helper.clone()))
        .collect();
    let program = json!({"op": "seq", "helpers": helpers, "steps": []});
    let agent = ENGINE.compile(program.to_string()).expect("a program");
    let link = |last: usize| {
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= last;
        let linked = Executable::link_watched(agent.artifact(), ENGINE.vm().atoms(), &stop);
        (linked.map(|linked| linked.map(|_| ())), asked.into_inner())
    };
    let (whole, questions) = link(usize::MAX);
    assert_eq!(whole, Some(Ok(())));
    // 1,000 functions, each looked through for two cost models.
    assert!(questions >= 4, "{questions}");
    for last in 0..questions {
        assert_eq!(link(last), (None, last + 1));
    }
}
