//! The register machine: pure, resumable, and without any I/O.
//!
//! [`Machine::resume`] runs until the program ends, waits for the host, or has used up a
//! slice of work; the driver does the waiting. The machine holds all state of a run, so that
//! dropping it ends the run.

mod args;
mod bound;
mod call_all;
mod calls;
mod end;
mod errors;
mod exec;
mod help;
mod in_source;
mod inline;
mod json_args;
mod operands;
mod ops;
mod precise;
mod prices;
mod room;
mod saved;
pub(crate) mod start;
mod suspend;
mod tracing;

use crate::atom::{CancelFlag, HostCall, Locals};
use crate::heap::{Heap, Val};
use crate::link::{Executable, Prices};
use crate::native::{Cx, Fault, Host, Meter, StopReason, Thrown};
use crate::options::{self, RunOptions};
use crate::pace::Mark;
use a99_core::costs::CostModel;
use a99_core::costs::Formula;
use a99_core::fuel::Fuel;
use a99_core::program::{Count, Function, FunctionIdx, NamesIdx, Program, Reg, SiteIdx};
use a99_core::text::Text;
use a99_core::value::Value;
use errors::OUT_OF_FUEL;
use std::collections::HashMap;
use std::sync::Arc;
use tracing::Tracer;

pub use call_all::{PlacedRequest, Requests};
pub(crate) use end::release;
use end::{End, Failed};
pub(crate) use saved::{RestoringHost, save_prepared};
pub(crate) use suspend::CodePlace;

/// Number of registers that an instruction can address.
const WINDOW: usize = 256;

/// Maximum nesting of `callLocal` (language section 2.1).
const MAX_HELPER_DEPTH: u32 = 256;

/// A program within a run: the main one, or one loaded at run time.
struct LoadedProgram {
    exe: Arc<Executable>,
    /// Whether keys, shapes and constants are those of the heap's statics.
    main: bool,
    /// Prices under the run's options, if these change any.
    own_prices: Option<Arc<Prices>>,
    /// The values of the argument keys.
    args: Vec<Val>,
}

impl LoadedProgram {
    /// The prices of its blocks.
    #[inline]
    fn prices(&self, model: CostModel) -> &Prices {
        match &self.own_prices {
            Some(own) => own,
            None => self.exe.default_prices(model),
        }
    }
}

/// An abort, regardless of the deadline.
fn aborted(host: &dyn Host) -> Option<StopReason> {
    host.is_aborted().then_some(StopReason::Aborted)
}

/// The role of a frame for its caller.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum FrameKind {
    /// The program itself.
    Main,
    /// `callLocal`.
    Helper,
    /// `runCode`.
    Code,
    /// Inline `agentRun`.
    Agent,
}

/// An activation of a function.
#[derive(Copy, Clone, Debug)]
struct Frame {
    program: u32,
    function: u32,
    kind: FrameKind,
    /// Bytes counted in the heap for the frame: registers, slots, and a separately loaded
    /// program.
    counted: usize,
    /// First register on the stack.
    base: u32,
    /// The instruction to run next.
    pc: u32,
    /// The caller's register for the result.
    dst: Reg,
    /// Whether charges are made per instruction: then nothing is prepaid.
    precise: bool,
    /// Nesting depth of helpers.
    helper_depth: u32,
    /// Nesting depth of inline programs.
    agent_depth: u32,
}

/// An error on its way to a handler.
struct Caught {
    message: Vec<u8>,
    op: Text,
}

/// Why the machine suspended.
#[derive(Debug)]
pub enum Step {
    /// A slice of work is done; resume after yielding to others.
    Yield,
    /// An asynchronous call; answer with [`Machine::deliver`].
    Call(Request),
    /// Concurrent calls; answer with [`Machine::deliver_all`].
    CallAll(Box<Requests>),
    /// A program to load; answer with [`Machine::load`].
    Load(Box<LoadRequest>),
    /// The run has ended.
    Done,
}

