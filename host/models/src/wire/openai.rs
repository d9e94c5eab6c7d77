//! Chat completions, as OpenAI has them, and as others have them.

use super::json::{count, items, map, object, text};
use super::pieces::{Open, Pieces};
use super::{Ask, Decoder, Protocol, Step, malformed, told};
use crate::sse::Event;
use a99_capabilities::ai::{
    AiError, Format, Message, Part, Role, StopReason, StreamEvent, ToolChoice, Usage,
};
use a99_core::value::{Map, Value};

/// The final mark of a stream.
const DONE: &str = "[DONE]";

/// The largest seed that is a number in all readers of JSON.
const MAX_SEED: u64 = (1 << 53) - 1;

pub(super) struct OpenAi;

impl Protocol for OpenAi {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn key_header(&self) -> &'static str {
        "authorization"
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn body(&self, ask: &Ask<'_>) -> Map {
        let request = ask.request;
        let mut body = Map::new();
        body.insert("model", ask.model);
        let mut messages = Vec::new();
        if let Some(system) = &request.system {
            messages.push(said("system", system.as_str()));
        }
        for message in &request.messages {
            push_message(&mut messages, message);
        }
        body.insert("messages", messages);
        if let Some(most) = request.max_tokens.or(ask.max_tokens) {
            let name = ask.max_tokens_name.unwrap_or("max_tokens");
            body.insert(name, f64::from(most));
        }
        if let Some(temperature) = request.temperature {
            body.insert("temperature", temperature);
        }
        if let Some(seed) = request.seed {
            body.insert("seed", (seed & MAX_SEED) as f64);
        }
        if !request.stop_sequences.is_empty() {
            let stop = request
                .stop_sequences
                .iter()
                .map(|stop| stop.as_str().into());
            body.insert("stop", stop.collect::<Vec<Value>>());
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                let mut function = Map::new();
                function.insert("name", tool.name.as_str());
                if let Some(description) = &tool.description {
                    function.insert("description", description.as_str());
                }
                function.insert("parameters", tool.input_schema.clone());
                map([("type", "function".into()), ("function", function.into())])
            });
            body.insert("tools", tools.collect::<Vec<Value>>());
            let choice = match &request.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None => Some("none".into()),
                ToolChoice::Required => Some("required".into()),
                ToolChoice::Tool(name) => {
                    let function = map([("name", name.as_str().into())]);
                    Some(map([("type", "function".into()), ("function", function)]))
                }
            };
            if let Some(choice) = choice {
                body.insert("tool_choice", choice);
            }
        }
        match &request.format {
            Format::Text => {}
            Format::Json => {
                body.insert("response_format", map([("type", "json_object".into())]));
            }
            Format::Schema { name, schema } => {
                let mut inner = Map::new();
                inner.insert("name", name.as_str());
                inner.insert("schema", schema.clone());
                if is_strict(schema) {
                    inner.insert("strict", true);
                }
                let kind = ("type", "json_schema".into());
                body.insert(
                    "response_format",
                    map([kind, ("json_schema", inner.into())]),
                );
            }
        }
        if ask.stream {
            body.insert("stream", true);
            body.insert("stream_options", map([("include_usage", true.into())]));
        }
        body
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Chunks::default())
    }

    fn whole(&self, answer: &Value) -> Result<Vec<Step>, AiError> {
        if answer.get("choices").is_none() {
            return Err(match answer.get("error") {
                Some(_) => told(answer, None),
                None => malformed("it has no `choices`"),
            });
        }
        let mut chunks = Chunks::default();
        let mut out = chunks.chunk(answer)?;
        out.push(Step::End);
        Ok(out)
    }
}

fn said(role: &str, content: impl Into<Value>) -> Value {
    map([("role", role.into()), ("content", content.into())])
}

