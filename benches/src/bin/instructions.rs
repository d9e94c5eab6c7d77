//! Instruction counting: the work of each row of the benchmark, as often as it
//! is told to, so that callgrind can count what one more costs.
//!
//! `instructions` lists the rows: name, unit, and two counts. `instructions ROW
//! COUNT` does the work of a row COUNT times. `cargo xtask bench --instr` runs
//! each row with both of its counts under callgrind; the difference, divided by
//! the units between them, is free of set-up.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::{compiled, engine, limits, programs};
use agent99::artifact::EncodeOptions;
use agent99::{Agent, Capabilities, Engine, Value, json};
use std::process::ExitCode;
use std::task::{Context, Waker};

/// How the work of a row is done once.
type Work = Box<dyn FnMut()>;

/// One row of the benchmark.
struct Row {
    /// W and a number for the rows that are compared with other engines.
    name: &'static str,
    /// What the figure is for one of.
    unit: &'static str,
    /// Units in one round of the work.
    units: u32,
    /// Rounds of the smaller and of the larger run.
    rounds: [u32; 2],
    /// Makes the work.
    work: fn() -> Work,
}

/// Turns of the loops.
const TURNS: u32 = 2_000;

/// Rows of objects, strings of a text, orders of a document.
const ITEMS: u32 = 500;

/// Calls that `fib(15)` makes.
const FIB_CALLS: u32 = 1_973;

const ROWS: &[Row] = &[
    row("W1 condition from arguments", "run", 1, [20, 220], || {
        runs(programs::CONDITION, programs::condition_args(0))
    }),
    row(
        "W1 condition, bound variables",
        "turn",
        TURNS,
        [1, 11],
        || runs(programs::CONDITION_LOOP, programs::condition_args(TURNS)),
    ),
    row("W2 sum of remainders", "turn", TURNS, [1, 11], || {
        runs(&programs::sum_of_remainders(), programs::turns(TURNS))
    }),
    row("W2d sum of squares", "turn", TURNS, [1, 11], || {
        runs(&programs::sum_of_squares(), programs::turns(TURNS))
    }),
    row("W2 with mathCalc", "turn", TURNS, [1, 11], || {
        runs(
            &programs::looped(
                r#"{"op": "mathCalc", "expr": "s + i * i % 7", "result": "s"}"#,
                &[],
            ),
            programs::turns(TURNS),
        )
    }),
    row("W3 recursive helper", "call", FIB_CALLS, [1, 6], || {
        runs(programs::FIBONACCI, json!({"n": 15}).into())
    }),
    row("W4 rows by tag", "row", ITEMS, [2, 12], || {
        runs(programs::ROWS_BY_TAG, programs::items(ITEMS))
    }),
    row("W5 templated strings", "string", ITEMS, [2, 12], || {
        runs(programs::WORDS, programs::words(ITEMS))
    }),
    row("W6 JSON document", "order", ITEMS, [2, 12], || {
        runs(programs::ORDERS, programs::orders(ITEMS))
    }),
    row("W7 native atom", "call", TURNS, [1, 11], || {
        runs(&programs::host_call_loop("inc"), programs::turns(TURNS))
    }),
    row("W7 asynchronous atom", "call", TURNS, [1, 11], || {
        runs(
            &programs::host_call_loop("incLater"),
            programs::turns(TURNS),
        )
    }),
    row("W8 compile ten steps", "agent", 1, [5, 55], || {
        let engine = engine();
        Box::new(move || drop(compiled(&engine, programs::TEN_STEPS)))
    }),
    row("W8 cold", "run", 1, [5, 55], || {
        let args = programs::ten_steps_args();
        Box::new(move || {
            let engine = Engine::new();
            answer(&engine, &compiled(&engine, programs::TEN_STEPS), &args);
        })
    }),
    row("W8 fresh", "run", 1, [20, 220], || {
        runs(programs::TEN_STEPS, programs::ten_steps_args())
    }),
    row("W9 start, suspended", "run", 1, [20, 220], || {
        let engine = engine();
        let agent = compiled(&engine, programs::SUSPENDED);
        Box::new(move || {
            let run = engine.run(&agent, Value::Undefined, limits(), Capabilities::none());
            let waits = Box::pin(run)
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            assert!(waits.is_pending(), "the run waits");
        })
    }),
    row("compile a step", "step", 200, [1, 6], || {
        let (engine, text) = (engine(), programs::many_steps(200));
        Box::new(move || drop(compiled(&engine, &text)))
    }),
    row("compile a line of a source", "line", 100, [1, 6], || {
        let (engine, text) = (engine(), programs::hundred_lines());
        Box::new(move || drop(engine.compile_source(text.as_str()).expect("a source")))
    }),
    row("compile a line of its JSON", "line", 100, [1, 6], || {
        let (engine, [texts, _]) = (engine(), hundred_lines_as_json());
        Box::new(move || drop(engine.compile(texts.as_slice()).expect("a program")))
    }),
    row("compile a line of its nodes", "line", 100, [1, 6], || {
        let (engine, [_, nodes]) = (engine(), hundred_lines_as_json());
        Box::new(move || drop(engine.compile(nodes.as_slice()).expect("a program")))
    }),
    row("compile a mixed step", "step", 1_000, [1, 3], || {
        let (engine, text) = (engine(), programs::mixed_steps(1_000));
        Box::new(move || drop(compiled(&engine, &text)))
    }),
    row("check a mixed step", "step", 1_000, [1, 3], || {
        let engine = Engine::builder().lint(true).build();
        let text = programs::mixed_steps(1_000);
        Box::new(move || drop(compiled(&engine, &text)))
    }),
    row("load an artifact", "agent", 1, [5, 55], || {
        let engine = engine();
        let bytes = compiled(&engine, programs::TEN_STEPS)
            .to_bytes(&EncodeOptions::default())
            .expect("an agent that was compiled here");
        Box::new(move || drop(engine.load(&bytes).expect("an artifact of ours")))
    }),
];

