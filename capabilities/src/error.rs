//! The error of a capability, and result types of its methods.

use a99_core::error::HostCode;
use a99_core::text::Text;
use a99_core::value::Value;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The answer of a capability method that gives a value.
pub type Reply<'a> = BoxFuture<'a, Result<Value, CapabilityError>>;

/// Result of a conformance suite: an error is the first violated law.
#[cfg(feature = "testing")]
pub type SuiteResult = Result<(), String>;

/// Error of a capability. The program sees the text unchanged, so an implementation keeps
/// secrets and host internals out of it (security E20, N18).
#[derive(Clone, Debug, PartialEq)]
pub struct CapabilityError {
    /// Text for the program.
    pub message: Text,
    /// A stable code, which becomes the run's host code.
    pub code: Option<HostCode>,
    /// Details for hosts; programs do not see them.
    pub details: Option<Box<Value>>,
}

impl CapabilityError {
    /// An error with this text.
    pub fn new(message: impl Into<Text>) -> CapabilityError {
        CapabilityError {
            message: message.into(),
            code: None,
            details: None,
        }
    }

    /// Adds details for hosts.
    #[must_use]
    pub fn with_details(self, details: Value) -> CapabilityError {
        CapabilityError {
            details: Some(Box::new(details)),
            ..self
        }
    }
}

impl fmt::Display for CapabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.message, f)
    }
}

impl std::error::Error for CapabilityError {}

/// A future that is ready at once.
pub(crate) fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

/// Fails with a law's text unless it holds.
#[cfg(feature = "testing")]
pub(crate) fn ensure(holds: bool, law: &str) -> SuiteResult {
    if holds { Ok(()) } else { Err(law.to_owned()) }
}

/// Unwraps a reply of the implementation under test.
#[cfg(feature = "testing")]
pub(crate) fn expect<T>(reply: Result<T, CapabilityError>, law: &str) -> Result<T, String> {
    reply.map_err(|error| format!("{law}: {error}"))
}

/// Checks that a call was refused with a text.
#[cfg(feature = "testing")]
pub(crate) fn refused<T>(reply: Result<T, CapabilityError>, law: &str) -> SuiteResult {
    match reply {
        Ok(_) => Err(law.to_owned()),
        Err(error) => ensure(!error.message.is_empty(), "an error has a text"),
    }
}