/// A message as one or several of the wire's: results of tools are messages of their own.
fn push_message(out: &mut Vec<Value>, message: &Message) {
    let mut content = Vec::new();
    let mut texts = String::new();
    let mut has_images = false;
    let mut calls = Vec::new();
    for part in &message.content {
        match part {
            Part::Text(text) => {
                texts.push_str(text);
                content.push(map([
                    ("type", "text".into()),
                    ("text", text.as_str().into()),
                ]));
            }
            Part::Image(image) => {
                has_images = true;
                let url = map([("url", image.to_url().into())]);
                content.push(map([("type", "image_url".into()), ("image_url", url)]));
            }
            Part::ToolUse(used) => calls.push(used.to_call()),
            Part::ToolResult {
                id,
                content,
                is_error,
            } => {
                // The wire knows no errors of tools: the text says it.
                let content = match is_error {
                    true => format!("Error: {content}"),
                    false => content.clone(),
                };
                let mut result = Map::new();
                result.insert("role", "tool");
                result.insert("tool_call_id", id.as_str());
                result.insert("content", content);
                out.push(result.into());
            }
            _ => {}
        }
    }
    match message.role {
        Role::User if has_images => out.push(said("user", content)),
        Role::User if !content.is_empty() => out.push(said("user", texts)),
        Role::User => {}
        Role::Assistant => {
            let mut said = Map::new();
            said.insert("role", "assistant");
            match texts.is_empty() && !calls.is_empty() {
                true => said.insert("content", Value::Null),
                false => said.insert("content", texts),
            };
            if !calls.is_empty() {
                said.insert("tool_calls", calls);
            }
            out.push(said.into());
        }
    }
}

/// Whether a schema is one that services hold answers to exactly: each object in it says
/// all of its members and has no others.
fn is_strict(schema: &Value) -> bool {
    let mut pending = vec![schema];
    while let Some(next) = pending.pop() {
        match next {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                let properties = members.get("properties").and_then(Value::as_object);
                let is_object = members.get("type").and_then(Value::as_str) == Some("object");
                if is_object || properties.is_some() {
                    let closed = members.get("additionalProperties") == Some(&Value::Bool(false));
                    let required = members.get("required").and_then(Value::as_array);
                    let required = required.unwrap_or_default();
                    let named = |key: &a99_core::text::Text| {
                        required.iter().any(|name| name.as_text() == Some(key))
                    };
                    if !closed || !properties.is_none_or(|map| map.keys().all(named)) {
                        return false;
                    }
                }
                pending.extend(members.values());
            }
            _ => {}
        }
    }
    true
}

/// Reads chunks of a completion.
#[derive(Debug, Default)]
struct Chunks {
    tools: Pieces,
    /// The place of the last tool, for those who number all of them 0.
    at: Option<u64>,
    /// Whether several tools had one place.
    renumbered: bool,
    refused: bool,
    stopped: bool,
}

impl Decoder for Chunks {
    fn event(&mut self, event: &Event) -> Result<Vec<Step>, AiError> {
        if event.data.trim() == DONE {
            return Ok(vec![Step::End]);
        }
        let chunk = object(&event.data)?;
        if chunk.get("error").is_some_and(|error| !error.is_nullish()) || event.event == "error" {
            return Err(told(&chunk, None));
        }
        self.chunk(&chunk)
    }
}

impl Chunks {
    /// A chunk, or a whole completion, whose choices have a `message` in place of a `delta`.
    fn chunk(&mut self, chunk: &Value) -> Result<Vec<Step>, AiError> {
        let mut out = Vec::new();
        let usage = chunk.get("usage").filter(|usage| !usage.is_nullish());
        if chunk.get("choices").is_none() && usage.is_none() {
            return Err(malformed("an event has no `choices`"));
        }
        let choices = items(chunk, "choices")?;
        let first = choices
            .iter()
            .find(|choice| count(choice, "index").unwrap_or(0) == 0);
        if let Some(choice) = first.filter(|_| !self.stopped) {
            self.choice(choice, &mut out)?;
        }
        if let Some(usage) = usage.and_then(usage_of) {
            out.push(Step::Event(StreamEvent::Usage(usage)));
        }
        Ok(out)
    }

