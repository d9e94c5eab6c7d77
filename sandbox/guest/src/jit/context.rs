//! Context layout: linear addresses of the state that translated code accesses, constant
//! for an instance and equal in all instances of a snapshot; and the VM context that each
//! call of a region receives.

use super::version::VERSION;
use crate::hart::csr::Csrs;
use crate::hart::{Cursor, Hart, Mode, Registers};
use crate::interp::fp::Fp;
use crate::mmu::tlb::{
    DataEntry, DataTlb, DataTlbs, ExecEntry, JumpCache, JumpCacheEntry, MMU_INDEXES,
    TARGET_NODE_BITS,
};
use crate::ram::Ram;
use a99_sandbox_abi::LAYOUT_WORDS;
use std::mem::offset_of;

/// Functions of the emulator that regions call, by function table index. Each takes the VM
/// context of the region, and an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Helpers {
    /// Floating-point arithmetic: 1 if the instruction ran, 0 if it is illegal now.
    pub float: u32,
    /// An instruction on a control and status register: 1 if it ran, 0 if the
    /// interpreter must run it.
    pub csr: u32,
}

/// Linear addresses of the tables that user mode searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserTables {
    /// Slots of the read TLB.
    pub read: u32,
    /// Slots of the write TLB.
    pub write: u32,
    /// The jump cache.
    pub jump_cache: u32,
    /// Slots of the instruction TLB.
    pub exec: u32,
}

/// Flag of the nodes of a region that was translated for user mode: only user mode may
/// enter it. Its code finds the tables at constant addresses.
pub(crate) const USER_NODE: u8 = 1 << (TARGET_NODE_BITS - 1);

/// Linear addresses of the state; see the module.
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
    /// Tables of user mode.
    user: UserTables,
    /// Whether the code runs in user mode only.
    is_user: bool,
    /// Helpers that regions call.
    pub helpers: Helpers,
    /// Index of the function types in the module.
    pub types: u32,
}

/// The low bits of an address: all of it on the target.
fn low<T>(value: &T) -> u32 {
    std::ptr::from_ref(value) as usize as u32
}

impl ContextLayout {
    /// Reads the addresses of a hart and its memory, which must not move from now on.
    pub(crate) fn of(hart: &Hart, ram: &Ram, helpers: Helpers) -> Self {
        let at = low(&hart.at);
        let (floats, state, flags, rounding) = hart.fp.parts();
        let slots = |tlb: &DataTlb| low(tlb.slots());
        let data = &hart.tlbs.data[hart.csr.mmu_index(Mode::User)];
        let exec = &hart.tlbs.exec[Mode::User as usize];
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
            user: UserTables {
                read: slots(&data.read),
                write: slots(&data.write),
                jump_cache: low(exec.jump_cache()),
                exec: low(exec.slots()),
            },
            is_user: false,
            helpers,
            types: 0,
        }
    }

    /// The layout as words, with the translator's version.
    pub(crate) fn words(&self) -> [u32; LAYOUT_WORDS] {
        let version = VERSION.to_le_bytes();
        let [v0, v1, v2, v3, v4, v5, v6, v7] = version;
        [
            self.registers,
            self.pc,
            self.budget,
            self.reservation,
            self.floats,
            self.float_state,
            self.float_flags,
            self.float_rounding,
            self.ram,
            self.user.read,
            self.user.write,
            self.user.jump_cache,
            self.user.exec,
            self.helpers.float,
            self.helpers.csr,
            self.types,
            u32::from_le_bytes([v0, v1, v2, v3]),
            u32::from_le_bytes([v4, v5, v6, v7]),
        ]
    }

    /// Reads [`ContextLayout::words`]; `None` for those of another translator.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn from_words(words: &[u32; LAYOUT_WORDS]) -> Option<Self> {
        let [registers, pc, budget, reservation, floats, rest @ ..] = *words;
        let [float_state, float_flags, float_rounding, ram, rest @ ..] = rest;
        let [read, write, jump_cache, exec, rest @ ..] = rest;
        let [float, csr, types, ..] = rest;
        let layout = Self {
            registers,
            pc,
            budget,
            reservation,
            floats,
            float_state,
            float_flags,
            float_rounding,
            ram,
            user: UserTables {
                read,
                write,
                jump_cache,
                exec,
            },
            is_user: false,
            helpers: Helpers { float, csr },
            types,
        };
        (layout.words() == *words).then_some(layout)
    }

    /// The end of the last value.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn end(&self) -> u64 {
        let registers = size_of::<Registers>() as u32;
        let of_floats = 32 * size_of::<u64>() as u32;
        let value = size_of::<u64>() as u32;
        let slots = (crate::mmu::tlb::DATA_SLOTS << SLOT_SHIFT) as u32;
        let tables = crate::mmu::tlb::DATA_TABLES_BYTES;
        [
            (self.registers, registers),
            (self.pc, value),
            (self.budget, value),
            (self.reservation, value),
            (self.floats, of_floats),
            (self.float_state, value),
            (self.float_flags, value),
            (self.float_rounding, value),
            (self.ram, value),
            (self.user.read, tables),
            (self.user.write, tables),
            (self.user.jump_cache, size_of::<JumpCache>() as u32),
            (self.user.exec, slots),
        ]
        .map(|(at, len)| u64::from(at) + u64::from(len))
        .into_iter()
        .fold(0, u64::max)
    }

    /// The layout for code that runs in user mode only, or in any mode.
    pub(crate) fn for_mode(self, is_user: bool) -> Self {
        Self { is_user, ..self }
    }

    /// The tables at constant addresses, if the code may use them.
    pub(super) fn user_tables(&self) -> Option<&UserTables> {
        self.is_user.then_some(&self.user)
    }

    /// The number by which a node of the code is entered.
    pub(super) fn entry(&self, node: usize) -> u8 {
        node as u8 | if self.is_user { USER_NODE } else { 0 }
    }

    /// Address of an integer register.
    pub(crate) fn register(&self, number: u8) -> i32 {
        (self.registers + u32::from(number) * 8) as i32
    }

    /// Address of a floating-point register.
    pub(crate) fn float_register(&self, number: u8) -> i32 {
        (self.floats + u32::from(number & 31) * 8) as i32
    }
}

