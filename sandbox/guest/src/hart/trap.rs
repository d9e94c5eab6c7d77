//! Traps: exceptions and interrupts, and the way back.
//!
//! Privileged manual, section "Supervisor Trap". All traps are taken in supervisor mode:
//! there is no machine mode to delegate from.

use crate::hart::{Hart, Mode};

/// Exception codes (privileged manual, table of `scause` values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum Cause {
    InstructionAccess = 1,
    IllegalInstruction = 2,
    Breakpoint = 3,
    LoadMisaligned = 4,
    LoadAccess = 5,
    StoreMisaligned = 6,
    StoreAccess = 7,
    UserCall = 8,
    InstructionPage = 12,
    LoadPage = 13,
    StorePage = 15,
}

/// An exception: its code, and the value for `stval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Cause of the exception.
    pub cause: Cause,
    /// Faulting address, or bits of the illegal instruction.
    pub value: u64,
}

/// Bit of `scause` that marks interrupts.
const INTERRUPT: u64 = 1 << 63;

impl Hart {
    /// Takes an exception of the instruction at `pc`.
    pub fn take_trap(&mut self, trap: Trap, pc: u64) {
        self.enter(trap.cause as u64, trap.value, pc);
        self.jump(self.csr.stvec & !3);
    }

    /// Takes an interrupt before the instruction at `pc`.
    pub fn take_interrupt(&mut self, number: u32, pc: u64) {
        self.enter(INTERRUPT | u64::from(number), 0, pc);
        let base = self.csr.stvec & !3;
        let vectored = self.csr.stvec & 1 == 1;
        self.jump(base.wrapping_add(if vectored { 4 * u64::from(number) } else { 0 }));
    }

    fn enter(&mut self, cause: u64, value: u64, pc: u64) {
        let csr = &mut self.csr;
        csr.scause = cause;
        csr.stval = value;
        csr.sepc = pc;
        csr.spie = csr.sie_on;
        csr.sie_on = false;
        csr.spp = self.mode == Mode::Supervisor;
        self.mode = Mode::Supervisor;
    }

    /// `sret`.
    pub fn return_from_trap(&mut self) {
        let csr = &mut self.csr;
        csr.sie_on = csr.spie;
        csr.spie = true;
        self.mode = if csr.spp {
            Mode::Supervisor
        } else {
            Mode::User
        };
        csr.spp = false;
        self.jump(self.csr.sepc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hart::csr::TIMER;

    #[test]
    fn there_and_back() {
        let mut hart = Hart::new(0x1000);
        hart.mode = Mode::User;
        hart.csr.sie_on = true;
        hart.csr.stvec = 0x8001;
        let trap = Trap {
            cause: Cause::LoadPage,
            value: 0x55,
        };
        hart.take_trap(trap, 0x1234);
        assert_eq!((hart.at.pc, hart.mode), (0x8000, Mode::Supervisor));
        assert_eq!(
            (hart.csr.sepc, hart.csr.scause, hart.csr.stval),
            (0x1234, 13, 0x55)
        );
        assert!(!hart.csr.sie_on && hart.csr.spie && !hart.csr.spp);
        hart.return_from_trap();
        assert_eq!((hart.at.pc, hart.mode), (0x1234, Mode::User));
        assert!(hart.csr.sie_on);
        hart.take_interrupt(TIMER, 0x1238);
        assert_eq!((hart.at.pc, hart.csr.scause), (0x8014, 1 << 63 | 5));
    }

    #[test]
    fn supervisor_masks_interrupts() {
        let mut hart = Hart::new(0);
        hart.csr.sie = 1 << TIMER;
        hart.csr.sip = 1 << TIMER;
        assert_eq!(hart.csr.interrupt(hart.mode), None);
        hart.mode = Mode::User;
        assert_eq!(hart.csr.interrupt(hart.mode), Some(TIMER));
    }
}
