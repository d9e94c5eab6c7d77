//! A store in memory.

use super::vectors::Collection;
use super::{Store, StoreMethod};
use crate::error::{CapabilityError, Reply, ready};
use crate::script::lock;
use crate::size::value_bytes;
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::HashMap;
use std::sync::Mutex;

/// Longest key or collection name in bytes; longer ones are data, not names
/// (security N13).
pub const MAX_KEY_BYTES: usize = 64 << 10;

/// Everything a store of the default size may hold, in bytes: as much as the
/// default heap ceiling of a run (decision D20).
const DEFAULT_LIMIT: usize = 64 << 20;

/// Estimated bytes of an entry beyond its value and the text of its key: the
/// place of a key, and the places that growth of the table leaves empty and
/// holds twice for a moment.
const ENTRY_BYTES: usize = 160;

/// Keys, values and vectors in memory.
///
/// Values are copied in and out, so that nothing a program does later changes
/// what is stored (decision D49). Keys are compared with their kind (`7` is not
/// `"7"`), and no key is special (`__proto__` is a name like others). It
/// offers no queries.
#[derive(Debug)]
pub struct MemoryStore {
    pub(super) state: Mutex<StoreState>,
    pub(super) limit: usize,
}

#[derive(Debug, Default)]
pub(super) struct StoreState {
    pub(super) values: HashMap<Key, Value>,
    collections: HashMap<Text, Collection>,
    pub(super) bytes: usize,
    pub(super) peak: usize,
}

/// A key: scalars by value, data by its JSON text, since a store holds copies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Undefined,
    Null,
    Bool(bool),
    /// Bits of a number; one zero, one NaN.
    Number(u64),
    Text(Text),
    /// The JSON text of an array or object.
    Data(Box<[u8]>),
}

impl Key {
    pub(super) fn of(value: Value) -> Result<Key, CapabilityError> {
        match value {
            Value::Undefined => Ok(Key::Undefined),
            Value::Null => Ok(Key::Null),
            Value::Bool(b) => Ok(Key::Bool(b)),
            Value::Number(n) => {
                let n = if n.is_nan() { f64::NAN } else { n + 0.0 };
                Ok(Key::Number(n.to_bits()))
            }
            Value::String(text) if text.len_bytes() <= MAX_KEY_BYTES => Ok(Key::Text(text)),
            Value::Array(_) | Value::Object(_) if value_bytes(&value) <= MAX_KEY_BYTES => {
                let mut text = Vec::new();
                value.write_json(&mut text);
                Ok(Key::Data(text.into()))
            }
            Value::String(_) | Value::Array(_) | Value::Object(_) => Err(CapabilityError::new(
                format!("Store key too long: the limit is {MAX_KEY_BYTES} bytes"),
            )),
        }
    }

    /// The key of data with this JSON text, unless that is too long.
    pub(super) fn data(json: &[u8]) -> Option<Key> {
        (json.len() <= MAX_KEY_BYTES).then(|| Key::Data(json.into()))
    }

    pub(super) fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Key::Text(text) => text.len_bytes(),
                Key::Data(text) => text.len(),
                _ => 0,
            }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// An empty store of at most 64 MiB.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::with_limit(DEFAULT_LIMIT)
    }

    /// An empty store of at most `limit` bytes, as estimated.
    #[must_use]
    pub fn with_limit(limit: usize) -> MemoryStore {
        MemoryStore {
            state: Mutex::default(),
            limit,
        }
    }

    /// Estimated bytes of everything stored.
    #[must_use]
    pub fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    /// How far [`MemoryStore::bytes`] rose above its earlier peak since this
    /// was last asked; for accounts that only grow.
    pub fn take_growth(&self) -> usize {
        let mut state = lock(&self.state);
        let growth = state.bytes.saturating_sub(state.peak);
        state.peak += growth;
        growth
    }

    fn put(&self, key: Value, value: Value) -> Result<Value, CapabilityError> {
        let key = Key::of(key)?;
        let new = key.bytes() + value_bytes(&value);
        let mut state = lock(&self.state);
        let old = state
            .values
            .get(&key)
            .map_or(0, |old| key.bytes() + value_bytes(old));
        state.reserve(new, old, self.limit)?;
        state.values.insert(key, value);
        Ok(Value::Undefined)
    }

    fn create(&self, name: Value, dimension: &Value) -> Result<Value, CapabilityError> {
        let name = collection_name(name)?;
        let collection = Collection::new(dimension)?;
        let mut state = lock(&self.state);
        let old = state
            .collections
            .get(name.as_bytes())
            .map_or(0, Collection::bytes);
        let new = collection.bytes();
        state.reserve(new, old, self.limit)?;
        state.collections.insert(name, collection);
        Ok(Value::Undefined)
    }

    fn add(&self, name: Value, document: Value) -> Result<Value, CapabilityError> {
        let name = collection_name(name)?;
        let mut state = lock(&self.state);
        let collection = state
            .collections
            .get(name.as_bytes())
            .ok_or_else(|| unknown(&name))?;
        let entry = collection.entry(document)?;
        state.reserve(entry.bytes(), 0, self.limit)?;
        if let Some(collection) = state.collections.get_mut(name.as_bytes()) {
            collection.push(entry);
        }
        Ok(Value::Undefined)
    }
}

