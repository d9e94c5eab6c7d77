//! Serialisation of an in-memory store's keys and values.

use super::memory::{Key, MemoryStore, Slot, StoreState};
use crate::script::lock;
use crate::size::value_bytes;
use a99_core::text::Text;
use a99_core::value::{Map, Value};

/// Member with the most bytes that the store held.
const PEAK: &str = "peak";
const ENTRIES: &str = "entries";

impl Key {
    /// The key as the number of its kind and a value.
    fn saved(&self) -> (f64, Value) {
        let value = match self {
            Key::Undefined | Key::Null => Value::Null,
            Key::Bool(b) => Value::Bool(*b),
            Key::Number(bits) => Value::Number(f64::from_bits(*bits)),
            Key::Text(text) => Value::String(text.clone()),
            Key::Data(json) => Value::String(Text::copy_wtf8(json)),
        };
        (f64::from(self.kind()), value)
    }

    fn restored(kind: f64, value: &Value) -> Option<Key> {
        let key = match (kind as u8, value) {
            (0, Value::Null) => Key::Undefined,
            (1..=3, Value::Null | Value::Bool(_) | Value::Number(_)) => {
                Key::of(value.clone()).ok()?
            }
            (4, Value::String(_)) => Key::of(value.clone()).ok()?,
            (5, Value::String(json)) => Key::data(json.as_bytes())?,
            _ => return None,
        };
        (f64::from(key.kind()) == kind).then_some(key)
    }
}

impl MemoryStore {
    /// Serialises keys and values, deterministically; [`MemoryStore::restored`] reads them.
    /// Collections of vectors are not included.
    #[must_use]
    pub fn saved(&self) -> Value {
        let state = lock(&self.state);
        let entries = state.values.iter().map(|(key, slot)| {
            let (kind, key) = key.saved();
            let mut entry = vec![Value::Number(kind), key, slot.value.clone()];
            entry.extend(slot.expires_ms.map(Value::Number));
            Value::Array(entry)
        });
        let mut map = Map::new();
        map.insert(PEAK, state.peak.max(state.bytes) as f64);
        map.insert(ENTRIES, Value::Array(entries.collect()));
        Value::Object(map)
    }

    /// Restores a store from [`MemoryStore::saved`]; `None` if the value has another form, or
    /// exceeds a store of the default size.
    #[must_use]
    pub fn restored(saved: &Value) -> Option<MemoryStore> {
        let store = MemoryStore::new();
        let mut state = StoreState::default();
        for entry in saved.get(ENTRIES)?.as_array()? {
            let (kind, key, value, expires_ms) = match entry.as_array()? {
                [kind, key, value] => (kind, key, value, None),
                [kind, key, value, Value::Number(expires)] => (kind, key, value, Some(*expires)),
                _ => return None,
            };
            let key = Key::restored(kind.as_f64()?, key)?;
            let bytes = key.bytes() + value_bytes(value);
            state.reserve(bytes, 0, store.limit).ok()?;
            let value = value.clone();
            if state
                .values
                .insert(key, Slot { value, expires_ms })
                .is_some()
            {
                return None;
            }
        }
        let peak = saved.get(PEAK)?.as_f64().filter(|peak| *peak >= 0.0)?;
        state.peak = (peak as usize).clamp(state.bytes, store.limit);
        *lock(&store.state) = state;
        Some(store)
    }

    /// Peak bytes at the last call of [`MemoryStore::take_growth`].
    #[must_use]
    pub fn peak(&self) -> usize {
        lock(&self.state).peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::testing::block_on;
    use a99_core::json::{Document, Limits};

    fn value(json: &str) -> Value {
        let document = Document::parse(json, &Limits::default()).unwrap();
        document.to_value(document.root())
    }

    #[test]
    fn what_is_stored_comes_back() {
        let store = MemoryStore::new();
        let keys = ["null", "true", "7", "\"7\"", "\"k\"", r#"{"a":[1]}"#, "[]"].map(value);
        for (n, key) in keys.iter().enumerate() {
            block_on(store.set(key.clone(), Value::Number(n as f64))).unwrap();
        }
        block_on(store.set(Value::Undefined, value(r#"{"x":[null]}"#))).unwrap();
        block_on(store.set_until("lease".into(), Value::Null, 7e15)).unwrap();
        let peak = store.take_growth();
        let saved = store.saved();
        let again = MemoryStore::restored(&saved).expect("it was saved");
        assert_eq!(
            (again.saved(), again.bytes(), again.peak()),
            (saved, store.bytes(), peak)
        );
        assert_eq!(again.take_growth(), 0);
        for (n, key) in keys.into_iter().enumerate() {
            assert_eq!(block_on(again.get(key)).unwrap(), Value::Number(n as f64));
        }
        assert_eq!(
            block_on(again.get(Value::Undefined)).unwrap(),
            value(r#"{"x":[null]}"#)
        );
    }

    #[test]
    fn other_values_are_refused() {
        for json in [
            "null",
            "{}",
            r#"{"peak":0}"#,
            r#"{"peak":0,"entries":[[4,"k"]]}"#,
            r#"{"peak":0,"entries":[[4,7,1]]}"#,
            r#"{"peak":0,"entries":[[9,"k",1]]}"#,
            r#"{"peak":0,"entries":[[4,"k",1,"soon"]]}"#,
            r#"{"peak":0,"entries":[[4,"k",1,2,3]]}"#,
            r#"{"peak":0,"entries":[[1,true,1]]}"#,
            r#"{"peak":0,"entries":[[4.5,"k",1]]}"#,
            r#"{"peak":-1,"entries":[]}"#,
            r#"{"peak":0,"entries":[[4,"k",1],[4,"k",2]]}"#,
        ] {
            assert!(MemoryStore::restored(&value(json)).is_none(), "{json}");
        }
        let long = "x".repeat(super::super::memory::MAX_KEY_BYTES + 1);
        let long = format!(r#"{{"peak":0,"entries":[[5,"{long}",1]]}}"#);
        assert!(MemoryStore::restored(&value(&long)).is_none());
    }
}
