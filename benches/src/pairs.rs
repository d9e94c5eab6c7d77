//! Paired measurement: two nearly equal operations in turns in one process, so that other load on
//! the machine affects both.

use crate::{engine, programs};
use agent99::Engine;
use cpu_time::ProcessTime;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// One execution of an operation.
pub type Work = Box<dyn FnMut()>;

/// Two nearly equal operations; the measurement shows how much more the first costs.
pub struct Pair {
    /// Name of the pair.
    pub name: &'static str,
    /// Sets up both operations.
    make: fn() -> [Work; 2],
    /// Names of the two operations.
    pub sides: [&'static str; 2],
}

/// All pairs.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "hundred lines",
        make: hundred_lines,
        sides: ["source", "json"],
    },
    Pair {
        name: "mixed steps",
        make: mixed_steps,
        sides: ["checked", "compiled"],
    },
];

/// Steps of the program that is compiled with and without the lint pass.
const STEPS: usize = 1_000;

/// A source, and the JSON that it compiles to.
fn hundred_lines() -> [Work; 2] {
    let source = programs::hundred_lines();
    let [of_source, of_json] = [engine(), engine()];
    let agent = of_source.compile_source(source.as_str());
    let json = of_source.program_json(&agent.expect("a good source"));
    let json = json.expect("its JSON");
    [
        Box::new(move || {
            let agent = of_source.compile_source(source.as_str());
            drop(agent.expect("a good source"));
        }),
        Box::new(move || drop(of_json.compile(json.as_slice()).expect("a good program"))),
    ]
}

/// A program with and without the lint pass.
fn mixed_steps() -> [Work; 2] {
    [true, false].map(|lint| -> Work {
        let engine = Engine::builder().lint(lint).build();
        let text = programs::mixed_steps(STEPS);
        Box::new(move || drop(engine.compile(text.as_str()).expect("a good program")))
    })
}

/// Times of one side, in microseconds.
#[derive(Copy, Clone, Debug)]
pub struct Times {
    /// Minimum.
    pub least: f64,
    /// Median.
    pub median: f64,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        let at = |index: usize| {
            times
                .get(index)
                .map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        Times {
            least: at(0),
            median: at(times.len() / 2),
        }
    }

    fn json(self) -> Value {
        let tenths = |us: f64| (us * 10.0).round() / 10.0;
        json!({"min": tenths(self.least), "median": tenths(self.median)})
    }
}

/// Measurement of a pair.
pub struct Measured {
    /// The measured pair.
    pub pair: &'static Pair,
    /// Rounds of each side.
    pub rounds: usize,
    /// Wall-clock time.
    pub wall: [Times; 2],
    /// CPU time of all threads of the process.
    pub cpu: [Times; 2],
}

impl Pair {
    /// Sets up both sides.
    #[must_use]
    pub fn work(&self) -> [Work; 2] {
        (self.make)()
    }

    /// Measures both sides in turns for `rounds` rounds, after one warm-up round.
    #[must_use]
    pub fn measure(&'static self, rounds: usize) -> Measured {
        let mut sides = self.work();
        let mut wall = [Vec::new(), Vec::new()];
        let mut cpu = [Vec::new(), Vec::new()];
        for round in 0..=rounds {
            for (at, work) in sides.iter_mut().enumerate() {
                let (begin, spent) = (Instant::now(), ProcessTime::now());
                work();
                let (spent, took) = (spent.elapsed(), begin.elapsed());
                if round > 0 {
                    wall[at].push(took);
                    cpu[at].push(spent);
                }
            }
        }
        Measured {
            pair: self,
            rounds,
            wall: wall.map(Times::of),
            cpu: cpu.map(Times::of),
        }
    }
}

/// Ratio of the first to the second, and their difference.
fn compared([first, second]: [f64; 2]) -> (f64, f64) {
    (first / second, first - second)
}

impl Measured {
    /// Figures for people, in microseconds.
    #[must_use]
    pub fn text(&self) -> String {
        let Measured { pair, rounds, .. } = self;
        let mut lines = vec![format!(
            "{:<28}{:>12}{:>12}{:>12}{:>12}",
            format!("{}, {rounds} rounds", pair.name),
            "wall min",
            "median",
            "CPU min",
            "median"
        )];
        let columns = [
            self.wall.map(|times| times.least),
            self.wall.map(|times| times.median),
            self.cpu.map(|times| times.least),
            self.cpu.map(|times| times.median),
        ];
        let mut row = |name: &str, cells: [f64; 4], places: usize| {
            let cells = cells.map(|cell| format!("{cell:>12.places$}"));
            lines.push(format!("  {name:<26}{}", cells.concat()));
        };
        for (at, side) in pair.sides.iter().enumerate() {
            row(&format!("{side}, us"), columns.map(|both| both[at]), 1);
        }
        row("ratio", columns.map(|both| compared(both).0), 2);
        row("difference, us", columns.map(|both| compared(both).1), 1);
        lines.join("\n")
    }

    /// Figures as JSON: for each clock both sides, their ratio and difference, by the minima and by
    /// the medians.
    #[must_use]
    pub fn json(&self) -> Value {
        let [first, second] = self.pair.sides;
        let clock = |[a, b]: [Times; 2]| {
            let least = compared([a.least, b.least]);
            let median = compared([a.median, b.median]);
            let rounded = |number: f64, by: f64| (number * by).round() / by;
            json!({
                first: a.json(),
                second: b.json(),
                "ratio": {"min": rounded(least.0, 1e3), "median": rounded(median.0, 1e3)},
                "difference": {"min": rounded(least.1, 10.0), "median": rounded(median.1, 10.0)},
            })
        };
        json!({
            "name": self.pair.name,
            "rounds": self.rounds,
            "unit": "us",
            "wall": clock(self.wall),
            "cpu": clock(self.cpu),
        })
    }
}
