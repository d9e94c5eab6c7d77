//! Failures of operations.

pub(crate) use crate::codes;
use agent99::{Diagnostics, Map, Value};

/// An operation that was refused. Failures of programs are events, not failures of operations.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Stable code.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The findings that rejected a program.
    pub diagnostics: Option<Diagnostics>,
}

impl Failure {
    /// A failure with this code and message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Failure {
        Failure {
            code: code.into(),
            message: message.into(),
            help: None,
            diagnostics: None,
        }
    }

    /// Adds advice.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Failure {
        Failure {
            help: Some(help.into()),
            ..self
        }
    }

    /// The rejection of a program, with the code of its first error.
    pub(crate) fn refused(found: Diagnostics) -> Failure {
        let errors = found.count(agent99::Severity::Error);
        let first = found
            .iter()
            .find(|one| one.severity == agent99::Severity::Error);
        let message = match first {
            Some(first) if errors > 1 => format!("{} (and {} more)", first.message, errors - 1),
            Some(first) => first.message.clone(),
            None => "the program was rejected".to_owned(),
        };
        let code = first.map_or(codes::FAILED, |first| first.code);
        let help = first.and_then(|first| first.help.clone());
        Failure {
            help,
            diagnostics: Some(found),
            ..Failure::new(code, message)
        }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::new(codes::BAD_ARGUMENT, message)
    }

    /// The object that a binding throws: `code`, `message`, and `help` and `diagnostics` if any.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("code", self.code.as_str());
        map.insert("message", self.message.as_str());
        if let Some(help) = &self.help {
            map.insert("help", help.as_str());
        }
        if let Some(found) = &self.diagnostics {
            map.insert("diagnostics", found.to_json());
        }
        Value::Object(map)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}