    fn choice(&mut self, choice: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        let whole = choice
            .get("message")
            .filter(|message| !message.is_nullish());
        let delta = whole.or_else(|| choice.get("delta"));
        if let Some(delta) = delta.filter(|delta| !delta.is_nullish()) {
            if delta.as_object().is_none() {
                return Err(malformed("a `delta` is no object"));
            }
            let thinking = match text(delta, "reasoning_content")? {
                none if none.is_empty() => text(delta, "reasoning")?,
                thinking => thinking,
            };
            Step::thinking(out, thinking);
            content(delta, out)?;
            let refusal = text(delta, "refusal")?;
            self.refused |= !refusal.is_empty();
            Step::text(out, refusal);
            for (place, call) in items(delta, "tool_calls")?.iter().enumerate() {
                match whole {
                    Some(_) => self.add(place as u64, call)?,
                    None => self.call(call)?,
                }
                out.push(Step::Part);
            }
        }
        let reason = text(choice, "finish_reason")?;
        if !reason.is_empty() {
            self.tools.close_all(out);
            self.stopped = true;
            out.push(Step::Stop(self.stop_reason(&reason, choice)));
        }
        Ok(())
    }

    /// A piece of a tool.
    fn call(&mut self, call: &Value) -> Result<(), AiError> {
        let named = call.get("function").map(|function| text(function, "name"));
        let named = !named.transpose()?.unwrap_or_default().is_empty();
        let id = text(call, "id")?;
        let mut at = count(call, "index").or(self.at).unwrap_or(0);
        // Some services number all tools 0, or none: another id with a name is another tool,
        // and what follows belongs to it.
        let another = |open: &Open| !id.is_empty() && !open.id.is_empty() && open.id != id;
        if named && self.tools.get(at).is_some_and(another) {
            at = self.tools.last().map_or(0, |last| last.saturating_add(1));
            self.renumbered = true;
        } else if let Some(last) = self.at.filter(|_| self.renumbered && !named) {
            at = last;
        }
        self.at = Some(at);
        self.add(at, call)
    }

    fn add(&mut self, at: u64, call: &Value) -> Result<(), AiError> {
        let function = call.get("function").unwrap_or(&Value::Undefined);
        let arguments = function.get("arguments").unwrap_or(&Value::Undefined);
        let (written, given) = match arguments {
            Value::Object(_) => (String::new(), Some(arguments.clone())),
            _ => (text(function, "arguments")?, None),
        };
        let piece = Open {
            id: text(call, "id")?,
            name: text(function, "name")?,
            written,
            given,
        };
        self.tools.add(at, piece)
    }

    fn stop_reason(&self, reason: &str, choice: &Value) -> StopReason {
        // vLLM and SGLang say which text it was.
        let stopped_by = ["stop_reason", "matched_stop"];
        let by_text = stopped_by
            .iter()
            .any(|key| choice.get(key).and_then(Value::as_text).is_some());
        match reason {
            // Some services say `stop` when the model waits for tools.
            "stop" if self.tools.any() => StopReason::ToolUse,
            "stop" if self.refused => StopReason::Refusal,
            "stop" if by_text => StopReason::StopSequence,
            "stop" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            "content_filter" => StopReason::Refusal,
            other => StopReason::Other(a99_core::diag::excerpt(other)),
        }
    }
}

/// The content of a delta: a text, or parts.
fn content(delta: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
    let Some(parts) = delta.get("content").and_then(Value::as_array) else {
        Step::text(out, text(delta, "content")?);
        return Ok(());
    };
    for part in parts {
        Step::text(out, text(part, "text")?);
    }
    Ok(())
}

/// Usage; nothing if no number of it is one.
fn usage_of(usage: &Value) -> Option<Usage> {
    let inner = |key: &str, of: &str| usage.get(key).and_then(|details| count(details, of));
    let (prompt, completion) = (
        count(usage, "prompt_tokens"),
        count(usage, "completion_tokens"),
    );
    prompt.or(completion)?;
    Some(Usage {
        prompt_tokens: prompt.unwrap_or(0),
        completion_tokens: completion.unwrap_or(0),
        cached_tokens: inner("prompt_tokens_details", "cached_tokens").unwrap_or(0),
        reasoning_tokens: inner("completion_tokens_details", "reasoning_tokens").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests;
