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

use crate::ram::{PAGE_SHIFT, PAGE_SIZE};

/// Slots of a data TLB: 8 MiB of reach, which is what a start of Python needs. Of
/// half as many, it misses twice as often.
pub const DATA_SLOTS: usize = 2048;

/// The slot of a page is its number, xor that of the block of so many pages, as a
/// shift, that it lies in.
pub const HASH_FOLD: u32 = DATA_SLOTS.ilog2();

/// Slots of an instruction TLB: as many pages of code as a start of Python runs
/// through, twice.
const EXEC_SLOTS: usize = 2048;

/// Tag of an empty slot of an instruction TLB; no page address has these low bits.
const EMPTY: u64 = u64::MAX;

/// Tag of an empty slot of a data TLB: a page that belongs to the slot beside it,
/// so that no address is near which is looked for here.
const fn empty(at: usize) -> u64 {
    ((at ^ 1) as u64) << PAGE_SHIFT
}

/// The bits of an address that name its page.
pub const PAGE_MASK: u64 = !((1 << PAGE_SHIFT) - 1);

/// A mapping of one page.
#[derive(Clone, Copy, Debug)]
pub struct DataEntry {
    /// Virtual address of the page, or one that belongs to another slot.
    pub tag: u64,
    /// Added to a virtual address gives the offset in RAM (wrapping).
    pub addend: u64,
}

/// A direct-mapped table of data mappings.
#[derive(Debug)]
pub struct DataTlb {
    slots: Box<[DataEntry; DATA_SLOTS]>,
    used: Vec<u16>,
    /// A mapping of one address space was put in since the last full flush.
    is_local: bool,
}

impl DataEntry {
    /// The tag of the page of `va`, if an access of `size` bytes is aligned;
    /// else one that no slot has.
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
        Self {
            slots: Box::new(std::array::from_fn(slot)),
            used: Vec::new(),
            is_local: false,
        }
    }
}

