//! Store of keys, values and vectors.

pub(crate) mod backend;
mod cache;
mod copy;
mod document;
mod find;
mod limits;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod tables;

pub use backend::Backend;
pub use cache::CacheUsage;
pub use limits::{VectorLimits, VectorUsage};

use a99_capabilities::vectors::{self, check_dimension, collection_name, document_id, embedding};
use a99_capabilities::{CapabilityError, Clock, Reply, ScanMeter, Store, StoreLimits, StoreMethod};
use a99_core::text::Text;
use a99_core::value::Value;
#[cfg(feature = "postgres")]
use a99_postgres::{PostgresError, PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
use a99_sqlite::{Database, SqliteError, SqliteOptions, SqliteStore};
use backend::BackendError;
use cache::Cache;
use document::Row;
use find::Asked;
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tables::Collection;

const _: () = assert!(vectors::MAX_DIMENSION == crate::MAX_DIMENSION);

/// Default limit of the copies in memory, in bytes.
const DEFAULT_CACHE_BYTES: usize = 1 << 30;

/// A key-value store that also stores vectors, in additional tables whose names begin with
/// `vector_`: in a file (`VectorStore`), or on a server (`PostgresVectorStore`).
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
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
/// # Search results
///
/// A search gives the nearest of all documents, as they were added, in the snapshot of its
/// start, whichever process wrote them. Vectors are compared in 32 bits: of documents with
/// equal scores in that precision, the one that was added first comes first.
///
/// # Memory
///
/// The first search of a collection loads its vectors into memory, 5 bytes a number; later
/// searches load only changes. All copies of a store, its namespaces and clones share a limit
/// ([`VectorStore::set_cache_limit`], 1 GiB by default), with eviction of the least recently
/// searched copy. A collection larger than the limit is read again for each search, in pieces
/// of 8 MiB, which is slower and gives the same result.
///
/// Documents are read only if they are results, or if a filter needs their members; the filter
/// reads only those that may be among the nearest.
#[derive(Clone, Debug)]
pub struct WithVectors<B> {
    keys: B,
    limits: Arc<VectorLimits>,
    cache: Arc<Cache>,
}

/// A store of keys, values and vectors in a file.
#[cfg(feature = "sqlite")]
pub type VectorStore = WithVectors<SqliteStore>;

/// A store of keys, values and vectors on a PostgreSQL server.
#[cfg(feature = "postgres")]
pub type PostgresVectorStore = WithVectors<PostgresStore>;

#[cfg(feature = "sqlite")]
impl VectorStore {
    /// Opens a file with the default options; a missing file is created. Blocks, as
    /// [`Database::open`](a99_sqlite::Database::open) does.
    ///
    /// # Errors
    /// Those of [`SqliteStore::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<VectorStore, SqliteError> {
        VectorStore::open_with(path, SqliteOptions::default())
    }

    /// Opens a file with other options.
    ///
    /// # Errors
    /// Those of [`Database::open`](a99_sqlite::Database::open) and [`SqliteStore::on`].
    pub fn open_with(
        path: impl AsRef<Path>,
        options: SqliteOptions,
    ) -> Result<VectorStore, SqliteError> {
        VectorStore::on(SqliteStore::on(Database::open(path, options)?)?)
    }
}

#[cfg(feature = "postgres")]
impl PostgresVectorStore {
    /// Connects to a server, and creates missing tables. Blocks for as long as the options
    /// allow.
    ///
    /// # Errors
    /// Those of [`PostgresStore::open`].
    pub fn connect(options: PostgresOptions) -> Result<PostgresVectorStore, PostgresError> {
        WithVectors::on(PostgresStore::open(options)?)
    }
}

impl<B: Backend> WithVectors<B> {
    /// Adds vectors to an open store, with its namespace, limits and clock. Blocks while the
    /// tables are checked.
    ///
    /// # Errors
    /// If a later version wrote them, or they cannot be created.
    pub fn on(keys: B) -> Result<WithVectors<B>, B::Error> {
        keys.make_tables()?;
        Ok(WithVectors {
            keys,
            limits: Arc::default(),
            cache: Arc::new(Cache::new(DEFAULT_CACHE_BYTES)),
        })
    }

    /// The namespace of a name, with its collections.
    #[must_use]
    pub fn namespace(&self, name: impl Into<Text>) -> WithVectors<B> {
        self.with_keys(self.keys.in_namespace(name.into()))
    }

    /// The same namespace with other limits of keys and values.
    #[must_use]
    pub fn with_limits(&self, limits: StoreLimits) -> WithVectors<B> {
        self.with_keys(self.keys.limited(limits))
    }

    /// The same namespace with other limits of collections; they apply to calls of this handle.
    #[must_use]
    pub fn with_vector_limits(&self, limits: VectorLimits) -> WithVectors<B> {
        WithVectors {
            limits: Arc::new(limits),
            ..self.clone()
        }
    }

