//! Dictionaries: keys of one object that grows or shrinks member by member (D66).
//!
//! A shape for each number of keys would make a long loop quadratic. So beyond a few keys
//! such an object has unshared keys, in tables that change in place. Values have the slots of
//! their keys, without gaps: the last one replaces a deleted one. Entries, numbered by
//! arrival, keep insertion order.

use super::{KeyId, LOOKED_UP};
use crate::heap::ids::Ids;
use crate::pace::Pace;
use std::collections::BTreeMap;

/// Bytes of a dictionary beyond its entries.
const DICT_BYTES: usize = 256;

/// Bytes of an entry: key, slot and entry in lists that grow by doubling, and its place in a
/// hash table that may exist twice during growth.
const ENTRY_BYTES: usize = 64;

/// Additional bytes of an entry whose key is an array index.
const INT_BYTES: usize = 32;

/// The slot of an entry whose key was deleted.
const NO_SLOT: u32 = u32::MAX;

/// Number of entries of deleted keys that may always remain.
const SPARE_ENTRIES: usize = 64;

/// Properties of interned keys.
pub(super) trait KeyFacts {
    /// The hash of a key's text.
    fn hash(&self, key: KeyId) -> u64;
    /// The numeric value of a key that is an array index.
    fn int(&self, key: KeyId) -> Option<u32>;
}

/// The keys of one object.
#[derive(Debug, Default)]
pub(super) struct Dict {
    /// The key of each slot.
    keys: Vec<KeyId>,
    /// The entry of each slot.
    entries: Vec<u32>,
    /// The slot of each entry.
    slots: Vec<u32>,
    /// Entries by the hashes of their keys.
    ids: Ids,
    /// Entries with array indices as keys, by index.
    ints: BTreeMap<u32, u32>,
}

impl Dict {
    /// Maximum bytes of a dictionary with this number of keys.
    pub(super) fn most_bytes(keys: usize) -> usize {
        DICT_BYTES + keys * (ENTRY_BYTES + INT_BYTES)
    }

    /// Maximum bytes of an additional key.
    pub(super) const KEY_BYTES: usize = ENTRY_BYTES + INT_BYTES;

    /// Creates a dictionary of these distinct keys, in slot and insertion order.
    pub(super) fn of<P: Pace>(
        keys: &[KeyId],
        facts: &impl KeyFacts,
        pace: &mut P,
    ) -> Result<Dict, P::Stop> {
        let mut dict = Dict {
            ids: Ids::with_capacity(keys.len()),
            ..Dict::default()
        };
        for key in keys {
            pace.work(2 * LOOKED_UP)?;
            dict.push(*key, facts);
        }
        Ok(dict)
    }

    /// Restores a dictionary from the entry of each slot and the number of entries; `None` if
    /// they are inconsistent.
    pub(super) fn restored(
        keys: &[KeyId],
        entries: &[u32],
        count: usize,
        facts: &impl KeyFacts,
    ) -> Option<Dict> {
        if keys.len() != entries.len() || count > most_entries(keys.len()) {
            return None;
        }
        let mut dict = Dict {
            keys: keys.to_vec(),
            entries: entries.to_vec(),
            slots: vec![NO_SLOT; count],
            ..Dict::default()
        };
        for (slot, entry) in entries.iter().enumerate() {
            match dict.slots.get_mut(*entry as usize) {
                Some(place) if *place == NO_SLOT => *place = slot as u32,
                _ => return None,
            }
            if let Some(int) = facts.int(keys[slot]) {
                dict.ints.insert(int, *entry);
            }
        }
        for entry in 0..count as u32 {
            let slot = dict.slots[entry as usize];
            if slot != NO_SLOT {
                let hash = facts.hash(keys[slot as usize]);
                let known = (&dict.keys, &dict.slots);
                dict.ids.insert(hash, entry, |e| hash_of(known, e, facts));
            }
        }
        Some(dict)
    }

    /// The keys in slot order.
    #[inline]
    pub(super) fn keys(&self) -> &[KeyId] {
        &self.keys
    }

    /// The keys in slot order, to be renumbered.
    pub(super) fn keys_mut(&mut self) -> &mut [KeyId] {
        &mut self.keys
    }

    /// The entry of each slot, and the number of entries.
    pub(super) fn entries(&self) -> (&[u32], usize) {
        (&self.entries, self.slots.len())
    }

