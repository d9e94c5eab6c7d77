//! Context layout: where the things are in linear memory that translated code
//! reaches, constants of an instance and the same in all instances of a snapshot; and
//! the VM context that each call of a region gets.

use crate::hart::csr::Csrs;
use crate::hart::{Cursor, Hart, Mode, Registers};
use crate::interp::fp::Fp;
use crate::mmu::tlb::{DataEntry, DataTlbs, JumpCache, JumpCacheEntry, MMU_INDEXES};
use crate::ram::Ram;
use std::mem::offset_of;

/// Functions of the emulator that regions call, by their number in the function
/// table. Each takes the VM context of the region, and an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Helpers {
    /// Arithmetic with floating-point numbers: 1 if the instruction ran, 0 if it
    /// is illegal now.
    pub float: u32,
    /// An instruction on a control and status register: 1 if it ran, 0 if the
    /// interpreter must run it.
    pub csr: u32,
}

/// Linear addresses; see the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContextLayout {
    /// The integer registers.
    registers: u32,
    /// `Cursor::pc`.
    pub pc: u32,
    /// `Cursor::budget`.
    pub budget: u32,
    /// `Cursor::reservation`.
    pub reservation: u32,
    /// The floating-point registers.
    floats: u32,
    /// `sstatus.FS`.
    pub float_state: u32,
    /// `fflags`.
    pub float_flags: u32,
    /// `frm`.
    pub float_rounding: u32,
    /// The first byte of RAM.
    pub ram: u32,
    /// What regions call.
    pub helpers: Helpers,
    /// The first of the function's types in its module.
    pub types: u32,
}

/// The low bits of an address: all of it where this matters.
fn low<T>(value: &T) -> u32 {
    std::ptr::from_ref(value) as usize as u32
}

impl ContextLayout {
    /// Those of a hart and its memory, which must not move from now on.
    pub(crate) fn of(hart: &Hart, ram: &Ram, helpers: Helpers) -> Self {
        let at = low(&hart.at);
        let (floats, state, flags, rounding) = hart.fp.parts();
        Self {
            registers: low(&hart.x),
            pc: at + offset_of!(Cursor, pc) as u32,
            budget: at + offset_of!(Cursor, budget) as u32,
            reservation: at + offset_of!(Cursor, reservation) as u32,
            floats: low(floats),
            float_state: low(state),
            float_flags: low(flags),
            float_rounding: low(rounding),
            ram: ram.bytes().as_ptr() as usize as u32,
            helpers,
            types: 0,
        }
    }

    /// An integer register.
    pub(crate) fn register(&self, number: u8) -> i32 {
        (self.registers + u32::from(number) * 8) as i32
    }

    /// A floating-point register.
    pub(crate) fn float_register(&self, number: u8) -> i32 {
        (self.floats + u32::from(number & 31) * 8) as i32
    }
}

/// Bytes of a slot of a data TLB, as a shift.
pub(super) const SLOT_SHIFT: u32 = 4;
/// Offset of a slot's tag.
pub(super) const TAG: u32 = offset_of!(DataEntry, tag) as u32;
/// Offset of a slot's addend.
pub(super) const ADDEND: u32 = offset_of!(DataEntry, addend) as u32;

const _: () = assert!(size_of::<DataEntry>() == 1 << SLOT_SHIFT);

/// Offset of the epoch of the jump cache.
pub(super) const EPOCH: u32 = offset_of!(JumpCache, epoch) as u32;
/// Offset of the address of its first entry.
pub(super) const ENTRY_PC: u32 =
    (offset_of!(JumpCache, slots) + offset_of!(JumpCacheEntry, pc)) as u32;
/// Offset of its epoch.
pub(super) const ENTRY_EPOCH: u32 =
    (offset_of!(JumpCache, slots) + offset_of!(JumpCacheEntry, epoch)) as u32;
/// Offset of its target.
pub(super) const ENTRY_TARGET: u32 =
    (offset_of!(JumpCache, slots) + offset_of!(JumpCacheEntry, target)) as u32;

/// VM context: what a region works on during its call. It reads the first three
/// itself, and gives all to its helpers.
#[cfg_attr(
    not(target_arch = "wasm32"),
    allow(dead_code, reason = "regions run on WebAssembly only")
)]
#[derive(Debug)]
#[repr(C)]
pub(crate) struct VmContext {
    /// Slots of the read TLB.
    pub read: *const DataEntry,
    /// Slots of the write TLB.
    pub write: *const DataEntry,
    /// Ways into translated code in the mode.
    pub jump_cache: *const JumpCache,
    /// Integer registers.
    pub x: *mut Registers,
    /// Floating-point registers.
    pub fp: *mut Fp,
    /// Control and status registers.
    pub csr: *mut Csrs,
    /// Privilege.
    pub mode: Mode,
    /// The data TLBs by MMU index.
    pub data: *const [DataTlbs; MMU_INDEXES],
    /// The cursor.
    pub at: *mut Cursor,
    /// The first byte of RAM.
    pub ram: *mut u8,
}

/// Offset of a pointer of the VM context, on the 32-bit target.
pub(super) const CONTEXT_READ: u32 = 0;
/// See [`CONTEXT_READ`].
pub(super) const CONTEXT_WRITE: u32 = 4;
/// See [`CONTEXT_READ`].
pub(super) const CONTEXT_JUMP_CACHE: u32 = 8;

#[cfg(target_arch = "wasm32")]
const _: () = assert!(
    offset_of!(VmContext, read) as u32 == CONTEXT_READ
        && offset_of!(VmContext, write) as u32 == CONTEXT_WRITE
        && offset_of!(VmContext, jump_cache) as u32 == CONTEXT_JUMP_CACHE
);
