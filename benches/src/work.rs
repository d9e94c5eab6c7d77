//! Work that compares engines ([`a99_benches_work`]), done by this engine: through its public API,
//! with fuel, heap ceiling and deadline enabled as users have them.

use crate::{compiled, engine, limits, profile, programs, run};
use a99_benches_work::inputs::{self, TenSteps};
use a99_benches_work::list;
use a99_benches_work::protocol::{About, Entry, time};
use a99_benches_work::{Size, Task, Work};
use agent99::{
    Agent, Arg, Bound, Capabilities, Engine, JsonText, Next, Outcome, Part, Run, RunProfile, Value,
    json,
};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

/// Description of this engine.
pub const ABOUT: About = About {
    name: "agent99",
    version: env!("CARGO_PKG_VERSION"),
    limits: "fuel for each block, heap ceiling of 64 MiB, deadline",
};

/// Work that is measured in time.
pub const TIMED: &[Entry] = &[
    (list::W1_MAP, condition_from_map),
    (list::W1_BOUND, condition_bound),
    (list::W1_RUN, condition_run),
    (list::W1_JSON, condition_run_by_text),
    (list::W1_LOOP, condition_loop),
    (list::W2, |size| {
        looped(
            &programs::sum_of_remainders(),
            size,
            inputs::sum_of_remainders(size.turns),
        )
    }),
    (list::W2D, |size| {
        looped(
            &programs::sum_of_squares(),
            size,
            inputs::sum_of_squares(size.turns),
        )
    }),
    #[cfg(feature = "jit")]
    (list::W2_COMPILED, |size| {
        compiled_loop(
            &programs::sum_of_remainders(),
            size,
            inputs::sum_of_remainders(size.turns),
        )
    }),
    #[cfg(feature = "jit")]
    (list::W2D_COMPILED, |size| {
        compiled_loop(
            &programs::sum_of_squares(),
            size,
            inputs::sum_of_squares(size.turns),
        )
    }),
    (list::W2_CALC, |size| {
        let sum = inputs::sum_of_remainders(size.turns);
        looped(&programs::sum_by_calc(), size, sum)
    }),
    (list::W3, |size| {
        let args = json!({"n": size.fib}).into();
        let result = json!({"f": inputs::fibonacci(size.fib)});
        let calls = inputs::fibonacci_calls(size.fib);
        runs(programs::FIBONACCI, args, result, calls)
    }),
    (list::W4, rows),
    (list::W5, |size| {
        let args = programs::words(size.words);
        let result = json!({"page": inputs::page(&inputs::text(size.words))});
        runs(programs::WORDS, args, result, u64::from(size.words))
    }),
    (list::W6, orders),
    (list::W7_SYNC, |size| host_calls("inc", size)),
    (list::W7_ATTRIBUTE, |size| host_calls("incTyped", size)),
    (list::W7_ASYNC, |size| host_calls("incLater", size)),
    (list::W8_COMPILE, |size| {
        let engine = engine();
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                drop(compiled(&engine, programs::TEN_STEPS));
            }
        })
    }),
    (list::W8_COLD, |size| {
        let args = programs::ten_steps_args();
        let size = size.few_states(5);
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                let engine = Engine::new();
                check(&run(
                    &engine,
                    &compiled(&engine, programs::TEN_STEPS),
                    &args,
                ));
            }
        })
    }),
    (list::W8_WARM, |size| {
        let (engine, args) = (engine(), programs::ten_steps_args());
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                check(&run(
                    &engine,
                    &compiled(&engine, programs::TEN_STEPS),
                    &args,
                ));
            }
        })
    }),
    (list::W8_FRESH, |size| {
        let (engine, args) = (engine(), programs::ten_steps_args());
        let agent = compiled(&engine, programs::TEN_STEPS);
        check(&run(&engine, &agent, &args));
        let profile = profile(&engine);
        Task::all(size.runs, move || {
            for _ in 0..size.runs {
                let outcome = profile.run_sync(&agent, args.clone());
                // The whole result is compared above; comparing it each time would be most of the
                // work.
                assert_eq!(net(&result(outcome)), Some(112.5));
            }
        })
    }),
    (list::W9_START, |size| {
        let (profile, agent) = suspended();
        Task::all(size.waiting, move || {
            drop(waiting(&profile, &agent, size.waiting));
        })
    }),
    (list::W9_FUTURE, |size| {
        let (profile, agent) = suspended();
        let (profile, runtime) = (Arc::new(profile), timers());
        Task::all(size.waiting, move || {
            let _timers = runtime.enter();
            drop(futures(&profile, &agent, size.waiting));
        })
    }),
    (list::W9_RESUME, |size| {
        let (profile, agent) = suspended();
        Task::Part {
            operations: u64::from(size.waiting),
            run: Box::new(move || {
                let waiting = waiting(&profile, &agent, size.waiting);
                time(|| waiting.into_iter().for_each(resumed))
            }),
        }
    }),
];

