//! Store: the capability for one namespace of a file.

use crate::codec;
use crate::database::Database;
use crate::entries::{Entries, STORE};
use crate::error::SqliteError;
use crate::key::Key;
use crate::options::SqliteOptions;
use crate::task::Task;
use a99_capabilities::{
    CapabilityError, Clock, Page, Query, Reply, ScanMeter, Store, StoreLimits, StoreMethod,
    StoreUsage, SystemClock,
};
use a99_core::text::Text;
use a99_core::value::Value;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Key-value store in a file; see the crate.
///
/// A store is one namespace: [`SqliteStore::open`] returns the unnamed one,
/// [`SqliteStore::namespace`] a named one. Namespaces cannot see, list or count each other's
/// entries. Clones share the file and its threads.
#[derive(Clone)]
pub struct SqliteStore {
    database: Database,
    scope: Arc<Scope>,
}

#[derive(Clone)]
struct Scope {
    name: Option<Text>,
    limits: StoreLimits,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SqliteStore");
        out.field("database", &self.database);
        out.field("namespace", &self.scope.name);
        out.field("limits", &self.scope.limits);
        out.finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens a file with default options, or creates it. Blocks, as [`Database::open`] does.
    ///
    /// # Errors
    /// Errors of [`Database::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<SqliteStore, SqliteError> {
        SqliteStore::on(Database::open(path, SqliteOptions::default())?)
    }

    /// The store of an open database. Blocks while its tables are checked.
    ///
    /// # Errors
    /// If a later version wrote the tables, or they cannot be created.
    pub fn on(database: Database) -> Result<SqliteStore, SqliteError> {
        if !database.read(|tx| STORE.is_current(tx)).wait()? {
            database.migrate(&STORE).wait()?;
        }
        let scope = Scope {
            name: None,
            limits: StoreLimits::default(),
            clock: Arc::new(SystemClock),
        };
        Ok(SqliteStore {
            database,
            scope: Arc::new(scope),
        })
    }

    /// Selects a namespace by name. Names are compared byte by byte; no character is special.
    /// The first write creates it.
    #[must_use]
    pub fn namespace(&self, name: impl Into<Text>) -> SqliteStore {
        self.with(|scope| scope.name = Some(name.into()))
    }

    /// The same namespace with other limits, which apply to writes through this handle.
    #[must_use]
    pub fn with_limits(&self, limits: StoreLimits) -> SqliteStore {
        self.with(|scope| scope.limits = limits)
    }

    /// The same namespace with another clock, which decides expiry. All writers of a file
    /// should agree on the time.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> SqliteStore {
        self.with(|scope| scope.clock = clock)
    }

    fn with(&self, change: impl FnOnce(&mut Scope)) -> SqliteStore {
        let mut scope = Scope::clone(&self.scope);
        change(&mut scope);
        SqliteStore {
            database: self.database.clone(),
            scope: Arc::new(scope),
        }
    }

    /// The name of the namespace; `None` for the store itself.
    #[must_use]
    pub fn name(&self) -> Option<&Text> {
        self.scope.name.as_ref()
    }

    /// The database of the store.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Keys and bytes in the namespace.
    pub fn usage(&self) -> Task<StoreUsage> {
        self.read(|entries, _| entries.usage())
    }

    /// Deletes all entries of the namespace.
    pub fn clear(&self) -> Task<()> {
        self.write(|entries, _| entries.clear())
    }

    fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Entries<'_>, &StoreLimits) -> Result<T, SqliteError> + Send + 'static,
    ) -> Task<T> {
        let scope = Arc::clone(&self.scope);
        self.database.read(move |tx| {
            let entries = Entries::read(tx, scope.name.as_ref(), scope.clock.now_ms())?;
            f(&entries, &scope.limits)
        })
    }

    fn write<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Entries<'_>, &StoreLimits) -> Result<T, SqliteError> + Send + 'static,
    ) -> Task<T> {
        let scope = Arc::clone(&self.scope);
        self.database.write(move |tx| {
            let entries = Entries::write(tx, scope.name.as_ref(), scope.clock.now_ms())?;
            f(&entries, &scope.limits)
        })
    }

    /// Starts a query.
    fn asked(
        &self,
        query: Result<Query, CapabilityError>,
        scanned: Option<Arc<ScanMeter>>,
    ) -> Reply<'_> {
        reply(move || {
            let query = query?.counted(scanned);
            Ok(self.read(move |entries, limits| entries.query(query, limits.max_page_bytes)))
        })
    }

    /// The rows of a query's answer.
    fn selected(
        &self,
        query: Result<Query, CapabilityError>,
        scanned: Option<Arc<ScanMeter>>,
    ) -> Reply<'_> {
        reply(move || {
            let query = query?.counted(scanned);
            Ok(self.read(move |entries, limits| {
                let limit = query.limit();
                let answer = entries.query(query, limits.max_page_bytes)?;
                Ok(Query::rows(answer, limit)?)
            }))
        })
    }

    fn put(&self, key: Value, value: Value, expires_ms: Option<f64>) -> Reply<'_> {
        reply(move || {
            let key = Key::of(key)?;
            Ok(self.write(move |entries, limits| {
                let stored = codec::encode(&value, limits.max_value_bytes);
                value.dispose();
                entries.set(&key, &stored?, expires_ms, limits)?;
                Ok(Value::Undefined)
            }))
        })
    }
}

/// A reply whose work begins when it is first polled.
fn reply<'a>(start: impl FnOnce() -> Result<Task<Value>, SqliteError> + Send + 'a) -> Reply<'a> {
    Box::pin(async move {
        let done = match start() {
            Ok(task) => task.await,
            Err(error) => Err(error),
        };
        done.map_err(|error| error.for_program())
    })
}

impl Store for SqliteStore {
    fn supports(&self, method: StoreMethod) -> bool {
        use StoreMethod::{CompareAndSet, Delete, Get, List, Query, QueryPredicate, Set, SetUntil};
        matches!(
            method,
            Get | Set | SetUntil | Delete | List | CompareAndSet | Query | QueryPredicate
        )
    }

    fn get(&self, key: Value) -> Reply<'_> {
        reply(move || {
            let key = Key::of(key)?;
            Ok(self.read(move |entries, _| entries.get(&key)))
        })
    }

    fn set(&self, key: Value, value: Value) -> Reply<'_> {
        self.put(key, value, None)
    }

    fn set_until(&self, key: Value, value: Value, expires_ms: f64) -> Reply<'_> {
        self.put(key, value, Some(expires_ms))
    }

    fn delete(&self, key: Value) -> Reply<'_> {
        reply(move || {
            let key = Key::of(key)?;
            Ok(self.write(move |entries, _| entries.delete(&key).map(Value::Bool)))
        })
    }

    fn list(&self, prefix: Value, cursor: Value, limit: Value) -> Reply<'_> {
        reply(move || {
            let page = Page::of(prefix, cursor, &limit)?;
            Ok(self.read(move |entries, limits| entries.list(page, limits.max_page_bytes)))
        })
    }

    fn compare_and_set(
        &self,
        key: Value,
        expected: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Reply<'_> {
        reply(move || {
            let key = Key::of(key)?;
            Ok(self.write(move |entries, limits| {
                let is_expected = entries.get(&key)? == expected;
                if is_expected {
                    let stored = codec::encode(&value, limits.max_value_bytes)?;
                    entries.set(&key, &stored, expires_ms, limits)?;
                }
                Ok(Value::Bool(is_expected))
            }))
        })
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
}
