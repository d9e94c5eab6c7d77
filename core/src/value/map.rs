//! The ordered, string-keyed map of objects.
//!
//! Each map has a random hash key, so crafted keys cannot degrade lookups to linear searches
//! (security C10).

use super::Value;
use crate::text::Text;
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// Up to this many members, a linear search beats hashing the keys.
const SCAN_MEMBERS: usize = 8;

/// Hash table of positions in the member list, which owns the keys.
#[derive(Clone, Default)]
struct KeyIndex {
    hasher: RandomState,
    places: HashTable<usize>,
}

#[derive(Clone, Default)]
struct Inner {
    entries: Vec<(Text, Value)>,
    /// Position of each key, if there are more than [`SCAN_MEMBERS`].
    index: Option<KeyIndex>,
}

impl KeyIndex {
    /// Adds the member at a position.
    fn add(&mut self, entries: &[(Text, Value)], at: usize) {
        let hash = |at: &usize| self.hasher.hash_one(entries[*at].0.as_bytes());
        self.places.insert_unique(hash(&at), at, hash);
    }
}

impl Inner {
    fn find(&self, key: &[u8]) -> Option<usize> {
        match &self.index {
            None => self.entries.iter().position(|(k, _)| k.as_bytes() == key),
            Some(index) => {
                let same = |at: &usize| self.entries[*at].0.as_bytes() == key;
                let hash = index.hasher.hash_one(key);
                index.places.find(hash, same).copied()
            }
        }
    }

    /// Rebuilds the index with the capacity of the member list. A growing index is rebuilt at once.
    fn reindex(&mut self) {
        self.index = None;
        if self.entries.len() > SCAN_MEMBERS {
            let mut index = KeyIndex {
                places: HashTable::with_capacity(self.entries.capacity()),
                ..KeyIndex::default()
            };
            for at in 0..self.entries.len() {
                index.add(&self.entries, at);
            }
            self.index = Some(index);
        }
    }

    fn take_entries(&mut self) -> Vec<(Text, Value)> {
        self.index = None;
        std::mem::take(&mut self.entries)
    }
}

/// The members of an object in insertion order. Boxed, which keeps a [`Value`] at 24 bytes.
#[derive(Clone, Default)]
pub struct Map(Box<Inner>);

/// Iterator over members in insertion order.
#[derive(Clone, Debug)]
pub struct Iter<'a>(std::slice::Iter<'a, (Text, Value)>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Text, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, value)| (key, value))
    }
}

impl Map {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty map with room for `members`.
    #[must_use]
    pub fn with_capacity(members: usize) -> Self {
        Self(Box::new(Inner {
            entries: Vec::with_capacity(members),
            index: None,
        }))
    }

    /// Sets a member and returns the replaced value. A replaced member keeps its place in the
    /// order.
    pub fn insert(&mut self, key: impl Into<Text>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        let inner = &mut *self.0;
        if let Some(at) = inner.find(key.as_bytes()) {
            return Some(std::mem::replace(&mut inner.entries[at].1, value));
        }
        self.push_distinct(key, value);
        None
    }

    /// Adds a member whose name the map does not contain.
    #[doc(hidden)]
    pub fn push_distinct(&mut self, key: Text, value: Value) {
        let inner = &mut *self.0;
        debug_assert!(inner.find(key.as_bytes()).is_none(), "{key:?}");
        let at = inner.entries.len();
        inner.entries.push((key, value));
        match &mut inner.index {
            Some(index) => index.add(&inner.entries, at),
            None if at == SCAN_MEMBERS => inner.reindex(),
            None => {}
        }
    }

    /// The member with a name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.get_bytes(key.as_bytes())
    }

    /// The member with a WTF-8 name.
    #[must_use]
    pub fn get_bytes(&self, key: &[u8]) -> Option<&Value> {
        self.0.find(key).map(|at| &self.0.entries[at].1)
    }

    /// The member with a name, mutably.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let at = self.0.find(key.as_bytes())?;
        Some(&mut self.0.entries[at].1)
    }

    /// Removes a member in linear time; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.find(key.as_bytes())?;
        let (_, value) = self.0.entries.remove(at);
        self.0.reindex();
        Some(value)
    }

    /// True if there is a member with the name, even if it is `undefined`.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.0.find(key.as_bytes()).is_some()
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// True if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// Members in insertion order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.0.entries.iter())
    }

    /// Keys in insertion order.
    pub fn keys(&self) -> impl Iterator<Item = &Text> {
        self.iter().map(|(key, _)| key)
    }

    /// Values in insertion order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(_, value)| value)
    }

    /// Members in the order of ECMA-262 §10.1.11: array indices ascending, then the rest by
    /// insertion (decision D37).
    pub fn iter_js_order(&self) -> impl Iterator<Item = (&Text, &Value)> {
        let order = js_order(self.keys().map(Text::as_bytes));
        (0..self.len()).filter_map(move |position| {
            let index = order.as_ref().map_or(position, |order| order[position]);
            self.0.entries.get(index).map(|(key, value)| (key, value))
        })
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .all(|(key, value)| other.get_bytes(key.as_bytes()) == Some(value))
    }
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.values().any(Value::is_container) {
            tear_down(
                self.0
                    .take_entries()
                    .into_iter()
                    .map(|(_, value)| value)
                    .collect(),
            );
        }
    }
}

