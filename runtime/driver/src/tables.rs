//! Tables: an agent's SQL tables, as part of its turns.

use crate::context::StorageApi;
use crate::error::{AgentError, codes};
use crate::turn::{TurnClient, TurnInner};
use a99_capabilities::block_on;
use a99_runtime_engine::{
    BoxFuture, Policy, Row, RunResult, Statement, StepCount, StoreError, TableTurn,
};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::OnceCell;

/// Declares that an agent has SQL tables, and their migrations.
///
/// A migration is SQL text that upgrades the tables from one version to the next; a new agent
/// has version 0. Missing migrations run in one transaction before the agent wakes. Never
/// change a migration that agents have already run; append a new one.
///
/// ```
/// use a99_runtime::Tables;
///
/// let tables = Tables::new()
///     .migration("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
///     .migration("ALTER TABLE notes ADD COLUMN done INTEGER NOT NULL DEFAULT 0");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub(crate) migrations: Vec<String>,
}

impl Tables {
    /// Tables without migrations: the agent's turns create them.
    #[must_use]
    pub fn new() -> Tables {
        Tables::default()
    }

    /// Appends a migration.
    #[must_use]
    pub fn migration(mut self, sql: impl Into<String>) -> Tables {
        self.migrations.push(sql.into());
        self
    }
}

/// Refuses a policy with concurrent turns: they could not share a transaction.
pub(crate) fn check_policy(has_tables: bool, policy: &Policy) -> Result<(), AgentError> {
    match has_tables && policy.concurrency.get() > 1 {
        false => Ok(()),
        true => {
            let message = format!(
                "an agent with tables of its own has one turn at a time: its transaction is \
                 theirs; leave `concurrency` at 1, not {}",
                policy.concurrency
            );
            Err(AgentError::new(codes::BAD_POLICY, message).fatal())
        }
    }
}

/// A turn's tables, opened at their first use.
#[derive(Default)]
pub(crate) struct OwnTables {
    turn: OnceCell<Arc<dyn TableTurn>>,
    is_abandoned: AtomicBool,
}

impl OwnTables {
    /// Refuses further statements, and interrupts the running one.
    pub(crate) fn end(&self) {
        if let Some(turn) = self.turn.get() {
            turn.end();
        }
    }

    /// Rolls back the changes.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
        if let Some(turn) = self.turn.get() {
            turn.abandon();
        }
    }

    /// The transaction to commit; `None` if the turn used no tables.
    pub(crate) fn id(&self) -> Option<u64> {
        let turn = self.turn.get()?;
        (!self.is_abandoned.load(Ordering::Acquire)).then(|| turn.id())
    }

    /// Fails if the changes cannot be committed.
    pub(crate) fn check(&self) -> Result<(), AgentError> {
        match self.turn.get() {
            Some(turn) => Ok(turn.check()?),
            None => Ok(()),
        }
    }
}

impl TurnInner {
    async fn own_tables(&self) -> Result<&Arc<dyn TableTurn>, AgentError> {
        self.going_on()?;
        let Some(tables) = &self.tables else {
            return Err(no_storage());
        };
        let open = || self.shared.agents().tables(self.fence.clone());
        let turn = tables.turn.get_or_try_init(open).await?;
        self.going_on()?;
        Ok(turn)
    }
}

fn no_storage() -> AgentError {
    let message = "the agent has no tables of its own: `Agent::tables` says that it has some";
    AgentError::new(codes::NO_STORAGE, message).fatal()
}

/// An agent's tables during a turn. The turn's changes commit with its state or not at all; its
/// statements see them earlier. After the turn every statement gives `turn.over`.
///
/// Parameters and row values are JSON: null, numbers, texts, and bytes as `{"$blob": "..."}` in
/// base64; `true` and `false` are stored as 1 and 0.
///
/// Errors of all statements: `store.input` for invalid or forbidden SQL, `store.constraint`,
/// `store.too_large`, `store.interrupted`, `turn.over`, `store.fenced`, and disk errors. When a
/// statement is interrupted while it writes, or the disk is full, SQLite rolls back all of the
/// turn's changes. The turn then fails even if the handler ignores the error.
#[derive(Clone)]
pub struct Storage {
    client: TurnClient,
    steps: Option<Arc<StepCount>>,
    is_repeatable: bool,
}

impl TurnClient {
    /// Whether the agent declares tables.
    #[must_use]
    pub fn has_storage(&self) -> bool {
        self.0.tables.is_some()
    }

    /// The agent's tables.
    ///
    /// # Errors
    /// `storage.missing`
    pub fn storage(&self) -> Result<Storage, AgentError> {
        match self.has_storage() {
            true => Ok(Storage {
                client: self.clone(),
                steps: None,
                is_repeatable: false,
            }),
            false => Err(no_storage()),
        }
    }
}

