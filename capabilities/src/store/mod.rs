//! Keys, values, queries and vectors.

mod memory;
mod saved;
#[cfg(feature = "testing")]
pub(crate) mod suite;
mod vectors;

pub use memory::{MAX_KEY_BYTES, MemoryStore};
pub use vectors::MAX_TOP_K;

use crate::error::{CapabilityError, Reply, ready};
use a99_core::value::Value;

/// The methods that a [`Store`] may offer.
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
}

impl StoreMethod {
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
        }
    }
}

/// A store (language sections 2.6 and 2.8). A method that
/// [`Store::supports`] denies is not called; its default refuses.
pub trait Store: Send + Sync {
    /// Whether a method is offered; the same for the life of the store.
    fn supports(&self, method: StoreMethod) -> bool;

    /// The value of a key; `undefined` for a key that was never set.
    fn get(&self, key: Value) -> Reply<'_> {
        let _ = key;
        unsupported(StoreMethod::Get)
    }

    /// Sets a key.
    fn set(&self, key: Value, value: Value) -> Reply<'_> {
        let _ = (key, value);
        unsupported(StoreMethod::Set)
    }

    /// Answers a query whose shape is the host's choice.
    fn query(&self, query: Value) -> Reply<'_> {
        let _ = query;
        unsupported(StoreMethod::Query)
    }

    /// The documents nearest to a vector, best first. `k` and `filter` are
    /// `undefined` when the program gave none; both come from the program
    /// unchecked.
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

    /// Rows that satisfy a verified predicate: `{collection, predicate,
    /// limit}`.
    fn query_predicate(&self, query: Value) -> Reply<'_> {
        let _ = query;
        unsupported(StoreMethod::QueryPredicate)
    }

    /// Makes or empties a collection of vectors.
    fn create_collection(&self, collection: Value, schema: Value, dimension: Value) -> Reply<'_> {
        let _ = (collection, schema, dimension);
        unsupported(StoreMethod::CreateCollection)
    }

    /// Adds a document, an object with an `embedding`, to a collection.
    fn vector_add(&self, collection: Value, document: Value) -> Reply<'_> {
        let _ = (collection, document);
        unsupported(StoreMethod::VectorAdd)
    }
}

fn unsupported<'a>(method: StoreMethod) -> Reply<'a> {
    let text = format!("The store does not support {}", method.as_str());
    ready(Err(CapabilityError::new(text)))
}
