//! Turn of an agent that lives: what a program that handles an event may read and change.
//!
//! What a program does here is part of the turn: it happens when the turn is committed, whole
//! or not at all, and happens again, under the same identities, when the turn is run again
//! (D91). So nothing of it waits for the world, and reading gives what the turn itself left.

mod memory;
mod requests;
#[cfg(feature = "testing")]
pub(crate) mod suite;

pub use memory::{MemoryTurn, TurnChange};
pub use requests::{
    MAX_STATE_DEPTH, MessageFailure, MessageUpdate, TimerDue, TurnEvent, TurnMessage, TurnTimer,
    merge_state, timer_name,
};

use crate::error::{BoxFuture, CapabilityError, Reply, ready};
use crate::store::ScanMeter;
use a99_core::value::Value;
use std::sync::Arc;

/// How a statement of the agent's own tables is run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum TurnQuery {
    /// Statements without parameters, of which nothing is given.
    Exec,
    /// One that changes rows: `{changes, lastInsertRowId}`.
    Run,
    /// The first row as an object, nothing if there is none.
    Get,
    /// All rows: a list of objects.
    All,
}

/// The turn of an agent in which a program runs. Whoever implements it reads what the program
/// gave with [`TurnMessage::read`] and its like, so that every host refuses the same.
pub trait AgentTurn: Send + Sync {
    /// The agent's state, with what the turn changed of it.
    fn state(&self) -> Reply<'_>;

    /// Lays an object over the state, members of members too ([`merge_state`]); or replaces
    /// the state.
    fn set_state(&self, state: Value, replace: bool) -> Done<'_>;

    /// The agent's settings: defaults, the host's configuration, what users changed.
    fn settings(&self) -> Reply<'_>;

    /// Lays an object over what users changed of the settings.
    fn set_settings(&self, settings: Value) -> Done<'_>;

    /// Who the agent is: an object with `agent`, `channel`, `handle` and `id`, and what else
    /// the host tells.
    fn identity(&self) -> Reply<'_>;

    /// Sends a message ([`TurnMessage`]) and gives its identity, a text.
    fn send(&self, message: Value) -> Reply<'_>;

    /// Adds to a message, or ends it ([`MessageUpdate`]).
    fn update(&self, update: Value) -> Done<'_>;

    /// Says that a message failed ([`MessageFailure`]).
    fn fail(&self, failure: Value) -> Done<'_>;

    /// Publishes an event of the agent's own ([`TurnEvent`]) and gives its identity, a text.
    fn publish(&self, event: Value) -> Reply<'_>;

    /// Sets or replaces a timer ([`TurnTimer`]).
    fn set_timer(&self, timer: Value) -> Done<'_>;

    /// Removes a timer, if there is one of the name.
    fn cancel_timer(&self, name: Value) -> Done<'_>;

    /// Whether the agent has tables of its own.
    fn has_storage(&self) -> bool {
        false
    }

    /// Runs a statement of SQL on the agent's own tables. `params` is a list, or nothing.
    fn storage(&self, how: TurnQuery, sql: Value, params: Value) -> Reply<'_> {
        let _ = (how, sql, params);
        ready(Err(CapabilityError::new(
            "agentTurn: the agent has no storage",
        )))
    }

    /// The same, which counts what the statement looked at ([`ScanMeter::add`]) and stops it when
    /// that is more than the caller can pay. It must be the same each time that the turn runs.
    fn storage_counted(
        &self,
        how: TurnQuery,
        sql: Value,
        params: Value,
        scanned: Arc<ScanMeter>,
    ) -> Reply<'_> {
        let _ = scanned;
        self.storage(how, sql, params)
    }
}

/// What gives nothing but an error.
pub type Done<'a> = BoxFuture<'a, Result<(), CapabilityError>>;

#[cfg(test)]
mod tests {
    use super::{MemoryTurn, suite};
    use crate::testing::{block_on, value};

    #[test]
    fn a_turn_in_memory_conforms() {
        block_on(suite::conformance(&MemoryTurn::new())).unwrap();
        let turn = MemoryTurn::new().with_storage(value(r#"{"SELECT 1": [{"n": 1}]}"#));
        block_on(suite::conformance(&turn)).unwrap();
    }
}