impl Storage {
    /// Counts the steps of all statements and interrupts them at the limit
    /// (`store.interrupted`).
    #[must_use]
    pub fn counted(self, steps: Arc<StepCount>) -> Storage {
        Storage {
            steps: Some(steps),
            ..self
        }
    }

    /// Restricts statements to deterministic SQL: functions of time and chance, such as
    /// `random()` and `date('now')`, are refused (`store.input`).
    #[must_use]
    pub fn repeatable(self) -> Storage {
        Storage {
            is_repeatable: true,
            ..self
        }
    }

    fn statement(&self, sql: &str, params: Vec<Value>) -> Statement {
        Statement {
            sql: sql.to_owned(),
            params,
            steps: self.steps.clone(),
            is_repeatable: self.is_repeatable,
        }
    }

    fn failed(&self, error: StoreError) -> AgentError {
        self.client.0.failed(error)
    }

    /// Runs statements without parameters, for schemas.
    ///
    /// # Errors
    /// Those of [`Storage`].
    pub async fn exec(&self, sql: &str) -> Result<(), AgentError> {
        let tables = self.client.0.own_tables().await?;
        let done = tables.exec(self.statement(sql, Vec::new()));
        done.await.map_err(|error| self.failed(error))
    }

    /// Runs one statement that changes rows.
    ///
    /// # Errors
    /// Those of [`Storage`].
    pub async fn run(&self, sql: &str, params: Vec<Value>) -> Result<RunResult, AgentError> {
        let tables = self.client.0.own_tables().await?;
        let done = tables.run(self.statement(sql, params));
        done.await.map_err(|error| self.failed(error))
    }

    /// The first row of a query.
    ///
    /// # Errors
    /// Those of [`Storage`].
    pub async fn get(&self, sql: &str, params: Vec<Value>) -> Result<Option<Row>, AgentError> {
        let tables = self.client.0.own_tables().await?;
        let found = tables.query(self.statement(sql, params), true);
        let found = found.await.map_err(|error| self.failed(error))?;
        Ok(found.into_iter().next())
    }

    /// All rows of a query.
    ///
    /// # Errors
    /// Those of [`Storage`].
    pub async fn query(&self, sql: &str, params: Vec<Value>) -> Result<Vec<Row>, AgentError> {
        let tables = self.client.0.own_tables().await?;
        let found = tables.query(self.statement(sql, params), false);
        found.await.map_err(|error| self.failed(error))
    }
}

/// [`Storage`] for code that does not wait: each statement blocks its thread until the store has
/// run it. Errors are those of [`Storage`].
#[derive(Clone)]
pub struct SyncStorage(Storage);

impl SyncStorage {
    /// [`Storage::exec`]
    ///
    /// # Errors
    /// Those of [`Storage`].
    pub fn exec(&self, sql: &str) -> Result<(), AgentError> {
        block_on(self.0.exec(sql))
    }

    /// [`Storage::run`]
    ///
    /// # Errors
    /// Those of [`Storage`].
    pub fn run(&self, sql: &str, params: Vec<Value>) -> Result<RunResult, AgentError> {
        block_on(self.0.run(sql, params))
    }

    /// [`Storage::get`]
    ///
    /// # Errors
    /// Those of [`Storage`].
    pub fn get(&self, sql: &str, params: Vec<Value>) -> Result<Option<Row>, AgentError> {
        block_on(self.0.get(sql, params))
    }

    /// [`Storage::query`]
    ///
    /// # Errors
    /// Those of [`Storage`].
    pub fn query(&self, sql: &str, params: Vec<Value>) -> Result<Vec<Row>, AgentError> {
        block_on(self.0.query(sql, params))
    }
}

impl StorageApi for Storage {
    fn synchronous(&self) -> Option<SyncStorage> {
        let store = self.client.0.shared.agents();
        store.is_synchronous().then(|| SyncStorage(self.clone()))
    }

    fn exec<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(Storage::exec(self, sql))
    }

    fn run<'a>(
        &'a self,
        sql: &'a str,
        params: Vec<Value>,
    ) -> BoxFuture<'a, Result<RunResult, AgentError>> {
        Box::pin(Storage::run(self, sql, params))
    }

    fn get<'a>(
        &'a self,
        sql: &'a str,
        params: Vec<Value>,
    ) -> BoxFuture<'a, Result<Option<Row>, AgentError>> {
        Box::pin(Storage::get(self, sql, params))
    }

    fn query<'a>(
        &'a self,
        sql: &'a str,
        params: Vec<Value>,
    ) -> BoxFuture<'a, Result<Vec<Row>, AgentError>> {
        Box::pin(Storage::query(self, sql, params))
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(std::future::ready(self.client.0.going_on()))
    }
}