impl StoreState {
    /// Counts `new` bytes in place of `old`, or refuses.
    pub(super) fn reserve(
        &mut self,
        new: usize,
        old: usize,
        limit: usize,
    ) -> Result<(), CapabilityError> {
        let total = (self.bytes - old).saturating_add(new);
        if total > limit {
            return Err(CapabilityError::new(format!(
                "Store is full: the limit is {limit} bytes"
            )));
        }
        self.bytes = total;
        Ok(())
    }
}

fn collection_name(name: Value) -> Result<Text, CapabilityError> {
    match name {
        Value::String(text) if text.len_bytes() <= MAX_KEY_BYTES => Ok(text),
        _ => Err(CapabilityError::new("Collection names must be strings")),
    }
}

fn unknown(name: &Text) -> CapabilityError {
    CapabilityError::new(format!("Collection '{name}' not found. Create it first."))
}

impl Store for MemoryStore {
    fn supports(&self, method: StoreMethod) -> bool {
        !matches!(method, StoreMethod::Query | StoreMethod::QueryPredicate)
    }

    fn get(&self, key: Value) -> Reply<'_> {
        ready(Key::of(key).map(|key| {
            lock(&self.state)
                .values
                .get(&key)
                .cloned()
                .unwrap_or(Value::Undefined)
        }))
    }

    fn set(&self, key: Value, value: Value) -> Reply<'_> {
        ready(self.put(key, value))
    }

    fn vector_search(
        &self,
        collection: Value,
        vector: Value,
        k: Value,
        filter: Value,
    ) -> Reply<'_> {
        let search = || {
            let name = collection_name(collection)?;
            let state = lock(&self.state);
            let found = state
                .collections
                .get(name.as_bytes())
                .ok_or_else(|| unknown(&name))?;
            found.search(&vector, &k, &filter).map(Value::Array)
        };
        ready(search())
    }

    fn create_collection(&self, collection: Value, _schema: Value, dimension: Value) -> Reply<'_> {
        ready(self.create(collection, &dimension))
    }

    fn vector_add(&self, collection: Value, document: Value) -> Reply<'_> {
        ready(self.add(collection, document))
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite;
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn memory_store_conforms() {
        let store = MemoryStore::new();
        block_on(suite::key_value(&store)).unwrap();
        block_on(suite::vectors(&store)).unwrap();
    }

    #[test]
    fn keys_keep_their_kind() {
        let store = MemoryStore::new();
        block_on(store.set(Value::Number(7.0), "n".into())).unwrap();
        assert_eq!(block_on(store.get("7".into())).unwrap(), Value::Undefined);
        assert_eq!(
            block_on(store.get(Value::Number(7.0))).unwrap(),
            Value::from("n")
        );
        block_on(store.set(Value::Number(-0.0), "z".into())).unwrap();
        assert_eq!(
            block_on(store.get(Value::Number(0.0))).unwrap(),
            Value::from("z")
        );
    }

    #[test]
    fn bytes_are_counted_and_bounded() {
        let store = MemoryStore::with_limit(2_000);
        block_on(store.set("a".into(), "x".repeat(1_000).into())).unwrap();
        let full = store.bytes();
        assert_eq!((store.take_growth(), store.take_growth()), (full, 0));
        let error = block_on(store.set("b".into(), "x".repeat(1_000).into())).unwrap_err();
        assert_eq!(error.message, "Store is full: the limit is 2000 bytes");
        block_on(store.set("a".into(), Value::Null)).unwrap();
        assert!(store.bytes() < full);
        block_on(store.set("b".into(), "x".repeat(500).into())).unwrap();
        assert_eq!(store.take_growth(), 0);
    }
}
