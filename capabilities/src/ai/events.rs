//! Events of a model's answer, and the answer they make up.

use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_run::account::Money;

/// One event of a stream. [`Done`](StreamEvent::Done), [`Cancelled`](StreamEvent::Cancelled)
/// and [`Error`](StreamEvent::Error) end the stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// A piece of the text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// A tool call with its whole input.
    ToolUse(ToolUse),
    /// A part that the next request returns to the service unchanged.
    Opaque(super::Opaque),
    /// Tokens so far; each event replaces the one before.
    Usage(Usage),
    /// The answer is complete.
    Done(StopReason),
    /// The stream was cancelled.
    Cancelled,
    /// The answer failed.
    Error(super::AiError),
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// Id, which the tool's result names.
    pub id: String,
    /// Name of the tool, which may not have been offered.
    pub name: String,
    /// The input: an object, or the model's text if that is not JSON.
    pub input: Value,
}

impl ToolUse {
    /// The input in OpenAI's wire format: JSON, or the model's text.
    #[must_use]
    pub fn arguments(&self) -> Text {
        match self.input.as_text() {
            Some(text) => text.clone(),
            None => self.input.to_json_string().into(),
        }
    }

    /// The call in the form of OpenAI's chat completions.
    #[must_use]
    pub fn to_call(&self) -> Value {
        let mut function = Map::new();
        function.insert("name", self.name.as_str());
        function.insert("arguments", self.arguments());
        let mut call = Map::new();
        call.insert("id", self.id.as_str());
        call.insert("type", "function");
        call.insert("function", Value::Object(function));
        Value::Object(call)
    }
}

/// Tokens of a request and its answer.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens, including those of a cache.
    pub prompt_tokens: u64,
    /// Answer tokens, including reasoning.
    pub completion_tokens: u64,
    /// Prompt tokens read from a cache.
    pub cached_tokens: u64,
    /// Prompt tokens written to a cache, for which services charge more.
    pub written_tokens: u64,
    /// Reasoning tokens of the answer.
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Prompt and answer together.
    #[must_use]
    pub fn total(self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self
                .completion_tokens
                .saturating_add(other.completion_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            written_tokens: self.written_tokens.saturating_add(other.written_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
        }
    }
}

/// Cost of tokens.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Money of the host.
    pub money: Money,
    /// Fuel of the calling run.
    pub fuel: Fuel,
}

/// Reason why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished.
    EndTurn,
    /// The answer reached its token limit.
    MaxTokens,
    /// The model wrote a stop sequence.
    StopSequence,
    /// The model waits for results of tools.
    ToolUse,
    /// The model refused.
    Refusal,
    /// A filter of the service stopped the answer.
    ContentFilter,
    /// Another reason, in the service's word.
    Other(String),
}

impl StopReason {
    /// The reason as text.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::StopSequence => "stop_sequence",
            StopReason::ToolUse => "tool_use",
            StopReason::Refusal => "refusal",
            StopReason::ContentFilter => "content_filter",
            StopReason::Other(name) => name,
        }
    }

    /// The reason of this name.
    #[must_use]
    pub fn named(name: &str) -> StopReason {
        match name {
            "end_turn" => StopReason::EndTurn,
            "max_tokens" => StopReason::MaxTokens,
            "stop_sequence" => StopReason::StopSequence,
            "tool_use" => StopReason::ToolUse,
            "refusal" => StopReason::Refusal,
            "content_filter" => StopReason::ContentFilter,
            other => StopReason::Other(other.to_owned()),
        }
    }
}

/// An answer, complete or partial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextResult {
    /// The text.
    pub text: String,
    /// Reasoning that the model shows.
    pub thinking: String,
    /// Tool calls.
    pub tool_uses: Vec<ToolUse>,
    /// Parts that the next request returns to the service unchanged.
    pub opaque: Vec<super::Opaque>,
    /// Tokens, as reported by the service.
    pub usage: Usage,
    /// Reason of the end; `None` if the answer has not ended.
    pub stop_reason: Option<StopReason>,
    /// True if the answer was cancelled.
    pub cancelled: bool,
    /// The model that answered, if the provider knows it.
    pub model: Option<String>,
}

impl TextResult {
    /// Applies an event.
    pub(super) fn take(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Text(piece) => self.text.push_str(piece),
            StreamEvent::Thinking(piece) => self.thinking.push_str(piece),
            StreamEvent::ToolUse(used) => self.tool_uses.push(used.clone()),
            StreamEvent::Opaque(part) => self.opaque.push(part.clone()),
            StreamEvent::Usage(usage) => self.usage = *usage,
            StreamEvent::Done(reason) => self.stop_reason = Some(reason.clone()),
            StreamEvent::Cancelled => self.cancelled = true,
            StreamEvent::Error(_) => {}
        }
    }

    /// The answer as a message in the form of OpenAI's chat completions, which
    /// `llmPredictBattery` gives to programs. Opaque parts are under `opaque`, with the model
    /// that receives them back.
    #[must_use]
    pub fn to_message(&self) -> Value {
        let mut message = Map::new();
        message.insert("role", "assistant");
        let silent = self.text.is_empty() && !self.tool_uses.is_empty();
        match silent {
            true => message.insert("content", Value::Null),
            false => message.insert("content", self.text.as_str()),
        };
        if !self.tool_uses.is_empty() {
            let calls = self.tool_uses.iter().map(ToolUse::to_call);
            message.insert("tool_calls", calls.collect::<Vec<Value>>());
        }
        if !self.opaque.is_empty() {
            let mut opaque = Map::new();
            opaque.insert("from", self.model.as_deref().unwrap_or_default());
            let parts = self.opaque.iter().map(super::Opaque::to_value);
            opaque.insert("parts", parts.collect::<Vec<Value>>());
            message.insert("opaque", opaque);
        }
        Value::Object(message)
    }
}
