//! Copies of collections in memory, with eviction of the least recently used.

use crate::Index;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Overhead of a copy in bytes, in addition to its index.
const COPY_BYTES: usize = 512;

/// A collection as of a version.
pub(crate) struct Copy {
    pub(crate) version: i64,
    pub(crate) index: Index,
}

/// The slot of a copy, which may be empty.
pub(crate) type Slot = Arc<RwLock<Option<Copy>>>;

/// Copies of a file's collections by id. Ids are never reused.
pub(crate) struct Cache(Mutex<State>);

struct State {
    limit: usize,
    copies: HashMap<i64, Held>,
    /// Ids by last use.
    by_use: BTreeMap<u64, i64>,
    clock: u64,
    usage: CacheUsage,
}

struct Held {
    slot: Slot,
    bytes: usize,
    used: u64,
}

/// Memory and load counters of the copies of collections.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct CacheUsage {
    /// Number of collections with a copy.
    pub collections: usize,
    /// Bytes of all copies.
    pub bytes: usize,
    /// Number of full loads of a collection.
    pub loads: u64,
    /// Number of copies that were updated incrementally.
    pub refreshes: u64,
    /// Number of piecewise searches, of collections larger than the limit of all copies.
    pub scans: u64,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cache").field(&self.usage()).finish()
    }
}

impl Cache {
    pub(crate) fn new(limit: usize) -> Cache {
        Cache(Mutex::new(State {
            limit,
            copies: HashMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
            usage: CacheUsage::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn usage(&self) -> CacheUsage {
        let state = self.state();
        CacheUsage {
            collections: state.copies.len(),
            ..state.usage
        }
    }

    /// Updates the counters.
    pub(crate) fn note(&self, count: impl FnOnce(&mut CacheUsage)) {
        count(&mut self.state().usage);
    }

    pub(crate) fn set_limit(&self, bytes: usize) {
        let mut state = self.state();
        state.limit = bytes;
        state.make_room(0);
    }

    /// Whether a copy of this size can fit at all.
    pub(crate) fn may_hold(&self, bytes: usize) -> bool {
        bytes.saturating_add(COPY_BYTES) <= self.state().limit
    }

    /// The slot of a collection's copy, which becomes the most recently used.
    pub(crate) fn slot(&self, id: i64) -> Slot {
        let mut state = self.state();
        if let Some(slot) = state.touch(id) {
            return slot;
        }
        let slot = Slot::default();
        state.make_room(COPY_BYTES);
        state.insert(id, Arc::clone(&slot), COPY_BYTES);
        slot
    }

    /// Reserves bytes for the copy in a slot and evicts others until there is room. Gives
    /// whether there is. An evicted copy that is being searched is freed when the search ends.
    pub(crate) fn reserve(&self, id: i64, slot: &Slot, bytes: usize) -> bool {
        let bytes = bytes.saturating_add(COPY_BYTES);
        let mut state = self.state();
        if let Some(held) = state.copies.get(&id)
            && !Arc::ptr_eq(&held.slot, slot)
        {
            // Its slot was evicted meanwhile: the copy is freed when its search ends.
            return bytes <= state.limit;
        }
        state.remove(id);
        if bytes > state.limit {
            return false;
        }
        state.make_room(bytes);
        state.insert(id, Arc::clone(slot), bytes);
        true
    }
}

impl State {
    fn touch(&mut self, id: i64) -> Option<Slot> {
        self.clock += 1;
        let held = self.copies.get_mut(&id)?;
        self.by_use.remove(&held.used);
        held.used = self.clock;
        self.by_use.insert(held.used, id);
        Some(Arc::clone(&held.slot))
    }

    fn insert(&mut self, id: i64, slot: Slot, bytes: usize) {
        self.clock += 1;
        let used = self.clock;
        self.by_use.insert(used, id);
        self.copies.insert(id, Held { slot, bytes, used });
        self.usage.bytes += bytes;
    }

    fn remove(&mut self, id: i64) {
        if let Some(held) = self.copies.remove(&id) {
            self.by_use.remove(&held.used);
            self.usage.bytes -= held.bytes;
        }
    }

    /// Evicts copies until this many more bytes fit the limit.
    fn make_room(&mut self, bytes: usize) {
        while self.usage.bytes.saturating_add(bytes) > self.limit {
            let Some((_, id)) = self.by_use.pop_first() else {
                return;
            };
            self.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COPY_BYTES, Cache};
    use std::sync::Arc;

    fn hold(cache: &Cache, id: i64, bytes: usize) -> bool {
        let slot = cache.slot(id);
        cache.reserve(id, &slot, bytes)
    }

    fn held(cache: &Cache) -> (usize, usize) {
        let usage = cache.usage();
        (
            usage.collections,
            usage.bytes - usage.collections * COPY_BYTES,
        )
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = Cache::new(3 * (100 + COPY_BYTES));
        for id in 1..=3 {
            assert!(hold(&cache, id, 100));
        }
        let first = cache.slot(1);
        assert!(hold(&cache, 4, 100));
        assert_eq!(held(&cache), (3, 300));
        assert!(Arc::ptr_eq(&first, &cache.slot(1)));
        assert!(hold(&cache, 5, 150));
        assert_eq!(held(&cache), (2, 250));
        cache.set_limit(150 + COPY_BYTES);
        assert_eq!(held(&cache), (1, 150));
        cache.set_limit(0);
        assert_eq!(held(&cache), (0, 0));
    }

    #[test]
    fn a_copy_that_grows_is_counted_once() {
        let cache = Cache::new(1_000 + COPY_BYTES);
        assert!(hold(&cache, 1, 400) && hold(&cache, 1, 900));
        assert_eq!(held(&cache), (1, 900));
        assert!(!cache.may_hold(1_001) && !hold(&cache, 1, 1_001));
        assert_eq!(held(&cache), (0, 0));
    }

    #[test]
    fn a_place_that_was_given_up_counts_nothing() {
        let cache = Cache::new(10_000);
        let old = cache.slot(1);
        cache.set_limit(0);
        cache.set_limit(10_000);
        assert!(hold(&cache, 1, 100) && !Arc::ptr_eq(&old, &cache.slot(1)));
        assert!(cache.reserve(1, &old, 500));
        assert_eq!(held(&cache), (1, 100));
    }
}
