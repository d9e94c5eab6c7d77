//! The compiled tier: hot numeric loops become machine code.
//!
//! Slices that end in a function are counted. A hot function gets a second fast code, in
//! which the heads of its loops are [`FastOp::LoopHead`]. There iterations are counted, and a
//! background thread compiles a hot loop (`a99-jit`), specialized to the current kinds of its
//! registers. From then on, runs that reach its head with registers of the same kinds enter
//! the machine code.
//!
//! The machine code pays the same prices for the same blocks. If a block cannot be paid, or
//! an instruction has no compiled form, it exits at that point, with every register in the
//! state of the interpreter: slices end, fuel runs out and errors are raised in the
//! interpreter only. Runs in precise mode and runs with their own prices never enter it.
//!
//! - `loops`: loop discovery, and the limits for compilation;
//! - `kinds`: effects of instructions on operands of known kinds;
//! - `lower`: bytecode to regions of `a99-jit`.

mod kinds;
mod loops;
mod lower;
#[cfg(test)]
mod tests;

use crate::heap::Val;
use crate::link::Executable;
use crate::link::fast::FastOp;
use crate::pace::Meter;
use a99_core::costs::CostModel;
use a99_core::program::BlockIdx;
use a99_jit::{Cell, CompiledLoop, MAX_CELLS, compile};
use kinds::{Kind, Kinds};
use loops::{Loop, loops};
use lower::{Asked, Cells, Exit, Left, Lowered, lower};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Slices that end in a function before it is searched for loops.
const HOT_SLICES: u32 = 16;

/// Interpreted instructions that take as long as the compiler's fixed cost, and its cost per
/// instruction of a loop. A loop is compiled once it has run for about as long as compiling
/// takes, so that the machine never does more than twice the work.
const HOT_LOOP: usize = 60_000;
const HOT_INSTRUCTION: usize = 7_000;

/// Maximum concurrent compilations in the process.
const MAX_COMPILING: u32 = 2;

/// Failed compilations after which a loop is given up.
const MAX_ATTEMPTS: u32 = 4;

/// Consecutive failed or unprofitable entries (below [`WORTH`]) after which a loop is given
/// up.
const MAX_VAIN: u32 = 512;

/// Work from which an entry is profitable.
const WORTH: i64 = 256;

/// Maximum compiled loops per program.
const MAX_LOOPS: u32 = 64;

/// Maximum loops per function to consider.
const MAX_LOOPS_OF_FUNCTION: usize = 64;

/// When hot loops are compiled to machine code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CompiledTier {
    /// Never.
    Off,
    /// When a loop is hot: it has run about as long as compiling it takes.
    Hot,
    /// At once, for tests.
    Eager,
}

impl Default for CompiledTier {
    /// [`CompiledTier::Hot`]; in test builds [`CompiledTier::Eager`].
    fn default() -> CompiledTier {
        match cfg!(feature = "jit-eager") {
            true => CompiledTier::Eager,
            false => CompiledTier::Hot,
        }
    }
}

/// The compiled tier of a program.
#[derive(Debug)]
pub(crate) struct Tier {
    when: CompiledTier,
    functions: Box<[Hotness]>,
    /// Number of loops compiled.
    compiled: AtomicU32,
}

/// The heat of a function.
#[derive(Debug, Default)]
struct Hotness {
    slices: AtomicU32,
    code: OnceLock<Option<HotCode>>,
}

/// The second fast code of a function.
#[derive(Debug)]
struct HotCode {
    fast: Box<[FastOp]>,
    loops: Box<[HotLoop]>,
    /// Number of loops that are not given up.
    live: AtomicU32,
}

/// A loop and its machine code.
#[derive(Debug)]
struct HotLoop {
    of: Loop,
    /// Iterations before it is compiled.
    hot: u32,
    turns: AtomicU32,
    attempts: AtomicU32,
    /// Consecutive failed or unprofitable entries.
    vain: AtomicU32,
    is_dead: AtomicBool,
    /// One slot per cost model.
    metered: Slot,
    flat: Slot,
}

