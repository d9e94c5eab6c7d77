//! From virtual pages to decoded code, and from addresses to where jumps to them
//! went.

use super::PAGE_MASK;
use crate::ram::PAGE_SHIFT;

/// Slots of an instruction TLB: as many pages of code as a start of Python runs
/// through, twice.
const EXEC_SLOTS: usize = 2048;

/// Tag of an empty slot; no page address has these low bits.
const EMPTY: u64 = u64::MAX;

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

/// Slots of a table of doors. A program has hundreds of hot ones; that two of them
/// want one slot is common, three seldom do.
pub const DOOR_SLOTS: usize = 8192;

/// The first slot of an address, times [`DOOR_BYTES`], is taken from its low bits this
/// far up (code lies at even addresses),
pub const DOOR_SHIFT: u32 = DOOR_BYTES.ilog2() - 1;
/// xor the same bits this far down. The second is the other one of the pair.
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

/// Where translated code was entered, two-way associative; epochs are those of the
/// jumps. Translated code looks into it by itself, and finds the other one of a
/// pair by a bit of its address, which the alignment allows.
#[derive(Debug)]
#[repr(C, align(64))]
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
    /// See [`DataTlb`](super::DataTlb).
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
            let first = Self::door_slot(pc);
            let slots = &mut self.doors.slots;
            let is_free = |door: &Door| door.epoch != epoch || door.pc == pc;
            let at = [first, first ^ 1]
                .into_iter()
                .find(|at| is_free(&slots[*at]));
            let at = at.unwrap_or_else(|| {
                slots[first ^ 1] = slots[first];
                first
            });
            slots[at] = Door { pc, epoch, place };
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
    pub fn flush_local(&mut self) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_closes_all_doors() {
        let mut exec = ExecTlb::default();
        let is_open = |exec: &ExecTlb, pc: u64| {
            let doors = exec.doors();
            let first = ExecTlb::door_slot(pc);
            let pair = [doors.slots[first], doors.slots[first ^ 1]];
            let door = pair.into_iter().find(|door| door.pc == pc)?;
            (door.epoch == doors.epoch).then_some(door.place)
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
        // Two have room, of three the last two; none is there twice.
        let far = 1 << 32;
        for (place, pc) in [pc, pc + far, pc, pc + 2 * far].into_iter().enumerate() {
            exec.note_door(pc, place as u32, 0);
        }
        let open = [0, 1, 2].map(|turn| is_open(&exec, pc + turn * far));
        let place = |number: u32| Some(number << DOOR_NODE_BITS);
        assert_eq!(open, [place(2), None, place(3)]);
    }
}
