//! Address translation: Sv39 with hardware updating of accessed and dirty bits.
//!
//! Privileged manual, section "Sv39: Page-Based 39-bit Virtual-Memory System"
//! and the algorithm of section "Virtual Address Translation Process".

pub(crate) mod tlb;

use crate::hart::csr::SV39;
use crate::hart::trap::{Cause, Trap};
use crate::hart::{Hart, Mode};
use crate::ram::{PAGE_SHIFT, PAGE_SIZE, Ram};

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads.
    Read,
    /// Stores and atomic operations.
    Write,
    /// Instruction fetches.
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
const G: u64 = 1 << 5;
const A: u64 = 1 << 6;
const D: u64 = 1 << 7;

/// Bits 54-63 belong to unsupported extensions and must be zero.
const RESERVED: u64 = 0x3ff << 54;

/// Levels of the table; an entry of the topmost covers 1 GiB.
const LEVELS: u32 = 3;

/// Bits of a virtual page number that one level translates.
const LEVEL_BITS: u32 = 9;

/// The result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Physical address.
    pub pa: u64,
    /// Bytes that the leaf entry covers.
    pub size: u64,
    /// Whether the mapping is the same in all address spaces: the leaf or a table on the
    /// way to it has the global bit.
    pub is_global: bool,
}

/// State of the hart that the permission checks use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessContext {
    /// Privilege.
    pub mode: Mode,
    /// `sstatus.SUM`.
    pub sum: bool,
    /// `sstatus.MXR`.
    pub mxr: bool,
}

impl AccessContext {
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

/// Walks the Sv39 table whose root page is in `satp`.
pub(crate) fn walk(
    ram: &mut Ram,
    satp: u64,
    context: AccessContext,
    va: u64,
    access: Access,
) -> Result<Mapping, Trap> {
    let page_fault = access.page_fault(va);
    if (va as i64) << 25 >> 25 != va as i64 {
        return Err(page_fault);
    }
    let mut table = (satp & ((1 << 44) - 1)) << PAGE_SHIFT;
    let mut marks = 0;
    for level in (0..LEVELS).rev() {
        let shift = PAGE_SHIFT + LEVEL_BITS * level;
        let slot = table + (va >> shift & ((1 << LEVEL_BITS) - 1)) * 8;
        let pte = ram.read_u64(slot).ok_or(access.access_fault(va))?;
        if pte & V == 0 || pte & (R | W) == W || pte & RESERVED != 0 {
            return Err(page_fault);
        }
        marks |= pte;
        let frame = (pte >> 10 & ((1 << 44) - 1)) << PAGE_SHIFT;
        if pte & (R | X) == 0 {
            if pte & (A | D | U) != 0 {
                return Err(page_fault);
            }
            table = frame;
            continue;
        }
        let size = 1 << shift;
        if !context.may(access, pte) || frame & (size - 1) != 0 {
            return Err(page_fault);
        }
        let used = pte | A | if access == Access::Write { D } else { 0 };
        if used != pte {
            ram.write_u64(slot, used).ok_or(access.access_fault(va))?;
        }
        let pa = frame | va & (size - 1);
        return Ok(Mapping {
            pa,
            size,
            is_global: marks & G != 0,
        });
    }
    Err(page_fault)
}

impl Hart {
    /// Translates `va`, and records superpages for later flushes.
    pub fn translate(&mut self, ram: &mut Ram, va: u64, access: Access) -> Result<u64, Trap> {
        Ok(self.map(ram, va, access)?.pa)
    }

