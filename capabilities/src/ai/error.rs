//! Errors of language models.

use super::{MAX_ANSWER_BYTES, TextResult};
use crate::error::CapabilityError;
use a99_core::error::HostCode;
use a99_core::value::{Map, Value};
use std::fmt;
use std::time::Duration;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum AiCode {
    /// The request is invalid for a model.
    Invalid,
    /// The role has no model.
    UnknownRole,
    /// The service has no model with this name.
    UnknownModel,
    /// The service refuses the key, or requires one.
    Unauthorized,
    /// The network policy does not allow the service, or the address of an image.
    Denied,
    /// The service refused the request.
    Refused,
    /// The service's rate limit or quota is reached.
    RateLimited,
    /// The configured rate limits of the service leave no room in time.
    Throttled,
    /// The service is temporarily unavailable.
    Unavailable,
    /// The connection with the service failed.
    Unreachable,
    /// The answer did not begin in time.
    FirstTokenTimeout,
    /// The answer stopped arriving.
    IdleTimeout,
    /// The answer exceeded its time limit.
    TotalTimeout,
    /// The stream ended before the answer.
    CutOff,
    /// The response does not have the service's form.
    Malformed,
    /// The answer exceeds its limit of bytes.
    TooLarge,
    /// A budget of tokens or money is used up.
    Budget,
    /// The answer reached its limit of tokens.
    Length,
    /// The model refuses to answer.
    Refusal,
    /// A filter of the service stopped the answer.
    ContentFilter,
    /// The model paused in the middle of its turn.
    Paused,
    /// The answer ended early for another reason.
    Incomplete,
    /// The answer does not have the requested form.
    Form,
}

impl AiCode {
    /// All codes.
    pub const ALL: &'static [AiCode] = &[
        AiCode::Invalid,
        AiCode::UnknownRole,
        AiCode::UnknownModel,
        AiCode::Unauthorized,
        AiCode::Denied,
        AiCode::Refused,
        AiCode::RateLimited,
        AiCode::Throttled,
        AiCode::Unavailable,
        AiCode::Unreachable,
        AiCode::FirstTokenTimeout,
        AiCode::IdleTimeout,
        AiCode::TotalTimeout,
        AiCode::CutOff,
        AiCode::Malformed,
        AiCode::TooLarge,
        AiCode::Budget,
        AiCode::Length,
        AiCode::Refusal,
        AiCode::ContentFilter,
        AiCode::Paused,
        AiCode::Incomplete,
        AiCode::Form,
    ];

    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AiCode::Invalid => "ai.invalid",
            AiCode::UnknownRole => "ai.unknown_role",
            AiCode::UnknownModel => "ai.unknown_model",
            AiCode::Unauthorized => "ai.unauthorized",
            AiCode::Denied => "ai.denied",
            AiCode::Refused => "ai.refused",
            AiCode::RateLimited => "ai.rate_limited",
            AiCode::Throttled => "ai.throttled",
            AiCode::Unavailable => "ai.unavailable",
            AiCode::Unreachable => "ai.unreachable",
            AiCode::FirstTokenTimeout => "ai.first_token_timeout",
            AiCode::IdleTimeout => "ai.idle_timeout",
            AiCode::TotalTimeout => "ai.total_timeout",
            AiCode::CutOff => "ai.cut_off",
            AiCode::Malformed => "ai.malformed",
            AiCode::TooLarge => "ai.too_large",
            AiCode::Budget => "ai.budget",
            AiCode::Length => "ai.length",
            AiCode::Refusal => "ai.refusal",
            AiCode::ContentFilter => "ai.content_filter",
            AiCode::Paused => "ai.paused",
            AiCode::Incomplete => "ai.incomplete",
            AiCode::Form => "ai.form",
        }
    }

    /// The code of an HTTP status from 400 on.
    #[must_use]
    pub const fn of_status(status: u16) -> AiCode {
        match status {
            401 | 403 => AiCode::Unauthorized,
            404 => AiCode::UnknownModel,
            429 => AiCode::RateLimited,
            408 | 500.. => AiCode::Unavailable,
            _ => AiCode::Refused,
        }
    }

    /// True if no model worked on the request: it was not sent, or the service refused it.
    #[must_use]
    pub fn is_unprocessed(self) -> bool {
        matches!(
            self,
            AiCode::Invalid
                | AiCode::UnknownRole
                | AiCode::UnknownModel
                | AiCode::Unauthorized
                | AiCode::Denied
                | AiCode::Refused
                | AiCode::RateLimited
                | AiCode::Throttled
                | AiCode::Unreachable
                | AiCode::Budget
        )
    }

    /// True if the same request may succeed later, or with another model.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            AiCode::RateLimited
                | AiCode::Throttled
                | AiCode::Unavailable
                | AiCode::Unreachable
                | AiCode::FirstTokenTimeout
        )
    }
}

/// Error of a request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct AiError {
    /// Code of the error.
    pub code: AiCode,
    /// Message for programs and people.
    pub message: String,
    /// Delay that the service requests before the next attempt.
    pub retry_after: Option<Duration>,
    /// Partial answer received before the error.
    pub partial: Option<Box<TextResult>>,
}

impl AiError {
    /// An error with this text.
    pub fn new(code: AiCode, message: impl Into<String>) -> AiError {
        AiError {
            code,
            message: message.into(),
            retry_after: None,
            partial: None,
        }
    }

    /// The error of an answer that exceeds its limit of bytes.
    #[must_use]
    pub fn too_large() -> AiError {
        let text = format!("the model's answer has more than {MAX_ANSWER_BYTES} bytes");
        AiError::new(AiCode::TooLarge, text)
    }

    /// Adds the partial answer.
    #[must_use]
    pub fn with_partial(self, partial: TextResult) -> AiError {
        AiError {
            partial: Some(Box::new(partial)),
            ..self
        }
    }

    /// Adds the delay that the service requests.
    #[must_use]
    pub fn retry_after(self, after: Option<Duration>) -> AiError {
        AiError {
            retry_after: after,
            ..self
        }
    }
}

impl fmt::Display for AiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AiError {}

impl From<AiError> for CapabilityError {
    fn from(error: AiError) -> CapabilityError {
        let text = format!("Model Error: {}", error.message);
        let mut failed = CapabilityError::new(text);
        failed.code = HostCode::of_capability(error.code.name());
        let partial = error.partial.filter(|partial| !partial.text.is_empty());
        match partial {
            None => failed,
            Some(partial) => failed.with_details(details(&partial)),
        }
    }
}

/// Details of a partial answer for hosts; programs do not see them.
fn details(partial: &TextResult) -> Value {
    /// Most bytes of the text that are kept.
    const MAX_BYTES: usize = 256 << 10;
    let text = &partial.text;
    let end = text.floor_char_boundary(MAX_BYTES.min(text.len()));
    let mut details = Map::new();
    details.insert("partial", &text[..end]);
    if let Some(reason) = &partial.stop_reason {
        details.insert("stopReason", reason.name());
    }
    Value::Object(details)
}

#[cfg(test)]
mod tests {
    use super::{AiCode, HostCode};
    use std::collections::HashSet;

    #[test]
    fn codes_have_names_of_their_own() {
        let names: HashSet<&str> = AiCode::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), AiCode::ALL.len());
        assert!(names.iter().all(|name| name.starts_with("ai.")));
        assert!(
            names
                .iter()
                .all(|name| HostCode::of_capability(name).is_some())
        );
    }
}
