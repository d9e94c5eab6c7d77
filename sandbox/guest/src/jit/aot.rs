//! Ahead-of-time (AOT) regions, which come with an image. Their functions are in the
//! emulator's own table from the start, keyed by the address of their entries.
//!
//! They were compiled from the memory that the image holds. A page with such entries counts
//! as decoded from the start, so that a write to it is recorded, and the next `fence.i`
//! drops them like decoded code.

use super::context::ContextLayout;
use super::emit::OptLevel;
use super::profile::{Profile, ProfiledPage};
use super::region::Region;
use super::structure;
use super::{MAX_FUNCTION, emit};
use crate::ram::{PAGE_SIZE, Ram};
use std::collections::BTreeSet;

/// Maximum AOT functions: an entry has a 16-bit function number.
const MAX_FUNCTIONS: usize = u16::MAX as usize;

/// Share of samples in pages that are optimised for speed. The others are optimised for
/// size, to make room for more of them.
const HOT_PERCENT: u64 = 85;

/// Share of samples in pages whose regions are in functions with those of their neighbours.
/// Jumps between them cost less, but all of a large function costs more: it has too few
/// registers for what it uses everywhere. That pays for the hottest loops.
const CLUSTER_PERCENT: u64 = 70;

/// Instructions of such a function, beyond which it gets no more pages: the time to compile
/// it grows faster than its size.
const CLUSTER_INSTRUCTIONS: usize = 8192;

/// An entry of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Page of RAM.
    page: u32,
    /// Offset in the page.
    offset: u16,
    /// Node of the region.
    node: u8,
    /// Number of the function, from the first AOT function.
    function: u16,
}

/// The AOT regions; see the module.
#[derive(Debug, Default)]
pub(crate) struct AotRegions {
    /// Sorted by page and offset.
    entries: Vec<Entry>,
    /// Number of the first function in the table.
    base: u32,
    /// Whether the regions are enabled.
    is_on: bool,
}