impl DataTlb {
    /// The slot of the page of an address.
    #[inline(always)]
    fn slot(va: u64) -> usize {
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

    /// The offset in RAM of `size` bytes at `va`, aligned or not; `None` if they
    /// are not on one page, or it is not here.
    pub fn find_anywhere(&self, va: u64, size: usize) -> Option<usize> {
        let entry = self.entry(va);
        let distance = va.wrapping_sub(entry.tag);
        let is_there = distance <= (PAGE_SIZE - size) as u64;
        is_there.then(|| va.wrapping_add(entry.addend) as usize)
    }

    /// What the slot of `va` holds.
    #[inline(always)]
    pub fn entry(&self, va: u64) -> DataEntry {
        self.slots[Self::slot(va)]
    }

    /// All slots, for translated code, which looks into them by itself.
    pub fn slots(&self) -> &[DataEntry; DATA_SLOTS] {
        &self.slots
    }

    /// Maps the page of `va` to the page of RAM at `offset`, in all address
    /// spaces or in one.
    pub fn fill(&mut self, va: u64, offset: usize, is_global: bool) {
        self.is_local |= !is_global;
        let tag = va & PAGE_MASK;
        let at = Self::slot(tag);
        if self.slots[at].tag == empty(at) {
            self.used.push(at as u16);
        }
        let addend = (offset as u64 & PAGE_MASK).wrapping_sub(tag);
        self.slots[at] = DataEntry { tag, addend };
    }

    /// Forgets everything.
    pub fn flush(&mut self) {
        for at in self.used.drain(..).map(usize::from) {
            self.slots[at].tag = empty(at);
        }
        self.is_local = false;
    }

    /// Forgets the mappings of one address space, and perhaps more.
    fn flush_local(&mut self) {
        if self.is_local {
            self.flush();
        }
    }

    /// Forgets the page of `va`.
    pub fn flush_page(&mut self, va: u64) {
        let tag = va & PAGE_MASK;
        let at = Self::slot(tag);
        if self.slots[at].tag == tag {
            self.slots[at].tag = empty(at);
            self.used.retain(|used| usize::from(*used) != at);
        }
    }

    /// Forgets all mappings of the page of RAM at `offset`.
    pub fn flush_target(&mut self, offset: usize) {
        let target = offset as u64 & PAGE_MASK;
        let slots = &mut self.slots;
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

/// A mapping of a page of code.
#[derive(Clone, Copy, Debug)]
pub struct ExecEntry {
    /// Virtual address of the page, or [`EMPTY`].
    tag: u64,
    /// Number of the table of its blocks.
    table: u32,
}

/// Slots of a jump cache.
const JUMP_SLOTS: usize = 1024;

/// The slot of an address is taken from its bits from here on (code lies at
/// even addresses),
const JUMP_SHIFT: u32 = 1;
/// xor those from here on.
const JUMP_FOLD: u32 = 11;

/// Where a jump went: the block at an address.
#[derive(Clone, Copy, Debug)]
struct Jump {
    pc: u64,
    /// The entry counts while this is the table's epoch.
    epoch: u32,
    block: u32,
}

/// Where jumps went, direct-mapped; each flush begins a new epoch.
#[derive(Debug)]
struct Jumps {
    epoch: u32,
    slots: [Jump; JUMP_SLOTS],
}

/// Slots of a table of doors. A program has hundreds of hot ones, each of which
/// should have a slot for itself.
pub const DOOR_SLOTS: usize = 8192;

/// The slot of an address, times [`DOOR_BYTES`], is taken from its low bits this
/// far up (code lies at even addresses),
pub const DOOR_SHIFT: u32 = DOOR_BYTES.ilog2() - 1;
/// xor the same bits this far down.
pub const DOOR_FOLD: u32 = 9;

/// Bytes of a door.
pub const DOOR_BYTES: usize = size_of::<Door>();

/// A way into translated code.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Door {
    /// The address.
    pub pc: u64,
    /// The entry counts while this is the table's epoch.
    pub epoch: u32,
    /// The function, shifted by [`DOOR_NODE_BITS`], and its node.
    pub place: u32,
}

/// See [`Door::place`].
pub const DOOR_NODE_BITS: u32 = 8;

/// Where translated code was entered, direct-mapped; epochs are those of the
/// jumps. Translated code looks into it by itself.
#[derive(Debug)]
#[repr(C)]
pub struct Doors {
    /// The entries.
    pub slots: [Door; DOOR_SLOTS],
    /// The epoch that counts.
    pub epoch: u32,
}

/// A direct-mapped table of code mappings, and in front of it one of jump
/// targets, which every flush empties by beginning a new epoch.
#[derive(Debug)]
pub struct ExecTlb {
    slots: Box<[ExecEntry; EXEC_SLOTS]>,
    used: Vec<u16>,
    /// See [`DataTlb`].
    is_local: bool,
    /// A mapping has taken the slot of another since the last full flush, so that
    /// there may be jumps to a page that is in no slot.
    has_evicted: bool,
    jumps: Box<Jumps>,
    doors: Box<Doors>,
}

impl Default for ExecTlb {
    fn default() -> Self {
        let empty = ExecEntry {
            tag: EMPTY,
            table: 0,
        };
        let nowhere = Jump {
            pc: 0,
            epoch: 0,
            block: 0,
        };
        Self {
            slots: Box::new([empty; EXEC_SLOTS]),
            used: Vec::new(),
            is_local: false,
            has_evicted: false,
            jumps: Box::new(Jumps {
                epoch: 1,
                slots: [nowhere; JUMP_SLOTS],
            }),
            doors: Box::new(Doors {
                slots: [Door {
                    pc: 0,
                    epoch: 0,
                    place: 0,
                }; DOOR_SLOTS],
                epoch: 1,
            }),
        }
    }
}

impl ExecTlb {
    #[inline(always)]
    fn slot(va: u64) -> usize {
        let page = va >> PAGE_SHIFT;
        (page ^ page >> EXEC_SLOTS.ilog2()) as usize & (EXEC_SLOTS - 1)
    }

    #[inline(always)]
    fn jump_slot(pc: u64) -> usize {
        (pc >> JUMP_SHIFT ^ pc >> JUMP_FOLD) as usize & (JUMP_SLOTS - 1)
    }

    /// The block that a jump to `pc` reached before.
    #[inline(always)]
    pub fn jump(&self, pc: u64) -> Option<u32> {
        let jump = &self.jumps.slots[Self::jump_slot(pc)];
        (jump.pc == pc && jump.epoch == self.jumps.epoch).then_some(jump.block)
    }

    /// All ways into translated code, for translated code.
    pub fn doors(&self) -> &Doors {
        &self.doors
    }

    #[inline(always)]
    fn door_slot(pc: u64) -> usize {
        let low = pc as u32;
        ((low << DOOR_SHIFT) ^ (low >> DOOR_FOLD)) as usize / DOOR_BYTES % DOOR_SLOTS
    }

    /// Remembers the function of the table, and its node, that the block at `pc`
    /// enters.
    #[inline(always)]
    pub fn note_door(&mut self, pc: u64, function: u32, node: u8) {
        let epoch = self.doors.epoch;
        let place = function << DOOR_NODE_BITS | u32::from(node);
        if place >> DOOR_NODE_BITS == function {
            self.doors.slots[Self::door_slot(pc)] = Door { pc, epoch, place };
        }
    }

    /// Where jumps went since the last flush.
    pub fn jump_targets(&self) -> impl Iterator<Item = u64> {
        let Jumps { epoch, slots } = &*self.jumps;
        let current = slots.iter().filter(|jump| jump.epoch == *epoch);
        current.map(|jump| jump.pc)
    }

    /// Remembers the block at `pc`.
    #[inline(always)]
    pub fn note_jump(&mut self, pc: u64, block: u32) {
        let epoch = self.jumps.epoch;
        self.jumps.slots[Self::jump_slot(pc)] = Jump { pc, epoch, block };
    }

    /// The table of the blocks of the page of `va`.
    #[inline(always)]
    pub fn find(&self, va: u64) -> Option<u32> {
        let entry = &self.slots[Self::slot(va)];
        (entry.tag == va & PAGE_MASK).then_some(entry.table)
    }

    /// Maps the page of `va` to a table of blocks, in all address spaces or in
    /// one.
    pub fn fill(&mut self, va: u64, table: u32, is_global: bool) {
        self.is_local |= !is_global;
        let at = Self::slot(va);
        let tag = va & PAGE_MASK;
        if self.slots[at].tag == EMPTY {
            self.used.push(at as u16);
        } else if self.slots[at].tag != tag {
            self.has_evicted = true;
        }
        self.slots[at] = ExecEntry { tag, table };
    }

    /// Forgets everything.
    pub fn flush(&mut self) {
        self.next_epoch();
        for at in self.used.drain(..) {
            self.slots[usize::from(at)].tag = EMPTY;
        }
        self.is_local = false;
        self.has_evicted = false;
    }

    /// Forgets the mappings of one address space, and perhaps more.
    fn flush_local(&mut self) {
        if self.is_local {
            self.flush();
        }
    }

    /// Forgets the page of `va`. If there may be jumps to it, all jumps go; data
    /// pages, whose mappings change most, are none of theirs.
    pub fn flush_page(&mut self, va: u64) {
        let at = Self::slot(va);
        let is_here = self.slots[at].tag == va & PAGE_MASK;
        if is_here {
            self.slots[at].tag = EMPTY;
            self.used.retain(|used| usize::from(*used) != at);
        }
        if is_here || self.has_evicted {
            self.next_epoch();
        }
    }

    /// Empties the jump cache. When epochs run out, old entries would count
    /// again, so they go.
    fn next_epoch(&mut self) {
        let Jumps { epoch, slots } = &mut *self.jumps;
        *epoch = epoch.checked_add(1).unwrap_or_else(|| {
            for jump in slots {
                jump.epoch = 0;
            }
            for door in &mut self.doors.slots {
                door.epoch = 0;
            }
            1
        });
        self.doors.epoch = *epoch;
    }
}

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
    fn misses_when_unaligned_or_unknown() {
        let mut tlb = DataTlb::default();
        tlb.fill(0x1234_5678, 0x9000, false);
        assert_eq!(tlb.find(0x1234_5670, 8), Some(0x9670));
        assert_eq!(tlb.find(0x1234_5674, 8), None);
        assert_eq!(tlb.find(0x1234_5674, 4), Some(0x9674));
        assert_eq!(tlb.find(0x1234_4670, 8), None);
        assert_eq!(tlb.find_anywhere(0x1234_5674, 8), Some(0x9674));
        assert_eq!(tlb.find_anywhere(0x1234_5ff8, 8), Some(0x9ff8));
        assert_eq!(tlb.find_anywhere(0x1234_5ff9, 8), None);
        assert_eq!(tlb.find_anywhere(0x1234_4fff, 8), None);
        assert_eq!(tlb.find_anywhere(0x1234_6000, 8), None);
        assert_eq!(tlb.find(u64::MAX, 1), None);
        tlb.flush_target(0x9000);
        assert_eq!(tlb.find(0x1234_5670, 8), None);
    }

    /// Translated code takes an address for known if it is less than a page behind
    /// its slot's tag.
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

    #[test]
    fn a_flush_closes_all_doors() {
        let mut exec = ExecTlb::default();
        let is_open = |exec: &ExecTlb, pc: u64| {
            let doors = exec.doors();
            let door = doors.slots[ExecTlb::door_slot(pc)];
            (door.pc == pc && door.epoch == doors.epoch).then_some(door.place)
        };
        let pc = 0x12_3456;
        assert_eq!(is_open(&exec, pc), None);
        exec.note_door(pc, 300, 5);
        assert_eq!(is_open(&exec, pc), Some(300 << DOOR_NODE_BITS | 5));
        assert_eq!(is_open(&exec, pc + 2), None);
        exec.fill(pc, 1, true);
        exec.flush_page(0);
        assert!(is_open(&exec, pc).is_some());
        exec.flush_page(pc);
        assert_eq!(is_open(&exec, pc), None);
        // Nobody knows any more which pages there are jumps to.
        exec.fill(pc, 1, true);
        exec.note_door(pc, 300, 5);
        let rival = (pc ^ 1 << PAGE_SHIFT) + (1 << (PAGE_SHIFT + EXEC_SLOTS.ilog2()));
        assert_eq!(ExecTlb::slot(rival), ExecTlb::slot(pc));
        exec.fill(rival, 2, true);
        exec.flush_page(0);
        assert_eq!(is_open(&exec, pc), None);
        exec.note_door(pc, 300, 5);
        // Epochs begin again.
        exec.jumps.epoch = u32::MAX;
        exec.flush();
        assert_eq!((is_open(&exec, pc), exec.doors().epoch), (None, 1));
        // A number that does not fit is not taken for another.
        exec.note_door(pc, 1 << 24, 0);
        assert_eq!(is_open(&exec, pc), None);
    }

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
