//! Run errors: the one shape in which a failure reaches a program's `try` and
//! the host's outcome (decisions D7, D11, D24).
//!
//! The message is part of the language (programs compare it); the code is the
//! stable machine form; suggestions go into `help`, never into the message.
//! Compile-time findings are [`crate::diag::Diagnostic`]s, not run errors.

use crate::text::Text;
use crate::value::{Map, Value};
use std::fmt;

/// The stable machine code of a run error (decision D24).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// An error of the program's own making: the ordinary, catchable kind.
    Program,
    /// A forbidden name was touched (decision D16).
    Security,
    /// The fuel budget is used up (decision D17).
    OutOfFuel,
    /// The run's deadline passed (decision D22).
    RunTimeout,
    /// The caller aborted the run (decision D23).
    Aborted,
    /// The heap ceiling was reached (decision D20).
    HeapLimit,
    /// A call quota is used up (decision D42).
    QuotaExceeded,
    /// One atom took longer than it may (decision D22).
    AtomTimeout,
    /// The host did not provide the capability, or it failed.
    Capability,
    /// A value may not cross between host and guest (decision D21).
    Boundary,
    /// The program's code contradicts itself, as no compiler makes it: an artifact
    /// that was changed.
    Invalid,
    /// A fault of the engine itself.
    Internal,
    /// The run's options are not usable.
    Options,
    /// An asynchronous atom was reached in a synchronous run.
    AsyncInSync,
}

impl ErrorCode {
    /// Every code, in declaration order.
    pub const ALL: [Self; 14] = [
        Self::Program,
        Self::Security,
        Self::OutOfFuel,
        Self::RunTimeout,
        Self::Aborted,
        Self::HeapLimit,
        Self::QuotaExceeded,
        Self::AtomTimeout,
        Self::Capability,
        Self::Boundary,
        Self::Invalid,
        Self::Internal,
        Self::Options,
        Self::AsyncInSync,
    ];

    /// The stable text of the code; it never changes between versions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program.error",
            Self::Security => "security.forbidden",
            Self::OutOfFuel => "fuel.exhausted",
            Self::RunTimeout => "time.run_timeout",
            Self::Aborted => "run.aborted",
            Self::HeapLimit => "memory.heap_limit",
            Self::QuotaExceeded => "quota.exceeded",
            Self::AtomTimeout => "time.atom_timeout",
            Self::Capability => "capability.missing",
            Self::Boundary => "boundary.rejected",
            Self::Invalid => "program.invalid",
            Self::Internal => "internal",
            Self::Options => "options.invalid",
            Self::AsyncInSync => "run.async_atom",
        }
    }

    /// Whether a program's `try` may catch it: fuel, run timeout, abort, heap
    /// limit and quota may not be caught (decision D11).
    #[must_use]
    pub const fn is_catchable(self) -> bool {
        !matches!(
            self,
            Self::OutOfFuel
                | Self::RunTimeout
                | Self::Aborted
                | Self::HeapLimit
                | Self::QuotaExceeded
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunError {
    /// The machine code.
    pub code: ErrorCode,
    /// The text that programs see; identical to the references' (decision D24).
    pub message: Text,
    /// The atom that failed, or `vm.run` for the run itself.
    pub op: Text,
    /// JSON pointer of the step in the program, if known.
    pub pointer: Option<String>,
    /// A suggestion for people; programs never see it.
    pub help: Option<String>,
}

impl RunError {
    /// An error with neither pointer nor help.
    #[must_use]
    pub fn new(code: ErrorCode, op: impl Into<Text>, message: impl Into<Text>) -> Self {
        Self {
            code,
            message: message.into(),
            op: op.into(),
            pointer: None,
            help: None,
        }
    }

    /// The error with the JSON pointer of its step.
    #[must_use]
    pub fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// The error with a suggestion.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The monadic error object `{$error: true, message, op}` (language section 4.8).
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("$error", Value::Bool(true));
        map.insert("message", Value::String(self.message.clone()));
        map.insert("op", Value::String(self.op.clone()));
        Value::Object(map)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentError[{}]: {}", self.op, self.message)
    }
}

impl std::error::Error for RunError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_and_text() {
        let error = RunError::new(ErrorCode::Program, "jsonParse", "bad").with_help("h");
        assert_eq!(error.to_string(), "AgentError[jsonParse]: bad");
        assert_eq!(
            error.to_value().to_json_string(),
            r#"{"$error":true,"message":"bad","op":"jsonParse"}"#
        );
        assert_eq!(
            error.clone().with_pointer("/a").pointer.as_deref(),
            Some("/a")
        );
    }

    #[test]
    fn catchable() {
        let fatal: Vec<_> = ErrorCode::ALL
            .iter()
            .filter(|code| !code.is_catchable())
            .map(|code| code.as_str())
            .collect();
        assert_eq!(
            fatal,
            [
                "fuel.exhausted",
                "time.run_timeout",
                "run.aborted",
                "memory.heap_limit",
                "quota.exceeded"
            ]
        );
    }

    #[test]
    fn codes_are_distinct() {
        let texts: std::collections::HashSet<_> =
            ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), ErrorCode::ALL.len());
    }
}
