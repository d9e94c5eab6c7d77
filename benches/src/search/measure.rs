//! Measures a program's CPU time or process memory for its fuel.

use super::{FINE, Goal};
use crate::rates::capabilities;
use a99_testkit::cost::{Counting, Genome, HELD_FACTOR, Made, Program, SIZES, memory};
use a99_xml::XmlParser;
use agent99::{Agent, Capabilities, Engine, RunOptions};
use cpu_time::ThreadTime;
use std::collections::HashMap;

/// Longest time of a run.
const TIMEOUT_MS: u64 = 10_000;

/// Least fuel of a run; large inputs get more, because their copies are paid.
const FUEL: f64 = 100.0;
const FUEL_PER_SIZE: f64 = 0.02;

/// A run whose loop used less fuel is ignored: start-up would dominate.
const LEAST_FUEL: f64 = 20.0;

/// A run is also ignored if its loop took less than this many times the start-up. Start-up is free;
/// so is a first garbage collection among the inputs, which copies them all. The price of the
/// inputs covers a program that soon fails.
const LEAST_TIMES: f64 = 2.0;

/// Fuel of a run whose memory is measured: enough to fill the ceiling twice.
const FUEL_OF_MEMORY: f64 = 1_000.0;

/// Largest inputs of such a run: larger ones would dominate its memory.
const LARGEST_OF_MEMORY: usize = 30_000;

/// Of values above this size, at most [`FEW`] are kept.
const LARGE: usize = 30_000;
const FEW: usize = 12;

/// Measurement of a program.
#[derive(Copy, Clone, Debug, Default)]
pub struct Figure {
    /// The figure as a part of its bound.
    pub part: f64,
    /// Microseconds of CPU time for a unit of fuel, or bytes held.
    pub value: f64,
    /// Bytes allocated for a unit of fuel, if memory is measured.
    pub allocated: f64,
    /// Used units of fuel.
    pub fuel: f64,
}

/// Measuring engine.
#[derive(Debug)]
pub(crate) struct Meter {
    engine: Engine,
    goal: Goal,
    counting: &'static Counting,
    made: Made,
    large: Made,
    /// Number of values in `large`.
    few: usize,
    /// Time and fuel of programs whose loop has no turns.
    idle: HashMap<String, (f64, f64)>,
}

impl Meter {
    pub(crate) fn new(goal: Goal, counting: &'static Counting) -> Meter {
        Meter {
            engine: Engine::builder().build(),
            goal,
            counting,
            made: Made::default(),
            large: Made::default(),
            few: 0,
            idle: HashMap::new(),
        }
    }

    pub(crate) fn program(&self, genome: &Genome) -> Program {
        genome.program(match self.goal {
            Goal::Time => SIZES[SIZES.len() - 1],
            Goal::Bytes => LARGEST_OF_MEMORY,
        })
    }

    /// The smallest of several measurements; `None` if the program is refused or too short.
    pub(crate) fn least(&mut self, genome: &Genome, times: usize) -> Option<Figure> {
        let program = self.program(genome);
        if program.n > LARGE {
            self.few += program.inputs.len();
            if self.few > FEW {
                self.large = Made::default();
                self.few = program.inputs.len();
            }
        }
        match self.goal {
            Goal::Time => self.time(&program, times),
            Goal::Bytes => self.bytes(&program),
        }
    }

    fn time(&mut self, program: &Program, times: usize) -> Option<Figure> {
        let key = program.idle.to_string() + &format!("{:?} {}", program.inputs, program.n);
        let agent = self.engine.compile(program.ast.to_string()).ok()?;
        let (idle_nanos, idle_fuel) = match self.idle.get(&key) {
            Some(idle) => *idle,
            None => {
                let idle = self.engine.compile(program.idle.to_string()).ok()?;
                let runs = (0..3).filter_map(|_| self.once(&idle, program));
                let least = runs.min_by(|a, b| a.0.total_cmp(&b.0))?;
                self.idle.insert(key, least);
                least
            }
        };
        let mut least: Option<Figure> = None;
        for _ in 0..times {
            let (nanos, fuel) = self.once(&agent, program)?;
            let (nanos, fuel) = (nanos - idle_nanos, fuel - idle_fuel);
            if fuel < LEAST_FUEL || nanos < idle_nanos * LEAST_TIMES {
                return None;
            }
            let value = nanos / 1_000.0 / fuel;
            if least.is_none_or(|least| value < least.value) {
                least = Some(Figure {
                    part: value / crate::rates::BOUND_US,
                    value,
                    allocated: 0.0,
                    fuel,
                });
            }
            // Not worth measuring again.
            if least.is_some_and(|least| least.part < FINE) {
                break;
            }
        }
        least
    }

    /// CPU time and fuel of a run.
    fn once(&mut self, agent: &Agent, program: &Program) -> Option<(f64, f64)> {
        let mut args = agent99::Map::new();
        let made = match program.n > LARGE {
            true => &mut self.large,
            false => &mut self.made,
        };
        for (name, shape) in &program.inputs {
            args.insert(*name, made.get(*shape, program.n));
        }
        let fuel = FUEL.max(program.n as f64 * FUEL_PER_SIZE);
        let options = RunOptions::new().fuel(fuel).ok()?.timeout_ms(TIMEOUT_MS);
        let granted = capabilities();
        let start = ThreadTime::now();
        let outcome = self.engine.run_sync_with(agent, args, options, granted);
        let nanos = start.elapsed().as_nanos() as f64;
        Some((nanos, outcome.fuel_used.micro() as f64 / 1e6))
    }

    /// One measurement suffices: memory is the same each time. No store is granted, because the
    /// host owns its memory.
    fn bytes(&mut self, program: &Program) -> Option<Figure> {
        let granted = Capabilities::none().with_xml(XmlParser::new());
        let limits = (FUEL_OF_MEMORY, TIMEOUT_MS);
        let (engine, made) = (&self.engine, &mut self.made);
        let found = memory(engine, program, made, granted, limits, self.counting).ok()?;
        Some(Figure {
            part: found.part(),
            value: found.held_part() * HELD_FACTOR,
            allocated: found.allocated_a_unit(),
            fuel: found.fuel,
        })
    }
}
