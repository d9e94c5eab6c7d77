//! Run errors: the common form of failures in a program's `try` and in the host's outcome
//! (decisions D7, D11, D24).
//!
//! The message is part of the language (programs compare it). The code is the stable form for
//! machines. Suggestions go into `help`, never into the message. Compile-time findings are
//! [`crate::diag::Diagnostic`]s, not run errors.

mod host_code;

pub use host_code::{HostCode, HostCodeError};

use crate::codes::{self, Code, code_row};
use crate::text::Text;
use crate::value::{Map, Value};
use serde::{Serialize, Serializer};
use std::fmt;

/// Defines [`ErrorCode`] and its table.
macro_rules! run_codes {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $code:literal $(alias $alias:literal)? $(help $help:literal)?;
    )*) => {
        /// The stable machine code of a run error (decision D24).
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $( $(#[doc = $doc])+ $name, )*
        }

        impl ErrorCode {
            /// Every code, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }

        /// The table of these codes, in the same order.
        pub const TABLE: &[Code<'static>] = &[
            $( code_row!([$($doc)+] $code [$($alias)?] [$($help)?]), )*
        ];
    };
}

run_codes! {
    /// The program raised an ordinary, catchable error.
    Program = "program.error";
    /// The program used a forbidden name.
    Security = "security.forbidden";
    /// The fuel budget is used up.
    OutOfFuel = "fuel.exhausted"
        help "give the run more fuel with `RunOptions::fuel`, or the program less work";
    /// The run's deadline passed.
    RunTimeout = "time.run_timeout"
        help "give the run more time with `RunOptions::timeout_ms`, or the program less work";
    /// The caller aborted the run.
    Aborted = "run.aborted";
    /// The heap ceiling was reached.
    HeapLimit = "memory.heap_limit"
        help "raise the limit with `RunOptions::heap_bytes`, or let the program hold less";
    /// A call quota is used up.
    QuotaExceeded = "quota.exceeded"
        help "raise the quota with `RunOptions::quota`, or call less often";
    /// A budget of calls, tokens or money is used up.
    Budget = "budget.exhausted"
        help "give the run's account more with `AccountLimits`, or call less often";
    /// A call of an atom exceeded its time limit.
    AtomTimeout = "time.atom_timeout"
        help "give the atom more time with `RunOptions::atom_timeout`";
    /// The host did not provide the capability, or it failed.
    Capability = "capability.missing" help "grant the capability";
    /// A value may not cross the boundary between program and host.
    Boundary = "boundary.rejected";
    /// The program's code contradicts itself: the artifact was changed after compiling.
    Invalid = "program.invalid" help "compile it again from a source you trust";
    /// The engine has a bug.
    Internal = "engine.fault" alias "internal" help "report it with the program";
    /// The run's options are invalid.
    Options = "options.invalid";
    /// An option of the run, such as a quota or a price, names an unknown op and would have no
    /// effect.
    UnknownOp = "options.unknown_op" help "correct the name, or leave the option out";
    /// The arguments do not match the program's `inputSchema`.
    ArgsInvalid = "args.invalid" help "give arguments that match the program's `inputSchema`";
    /// The arguments were given as JSON text that is not valid JSON.
    ArgsNotJson = "args.not_json" help "give one value of JSON in UTF-8";
    /// A synchronous run called an asynchronous atom.
    AsyncInSync = "run.async_atom" help "run the program with `Engine::run`, which waits";
    /// A replayed run departed from its recording: it made another call, or ended before one.
    ReplayDeparted = "replay.departed"
        help "replay the program that was recorded, or record this one";
}

impl ErrorCode {
    /// The stable text of the code, which never changes between versions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// General advice; empty if only the message can give it.
    #[must_use]
    pub const fn help(self) -> &'static str {
        TABLE[self as usize].help
    }

    /// True if a program's `try` may catch the error. Fuel, run timeout, abort, heap limit and
    /// quota cannot be caught (decision D11).
    #[must_use]
    pub const fn is_catchable(self) -> bool {
        !matches!(
            self,
            Self::OutOfFuel
                | Self::RunTimeout
                | Self::Aborted
                | Self::HeapLimit
                | Self::QuotaExceeded
                | Self::Budget
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error of a run. Serializes as [`RunError::to_json`].
#[derive(Clone, Debug, PartialEq)]
pub struct RunError {
    /// Stable code for machines.
    pub code: ErrorCode,
    /// Code of the host whose atom failed, if it set one.
    pub host_code: Option<HostCode>,
    /// Message that programs see, identical to the references' (decision D24).
    pub message: Text,
    /// The atom that failed, or `vm.run` for the run itself.
    pub op: Text,
    /// JSON pointer of the step, if it is known.
    pub pointer: Option<String>,
    /// Suggestion for people, hidden from programs.
    pub help: Option<String>,
    /// Details from the host, such as the text of an incomplete answer; hidden from programs.
    pub details: Option<Box<Value>>,
}

impl RunError {
    /// Creates an error without pointer and help.
    #[must_use]
    pub fn new(code: ErrorCode, op: impl Into<Text>, message: impl Into<Text>) -> Self {
        Self {
            code,
            host_code: None,
            message: message.into(),
            op: op.into(),
            pointer: None,
            help: None,
            details: None,
        }
    }

    /// Sets a host-defined code.
    #[must_use]
    pub fn with_host_code(mut self, code: HostCode) -> Self {
        self.host_code = Some(code);
        self
    }

    /// Sets the JSON pointer of the step.
    #[must_use]
    pub fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Sets the suggestion.
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

    /// The machine-readable form for hosts: an object of `code` (and `alias`, if the code has one),
    /// `message`, `op`, and where present `hostCode`, `pointer` and `help`, all of them strings,
    /// and `details`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        codes::insert(&mut map, self.code.as_str());
        if let Some(code) = self.host_code {
            map.insert("hostCode", code.as_str());
        }
        map.insert("message", self.message.clone());
        map.insert("op", self.op.clone());
        if let Some(pointer) = &self.pointer {
            map.insert("pointer", pointer.as_str());
        }
        if let Some(help) = &self.help {
            map.insert("help", help.as_str());
        }
        if let Some(details) = &self.details {
            map.insert("details", Value::clone(details));
        }
        Value::Object(map)
    }
}

impl Serialize for RunError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// Serializes as the text of the code.
impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
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
    fn the_form_for_machines() {
        const DECLINED: HostCode = HostCode::new("billing.declined");
        let plain = RunError::new(ErrorCode::Internal, "x", "bad");
        assert_eq!(
            serde_json::to_string(&plain).unwrap(),
            r#"{"code":"engine.fault","alias":"internal","message":"bad","op":"x"}"#
        );
        let full = RunError::new(ErrorCode::Program, "charge", "no funds")
            .with_host_code(DECLINED)
            .with_pointer("/steps/0")
            .with_help("h");
        assert_eq!(
            serde_json::to_string(&full).unwrap(),
            full.to_json().to_json_string()
        );
        assert_eq!(
            full.to_json().to_json_string(),
            concat!(
                r#"{"code":"program.error","hostCode":"billing.declined","message":"no funds","#,
                r#""op":"charge","pointer":"/steps/0","help":"h"}"#
            )
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
                "quota.exceeded",
                "budget.exhausted"
            ]
        );
    }

    #[test]
    fn codes_have_their_rows() {
        assert_eq!(ErrorCode::Program.as_str(), "program.error");
        assert_eq!(ErrorCode::AsyncInSync.as_str(), "run.async_atom");
        assert_eq!(ErrorCode::ALL.len(), TABLE.len());
    }
}
