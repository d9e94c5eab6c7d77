//! The ordered, string-keyed map of objects.
//!
//! Hashing is keyed at random per map, so crafted keys cannot degrade it to
//! linear searches (security C10).

use super::Value;
use crate::text::Text;
use indexmap::IndexMap;

type Inner = IndexMap<Text, Value>;

/// The members of an object in insertion order. Boxed, so that a [`Value`]
/// stays at 24 bytes.
#[derive(Clone, Default)]
pub struct Map(Box<Inner>);

/// Iterator over members in insertion order.
pub type Iter<'a> = indexmap::map::Iter<'a, Text, Value>;

impl Map {
    /// A map without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty map with room for `members`.
    #[must_use]
    pub fn with_capacity(members: usize) -> Self {
        Self(Box::new(Inner::with_capacity(members)))
    }

    /// Sets a member and returns the value it replaces; a replaced member keeps
    /// its place in the order.
    pub fn insert(&mut self, key: impl Into<Text>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(key.into(), value.into())
    }

    /// The member of that name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.get_bytes(key.as_bytes())
    }

    /// The member whose name has these WTF-8 bytes.
    #[must_use]
    pub fn get_bytes(&self, key: &[u8]) -> Option<&Value> {
        self.0.get(key)
    }

    /// The member of that name, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.get_mut(key.as_bytes())
    }

    /// Removes a member; the others keep their order (linear in their number).
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key.as_bytes())
    }

    /// Whether there is a member of that name, even if `undefined`.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key.as_bytes())
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Members in insertion order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.0.iter()
    }

    /// Keys in insertion order.
    pub fn keys(&self) -> impl Iterator<Item = &Text> {
        self.0.keys()
    }

    /// Values in insertion order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.values()
    }

    /// Members in the order of ECMA-262 §10.1.11: array indices ascending, then
    /// the rest by insertion (decision D37).
    pub fn iter_js_order(&self) -> impl Iterator<Item = (&Text, &Value)> {
        let order = js_order(self.0.keys().map(Text::as_bytes));
        (0..self.len()).filter_map(move |position| {
            let index = order.as_ref().map_or(position, |order| order[position]);
            self.0.get_index(index)
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
        if self.0.values().any(Value::is_container) {
            tear_down(self.0.drain(..).map(|(_, value)| value).collect());
        }
    }
}

/// Drops values, flattening what they contain first, so that no depth of
/// nesting can overflow the stack (decision D38).
pub(super) fn tear_down(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items.into_iter().filter(Value::is_container)),
            Value::Object(mut map) => pending.extend(
                map.0
                    .drain(..)
                    .map(|(_, value)| value)
                    .filter(Value::is_container),
            ),
            _ => {}
        }
    }
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
    type IntoIter = indexmap::map::IntoIter<Text, Value>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(&mut *self.0).into_iter()
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

/// The index that a key names if it is an array index (ECMA-262 §6.1.7): a
/// canonical decimal below 2^32 - 1.
#[must_use]
pub(crate) fn array_index(key: &[u8]) -> Option<u32> {
    /// Digits of 4294967294, the largest array index.
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

/// The positions of keys in the order of ECMA-262 §10.1.11, or `None` if that
/// is the given order (no array index among the keys: the usual case).
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