    /// The same namespace with another clock, which determines expiry.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> WithVectors<B> {
        self.with_keys(self.keys.timed(clock))
    }

    fn with_keys(&self, keys: B) -> WithVectors<B> {
        WithVectors {
            keys,
            ..self.clone()
        }
    }

    /// The underlying key-value store, in the same namespace.
    #[must_use]
    pub fn keys(&self) -> &B {
        &self.keys
    }

    /// Limits the bytes of collections' copies, across all namespaces.
    pub fn set_cache_limit(&self, bytes: usize) {
        self.cache.set_limit(bytes);
    }

    /// Memory and load counters of collections' copies, across all namespaces.
    #[must_use]
    pub fn cache_usage(&self) -> CacheUsage {
        self.cache.usage()
    }

    /// Usage of the namespace's collections.
    pub fn vector_usage(&self) -> B::Task<VectorUsage> {
        let name = self.name();
        self.keys
            .reading(move |tx| tables::usage(tx, name.as_ref()))
    }

    /// Removes all collections of the namespace.
    pub fn clear_vectors(&self) -> B::Task<()> {
        let name = self.name();
        self.keys
            .writing(move |tx| tables::clear(tx, name.as_ref()))
    }

    fn name(&self) -> Option<Text> {
        self.keys.namespace_name().cloned()
    }

    /// Changes the collections of the namespace.
    async fn change(
        &self,
        f: impl Fn(&B::Tx<'_>, Option<&Text>, &VectorLimits) -> Result<Value, B::Error>
        + Send
        + Sync
        + 'static,
    ) -> Result<Value, CapabilityError> {
        let (name, limits) = (self.name(), Arc::clone(&self.limits));
        let changed = self.keys.writing(move |tx| f(tx, name.as_ref(), &limits));
        changed.await.map_err(|error| error.seen())
    }

    /// Adds a document; with `replaces`, in place of one with its `id`.
    async fn add(
        &self,
        collection: Value,
        document: Value,
        replaces: bool,
    ) -> Result<Value, CapabilityError> {
        let name = collection_name(collection)?;
        let document = Document::new(document);
        let added = self.change(move |tx, namespace, limits| {
            let mut collection = Collection::change(tx, namespace, &name)?;
            let read = document.read(limits.max_document_bytes);
            let vector = read.vector.as_ref().map_err(Clone::clone)?;
            check_dimension(collection.dimension, vector.len())?;
            if replaces {
                read.id.clone()?;
            }
            let row = read.row.as_ref().map_err(Clone::clone)?;
            collection.fix_dimension(tx, vector.len())?;
            match replaces {
                true => collection.replace(tx, row, limits)?,
                false => collection.add(tx, row, limits)?,
            }
            Ok(Value::Undefined)
        });
        added.await
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
                .reading(move |tx| find::answer(tx, &cache, name.as_ref(), &asked, tries, &limits));
            // A newer search refreshed the copy beyond this snapshot: search again.
            if let Some(found) = found.await.map_err(|error| error.seen())? {
                return Ok(found);
            }
        }
    }
}

/// A document to add. It is parsed once, when the collection is known, because work may be
/// repeated from the beginning.
struct Document {
    given: Mutex<Value>,
    read: OnceLock<Read>,
}

/// The parsed document.
struct Read {
    vector: Result<Vec<f64>, CapabilityError>,
    id: Result<(), CapabilityError>,
    row: Result<Row, CapabilityError>,
}

impl Document {
    fn new(document: Value) -> Document {
        Document {
            given: Mutex::new(document),
            read: OnceLock::new(),
        }
    }

    fn read(&self, max_bytes: usize) -> &Read {
        self.read.get_or_init(|| {
            let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
            let document = std::mem::replace(&mut *given, Value::Undefined);
            let vector = embedding(&document);
            let id = document_id(document.get("id").unwrap_or(&Value::Undefined)).map(drop);
            let row = match &vector {
                Ok(vector) => Row::of(document, vector, max_bytes),
                Err(error) => Err(error.clone()),
            };
            Read { vector, id, row }
        })
    }
}

impl<B: Backend> Store for WithVectors<B> {
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

    fn query_counted(&self, query: Value, scanned: Arc<ScanMeter>) -> Reply<'_> {
        self.keys.query_counted(query, scanned)
    }

    fn query_predicate(&self, query: Value) -> Reply<'_> {
        self.keys.query_predicate(query)
    }

    fn query_predicate_counted(&self, query: Value, scanned: Arc<ScanMeter>) -> Reply<'_> {
        self.keys.query_predicate_counted(query, scanned)
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
            made.await
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
                let mut collection = Collection::change(tx, namespace, &name)?;
                Ok(Value::Bool(collection.delete(tx, id.as_bytes())?))
            });
            deleted.await
        })
    }
}
