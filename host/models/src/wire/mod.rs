//! Wire formats of model services: requests and answers, a file for each format.

mod anthropic;
mod gemini;
mod json;
mod openai;
mod pieces;
mod responses;
mod sampling;
mod usage;

use crate::retry::retry_after;
use crate::sse::Event;
use a99_capabilities::ai::{
    AiCode, AiError, Message, Opaque, Part, Place, Role, StopReason, StreamEvent, TextRequest,
    ToolUse,
};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use serde::Deserialize;
use std::time::{Duration, SystemTime};

pub(crate) use json::map;
pub(crate) use json::parse;
use json::text_of;
pub(crate) use pieces::CallIds;
use sampling::Sampling;

/// The wire format of a service.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// OpenAI's chat completions, also spoken by LM Studio, Ollama, vLLM, llama.cpp and many
    /// more: `POST {url}/chat/completions`.
    #[default]
    OpenAi,
    /// Anthropic's messages: `POST {url}/messages`.
    Anthropic,
    /// Gemini's format: `POST {url}/models/MODEL:generateContent`, and `:streamGenerateContent`
    /// for events.
    Gemini,
    /// OpenAI's responses: `POST {url}/responses`.
    Responses,
}

impl Wire {
    /// All wire formats.
    pub const ALL: &'static [Wire] =
        &[Wire::OpenAi, Wire::Anthropic, Wire::Gemini, Wire::Responses];

    /// The name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Wire::OpenAi => "openai",
            Wire::Anthropic => "anthropic",
            Wire::Gemini => "gemini",
            Wire::Responses => "responses",
        }
    }

    pub(crate) fn protocol(self) -> &'static dyn Protocol {
        match self {
            Wire::OpenAi => &openai::OpenAi,
            Wire::Anthropic => &anthropic::Anthropic,
            Wire::Gemini => &gemini::Gemini,
            Wire::Responses => &responses::Responses,
        }
    }
}

/// A request to a model.
pub(crate) struct Ask<'a> {
    pub(crate) request: &'a TextRequest,
    pub(crate) model: &'a str,
    /// The service's name.
    pub(crate) service: &'a str,
    /// Whether the service gets the opaque parts of its answers back.
    pub(crate) send_opaque: bool,
    /// Whether to request prompt caching.
    pub(crate) prompt_cache: bool,
    /// Whether to stream the answer.
    pub(crate) stream: bool,
    /// Default maximum tokens of the answer.
    pub(crate) max_tokens: Option<u32>,
    /// The service's name for the maximum tokens, if it differs from the usual one.
    pub(crate) max_tokens_name: Option<&'a str>,
}

