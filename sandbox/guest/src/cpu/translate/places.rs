//! Where the things are in linear memory that translated code reaches: constants
//! of an instance, and the same in all instances of a snapshot.

use crate::cpu::csr::Csrs;
use crate::cpu::fp::Fp;
use crate::cpu::hart::{Cursor, Hart, Mode, Registers};
use crate::cpu::tlb::{DataEntry, DataTlbs, Door, Doors, VIEWS};
use crate::ram::Ram;
use std::mem::offset_of;

/// Functions of the emulator that regions call, by their number in the function
/// table. Each takes what the region was lent, and an instruction.
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
pub struct Places {
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
fn low<T>(place: &T) -> u32 {
    std::ptr::from_ref(place) as usize as u32
}

impl Places {
    /// Those of a hart and its memory, which must not move from now on.
    pub fn of(hart: &Hart, ram: &Ram, helpers: Helpers) -> Self {
        let at = low(&hart.at);
        let (floats, state, flags, rounding) = hart.fp.places();
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
    pub fn register(&self, number: u8) -> i32 {
        (self.registers + u32::from(number) * 8) as i32
    }

    /// A floating-point register.
    pub fn float_register(&self, number: u8) -> i32 {
        (self.floats + u32::from(number & 31) * 8) as i32
    }
}

/// Bytes of a slot of a data TLB, as a shift.
pub const SLOT_SHIFT: u32 = 4;
/// Offset of a slot's tag.
pub const TAG: u32 = offset_of!(DataEntry, tag) as u32;
/// Offset of a slot's addend.
pub const ADDEND: u32 = offset_of!(DataEntry, addend) as u32;

const _: () = assert!(size_of::<DataEntry>() == 1 << SLOT_SHIFT);

/// Offset of the epoch of the table of doors.
pub const EPOCH: u32 = offset_of!(Doors, epoch) as u32;
/// Offset of the address of the first door.
pub const DOOR_PC: u32 = (offset_of!(Doors, slots) + offset_of!(Door, pc)) as u32;
/// Offset of its epoch.
pub const DOOR_EPOCH: u32 = (offset_of!(Doors, slots) + offset_of!(Door, epoch)) as u32;
/// Offset of its place.
pub const DOOR_PLACE: u32 = (offset_of!(Doors, slots) + offset_of!(Door, place)) as u32;

/// What a region is lent for the time of its call. It reads the first three
/// itself, and gives all to its helpers.
#[derive(Debug)]
#[repr(C)]
pub struct Lent {
    /// Slots of the read TLB.
    pub read: *const DataEntry,
    /// Slots of the write TLB.
    pub write: *const DataEntry,
    /// Ways into translated code in the mode.
    pub doors: *const Doors,
    /// Integer registers.
    pub x: *mut Registers,
    /// Floating-point registers.
    pub fp: *mut Fp,
    /// Control and status registers.
    pub csr: *mut Csrs,
    /// Privilege.
    pub mode: Mode,
    /// The data TLBs by view.
    pub data: *const [DataTlbs; VIEWS],
    /// The cursor.
    pub at: *mut Cursor,
    /// The first byte of RAM.
    pub ram: *mut u8,
}

/// Offset of a pointer that a region is lent, on the 32-bit target.
pub const LENT_READ: u32 = 0;
/// See [`LENT_READ`].
pub const LENT_WRITE: u32 = 4;
/// See [`LENT_READ`].
pub const LENT_DOORS: u32 = 8;

#[cfg(target_arch = "wasm32")]
const _: () = assert!(
    offset_of!(Lent, read) as u32 == LENT_READ
        && offset_of!(Lent, write) as u32 == LENT_WRITE
        && offset_of!(Lent, doors) as u32 == LENT_DOORS
);
