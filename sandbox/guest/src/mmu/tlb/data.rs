//! Data TLB, from virtual pages to offsets in RAM.

use super::PAGE_MASK;
use crate::ram::PAGE_SHIFT;

/// Slots of a data TLB: 8 MiB of reach, enough for a start of Python. With half of them, it
/// misses twice as often.
pub(crate) const DATA_SLOTS: usize = 2048;

/// Shift of the slot hash: a page's slot is its number xor the number of its group of `1 <<
/// HASH_FOLD` pages.
pub(crate) const HASH_FOLD: u32 = DATA_SLOTS.ilog2();

/// Entries of a micro-TLB: one for each integer register.
pub(crate) const MICRO_SLOTS: usize = 32;

/// Tag of an empty micro-TLB entry: its distance from half of any address is large.
const EMPTY_MICRO: u64 = 3 << 62;

/// Tag of an empty slot: a page of the neighbouring slot, so that no address looked up here
/// is near it.
const fn empty(at: usize) -> u64 {
    ((at ^ 1) as u64) << PAGE_SHIFT
}

/// A mapping of one page.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DataEntry {
    /// Virtual address of the page, or one that belongs to another slot.
    pub tag: u64,
    /// Added to a virtual address, gives the offset in RAM (wrapping).
    pub addend: u64,
}

/// The tables of a data TLB; see [`DataTlb`].
#[derive(Debug)]
#[repr(C)]
struct Tables {
    slots: [DataEntry; DATA_SLOTS],
    /// Half of an address as the tag.
    micro: [DataEntry; MICRO_SLOTS],
}

/// Offset of the micro-TLB from the slots.
pub(crate) const MICRO_OFFSET: u32 = std::mem::offset_of!(Tables, micro) as u32;

/// Size of the tables that translated code finds from the slots on.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) const DATA_TABLES_BYTES: u32 = size_of::<Tables>() as u32;

/// A direct-mapped table of data mappings, and the micro-TLB of translated code: mappings
/// that it has found in the table, by base register, so that most of its accesses need no
/// hash. It holds only mappings that were here since the last flush that concerns
/// them.
#[derive(Debug)]
pub struct DataTlb {
    tables: Box<Tables>,
    used: Vec<u16>,
    /// Whether a mapping of one address space was added since the last full flush.
    is_local: bool,
}

impl DataEntry {
    /// Tag of the page of `va` if an access of `size` bytes is aligned; otherwise a tag
    /// that no slot has.
    #[inline(always)]
    fn tag(va: u64, size: usize) -> u64 {
        va & (PAGE_MASK | (size as u64 - 1))
    }

    /// The offset in RAM of an access of `size` bytes (a power of two) at `va`;
    /// `None` if this is not its page or the access is not aligned.
    #[inline(always)]
    pub fn find(self, va: u64, size: usize) -> Option<usize> {
        (self.tag == Self::tag(va, size)).then(|| va.wrapping_add(self.addend) as usize)
    }
}

impl Default for DataTlb {
    fn default() -> Self {
        let slot = |at| DataEntry {
            tag: empty(at),
            addend: 0,
        };
        let micro = DataEntry {
            tag: EMPTY_MICRO,
            addend: 0,
        };
        Self {
            tables: Box::new(Tables {
                slots: std::array::from_fn(slot),
                micro: [micro; MICRO_SLOTS],
            }),
            used: Vec::new(),
            is_local: false,
        }
    }
}

impl DataTlb {
    /// The slot of the page of an address.
    #[inline(always)]
    pub(super) fn slot(va: u64) -> usize {
        // The bits of the page that matter, in 32.
        let low = va as u32;
        ((low ^ low >> HASH_FOLD) >> PAGE_SHIFT) as usize & (DATA_SLOTS - 1)
    }

    /// The offset in RAM of an access of `size` bytes (a power of two) at `va`;
    /// `None` if the page is not here or the access is not aligned.
    #[inline(always)]
    pub fn find(&self, va: u64, size: usize) -> Option<usize> {
        self.entry(va).find(va, size)
    }

    /// The slot of `va`.
    #[inline(always)]
    pub fn entry(&self, va: u64) -> DataEntry {
        self.tables.slots[Self::slot(va)]
    }

    /// All slots, which translated code searches directly.
    pub fn slots(&self) -> &[DataEntry; DATA_SLOTS] {
        &self.tables.slots
    }

    /// Maps the page of `va` to the page of RAM at `offset`, in all address
    /// spaces or in one.
    pub fn fill(&mut self, va: u64, offset: usize, is_global: bool) {
        self.is_local |= !is_global;
        let tag = va & PAGE_MASK;
        let at = Self::slot(tag);
        if self.tables.slots[at].tag == empty(at) {
            self.used.push(at as u16);
        }
        let addend = (offset as u64 & PAGE_MASK).wrapping_sub(tag);
        self.tables.slots[at] = DataEntry { tag, addend };
        // The page may have had another mapping.
        self.flush_micro(|micro| micro.tag << 1 == tag && micro.addend != addend);
    }

    /// Drops the entries of the micro-TLB that are `concerned`.
    fn flush_micro(&mut self, concerned: impl Fn(&DataEntry) -> bool) {
        for micro in &mut self.tables.micro {
            if concerned(micro) {
                micro.tag = EMPTY_MICRO;
            }
        }
    }

