//! Instruction TLB, from virtual pages to decoded code, with a block cache and an
//! indirect-branch target cache (jump cache), from addresses to earlier jump targets.

use super::{DATA_SLOTS, DataTlb, PAGE_MASK};

/// Slots of an instruction TLB: twice the pages of code that a start of Python uses.
const EXEC_SLOTS: usize = 2048;

/// Tag of an empty slot; no page address has these low bits.
const EMPTY: u64 = u64::MAX;

// Translated code finds slots of both tables by the same hash.
const _: () = assert!(EXEC_SLOTS == DATA_SLOTS);

/// A mapping of a page of code.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExecEntry {
    /// Virtual address of the page, or [`EMPTY`].
    pub tag: u64,
    /// Number of the table of its blocks.
    table: u32,
}

/// Slots of a block cache.
const BLOCK_CACHE_SLOTS: usize = 1024;

/// The slot of an address is taken from its bits from here on (code is at even addresses),
const BLOCK_CACHE_SHIFT: u32 = 1;
/// xor those from here on.
const BLOCK_CACHE_FOLD: u32 = 11;

/// Block cache entry: the block at an address that was jumped to.
#[derive(Clone, Copy, Debug)]
struct BlockCacheEntry {
    pc: u64,
    /// The entry is valid while this is the table's epoch.
    epoch: u32,
    block: u32,
}

/// Block cache of the interpreter: earlier jump targets, direct-mapped; each flush begins a
/// new epoch.
#[derive(Debug)]
struct BlockCache {
    epoch: u32,
    slots: [BlockCacheEntry; BLOCK_CACHE_SLOTS],
}

/// Slots of a jump cache. A program has hundreds of hot targets; two of them often share a
/// slot, three seldom.
pub(crate) const JUMP_CACHE_SLOTS: usize = 8192;

/// The first slot of an address, times [`JUMP_CACHE_ENTRY_BYTES`], is taken from its low
/// bits this far up (code is at even addresses),
pub(crate) const JUMP_CACHE_SHIFT: u32 = JUMP_CACHE_ENTRY_BYTES.ilog2() - 1;
/// xor the same bits this far down. The second slot is the other one of the pair.
pub(crate) const JUMP_CACHE_FOLD: u32 = 9;

/// Size of an entry in bytes.
pub(crate) const JUMP_CACHE_ENTRY_BYTES: usize = size_of::<JumpCacheEntry>();

/// Address of an empty jump cache entry: code is at even addresses.
const NOWHERE: u64 = u64::MAX;

/// Jump cache entry: an address at which translated code can be entered.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct JumpCacheEntry {
    /// The address, or [`NOWHERE`].
    pub pc: u64,
    /// The function, shifted by [`TARGET_NODE_BITS`], and its node.
    pub target: u32,
}

/// Bits of the node in a [`JumpCacheEntry::target`].
pub(crate) const TARGET_NODE_BITS: u32 = 8;

/// Indirect-branch target cache of translated code: its earlier entry points, two-way
/// associative. Translated code searches it directly, and finds the other one of a pair by
/// flipping a bit of its address, which the alignment allows.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct JumpCache {
    /// The entries.
    pub slots: [JumpCacheEntry; JUMP_CACHE_SLOTS],
}

/// A direct-mapped table of code mappings, and in front of it one of jump targets, which
/// every flush empties by beginning a new epoch.
#[derive(Debug)]
pub struct ExecTlb {
    slots: Box<[ExecEntry; EXEC_SLOTS]>,
    used: Vec<u16>,
    /// Whether it holds mappings of one address space; see [`DataTlb`](super::DataTlb).
    is_local: bool,
    /// Whether a mapping has evicted another since the last full flush, so that jumps may
    /// lead to a page without a slot.
    has_evicted: bool,
    block_cache: Box<BlockCache>,
    jump_cache: Box<JumpCache>,
    /// Entries of the jump cache that are not empty.
    jumps: Vec<u16>,
}

impl Default for ExecTlb {
    fn default() -> Self {
        let empty = ExecEntry {
            tag: EMPTY,
            table: 0,
        };
        let nowhere = BlockCacheEntry {
            pc: 0,
            epoch: 0,
            block: 0,
        };
        Self {
            slots: Box::new([empty; EXEC_SLOTS]),
            used: Vec::new(),
            is_local: false,
            has_evicted: false,
            block_cache: Box::new(BlockCache {
                epoch: 1,
                slots: [nowhere; BLOCK_CACHE_SLOTS],
            }),
            jump_cache: Box::new(JumpCache {
                slots: [JumpCacheEntry {
                    pc: NOWHERE,
                    target: 0,
                }; JUMP_CACHE_SLOTS],
            }),
            jumps: Vec::new(),
        }
    }
}

impl ExecTlb {
    #[inline(always)]
    fn slot(va: u64) -> usize {
        DataTlb::slot(va)
    }

    #[inline(always)]
    fn block_cache_slot(pc: u64) -> usize {
        (pc >> BLOCK_CACHE_SHIFT ^ pc >> BLOCK_CACHE_FOLD) as usize & (BLOCK_CACHE_SLOTS - 1)
    }

    /// The block that a jump to `pc` reached before.
    #[inline(always)]
    pub fn cached_block(&self, pc: u64) -> Option<u32> {
        let jump = &self.block_cache.slots[Self::block_cache_slot(pc)];
        (jump.pc == pc && jump.epoch == self.block_cache.epoch).then_some(jump.block)
    }

    /// All slots, which translated code searches directly.
    pub fn slots(&self) -> &[ExecEntry; EXEC_SLOTS] {
        &self.slots
    }

