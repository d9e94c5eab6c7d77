//! A store in memory.

use super::page::Page;
use super::query::Query;
use super::scan_meter::ScanMeter;
use super::stored::StoredKey;
use super::vectors::{Collection, collection_name, document_id, unknown_collection};
use super::{Store, StoreMethod};
use crate::clock::{Clock, system_now_ms};
use crate::error::{CapabilityError, Reply, ready};
use crate::script::lock;
use crate::size::value_bytes;
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex};

/// Longest key or collection name in bytes; longer text is data, not a name (security N13).
pub const MAX_KEY_BYTES: usize = 64 << 10;

/// Default limit of a store in bytes: the default heap ceiling of a run (decision D20).
const DEFAULT_LIMIT: usize = 64 << 20;

/// Estimated bytes of an entry in addition to its value and its key's text: a slot of a tree
/// node, half of which may be empty.
const ENTRY_BYTES: usize = 160;

/// Keys, values, queries and vectors in memory.
///
/// Values are copied in and out, so that later changes by the program do not affect the store
/// (decision D49). Keys are compared with their kind (`7` is not `"7"`), and no key is special
/// (`__proto__` is an ordinary name).
pub struct MemoryStore {
    pub(super) state: Mutex<StoreState>,
    pub(super) limit: usize,
    clock: Option<Arc<dyn Clock>>,
}

#[derive(Debug, Default)]
pub(super) struct StoreState {
    pub(super) values: BTreeMap<Key, Slot>,
    collections: HashMap<Text, Collection>,
    pub(super) bytes: usize,
    pub(super) peak: usize,
}

/// A value with its expiry time.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) value: Value,
    pub(super) expires_ms: Option<f64>,
}

impl Slot {
    fn is_live(&self, now_ms: f64) -> bool {
        self.expires_ms.is_none_or(|expires| now_ms < expires)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("MemoryStore");
        out.field("state", &self.state).field("limit", &self.limit);
        out.finish_non_exhaustive()
    }
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

