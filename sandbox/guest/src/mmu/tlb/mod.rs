//! Software TLBs: from virtual pages to offsets in RAM, or to decoded code.
//!
//! They hold only pages that the fast paths may use without further checks: pages that are
//! RAM, that the mode may access, whose accessed and dirty bits are set, and, for writing,
//! that hold no clean decoded code. All other accesses miss and go through the walker.
//!
//! Tables are direct-mapped, indexed by a hash of the page number: two arrays at a distance
//! of a power of two must not evict each other. Used slots are listed, because a flush
//! mostly finds a few dozen entries. TLBs ignore address space numbers: a switch to another
//! space flushes the tables that hold a mapping of one space; those of Linux's kernel hold
//! only global ones.

mod code;
mod data;

pub(crate) use self::code::*;
pub(crate) use self::data::*;

use crate::ram::PAGE_SHIFT;

/// Mask of the page in an address.
pub(crate) const PAGE_MASK: u64 = !((1 << PAGE_SHIFT) - 1);

/// Data TLBs for one MMU index.
#[derive(Debug, Default)]
pub struct DataTlbs {
    /// Pages that may be read.
    pub read: DataTlb,
    /// Pages that may be written.
    pub write: DataTlb,
}

/// Number of MMU indexes, one for each way to access memory with different permissions:
/// user, supervisor, supervisor with `sstatus.SUM`.
pub(crate) const MMU_INDEXES: usize = 3;

/// All TLBs of the hart.
#[derive(Debug, Default)]
pub struct Tlbs {
    /// Data TLBs by MMU index.
    pub data: [DataTlbs; MMU_INDEXES],
    /// Instruction TLBs of user and supervisor mode.
    pub exec: [ExecTlb; 2],
    /// Superpages that were walked since the last full flush, for the lower and the upper
    /// half of the address space: first and last address. A flush of an address inside must
    /// drop all 4 KiB parts of the superpage.
    superpages: [Option<(u64, u64)>; 2],
}

impl Tlbs {
    /// Drops all mappings.
    pub fn flush(&mut self) {
        for tlb in &mut self.data {
            tlb.read.flush();
            tlb.write.flush();
        }
        for exec in &mut self.exec {
            exec.flush();
        }
        self.superpages = [None; 2];
    }

    /// Drops the mappings of one address space, and possibly more.
    pub fn flush_local(&mut self) {
        for tlb in &mut self.data {
            tlb.read.flush_local();
            tlb.write.flush_local();
        }
        for exec in &mut self.exec {
            exec.flush_local();
        }
    }

    /// Drops the mappings of `va`.
    pub fn flush_page(&mut self, va: u64) {
        let range = self.superpages[(va >> 63) as usize];
        if range.is_some_and(|(first, last)| (first..=last).contains(&va)) {
            return self.flush();
        }
        for tlb in &mut self.data {
            tlb.read.flush_page(va);
            tlb.write.flush_page(va);
        }
        for exec in &mut self.exec {
            exec.flush_page(va);
        }
    }

    /// Drops write mappings of a page of RAM whose code was decoded.
    pub fn flush_writes_to(&mut self, offset: usize) {
        for tlb in &mut self.data {
            tlb.write.flush_target(offset);
        }
    }

    /// Records that a superpage of `size` bytes maps `va`.
    pub fn note_superpage(&mut self, va: u64, size: u64) {
        let first = va & !(size - 1);
        let last = first | (size - 1);
        let range = &mut self.superpages[(va >> 63) as usize];
        *range = Some(match *range {
            Some((low, high)) => (low.min(first), high.max(last)),
            None => (first, last),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_address_space_keeps_what_is_global() {
        let mut tlbs = Tlbs::default();
        tlbs.data[0].read.fill(0x1000, 0x1000, false);
        tlbs.data[1].read.fill(0x1000, 0x1000, true);
        for (exec, is_global) in tlbs.exec.iter_mut().zip([false, true]) {
            exec.fill(0x1000, 7, is_global);
            exec.cache_block(0x1000, 9);
        }
        tlbs.flush_local();
        assert_eq!(tlbs.data[0].read.find(0x1000, 8), None);
        assert_eq!(tlbs.data[1].read.find(0x1000, 8), Some(0x1000));
        let known = tlbs.exec.each_ref().map(|exec| exec.find(0x1000));
        assert_eq!(known, [None, Some(7)]);
        let blocks = tlbs.exec.each_ref().map(|exec| exec.cached_block(0x1000));
        assert_eq!(blocks, [None, Some(9)]);
    }

    #[test]
    fn a_flush_by_address_takes_the_superpage() {
        let mut tlbs = Tlbs::default();
        tlbs.data[0].read.fill(0x40_1000, 0x1000, true);
        tlbs.data[0].read.fill(0x1000, 0x1000, true);
        tlbs.note_superpage(0x40_1000, 2 << 20);
        tlbs.flush_page(0x2000);
        assert!(tlbs.data[0].read.find(0x40_1000, 8).is_some());
        tlbs.flush_page(0x5f_f000);
        assert!(tlbs.data[0].read.find(0x40_1000, 8).is_none());
    }
}