    /// Drops all mappings.
    pub fn flush(&mut self) {
        for at in self.used.drain(..).map(usize::from) {
            self.tables.slots[at].tag = empty(at);
        }
        self.flush_micro(|_| true);
        self.is_local = false;
    }

    /// Drops the mappings of one address space, and possibly more.
    pub fn flush_local(&mut self) {
        if self.is_local {
            self.flush();
        }
    }

    /// Drops the page of `va`.
    pub fn flush_page(&mut self, va: u64) {
        let tag = va & PAGE_MASK;
        let at = Self::slot(tag);
        if self.tables.slots[at].tag == tag {
            self.tables.slots[at].tag = empty(at);
            self.used.retain(|used| usize::from(*used) != at);
        }
        // Another page may have evicted it from the table.
        self.flush_micro(|micro| micro.tag << 1 == tag);
    }

    /// Drops all mappings of the page of RAM at `offset`.
    pub fn flush_target(&mut self, offset: usize) {
        let target = offset as u64 & PAGE_MASK;
        self.flush_micro(|micro| (micro.tag << 1).wrapping_add(micro.addend) == target);
        let slots = &mut self.tables.slots;
        self.used.retain(|at| {
            let at = usize::from(*at);
            let entry = &mut slots[at];
            let keep = entry.tag.wrapping_add(entry.addend) != target;
            if !keep {
                entry.tag = empty(at);
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_when_unaligned_or_unknown() {
        let mut tlb = DataTlb::default();
        tlb.fill(0x1234_5678, 0x9000, false);
        assert_eq!(tlb.find(0x1234_5670, 8), Some(0x9670));
        assert_eq!(tlb.find(0x1234_5674, 8), None);
        assert_eq!(tlb.find(0x1234_5674, 4), Some(0x9674));
        assert_eq!(tlb.find(0x1234_4670, 8), None);
        assert_eq!(tlb.find(u64::MAX, 1), None);
        tlb.flush_target(0x9000);
        assert_eq!(tlb.find(0x1234_5670, 8), None);
    }

    #[test]
    fn the_micro_tlb_holds_nothing_that_was_flushed() {
        const VA: u64 = 0xffff_ffff_8000_3000;
        let cached = |change: fn(&mut DataTlb)| {
            let mut tlb = DataTlb::default();
            tlb.fill(VA, 0x9000, false);
            let addend = tlb.entry(VA).addend;
            // As translated code does.
            let tag = VA >> 1;
            tlb.tables.micro[2] = DataEntry { tag, addend };
            // Another page takes its place in the table.
            let rival = (VA ^ 1 << PAGE_SHIFT) + (1 << (PAGE_SHIFT + HASH_FOLD));
            assert_eq!(DataTlb::slot(rival), DataTlb::slot(VA));
            tlb.fill(rival, 0x5000, false);
            assert_eq!(tlb.tables.micro[2].tag, tag);
            change(&mut tlb);
            tlb.tables.micro[2].tag == tag
        };
        assert!(!cached(DataTlb::flush));
        assert!(!cached(DataTlb::flush_local));
        assert!(!cached(|tlb| tlb.flush_page(VA + 8)));
        assert!(!cached(|tlb| tlb.flush_target(0x9000)));
        assert!(!cached(|tlb| tlb.fill(VA, 0xa000, false)));
        assert!(cached(|tlb| tlb.fill(VA, 0x9000, false)));
        assert!(cached(|tlb| tlb.flush_page(VA + 0x1000)));
        assert!(cached(|tlb| tlb.flush_target(0xa000)));
    }

    #[test]
    fn no_address_is_near_the_tag_of_an_empty_micro_entry() {
        for va in [0, 1, 1 << 62, 3 << 62, 1 << 63, u64::MAX] {
            assert!((va >> 1u64).wrapping_sub(EMPTY_MICRO) > 1 << 60, "{va:x}");
        }
    }

    /// Translated code accepts an address less than a page above its slot's tag.

    #[test]
    fn nothing_that_belongs_to_an_empty_slot_is_near_its_tag() {
        let mut tlb = DataTlb::default();
        for page in (0..DATA_SLOTS as u64).chain([1 << 20, 1 << 51, (1 << 52) - 1]) {
            for va in [page << PAGE_SHIFT, (page << PAGE_SHIFT) + 4095] {
                assert!(va.wrapping_sub(tlb.entry(va).tag) > 4095, "{va:x}");
                tlb.fill(va, 0, false);
                assert!(va.wrapping_sub(tlb.entry(va).tag) <= 4095, "{va:x}");
                tlb.flush_target(0);
                assert!(va.wrapping_sub(tlb.entry(va).tag) > 4095, "{va:x}");
                tlb.fill(va, 0, false);
                tlb.flush_page(va);
                assert!(va.wrapping_sub(tlb.entry(va).tag) > 4095, "{va:x}");
                tlb.fill(va, 0, false);
                tlb.flush();
                assert!(va.wrapping_sub(tlb.entry(va).tag) > 4095, "{va:x}");
            }
        }
    }
}