/// Drops values iteratively by flattening their contents first, so nesting of any depth cannot
/// overflow the stack (decision D38).
pub(super) fn tear_down(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items.into_iter().filter(Value::is_container)),
            Value::Object(mut map) => pending.extend(
                map.0
                    .take_entries()
                    .into_iter()
                    .map(|(_, value)| value)
                    .filter(Value::is_container),
            ),
            _ => {}
        }
    }
}

/// Like [`tear_down`], piece by piece: before each piece, `tick` gets the number of its values.
/// After an error of `tick` the remaining values stay in the list.
pub(super) fn tear_down_in_pieces<E>(
    pending: &mut Vec<Value>,
    mut tick: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    /// Most values of a piece.
    const PIECE: usize = 64;
    while let Some(value) = pending.pop() {
        // Small containers of scalars are dropped whole.
        let flat = match &value {
            Value::Array(items) => items.len() <= PIECE && !items.iter().any(Value::is_container),
            Value::Object(map) => map.len() <= PIECE && !map.values().any(Value::is_container),
            _ => true,
        };
        if flat {
            if let Err(error) = tick(1) {
                pending.push(value);
                return Err(error);
            }
            continue;
        }
        match value {
            Value::Array(mut items) => {
                if let Err(error) = tick(items.len().min(PIECE)) {
                    pending.push(Value::Array(items));
                    return Err(error);
                }
                let from = items.len().saturating_sub(PIECE);
                let inner: Vec<Value> = items.drain(from..).filter(Value::is_container).collect();
                if !items.is_empty() {
                    pending.push(Value::Array(items));
                }
                pending.extend(inner);
            }
            Value::Object(mut map) => {
                let mut members = map.0.take_entries().into_iter();
                while members.len() > 0 {
                    if let Err(error) = tick(members.len().min(PIECE)) {
                        let rest = members.flat_map(|(key, value)| [Value::String(key), value]);
                        pending.push(Value::Array(rest.collect()));
                        return Err(error);
                    }
                    let part = members.by_ref().take(PIECE).map(|(_, value)| value);
                    pending.extend(part.filter(Value::is_container));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Text, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Map {
    type Item = (Text, Value);
    type IntoIter = std::vec::IntoIter<(Text, Value)>;

    fn into_iter(mut self) -> Self::IntoIter {
        self.0.take_entries().into_iter()
    }
}

impl<K: Into<Text>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut map = Self::new();
        map.extend(members);
        map
    }
}

impl<K: Into<Text>, V: Into<Value>> Extend<(K, V)> for Map {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, members: I) {
        for (key, value) in members {
            self.insert(key, value);
        }
    }
}

/// The array index that a key denotes (ECMA-262 §6.1.7): a canonical decimal below 2^32 - 1.
#[must_use]
pub fn array_index(key: &[u8]) -> Option<u32> {
    /// Number of digits of 4294967294, the largest array index.
    const MAX_DIGITS: usize = 10;
    match key {
        [b'0'] => Some(0),
        [b'1'..=b'9', ..] if key.len() <= MAX_DIGITS => {
            let mut value = 0u64;
            for &byte in key {
                if !byte.is_ascii_digit() {
                    return None;
                }
                value = value * 10 + u64::from(byte - b'0');
            }
            u32::try_from(value).ok().filter(|&index| index < u32::MAX)
        }
        _ => None,
    }
}

/// The positions of keys in the order of ECMA-262 §10.1.11. `None` in the usual case of no array
/// indices, where the order does not change.
pub(crate) fn js_order<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Option<Vec<usize>> {
    let mut indices: Vec<(u32, usize)> = Vec::new();
    let mut names: Option<Vec<usize>> = None;
    let mut count = 0;
    for (position, key) in keys.enumerate() {
        count += 1;
        if let Some(index) = array_index(key) {
            names.get_or_insert_with(|| (0..position).collect());
            indices.push((index, position));
        } else if let Some(names) = &mut names {
            names.push(position);
        }
    }
    let names = names?;
    indices.sort_unstable();
    let mut order = Vec::with_capacity(count);
    order.extend(indices.into_iter().map(|(_, position)| position));
    order.extend(names);
    Some(order)
}
