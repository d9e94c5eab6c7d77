//! Waiting for a place in a pool, and runs outside of a runtime (classes A9
//! and A12).

use crate::attack::{ENGINE, lit, ret, rich, seq, stopped, within};
use agent99::{
    AbortSignal, Agent, AtomBody, AtomDef, AtomSig, AtomTimeout, Capabilities, Engine, EnginePool,
    ErrorCode, Outcome, Params, RunOptions, all_atoms, json,
};
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// An engine with an atom that never answers.
fn patient() -> Arc<Engine> {
    let never = AtomDef {
        sig: AtomSig {
            name: Cow::Borrowed("never"),
            params: Params::Raw,
            timeout: AtomTimeout::None,
            ..AtomSig::new("", "Waits.", 100_000)
        },
        body: AtomBody::AsyncDyn(Arc::new(|_| Box::pin(std::future::pending()))),
        dynamic_cost: None,
    };
    Arc::new(Engine::builder().atoms(all_atoms().with(never)).build())
}

/// An agent that never ends.
fn waits(engine: &Engine) -> Agent {
    let program = seq(json!([{"op": "never"}]));
    engine.compile(program).expect("a program")
}

/// An agent that ends at once.
fn answers(engine: &Engine) -> Agent {
    let program = seq(json!([ret(lit(1))]));
    engine.compile(program).expect("a program")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Runs an agent in a pool whose only place is taken, and tells how long it took.
async fn queued(
    pool: &EnginePool,
    busy: &Agent,
    agent: &Agent,
    options: RunOptions,
) -> (Outcome, Duration) {
    let holder = pool.run(
        busy,
        json!({}),
        rich().heap_bytes(1 << 20).timeout_ms(60_000),
        Capabilities::none(),
    );
    let started = Instant::now();
    let waiting = async {
        // The other one comes first.
        tokio::task::yield_now().await;
        pool.run(agent, json!({}), options, Capabilities::none())
            .await
    };
    tokio::select! {
        biased;
        _ = holder => panic!("it never ends"),
        outcome = waiting => (outcome, started.elapsed()),
    }
}

#[test]
fn a9_a_run_that_waits_for_a_pool_ends_at_its_deadline() {
    let engine = patient();
    let (busy, agent) = (waits(&engine), answers(&engine));
    let pool = engine.pool(1 << 20);
    let options = rich().heap_bytes(1 << 20).timeout_ms(100);
    let (outcome, took) = runtime().block_on(queued(&pool, &busy, &agent, options));
    stopped(&outcome, ErrorCode::RunTimeout);
    assert!(outcome.fuel_used.micro() == 0);
    assert!(took >= Duration::from_millis(100), "{took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a9_a_run_that_waits_for_a_pool_can_be_aborted() {
    let engine = patient();
    let (busy, agent) = (waits(&engine), answers(&engine));
    let pool = engine.pool(1 << 20);
    let signal = AbortSignal::new();
    let options = rich()
        .heap_bytes(1 << 20)
        .timeout_ms(60_000)
        .signal(signal.clone());
    let (outcome, took) = runtime().block_on(async {
        let abort = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            signal.abort();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = queued(&pool, &busy, &agent, options) => outcome,
            () = abort => unreachable!(),
        }
    });
    stopped(&outcome, ErrorCode::Aborted);
    assert!(took < Duration::from_secs(2), "{took:?}");
    // Its place is nobody's: the pool goes on.
    let free = pool.run(
        &agent,
        json!({}),
        rich().heap_bytes(1 << 20),
        Capabilities::none(),
    );
    assert_eq!(runtime().block_on(free).error, None);
}

#[test]
fn a9_what_can_never_be_admitted_is_refused() {
    let engine = Arc::new(Engine::new());
    let agent = answers(&engine);
    for (pool, ceiling) in [(0, 0), (0, 1 << 20), (1 << 20, (1 << 20) + 1)] {
        let pool = engine.pool(pool);
        let run = pool.run(
            &agent,
            json!({}),
            rich().heap_bytes(ceiling),
            Capabilities::none(),
        );
        let outcome = within(5_000, || runtime().block_on(run));
        let error = outcome.error.expect("it is refused");
        assert_eq!(error.code, ErrorCode::Options);
        assert!(error.message.to_string().contains("never be admitted"));
    }
}

#[test]
fn a12_a_run_outside_of_a_runtime_is_an_error_where_it_waits() {
    let engine = patient();
    let (waits, agent) = (waits(&engine), answers(&ENGINE));
    let poll = |agent: &Agent| {
        let run = engine.run(agent, json!({}), rich(), Capabilities::none());
        let mut run = std::pin::pin!(run);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..1_000 {
            if let Poll::Ready(outcome) = run.as_mut().poll(&mut context) {
                return outcome;
            }
        }
        panic!("it does not end")
    };
    assert_eq!(poll(&agent).error, None);
    let error = stopped(&poll(&waits), ErrorCode::AsyncInSync);
    assert!(error.message.to_string().contains("tokio runtime"));
    // A runtime without timers is none either.
    let still = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let run = engine.run(&waits, json!({}), rich(), Capabilities::none());
    stopped(&still.block_on(run), ErrorCode::AsyncInSync);
}