/// An asynchronous call of the top frame's program ([`Machine::atom_of`]).
#[derive(Clone, Debug)]
pub struct Request {
    /// The call with its inputs.
    pub call: HostCall,
    /// The program's op that it calls.
    op: u32,
}

/// A program to compile.
#[derive(Debug)]
pub struct LoadRequest {
    /// The program as data.
    pub program: Value,
    /// The accessible variables of the caller; true for constants.
    pub outer: Vec<(Text, bool)>,
    /// Bytes that the run has left: the compiler stops before it exceeds them.
    pub room: usize,
}

/// A pending call. It owns no memory, so that the common case needs no cleanup.
#[derive(Copy, Clone)]
struct WaitingCall {
    dst: Reg,
    input: Reg,
    /// Bytes of its inputs, which count against the heap until it ends.
    lent: usize,
    /// The formula that prices the answer.
    price: Option<Formula>,
}

/// Other pending requests of the machine.
enum Waiting {
    All(Box<call_all::UnderWay>),
    Load(Box<inline::Pending>),
}

/// The state of a run.
pub struct Machine {
    heap: Heap,
    meter: Meter,
    stack: Vec<Val>,
    frames: Vec<Frame>,
    programs: Vec<LoadedProgram>,
    budget: i64,
    caught: Option<Box<Caught>>,
    memo: HashMap<Box<[u8]>, Val>,
    locals: Arc<Locals>,
    locals_counted: usize,
    tracer: Option<Box<Tracer>>,
    /// Number of calls made, if the run has no account.
    calls: u64,
    call: Option<WaitingCall>,
    /// A spare cancellation flag.
    flag: Option<CancelFlag>,
    /// Fuel that the top frame had prepaid at the last call.
    prepaid: Option<suspend::Prepaid>,
    waiting: Option<Waiting>,
    /// Calls for the next `CallAll`.
    prepared: Vec<call_all::Prepared>,
    options: Arc<RunOptions>,
    outcome: Option<End>,
    /// The instruction that ran out of memory and was retried; a later execution of it has
    /// another mark.
    retried: Option<(usize, u32)>,
    /// Whether the next instruction runs again, with its charges already made.
    skip_charges: bool,
    /// Nanoseconds of the last compaction that no allocation has paid for.
    unpaid: usize,
    /// The step whose charge failed.
    faulting_step: Option<u32>,
    /// Whether the first instruction was reached.
    started: bool,
    /// Whether the result stays in the heap.
    keeps: bool,
    kept: Val,
}

impl Default for Machine {
    fn default() -> Self {
        Machine::over(Heap::default())
    }
}

impl Machine {
    /// Creates a machine with this heap, for any run.
    pub(crate) fn over(heap: Heap) -> Machine {
        Machine {
            heap,
            meter: Meter::new(0, Default::default()),
            stack: Vec::new(),
            frames: Vec::new(),
            programs: Vec::new(),
            budget: 0,
            caught: None,
            memo: HashMap::new(),
            locals: Arc::default(),
            locals_counted: 0,
            tracer: None,
            calls: 0,
            call: None,
            flag: None,
            prepaid: None,
            waiting: None,
            prepared: Vec::new(),
            options: options::of_no_run(),
            outcome: None,
            retried: None,
            skip_charges: false,
            unpaid: 0,
            faulting_step: None,
            started: false,
            keeps: false,
            kept: Val::Undefined,
        }
    }
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("frames", &self.frames.len())
            .finish_non_exhaustive()
    }
}

