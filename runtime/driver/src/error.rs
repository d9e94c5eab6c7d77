//! Errors of agents, of their turns, and of hosts.

use a99_runtime_engine::{KeyError, StateError, StoreCode, StoreError};
use std::fmt;

/// Why a handler failed, or an operation of a turn was refused: a stable code, and words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentError {
    code: String,
    message: String,
    is_final: bool,
}

/// Codes of errors that the runtime gives.
pub mod codes {
    use crate::program::ProgramCode;

    /// The handler panicked.
    pub const PANIC: &str = "turn.panic";
    /// The handler returned an error without a code.
    pub const FAILED: &str = "turn.failed";
    /// The turn exceeded its time limit.
    pub const TIMEOUT: &str = "turn.timeout";
    /// The turn is over: tasks that its handler left behind can no longer act for it.
    pub const OVER: &str = "turn.over";
    /// An operation has the name of another one of the turn, or says something else than
    /// it did when the turn ran before.
    pub const CHANGED_BODY: &str = ProgramCode::ChangedBody.name();
    /// It is not known how a step ended that may not be made twice.
    pub const UNKNOWN_OUTCOME: &str = ProgramCode::UnknownOutcome.name();
    /// A step failed with a final error, which is saved.
    pub const STEP_FAILED: &str = "step.failed";
    /// A value is not valid JSON, or not of the expected type.
    pub const BAD_VALUE: &str = "turn.bad_value";
    /// State and settings of a program are too large for its next turn.
    pub const STATE_TOO_LARGE: &str = "state.too_large";
    /// No member of the channel has this handle or identity.
    pub const NOBODY: &str = "provider-not-found";
    /// The provider has no such method.
    pub const NO_METHOD: &str = "method-not-found";
    /// The arguments of a method are not what it takes.
    pub const BAD_ARGUMENTS: &str = "validation-error";
    /// A method failed.
    pub const METHOD_FAILED: &str = "execution-error";
    /// A call was cancelled.
    pub const CANCELLED: &str = "cancelled";
    /// The connection to the channels is lost or closed.
    pub const CONNECTION: &str = "connection-error";
    /// A call took longer than it may.
    pub const CALL_TIMEOUT: &str = "timeout";
    /// The chain of calls already holds the callee, which would wait for itself.
    pub const WOULD_DEADLOCK: &str = "call.would_deadlock";
    /// The host has no language model.
    pub const NO_AI: &str = "ai.missing";
    /// The agent has no tables.
    pub const NO_STORAGE: &str = "storage.missing";
    /// The agent's policy is invalid.
    pub const BAD_POLICY: &str = "agent.bad_policy";
    /// No agent with this name exists.
    pub const UNKNOWN_AGENT: &str = "agent.unknown";
    /// The host does not let the agent do this.
    pub const NOT_ALLOWED: &str = "agent.not_allowed";
    /// The agent is on no channel.
    pub const NOT_REGISTERED: &str = "agent.not_registered";
    /// An event came through more agents than the host allows.
    pub const HOP_LIMIT: &str = "agent.hop_limit";
    /// Another host of the store runs the agents of this shard.
    pub const NOT_OWNED: &str = "host.not_owner";
    /// The host lost a shard to another one: its agents do not run here any more.
    pub const SHARD_LOST: &str = "host.shard_lost";
    /// The host is stopping.
    pub const STOPPING: &str = "host.stopping";
    /// A participant has this handle on the channel already.
    pub const HANDLE_CONFLICT: &str = "handle-conflict";
    /// A timer is invalid.
    pub const BAD_TIMER: &str = "timer.bad";
    /// The process of an agent, or its host, has ended.
    pub const LOST: &str = "process.lost";
    /// The process of an agent did not start or connect in time.
    pub const NOT_STARTED: &str = "process.not_started";
    /// The process died during a turn that is not run again.
    pub const TURN_LOST: &str = "turn.lost";
    /// A connecting process lacks the token, belongs to another user, or uses another protocol.
    pub const REFUSED: &str = "process.refused";
    /// The connection received an invalid frame.
    pub const BAD_FRAME: &str = "process.bad_frame";
    /// A member of a protocol message has the wrong form.
    pub const BAD_MESSAGE: &str = "process.bad_message";
    /// The protocol has no such method.
    pub const UNKNOWN_CALL: &str = "process.unknown_method";
    /// A message is larger than the protocol allows.
    pub const MESSAGE_TOO_LARGE: &str = "process.message_too_large";
    /// The other end did not answer in time.
    pub const CALL_LATE: &str = "process.timeout";
    /// The other end sends more requests at once than allowed.
    pub const BUSY: &str = "process.busy";
    /// The process runs another version of the agent than the one that woke it.
    pub const CHANGED: &str = "process.changed";
}

impl AgentError {
    /// An error with a code. The turn is tried again, as the agent's policy says.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> AgentError {
        AgentError {
            code: code.into(),
            message: message.into(),
            is_final: false,
        }
    }

    /// The same as one that no other attempt can mend: the turn becomes a dead letter at once.
    #[must_use]
    pub fn fatal(mut self) -> AgentError {
        self.is_final = true;
        self
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Whether trying again is of no use.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.is_final
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AgentError {}

impl From<StoreError> for AgentError {
    fn from(error: StoreError) -> AgentError {
        let refused = matches!(error.code(), StoreCode::Input | StoreCode::TooLarge);
        let made = match error.code() {
            StoreCode::ChangedBody => AgentError::new(codes::CHANGED_BODY, error.to_string()),
            code => AgentError::new(code.name(), error.to_string()),
        };
        if refused { made.fatal() } else { made }
    }
}

impl From<KeyError> for AgentError {
    fn from(error: KeyError) -> AgentError {
        AgentError::new(error.code(), error.to_string()).fatal()
    }
}

impl From<StateError> for AgentError {
    fn from(error: StateError) -> AgentError {
        AgentError::new(error.code(), error.to_string()).fatal()
    }
}

impl From<serde_json::Error> for AgentError {
    fn from(error: serde_json::Error) -> AgentError {
        AgentError::new(codes::BAD_VALUE, error.to_string())
    }
}

impl From<String> for AgentError {
    fn from(message: String) -> AgentError {
        AgentError::new(codes::FAILED, message)
    }
}

impl From<&str> for AgentError {
    fn from(message: &str) -> AgentError {
        AgentError::from(message.to_owned())
    }
}