    /// Number of the kind in stored data.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Key::Undefined => 0,
            Key::Null => 1,
            Key::Bool(_) => 2,
            Key::Number(_) => 3,
            Key::Text(_) => StoredKey::TEXT,
            Key::Data(_) => 5,
        }
    }

    /// The key of data with this JSON text, unless it is too long.
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
            clock: None,
        }
    }

    /// Sets the clock that decides expiry. The default is the machine's;
    /// `wasm32-unknown-unknown` has none, and entries never expire there.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> MemoryStore {
        self.clock = Some(clock);
        self
    }

    fn now_ms(&self) -> f64 {
        match &self.clock {
            Some(clock) => clock.now_ms(),
            None => system_now_ms(),
        }
    }

    /// Estimated bytes of everything stored.
    #[must_use]
    pub fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    /// Growth of [`MemoryStore::bytes`] above its earlier peak since the last call; for
    /// accounts that only grow.
    pub fn take_growth(&self) -> usize {
        let mut state = lock(&self.state);
        let growth = state.bytes.saturating_sub(state.peak);
        state.peak += growth;
        growth
    }

    /// The value of a key at a given time.
    ///
    /// # Errors
    /// The key is longer than [`MAX_KEY_BYTES`]; the other methods fail likewise.
    pub fn get_at(&self, key: Value, now_ms: f64) -> Result<Value, CapabilityError> {
        let key = Key::of(key)?;
        let state = lock(&self.state);
        let live = state.values.get(&key).filter(|slot| slot.is_live(now_ms));
        Ok(live.map_or(Value::Undefined, |slot| slot.value.clone()))
    }

    /// Sets a key at a given time, optionally with an expiry time.
    ///
    /// # Errors
    /// The store is full.
    pub fn set_at(
        &self,
        key: Value,
        value: Value,
        expires_ms: Option<f64>,
        now_ms: f64,
    ) -> Result<(), CapabilityError> {
        let key = Key::of(key)?;
        lock(&self.state).put(key, Slot { value, expires_ms }, self.limit, now_ms)
    }

    /// Deletes a key at a given time; returns whether it existed.
    ///
    /// # Errors
    /// The key is too long.
    pub fn delete_at(&self, key: Value, now_ms: f64) -> Result<bool, CapabilityError> {
        let key = Key::of(key)?;
        let mut state = lock(&self.state);
        Ok(state.take(&key).is_some_and(|slot| slot.is_live(now_ms)))
    }

    /// Compare-and-set of a key at a given time; returns whether it was set.
    ///
    /// # Errors
    /// The store is full.
    pub fn compare_and_set_at(
        &self,
        key: Value,
        expected: &Value,
        value: Value,
        expires_ms: Option<f64>,
        now_ms: f64,
    ) -> Result<bool, CapabilityError> {
        let key = Key::of(key)?;
        let mut state = lock(&self.state);
        let live = state.values.get(&key).filter(|slot| slot.is_live(now_ms));
        if live.map_or(&Value::Undefined, |slot| &slot.value) != expected {
            return Ok(false);
        }
        state.put(key, Slot { value, expires_ms }, self.limit, now_ms)?;
        Ok(true)
    }

    /// A page of the keys that exist at a given time.
    #[must_use]
    pub fn list_at(&self, page: &Page, now_ms: f64) -> Value {
        let first = match &page.after {
            Some(after) if *after >= page.prefix => Bound::Excluded(after.clone()),
            _ => Bound::Included(page.prefix.clone()),
        };
        let state = lock(&self.state);
        let keys = state.texts(first, now_ms).map(|(key, _)| key);
        let keys = keys.take_while(|key| page.admits(key.as_bytes()));
        page.answer(keys.take(page.limit + 1).cloned().collect())
    }

    fn documents(&self, query: Query, now_ms: f64) -> Value {
        let first = Bound::Included(query.first_key().clone());
        let prefix = query.prefix().clone();
        let state = lock(&self.state);
        let mut selection = query.select();
        for (key, slot) in state.texts(first, now_ms) {
            if selection.is_full() || !key.as_bytes().starts_with(prefix.as_bytes()) {
                break;
            }
            selection.offer(key, &slot.value);
        }
        selection.answer()
    }

    /// Answers a query.
    fn asked(
        &self,
        query: Result<Query, CapabilityError>,
        scanned: Option<Arc<ScanMeter>>,
    ) -> Reply<'_> {
        let query = query.map(|query| query.counted(scanned));
        ready(query.map(|query| self.documents(query, self.now_ms())))
    }

    /// The rows of a query's answer.
    fn selected(
        &self,
        query: Result<Query, CapabilityError>,
        scanned: Option<Arc<ScanMeter>>,
    ) -> Reply<'_> {
        let answer = |query: Query| {
            let limit = query.limit();
            Query::rows(self.documents(query.counted(scanned), self.now_ms()), limit)
        };
        ready(query.and_then(answer))
    }

    fn create(&self, name: Value, dimension: &Value) -> Result<Value, CapabilityError> {
        let name = collection_name(name)?;
        let collection = Collection::new(dimension)?;
        let mut state = lock(&self.state);
        if let Some(known) = state.collections.get_mut(name.as_bytes()) {
            known.make_again(&name, &collection)?;
            return Ok(Value::Undefined);
        }
        state.reserve(collection.bytes(), 0, self.limit)?;
        state.collections.insert(name, collection);
        Ok(Value::Undefined)
    }

    /// Adds a document; `replace` removes the one with its `id`.
    fn add(&self, name: Value, document: Value, replace: bool) -> Result<Value, CapabilityError> {
        let name = collection_name(name)?;
        let mut state = lock(&self.state);
        let collection = state
            .collections
            .get(name.as_bytes())
            .ok_or_else(|| unknown_collection(&name))?;
        let entry = collection.entry(document)?;
        let id = match replace {
            true => Some(entry.id()?.clone()),
            false => None,
        };
        let old = id.as_ref().map_or(0, |id| collection.bytes_of(id));
        state.reserve(entry.bytes(), old, self.limit)?;
        if let Some(collection) = state.collections.get_mut(name.as_bytes()) {
            match id {
                Some(id) => collection.replace(&id, entry),
                None => collection.push(entry),
            }
        }
        Ok(Value::Undefined)
    }

    fn remove(&self, name: Value, id: &Value) -> Result<Value, CapabilityError> {
        let name = collection_name(name)?;
        let id = document_id(id)?;
        let mut state = lock(&self.state);
        let collection = state
            .collections
            .get_mut(name.as_bytes())
            .ok_or_else(|| unknown_collection(&name))?;
        let freed = collection.remove(id);
        state.bytes -= freed.unwrap_or(0);
        Ok(Value::Bool(freed.is_some()))
    }
}

impl StoreState {
    /// Unexpired text keys from a bound on, in order.
    fn texts(&self, from: Bound<Text>, now_ms: f64) -> impl Iterator<Item = (&Text, &Slot)> {
        let all = self.values.range((from.map(Key::Text), Bound::Unbounded));
        all.map_while(|(key, slot)| match key {
            Key::Text(text) => Some((text, slot)),
            _ => None,
        })
        .filter(move |(_, slot)| slot.is_live(now_ms))
    }

