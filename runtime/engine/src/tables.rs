//! Tables of agents: an agent's SQL tables within one turn.

use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Reply<'a, T> = crate::store::BoxFuture<'a, Result<T, StoreError>>;

/// The result of a statement that changes rows.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// Number of changed rows.
    pub changes: u64,
    /// The rowid of the last insert.
    pub last_insert_rowid: i64,
}

/// A row by column names; of columns with the same name the last one counts.
pub type Row = Map<String, Value>;

/// Counts and limits the steps of SQLite's machine across statements.
#[derive(Debug)]
pub struct StepCount {
    taken: AtomicU64,
    most: u64,
}

impl StepCount {
    /// A count of zero with a limit.
    #[must_use]
    pub const fn up_to(most: u64) -> StepCount {
        StepCount {
            taken: AtomicU64::new(0),
            most,
        }
    }

    /// Adds steps.
    pub fn add(&self, steps: u64) {
        let add = |now: u64| Some(now.saturating_add(steps));
        // The closure never refuses.
        let _ = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Steps so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Steps left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.taken())
    }
}

/// A statement of an agent.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The SQL.
    pub sql: String,
    /// Parameter values in order: null, booleans (stored as 0 and 1), numbers, texts, and
    /// `{"$blob": "..."}` with bytes in base64.
    pub params: Vec<Value>,
    /// Counts and limits its steps.
    pub steps: Option<Arc<StepCount>>,
    /// Whether the result must depend on the tables only: functions of time and chance are
    /// refused.
    pub is_repeatable: bool,
}

/// The tables of an agent in one turn: a transaction that begins with the first statement and
/// ends with the commit of the turn ([`TurnCommit::tables`](crate::TurnCommit::tables)).
///
/// Errors of statements: [`Input`](crate::StoreCode::Input) for invalid or forbidden SQL,
/// [`Constraint`](crate::StoreCode::Constraint), [`TooLarge`](crate::StoreCode::TooLarge),
/// [`Interrupted`](crate::StoreCode::Interrupted), [`Fenced`](crate::StoreCode::Fenced) and
/// disk errors.
pub trait TableTurn: Send + Sync {
    /// The number of the transaction.
    fn id(&self) -> u64;

    /// Runs statements without parameters, in order.
    fn exec(&self, statements: Statement) -> Reply<'_, ()>;

    /// Runs one statement that changes rows.
    fn run(&self, statement: Statement) -> Reply<'_, RunResult>;

    /// The rows of a query: all, or the first.
    fn query(&self, statement: Statement, first: bool) -> Reply<'_, Vec<Row>>;

    /// Refuses further statements, and interrupts the running one.
    fn end(&self);

    /// Ends the turn and rolls back.
    fn abandon(&self);

    /// Checks that the changes can still be committed: they cannot after SQLite rolled back.
    ///
    /// # Errors
    /// The reason.
    fn check(&self) -> Result<(), StoreError>;
}
