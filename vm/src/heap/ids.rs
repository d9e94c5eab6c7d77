//! Hash table of numbers in a list, with incremental growth: a table of hundreds
//! of thousands that is made anew at once takes milliseconds, in which no run can
//! be stopped.

use hashbrown::HashTable;

/// Up to so many numbers a table is made anew at once.
const SMALL: usize = 1 << 12;

/// The numbers of a list's elements, found by the hashes of what they stand for.
/// They are added in ascending order; some elements may be left out, or removed.
#[derive(Debug, Default)]
pub(super) struct Ids {
    table: HashTable<u32>,
    /// What of a table before it grew is not in the new one yet; few tables are that large.
    growth: Option<Box<Growth>>,
}

/// A table that has grown.
#[derive(Debug)]
struct Growth {
    /// The table before.
    former: HashTable<u32>,
    /// Numbers below are in the new one.
    moved: u32,
    /// Numbers from here on were never in the former.
    end: u32,
    /// How many an insertion moves.
    step: u32,
}

impl Ids {
    /// An empty table with room for so many.
    pub(super) fn with_capacity(n: usize) -> Ids {
        Ids {
            table: HashTable::with_capacity(n),
            ..Ids::default()
        }
    }

    /// Forgets all numbers and keeps the room.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.growth = None;
    }

    /// The number with that hash of which `same` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let found = self.table.find(hash, |id| same(*id));
        match &self.growth {
            Some(growth) if found.is_none() => growth.former.find(hash, |id| same(*id)).copied(),
            _ => found.copied(),
        }
    }

    /// Numbers that may have that hash; one may come twice.
    pub(super) fn iter_hash(&self, hash: u64) -> impl Iterator<Item = u32> {
        let growth = self.growth.as_ref();
        let former = growth.map(|growth| growth.former.iter_hash(hash));
        let former = former.into_iter().flatten();
        self.table.iter_hash(hash).chain(former).copied()
    }

    /// Adds a number that is larger than all others. `hash_of` gives the hash of
    /// one that was added, and nothing for what was left out.
    pub(super) fn insert(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> Option<u64>) {
        let len = self.table.len();
        if len >= SMALL && len == self.table.capacity() {
            // All of the former is in it by now, unless almost all was left out.
            self.move_some(u32::MAX, &hash_of);
            let table = HashTable::with_capacity(2 * len);
            self.growth = Some(Box::new(Growth {
                former: std::mem::replace(&mut self.table, table),
                moved: 0,
                end: id,
                // As many insertions are left as the former has numbers.
                step: 2 * (id / len as u32).max(1),
            }));
        }
        // Only a small one is made anew here, and of that all is in the table.
        self.table
            .insert_unique(hash, id, |id| hash_of(*id).unwrap_or_default());
        if let Some(growth) = &self.growth {
            self.move_some(growth.step, &hash_of);
        }
    }

    /// Removes the number with that hash of which `same` holds. `hash_of` of it gives
    /// nothing from now on.
    pub(super) fn remove(&mut self, hash: u64, same: impl Fn(u32) -> bool) {
        let former = self.growth.as_mut().map(|growth| &mut growth.former);
        for table in std::iter::once(&mut self.table).chain(former) {
            if let Ok(found) = table.find_entry(hash, |id| same(*id)) {
                found.remove();
            }
        }
    }

    /// Takes so many numbers of the former into the table.
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