/// A part of the model's message, in order.
enum Woven<'a> {
    Text(&'a str),
    Opaque(&'a Value),
    Call(&'a ToolUse),
}

impl<'a> Ask<'a> {
    /// The opaque parts of a message that the service gets back.
    fn opaque(&self, message: &'a Message) -> impl Iterator<Item = &'a Opaque> {
        let (service, sends) = (self.service, self.send_opaque);
        message.content.iter().filter_map(move |part| match part {
            Part::Opaque { from, part } if sends => {
                let own = |from: &String| from.split('/').next() == Some(service);
                from.as_ref().is_none_or(own).then_some(part)
            }
            _ => None,
        })
    }

    /// The members that the service gets back at a place of a message.
    fn opaque_members(&self, message: &'a Message, place: &Place) -> Vec<(&'a Text, &'a Value)> {
        let parts = self.opaque(message).filter(|part| part.place == *place);
        let maps = parts.filter_map(|part| part.value.as_object());
        maps.flat_map(Map::iter).collect()
    }

    /// An assistant message with the opaque parts of its content at their places.
    fn woven(&self, message: &'a Message, texts: &'a str) -> Vec<Woven<'a>> {
        let mut opaque: Vec<(usize, usize, &Value)> = self
            .opaque(message)
            .filter_map(|part| match part.place {
                Place::Content { text, calls } => Some((calls, text, &part.value)),
                _ => None,
            })
            .collect();
        opaque.sort_by_key(|(calls, text, _)| (*calls, *text));
        let mut opaque = opaque.into_iter().peekable();
        let (mut woven, mut done) = (Vec::new(), 0);
        while let Some((_, at, value)) = opaque.next_if(|(calls, ..)| *calls == 0) {
            let at = texts.floor_char_boundary(at.min(texts.len()));
            if at > done {
                woven.push(Woven::Text(&texts[done..at]));
                done = at;
            }
            woven.push(Woven::Opaque(value));
        }
        if done < texts.len() {
            woven.push(Woven::Text(&texts[done..]));
        }
        let calls = message.content.iter().filter_map(|part| match part {
            Part::ToolUse(used) => Some(used),
            _ => None,
        });
        for (before, used) in calls.enumerate() {
            while let Some((.., value)) = opaque.next_if(|(calls, ..)| *calls <= before) {
                woven.push(Woven::Opaque(value));
            }
            woven.push(Woven::Call(used));
        }
        woven.extend(opaque.map(|(.., value)| Woven::Opaque(value)));
        woven
    }
}

/// Adds members to an object, merging objects.
fn merge(to: &mut Map, members: Vec<(&Text, &Value)>) {
    for (key, value) in members {
        let there = key.to_string_lossy();
        match (to.get_mut(&there), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => {
                merge(inner, more.iter().collect())
            }
            (Some(_), _) => {}
            (None, value) => {
                to.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The texts of a message, joined.
fn texts_of(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// One turn of a conversation: an assistant message, or all user messages up to the next one.
/// Tool results come first, because services expect them directly after the calls.
struct Turn<'a> {
    role: Role,
    results: Vec<&'a Part>,
    messages: Vec<&'a Message>,
}

fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        let role = message.role;
        let joins = |last: &Turn<'_>| last.role == Role::User && role == Role::User;
        if !turns.last().is_some_and(joins) {
            turns.push(Turn {
                role,
                results: Vec::new(),
                messages: Vec::new(),
            });
        }
        let Some(turn) = turns.last_mut() else { break };
        let is_result = |part: &&Part| matches!(part, Part::ToolResult { .. });
        turn.results
            .extend(message.content.iter().filter(is_result));
        turn.messages.push(message);
    }
    turns
}

/// The implementation of a wire format.
pub(crate) trait Protocol: Send + Sync {
    /// The path below the service's address.
    fn path(&self) -> &'static str;

    /// The default path of an address without one.
    fn version(&self) -> &'static str {
        "/v1"
    }

    /// The address of a request: the service's address, with `{model}` replaced, and the path.
    fn address(&self, base: &str, model: &str, stream: bool) -> String {
        let _ = stream;
        let base = base.replace("{model}", &path_segment(model));
        format!("{base}{}", self.path())
    }

    /// The header of the key.
    fn key_header(&self) -> &'static str;

    /// Further headers.
    fn headers(&self) -> &'static [(&'static str, &'static str)];

    /// The supported options of a request.
    fn sampling(&self) -> &'static Sampling;

    /// The smallest limit of an answer's tokens that services accept.
    fn least_answer(&self) -> u32 {
        1
    }

    /// The body of a request.
    fn body(&self, ask: &Ask<'_>) -> Map;

    /// A decoder for a stream of events.
    fn decoder(&self, ids: CallIds) -> Box<dyn Decoder>;

    /// Reads an answer that is one JSON value.
    fn whole(&self, answer: &Value, ids: CallIds) -> Result<Vec<Step>, AiError>;
}

/// Decodes the events of one answer.
pub(crate) trait Decoder: Send {
    /// The steps of an event, in order. Content may follow [`Step::Stop`]: some services send a
    /// stop reason with each chunk, and the last one counts.
    fn event(&mut self, event: &Event) -> Result<Vec<Step>, AiError>;

    /// The steps held back until the stream's end, and the stop reason again; empty without a
    /// stop reason.
    fn end(&mut self) -> Vec<Step> {
        Vec::new()
    }
}

/// A step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Text, thinking, a tool, usage.
    Event(StreamEvent),
    /// A part of a tool, which produces no event yet.
    Part,
    /// The answer is complete for this reason, unless content follows.
    Stop(StopReason),
    /// The answer has ended.
    End,
}

impl Step {
    /// Adds a piece of text, unless it is empty.
    fn text(out: &mut Vec<Step>, piece: String) {
        if !piece.is_empty() {
            out.push(Step::Event(StreamEvent::Text(piece)));
        }
    }

    /// Adds a part that goes back to the service.
    fn opaque(out: &mut Vec<Step>, part: Opaque) {
        out.push(Step::Event(StreamEvent::Opaque(part)));
    }

    /// Adds a piece of thinking, unless it is empty.
    fn thinking(out: &mut Vec<Step>, piece: String) {
        if !piece.is_empty() {
            out.push(Step::Event(StreamEvent::Thinking(piece)));
        }
    }
}

/// Escapes a model's name for one path segment.
fn path_segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    if name.bytes().all(|b| b == b'.') {
        segment.push('-');
    }
    for b in name.bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'@' => {
                segment.push(char::from(b));
            }
            _ => segment.push_str(&format!("%{b:02X}")),
        }
    }
    segment
}