impl AotRegions {
    /// Translates the code of a profile, the hottest pages first, until the functions have
    /// about `room` bytes: the very hottest for speed, the others for size. The first
    /// function will be number `base` of the table. Returns the functions, each after its
    /// length (32 bits, little-endian); without a length, it is the one before it once more.
    pub(crate) fn compile(
        profile: &Profile,
        ram: &Ram,
        layout: &ContextLayout,
        base: u32,
        room: usize,
    ) -> (Self, Vec<u8>) {
        let mut entries = Vec::new();
        // Growing would leave copies behind, which a snapshot would store.
        let mut functions = Vec::with_capacity(room + 4 * MAX_FUNCTION);
        let mut count = 0;
        let mut pages = profile.hottest();
        let hot = hottest(&pages, HOT_PERCENT);
        let clustered = hottest(&pages, CLUSTER_PERCENT);
        let is_user = |known: &ProfiledPage| known.user_samples == known.samples;
        // Neighbours mostly belong to one file, and call each other.
        pages[..clustered].sort_by_key(|(page, known)| (is_user(known), *page));
        let mut cluster: Vec<Region> = Vec::new();
        let mut of_page: Vec<usize> = Vec::new();
        let mut pages = pages.into_iter().enumerate().peekable();
        'pages: while let Some((at, (page, known))) = pages.next() {
            if let Some(bytes) = page_bytes(ram, page) {
                let mut bytes = bytes.to_vec();
                bytes.extend(known.next_half.into_iter().flat_map(u16::to_le_bytes));
                cluster.extend(regions(&bytes, known));
                of_page.resize(cluster.len(), page);
            }
            let instructions: usize = cluster.iter().map(Region::instructions).sum();
            let goes_on = |(next, (_, other)): &(usize, (usize, &ProfiledPage))| {
                *next < clustered && is_user(other) == is_user(known)
            };
            if instructions < CLUSTER_INSTRUCTIONS && pages.peek().is_some_and(goes_on) {
                continue;
            }
            let layout = layout.for_mode(is_user(known));
            let opt_level = match at < hot {
                true => OptLevel::Speed,
                false => OptLevel::Size,
            };
            let size = if at < clustered { cluster.len() } else { 1 };
            for (part, pages) in cluster.chunks(size.max(1)).zip(of_page.chunks(size.max(1))) {
                if functions.len() >= room || count + part.len() > MAX_FUNCTIONS {
                    break 'pages;
                }
                let function = emit::function(part, base + count as u32, &layout, opt_level);
                functions.extend((function.len() as u32).to_le_bytes());
                functions.extend(function);
                // The same function once more for each other region.
                functions.extend(std::iter::repeat_n(0u32.to_le_bytes(), part.len() - 1).flatten());
                for (region, page) in part.iter().zip(pages) {
                    entries.extend(structure::members(region.entries).map(|node| Entry {
                        page: *page as u32,
                        offset: region.nodes[node].offset,
                        node: layout.entry(node),
                        function: count as u16,
                    }));
                    count += 1;
                }
            }
            cluster.clear();
            of_page.clear();
        }
        entries.sort_by_key(|entry| (entry.page, entry.offset));
        entries.dedup_by_key(|entry| (entry.page, entry.offset));
        let aot = Self {
            entries,
            base,
            is_on: true,
        };
        (aot, functions)
    }

    /// Enables or disables the regions.
    pub(crate) fn switch(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// The function and node at an address.
    pub(crate) fn find(&self, page: usize, offset: usize) -> Option<(u32, u8)> {
        if !self.is_on {
            return None;
        }
        let wanted = (page as u32, offset as u16);
        let key = |entry: &Entry| (entry.page, entry.offset);
        let at = self.entries.binary_search_by_key(&wanted, key).ok()?;
        let entry = self.entries[at];
        Some((self.base + u32::from(entry.function), entry.node))
    }

    /// All enabled entries: page, offset, function and node.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = (usize, usize, u32, u8)> {
        let used = if self.is_on { &self.entries[..] } else { &[] };
        used.iter().map(|entry| {
            let function = self.base + u32::from(entry.function);
            let (page, offset) = (entry.page as usize, usize::from(entry.offset));
            (page, offset, function, entry.node)
        })
    }

    /// The pages that have entries.
    pub(crate) fn pages(&self) -> impl Iterator<Item = usize> {
        self.entries
            .chunk_by(|a, b| a.page == b.page)
            .map(|chunk| chunk[0].page as usize)
    }

    /// Drops the entries of a page whose code has changed.
    pub(crate) fn drop_page(&mut self, page: usize) {
        let page = page as u32;
        let start = self.entries.partition_point(|entry| entry.page < page);
        let end = self.entries.partition_point(|entry| entry.page <= page);
        self.entries.drain(start..end);
    }
}

/// Number of the first ones of these pages that have a share of the samples.
fn hottest(pages: &[(usize, &ProfiledPage)], percent: u64) -> usize {
    let all = pages.iter().map(|(_, known)| u64::from(known.samples));
    let mut left = all.sum::<u64>() * percent / 100;
    let is_hot = |(_, known): &&(usize, &ProfiledPage)| {
        let is_hot = left > 0;
        left = left.saturating_sub(known.samples.into());
        is_hot
    };
    pages.iter().take_while(is_hot).count()
}

fn page_bytes(ram: &Ram, page: usize) -> Option<&[u8]> {
    ram.bytes().get(page * PAGE_SIZE..(page + 1) * PAGE_SIZE)
}

/// Finds as few regions as possible that cover all entries of a page. A jump from one
/// region into another becomes an entry too, and so does the rest of a long block.
fn regions(bytes: &[u8], known: &ProfiledPage) -> Vec<Region> {
    let mut entries = known.entries.clone();
    let mut blocks = known.blocks.clone();
    loop {
        let found = cover(bytes, &blocks, &entries);
        let before = entries.len();
        blocks.extend(found.iter().flat_map(Region::cuts));
        let targets = found.iter().flat_map(Region::exit_targets);
        entries.extend(targets.filter(|target| blocks.contains(target)));
        if entries.len() == before {
            return found;
        }
    }
}

