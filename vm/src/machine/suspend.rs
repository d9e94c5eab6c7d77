//! A suspended machine, seen from outside: its memory, its place, and additional fuel.

use super::precise::PRECISE_WORK;
use super::{Machine, Request, WINDOW, frame_size};
use crate::atom::AtomDef;
use crate::heap::Val;
use crate::link::Executable;
use crate::options::RunOptions;
use a99_core::fuel::Fuel;
use a99_core::program::{ConstIdx, Op, Program};
use std::cell::RefCell;
use std::sync::Arc;

/// A larger stack is freed when its run waits.
pub(super) const MAX_SPARE_STACK: usize = 4 * WINDOW;

thread_local! {
    /// The stack of the last suspended run of this thread, for the next run that resumes
    /// here. Its content belongs to another run. No register is read before its own run has
    /// written it, and compaction visits live registers only.
    static SPARE: RefCell<Vec<Val>> = const { RefCell::new(Vec::new()) };
}

/// A place in the code of a program.
#[derive(Clone, Debug)]
pub(crate) struct CodePlace {
    exe: Arc<Executable>,
    function: u32,
    pc: u32,
}

impl CodePlace {
    pub(crate) fn executable(&self) -> &Arc<Executable> {
        &self.exe
    }

    /// Copies a place in the same program.
    pub(crate) fn moved_to(&mut self, other: &CodePlace) {
        (self.function, self.pc) = (other.function, other.pc);
    }

    /// The op of the step at this place.
    pub(crate) fn op(&self) -> Option<String> {
        let program = self.exe.program();
        let function = program.functions.get(self.function as usize)?;
        let step = function.steps.get(self.step()? as usize)?;
        let name = program.text(program.ops[step.op as usize].name);
        Some(a99_core::text::wtf8_to_string_lossy(name).into_owned())
    }

    pub(crate) fn function(&self) -> u32 {
        self.function
    }

    /// The number of the step in its function. What a function does first belongs to its first.
    pub(crate) fn step(&self) -> Option<u32> {
        let function = self.exe.program().functions.get(self.function as usize)?;
        Program::step_at(function, self.pc).or(Some(0).filter(|_| !function.steps.is_empty()))
    }

    /// The name of the function, if it is a helper.
    pub(crate) fn helper(&self) -> Option<String> {
        let program = self.exe.program();
        let function = program.functions.get(self.function as usize)?;
        let name = program.const_text(ConstIdx(function.name));
        let name = a99_core::text::wtf8_to_string_lossy(name).into_owned();
        Some(name).filter(|name| !name.is_empty())
    }

    /// Line and column of the step, as in an error.
    pub(crate) fn line_col(&self) -> Option<(u32, u32)> {
        let program = self.exe.program();
        let function = program.functions.get(self.function as usize)?;
        let node = match Program::place_at(function, self.pc) {
            Some(place) => place.node,
            None => function.steps.first()?.node,
        };
        program.source.text_line_col(node)
    }

    /// The atom of a call by this program.
    pub(crate) fn atom_of(&self, request: &Request) -> &AtomDef {
        self.exe.atom(request.op)
    }

    /// The JSON pointer of the step in the program's source.
    pub(crate) fn pointer(&self) -> Option<String> {
        let program = self.exe.program();
        let function = program.functions.get(self.function as usize)?;
        let place = Program::place_at(function, self.pc)?;
        program.source.pointer(place.node)
    }
}

/// Fuel that a frame has prepaid at an instruction, in micro-units; constant while its
/// program is loaded.
pub(super) struct Prepaid {
    /// Program, function and pc.
    at: (u32, u32, u32),
    micro: i64,
}

impl Machine {
    /// The end of the top frame: registers above it are dead.
    pub(super) fn top(&self) -> usize {
        self.frames.last().map_or(0, |frame| {
            let (_, _, function) = self.program_of(*frame);
            frame.base as usize + frame_size(function)
        })
    }

    /// Keeps live registers only, for a run that waits. The thread's next run gets the
    /// window.
    pub(crate) fn park(&mut self) {
        let live = self.stack[..self.top()].to_vec();
        self.leave_stack(live);
    }

    /// Replaces the stack by `own`, and leaves the old one to the next run of this thread.
    pub(super) fn leave_stack(&mut self, own: Vec<Val>) {
        let stack = std::mem::replace(&mut self.stack, own);
        if stack.capacity() <= MAX_SPARE_STACK {
            // An ending thread has no use for it.
            let _ = SPARE.try_with(|spare| *spare.borrow_mut() = stack);
        }
    }

