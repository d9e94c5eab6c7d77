//! Execution profile: the guest code that is worth translating ahead of time. It is
//! recorded while a copy of a guest runs the training workload, for the AOT regions of an
//! image.
//!
//! Cold code is as important as hot code: a region holds only blocks that ran, so that it
//! is small and its registers need not be kept for paths that are never taken.

use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Profile of a page of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfiledPage {
    /// Samples taken in the page.
    pub samples: u32,
    /// How many of them in user mode.
    pub user_samples: u32,
    /// The first two bytes of the next page, if an instruction ran that begins on this one.
    pub next_half: Option<u16>,
    /// Offsets of the blocks that ran.
    pub blocks: BTreeSet<u16>,
    /// Offsets of blocks that were entered from elsewhere.
    pub entries: BTreeSet<u16>,
}

/// Profiles of all pages, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pages: BTreeMap<u32, ProfiledPage>,
    /// Jump targets seen: address space and address.
    targets: HashSet<(u64, u64)>,
}

/// Entry flag of an encoded offset, which has 12 bits.
const ENTRY: u16 = 1 << 15;

impl Profile {
    fn page(&mut self, page: usize) -> &mut ProfiledPage {
        self.pages.entry(page as u32).or_default()
    }

    /// Records that a block ran.
    pub fn block(&mut self, page: usize, offset: usize) {
        self.page(page).blocks.insert(offset as u16);
    }

    /// Whether a jump target in an address space is new.
    pub fn is_new(&mut self, space: u64, target: u64) -> bool {
        self.targets.insert((space, target))
    }

    /// Records that a jump from elsewhere reached a block.
    pub fn entry(&mut self, page: usize, offset: usize) {
        self.page(page).entries.insert(offset as u16);
    }

    /// Records that an instruction ran whose second half is the start of the next page.
    pub fn crossing(&mut self, page: usize, next_half: u16) {
        self.page(page).next_half = Some(next_half);
    }

    /// Counts a sample, in user mode or not.
    pub fn sample(&mut self, page: usize, is_user: bool) {
        let page = self.page(page);
        page.samples += 1;
        page.user_samples += u32::from(is_user);
    }

    /// Lists the sampled pages, those with the most samples per executed block first: a
    /// loop deserves its room more than large code.
    pub fn hottest(&self) -> Vec<(usize, &ProfiledPage)> {
        let sampled = self.pages.iter().filter(|(_, page)| page.samples > 0);
        let mut pages: Vec<_> = sampled
            .map(|(number, page)| (*number as usize, page))
            .collect();
        // The size of a page's translation grows with its blocks.
        let density =
            |page: &ProfiledPage| (u64::from(page.samples) << 16) / page.blocks.len().max(1) as u64;
        pages.sort_by_key(|(number, page)| (std::cmp::Reverse(density(page)), *number));
        pages
    }

    /// Encodes the profile for another instance: for each page its number, its samples,
    /// those in user mode, the start of the next page and the number of its blocks (32 bits
    /// each), then the blocks (16 bits each). Little-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, page) in &self.pages {
            let blocks: Vec<u16> = page.blocks.union(&page.entries).copied().collect();
            let count = blocks.len() as u32;
            let next = page.next_half.map_or(u32::MAX, u32::from);
            for word in [*number, page.samples, page.user_samples, next, count] {
                bytes.extend(word.to_le_bytes());
            }
            for block in blocks {
                let is_entry = page.entries.contains(&block);
                let short = if is_entry { block | ENTRY } else { block };
                bytes.extend(short.to_le_bytes());
            }
        }
        bytes
    }

    /// Decodes a profile; `None` if it is truncated.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut profile = Self::default();
        while !bytes.is_empty() {
            let mut words = [0; 5];
            for word in &mut words {
                let (first, rest) = bytes.split_first_chunk()?;
                (*word, bytes) = (u32::from_le_bytes(*first), rest);
            }
            let [number, samples, user_samples, next, count] = words;
            let page = profile.page(number as usize);
            (page.samples, page.user_samples) = (samples, user_samples);
            page.next_half = u16::try_from(next).ok();
            for _ in 0..count {
                let (first, rest) = bytes.split_first_chunk()?;
                let short = u16::from_le_bytes(*first);
                bytes = rest;
                page.blocks.insert(short & !ENTRY);
                if short & ENTRY != 0 {
                    page.entries.insert(short & !ENTRY);
                }
            }
        }
        Some(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_its_encoding() {
        let mut profile = Profile::default();
        profile.block(3, 8);
        profile.block(3, 4094);
        profile.crossing(3, 0xffff);
        profile.entry(3, 8);
        profile.sample(3, true);
        profile.entry(70_000, 0);
        profile.sample(70_000, false);
        profile.sample(70_000, true);
        profile.block(1, 2);
        let bytes = profile.encode();
        let back = Profile::decode(&bytes).expect("whole");
        assert_eq!(back.encode(), bytes);
        let hottest: Vec<usize> = back.hottest().iter().map(|(page, _)| *page).collect();
        assert_eq!(hottest, [70_000, 3]);
        let page = back.hottest()[1].1;
        assert_eq!(page.entries, BTreeSet::from([8]));
        assert_eq!((page.user_samples, page.next_half), (1, Some(0xffff)));
        assert_eq!(Profile::decode(&bytes[..bytes.len() - 1]), None);
    }
}
