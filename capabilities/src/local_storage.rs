//! Browser-style storage of texts by key, which outlives a run.

use crate::error::{BoxFuture, CapabilityError, Reply, ready};
use crate::script::lock;
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::HashMap;
use std::sync::Mutex;

/// A browser's local storage (language section 2.8).
pub trait LocalStorage: Send + Sync {
    /// The value of a key; `null` for an unset key.
    fn get(&self, key: Value) -> Reply<'_>;
    /// Sets a key.
    fn set(&self, key: Value, value: Value) -> BoxFuture<'_, Result<(), CapabilityError>>;
}

/// Bytes of all texts together, the limit of browsers.
const QUOTA_BYTES: usize = 5 << 20;

/// A local storage in memory with a quota of five mebibytes.
#[derive(Debug, Default)]
pub struct MemoryLocalStorage(Mutex<Items>);

#[derive(Debug, Default)]
struct Items {
    values: HashMap<Text, Value>,
    bytes: usize,
}

impl MemoryLocalStorage {
    /// An empty storage.
    #[must_use]
    pub fn new() -> MemoryLocalStorage {
        MemoryLocalStorage::default()
    }
}

fn key_text(key: &Value) -> Result<&Text, CapabilityError> {
    key.as_text()
        .ok_or_else(|| CapabilityError::new("localStorage: the key must be a string"))
}

impl LocalStorage for MemoryLocalStorage {
    fn get(&self, key: Value) -> Reply<'_> {
        ready(key_text(&key).map(|key| {
            lock(&self.0)
                .values
                .get(key.as_bytes())
                .cloned()
                .unwrap_or(Value::Null)
        }))
    }

    fn set(&self, key: Value, value: Value) -> BoxFuture<'_, Result<(), CapabilityError>> {
        ready(key_text(&key).and_then(|key| {
            let mut items = lock(&self.0);
            let new = key.len_bytes() + crate::value_bytes(&value);
            let old = items
                .values
                .get(key.as_bytes())
                .map_or(0, |old| key.len_bytes() + crate::value_bytes(old));
            if items.bytes - old + new > QUOTA_BYTES {
                return Err(CapabilityError::new(
                    "localStorage: the quota has been exceeded",
                ));
            }
            items.bytes = items.bytes - old + new;
            items.values.insert(key.clone(), value);
            Ok(())
        }))
    }
}

/// Conformance suite of [`LocalStorage`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::LocalStorage;
    use crate::error::{SuiteResult, ensure, expect, refused};
    use a99_core::value::Value;

    /// Sets and reads the keys `a99-suite` and `__proto__`.
    pub async fn conformance(storage: &dyn LocalStorage) -> SuiteResult {
        let unset = expect(
            storage.get("a99-suite-unset".into()).await,
            "an unset key reads",
        )?;
        ensure(unset == Value::Null, "an unset key is null")?;
        for key in ["a99-suite", "__proto__"] {
            expect(
                storage.set(key.into(), "one".into()).await,
                "a key can be set",
            )?;
            expect(
                storage.set(key.into(), "two".into()).await,
                "a key can be set again",
            )?;
            let value = expect(storage.get(key.into()).await, "a key reads")?;
            ensure(value == Value::from("two"), "a key has its last value")?;
        }
        refused(storage.get(Value::Undefined).await, "a key is text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn memory_storage_conforms() {
        block_on(suite::conformance(&MemoryLocalStorage::new())).unwrap();
    }

    #[test]
    fn the_quota_holds() {
        let storage = MemoryLocalStorage::new();
        let big = Value::from("x".repeat(QUOTA_BYTES));
        assert!(block_on(storage.set("k".into(), big)).is_err());
        assert_eq!(block_on(storage.get("k".into())).unwrap(), Value::Null);
    }
}