/// Regions of these blocks that cover these entries.
fn cover(bytes: &[u8], blocks: &BTreeSet<u16>, entries: &BTreeSet<u16>) -> Vec<Region> {
    let mut found = Vec::new();
    let mut left = entries.clone();
    while !left.is_empty() {
        let roots: Vec<u16> = left.iter().copied().collect();
        let Some(region) = Region::among(bytes, &roots, |offset| blocks.contains(&offset)) else {
            break;
        };
        let before = left.len();
        // A block that did not fit the region is not one of its entries.
        for node in structure::members(region.entries) {
            left.remove(&region.nodes[node].offset);
        }
        // Without progress, the remaining entries cannot be translated.
        if left.len() == before {
            break;
        }
        found.push(region);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::region::MAX_INSTRUCTIONS;
    use crate::ram::RAM_BASE;

    /// A page of repeated `addi a0, a0, 1; ret`.
    fn profiled(ram: &mut Ram) -> Profile {
        let mut profile = Profile::default();
        for at in (0..PAGE_SIZE).step_by(8) {
            let va = RAM_BASE + (PAGE_SIZE + at) as u64;
            ram.write_u32(va, 0x0015_0513).expect("RAM");
            ram.write_u32(va + 4, 0x0000_8067).expect("RAM");
            profile.block(1, at);
            profile.entry(1, at);
        }
        profile.sample(1, false);
        profile
    }

    #[test]
    fn all_entries_are_covered_until_the_page_changes() {
        let mut ram = Ram::new(4 * PAGE_SIZE);
        let profile = profiled(&mut ram);
        let (mut aot, functions) =
            AotRegions::compile(&profile, &ram, &ContextLayout::default(), 7, 1 << 20);
        // More blocks than a region has.
        let first = u32::from_le_bytes(*functions.first_chunk().expect("a length")) as usize;
        assert!(first + 4 < functions.len());
        for at in (0..PAGE_SIZE).step_by(8) {
            let (function, _) = aot.find(1, at).expect("an entry");
            assert!(function >= 7);
        }
        assert_eq!(aot.find(1, 4), None);
        assert_eq!(aot.find(0, 0), None);
        assert_eq!(aot.pages().collect::<Vec<_>>(), [1]);
        aot.switch(false);
        assert_eq!(aot.find(1, 0), None);
        aot.switch(true);
        aot.drop_page(1);
        assert_eq!(aot.find(1, 0), None);
        assert_eq!(aot.pages().next(), None);
    }

    #[test]
    fn entries_that_one_region_has_no_room_for_get_another() {
        let mut ram = Ram::new(4 * PAGE_SIZE);
        let mut profile = Profile::default();
        // Few entries, each before more instructions than half a region has.
        let entries = [0, 1024, 2048, 3072];
        for at in (0..PAGE_SIZE).step_by(2) {
            let last = (at + 2) % 1024 == 0;
            // c.addi a0, 1; c.jr ra
            let half = if last { 0x8082 } else { 0x0505 };
            ram.write_u16(RAM_BASE + (PAGE_SIZE + at) as u64, half)
                .expect("RAM");
        }
        for entry in entries {
            profile.block(1, entry);
            profile.entry(1, entry);
        }
        profile.sample(1, false);
        let (aot, _) = AotRegions::compile(&profile, &ram, &ContextLayout::default(), 7, 1 << 20);
        for entry in entries {
            assert!(aot.find(1, entry).is_some(), "{entry}");
        }
    }

    #[test]
    fn long_blocks_are_covered_to_their_end() {
        let mut ram = Ram::new(4 * PAGE_SIZE);
        let mut profile = Profile::default();
        // c.addi a0, 1, up to c.jr ra: more than two regions have.
        let last = PAGE_SIZE - 2;
        for at in (0..PAGE_SIZE).step_by(2) {
            let half = if at == last { 0x8082 } else { 0x0505 };
            ram.write_u16(RAM_BASE + (PAGE_SIZE + at) as u64, half)
                .expect("RAM");
        }
        profile.block(1, 0);
        profile.entry(1, 0);
        profile.sample(1, false);
        let (aot, _) = AotRegions::compile(&profile, &ram, &ContextLayout::default(), 7, 1 << 20);
        let entries: Vec<usize> = aot.entries().map(|entry| entry.1).collect();
        assert_eq!(entries, [0, 2 * MAX_INSTRUCTIONS, 4 * MAX_INSTRUCTIONS]);
    }

    #[test]
    fn there_is_only_so_much_room() {
        let mut ram = Ram::new(4 * PAGE_SIZE);
        let profile = profiled(&mut ram);
        let (aot, functions) = AotRegions::compile(&profile, &ram, &ContextLayout::default(), 1, 0);
        assert!(functions.is_empty());
        assert_eq!(aot.pages().next(), None);
    }
}
