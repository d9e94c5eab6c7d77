//! Judges a program's memory against its fuel and the ceiling.

use super::counting::Counting;
use super::{Genome, Made, Program};
use agent99::{Capabilities, Engine, RunOptions};

/// Heap ceiling of judged runs in bytes.
pub const CEILING: usize = 8 << 20;

/// Memory of the process in ceilings: a quarter more than the run's own memory, as
/// `docs/security.md` promises.
pub const HELD_FACTOR: f64 = 1.25;

/// Additional bytes of the process: stacks, tables and the error of a run.
pub const HELD_BESIDES: usize = 1 << 20;

/// Bytes that a unit of fuel may allocate. A unit buys 50 microseconds, in which a core writes
/// some hundred thousand bytes of fresh memory; the ceiling lets a run hold only a few
/// megabytes of them at once.
pub const ALLOCATED_BYTES_A_UNIT: f64 = 1_048_576.0;

/// Bytes that a run may allocate without fuel: its start, and one growth of its buffers to the
/// ceiling.
const ALLOCATED_BESIDES: f64 = (2 * CEILING) as f64;

/// Least fuel for judging allocations. Below it, allocations are mostly copies of the inputs,
/// which are free.
const LEAST_FUEL: f64 = 20.0;

/// Largest inputs of the fuzz target.
const LARGEST: usize = 3_000;

/// Fuel of a fuzz run: enough to fill the heap once.
const FUEL: f64 = 400.0;

/// Memory and fuel of a run.
#[derive(Copy, Clone, Debug)]
pub struct Memory {
    /// Peak bytes of the process above those before the run.
    pub held: usize,
    /// Allocated bytes.
    pub allocated: usize,
    /// Units of fuel that the run used.
    pub fuel: f64,
}

impl Memory {
    /// Peak memory as a fraction of its bound.
    #[must_use]
    pub fn held_part(&self) -> f64 {
        self.held as f64 / (CEILING as f64 * HELD_FACTOR + HELD_BESIDES as f64)
    }

    /// Bytes allocated for a unit of fuel, above the free amount.
    #[must_use]
    pub fn allocated_a_unit(&self) -> f64 {
        if self.fuel < LEAST_FUEL {
            return 0.0;
        }
        (self.allocated as f64 - ALLOCATED_BESIDES).max(0.0) / self.fuel
    }

    /// The larger of both fractions.
    #[must_use]
    pub fn part(&self) -> f64 {
        let allocated = self.allocated_a_unit() / ALLOCATED_BYTES_A_UNIT;
        self.held_part().max(allocated)
    }
}

/// Runs a program under [`CEILING`] and measures its memory.
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

/// The fuzz target `cost`: the program of these bytes must hold and allocate at most its
/// bounds. Time is not judged: it differs from run to run.
///
/// # Panics
/// If a bound is exceeded.
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