    /// The jump cache, for translated code.
    pub fn jump_cache(&self) -> &JumpCache {
        &self.jump_cache
    }

    #[inline(always)]
    fn jump_cache_slot(pc: u64) -> usize {
        let low = pc as u32;
        ((low << JUMP_CACHE_SHIFT) ^ (low >> JUMP_CACHE_FOLD)) as usize / JUMP_CACHE_ENTRY_BYTES
            % JUMP_CACHE_SLOTS
    }

    /// Caches the function of the table, and its node, that the block at `pc` enters.
    #[inline(always)]
    pub fn cache_jump(&mut self, pc: u64, function: u32, node: u8) {
        let target = function << TARGET_NODE_BITS | u32::from(node);
        if target >> TARGET_NODE_BITS == function {
            let first = Self::jump_cache_slot(pc);
            let slots = &mut self.jump_cache.slots;
            let is_free = |entry: &JumpCacheEntry| entry.pc == NOWHERE || entry.pc == pc;
            let at = [first, first ^ 1]
                .into_iter()
                .find(|at| is_free(&slots[*at]));
            let at = at.unwrap_or_else(|| {
                slots[first ^ 1] = slots[first];
                first
            });
            if slots[at].pc == NOWHERE {
                self.jumps.push(at as u16);
            }
            slots[at] = JumpCacheEntry { pc, target };
        }
    }

    /// Jump targets since the last flush.
    pub fn cached_targets(&self) -> impl Iterator<Item = u64> {
        let BlockCache { epoch, slots } = &*self.block_cache;
        let current = slots.iter().filter(|jump| jump.epoch == *epoch);
        current.map(|jump| jump.pc)
    }

    /// Caches the block at `pc`.
    #[inline(always)]
    pub fn cache_block(&mut self, pc: u64, block: u32) {
        let epoch = self.block_cache.epoch;
        self.block_cache.slots[Self::block_cache_slot(pc)] = BlockCacheEntry { pc, epoch, block };
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

    /// Drops all mappings.
    pub fn flush(&mut self) {
        self.next_epoch();
        for at in self.used.drain(..) {
            self.slots[usize::from(at)].tag = EMPTY;
        }
        self.is_local = false;
        self.has_evicted = false;
    }

    /// Drops the mappings of one address space, and possibly more.
    pub fn flush_local(&mut self) {
        if self.is_local {
            self.flush();
        }
    }

    /// Drops the page of `va`. If jumps may lead to it, all jumps are dropped; that
    /// excludes data pages, whose mappings change most.
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

    /// Empties block cache and jump cache. When epochs run out, old entries would become
    /// valid again, so they are cleared. Translated code, which searches the jump cache more
    /// often than that is emptied, compares no epochs.
    fn next_epoch(&mut self) {
        let BlockCache { epoch, slots } = &mut *self.block_cache;
        *epoch = epoch.checked_add(1).unwrap_or_else(|| {
            for jump in slots {
                jump.epoch = 0;
            }
            1
        });
        for at in self.jumps.drain(..) {
            self.jump_cache.slots[usize::from(at)].pc = NOWHERE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ram::PAGE_SHIFT;

    #[test]
    fn a_flush_empties_the_jump_cache() {
        let mut exec = ExecTlb::default();
        let cached = |exec: &ExecTlb, pc: u64| {
            let cache = exec.jump_cache();
            let first = ExecTlb::jump_cache_slot(pc);
            let pair = [cache.slots[first], cache.slots[first ^ 1]];
            let entry = pair.into_iter().find(|entry| entry.pc == pc)?;
            Some(entry.target)
        };
        let pc = 0x12_3456;
        assert_eq!(cached(&exec, pc), None);
        exec.cache_jump(pc, 300, 5);
        assert_eq!(cached(&exec, pc), Some(300 << TARGET_NODE_BITS | 5));
        assert_eq!(cached(&exec, pc + 2), None);
        exec.fill(pc, 1, true);
        exec.flush_page(0);
        assert!(cached(&exec, pc).is_some());
        exec.flush_page(pc);
        assert_eq!(cached(&exec, pc), None);
        // After an eviction, the pages with jumps to them are unknown.
        exec.fill(pc, 1, true);
        exec.cache_jump(pc, 300, 5);
        let rival = (pc ^ 1 << PAGE_SHIFT) + (1 << (PAGE_SHIFT + EXEC_SLOTS.ilog2()));
        assert_eq!(ExecTlb::slot(rival), ExecTlb::slot(pc));
        exec.fill(rival, 2, true);
        exec.flush_page(0);
        assert_eq!(cached(&exec, pc), None);
        exec.cache_jump(pc, 300, 5);
        // Epochs begin again.
        exec.block_cache.epoch = u32::MAX;
        exec.flush();
        assert_eq!((cached(&exec, pc), exec.block_cache.epoch), (None, 1));
        // A number that does not fit must not be truncated.
        exec.cache_jump(pc, 1 << 24, 0);
        assert_eq!(cached(&exec, pc), None);
        // Two targets have room, of three the last two; none occurs twice.
        let far = 1 << 32;
        for (target, pc) in [pc, pc + far, pc, pc + 2 * far].into_iter().enumerate() {
            exec.cache_jump(pc, target as u32, 0);
        }
        let found = [0, 1, 2].map(|turn| cached(&exec, pc + turn * far));
        let target = |number: u32| Some(number << TARGET_NODE_BITS);
        assert_eq!(found, [target(2), None, target(3)]);
    }
}