/// Maps a service's stop reason.
fn stop_reason(word: &str) -> StopReason {
    match &*word.to_ascii_lowercase() {
        "stop" | "end_turn" | "end" | "eos" | "eos_token" | "stop_token" | "complete"
        | "completed" => StopReason::EndTurn,
        "stop_sequence" => StopReason::StopSequence,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "token_limit"
        | "model_context_window_exceeded" => StopReason::MaxTokens,
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        "refusal" => StopReason::Refusal,
        "content_filter" | "content_filtered" | "safety" | "recitation" | "blocklist"
        | "prohibited_content" | "spii" | "image_safety" | "sensitive" => StopReason::ContentFilter,
        _ => StopReason::Other(a99_core::diag::excerpt(word)),
    }
}

/// The error in a value that is otherwise an answer.
fn error_in(value: &Value) -> Option<&Value> {
    let error = value.get("error")?;
    let is_empty = match error {
        Value::Undefined | Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    (!is_empty).then_some(error)
}

/// The error for a malformed answer.
pub(crate) fn malformed(what: &str) -> AiError {
    let text = format!("what the model's service sends is no answer: {what}");
    AiError::new(AiCode::Malformed, text)
}

/// The error that a service sends instead of an answer, or within its stream, with the
/// service's message.
pub(crate) fn told(body: &Value, status: Option<u16>) -> AiError {
    // Gemini's streams are lists, and so are their errors.
    let body = body.as_array().and_then(<[Value]>::first).unwrap_or(body);
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
    AiError::new(code(status, &kinds), message).retry_after(retry_delay(error))
}

/// The wait that an error of Google's services asks for: they send no `Retry-After`, but a
/// detail `google.rpc.RetryInfo` with a time such as `45.8s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details").and_then(Value::as_array)?;
    let info = details.iter().find(|detail| {
        let kind = detail.get("@type").and_then(Value::as_str);
        kind.is_some_and(|kind| kind.ends_with("google.rpc.RetryInfo"))
    })?;
    let delay = info.get("retryDelay").and_then(Value::as_str)?;
    retry_after(delay.strip_suffix('s'), None, SystemTime::UNIX_EPOCH)
}

/// Maps an error's status and kinds, of which services send two texts.
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
        // A specific kind beats a general status.
        Some(AiCode::Refused) | None => kind.unwrap_or(match status {
            Some(_) => AiCode::Refused,
            None => AiCode::Unavailable,
        }),
        Some(code) => code,
    }
}

#[cfg(test)]
mod corpus;

/// Helpers for the tests of all wire formats.
#[cfg(test)]
mod testing {
    use super::{AiCode, Ask, Map, TextRequest, Value, Wire, parse};
    use crate::fuzz::answer;
    use a99_capabilities::ai::{ChatRound, TextResult};

    pub(super) fn value(json: &str) -> Value {
        parse(json).unwrap()
    }

    /// The request of `llmChat` with these messages.
    pub(super) fn round(messages: Value) -> TextRequest {
        let round = ChatRound {
            messages,
            prompt: Value::Undefined,
            system: Value::Undefined,
            tools: Value::Undefined,
            tool_choice: Value::Undefined,
            response_format: Value::Undefined,
            options: Map::new(),
            repair: Value::Undefined,
        };
        round.request().unwrap()
    }

    /// A request without any configuration.
    pub(super) fn plain<'a>(request: &'a TextRequest, model: &'a str, service: &'a str) -> Ask<'a> {
        Ask {
            request,
            model,
            service,
            send_opaque: true,
            prompt_cache: false,
            stream: false,
            max_tokens: None,
            max_tokens_name: None,
        }
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

    #[test]
    fn t6_the_time_to_wait_is_read_from_errors_of_google() {
        for (detail, millis) in [
            (
                r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36s"}"#,
                Some(36_000),
            ),
            (
                r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"45.5s"}"#,
                Some(45_500),
            ),
            (
                r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36"}"#,
                None,
            ),
            (
                r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"-1s"}"#,
                None,
            ),
            (r#"{"@type":"x","retryDelay":"36s"}"#, None),
            ("", None),
        ] {
            let body = format!(
                r#"{{"error":{{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{detail}]}}}}"#
            );
            let list = format!("[{body}]");
            for body in [body, list] {
                let error = told(&value(&body), Some(429));
                let expected = millis.map(Duration::from_millis);
                assert_eq!(error.retry_after, expected, "{body}");
            }
        }
    }
}
