//! Errors of asynchronous atoms.

use crate::pace::{Fault, Thrown};
use a99_core::error::{ErrorCode, HostCode};
use a99_core::text::Text;
use a99_core::value::Value;
use std::fmt;

/// An error of an asynchronous atom.
///
/// A function under `#[atom]` may return it, or any error that converts to it: then the run's
/// error keeps its codes and its help. Other errors keep only their text.
///
/// ```
/// use a99_core::error::HostCode;
/// use a99_vm::atom::AtomError;
///
/// const DECLINED: HostCode = HostCode::new("billing.declined");
///
/// let error = AtomError::new("the card was declined").with_host_code(DECLINED);
/// assert_eq!(error.to_string(), "the card was declined");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AtomError {
    /// Stable code; [`ErrorCode::Program`] for ordinary failures.
    pub code: ErrorCode,
    /// A stable code for the host; programs do not see it.
    pub host_code: Option<HostCode>,
    /// The message, visible to the program.
    pub message: Text,
    /// A suggestion for people; programs do not see it.
    pub help: Option<String>,
    /// Details for observers of the run; programs do not see them.
    pub details: Option<Box<Value>>,
}

impl AtomError {
    /// An ordinary failure with this text.
    pub fn new(message: impl Into<Text>) -> AtomError {
        AtomError::coded(ErrorCode::Program, message)
    }

    /// The error for a capability that the host did not grant.
    pub fn missing(message: impl Into<Text>) -> AtomError {
        AtomError::coded(ErrorCode::Capability, message)
    }

    /// A failure with a code of the engine. A code that programs may not catch
    /// ([`ErrorCode::is_catchable`]) is replaced by the ordinary one.
    pub fn coded(code: ErrorCode, message: impl Into<Text>) -> AtomError {
        AtomError {
            code,
            host_code: None,
            message: message.into(),
            help: None,
            details: None,
        }
    }

    /// Adds a code of the host.
    #[must_use]
    pub fn with_host_code(mut self, code: HostCode) -> AtomError {
        self.host_code = Some(code);
        self
    }

    /// Adds a suggestion for people.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> AtomError {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for AtomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message.to_string_lossy())
    }
}

impl std::error::Error for AtomError {}

impl From<AtomError> for Fault {
    /// Converts a host's error to the program's view. Only the engine may use codes that
    /// programs cannot catch. An error without a message gets the name of its kind.
    #[cold]
    fn from(error: AtomError) -> Fault {
        let code = match error.code.is_catchable() {
            true => error.code,
            false => ErrorCode::Program,
        };
        let message = match error.message.is_empty() {
            true => b"Error".to_vec(),
            false => error.message.as_bytes().to_vec(),
        };
        Fault::Throw(Box::new(Thrown {
            code,
            host_code: error.host_code,
            message,
            help: error.help,
            details: error.details,
            op: None,
        }))
    }
}

impl From<String> for AtomError {
    fn from(message: String) -> AtomError {
        AtomError::new(message)
    }
}

impl From<&str> for AtomError {
    fn from(message: &str) -> AtomError {
        AtomError::new(message)
    }
}