/// Work that is measured in bytes, by a program that counts each allocation. It is separate from
/// [`TIMED`], because counting slows the timed work.
pub const HELD: [&Work; 2] = [list::W9_BYTES, list::W9_FUTURE_BYTES];

/// Bytes that a run from [`RunProfile::start`] holds, by the allocator's count.
pub fn bytes(size: Size, allocated: fn() -> usize) -> Task {
    let (profile, agent) = suspended();
    Task::held(size.waiting, allocated, move |count| {
        waiting(&profile, &agent, count)
    })
}

/// Bytes that the future of a run holds, by the allocator's count.
pub fn future_bytes(size: Size, allocated: fn() -> usize) -> Task {
    let (profile, agent) = suspended();
    let (profile, runtime) = (Arc::new(profile), timers());
    Task::held(size.waiting, allocated, move |count| {
        let _timers = runtime.enter();
        futures(&profile, &agent, count)
    })
}

/// Runs one agent repeatedly and compares each result.
fn runs(program: &str, args: Value, result: serde_json::Value, operations: u64) -> Task {
    runs_by(engine(), program, args, result, operations)
}

fn runs_by(
    engine: Engine,
    program: &str,
    args: Value,
    result: serde_json::Value,
    operations: u64,
) -> Task {
    let agent = compiled(&engine, program);
    let wanted = Value::from(result);
    Task::all(operations, move || {
        // Does not print the result, which may be a megabyte.
        assert!(run(&engine, &agent, &args) == wanted, "another result");
    })
}

fn looped(program: &str, size: Size, sum: f64) -> Task {
    let args = programs::turns(size.turns);
    runs(program, args, json!({"s": sum}), u64::from(size.turns))
}

/// A loop in an engine with the compiled tier; the warm-up round compiles it.
#[cfg(feature = "jit")]
fn compiled_loop(program: &str, size: Size, sum: f64) -> Task {
    let (args, result) = (programs::turns(size.turns), json!({"s": sum}));
    let turns = u64::from(size.turns);
    runs_by(Engine::new(), program, args, result, turns)
}

fn condition_run(size: Size) -> Task {
    let engine = engine();
    let agent = compiled(&engine, programs::CONDITION);
    let (args, wanted) = (programs::condition_args(0), json!({"ok": true}).into());
    Task::all(size.evaluations, move || {
        for _ in 0..size.evaluations {
            assert_eq!(run(&engine, &agent, &args), wanted);
        }
    })
}

fn condition_run_by_text(size: Size) -> Task {
    let engine = engine();
    let agent = compiled(&engine, programs::CONDITION);
    let text = programs::condition_args(0).to_json_string();
    let wanted = Value::from(json!({"ok": true}));
    Task::all(size.evaluations, move || {
        for _ in 0..size.evaluations {
            let outcome = engine.run_sync(&agent, JsonText::from(text.as_str()), limits());
            assert_eq!(outcome.result, wanted);
        }
    })
}

/// The names of the condition's inputs.
const CONDITION: [&str; 7] = ["a", "b", "c", "d", "e", "f", "name"];

fn condition_from_map(size: Size) -> Task {
    let numbers = HashMap::from(inputs::CONDITION);
    conditions(size, move |place| {
        let number = numbers.get(CONDITION[place]);
        number.map_or(Arg::Text("x"), |n| Arg::Number(*n))
    })
}

fn condition_bound(size: Size) -> Task {
    let args = condition_inputs();
    conditions(size, move |place| args[place])
}

/// The condition with bound inputs.
pub fn bound_condition() -> Arc<Bound> {
    let engine = engine();
    let agent = compiled(&engine, programs::CONDITION);
    let bound = engine.bind(&agent, &CONDITION, limits(), Capabilities::none());
    bound.expect("names of the program's")
}

/// The condition's inputs, in the order of their binding.
pub fn condition_inputs() -> [Arg<'static>; 7] {
    let [a, b, c, d, e, f] = inputs::CONDITION.map(|(_, number)| Arg::Number(number));
    [a, b, c, d, e, f, Arg::Text("x")]
}

/// Evaluates a bound condition repeatedly with these arguments.
fn conditions(size: Size, arg: impl Fn(usize) -> Arg<'static> + 'static) -> Task {
    let bound = bound_condition();
    let (ok, mut caller) = (bound.result("ok"), bound.caller());
    Task::all(size.evaluations, move || {
        for _ in 0..size.evaluations {
            let reply = caller
                .call(&std::array::from_fn::<_, 7, _>(&arg))
                .expect("it ends");
            assert_eq!(reply.at(ok), Part::Bool(true));
        }
    })
}

fn condition_loop(size: Size) -> Task {
    let args = programs::condition_args(size.turns);
    let result = json!({"hits": size.turns});
    runs(
        programs::CONDITION_LOOP,
        args,
        result,
        u64::from(size.turns),
    )
}

fn rows(size: Size) -> Task {
    let found = inputs::rows(size.rows);
    let counts = inputs::TAGS.into_iter().zip(found.counts);
    let counts: serde_json::Map<_, _> = counts
        .map(|(tag, count)| (tag.to_owned(), json!(count)))
        .collect();
    let wanted = json!({"sum": found.sum, "counts": counts});
    let args = programs::items(size.rows);
    runs(programs::ROWS_BY_TAG, args, wanted, u64::from(size.rows))
}

