//! Store of keys, values and vectors in one file.

mod cache;
mod copy;
mod document;
mod find;
mod limits;
mod tables;

pub use cache::CacheUsage;
pub use limits::{VectorLimits, VectorUsage};

use a99_capabilities::vectors::{self, check_dimension, collection_name, document_id, embedding};
use a99_capabilities::{CapabilityError, Clock, Reply, Store, StoreMethod};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_sqlite::{SqliteError, SqliteStore, StoreLimits, Task, Tx};
use cache::Cache;
use document::Row;
use find::Asked;
use std::path::Path;
use std::sync::Arc;
use tables::{Collection, VECTORS};

const _: () = assert!(vectors::MAX_DIMENSION == crate::MAX_DIMENSION);

/// Bytes of copies in memory, unless the host says otherwise.
const DEFAULT_CACHE_BYTES: usize = 1 << 30;

/// A [`SqliteStore`] that keeps vectors, too, in tables of its file whose names begin with
/// `vector_`.
///
/// ```
/// use a99_capabilities::{Store, block_on};
/// use a99_core::value::Value;
/// use a99_vectors::VectorStore;
///
/// # let folder = tempfile::tempdir()?;
/// let store = VectorStore::open(folder.path().join("agents.db"))?;
/// let ann = store.namespace("ann");
/// let vector = |x: f64, y: f64| Value::from(vec![x.into(), y.into()]);
/// let note: a99_core::value::Map = [("id", "east".into()), ("embedding", vector(1.0, 0.0))]
///     .into_iter()
///     .collect();
/// let (none, name) = (|| Value::Undefined, || Value::from("notes"));
/// // With an executor of the host's.
/// block_on(ann.create_collection(name(), none(), none()))?;
/// block_on(ann.vector_add(name(), Value::Object(note.clone())))?;
/// let found = block_on(ann.vector_search(name(), vector(2.0, 1.0), none(), none()))?;
/// assert_eq!(found, vec![Value::Object(note)].into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What is found
///
/// A search gives the nearest documents of all, as they were added, from what was committed
/// when it began, by whichever process. Vectors are compared in 32 bits: of documents whose
/// scores are the same in that precision the one that was added first comes first.
///
/// # Memory
///
/// The vectors of a collection are read into memory when it is first searched, 5 bytes a
/// number, and afterwards only what has changed. All copies of a store, its namespaces and
/// clones share a limit ([`VectorStore::set_cache_limit`], 1 GiB unless that says
/// otherwise); the one that was searched least recently goes first. A collection that is
/// larger than the limit is read anew for each search, in pieces of 8 MiB: slower, but
/// found is the same.
///
/// Documents are read from the file only where they are given, or asked for members by a
/// filter: those alone that may be among the nearest.
#[derive(Clone, Debug)]
pub struct VectorStore {
    keys: SqliteStore,
    limits: Arc<VectorLimits>,
    cache: Arc<Cache>,
}

impl VectorStore {
    /// Opens a file with the options that hold by default, and makes one if there is
    /// none. Blocks, as [`Database::open`](a99_sqlite::Database::open) does.
    ///
    /// # Errors
    /// Those of [`SqliteStore::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<VectorStore, SqliteError> {
        VectorStore::on(SqliteStore::open(path)?)
    }

    /// The store with the namespace, limits and clock of one that is open. Blocks while
    /// its tables are looked at.
    ///
    /// # Errors
    /// If a later version wrote them, or they cannot be made.
    pub fn on(keys: SqliteStore) -> Result<VectorStore, SqliteError> {
        let database = keys.database();
        if !database.read(|tx| VECTORS.is_current(tx)).wait()? {
            database.migrate(&VECTORS).wait()?;
        }
        Ok(VectorStore {
            keys,
            limits: Arc::default(),
            cache: Arc::new(Cache::new(DEFAULT_CACHE_BYTES)),
        })
    }

    /// The namespace of a name, as [`SqliteStore::namespace`] says.
    #[must_use]
    pub fn namespace(&self, name: impl Into<Text>) -> VectorStore {
        self.with_keys(self.keys.namespace(name))
    }

    /// The same namespace with other limits of keys and values.
    #[must_use]
    pub fn with_limits(&self, limits: StoreLimits) -> VectorStore {
        self.with_keys(self.keys.with_limits(limits))
    }

    /// The same namespace with other limits of collections, which hold for what is asked
    /// of this one.
    #[must_use]
    pub fn with_vector_limits(&self, limits: VectorLimits) -> VectorStore {
        VectorStore {
            limits: Arc::new(limits),
            ..self.clone()
        }
    }

    /// The same namespace with another clock, as [`SqliteStore::with_clock`] says.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> VectorStore {
        self.with_keys(self.keys.with_clock(clock))
    }

    fn with_keys(&self, keys: SqliteStore) -> VectorStore {
        VectorStore {
            keys,
            ..self.clone()
        }
    }

    /// The store of keys and values beneath it, in the same namespace.
    #[must_use]
    pub fn keys(&self) -> &SqliteStore {
        &self.keys
    }

    /// Bytes that copies of collections may take, of all namespaces together.
    pub fn set_cache_limit(&self, bytes: usize) {
        self.cache.set_limit(bytes);
    }

    /// What copies of collections take, of all namespaces together.
    #[must_use]
    pub fn cache_usage(&self) -> CacheUsage {
        self.cache.usage()
    }

    /// What the collections of the namespace hold.
    pub fn vector_usage(&self) -> Task<VectorUsage> {
        let name = self.name();
        let database = self.keys.database();
        database.read(move |tx| tables::usage(tx, name.as_ref()))
    }

    /// Removes all collections of the namespace.
    pub fn clear_vectors(&self) -> Task<()> {
        let name = self.name();
        let database = self.keys.database();
        database.write(move |tx| tables::clear(tx, name.as_ref()))
    }

    fn name(&self) -> Option<Text> {
        self.keys.name().cloned()
    }

    /// Changes the collections of the namespace.
    fn change(
        &self,
        f: impl FnOnce(&Tx<'_>, Option<&Text>, &VectorLimits) -> Result<Value, SqliteError>
        + Send
        + 'static,
    ) -> Task<Value> {
        let (name, limits) = (self.name(), Arc::clone(&self.limits));
        let database = self.keys.database();
        database.write(move |tx| f(tx, name.as_ref(), &limits))
    }

    /// Adds a document; `replaces` says whether in place of one with its `id`.
    async fn add(
        &self,
        collection: Value,
        document: Value,
        replaces: bool,
    ) -> Result<Value, CapabilityError> {
        let name = collection_name(collection)?;
        let added = self.change(move |tx, namespace, limits| {
            let mut collection = Collection::find(tx, namespace, &name)?;
            let vector = embedding(&document)?;
            check_dimension(collection.dimension, vector.len())?;
            if replaces {
                document_id(document.get("id").unwrap_or(&Value::Undefined))?;
            }
            let row = Row::of(document, &vector, limits.max_document_bytes)?;
            collection.fix_dimension(tx, vector.len())?;
            match replaces {
                true => collection.replace(tx, &row, limits)?,
                false => collection.add(tx, &row, limits)?,
            }
            Ok(Value::Undefined)
        });
        added.await.map_err(|error| error.for_program())
    }

    async fn search(&self, asked: Asked) -> Result<Value, CapabilityError> {
        let asked = Arc::new(asked);
        let mut tries = 0;
        loop {
            tries += 1;
            let (asked, name) = (Arc::clone(&asked), self.name());
            let (limits, cache) = (Arc::clone(&self.limits), Arc::clone(&self.cache));
            let found = self
                .keys
                .database()
                .read(move |tx| find::answer(tx, &cache, name.as_ref(), &asked, tries, &limits));
            // Another search is ahead of what this one saw: it looks again.
            if let Some(found) = found.await.map_err(|error| error.for_program())? {
                return Ok(found);
            }
        }
    }
}