    /// Frees buffers before a long wait.
    pub(crate) fn shrink(&mut self) {
        self.park();
        self.heap.shrink();
        self.frames.shrink_to_fit();
        self.programs.shrink_to_fit();
    }

    /// Restores the full window of the top frame after [`Machine::park`].
    #[inline]
    pub(super) fn grow_stack(&mut self) {
        let need = self.top() + WINDOW;
        if self.stack.len() < need {
            self.take_spare();
            if self.stack.len() < need {
                self.stack.resize(need, Val::Unbound);
            }
        }
    }

    /// Takes the spare stack of this thread, if it is larger.
    pub(super) fn take_spare(&mut self) {
        let spare = SPARE.try_with(|spare| std::mem::take(&mut *spare.borrow_mut()));
        if let Ok(mut spare) = spare
            && spare.len() > self.stack.len()
        {
            spare[..self.stack.len()].copy_from_slice(&self.stack);
            self.stack = spare;
        }
    }

    /// Whether the run has ended.
    pub fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// Sets the maximum work between two pauses, in units of about a nanosecond.
    pub fn set_slice(&mut self, work: u32) {
        self.meter.set_slice(i64::from(work));
    }

    /// Begins a slice that is long enough for the next block of the top frame.
    pub(super) fn new_slice(&mut self) {
        let frame = self.frame();
        let loaded = &self.programs[frame.program as usize];
        let f = &loaded.exe.program().functions[frame.function as usize];
        let work = match f.code.get(frame.pc as usize) {
            Some(Op::Fuel { block }) => {
                let prices = loaded.prices(self.options.cost_model);
                prices[frame.function as usize][block.at()].work
            }
            _ => 0,
        };
        self.meter.new_slice((PRECISE_WORK + 1) * work + 1);
    }

    /// Adds fuel to the budget; returns the added amount, which is less on overflow.
    pub fn refuel(&mut self, more: Fuel) -> Fuel {
        let room = i64::MAX - self.budget.max(self.meter.fuel).max(0);
        let added = more.micro().clamp(0, room);
        self.budget += added;
        self.meter.fuel += added;
        Fuel::from_micro(added)
    }

    /// Approximate fuel left, and the initial budget, in micro-units.
    pub(crate) fn fuel_of_budget(&self) -> (i64, i64) {
        (self.meter.fuel, self.budget)
    }

    pub(crate) fn run_options(&self) -> &RunOptions {
        &self.options
    }

    /// Fuel left including prepaid fuel, in micro-units.
    #[inline(always)]
    pub(crate) fn exact_fuel(&self) -> i64 {
        let mut fuel = self.meter.fuel;
        for frame in &self.frames {
            if !frame.precise {
                let loaded = &self.programs[frame.program as usize];
                let f = &loaded.exe.program().functions[frame.function as usize];
                fuel = fuel.saturating_add(self.prepaid_after(loaded, f, frame.pc));
            }
        }
        fuel
    }

    /// [`Machine::exact_fuel`] at a call. In a loop it is the same instruction again, whose
    /// prepaid fuel is cached.
    pub(super) fn fuel_at_call(&mut self) -> i64 {
        let [.., frame] = &self.frames[..] else {
            return self.meter.fuel;
        };
        if self.frames.len() > 1 || frame.precise {
            return self.exact_fuel();
        }
        let at = (frame.program, frame.function, frame.pc);
        match &self.prepaid {
            Some(prepaid) if prepaid.at == at => self.meter.fuel.saturating_add(prepaid.micro),
            _ => {
                let fuel = self.exact_fuel();
                let micro = fuel.saturating_sub(self.meter.fuel);
                self.prepaid = Some(Prepaid { at, micro });
                fuel
            }
        }
    }

    /// Bytes that count against the heap ceiling, and the ceiling.
    pub(crate) fn heap_use(&self) -> (usize, usize) {
        (self.heap.used(), self.heap.limit())
    }

    /// The places of the innermost frames, outermost first.
    pub(crate) fn places(&self, most: usize) -> Vec<CodePlace> {
        let first = self.frames.len().saturating_sub(most);
        let frames = self.frames[first..].iter();
        frames
            .map(|frame| CodePlace {
                exe: Arc::clone(self.program_of(*frame).0),
                function: frame.function,
                pc: frame.pc,
            })
            .collect()
    }

    /// The place of an instruction in the current function; by default the current one.
    pub(crate) fn place(&self, pc: Option<u32>) -> CodePlace {
        let frame = self.frame();
        let (exe, ..) = self.program_of(frame);
        CodePlace {
            exe: Arc::clone(exe),
            function: frame.function,
            pc: pc.unwrap_or(frame.pc),
        }
    }
}