/// The place of machine code, compiled or being compiled.
#[derive(Debug, Default)]
struct Slot {
    is_asked: AtomicBool,
    /// `None` inside if the compiler failed. Shared with the compiling thread.
    entry: Arc<OnceLock<Option<Entry>>>,
}

/// The machine code with its entry guards and exits.
#[derive(Debug)]
struct Entry {
    code: CompiledLoop,
    /// The pc of the loop's head.
    head: usize,
    asked: Box<[Asked]>,
    exits: Box<[Exit]>,
    cells: Box<[Cells]>,
    n_cells: usize,
}

impl Tier {
    /// Creates the tier of a program with this number of functions.
    pub(crate) fn new(when: CompiledTier, functions: usize) -> Tier {
        let functions = match when {
            CompiledTier::Off => 0,
            CompiledTier::Hot | CompiledTier::Eager => functions,
        };
        Tier {
            when,
            functions: (0..functions).map(|_| Hotness::default()).collect(),
            compiled: AtomicU32::new(0),
        }
    }
}

impl Executable {
    /// A function's code for the fast loop.
    #[inline]
    pub(crate) fn hot_code(&self, function: usize) -> &[FastOp] {
        match self.tier.functions.get(function) {
            Some(hotness) => match hotness.code.get() {
                Some(Some(hot)) if hot.live.load(Ordering::Relaxed) > 0 => &hot.fast,
                None if self.tier.when == CompiledTier::Eager => self.heat(function, hotness),
                _ => &self.fast[function],
            },
            None => &self.fast[function],
        }
    }

    /// Records that a slice ended in a function.
    pub(crate) fn note_slice(&self, function: usize) {
        let Some(hotness) = self.tier.functions.get(function) else {
            return;
        };
        if count(&hotness.slices) == HOT_SLICES {
            self.heat(function, hotness);
        }
    }

    #[cold]
    fn heat<'a>(&'a self, function: usize, hotness: &'a Hotness) -> &'a [FastOp] {
        let hot = hotness.code.get_or_init(|| self.hot(function));
        match hot {
            Some(hot) => &hot.fast,
            None => &self.fast[function],
        }
    }

    /// Creates the second code of a function with loops.
    fn hot(&self, function: usize) -> Option<HotCode> {
        let f = &self.program().functions[function];
        let mut found = loops(f);
        found.truncate(MAX_LOOPS_OF_FUNCTION);
        if found.is_empty() {
            return None;
        }
        let mut fast = self.fast[function].clone();
        for (number, of) in (0u16..).zip(&found) {
            fast[f.blocks[of.head as usize].start as usize] = FastOp::LoopHead {
                number,
                block: BlockIdx(of.head),
            };
        }
        let loops: Box<[HotLoop]> = found
            .into_iter()
            .map(|of| {
                let instructions = of.instructions(f);
                HotLoop::new(of, instructions)
            })
            .collect();
        let live = AtomicU32::new(loops.len() as u32);
        Some(HotCode { fast, loops, live })
    }

    /// Runs a loop from its head, if it is compiled and the registers pass its guards.
    /// Returns the pc at which the interpreter resumes; `None` means the head, whose block is
    /// not paid then.
    #[inline(never)]
    pub(crate) fn run_loop(
        &self,
        (function, number): (usize, u16),
        regs: &mut [Val],
        meter: &mut Meter,
    ) -> Option<usize> {
        let hot = self.tier.functions.get(function)?.code.get()?.as_ref()?;
        let hot_loop = &hot.loops[usize::from(number)];
        if hot_loop.is_dead.load(Ordering::Relaxed) {
            return None;
        }
        let slot = hot_loop.slot(meter.model);
        let Some(entry) = slot.entry.get() else {
            self.count_turn((function, hot, hot_loop), regs, meter.model);
            return None;
        };
        let Some(entry) = entry else {
            hot.give_up(hot_loop);
            return None;
        };
        let before = meter.slice;
        let left = entry.run(regs, meter);
        if before - meter.slice >= WORTH {
            hot_loop.vain.store(0, Ordering::Relaxed);
        } else if count(&hot_loop.vain) >= MAX_VAIN && self.tier.when == CompiledTier::Hot {
            hot.give_up(hot_loop);
        }
        left.filter(|place| *place != entry.head)
    }