    /// Translates `va`, and returns the whole mapping.
    pub fn map(&mut self, ram: &mut Ram, va: u64, access: Access) -> Result<Mapping, Trap> {
        let satp = self.csr.satp;
        if satp >> 60 != SV39 {
            return Ok(Mapping {
                pa: va,
                size: PAGE_SIZE as u64,
                is_global: true,
            });
        }
        let context = AccessContext {
            mode: self.mode,
            sum: self.csr.sum,
            mxr: self.csr.mxr,
        };
        let mapping = walk(ram, satp, context, va, access)?;
        if mapping.size > PAGE_SIZE as u64 {
            self.tlbs.note_superpage(va, mapping.size);
        }
        Ok(mapping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ram::RAM_BASE;
    use proptest::prelude::*;

    /// Pages of the memory under test; the first three may hold tables.
    const PAGES: u64 = 8;

    const ROOT: u64 = RAM_BASE >> PAGE_SHIFT;

    /// The walk in the manual's numbered steps, on read-only memory: returns the physical
    /// address and the bits to set in the entry at an address.
    fn reference(
        ram: &Ram,
        context: AccessContext,
        va: u64,
        access: Access,
    ) -> Option<(u64, u64, u64)> {
        let sign = va >> 38;
        if sign != 0 && sign != (1 << 26) - 1 {
            return None;
        }
        let vpn = [va >> 12 & 511, va >> 21 & 511, va >> 30 & 511];
        let mut a = ROOT * 4096;
        let mut i = 2;
        loop {
            let at = a + vpn[i] * 8;
            let pte = ram.read_u64(at)?;
            let bit = |n: u32| pte >> n & 1 == 1;
            let (v, r, w, x, u) = (bit(0), bit(1), bit(2), bit(3), bit(4));
            if !v || !r && w || pte >> 54 != 0 {
                return None;
            }
            let ppn = pte >> 10;
            if !r && !x {
                if bit(4) || bit(6) || bit(7) || i == 0 {
                    return None;
                }
                i -= 1;
                a = ppn * 4096;
                continue;
            }
            let reach = match context.mode {
                Mode::User => u,
                Mode::Supervisor if u => context.sum && access != Access::Exec,
                Mode::Supervisor => true,
            };
            let grant = match access {
                Access::Read => r || x && context.mxr,
                Access::Write => w,
                Access::Exec => x,
            };
            let low = ppn & ((1 << (9 * i)) - 1);
            if !reach || !grant || low != 0 {
                return None;
            }
            let within = va & ((1 << (12 + 9 * i)) - 1);
            let marked = pte | 1 << 6 | u64::from(access == Access::Write) << 7;
            return Some((ppn << 12 | within, at, marked));
        }
    }

    /// An entry: usually valid and within the pages under test, rarely with bits that must
    /// fault.
    fn entry() -> impl Strategy<Value = u64> {
        let flags = prop_oneof![
            3 => Just(0x01u64),
            6 => any::<u8>().prop_map(|flags| u64::from(flags) | 1),
            1 => any::<u8>().prop_map(u64::from),
        ];
        let frame = prop_oneof![
            6 => ROOT..ROOT + PAGES,
            1 => (0..4u64).prop_map(|n| n << 18),
            1 => (0..1024u64).prop_map(|n| n << 9),
            1 => 0..1u64 << 44,
        ];
        let reserved = prop_oneof![30 => Just(0u64), 1 => 0..1024u64];
        (flags, frame, reserved).prop_map(|(f, p, r)| f | p << 10 | r << 54)
    }

    fn context() -> impl Strategy<Value = AccessContext> {
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(user, sum, mxr)| AccessContext {
            mode: if user { Mode::User } else { Mode::Supervisor },
            sum,
            mxr,
        })
    }

    fn access() -> impl Strategy<Value = Access> {
        prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::Exec)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8192))]

        #[test]
        fn walks_as_the_manual_says(
            entries in proptest::collection::vec(entry(), 12),
            slots in (0..4u64, 0..4u64, 0..4u64),
            high in prop_oneof![20 => Just(0u64), 1 => Just((1 << 25) - 1), 1 => 0..1u64 << 25],
            within in 0..4096u64,
            context in context(),
            access in access(),
        ) {
            let mut ram = Ram::new(PAGES as usize * PAGE_SIZE);
            for (at, entry) in entries.iter().enumerate() {
                let (page, slot) = (at as u64 / 4, at as u64 % 4);
                ram.write_u64(RAM_BASE + page * 4096 + slot * 8, *entry).expect("RAM");
            }
            let va = high << 39 | slots.0 << 30 | slots.1 << 21 | slots.2 << 12 | within;
            let expected = reference(&ram, context, va, access);
            let before = ram.bytes().to_vec();
            let found = walk(&mut ram, SV39 << 60 | ROOT, context, va, access);
            match expected {
                Some((pa, at, marked)) => {
                    prop_assert_eq!(found.map(|mapping| mapping.pa), Ok(pa));
                    prop_assert_eq!(ram.read_u64(at), Some(marked));
                    ram.write_u64(at, 0).expect("RAM");
                    let mut rest = before;
                    let offset = (at - RAM_BASE) as usize;
                    rest[offset..offset + 8].fill(0);
                    prop_assert_eq!(ram.bytes(), rest);
                }
                None => {
                    let trap = found.expect_err("the reference faults");
                    prop_assert_eq!(trap.value, va);
                    prop_assert_eq!(ram.bytes(), before);
                }
            }
        }
    }

    /// An entry whose table is outside memory is an access fault, not a page fault.
    #[test]
    fn tables_outside_of_memory() {
        let mut ram = Ram::new(PAGE_SIZE);
        let context = AccessContext {
            mode: Mode::User,
            sum: false,
            mxr: false,
        };
        let found = walk(&mut ram, SV39 << 60 | 5, context, 0, Access::Write);
        assert_eq!(found, Err(Access::Write.access_fault(0)));
        ram.write_u64(RAM_BASE, 7 << 10 | V).expect("RAM");
        let found = walk(&mut ram, SV39 << 60 | ROOT, context, 0, Access::Exec);
        assert_eq!(found, Err(Access::Exec.access_fault(0)));
        ram.write_u64(RAM_BASE, 0).expect("RAM");
        let found = walk(&mut ram, SV39 << 60 | ROOT, context, 0, Access::Read);
        assert_eq!(found, Err(Access::Read.page_fault(0)));
    }
}
