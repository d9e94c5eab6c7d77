//! Why a turn of a program did not get to its end.

use a99_runtime_engine::{StoreCode, StoreError, TurnResult};
use agent99::{ErrorCode, Outcome};
use std::fmt;

/// What is wrong with a turn of a program.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProgramCode {
    /// A call differs from the same call in the turn's earlier attempt: the program, or the
    /// data it reads, is not deterministic.
    ChangedBody,
    /// A call that must not be repeated was started, and its outcome is unknown. The program
    /// may catch the error.
    UnknownOutcome,
    /// A row of the turn's journal is damaged, or of another version.
    Unreadable,
    /// An answer is too large or too deep for the journal.
    TooLarge,
    /// The program of the turn is not in the store, or cannot be loaded.
    NoProgram,
}

impl ProgramCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ProgramCode::ChangedBody => "step.changed_body",
            ProgramCode::UnknownOutcome => "step.unknown_outcome",
            ProgramCode::Unreadable => "step.unreadable",
            ProgramCode::TooLarge => "step.too_large",
            ProgramCode::NoProgram => "program.missing",
        }
    }
}

/// An error outside of the program: its run did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// The journal could not be read or written.
    Journal(StoreError),
    /// A call asks for something else than when the turn ran before: its name.
    ChangedBody(String),
    /// A row of the journal is damaged, or of another version: its name.
    Unreadable(String),
    /// The program of the turn is not in the store, or cannot be loaded.
    NoProgram(String),
    /// An answer cannot be kept.
    Unkept(String),
}

impl ProgramError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            ProgramError::Journal(error) => error.code().name(),
            ProgramError::ChangedBody(_) => ProgramCode::ChangedBody.name(),
            ProgramError::Unreadable(_) => ProgramCode::Unreadable.name(),
            ProgramError::NoProgram(_) => ProgramCode::NoProgram.name(),
            ProgramError::Unkept(_) => ProgramCode::TooLarge.name(),
        }
    }

    /// Whether trying the turn again is of no use.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            ProgramError::Journal(error) => matches!(
                error.code(),
                StoreCode::ChangedBody | StoreCode::TooLarge | StoreCode::Unreadable
            ),
            _ => true,
        }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::Journal(error) => write!(f, "the journal of the turn: {error}"),
            ProgramError::ChangedBody(name) => write!(
                f,
                "the program does not do again what it did: `{name}` asks for something else"
            ),
            ProgramError::Unreadable(name) => {
                write!(f, "the row `{name}` of the journal cannot be read")
            }
            ProgramError::NoProgram(why) => {
                write!(f, "the program that the turn began with: {why}")
            }
            ProgramError::Unkept(why) => write!(f, "an answer cannot be kept: {why}"),
        }
    }
}

impl std::error::Error for ProgramError {}

impl From<StoreError> for ProgramError {
    fn from(error: StoreError) -> ProgramError {
        ProgramError::Journal(error)
    }
}

/// The end of a program's run.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramEnd {
    /// The outcome, which may be an error.
    pub outcome: Outcome,
    /// Whether a retry of the turn may succeed: a call failed, or time was up.
    pub is_retryable: bool,
    /// Whether the run failed because of a call with an unknown outcome
    /// ([`ProgramCode::UnknownOutcome`]).
    pub is_unknown: bool,
}

impl ProgramEnd {
    /// Whether time was up, or the run was aborted.
    pub(super) fn is_stop(outcome: &Outcome) -> bool {
        let code = outcome.error.as_ref().map(|error| error.code);
        matches!(code, Some(ErrorCode::RunTimeout | ErrorCode::Aborted))
    }
}

/// Maps the end of a turn for the delivery of the agent's events.
#[must_use]
pub fn turn_result(end: &Result<ProgramEnd, ProgramError>) -> TurnResult {
    match end {
        Err(error) => TurnResult::Failed {
            code: error.code().to_owned(),
            error: error.to_string(),
            is_final: error.is_final(),
        },
        Ok(ProgramEnd {
            outcome,
            is_retryable,
            is_unknown,
        }) => match &outcome.error {
            None => TurnResult::Done,
            Some(error) if error.code == ErrorCode::Aborted => TurnResult::Cancelled,
            Some(error) => TurnResult::Failed {
                code: match (is_unknown, error.host_code) {
                    (true, _) => ProgramCode::UnknownOutcome.name(),
                    (false, Some(code)) => code.as_str(),
                    (false, None) => error.code.as_str(),
                }
                .to_owned(),
                error: error.message.to_string(),
                is_final: !is_retryable,
            },
        },
    }
}