    /// Counts an iteration of a loop, and compiles the loop when it is hot.
    fn count_turn(
        &self,
        (function, hot, hot_loop): (usize, &HotCode, &HotLoop),
        regs: &[Val],
        model: CostModel,
    ) {
        let slot = hot_loop.slot(model);
        if slot.is_asked.load(Ordering::Relaxed) {
            return;
        }
        let is_hot = count(&hot_loop.turns) >= hot_loop.hot;
        if is_hot || self.tier.when == CompiledTier::Eager {
            hot_loop.turns.store(0, Ordering::Relaxed);
            self.compile_loop((function, hot, hot_loop), regs, model);
        }
    }

    #[cold]
    fn compile_loop(
        &self,
        (function, hot, hot_loop): (usize, &HotCode, &HotLoop),
        regs: &[Val],
        model: CostModel,
    ) {
        let slot = hot_loop.slot(model);
        let f = &self.program().functions[function];
        let registers = &regs[..usize::from(f.registers)];
        let kinds: Kinds = registers.iter().map(Kind::of).collect();
        let prices = &self.default_prices(model)[function];
        let Some(lowered) = lower(f, &hot_loop.of, &self.consts, prices, kinds) else {
            // It may succeed with other kinds.
            if count(&hot_loop.attempts) >= MAX_ATTEMPTS {
                hot.give_up(hot_loop);
            }
            return;
        };
        let head = f.blocks[hot_loop.of.head as usize].start as usize;
        if self.tier.compiled.load(Ordering::Relaxed) >= MAX_LOOPS {
            hot.give_up(hot_loop);
        } else if self.tier.when == CompiledTier::Eager {
            slot.is_asked.store(true, Ordering::Relaxed);
            // Another thread may have been first.
            let _ = slot.entry.set(Entry::new(lowered, head));
            count(&self.tier.compiled);
        } else if slot.compile_aside(lowered, head) {
            count(&self.tier.compiled);
        }
    }

    /// Number of loops compiled or being compiled.
    pub fn compiled_loops(&self) -> usize {
        self.tier.compiled.load(Ordering::Relaxed) as usize
    }
}

