//! Store: a namespace on a server as a capability.

use crate::entries::{Ask, Clear, Count, Delete, Get, List, Outcome, Place, Put, read};
use crate::error::PostgresError;
use crate::options::PostgresOptions;
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

/// Keys and values on a server; see the crate.
///
/// A store is a namespace: the one that [`PostgresStore::open`] gives, which has no name,
/// or one of those that [`PostgresStore::namespace`] gives. None sees, lists or counts
/// what another holds. Clones share the connections and the thread that drives them, which
/// end with the last one.
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
    /// Connects, and makes the tables if there are none. Blocks for as long as the
    /// options allow.
    ///
    /// # Errors
    /// If the server cannot be reached or does not let the user in, if a later version
    /// wrote the tables, or they cannot be made.
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

    /// Makes or changes the tables of a component, if they are not as this version of it
    /// wants them.
    pub fn migrate(&self, component: &'static Component) -> Task<()> {
        let options = &self.scope.options;
        self.engine.call(Migrate {
            component: *component,
            schema: options.schema.clone(),
            quoted: options.quoted_schema(),
        })
    }

    /// Reads tables of the schema: `f` sees what was committed when it began, and no
    /// change. It runs on another thread, and again from the beginning where the
    /// connection broke.
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

    /// Writes tables of the schema: what `f` does is kept whole, or not at all if it gives
    /// an error or panics. Others write meanwhile, unless it locks rows that they lock too.
    /// It runs on another thread, and again from the beginning where others were in the
    /// way.
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

    /// The name of the namespace; none for the store itself.
    #[must_use]
    pub fn name(&self) -> Option<&Text> {
        self.scope.name.as_ref()
    }

    /// The server, the user and the database, as a URL without the password.
    #[must_use]
    pub fn place(&self) -> String {
        self.scope.options.place()
    }

    /// The namespace of a name: any text, of which no character is special and which is
    /// another for every difference of a byte. It is there when something is set in it.
    #[must_use]
    pub fn namespace(&self, name: impl Into<Text>) -> PostgresStore {
        self.with(|scope| scope.name = Some(name.into()))
    }

    /// The same namespace with other limits, which hold for what this one sets.
    #[must_use]
    pub fn with_limits(&self, limits: StoreLimits) -> PostgresStore {
        self.with(|scope| scope.limits = limits)
    }

    /// The same namespace with another clock, which says what has expired. All who write
    /// to a server should agree on the time.
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

    /// What the namespace holds.
    pub fn usage(&self) -> Task<StoreUsage> {
        self.engine.call(Count(self.now()))
    }

    /// Deletes all that the namespace holds.
    pub fn clear(&self) -> Task<()> {
        self.engine.call(Clear(self.now()))
    }

    /// Closes the connections, for all clones; whatever is asked afterwards is refused.
    /// Blocks for a moment, until the server was told.
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
        // The bytes of what is expected: equal values may have others.
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

    /// The answer to a query.
    fn asked(
        &self,
        query: Result<Query, CapabilityError>,
        scanned: Option<Arc<ScanMeter>>,
    ) -> Reply<'_> {
        reply(async move { self.ask(query?.counted(scanned)).await })
    }

    /// The rows of the answer to a query.
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

/// The reply of work that begins when somebody waits for it.
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