/// Why the instruction loop exited.
enum Exit {
    /// The frame's function ended with this value.
    Return(Val),
    /// An instruction did not complete; `before` is the meter's state before it.
    Fault { fault: Fault, before: Mark },
    /// A function of the program is called.
    Call {
        dst: Reg,
        base: Reg,
        callee: FunctionIdx,
    },
    /// An asynchronous atom is called.
    Host {
        dst: Reg,
        base: Reg,
        n: Count,
        site: SiteIdx,
    },
    /// A call is prepared.
    Prepare {
        dst: Reg,
        base: Reg,
        n: Count,
        site: SiteIdx,
    },
    /// The prepared calls are made.
    CallAll { dst: Reg, arr: Reg, limit: Reg },
    /// A program runs inline.
    Code {
        dst: Reg,
        base: Reg,
        names: NamesIdx,
    },
    /// A sub-agent runs.
    Agent { dst: Reg, base: Reg, site: SiteIdx },
    /// A slice of work is done.
    Slice,
    /// The block must run instruction by instruction.
    Precise,
    /// Whole blocks can be paid again.
    Fast,
}

impl Machine {
    fn frame(&self) -> Frame {
        *self.frames.last().expect("a running machine has a frame")
    }

    fn program_of(&self, frame: Frame) -> (&Arc<Executable>, &Arc<Program>, &Function) {
        let exe = &self.programs[frame.program as usize].exe;
        let program = exe.program();
        (exe, program, &program.functions[frame.function as usize])
    }

    /// Fuel left, in micro-units.
    pub fn fuel_left(&self) -> Fuel {
        Fuel::from_micro(self.meter.fuel.max(0))
    }

    pub(crate) fn fuel_used(&self) -> Fuel {
        Fuel::from_micro(self.budget.saturating_sub(self.meter.fuel))
    }

