//! Store: the capability for one namespace on a server.

use crate::entries::{Ask, Clear, Count, Delete, Get, List, Outcome, Place, Put, read};
use crate::error::PostgresError;
use crate::hold::{HeldLock, hold};
use crate::options::PostgresOptions;
use crate::pool::stopped;
use crate::runtime::{Engine, Task};
use crate::schema::{Component, ENTRIES, Migrate};
use crate::transaction::{Reading, Tx, Writing};
use a99_capabilities::{
    CapabilityError, Clock, Page, Query, Reply, ScanMeter, Store, StoreLimits, StoreMethod,
    StoreUsage, StoredKey, StoredValue, SystemClock,
};
use a99_core::text::Text;
use a99_core::value::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Key-value store on a server; see the crate.
///
/// A store is one namespace: [`PostgresStore::open`] returns the unnamed one,
/// [`PostgresStore::namespace`] a named one. Namespaces cannot see, list or count each other's
/// entries. Clones share the connections and their thread, which end with the last clone.
#[derive(Clone)]
pub struct PostgresStore {
    engine: Arc<Engine>,
    scope: Arc<Scope>,
}

#[derive(Clone)]
struct Scope {
    name: Option<Text>,
    limits: StoreLimits,
    clock: Arc<dyn Clock>,
    options: PostgresOptions,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("PostgresStore");
        out.field("options", &self.scope.options);
        out.field("namespace", &self.scope.name);
        out.field("limits", &self.scope.limits);
        out.finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects, and creates missing tables. Blocks for at most the timeouts of the options.
    ///
    /// # Errors
    /// If the server is unreachable or refuses the user, if a later version wrote the tables,
    /// or if they cannot be created.
    pub fn open(options: PostgresOptions) -> Result<PostgresStore, PostgresError> {
        let engine = Engine::start(&options)?;
        let scope = Scope {
            name: None,
            limits: StoreLimits::default(),
            clock: Arc::new(SystemClock),
            options,
        };
        let store = PostgresStore {
            engine: Arc::new(engine),
            scope: Arc::new(scope),
        };
        store.migrate(&ENTRIES).wait()?;
        Ok(store)
    }

    /// Applies a component's missing migrations.
    pub fn migrate(&self, component: &'static Component) -> Task<()> {
        let options = &self.scope.options;
        self.engine.call(Migrate {
            component: *component,
            schema: options.schema.clone(),
            quoted: options.quoted_schema(),
        })
    }

    /// Runs a read transaction on another thread. `f` sees one snapshot of committed data.
    /// After a lost connection `f` runs again from the beginning.
    ///
    /// Errors are those of `f`, [`PostgresCode::Failed`](crate::PostgresCode::Failed) if it
    /// panics, [`PostgresCode::ReadOnly`](crate::PostgresCode::ReadOnly) if it writes, and
    /// those of the server.
    pub fn read<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: Fn(&Tx) -> Result<T, PostgresError> + Send + Sync + 'static,
    {
        self.engine.call(Reading(Arc::new(f)))
    }

    /// Runs a write transaction on another thread. If `f` fails or panics, all its changes are
    /// rolled back. Other writers run concurrently, except on locked rows. After a conflict `f`
    /// runs again from the beginning.
    ///
    /// Errors are those of `f`, [`PostgresCode::Failed`](crate::PostgresCode::Failed) if it
    /// panics, and those of the server.
    pub fn write<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: Fn(&Tx) -> Result<T, PostgresError> + Send + Sync + 'static,
    {
        self.engine.call(Writing(Arc::new(f)))
    }

    /// Takes the lock of a name in the schema for this process; `None` if another process has
    /// it.
    ///
    /// Errors are those of connecting.
    pub async fn try_lock(&self, name: &'static str) -> Result<Option<HeldLock>, PostgresError> {
        let (taken, is_taken) = oneshot::channel();
        let pool = Arc::clone(&self.engine.pool);
        let task = self.engine.spawn(hold(pool, name, taken));
        match is_taken.await {
            Ok(Ok(true)) => Ok(Some(HeldLock::new(task))),
            Ok(Ok(false)) => Ok(None),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(stopped()),
        }
    }

    /// Waits, on any executor.
    pub async fn pause(&self, time: Duration) {
        let waited = self.engine.spawn(async move {
            tokio::time::sleep(time).await;
            Ok(())
        });
        // A closed store does not wait.
        drop(waited.await);
    }

    /// The name of the namespace; `None` for the store itself.
    #[must_use]
    pub fn name(&self) -> Option<&Text> {
        self.scope.name.as_ref()
    }

    /// The server, the user and the database, as a URL without the password.
    #[must_use]
    pub fn place(&self) -> String {
        self.scope.options.place()
    }

    /// Selects a namespace by name. Names are compared byte by byte; no character is special.
    /// The first write creates it.
    #[must_use]
    pub fn namespace(&self, name: impl Into<Text>) -> PostgresStore {
        self.with(|scope| scope.name = Some(name.into()))
    }

    /// The same namespace with other limits, which apply to writes through this handle.
    #[must_use]
    pub fn with_limits(&self, limits: StoreLimits) -> PostgresStore {
        self.with(|scope| scope.limits = limits)
    }

