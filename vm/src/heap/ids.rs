//! Hash table of list indices with incremental growth. Rehashing a table of hundreds of
//! thousands at once takes milliseconds, during which a run cannot be stopped.

use hashbrown::HashTable;

/// Size up to which a table is rehashed at once.
const SMALL: usize = 1 << 12;

/// Indices of a list's elements, keyed by hashes of the elements. They are added in ascending
/// order; elements may be left out, or removed.
#[derive(Debug, Default)]
pub(super) struct Ids {
    table: HashTable<u32>,
    /// The rest of the previous table that is not moved yet; only large tables have one.
    growth: Option<Box<Growth>>,
}

/// A growth in progress.
#[derive(Debug)]
struct Growth {
    /// The previous table.
    former: HashTable<u32>,
    /// Indices below this one have been moved.
    moved: u32,
    /// Indices from this one on were never in `former`.
    end: u32,
    /// Number of indices moved per insertion.
    step: u32,
}

impl Ids {
    /// Creates an empty table with room for `n` indices.
    pub(super) fn with_capacity(n: usize) -> Ids {
        Ids {
            table: HashTable::with_capacity(n),
            ..Ids::default()
        }
    }

    /// Removes all indices and keeps the allocation.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.growth = None;
    }

    /// The index with this hash for which `same` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let found = self.table.find(hash, |id| same(*id));
        match &self.growth {
            Some(growth) if found.is_none() => growth.former.find(hash, |id| same(*id)).copied(),
            _ => found.copied(),
        }
    }

    /// Candidates with this hash; an index may occur twice.
    pub(super) fn iter_hash(&self, hash: u64) -> impl Iterator<Item = u32> {
        let growth = self.growth.as_ref();
        let former = growth.map(|growth| growth.former.iter_hash(hash));
        let former = former.into_iter().flatten();
        self.table.iter_hash(hash).chain(former).copied()
    }

    /// Adds an index larger than all others. `hash_of` returns the hash of an added index,
    /// and `None` for one that was left out.
    pub(super) fn insert(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> Option<u64>) {
        let len = self.table.len();
        if len >= SMALL && len == self.table.capacity() {
            // `former` is usually moved by now, unless almost all elements were left out.
            self.move_some(u32::MAX, &hash_of);
            let table = HashTable::with_capacity(2 * len);
            self.growth = Some(Box::new(Growth {
                former: std::mem::replace(&mut self.table, table),
                moved: 0,
                end: id,
                // Insertions until the next growth: as many as `former` has indices.
                step: 2 * (id / len as u32).max(1),
            }));
        }
        // Only small tables are rehashed here, and they have no `former`.
        self.table
            .insert_unique(hash, id, |id| hash_of(*id).unwrap_or_default());
        if let Some(growth) = &self.growth {
            self.move_some(growth.step, &hash_of);
        }
    }

    /// Removes the index with this hash for which `same` holds. From now on `hash_of` returns
    /// `None` for it.
    pub(super) fn remove(&mut self, hash: u64, same: impl Fn(u32) -> bool) {
        let former = self.growth.as_mut().map(|growth| &mut growth.former);
        for table in std::iter::once(&mut self.table).chain(former) {
            if let Ok(found) = table.find_entry(hash, |id| same(*id)) {
                found.remove();
            }
        }
    }

    /// Moves up to `count` indices of `former` into the table.
    fn move_some(&mut self, count: u32, hash_of: &impl Fn(u32) -> Option<u64>) {
        let Some(growth) = &mut self.growth else {
            return;
        };
        let until = growth.moved.saturating_add(count).min(growth.end);
        for id in growth.moved..until {
            let is_there = |hash: &u64| growth.former.find(*hash, |i| *i == id).is_some();
            let hash = hash_of(id).filter(is_there);
            if let Some(hash) = hash {
                self.table
                    .insert_unique(hash, id, |id| hash_of(*id).unwrap_or_default());
            }
        }
        growth.moved = until;
        if until == growth.end {
            self.growth = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash that spreads numbers, and makes every 64th pair the same.
    fn hash(id: u32) -> u64 {
        u64::from(id - id % 64 % 2).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// All that was added is found at any time, while the table grows too.
    #[test]
    fn all_numbers_are_found_while_the_table_grows() {
        let left_out = |id: u32| id % 7 == 3;
        let hash_of = |id: u32| (!left_out(id)).then(|| hash(id));
        let mut ids = Ids::default();
        let mut moving = 0;
        for id in 0..60_000 {
            if !left_out(id) {
                ids.insert(hash(id), id, hash_of);
            }
            moving += usize::from(ids.growth.is_some());
            for look in [0, id / 3, id / 2, id.saturating_sub(1), id] {
                let found = ids.find(hash(look), |i| i == look);
                assert_eq!(found, (!left_out(look)).then_some(look), "{id}");
                let listed = ids.iter_hash(hash(look)).any(|i| i == look);
                assert_eq!(listed, !left_out(look));
            }
            assert_eq!(ids.find(hash(id + 2), |i| i == id + 2), None);
        }
        assert!(moving > 10_000, "it grew step by step: {moving}");
        let former = ids.growth.as_ref().map_or(0, |growth| growth.former.len());
        assert!(ids.table.len() + former >= 60_000 * 6 / 7);
        ids.clear();
        assert_eq!(ids.find(hash(5), |i| i == 5), None);
    }

    /// No insertion moves more than a few numbers.
    #[test]
    fn an_insertion_moves_a_few_numbers() {
        let mut ids = Ids::default();
        let asked = std::cell::Cell::new(0u32);
        let hash_of = |id: u32| {
            asked.set(asked.get() + 1);
            Some(hash(id))
        };
        for id in 0..200_000 {
            asked.set(0);
            ids.insert(hash(id), id, hash_of);
            assert!(
                id <= 2 * SMALL as u32 || asked.get() <= 8,
                "{id}: {}",
                asked.get()
            );
        }
    }
}