fn orders(size: Size) -> Task {
    let engine = engine();
    let agent = compiled(&engine, programs::ORDERS);
    let args = programs::orders(size.orders);
    let first = run(&engine, &agent, &args);
    let written = first.to_json();
    inputs::check_orders(written["written"].as_str().unwrap_or_default(), size.orders);
    let bytes = inputs::orders(size.orders).len() as u64;
    Task::all(bytes, move || {
        assert!(run(&engine, &agent, &args) == first, "another result");
    })
}

fn host_calls(atom: &str, size: Size) -> Task {
    let engine = engine();
    let args = programs::turns(size.turns);
    let calls = compiled(&engine, &programs::host_call_loop(atom));
    let empty = compiled(&engine, &programs::empty_loop());
    let turns = f64::from(size.turns);
    let runtime = timers();
    let runs = move |agent: &Agent, wanted: serde_json::Value| {
        // A run that may wait needs the timers of a runtime, which drives it.
        let run = engine.run(agent, args.clone(), limits(), Capabilities::none());
        let outcome = runtime.block_on(run);
        assert_eq!(result(outcome), wanted.into());
    };
    let runs = Rc::new(runs);
    let rest = runs.clone();
    Task::Net {
        operations: u64::from(size.turns),
        // The last call has the number before the last turn's.
        run: Box::new(move || runs(&calls, json!({"s": turns}))),
        rest: Box::new(move || rest(&empty, json!({"i": turns}))),
    }
}

fn result(outcome: Outcome) -> Value {
    assert_eq!(outcome.error, None);
    outcome.result
}

fn net(result: &Value) -> Option<f64> {
    result.as_object()?.get("net")?.as_f64()
}

/// Compares the result of the agent of ten steps.
fn check(result: &Value) {
    let found = result.to_json();
    let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| found[name].as_f64().unwrap_or_default();
    TenSteps {
        net: number("net"),
        count: number("count"),
        text: text("text"),
        label: text("label"),
        joined: text("joined"),
    }
    .check();
}

fn timers() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().expect("a runtime")
}

/// An agent that calls its host and returns the answer, with its profile.
pub fn suspended() -> (RunProfile, Agent) {
    let engine = engine();
    let agent = compiled(&engine, programs::SUSPENDED);
    (profile(&engine), agent)
}

/// Suspended runs, each with its pending call.
pub fn waiting(profile: &RunProfile, agent: &Agent, count: u32) -> Vec<(Run, agent99::CallId)> {
    let start = |_| {
        let mut run = profile.start(agent, Value::Undefined);
        match run.next(Duration::ZERO) {
            Next::Call(call) => (run, call.id),
            other => panic!("a call, not {other:?}"),
        }
    };
    (0..count).map(start).collect()
}

/// Answers a call and finishes the run.
pub fn resumed((mut run, call): (Run, agent99::CallId)) {
    run.answer(&call, Ok(Value::from(2.0).into()))
        .expect("a call of this run");
    let Next::Done(outcome) = run.next(Duration::ZERO) else {
        panic!("the run is over");
    };
    let answer = result(*outcome);
    let answer = answer.as_object().and_then(|members| members.get("answer"));
    assert_eq!(answer.and_then(Value::as_f64), Some(2.0));
}

/// Futures of suspended runs, which own their data as tasks do.
fn futures(
    profile: &Arc<RunProfile>,
    agent: &Agent,
    count: u32,
) -> Vec<Pin<Box<dyn Future<Output = Outcome>>>> {
    let mut context = Context::from_waker(Waker::noop());
    (0..count)
        .map(|_| {
            let (profile, agent) = (Arc::clone(profile), agent.clone());
            let mut run: Pin<Box<dyn Future<Output = Outcome>>> =
                Box::pin(async move { profile.run(&agent, Value::Undefined).await });
            assert!(run.as_mut().poll(&mut context).is_pending(), "it waits");
            run
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_work_is_done_and_gives_what_it_must() {
        let timed = TIMED.iter().map(|(work, _)| *work);
        let done: Vec<&Work> = timed.chain(HELD).collect();
        // The compiled tier is a feature.
        let compiled = [list::W2_COMPILED, list::W2D_COMPILED];
        for work in list::ALL {
            let is_done = cfg!(feature = "jit") || !compiled.contains(work);
            assert_eq!(done.contains(work), is_done, "{}", work.name);
        }
        let left_out = if cfg!(feature = "jit") {
            0
        } else {
            compiled.len()
        };
        assert_eq!(done.len() + left_out, list::ALL.len());
        for (_, set_up) in TIMED {
            set_up(Size::SMALL).repeat(1, 1);
        }
        bytes(Size::SMALL, || 0).repeat(1, 1);
        future_bytes(Size::SMALL, || 0).repeat(1, 1);
    }
}
