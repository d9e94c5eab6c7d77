//! Known code: which regions of guest code are compiled, by the bytes of their pages.

use super::code_store::{PackedBundle, Region};
use std::collections::{HashMap, HashSet};
use wasmtime::Module;

/// Maximum regions known for a page: with other entries, it gets another region.
const MAX_OF_PAGE: usize = 8;

/// SHA-256 of all that the code of a page depends on, except for its entries.
pub(super) type PageKey = [u8; 32];

/// All known code.
#[derive(Default)]
pub(super) struct KnownCode {
    /// Regions by page.
    pages: HashMap<PageKey, Vec<Known>>,
    pub known: usize,
    pub bundles: HashMap<u64, Bundle>,
    last_bundle: u64,
    /// Bytes of the bundles in memory.
    pub loaded: usize,
    /// Requests under compilation.
    pub waiting: HashSet<Request>,
    /// Layouts whose stored code is known.
    pub scanned: HashSet<[u8; 32]>,
    pub unsaved: HashMap<[u8; 32], Vec<PackedBundle>>,
    pub unsaved_bytes: usize,
}

/// A page and the hot offsets in it.
pub(super) type Request = (PageKey, Vec<u16>);

/// A known region.
#[derive(Clone)]
pub(super) struct Known {
    /// Its module and the function there.
    pub place: (u64, usize),
    /// The offsets that were hot.
    roots: Vec<u16>,
    /// Its entries: offset and node.
    pub entries: Vec<(u16, u8)>,
}

/// A module of functions.
pub(super) enum Bundle {
    Loaded(Module, usize),
    Stored(PackedBundle),
}

impl KnownCode {
    /// Adds regions as the functions of a new bundle; returns its number.
    pub(super) fn insert(&mut self, regions: &[Region]) -> u64 {
        self.last_bundle += 1;
        let number = self.last_bundle;
        for region in regions {
            let of_page = self.pages.entry(region.key).or_default();
            if of_page.len() < MAX_OF_PAGE {
                self.known += 1;
                of_page.push(Known {
                    place: (number, region.function),
                    roots: region.roots.clone(),
                    entries: region.entries.clone(),
                });
            }
        }
        number
    }

    /// Regions of a page.
    pub(super) fn of_page(&self, key: &PageKey) -> &[Known] {
        self.pages.get(key).map_or(&[], Vec::as_slice)
    }

    /// Whether a page has code that begins at one of these offsets; without any, whether it
    /// has code.
    pub(super) fn has(&self, key: &PageKey, roots: &[u16]) -> bool {
        self.of_page(key).iter().any(|known| {
            let enters = |root: &u16| known.entries.iter().any(|entry| entry.0 == *root);
            roots.is_empty() || roots.iter().any(enters)
        })
    }

    /// Whether no region is made for these offsets: it was tried, or the page has enough.
    pub(super) fn is_vain(&self, key: &PageKey, roots: &[u16]) -> bool {
        let known = self.of_page(key);
        known.len() >= MAX_OF_PAGE || known.iter().any(|known| known.roots == roots)
    }

    /// Removes a bundle that can no longer be loaded.
    pub(super) fn remove(&mut self, number: u64) {
        self.bundles.remove(&number);
        self.pages.retain(|_, known| {
            known.retain(|known| known.place.0 != number);
            !known.is_empty()
        });
        self.known = self.pages.values().map(Vec::len).sum();
    }

    /// Forgets all code; guests hold what they use, and the rest is stored.
    pub(super) fn forget(&mut self) {
        *self = Self {
            last_bundle: self.last_bundle,
            waiting: std::mem::take(&mut self.waiting),
            unsaved: std::mem::take(&mut self.unsaved),
            unsaved_bytes: self.unsaved_bytes,
            ..Self::default()
        };
    }
}