    /// Sets a key; a full store first deletes expired entries.
    fn put(
        &mut self,
        key: Key,
        slot: Slot,
        limit: usize,
        now_ms: f64,
    ) -> Result<(), CapabilityError> {
        let new = key.bytes() + value_bytes(&slot.value);
        let held = |slot: &Slot| key.bytes() + value_bytes(&slot.value);
        let old = self.values.get(&key).map_or(0, held);
        if self.reserve(new, old, limit).is_err() {
            self.sweep(now_ms);
            let old = self.values.get(&key).map_or(0, held);
            self.reserve(new, old, limit)?;
        }
        self.values.insert(key, slot);
        Ok(())
    }

    fn take(&mut self, key: &Key) -> Option<Slot> {
        let slot = self.values.remove(key)?;
        self.bytes -= key.bytes() + value_bytes(&slot.value);
        Some(slot)
    }

    /// Deletes expired entries.
    fn sweep(&mut self, now_ms: f64) {
        let mut freed = 0;
        self.values.retain(|key, slot| {
            let live = slot.is_live(now_ms);
            if !live {
                freed += key.bytes() + value_bytes(&slot.value);
            }
            live
        });
        self.bytes -= freed;
    }

    /// Replaces `old` counted bytes by `new`, unless that exceeds the limit.
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

impl Store for MemoryStore {
    fn supports(&self, _: StoreMethod) -> bool {
        true
    }

    fn get(&self, key: Value) -> Reply<'_> {
        ready(self.get_at(key, self.now_ms()))
    }

    fn set(&self, key: Value, value: Value) -> Reply<'_> {
        let done = self.set_at(key, value, None, self.now_ms());
        ready(done.map(|()| Value::Undefined))
    }

    fn set_until(&self, key: Value, value: Value, expires_ms: f64) -> Reply<'_> {
        let done = self.set_at(key, value, Some(expires_ms), self.now_ms());
        ready(done.map(|()| Value::Undefined))
    }

    fn delete(&self, key: Value) -> Reply<'_> {
        ready(self.delete_at(key, self.now_ms()).map(Value::Bool))
    }

    fn list(&self, prefix: Value, cursor: Value, limit: Value) -> Reply<'_> {
        let page = Page::of(prefix, cursor, &limit);
        ready(page.map(|page| self.list_at(&page, self.now_ms())))
    }

    fn compare_and_set(
        &self,
        key: Value,
        expected: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Reply<'_> {
        let now = self.now_ms();
        let done = self.compare_and_set_at(key, &expected, value, expires_ms, now);
        ready(done.map(Value::Bool))
    }

    fn query(&self, query: Value) -> Reply<'_> {
        self.asked(Query::of(&query), None)
    }

    fn query_counted(&self, query: Value, scanned: Arc<ScanMeter>) -> Reply<'_> {
        self.asked(Query::of(&query), Some(scanned))
    }

    fn query_predicate(&self, query: Value) -> Reply<'_> {
        self.selected(Query::of_predicate(&query), None)
    }

    fn query_predicate_counted(&self, query: Value, scanned: Arc<ScanMeter>) -> Reply<'_> {
        self.selected(Query::of_predicate(&query), Some(scanned))
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
                .ok_or_else(|| unknown_collection(&name))?;
            found.search(&vector, &k, &filter).map(Value::Array)
        };
        ready(search())
    }

    fn create_collection(&self, collection: Value, _schema: Value, dimension: Value) -> Reply<'_> {
        ready(self.create(collection, &dimension))
    }

    fn vector_add(&self, collection: Value, document: Value) -> Reply<'_> {
        ready(self.add(collection, document, false))
    }

    fn vector_upsert(&self, collection: Value, document: Value) -> Reply<'_> {
        ready(self.add(collection, document, true))
    }

    fn vector_delete(&self, collection: Value, id: Value) -> Reply<'_> {
        ready(self.remove(collection, &id))
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
        block_on(suite::vector_changes(&store)).unwrap();
        block_on(suite::keys(&store)).unwrap();
        block_on(suite::documents(&store)).unwrap();
        let clock = Arc::new(crate::FixedClock::new(1_000.0));
        let store = MemoryStore::new().with_clock(clock.clone());
        block_on(suite::expiry(&store, &|now| clock.set(now))).unwrap();
    }

    #[test]
    fn what_expired_makes_room() {
        let store = MemoryStore::with_limit(2_000);
        let big = || Value::from("x".repeat(1_000));
        store.set_at("a".into(), big(), Some(5.0), 1.0).unwrap();
        assert!(store.set_at("b".into(), big(), None, 4.0).is_err());
        store.set_at("b".into(), big(), None, 5.0).unwrap();
        assert!(store.delete_at("b".into(), 5.0).unwrap());
        assert_eq!(store.bytes(), 0);
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
