//! Hart: the architectural state, control and status registers, traps, and the
//! supervisor binary interface.

pub(crate) mod csr;
pub(crate) mod sbi;
pub(crate) mod trap;

use crate::hart::csr::{Bank, Csrs};
use crate::interp::fp::Fp;
use crate::mmu::tlb::Tlbs;

/// Privilege mode. Machine mode does not exist: its firmware on real boards, the supervisor
/// binary interface, is part of the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// User mode.
    User,
    /// Supervisor mode.
    Supervisor,
}

/// Value of [`Cursor::reservation`] without a reservation.
pub(crate) const NO_RESERVATION: u64 = u64::MAX;

/// The hart's position, and state that the fast loop keeps from block to block.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// Virtual address of the running block, or of the next instruction when no block is
    /// chosen.
    pub pc: u64,
    /// The block, or [`crate::interp::blocks::NONE`] if it must be looked up.
    pub block: u32,
    /// Whether the block has begun: it then continues at `index` of its line.
    pub inside: bool,
    /// The next instruction, in the line of the block.
    pub index: u8,
    /// Instructions that may still run.
    pub budget: i64,
    /// Offset in RAM that `lr` reserved, or [`NO_RESERVATION`].
    pub reservation: u64,
}

impl Cursor {
    /// Before the instruction at `pc`, in a block that must be looked up.
    fn new(pc: u64) -> Self {
        Self {
            pc,
            block: crate::interp::blocks::NONE,
            inside: false,
            index: 0,
            budget: 0,
            reservation: NO_RESERVATION,
        }
    }
}

/// Registers 0-31 with `x0` always zero, and the sink of writes to `x0`; sized so that a
/// byte index needs no bounds check.
pub(crate) type Registers = [u64; 256];

/// The hart; see the module.
#[derive(Debug)]
pub struct Hart {
    /// Integer registers.
    pub x: Registers,
    /// Floating-point registers and flags.
    pub fp: Fp,
    /// Place and budget.
    pub at: Cursor,
    /// Privilege.
    pub mode: Mode,
    /// Control and status registers.
    pub csr: Csrs,
    /// Software TLBs.
    pub tlbs: Tlbs,
}

impl Hart {
    /// Creates a hart in supervisor mode at `pc`.
    pub fn new(pc: u64) -> Self {
        Self {
            x: [0; 256],
            fp: Fp::default(),
            at: Cursor::new(pc),
            mode: Mode::Supervisor,
            csr: Csrs::default(),
            tlbs: Tlbs::default(),
        }
    }

    /// Resets all but the TLBs, which stay where they are, to supervisor mode at `pc`.
    pub fn reset(&mut self, pc: u64) {
        self.x = [0; 256];
        self.fp = Fp::default();
        self.at = Cursor::new(pc);
        self.mode = Mode::Supervisor;
        self.csr = Csrs::default();
    }

    /// Index of the current data TLBs.
    pub fn mmu_index(&self) -> usize {
        self.csr.mmu_index(self.mode)
    }

    /// Control and status registers as an instruction sees them.
    pub fn bank(&mut self) -> Bank<'_> {
        Bank {
            mode: self.mode,
            csr: &mut self.csr,
            fp: &mut self.fp,
        }
    }

    /// Continues at `pc`, in a block that must be looked up.
    pub fn jump(&mut self, pc: u64) {
        self.at.pc = pc;
        self.at.block = crate::interp::blocks::NONE;
        self.at.inside = false;
    }
}