impl Slot {
    /// Compiles on a background thread while the run continues; false if there is no thread.
    fn compile_aside(&self, lowered: Lowered, head: usize) -> bool {
        static COMPILING: AtomicU32 = AtomicU32::new(0);
        if COMPILING.fetch_add(1, Ordering::Relaxed) >= MAX_COMPILING {
            COMPILING.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        self.is_asked.store(true, Ordering::Relaxed);
        let to = Arc::clone(&self.entry);
        // Not the run's thread: compiling may take longer than a run may continue after a
        // stop.
        let thread = std::thread::Builder::new().name("a99-jit".to_owned());
        let started = thread.spawn(move || {
            let _ = to.set(Entry::new(lowered, head));
            COMPILING.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            // Threads are unsupported, or too many.
            COMPILING.fetch_sub(1, Ordering::Relaxed);
            let _ = self.entry.set(None);
        }
        true
    }
}

/// Increments a counter without synchronization; lost updates are harmless.
fn count(counter: &AtomicU32) -> u32 {
    let n = counter.load(Ordering::Relaxed).saturating_add(1);
    counter.store(n, Ordering::Relaxed);
    n
}

impl HotCode {
    /// Gives a loop up: it is not compiled or entered again.
    fn give_up(&self, hot_loop: &HotLoop) {
        if !hot_loop.is_dead.swap(true, Ordering::Relaxed) {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl HotLoop {
    fn new(of: Loop, instructions: usize) -> HotLoop {
        let hot = HOT_LOOP / instructions.max(1) + HOT_INSTRUCTION;
        HotLoop {
            of,
            hot: hot as u32,
            turns: AtomicU32::new(0),
            attempts: AtomicU32::new(0),
            vain: AtomicU32::new(0),
            is_dead: AtomicBool::new(false),
            metered: Slot::default(),
            flat: Slot::default(),
        }
    }

    fn slot(&self, model: CostModel) -> &Slot {
        match model {
            CostModel::Metered => &self.metered,
            CostModel::Flat => &self.flat,
        }
    }
}

impl Entry {
    /// Compiles a loop; `None` if the compiler fails.
    fn new(lowered: Lowered, head: usize) -> Option<Entry> {
        Some(Entry {
            code: compile(&lowered.region).ok()?,
            head,
            asked: lowered.entry.into(),
            exits: lowered.exits.into(),
            cells: lowered.cells.into(),
            n_cells: lowered.region.cells.len(),
        })
    }

    /// Runs the loop from its head if the registers pass its guards, and returns the pc of
    /// the exit.
    fn run(&self, regs: &mut [Val], meter: &mut Meter) -> Option<usize> {
        // Machine code is entered only with fuel and work left; the interpreter does the
        // rest.
        if meter.slice <= 0 || meter.fuel <= 0 {
            return None;
        }
        let mut cells = [0.0; MAX_CELLS];
        let cells = cells.get_mut(..self.n_cells)?;
        for asked in &self.asked {
            let value = asked.value(&regs[asked.reg.at()])?;
            if let Some(cell) = asked.cell {
                cells[usize::from(cell)] = value;
            }
        }
        let mut paid = a99_jit::Meter {
            fuel: meter.fuel,
            work: meter.slice,
        };
        let exit = &self.exits[self.code.run(cells, &mut paid) as usize];
        meter.fuel = paid.fuel;
        meter.slice = paid.work;
        for (reg, left) in &exit.regs {
            let of_reg = &self.cells[reg.at()];
            if let Some(val) = left.value(of_reg, cells) {
                regs[reg.at()] = val;
            }
        }
        Some(exit.pc as usize)
    }
}

impl Asked {
    /// The cell's value for this register; `None` if the guard fails.
    #[inline]
    fn value(&self, val: &Val) -> Option<f64> {
        match (val, self.kind) {
            (Val::Num(n), Kind::Number) => {
                let is_it = self.number.is_none_or(|one| one.to_bits() == n.to_bits());
                is_it.then_some(*n)
            }
            (Val::Bool(b), Kind::Flag) => Some(f64::from(u8::from(*b))),
            (val, kind) => (kind.is_exact() && Kind::of(val) == kind).then_some(0.0),
        }
    }
}

impl Left {
    /// The register's value; `None` if it is unchanged.
    #[inline]
    fn value(self, of_reg: &Cells, cells: &[f64]) -> Option<Val> {
        let cell = |cell: Option<Cell>| cell.map_or(0.0, |cell| cells[usize::from(cell)]);
        let one = |kind| match kind {
            Kind::Unbound => Some(Val::Unbound),
            Kind::Undefined => Some(Val::Undefined),
            Kind::Null => Some(Val::Null),
            Kind::Flag => Some(Val::Bool(cell(of_reg.flag) != 0.0)),
            Kind::Number => Some(Val::Num(cell(of_reg.number))),
            Kind::Kept | Kind::Mixed => None,
        };
        match self {
            Left::One(kind) => one(kind),
            Left::Tagged => one(Kind::of_tag(cell(of_reg.tag))),
        }
    }
}
