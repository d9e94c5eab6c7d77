//! Keys, values, queries and vectors.

mod limits;
mod memory;
mod page;
mod predicate;
mod query;
mod saved;
mod scan_meter;
mod stored;
#[cfg(feature = "testing")]
pub(crate) mod suite;
pub mod vectors;

pub use limits::{StoreLimits, StoreUsage, check_room, full_text};
pub use memory::{MAX_KEY_BYTES, MemoryStore};
pub use page::{MAX_PAGE, Page};
pub use query::{Query, Selection};
pub use scan_meter::ScanMeter;
pub use stored::{StoredKey, StoredValue};
pub use vectors::MAX_TOP_K;

use crate::error::{CapabilityError, Reply, ready};
use a99_core::value::Value;
use std::sync::Arc;

/// Optional methods of a [`Store`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreMethod {
    /// [`Store::get`]
    Get,
    /// [`Store::set`]
    Set,
    /// [`Store::query`]
    Query,
    /// [`Store::vector_search`]
    VectorSearch,
    /// [`Store::query_predicate`]
    QueryPredicate,
    /// [`Store::create_collection`]
    CreateCollection,
    /// [`Store::vector_add`]
    VectorAdd,
    /// [`Store::delete`]
    Delete,
    /// [`Store::set_until`]
    SetUntil,
    /// [`Store::list`]
    List,
    /// [`Store::compare_and_set`]
    CompareAndSet,
    /// [`Store::vector_upsert`]
    VectorUpsert,
    /// [`Store::vector_delete`]
    VectorDelete,
}

impl StoreMethod {
    /// All methods.
    pub const ALL: &'static [StoreMethod] = &[
        StoreMethod::Get,
        StoreMethod::Set,
        StoreMethod::Query,
        StoreMethod::VectorSearch,
        StoreMethod::QueryPredicate,
        StoreMethod::CreateCollection,
        StoreMethod::VectorAdd,
        StoreMethod::Delete,
        StoreMethod::SetUntil,
        StoreMethod::List,
        StoreMethod::CompareAndSet,
        StoreMethod::VectorUpsert,
        StoreMethod::VectorDelete,
    ];

    /// The method of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<StoreMethod> {
        let mut all = StoreMethod::ALL.iter();
        all.find(|method| method.as_str() == name).copied()
    }

    /// The name that programs and error texts use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StoreMethod::Get => "get",
            StoreMethod::Set => "set",
            StoreMethod::Query => "query",
            StoreMethod::VectorSearch => "vectorSearch",
            StoreMethod::QueryPredicate => "queryPredicate",
            StoreMethod::CreateCollection => "createCollection",
            StoreMethod::VectorAdd => "vectorAdd",
            StoreMethod::Delete => "delete",
            StoreMethod::SetUntil => "setUntil",
            StoreMethod::List => "list",
            StoreMethod::CompareAndSet => "compareAndSet",
            StoreMethod::VectorUpsert => "vectorUpsert",
            StoreMethod::VectorDelete => "vectorDelete",
        }
    }
}

/// A store (language sections 2.6 and 2.8). Methods that [`Store::supports`] denies are never
/// called; their default refuses.
pub trait Store: Send + Sync {
    /// True if a method is offered; constant for a store.
    fn supports(&self, method: StoreMethod) -> bool;

