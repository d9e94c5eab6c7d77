//! Memory that a program took of the process, beside what it paid and what the ceiling
//! says.

use super::counting::Counting;
use super::{Genome, Made, Program};
use agent99::{Capabilities, Engine, RunOptions};

/// The heap ceiling of a run whose memory is judged, in bytes.
pub const CEILING: usize = 8 << 20;

/// The process may hold as many times the ceiling: a quarter more than the run's own
/// memory, which is what `docs/security.md` promises.
pub const HELD_FACTOR: f64 = 1.25;

/// Bytes that the process may hold besides: stacks, tables and the error of a run.
pub const HELD_BESIDES: usize = 1 << 20;

/// Bytes that may be allocated for a unit of fuel. A unit buys 50 microseconds, in which
/// a core writes some hundred thousand bytes of fresh memory; the ceiling lets a run hold no
/// more than a few megabytes of them at once.
pub const ALLOCATED_BYTES_A_UNIT: f64 = 1_048_576.0;

/// What a run may allocate before any fuel: its start, and one growth of its buffers to the
/// ceiling.
const ALLOCATED_BESIDES: f64 = (2 * CEILING) as f64;

/// A run that used less fuel is judged by what it held alone: what it allocated was for the
/// copies of its inputs, which are free.
const LEAST_FUEL: f64 = 20.0;

/// Inputs of the fuzz target are no larger.
const LARGEST: usize = 3_000;

/// Fuel of such a run: enough to fill the heap once.
const FUEL: f64 = 400.0;

/// What a run took.
#[derive(Copy, Clone, Debug)]
pub struct Memory {
    /// The most bytes that the process held beyond those before the run.
    pub held: usize,
    /// Bytes that were allocated.
    pub allocated: usize,
    /// Units of fuel that the run used.
    pub fuel: f64,
}

impl Memory {
    /// What was held as a part of what may be.
    #[must_use]
    pub fn held_part(&self) -> f64 {
        self.held as f64 / (CEILING as f64 * HELD_FACTOR + HELD_BESIDES as f64)
    }

    /// Bytes that were allocated for a unit of fuel, beyond what any run may.
    #[must_use]
    pub fn allocated_a_unit(&self) -> f64 {
        if self.fuel < LEAST_FUEL {
            return 0.0;
        }
        (self.allocated as f64 - ALLOCATED_BESIDES).max(0.0) / self.fuel
    }

    /// The larger of both, as a part of its bound.
    #[must_use]
    pub fn part(&self) -> f64 {
        let allocated = self.allocated_a_unit() / ALLOCATED_BYTES_A_UNIT;
        self.held_part().max(allocated)
    }
}

/// Runs a program under [`CEILING`] and counts.
///
/// # Errors
/// The program is refused.
pub fn memory(
    engine: &Engine,
    program: &Program,
    made: &mut Made,
    granted: Capabilities,
    (fuel, timeout_ms): (f64, u64),
    counting: &Counting,
) -> Result<Memory, String> {
    let agent = engine
        .compile(program.ast.to_string())
        .map_err(|refused| refused.to_string())?;
    let mut args = agent99::Map::new();
    for (name, shape) in &program.inputs {
        args.insert(*name, made.get(*shape, program.n));
    }
    let options = RunOptions::new()
        .fuel(fuel)
        .map_err(|error| error.to_string())?
        .timeout_ms(timeout_ms)
        .heap_bytes(CEILING);
    let before = (counting.forget(), counting.total());
    let outcome = engine.run_sync_with(&agent, args, options, granted);
    let held = counting.peak().saturating_sub(before.0);
    Ok(Memory {
        held,
        allocated: counting.total() - before.1,
        fuel: outcome.fuel_used.micro() as f64 / 1e6,
    })
}

/// The fuzz target `cost`: the program that these bytes choose holds and allocates no more
/// than it may. Time is not judged: it differs from run to run.
///
/// # Panics
/// If it does.
pub fn judge(data: &[u8], counting: &Counting) {
    use std::sync::LazyLock;
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::builder().build());
    let genome = Genome::from_bytes(data);
    let program = genome.program(LARGEST);
    let limits = (FUEL, 20_000);
    let mut made = Made::default();
    let granted = Capabilities::none();
    let Ok(found) = memory(&ENGINE, &program, &mut made, granted, limits, counting) else {
        return;
    };
    assert!(
        found.part() <= 1.0,
        "{found:?}, {:.2} of what may be: inputs {:?} of {}, {}",
        found.part(),
        program.inputs,
        program.n,
        program.ast
    );
}
