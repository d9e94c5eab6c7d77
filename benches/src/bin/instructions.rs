//! Instruction counting: repeats the work of a benchmark row a given number of times, so that
//! callgrind can count the cost of one repetition.
//!
//! `instructions` lists the rows: name, unit, units of a round, and two counts of rounds.
//! `instructions ROW COUNT` does the work of a row COUNT times. `cargo xtask bench --instr` runs
//! each row with both counts under callgrind. The difference, divided by the units between them,
//! excludes set-up. Work that is measured net of a baseline runs the baseline in the opposite
//! counts, so that the difference excludes it, too.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::work::TIMED;
use a99_benches::{compiled, engine, programs};
use a99_benches_work::{Size, Task, list};
use agent99::Engine;
use agent99::artifact::EncodeOptions;
use std::process::ExitCode;

/// One row of the benchmark.
struct Row {
    /// Name in the list of work that compares engines.
    name: &'static str,
    /// The operation that the figure is for.
    unit: &'static str,
    /// Rounds of the smaller and of the larger run.
    rounds: [u32; 2],
    /// Sets up the work.
    task: fn(Size) -> Task,
}

/// Work of this engine alone: name, unit, set-up.
type Own = (&'static str, &'static str, fn(Size) -> Task);

const OWN: &[Own] = &[
    ("compile a step", "step", |_| {
        let (engine, text) = (engine(), programs::many_steps(200));
        Task::all(200_u32, move || drop(compiled(&engine, &text)))
    }),
    ("compile a line of a source", "line", |_| {
        let (engine, text) = (engine(), programs::hundred_lines());
        Task::all(100_u32, move || {
            drop(engine.compile_source(text.as_str()).expect("a source"));
        })
    }),
    ("compile a line of its JSON", "line", |_| {
        let (engine, [texts, _]) = (engine(), hundred_lines_as_json());
        Task::all(100_u32, move || {
            drop(engine.compile(texts.as_slice()).expect("a program"));
        })
    }),
    ("compile a line of its nodes", "line", |_| {
        let (engine, [_, nodes]) = (engine(), hundred_lines_as_json());
        Task::all(100_u32, move || {
            drop(engine.compile(nodes.as_slice()).expect("a program"));
        })
    }),
    ("compile a mixed step", "step", |_| {
        let (engine, text) = (engine(), programs::mixed_steps(1_000));
        Task::all(1_000_u32, move || drop(compiled(&engine, &text)))
    }),
    ("check a mixed step", "step", |_| {
        let engine = Engine::builder().lint(true).build();
        let text = programs::mixed_steps(1_000);
        Task::all(1_000_u32, move || drop(compiled(&engine, &text)))
    }),
    ("load an artifact", "agent", |size| {
        let engine = engine();
        let bytes = compiled(&engine, programs::TEN_STEPS)
            .to_bytes(&EncodeOptions::default())
            .expect("an agent that was compiled here");
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                drop(engine.load(&bytes).expect("an artifact of ours"));
            }
        })
    }),
];

/// All rows: the work that compares engines, then our own.
fn rows() -> impl Iterator<Item = Row> {
    let work = TIMED.iter().map(|(work, task)| Row {
        name: work.name,
        unit: work.per,
        rounds: [1, 6],
        task: *task,
    });
    let own = OWN.iter().map(|(name, unit, task)| Row {
        name,
        unit,
        rounds: [1, 3],
        task: *task,
    });
    // Only a part of it counts, and the rest cannot be done alone.
    work.chain(own)
        .filter(|row| row.name != list::W9_RESUME.name)
}

/// The JSON of the source of a hundred lines: with its expressions as texts, and as nodes.
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
            for row in rows() {
                let ([few, many], units) = (row.rounds, (row.task)(Size::COUNTED).operations());
                println!("{}\t{}\t{units}\t{few}\t{many}", row.name, row.unit);
            }
            ExitCode::SUCCESS
        }
        [name, rounds] => {
            let row = rows().find(|row| row.name == *name);
            let (Some(row), Ok(rounds)) = (row, rounds.parse::<u32>()) else {
                eprintln!("no row {name}, or {rounds} is no count");
                return ExitCode::from(2);
            };
            // The larger run does less of the rest, so that the difference excludes it.
            let [few, many] = row.rounds;
            (row.task)(Size::COUNTED).repeat(rounds, (few + many).saturating_sub(rounds));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: instructions [ROW COUNT]");
            ExitCode::from(2)
        }
    }
}
