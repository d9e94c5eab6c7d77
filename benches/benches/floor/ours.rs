//! This engine's part: metered prices, fuel, heap ceiling and deadline on.

use crate::{Entry, OURS, entry, work};
use a99_benches::{compiled, engine, limits, programs, run};
use agent99::{Agent, Capabilities, Engine, Value};
use std::hint::black_box;
use std::rc::Rc;
use std::task::{Context, Waker};

/// Turns of each loop.
pub const TURNS: u32 = 1_000_000;
/// Evaluations of the condition in runs of their own.
pub const EVALUATIONS: u64 = 100_000;
/// Compilations and cold starts.
pub const COMPILES: u64 = 1_000;
/// Runs in a fresh context.
pub const FRESH: u64 = 20_000;
/// Runs suspended at once.
pub const SUSPENDED: u64 = 10_000;

pub fn entries() -> Vec<Entry> {
    let engine = Rc::new(engine());
    let loops = [
        (
            work::W1_LOOP,
            programs::CONDITION_LOOP.to_owned(),
            programs::condition_args(TURNS),
        ),
        (
            work::W2,
            programs::sum_of_remainders(),
            programs::turns(TURNS),
        ),
        (
            work::W2D,
            programs::sum_of_squares(),
            programs::turns(TURNS),
        ),
        (work::EMPTY, programs::empty_loop(), programs::turns(TURNS)),
        (
            work::W7,
            programs::host_call_loop("inc"),
            programs::turns(TURNS),
        ),
    ];
    let mut out = Vec::new();
    for (work, text, args) in loops {
        let agent = compiled(&engine, &text);
        out.push(runs(work, &engine, agent, args, 1, u64::from(TURNS)));
    }
    let condition = compiled(&engine, programs::CONDITION);
    let args = programs::condition_args(0);
    out.push(runs(work::W1_MAP, &engine, condition, args, EVALUATIONS, 1));
    let agent = compiled(&engine, programs::TEN_STEPS);
    out.push(runs(
        work::W8_FRESH,
        &engine,
        agent,
        programs::ten_steps_args(),
        FRESH,
        1,
    ));
    out.extend([compile(engine.clone()), cold(), suspended(engine)]);
    out
}

fn runs(
    work: &'static str,
    engine: &Rc<Engine>,
    agent: Agent,
    args: Value,
    runs: u64,
    operations: u64,
) -> Entry {
    let engine = engine.clone();
    entry(work, OURS, move || {
        for _ in 0..runs {
            black_box(run(&engine, &agent, &args));
        }
        runs * operations
    })
}

fn compile(engine: Rc<Engine>) -> Entry {
    entry(work::W8_COMPILE, OURS, move || {
        for _ in 0..COMPILES {
            black_box(compiled(&engine, programs::TEN_STEPS));
        }
        COMPILES
    })
}

/// The host keeps its engine, as it keeps the process; the context of the run
/// is new.
fn cold() -> Entry {
    let engine = engine();
    let args = programs::ten_steps_args();
    entry(work::W8_COLD, OURS, move || {
        for _ in 0..COMPILES {
            black_box(run(&engine, &compiled(&engine, programs::TEN_STEPS), &args));
        }
        COMPILES
    })
}

fn suspended(engine: Rc<Engine>) -> Entry {
    let agent = compiled(&engine, programs::SUSPENDED);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    entry(work::W9_START, OURS, move || {
        let _timers = runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = Vec::with_capacity(SUSPENDED as usize);
        for _ in 0..SUSPENDED {
            let args = Value::Undefined;
            let mut future = Box::pin(engine.run(&agent, args, limits(), Capabilities::none()));
            assert!(
                future.as_mut().poll(&mut context).is_pending(),
                "the run waits"
            );
            waiting.push(future);
        }
        SUSPENDED
    })
}
