//! Address translation: Sv39 with hardware updating of accessed and dirty bits.
//!
//! Privileged manual, section "Sv39: Page-Based 39-bit Virtual-Memory System"
//! and the algorithm of section "Virtual Address Translation Process".

use super::csr::SV39;
use super::hart::{Hart, Mode};
use super::trap::{Cause, Trap};
use crate::ram::{PAGE_SHIFT, PAGE_SIZE, Ram};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads.
    Read,
    /// Stores and atomic operations.
    Write,
    /// Fetches an instruction.
    Exec,
}

impl Access {
    /// The page fault of this access at `va`.
    pub fn page_fault(self, va: u64) -> Trap {
        let cause = match self {
            Access::Read => Cause::LoadPage,
            Access::Write => Cause::StorePage,
            Access::Exec => Cause::InstructionPage,
        };
        Trap { cause, value: va }
    }

    /// The access fault of this access at `va`.
    pub fn access_fault(self, va: u64) -> Trap {
        let cause = match self {
            Access::Read => Cause::LoadAccess,
            Access::Write => Cause::StoreAccess,
            Access::Exec => Cause::InstructionAccess,
        };
        Trap { cause, value: va }
    }
}

const V: u64 = 1;
const R: u64 = 1 << 1;
const W: u64 = 1 << 2;
const X: u64 = 1 << 3;
const U: u64 = 1 << 4;
const A: u64 = 1 << 6;
const D: u64 = 1 << 7;

/// Bits 54-63 belong to extensions that are not there and must be zero.
const RESERVED: u64 = 0x3ff << 54;

/// Levels of the table; the topmost covers 1 GiB an entry.
const LEVELS: u32 = 3;

/// Bits of a virtual page number that one level translates.
const LEVEL_BITS: u32 = 9;

/// The result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Physical address.
    pub pa: u64,
    /// Bytes that the leaf covers.
    pub size: u64,
}

/// Who asks: what the permission checks look at.
#[derive(Clone, Copy, Debug)]
pub struct Viewer {
    /// Privilege.
    pub mode: Mode,
    /// `sstatus.SUM`.
    pub sum: bool,
    /// `sstatus.MXR`.
    pub mxr: bool,
}

impl Viewer {
    fn may(self, access: Access, pte: u64) -> bool {
        let user_page = pte & U != 0;
        let reachable = match self.mode {
            Mode::User => user_page,
            Mode::Supervisor => !user_page || self.sum && access != Access::Exec,
        };
        let granted = match access {
            Access::Read if self.mxr => pte & (R | X) != 0,
            Access::Read => pte & R != 0,
            Access::Write => pte & W != 0,
            Access::Exec => pte & X != 0,
        };
        reachable && granted
    }
}

/// Walks the Sv39 table whose root is the page that `satp` names.
pub fn walk(
    ram: &mut Ram,
    satp: u64,
    viewer: Viewer,
    va: u64,
    access: Access,
) -> Result<Mapping, Trap> {
    let page_fault = access.page_fault(va);
    if (va as i64) << 25 >> 25 != va as i64 {
        return Err(page_fault);
    }
    let mut table = (satp & ((1 << 44) - 1)) << PAGE_SHIFT;
    for level in (0..LEVELS).rev() {
        let shift = PAGE_SHIFT + LEVEL_BITS * level;
        let slot = table + (va >> shift & ((1 << LEVEL_BITS) - 1)) * 8;
        let pte = ram.read_u64(slot).ok_or(access.access_fault(va))?;
        if pte & V == 0 || pte & (R | W) == W || pte & RESERVED != 0 {
            return Err(page_fault);
        }
        let frame = (pte >> 10 & ((1 << 44) - 1)) << PAGE_SHIFT;
        if pte & (R | X) == 0 {
            if pte & (A | D | U) != 0 {
                return Err(page_fault);
            }
            table = frame;
            continue;
        }
        let size = 1 << shift;
        if !viewer.may(access, pte) || frame & (size - 1) != 0 {
            return Err(page_fault);
        }
        let used = pte | A | if access == Access::Write { D } else { 0 };
        if used != pte {
            ram.write_u64(slot, used).ok_or(access.access_fault(va))?;
        }
        let pa = frame | va & (size - 1);
        return Ok(Mapping { pa, size });
    }
    Err(page_fault)
}

impl Hart {
    /// Translates `va`; on the way notes superpages for later flushes.
    pub fn translate(&mut self, ram: &mut Ram, va: u64, access: Access) -> Result<u64, Trap> {
        let satp = self.csr.satp;
        if satp >> 60 != SV39 {
            return Ok(va);
        }
        let viewer = Viewer {
            mode: self.mode,
            sum: self.csr.sum,
            mxr: self.csr.mxr,
        };
        let mapping = walk(ram, satp, viewer, va, access)?;
        if mapping.size > PAGE_SIZE as u64 {
            self.tlbs.note_superpage(va, mapping.size);
        }
        Ok(mapping.pa)
    }
}