    /// The same namespace with another clock, which decides expiry. All clients of a server
    /// should agree on the time.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> PostgresStore {
        self.with(|scope| scope.clock = clock)
    }

    fn with(&self, change: impl FnOnce(&mut Scope)) -> PostgresStore {
        let mut scope = Scope::clone(&self.scope);
        change(&mut scope);
        PostgresStore {
            engine: Arc::clone(&self.engine),
            scope: Arc::new(scope),
        }
    }

    /// Keys and bytes in the namespace.
    pub fn usage(&self) -> Task<StoreUsage> {
        self.engine.call(Count(self.now()))
    }

    /// Deletes all entries of the namespace.
    pub fn clear(&self) -> Task<()> {
        self.engine.call(Clear(self.now()))
    }

    /// Closes the connections of all clones; later calls are refused. Blocks briefly, until the
    /// server has received that.
    pub fn close(self) {
        self.engine.close();
    }

    fn now(&self) -> Place {
        Place {
            name: self.scope.name.clone(),
            now_ms: self.scope.clock.now_ms(),
        }
    }

    async fn put(
        &self,
        key: Value,
        value: Value,
        expires_ms: Option<f64>,
        expected: Option<&Value>,
    ) -> Result<bool, PostgresError> {
        let limits = &self.scope.limits;
        let key = StoredKey::of(key)?;
        let stored = StoredValue::of(&value, limits.max_value_bytes);
        value.dispose();
        let stored = stored?;
        // Compare-and-set compares stored bytes: equal values may have different ones.
        let mut bytes = expected.map(|value| match value {
            Value::Undefined => None,
            value => StoredValue::of(value, usize::MAX)
                .ok()
                .map(|stored| stored.as_bytes().to_vec()),
        });
        loop {
            let put = Put {
                place: self.now(),
                key: key.clone(),
                value: stored.clone(),
                expires_ms,
                limits: limits.clone(),
                expected: bytes,
            };
            let found = match self.engine.call(put).await? {
                Outcome::Done => return Ok(true),
                Outcome::Other(found) => found,
            };
            let value = found.as_deref().map_or(Ok(Value::Undefined), read);
            let value = value.map_err(|error| self.engine.pool.placed(error))?;
            let is_expected = expected.is_some_and(|expected| value == *expected);
            value.dispose();
            if !is_expected {
                return Ok(false);
            }
            bytes = Some(found);
        }
    }

    async fn ask(&self, query: Query) -> Result<Value, PostgresError> {
        let ask = Ask {
            place: self.now(),
            query,
            max_bytes: self.scope.limits.max_page_bytes,
        };
        self.engine.call(ask).await
    }

    /// Starts a query.
    fn asked(
        &self,
        query: Result<Query, CapabilityError>,
        scanned: Option<Arc<ScanMeter>>,
    ) -> Reply<'_> {
        reply(async move { self.ask(query?.counted(scanned)).await })
    }

    /// The rows of a query's answer.
    fn selected(
        &self,
        query: Result<Query, CapabilityError>,
        scanned: Option<Arc<ScanMeter>>,
    ) -> Reply<'_> {
        reply(async move {
            let query = query?.counted(scanned);
            let limit = query.limit();
            Ok(Query::rows(self.ask(query).await?, limit)?)
        })
    }

    fn set_for(&self, key: Value, value: Value, expires_ms: Option<f64>) -> Reply<'_> {
        reply(async move {
            self.put(key, value, expires_ms, None).await?;
            Ok(Value::Undefined)
        })
    }
}

/// A reply whose work begins when it is first polled.
fn reply<'a>(work: impl Future<Output = Result<Value, PostgresError>> + Send + 'a) -> Reply<'a> {
    Box::pin(async move { work.await.map_err(|error| error.for_program()) })
}

impl Store for PostgresStore {
    fn supports(&self, method: StoreMethod) -> bool {
        use StoreMethod::{CompareAndSet, Delete, Get, List, Query, QueryPredicate, Set, SetUntil};
        matches!(
            method,
            Get | Set | SetUntil | Delete | List | CompareAndSet | Query | QueryPredicate
        )
    }

    fn get(&self, key: Value) -> Reply<'_> {
        reply(async move {
            let key = StoredKey::of(key)?;
            let place = self.now();
            let found = self.engine.call(Get { place, key }).await?;
            let value = found.as_deref().map_or(Ok(Value::Undefined), read);
            value.map_err(|error| self.engine.pool.placed(error))
        })
    }

    fn set(&self, key: Value, value: Value) -> Reply<'_> {
        self.set_for(key, value, None)
    }

    fn set_until(&self, key: Value, value: Value, expires_ms: f64) -> Reply<'_> {
        self.set_for(key, value, Some(expires_ms))
    }

    fn delete(&self, key: Value) -> Reply<'_> {
        reply(async move {
            let key = StoredKey::of(key)?;
            let place = self.now();
            self.engine
                .call(Delete { place, key })
                .await
                .map(Value::Bool)
        })
    }

    fn list(&self, prefix: Value, cursor: Value, limit: Value) -> Reply<'_> {
        reply(async move {
            let list = List {
                place: self.now(),
                page: Page::of(prefix, cursor, &limit)?,
                max_bytes: self.scope.limits.max_page_bytes,
            };
            self.engine.call(list).await
        })
    }

    fn compare_and_set(
        &self,
        key: Value,
        expected: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Reply<'_> {
        reply(async move {
            let done = self.put(key, value, expires_ms, Some(&expected)).await;
            expected.dispose();
            done.map(Value::Bool)
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
