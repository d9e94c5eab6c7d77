//! Software TLBs: from virtual pages to offsets in RAM, or to decoded code.
//!
//! They hold only what the fast paths may use without asking again: pages that
//! are RAM, that the mode may access, whose accessed and dirty bits are set,
//! and, for writing, that hold no clean decoded code. Everything else misses
//! and goes through the walker.
//!
//! Tables are direct-mapped, indexed by a hash of the page number: two arrays
//! that lie a power of two apart must not evict each other. Slots in use are
//! listed, because a flush mostly finds a few dozen entries. They know no address
//! space numbers: a switch to another space forgets the tables that hold a
//! mapping of one space; those of Linux's kernel hold global ones alone.

mod code;
mod data;

pub use self::code::*;
pub use self::data::*;

use crate::ram::PAGE_SHIFT;

/// The bits of an address that name its page.
pub const PAGE_MASK: u64 = !((1 << PAGE_SHIFT) - 1);

/// The data TLBs of one way to access memory.
#[derive(Debug, Default)]
pub struct DataTlbs {
    /// Pages that may be read.
    pub read: DataTlb,
    /// Pages that may be written.
    pub write: DataTlb,
}

/// Ways to access memory that differ in what they may reach: user, supervisor,
/// supervisor with `sstatus.SUM`.
pub const VIEWS: usize = 3;

/// All TLBs of the hart.
#[derive(Debug, Default)]
pub struct Tlbs {
    /// Data TLBs by view.
    pub data: [DataTlbs; VIEWS],
    /// Instruction TLBs of user and supervisor mode.
    pub exec: [ExecTlb; 2],
    /// Superpages that were walked since the last full flush, lower and upper
    /// half of the address space: first and last address. A flush by address
    /// inside must forget all of the superpage's 4 KiB pieces.
    superpages: [Option<(u64, u64)>; 2],
}

impl Tlbs {
    /// Forgets everything.
    pub fn flush(&mut self) {
        for view in &mut self.data {
            view.read.flush();
            view.write.flush();
        }
        for exec in &mut self.exec {
            exec.flush();
        }
        self.superpages = [None; 2];
    }

    /// Forgets the mappings of one address space, and perhaps more.
    pub fn flush_local(&mut self) {
        for view in &mut self.data {
            view.read.flush_local();
            view.write.flush_local();
        }
        for exec in &mut self.exec {
            exec.flush_local();
        }
    }

    /// Forgets what maps `va`.
    pub fn flush_page(&mut self, va: u64) {
        let range = self.superpages[(va >> 63) as usize];
        if range.is_some_and(|(first, last)| (first..=last).contains(&va)) {
            return self.flush();
        }
        for view in &mut self.data {
            view.read.flush_page(va);
            view.write.flush_page(va);
        }
        for exec in &mut self.exec {
            exec.flush_page(va);
        }
    }

    /// Forgets write mappings of a page of RAM, because code of it was decoded.
    pub fn flush_writes_to(&mut self, offset: usize) {
        for view in &mut self.data {
            view.write.flush_target(offset);
        }
    }

    /// Notes that `va` was mapped by a superpage of `size` bytes.
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
            exec.note_jump(0x1000, 9);
        }
        tlbs.flush_local();
        assert_eq!(tlbs.data[0].read.find(0x1000, 8), None);
        assert_eq!(tlbs.data[1].read.find(0x1000, 8), Some(0x1000));
        let known = tlbs.exec.each_ref().map(|exec| exec.find(0x1000));
        assert_eq!(known, [None, Some(7)]);
        let jumps = tlbs.exec.each_ref().map(|exec| exec.jump(0x1000));
        assert_eq!(jumps, [None, Some(9)]);
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