    /// Bytes that this run holds on the host, for sizing.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Machine>()
            + self.heap.capacity_bytes()
            + self.heap.left_bytes()
            + self.memo.capacity() * start::MEMO_ENTRY_BYTES
            + self.stack.capacity() * size_of::<Val>()
            + self.frames.capacity() * size_of::<Frame>()
            + self.programs.capacity() * size_of::<LoadedProgram>()
    }

    /// Part of [`Machine::memory_bytes`] in the heap's buffers, which are emptied for free.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.heap.buffer_bytes()
    }

    /// Bytes of a program's text kept for another run of it.
    pub(crate) fn program_bytes(&self) -> usize {
        self.heap.program_bytes()
    }

    /// Stops the run from outside: abort or deadline.
    pub fn stop(&mut self, reason: StopReason) {
        if self.outcome.is_none() {
            if self.started {
                self.settle_fuel();
                self.charge_used(self.locals.take_charges());
            }
            self.fail_stopped(reason);
        }
    }

    /// Runs until the machine needs the host.
    pub fn resume(&mut self, host: &dyn Host) -> Step {
        // The deadline is checked only after the run has started: a budget of zero ends by
        // fuel.
        let stopped = match self.started {
            true => host.stop(),
            false => aborted(host),
        };
        self.resume_unless(stopped, host)
    }

    /// Resumes after an immediate answer, without a check of the deadline: it was checked at
    /// the call, and is checked again after a slice or at the next call.
    pub(crate) fn resume_answered(&mut self, host: &dyn Host) -> Step {
        self.resume_unless(aborted(host), host)
    }

    fn resume_unless(&mut self, stopped: Option<StopReason>, host: &dyn Host) -> Step {
        if self.outcome.is_some() {
            return Step::Done;
        }
        if let Some(reason) = stopped {
            self.stop(reason);
            return Step::Done;
        }
        self.started = true;
        self.grow_stack();
        while self.outcome.is_none() {
            let precise = self.frame().precise;
            let exit = if precise {
                self.run_precise(host)
            } else {
                self.run_fast(host)
            };
            // An instruction that reached its call may still run out of fuel.
            if matches!(
                exit,
                Exit::Precise | Exit::Fast | Exit::Slice | Exit::Return(_)
            ) {
                self.retried = None;
            }
            match exit {
                Exit::Precise => self.set_precise(true),
                Exit::Fast => self.set_precise(false),
                Exit::Slice => {
                    // At a block's head nothing is prepaid.
                    self.set_precise(true);
                    self.new_slice();
                    #[cfg(feature = "jit")]
                    self.note_slice();
                    if let Some(reason) = host.stop() {
                        self.stop(reason);
                    } else {
                        let full = self.heap.wants_compaction();
                        match full.then(|| self.compact(false, host)) {
                            Some(Err(reason)) => self.stop(reason),
                            Some(Ok(())) | None => return Step::Yield,
                        }
                    }
                }
                Exit::Return(val) => self.leave(val, host),
                Exit::Fault { fault, before } => self.fault(fault, before, host),
                Exit::Call { dst, base, callee } => {
                    let before = self.meter.mark();
                    let exe = self.program_of(self.frame()).0.clone();
                    if let Err(fault) = self.enter_helper(&exe, dst, base, callee) {
                        self.fault(fault, before, host);
                    }
                }
                Exit::Host { dst, base, n, site } => {
                    let before = self.meter.mark();
                    match self.host_call(dst, base, n, site, host) {
                        Ok(request) => return Step::Call(request),
                        Err(fault) => self.fault(fault, before, host),
                    }
                }
                Exit::Prepare { dst, base, n, site } => {
                    let before = self.meter.mark();
                    match self.prepare_call(base, n, site, host) {
                        Ok(val) => self.answer(dst, val),
                        Err(fault) => self.fault(fault, before, host),
                    }
                }
                Exit::CallAll { dst, arr, limit } => {
                    let before = self.meter.mark();
                    match self.call_all((dst, arr, limit), host) {
                        Ok(Some(requests)) => return Step::CallAll(requests),
                        Ok(None) => {}
                        Err(fault) => self.fault(fault, before, host),
                    }
                }
                Exit::Code { dst, base, names } => {
                    self.refund();
                    let before = self.meter.mark();
                    match self.run_code(dst, base, names, host) {
                        Ok(step) => return step,
                        Err(fault) => self.fault(fault, before, host),
                    }
                }
                Exit::Agent { dst, base, site } => {
                    self.refund();
                    let before = self.meter.mark();
                    match self.agent_run(dst, base, site, host) {
                        Ok(step) => return step,
                        Err(fault) => self.fault(fault, before, host),
                    }
                }
            }
        }
        Step::Done
    }

    /// Reports the end of a slice to the compiled tier.
    #[cfg(feature = "jit")]
    fn note_slice(&self) {
        let frame = self.frame();
        let loaded = &self.programs[frame.program as usize];
        if self.tracer.is_none() && loaded.own_prices.is_none() {
            loaded.exe.note_slice(frame.function as usize);
        }
    }

    fn set_precise(&mut self, precise: bool) {
        if let Some(frame) = self.frames.last_mut() {
            frame.precise = precise;
        }
    }
}

/// Stack size of a function: its registers, or with slots, a whole window and the slots after
/// it.
fn frame_size(f: &Function) -> usize {
    match f.slots {
        0 => f.registers as usize,
        slots => WINDOW + slots as usize,
    }
}

/// Reserves the stack of a frame and clears it.
#[inline(always)]
fn clear_frame(stack: &mut Vec<Val>, base: usize, size: usize) -> Result<(), Fault> {
    let need = base + size + WINDOW;
    if stack.len() < need {
        stack
            .try_reserve_exact(need - stack.len())
            .map_err(|_| crate::heap::Oom {
                wanted: need * size_of::<Val>(),
            })?;
        stack.resize(need, Val::Unbound);
    }
    stack[base..base + size].fill(Val::Unbound);
    Ok(())
}

/// Borrows the parts of the machine that an instruction may access.
fn cx<'a>(heap: &'a mut Heap, meter: &'a mut Meter, host: &'a dyn Host) -> Cx<'a> {
    Cx { heap, meter, host }
}

/// Creates a thrown error.
fn thrown(code: a99_core::error::ErrorCode, message: impl Into<Vec<u8>>) -> Fault {
    Fault::Throw(Box::new(Thrown {
        code,
        host_code: None,
        message: message.into(),
        help: None,
        details: None,
        op: None,
    }))
}
