//! Tables of agents: SQL of an agent's own, within one turn.

use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Reply<'a, T> = crate::store::BoxFuture<'a, Result<T, StoreError>>;

/// What a statement that changes rows did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// Rows that it changed.
    pub changes: u64,
    /// The row that was inserted last.
    pub last_insert_rowid: i64,
}

/// A row by the names of its columns; of two columns with one name the last counts.
pub type Row = Map<String, Value>;

/// Steps of SQLite's machine that statements took, and how many they may take together.
#[derive(Debug)]
pub struct StepCount {
    taken: AtomicU64,
    most: u64,
}

impl StepCount {
    /// None yet, of so many at most.
    #[must_use]
    pub const fn up_to(most: u64) -> StepCount {
        StepCount {
            taken: AtomicU64::new(0),
            most,
        }
    }

    /// Counts some.
    pub fn add(&self, steps: u64) {
        let add = |now: u64| Some(now.saturating_add(steps));
        // The closure never refuses.
        let _ = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// All so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.taken())
    }
}

/// A statement of an agent's.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The SQL.
    pub sql: String,
    /// Values of its parameters, in their order: nothing, booleans (kept as 0 and 1), numbers,
    /// texts, and `{"$blob": "..."}` with bytes in base64.
    pub params: Vec<Value>,
    /// What counts and bounds its steps.
    pub steps: Option<Arc<StepCount>>,
    /// Whether it gives the same each time that it is run on the same tables: functions of the
    /// time and of chance are refused.
    pub is_repeatable: bool,
}

/// The tables of an agent in one turn: a transaction that begins with the first statement and
/// ends with the commit of the turn ([`TurnCommit::tables`](crate::TurnCommit::tables)).
///
/// Errors of statements: [`Input`](crate::StoreCode::Input) for SQL that is wrong or not
/// allowed, [`Constraint`](crate::StoreCode::Constraint),
/// [`TooLarge`](crate::StoreCode::TooLarge), [`Interrupted`](crate::StoreCode::Interrupted),
/// [`Fenced`](crate::StoreCode::Fenced) and faults of the disk.
pub trait TableTurn: Send + Sync {
    /// The number of the transaction.
    fn id(&self) -> u64;

    /// Statements without parameters, one after the other.
    fn exec(&self, statements: Statement) -> Reply<'_, ()>;

    /// One statement that changes rows.
    fn run(&self, statement: Statement) -> Reply<'_, RunResult>;

    /// The rows of a query: all, or the first.
    fn query(&self, statement: Statement, first: bool) -> Reply<'_, Vec<Row>>;

    /// Refuses more statements, and stops the one that runs.
    fn end(&self);

    /// The same, and nothing of it is kept.
    fn abandon(&self);

    /// Whether what it changed can still be committed: not after SQLite undid it.
    ///
    /// # Errors
    /// Why not.
    fn check(&self) -> Result<(), StoreError>;
}