const fn row(
    name: &'static str,
    unit: &'static str,
    units: u32,
    rounds: [u32; 2],
    work: fn() -> Work,
) -> Row {
    Row {
        name,
        unit,
        units,
        rounds,
        work,
    }
}

/// Runs of one agent; the timers of deadlines need a runtime's context.
fn runs(program: &str, args: Value) -> Work {
    let engine = engine();
    let agent = compiled(&engine, program);
    Box::new(move || answer(&engine, &agent, &args))
}

fn answer(engine: &Engine, agent: &Agent, args: &Value) {
    let run = engine.run(agent, args.clone(), limits(), Capabilities::none());
    let outcome = tokio::runtime::Handle::current().block_on(run);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
}

/// What the source of a hundred lines stands for: with its expressions as texts, and as
/// nodes.
fn hundred_lines_as_json() -> [Vec<u8>; 2] {
    let engine = engine();
    let agent = engine.compile_source(programs::hundred_lines().as_str());
    let agent = agent.expect("a source");
    let texts = engine.program_json(&agent).expect("its JSON");
    let nodes = agent.source().expect("its tree").into_owned();
    [texts, nodes]
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => {
            for row in ROWS {
                let [few, many] = row.rounds;
                println!("{}\t{}\t{}\t{few}\t{many}", row.name, row.unit, row.units);
            }
            ExitCode::SUCCESS
        }
        [name, rounds] => {
            let row = ROWS.iter().find(|row| row.name == *name);
            let (Some(row), Ok(rounds)) = (row, rounds.parse::<u32>()) else {
                eprintln!("no row {name}, or {rounds} is no count");
                return ExitCode::from(2);
            };
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime");
            let _entered = runtime.enter();
            let mut work = (row.work)();
            for _ in 0..rounds {
                work();
            }
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: instructions [ROW COUNT]");
            ExitCode::from(2)
        }
    }
}
