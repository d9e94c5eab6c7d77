//! A machine that waits, seen from outside: what it holds, where it is, and more
//! fuel for it.

use super::Machine;
use super::exec::PRECISE_WORK;
use a99_core::fuel::Fuel;
use a99_core::program::{Op, Program};

impl Machine {
    /// Whether the run has ended.
    pub fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// Sets how much work is done between two pauses, in about nanoseconds.
    pub fn set_slice(&mut self, work: u32) {
        self.meter.set_slice(i64::from(work));
    }

    /// Begins a slice that is long enough for the block that the top frame enters.
    pub(super) fn new_slice(&mut self) {
        let frame = self.frame();
        let loaded = &self.programs[frame.program as usize];
        let f = &loaded.exe.program().functions[frame.function as usize];
        let work = match f.code.get(frame.pc as usize) {
            Some(Op::Fuel { block }) => loaded.prices[frame.function as usize][block.at()].work,
            _ => 0,
        };
        self.meter.new_slice((PRECISE_WORK + 1) * work + 1);
    }

    /// Gives the run more fuel; how much that is where the count would overflow.
    pub fn refuel(&mut self, more: Fuel) -> Fuel {
        let room = i64::MAX - self.budget.max(self.meter.fuel).max(0);
        let added = more.micro().clamp(0, room);
        self.budget += added;
        self.meter.fuel += added;
        Fuel::from_micro(added)
    }

    /// Fuel that the run has left, with what it has prepaid; in micro-units.
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

    /// Bytes that count against the heap ceiling, and the ceiling.
    pub(crate) fn heap_use(&self) -> (usize, usize) {
        (self.heap.used(), self.heap.limit())
    }

    /// The JSON pointer of the step that runs now, in its program's source.
    pub(crate) fn pointer(&self) -> Option<String> {
        self.pointer_at(self.frames.last()?.pc)
    }

    /// The same of an instruction of the function that runs now.
    pub(crate) fn pointer_at(&self, pc: u32) -> Option<String> {
        let frame = self.frames.last()?;
        let (_, program, f) = self.program_of(*frame);
        let place = Program::place_at(f, pc)?;
        program.source.pointer(place.node)
    }
}