/// Size of a data TLB slot in bytes, as a shift.
pub(super) const SLOT_SHIFT: u32 = 4;
/// Offset of a slot's tag.
pub(super) const TAG: u32 = offset_of!(DataEntry, tag) as u32;
/// Offset of a slot's addend.
pub(super) const ADDEND: u32 = offset_of!(DataEntry, addend) as u32;

const _: () = assert!(size_of::<DataEntry>() == 1 << SLOT_SHIFT);
const _: () = assert!(size_of::<ExecEntry>() == 1 << SLOT_SHIFT);
const _: () = assert!(offset_of!(ExecEntry, tag) as u32 == TAG);

/// Offset of the first entry's address.
pub(super) const ENTRY_PC: u32 =
    (offset_of!(JumpCache, slots) + offset_of!(JumpCacheEntry, pc)) as u32;
/// Offset of the first entry's target.
pub(super) const ENTRY_TARGET: u32 =
    (offset_of!(JumpCache, slots) + offset_of!(JumpCacheEntry, target)) as u32;

/// VM context: the state that a region uses during its call. The region reads the first
/// four fields itself, and passes the whole to its helpers.
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
    /// The mode's jump cache into translated code.
    pub jump_cache: *const JumpCache,
    /// The mode's slots of the instruction TLB.
    pub exec: *const ExecEntry,
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

/// Offset of the read TLB's pointer in the VM context, on the 32-bit target.
pub(super) const CONTEXT_READ: u32 = 0;
/// Offset of the write TLB's pointer; see [`CONTEXT_READ`].
pub(super) const CONTEXT_WRITE: u32 = 4;
/// Offset of the jump cache's pointer; see [`CONTEXT_READ`].
pub(super) const CONTEXT_JUMP_CACHE: u32 = 8;
/// Offset of the instruction TLB's pointer; see [`CONTEXT_READ`].
pub(super) const CONTEXT_EXEC: u32 = 12;

#[cfg(target_arch = "wasm32")]
const _: () = assert!(
    offset_of!(VmContext, read) as u32 == CONTEXT_READ
        && offset_of!(VmContext, write) as u32 == CONTEXT_WRITE
        && offset_of!(VmContext, jump_cache) as u32 == CONTEXT_JUMP_CACHE
        && offset_of!(VmContext, exec) as u32 == CONTEXT_EXEC
);
