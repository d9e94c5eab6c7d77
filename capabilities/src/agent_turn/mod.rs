//! Turn of a long-lived agent: the data that an event handler may read and change.
//!
//! Changes are part of the turn: they commit with it, whole or not at all, and a repeated turn
//! makes them again under the same identities (D91). Therefore no method waits for external
//! work, and reads see the turn's own changes.

mod memory;
mod requests;
#[cfg(feature = "testing")]
pub(crate) mod suite;

pub use memory::{MemoryTurn, TurnChange};
pub use requests::{
    MAX_STATE_DEPTH, MessageFailure, MessageUpdate, TimerDue, TurnCall, TurnEvent, TurnGuest,
    TurnMessage, TurnPart, TurnTimer, merge_state, timer_name,
};

use crate::error::{BoxFuture, CapabilityError, Reply, ready};
use crate::store::ScanMeter;
use a99_core::value::Value;
use std::sync::Arc;

/// Kinds of statements on the agent's own tables.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum TurnQuery {
    /// Statements without parameters and without a result.
    Exec,
    /// A statement that changes rows: `{changes, lastInsertRowId}`.
    Run,
    /// The first row as an object, if any.
    Get,
    /// All rows: a list of objects.
    All,
}

/// The turn of an agent in which a program runs. Implementations read the program's values with
/// [`TurnMessage::read`] and its like, so that every host refuses the same ones.
pub trait AgentTurn: Send + Sync {
    /// The agent's state with the changes of this turn.
    fn state(&self) -> Reply<'_>;

    /// Merges an object into the state at every depth ([`merge_state`]), or replaces the state.
    fn set_state(&self, state: Value, replace: bool) -> Done<'_>;

    /// The agent's settings: defaults, the host's configuration, and users' changes.
    fn settings(&self) -> Reply<'_>;

    /// Merges an object into the users' changes of the settings.
    fn set_settings(&self, settings: Value) -> Done<'_>;

    /// The agent's identity: an object with `agent`, `channel`, `handle` and `id`, and further
    /// members of the host.
    fn identity(&self) -> Reply<'_>;

    /// Sends a message ([`TurnMessage`]); gives its identity, a text.
    fn send(&self, message: Value) -> Reply<'_>;

    /// Appends to a message, or completes it ([`MessageUpdate`]).
    fn update(&self, update: Value) -> Done<'_>;

    /// Marks a message as failed ([`MessageFailure`]).
    fn fail(&self, failure: Value) -> Done<'_>;

    /// Publishes an event of the agent ([`TurnEvent`]); gives its identity, a text.
    fn publish(&self, event: Value) -> Reply<'_>;

    /// Sets or replaces a timer ([`TurnTimer`]).
    fn set_timer(&self, timer: Value) -> Done<'_>;

    /// Removes the timer of this name, if any.
    fn cancel_timer(&self, name: Value) -> Done<'_>;

    /// The participants of the channel: a list of objects with `id`, `handle`, `name`, `type`,
    /// `methods`, and `agent` and `metadata` if there are any.
    fn roster(&self) -> Reply<'_> {
        ready(Err(no_channel()))
    }

    /// Calls a method of a participant ([`TurnCall`]) and waits for its answer.
    fn call_method(&self, call: Value) -> Reply<'_> {
        let _ = call;
        ready(Err(no_channel()))
    }

    /// Sends a part of the answer of a method ([`TurnPart`]); the result of the run is the last.
    fn method_result(&self, part: Value) -> Done<'_> {
        let _ = part;
        ready(Err(no_channel()))
    }

    /// Invites an agent to the channel or changes its configuration ([`TurnGuest`]); gives its
    /// identity, a text.
    fn invite(&self, guest: Value) -> Reply<'_> {
        let _ = guest;
        ready(Err(no_channel()))
    }

    /// Removes an agent from the channel ([`TurnGuest`]); gives whether it was there.
    fn remove(&self, guest: Value) -> Reply<'_> {
        let _ = guest;
        ready(Err(no_channel()))
    }

    /// True if the agent has tables.
    fn has_storage(&self) -> bool {
        false
    }

    /// Runs an SQL statement on the agent's tables. `params` is a list, or absent.
    fn storage(&self, how: TurnQuery, sql: Value, params: Value) -> Reply<'_> {
        let _ = (how, sql, params);
        ready(Err(CapabilityError::new(
            "agentTurn: the agent has no storage",
        )))
    }

    /// Like [`AgentTurn::storage`], but counts the scanned data ([`ScanMeter::add`]) and stops
    /// the statement when the caller cannot pay for more. The count must be the same in each
    /// run of the turn.
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

fn no_channel() -> CapabilityError {
    CapabilityError::new("agentTurn: the agent has no channel")
}

/// Result of a method without a value.
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
