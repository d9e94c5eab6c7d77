//! Errors of configurations.

use std::error::Error;
use std::fmt;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModelCode {
    /// A service is missing, or has a name with which the name of a model cannot begin.
    Service,
    /// The address of a service is not a usable URL.
    Url,
    /// A key is missing, or cannot be sent.
    Key,
    /// A role has no model, or a model of an unknown service.
    Role,
    /// A price is not a number of at least 0.
    Price,
    /// A time or a number of retries is out of range.
    Limit,
    /// The network cannot be used.
    Network,
}

impl ModelCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ModelCode::Service => "models.service",
            ModelCode::Url => "models.url",
            ModelCode::Key => "models.key",
            ModelCode::Role => "models.role",
            ModelCode::Price => "models.price",
            ModelCode::Limit => "models.limit",
            ModelCode::Network => "models.network",
        }
    }
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    code: ModelCode,
    message: String,
}

impl ModelError {
    pub(crate) fn new(code: ModelCode, message: impl Into<String>) -> ModelError {
        ModelError {
            code,
            message: message.into(),
        }
    }

    /// The kind.
    #[must_use]
    pub fn code(&self) -> ModelCode {
        self.code
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ModelError {}