impl Store for VectorStore {
    fn supports(&self, method: StoreMethod) -> bool {
        use StoreMethod::{CreateCollection, VectorAdd, VectorDelete, VectorSearch, VectorUpsert};
        match method {
            CreateCollection | VectorAdd | VectorDelete | VectorSearch | VectorUpsert => true,
            _ => self.keys.supports(method),
        }
    }

    fn get(&self, key: Value) -> Reply<'_> {
        self.keys.get(key)
    }

    fn set(&self, key: Value, value: Value) -> Reply<'_> {
        self.keys.set(key, value)
    }

    fn set_until(&self, key: Value, value: Value, expires_ms: f64) -> Reply<'_> {
        self.keys.set_until(key, value, expires_ms)
    }

    fn delete(&self, key: Value) -> Reply<'_> {
        self.keys.delete(key)
    }

    fn list(&self, prefix: Value, cursor: Value, limit: Value) -> Reply<'_> {
        self.keys.list(prefix, cursor, limit)
    }

    fn compare_and_set(
        &self,
        key: Value,
        expected: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Reply<'_> {
        self.keys.compare_and_set(key, expected, value, expires_ms)
    }

    fn query(&self, query: Value) -> Reply<'_> {
        self.keys.query(query)
    }

    fn query_predicate(&self, query: Value) -> Reply<'_> {
        self.keys.query_predicate(query)
    }

    fn vector_search(
        &self,
        collection: Value,
        vector: Value,
        k: Value,
        filter: Value,
    ) -> Reply<'_> {
        Box::pin(async move {
            let collection = collection_name(collection)?;
            let asked = Asked {
                collection,
                vector,
                k,
                filter,
            };
            self.search(asked).await
        })
    }

    fn create_collection(&self, collection: Value, _schema: Value, dimension: Value) -> Reply<'_> {
        Box::pin(async move {
            let name = collection_name(collection)?;
            let dimension = vectors::dimension(&dimension)?;
            let made = self.change(move |tx, namespace, limits| {
                Collection::make(tx, namespace, &name, dimension, limits)?;
                Ok(Value::Undefined)
            });
            made.await.map_err(|error| error.for_program())
        })
    }

    fn vector_add(&self, collection: Value, document: Value) -> Reply<'_> {
        Box::pin(self.add(collection, document, false))
    }

    fn vector_upsert(&self, collection: Value, document: Value) -> Reply<'_> {
        Box::pin(self.add(collection, document, true))
    }

    fn vector_delete(&self, collection: Value, id: Value) -> Reply<'_> {
        Box::pin(async move {
            let name = collection_name(collection)?;
            let id = document_id(&id)?.clone();
            let deleted = self.change(move |tx, namespace, _| {
                let mut collection = Collection::find(tx, namespace, &name)?;
                Ok(Value::Bool(collection.delete(tx, id.as_bytes())?))
            });
            deleted.await.map_err(|error| error.for_program())
        })
    }
}