    /// The value of a key; `undefined` for an unset key.
    fn get(&self, key: Value) -> Reply<'_> {
        let _ = key;
        unsupported(StoreMethod::Get)
    }

    /// Sets a key.
    fn set(&self, key: Value, value: Value) -> Reply<'_> {
        let _ = (key, value);
        unsupported(StoreMethod::Set)
    }

    /// Answers a query, whose form is the host's choice. Stores of this project answer queries
    /// that [`Query::of`] reads, with `{rows, cursor}`.
    fn query(&self, query: Value) -> Reply<'_> {
        let _ = query;
        unsupported(StoreMethod::Query)
    }

    /// Like [`Store::query`], for a caller that pays for scanned data. A store with this
    /// project's query form passes the counter to [`Query::counted`]; other stores count
    /// nothing.
    fn query_counted(&self, query: Value, scanned: Arc<ScanMeter>) -> Reply<'_> {
        let _ = scanned;
        self.query(query)
    }

    /// Like [`Store::query_predicate`], counted as in [`Store::query_counted`].
    fn query_predicate_counted(&self, query: Value, scanned: Arc<ScanMeter>) -> Reply<'_> {
        let _ = scanned;
        self.query_predicate(query)
    }

    /// The documents nearest to a vector, best first. Absent `k` and `filter` are `undefined`;
    /// both come unchecked from the program.
    fn vector_search(
        &self,
        collection: Value,
        vector: Value,
        k: Value,
        filter: Value,
    ) -> Reply<'_> {
        let _ = (collection, vector, k, filter);
        unsupported(StoreMethod::VectorSearch)
    }

    /// Rows that satisfy a verified predicate: `{collection, predicate, limit}`. Stores of this
    /// project answer queries that [`Query::of_predicate`] reads, with a list of
    /// `{key, value}`.
    fn query_predicate(&self, query: Value) -> Reply<'_> {
        let _ = query;
        unsupported(StoreMethod::QueryPredicate)
    }

    /// Creates a collection of vectors. An existing one is unchanged, if it has the same
    /// dimension or `dimension` is absent.
    fn create_collection(&self, collection: Value, schema: Value, dimension: Value) -> Reply<'_> {
        let _ = (collection, schema, dimension);
        unsupported(StoreMethod::CreateCollection)
    }

    /// Adds a document, an object with an `embedding`, to a collection.
    fn vector_add(&self, collection: Value, document: Value) -> Reply<'_> {
        let _ = (collection, document);
        unsupported(StoreMethod::VectorAdd)
    }

    /// Deletes a key; gives whether it existed.
    fn delete(&self, key: Value) -> Reply<'_> {
        let _ = key;
        unsupported(StoreMethod::Delete)
    }

    /// Sets a key with an expiry time in milliseconds since the Unix epoch; the store's clock
    /// decides expiry.
    fn set_until(&self, key: Value, value: Value, expires_ms: f64) -> Reply<'_> {
        let _ = (key, value, expires_ms);
        unsupported(StoreMethod::SetUntil)
    }

    /// A page of the text keys with a prefix, ordered by bytes: `{keys, cursor}`, without
    /// `cursor` on the last page. All three arguments come unchecked from the program,
    /// `undefined` if absent; [`Page::of`] checks them.
    fn list(&self, prefix: Value, cursor: Value, limit: Value) -> Reply<'_> {
        let _ = (prefix, cursor, limit);
        unsupported(StoreMethod::List)
    }

    /// Compare-and-set: sets a key whose value is still the expected one, `undefined` for an
    /// unset key; gives whether it did. The operation is atomic. The new value expires as in
    /// [`Store::set_until`], if a time is given.
    fn compare_and_set(
        &self,
        key: Value,
        expected: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Reply<'_> {
        let _ = (key, expected, value, expires_ms);
        unsupported(StoreMethod::CompareAndSet)
    }

    /// Adds a document, or replaces the one with the same `id`, a text.
    fn vector_upsert(&self, collection: Value, document: Value) -> Reply<'_> {
        let _ = (collection, document);
        unsupported(StoreMethod::VectorUpsert)
    }

    /// Deletes the documents of a collection with an `id`; gives whether one existed.
    fn vector_delete(&self, collection: Value, id: Value) -> Reply<'_> {
        let _ = (collection, id);
        unsupported(StoreMethod::VectorDelete)
    }
}

fn unsupported<'a>(method: StoreMethod) -> Reply<'a> {
    let text = format!("The store does not support {}", method.as_str());
    ready(Err(CapabilityError::new(text)))
}
