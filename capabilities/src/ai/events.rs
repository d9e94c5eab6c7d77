//! Events of a model's answer, and the answer that they make.

use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_run::account::Money;

/// One event of a stream. After [`Done`](StreamEvent::Done),
/// [`Cancelled`](StreamEvent::Cancelled) or [`Error`](StreamEvent::Error) comes no other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// A piece of the text.
    Text(String),
    /// A piece of what the model thinks before it answers.
    Thinking(String),
    /// A tool that the model wants to be called, with its whole input.
    ToolUse(ToolUse),
    /// A part that goes back to the service unchanged with the next request.
    Opaque(super::Opaque),
    /// Tokens so far; each replaces the one before.
    Usage(Usage),
    /// The answer is whole.
    Done(StopReason),
    /// The stream was cancelled.
    Cancelled,
    /// No whole answer came.
    Error(super::AiError),
}

/// A tool that a model wants to be called.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// Which use this is: the result of the tool names it.
    pub id: String,
    /// The tool, which need not be one that was offered.
    pub name: String,
    /// The input: an object, or whatever the model wrote, as a text if it is no JSON.
    pub input: Value,
}

impl ToolUse {
    /// The input as OpenAI's wire has it: JSON, or what the model wrote.
    #[must_use]
    pub fn arguments(&self) -> Text {
        match self.input.as_text() {
            Some(text) => text.clone(),
            None => self.input.to_json_string().into(),
        }
    }

    /// The use as a tool call of OpenAI's chat completions.
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

/// Tokens of an answer.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request, those of a cache included.
    pub prompt_tokens: u64,
    /// Tokens of the answer, thinking included.
    pub completion_tokens: u64,
    /// Tokens of the request that came from a cache.
    pub cached_tokens: u64,
    /// Tokens of the request that were written to a cache, for which services ask more.
    pub written_tokens: u64,
    /// Tokens of the answer that were thinking.
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Prompt and answer together.
    #[must_use]
    pub fn total(self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Both together.
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

/// What an answer costs beside its tokens.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Money of the host.
    pub money: Money,
    /// Fuel of the run that asks.
    pub fuel: Fuel,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model had said all.
    EndTurn,
    /// It had as many tokens as it might.
    MaxTokens,
    /// It wrote one of the texts that stop it.
    StopSequence,
    /// It waits for tools.
    ToolUse,
    /// It will not answer.
    Refusal,
    /// A filter of the service stopped it.
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

/// An answer: whole, or as far as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextResult {
    /// The text.
    pub text: String,
    /// What the model thought, as far as it shows it.
    pub thinking: String,
    /// The tools that it wants to be called.
    pub tool_uses: Vec<ToolUse>,
    /// Parts that go back to the service unchanged with the next request.
    pub opaque: Vec<super::Opaque>,
    /// Tokens, as far as the service told.
    pub usage: Usage,
    /// Why it ended; none if it did not.
    pub stop_reason: Option<StopReason>,
    /// Whether it was cancelled before its end.
    pub cancelled: bool,
    /// The model that answered, if the provider knows.
    pub model: Option<String>,
}

impl TextResult {
    /// Takes one more event.
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

    /// The answer as a message in the form of OpenAI's chat completions, which is what
    /// `llmPredictBattery` gives programs. Opaque parts stand under `opaque`, with the model
    /// that they go back to.
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
