//! Journal of a turn: the started calls of a program, and their answers.

use super::lock;
use crate::step::Journal;
use crate::turn::TurnClient;
use a99_runtime_engine::{
    AgentStore, BoxFuture, Fence, JournalStatus, StepClass, StoreCode, StoreError, Trigger,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The row of a run's start.
pub const START_ROW: &str = "run";

/// A call of a program failed; a repeated run gets the same error.
pub const FAILED: &str = "call.failed";

/// A call of a program failed and ended the run; the call is made again when the turn is
/// retried.
pub const AGAIN: &str = "call.again";

/// A row of the journal: a call, or the start of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// `call:` and the identity of the call, as in `call:2.0/0.0`; or [`START_ROW`].
    pub name: String,
    /// Whether it may run again when its outcome is unknown.
    pub class: StepClass,
    /// A digest of the atom and its inputs.
    pub body: u64,
    /// Its status. The code of [`JournalStatus::Failed`] is [`FAILED`] or [`AGAIN`]; its text,
    /// like that of [`JournalStatus::Done`], has the whole answer.
    pub status: JournalStatus,
}

/// Records the external calls of a turn's program until the turn is committed.
///
/// [`StoreJournal`] is durable, [`MemoryJournal`] is for tests.
pub trait CallJournal: Send + Sync {
    /// Finds a row by name.
    fn find(&self, name: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>>;

    /// Records a new row, or a later status of an unfinished one. It is durable when the future
    /// completes.
    ///
    /// Errors: [`StoreCode::ChangedBody`] if the name belongs to a different call, or is
    /// finished with a different answer.
    fn record(&self, row: CallRow) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// A journal in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal(Mutex<BTreeMap<String, CallRow>>);

impl MemoryJournal {
    /// An empty journal.
    #[must_use]
    pub fn new() -> MemoryJournal {
        MemoryJournal::default()
    }

    /// All rows, by name.
    #[must_use]
    pub fn rows(&self) -> Vec<CallRow> {
        lock(&self.0).values().cloned().collect()
    }

    fn put(&self, row: CallRow) -> Result<(), StoreError> {
        let mut rows = lock(&self.0);
        let other = |old: &CallRow| {
            let is_done = matches!(old.status, JournalStatus::Done(_));
            old.body != row.body || old.class != row.class || is_done && old.status != row.status
        };
        if rows.get(&row.name).is_some_and(other) {
            let text = format!("step {} stands for something else", row.name);
            return Err(StoreError::new(StoreCode::ChangedBody, text));
        }
        rows.insert(row.name.clone(), row);
        Ok(())
    }
}

impl CallJournal for MemoryJournal {
    fn find(&self, name: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        let found = lock(&self.0).get(name).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn record(&self, row: CallRow) -> BoxFuture<'_, Result<(), StoreError>> {
        let kept = self.put(row);
        Box::pin(std::future::ready(kept))
    }
}

/// The journal of a turn in a store of agents, shared with the steps of agents in Rust. The
/// rows are read once, and looked up in memory.
pub struct StoreJournal(Journal);

impl fmt::Debug for StoreJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreJournal")
            .field("trigger", self.0.trigger())
            .finish_non_exhaustive()
    }
}

impl StoreJournal {
    /// The journal of an agent's turn with this trigger.
    #[must_use]
    pub fn new(store: Arc<dyn AgentStore>, fence: Fence, trigger: Trigger) -> StoreJournal {
        StoreJournal(Journal::of(store, fence, trigger, None))
    }
}

impl CallJournal for StoreJournal {
    fn find(&self, name: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        find(&self.0, name.to_owned())
    }

    fn record(&self, row: CallRow) -> BoxFuture<'_, Result<(), StoreError>> {
        record(&self.0, row)
    }
}

/// The journal of a turn that a host runs.
pub(super) struct TurnJournal(pub(super) TurnClient);

impl CallJournal for TurnJournal {
    fn find(&self, name: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        find(&self.0.0.journal, name.to_owned())
    }

    fn record(&self, row: CallRow) -> BoxFuture<'_, Result<(), StoreError>> {
        record(&self.0.0.journal, row)
    }
}

fn find(journal: &Journal, name: String) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
    Box::pin(async move {
        let found = journal.find(&name).await?;
        Ok(found.map(|row| CallRow {
            name: row.name,
            class: row.class,
            body: row.body,
            status: row.status,
        }))
    })
}

fn record(journal: &Journal, row: CallRow) -> BoxFuture<'_, Result<(), StoreError>> {
    Box::pin(async move {
        let kept = journal.keep(&row.name, row.class, row.body, row.status);
        kept.await
    })
}
