//! Store faults during the writes of turns.

use super::Activation;
use crate::error::AgentError;
use a99_runtime_engine::{CommitFault, StoreCode, StoreError, TurnId};

/// Maps a store error to a fault of a turn.
pub(super) fn fault(error: &StoreError) -> CommitFault {
    match error.code() {
        StoreCode::Fenced => CommitFault::Fenced,
        StoreCode::Conflict => CommitFault::Conflict,
        StoreCode::InDoubt => CommitFault::InDoubt,
        StoreCode::Unavailable | StoreCode::Locked => CommitFault::Unavailable,
        StoreCode::ChangedBody
        | StoreCode::TooLarge
        | StoreCode::NotFound
        | StoreCode::Unreadable
        | StoreCode::Input
        | StoreCode::Constraint
        | StoreCode::Interrupted
        | StoreCode::Copied => CommitFault::Refused,
    }
}

impl Activation {
    /// Logs that a turn or its start was not written. It keeps the reason for the dead letter
    /// in case the turn is given up.
    pub(super) fn not_written(
        &mut self,
        turn: TurnId,
        error: StoreError,
        what: &str,
    ) -> CommitFault {
        let fault = fault(&error);
        // Conflicts between concurrent turns are expected.
        if fault == CommitFault::Conflict {
            return fault;
        }
        if fault == CommitFault::Refused {
            self.refusals.insert(turn, error.to_string());
        }
        let error = AgentError::from(error);
        self.warn(&error, &format!("{what} was not written"));
        self.status
            .send_modify(|status| status.last_error = Some(error));
        fault
    }
}
