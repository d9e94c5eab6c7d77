//! Register allocation: keeps guest registers in locals, and decides when they are loaded
//! and stored.

use super::{Emitter, OptLevel};
use crate::interp::inst::{Inst, Op, SINK};
use crate::jit::access::writes_integer;
use crate::jit::code::op;
use crate::jit::structure::{Loop, members};

impl Emitter<'_> {
    /// Pushes a guest register.
    pub(crate) fn read(&mut self, number: u8) {
        self.fetch(number & 31);
        match self.registers[usize::from(number & 31)] {
            Some(local) => self.code.get(local),
            None => self.code.i64(0),
        };
    }

    /// Loads a guest register from the hart, unless it is loaded.
    pub(super) fn fetch(&mut self, number: u8) {
        if self.loaded >> number & 1 == 0 {
            self.reload(number);
        }
    }

    /// Before a loop without calls: loads the registers that it uses; returns those that it
    /// writes. A loop with calls is left and entered again each time, so that loading
    /// registers of only some paths would cost more. Functions optimised for size skip this
    /// too.
    pub(super) fn load_for_loop(&mut self, inner: &Loop) -> u32 {
        if self.opt_level == OptLevel::Size {
            return 0;
        }
        let nodes = inner
            .body
            .iter()
            .fold(0, |nodes, construct| nodes | construct.nodes());
        let (mut used, mut written) = (0u64, 0u64);
        for node in members(nodes) {
            for step in &self.region.nodes[node].steps {
                let Inst {
                    op, rd, rs1, rs2, ..
                } = step.inst;
                if matches!(op, Op::Jal | Op::Jalr) && rd != SINK {
                    return 0;
                }
                used |= 1 << rs1 | 1 << rs2;
                if writes_integer(op) {
                    written |= 1 << rd;
                }
            }
        }
        let mask = u64::from(u32::MAX - 1);
        for number in 1..32u8 {
            if (used | written) & mask & 1 << number != 0 {
                self.fetch(number);
            }
        }
        (written & mask) as u32
    }

    /// Pops a guest register.
    pub(crate) fn write(&mut self, number: u8) {
        let local = self.registers.get(usize::from(number)).copied().flatten();
        match local {
            Some(local) if number != SINK => {
                self.code.set(local);
                self.dirty |= 1 << number;
                self.loaded |= 1 << number;
            }
            _ => {
                self.code.op(op::DROP);
            }
        }
    }

    /// Loads a guest register again after a call changed it in the hart.
    pub(crate) fn reload(&mut self, number: u8) {
        let local = self.registers.get(usize::from(number)).copied().flatten();
        if let Some(local) = local {
            let place = self.layout.register(number);
            self.code.i32(place).memory(op::I64_LOAD, 3, 0).set(local);
            self.loaded |= 1 << number;
        }
    }

    /// Stores all dirty registers to the hart.
    pub(crate) fn flush(&mut self) {
        let dirty = std::mem::take(&mut self.dirty);
        self.spill(dirty);
    }

    /// Stores a register to the hart, if it is dirty.
    pub(crate) fn write_back(&mut self, number: u8) {
        let unsaved = self.dirty & 1u32.checked_shl(number.into()).unwrap_or(0);
        self.spill(unsaved);
        self.dirty &= !unsaved;
    }

    /// Stores registers to the hart.
    pub(crate) fn spill(&mut self, registers: u32) {
        for number in members(registers.into()) {
            let place = self.layout.register(number as u8);
            self.code.i32(place);
            self.read(number as u8);
            self.code.memory(op::I64_STORE, 3, 0);
        }
    }
}
