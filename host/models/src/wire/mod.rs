//! Wires: how a service of models is asked and how it answers, a file for each.

mod anthropic;
mod json;
mod openai;
mod pieces;

use crate::sse::Event;
use a99_capabilities::ai::{AiCode, AiError, StopReason, StreamEvent, TextRequest};
use a99_core::value::{Map, Value};
use serde::Deserialize;

pub(crate) use json::map;
pub(crate) use json::parse;
use json::text_of;

/// What a service speaks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Chat completions, as OpenAI has them, and LM Studio, Ollama, vLLM, llama.cpp and many
    /// more: `POST {url}/chat/completions`.
    #[default]
    OpenAi,
    /// Anthropic's messages: `POST {url}/messages`.
    Anthropic,
}

impl Wire {
    /// All of them.
    pub const ALL: &'static [Wire] = &[Wire::OpenAi, Wire::Anthropic];

    /// The name, as configurations have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Wire::OpenAi => "openai",
            Wire::Anthropic => "anthropic",
        }
    }

    pub(crate) fn protocol(self) -> &'static dyn Protocol {
        match self {
            Wire::OpenAi => &openai::OpenAi,
            Wire::Anthropic => &anthropic::Anthropic,
        }
    }
}

/// What is asked of a model.
pub(crate) struct Ask<'a> {
    pub(crate) request: &'a TextRequest,
    pub(crate) model: &'a str,
    /// Whether events shall come.
    pub(crate) stream: bool,
    /// Tokens of the answer at most, if the request does not say.
    pub(crate) max_tokens: Option<u32>,
    /// The name under which the service takes that, if it is not the usual one.
    pub(crate) max_tokens_name: Option<&'a str>,
}

/// A wire's form.
pub(crate) trait Protocol: Send + Sync {
    /// The path below the service's address.
    fn path(&self) -> &'static str;

    /// The header of the key.
    fn key_header(&self) -> &'static str;

    /// Headers beside it.
    fn headers(&self) -> &'static [(&'static str, &'static str)];

    /// The body of a request.
    fn body(&self, ask: &Ask<'_>) -> Map;

    /// Reads a stream of events.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Reads an answer that came as one JSON value.
    fn whole(&self, answer: &Value) -> Result<Vec<Step>, AiError>;
}

/// Reads the events of one answer.
pub(crate) trait Decoder: Send {
    /// What an event says, in order. Steps after [`Step::Stop`] are usage and the end only.
    fn event(&mut self, event: &Event) -> Result<Vec<Step>, AiError>;
}

/// A step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Text, thinking, a tool, usage.
    Event(StreamEvent),
    /// A part of a tool, which is no event yet.
    Part,
    /// The answer is whole for this reason.
    Stop(StopReason),
    /// Nothing comes any more.
    End,
}

impl Step {
    /// A piece of text; nothing if it is empty.
    fn text(out: &mut Vec<Step>, piece: String) {
        if !piece.is_empty() {
            out.push(Step::Event(StreamEvent::Text(piece)));
        }
    }

    /// A piece of thinking; nothing if it is empty.
    fn thinking(out: &mut Vec<Step>, piece: String) {
        if !piece.is_empty() {
            out.push(Step::Event(StreamEvent::Thinking(piece)));
        }
    }
}

/// What came has not the form that it should.
pub(crate) fn malformed(what: &str) -> AiError {
    let text = format!("what the model's service sends is no answer: {what}");
    AiError::new(AiCode::Malformed, text)
}

/// The error that a service tells in place of an answer, or within its stream, with the
/// service's own message.
pub(crate) fn told(body: &Value, status: Option<u16>) -> AiError {
    let error = body.get("error").filter(|error| !error.is_nullish());
    let error = error.unwrap_or(body);
    let member = |key: &str| error.get(key).and_then(text_of);
    let message = text_of(error)
        .or_else(|| member("message"))
        .or_else(|| member("detail"))
        .unwrap_or_default();
    let kinds = [member("type"), member("code")];
    let number = error.get("code").and_then(Value::as_f64);
    let number = number
        .filter(|n| (400.0..600.0).contains(n))
        .map(|n| n as u16);
    let status = status.or(number);
    AiError::new(code(status, &kinds), message)
}

/// What the kinds of an error, of which services have two texts, and its status mean.
fn code(status: Option<u16>, kinds: &[Option<String>]) -> AiCode {
    let of_kind = |kind: &str| match kind {
        "model_not_found" | "not_found_error" => Some(AiCode::UnknownModel),
        "authentication_error" | "permission_error" | "invalid_api_key" => {
            Some(AiCode::Unauthorized)
        }
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => {
            Some(AiCode::RateLimited)
        }
        "overloaded_error" | "api_error" | "timeout_error" | "server_error" => {
            Some(AiCode::Unavailable)
        }
        "invalid_request_error" | "request_too_large" | "context_length_exceeded" => {
            Some(AiCode::Refused)
        }
        _ => None,
    };
    let kind = kinds.iter().flatten().find_map(|kind| of_kind(kind));
    match status.map(AiCode::of_status) {
        // A kind says more than a status that says little.
        Some(AiCode::Refused) | None => kind.unwrap_or(match status {
            Some(_) => AiCode::Refused,
            None => AiCode::Unavailable,
        }),
        Some(code) => code,
    }
}

/// What the tests of all wires need.
#[cfg(test)]
mod testing {
    use super::{AiCode, Value, Wire, parse};
    use crate::fuzz::answer;
    use a99_capabilities::ai::TextResult;

    pub(super) fn value(json: &str) -> Value {
        parse(json).unwrap()
    }

    /// The answer of these events.
    pub(super) fn answer_of(wire: Wire, events: &[&str]) -> Result<TextResult, AiCode> {
        let stream = events.iter().map(|data| format!("data: {data}\n\n"));
        let stream: String = stream.collect();
        answer(wire, &[stream.as_bytes()]).map_err(|error| error.code)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::value;
    use super::*;

    #[test]
    fn errors_have_the_services_message_and_a_code() {
        for (status, body, code, message) in [
            (
                Some(429),
                r#"{"error": {"message": "slow down"}}"#,
                AiCode::RateLimited,
                "slow down",
            ),
            (Some(400), r#"{"error": "bad"}"#, AiCode::Refused, "bad"),
            (
                Some(400),
                r#"{"error": {"message": "no", "code": "model_not_found", "type": "x"}}"#,
                AiCode::UnknownModel,
                "no",
            ),
            (
                Some(500),
                r#"{"detail": "broken"}"#,
                AiCode::Unavailable,
                "broken",
            ),
            (
                Some(401),
                r#"{"message": "who?"}"#,
                AiCode::Unauthorized,
                "who?",
            ),
            (Some(404), "[]", AiCode::UnknownModel, ""),
            (
                None,
                r#"{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}"#,
                AiCode::Unavailable,
                "busy",
            ),
            (
                None,
                r#"{"error": {"code": 429, "message": "m"}}"#,
                AiCode::RateLimited,
                "m",
            ),
            (
                None,
                r#"{"error": {"code": 1e99, "message": 7}}"#,
                AiCode::Unavailable,
                "",
            ),
            (
                None,
                r#"{"error": {"type": "invalid_request_error", "message": "m"}}"#,
                AiCode::Refused,
                "m",
            ),
        ] {
            let error = told(&value(body), status);
            assert_eq!((error.code, &*error.message), (code, message), "{body}");
        }
    }
}