    pub(super) fn cost(&self) -> usize {
        DICT_BYTES + self.slots.len() * ENTRY_BYTES + self.ints.len() * INT_BYTES
    }

    #[inline]
    pub(super) fn find(&self, key: KeyId, hash: u64) -> Option<usize> {
        let slot = |entry: u32| self.slots[entry as usize] as usize;
        let entry = self.ids.find(hash, |entry| self.keys[slot(entry)] == key)?;
        Some(slot(entry))
    }

    /// Adds a new key in the next slot.
    pub(super) fn push(&mut self, key: KeyId, facts: &impl KeyFacts) {
        let entry = self.slots.len() as u32;
        self.slots.push(self.keys.len() as u32);
        self.entries.push(entry);
        self.keys.push(key);
        let known = (&self.keys, &self.slots);
        self.ids
            .insert(facts.hash(key), entry, |e| hash_of(known, e, facts));
        if let Some(int) = facts.int(key) {
            self.ints.insert(int, entry);
        }
    }

    /// Deletes the key of a slot, which the last key takes.
    pub(super) fn swap_remove<P: Pace>(
        &mut self,
        slot: usize,
        facts: &impl KeyFacts,
        pace: &mut P,
    ) -> Result<(), P::Stop> {
        let (key, entry) = (self.keys[slot], self.entries[slot]);
        self.ids.remove(facts.hash(key), |e| e == entry);
        if let Some(int) = facts.int(key) {
            self.ints.remove(&int);
        }
        self.slots[entry as usize] = NO_SLOT;
        self.keys.swap_remove(slot);
        self.entries.swap_remove(slot);
        if let Some(moved) = self.entries.get(slot) {
            self.slots[*moved as usize] = slot as u32;
        }
        if self.slots.len() > most_entries(self.keys.len()) {
            self.number_anew(facts, pace)?;
        }
        Ok(())
    }

    /// Drops the entries of deleted keys.
    fn number_anew<P: Pace>(&mut self, facts: &impl KeyFacts, pace: &mut P) -> Result<(), P::Stop> {
        let former = std::mem::take(&mut self.slots);
        self.slots = Vec::with_capacity(self.keys.len());
        self.ids = Ids::with_capacity(self.keys.len());
        for slot in former.into_iter().filter(|slot| *slot != NO_SLOT) {
            pace.work(2 * LOOKED_UP)?;
            let (entry, key) = (self.slots.len() as u32, self.keys[slot as usize]);
            self.slots.push(slot);
            self.entries[slot as usize] = entry;
            let known = (&self.keys, &self.slots);
            self.ids
                .insert(facts.hash(key), entry, |e| hash_of(known, e, facts));
            if let Some(int) = facts.int(key) {
                self.ints.insert(int, entry);
            }
        }
        self.keys.shrink_to(2 * self.keys.len());
        self.entries.shrink_to(2 * self.entries.len());
        Ok(())
    }

    /// The slots in insertion order.
    pub(super) fn inserted(&self) -> impl Iterator<Item = usize> + '_ {
        let slots = self.slots.iter().filter(|slot| **slot != NO_SLOT);
        slots.map(|slot| *slot as usize)
    }

    /// Whether slots are in insertion order.
    pub(super) fn is_in_order(&self) -> bool {
        self.entries.is_sorted()
    }

    /// The slots in enumeration order (D37).
    pub(super) fn order<'d>(
        &'d self,
        facts: &'d impl KeyFacts,
    ) -> impl Iterator<Item = usize> + 'd {
        let ints = self.ints.values();
        let ints = ints.map(|entry| self.slots[*entry as usize] as usize);
        let is_name = |slot: &usize| facts.int(self.keys[*slot]).is_none();
        ints.chain(self.inserted().filter(is_name))
    }
}

/// Number of entries above which those of deleted keys are dropped.
fn most_entries(keys: usize) -> usize {
    2 * keys + SPARE_ENTRIES
}

/// The hash of an entry's key; `None` if it was deleted.
fn hash_of(
    (keys, slots): (&Vec<KeyId>, &Vec<u32>),
    entry: u32,
    facts: &impl KeyFacts,
) -> Option<u64> {
    let slot = slots.get(entry as usize)?;
    Some(facts.hash(*keys.get(*slot as usize)?))
}
