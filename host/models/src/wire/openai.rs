//! Chat completions of OpenAI, and of compatible services.

mod opaque;

use super::json::{count, index, items, map, objects, text, text_of};
use super::pieces::{CallIds, Piece, Pieces};
use super::sampling::Sampling;
use super::usage::Counters;
use super::{
    Ask, Decoder, Protocol, Step, Turn, Woven, error_in, malformed, merge, stop_reason, texts_of,
    told, turns,
};
use crate::sse::Event;
use a99_capabilities::ai::{
    AiCode, AiError, Effort, Format, Image, MediaKind, Message, Part, Place, Role, StopReason,
    StreamEvent, ToolChoice, Usage,
};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use opaque::{OpaqueMembers, call_members};

/// The final mark of a stream.
const DONE: &str = "[DONE]";

const SAMPLING: Sampling = Sampling {
    temperature: ("temperature", 2.0),
    top_p: "top_p",
    // Some JSON parsers round larger numbers.
    seed: Some(("seed", (1 << 53) - 1)),
    stop: Some("stop"),
    efforts: &EFFORTS,
    audio: true,
};

/// Efforts that OpenAI's models support, in both wire formats.
pub(super) const EFFORTS: [Effort; 6] = [
    Effort::None,
    Effort::Minimal,
    Effort::Low,
    Effort::Medium,
    Effort::High,
    Effort::XHigh,
];

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

    fn sampling(&self) -> &'static Sampling {
        &SAMPLING
    }

    fn body(&self, ask: &Ask<'_>) -> Map {
        let request = ask.request;
        let mut body = Map::new();
        body.insert("model", ask.model);
        let mut messages = Vec::new();
        if let Some(system) = &request.system {
            messages.push(said("system", system.as_str()));
        }
        for turn in turns(&request.messages) {
            push_turn(&mut messages, ask, &turn);
        }
        body.insert("messages", messages);
        if let Some(most) = request.max_tokens.or(ask.max_tokens) {
            let name = ask.max_tokens_name.unwrap_or("max_tokens");
            body.insert(name, f64::from(most));
        }
        SAMPLING.write(request, &mut body);
        if let Some(effort) = request.effort {
            body.insert("reasoning_effort", effort.name());
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

    fn decoder(&self, ids: CallIds) -> Box<dyn Decoder> {
        Box::new(Chunks::new(ids))
    }

    fn whole(&self, answer: &Value, ids: CallIds) -> Result<Vec<Step>, AiError> {
        let mut out = Vec::new();
        let mut chunks = Chunks::new(ids);
        chunks.chunk(answer, &mut out)?;
        if answer.get("choices").is_none_or(Value::is_nullish) {
            return Err(malformed("it has no `choices`"));
        }
        out.extend(chunks.end());
        out.push(Step::End);
        Ok(out)
    }
}

fn said(role: &str, content: impl Into<Value>) -> Value {
    map([("role", role.into()), ("content", content.into())])
}

/// The messages of a turn: tool results are separate messages, before the others.
fn push_turn(out: &mut Vec<Value>, ask: &Ask<'_>, turn: &Turn<'_>) {
    for result in &turn.results {
        if let Part::ToolResult {
            id,
            content,
            is_error,
        } = result
        {
            // The wire format has no tool errors: the text states it.
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
    }
    for message in &turn.messages {
        match turn.role {
            Role::User => out.extend(user(message)),
            Role::Assistant => out.push(assistant(ask, message)),
        }
    }
}

fn user(message: &Message) -> Option<Value> {
    let mut content = Vec::new();
    let mut has_images = false;
    for part in &message.content {
        match part {
            Part::Text(text) => content.push(text_part(text)),
            Part::Image(image) => {
                has_images = true;
                content.push(media_part(image));
            }
            _ => {}
        }
    }
    match has_images {
        _ if content.is_empty() => None,
        true => Some(said("user", content)),
        false => Some(said("user", texts_of(message))),
    }
}

/// An image, a document or audio.
fn media_part(image: &Image) -> Value {
    match (image.kind(), image) {
        (MediaKind::Document, _) => {
            let file = map([
                ("filename", "document.pdf".into()),
                ("file_data", image.to_url().into()),
            ]);
            map([("type", "file".into()), ("file", file)])
        }
        (MediaKind::Audio(format), Image::Base64 { data, .. }) => {
            let audio = map([("data", data.as_str().into()), ("format", format.into())]);
            map([("type", "input_audio".into()), ("input_audio", audio)])
        }
        _ => {
            let url = map([("url", image.to_url().into())]);
            map([("type", "image_url".into()), ("image_url", url)])
        }
    }
}

fn text_part(text: &str) -> Value {
    map([("type", "text".into()), ("text", text.into())])
}

/// An assistant message, with the opaque members and parts that the service gets back.
fn assistant(ask: &Ask<'_>, message: &Message) -> Value {
    let texts = texts_of(message);
    let woven = ask.woven(message, &texts);
    let mut calls = Vec::new();
    let mut content = Vec::new();
    let mut has_parts = false;
    for part in woven {
        match part {
            Woven::Text(text) => content.push(text_part(text)),
            Woven::Opaque(value) => {
                has_parts = true;
                content.push(value.clone());
            }
            Woven::Call(used) => {
                let mut call = used.to_call();
                let place = Place::Call(used.id.clone());
                if let Value::Object(call) = &mut call {
                    merge(call, ask.opaque_members(message, &place));
                }
                calls.push(call);
            }
        }
    }
    let mut said = Map::new();
    said.insert("role", "assistant");
    match (has_parts, texts.is_empty() && !calls.is_empty()) {
        (true, _) => said.insert("content", content),
        (false, true) => said.insert("content", Value::Null),
        (false, false) => said.insert("content", texts),
    };
    if !calls.is_empty() {
        said.insert("tool_calls", calls);
    }
    merge(&mut said, ask.opaque_members(message, &Place::Message));
    said.into()
}

/// Whether services can enforce a schema strictly: each object in it lists all of its members
/// and allows no others.
pub(super) fn is_strict(schema: &Value) -> bool {
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
                    let named =
                        |key: &Text| required.iter().any(|name| name.as_text() == Some(key));
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
    kept: OpaqueMembers,
    /// Bytes of text so far.
    said: usize,
    refused: bool,
    /// The last stop reason.
    stop: Option<StopReason>,
}

impl Decoder for Chunks {
    fn event(&mut self, event: &Event) -> Result<Vec<Step>, AiError> {
        if event.data.trim() == DONE {
            let mut out = self.end();
            out.push(Step::End);
            return Ok(out);
        }
        let mut out = Vec::new();
        let chunks = objects(&event.data)?;
        if event.event == "error" {
            return Err(told(
                chunks.first().unwrap_or(&event.data.as_str().into()),
                None,
            ));
        }
        for chunk in chunks {
            self.chunk(&chunk, &mut out)?;
        }
        Ok(out)
    }

    /// Calls and opaque members arrive in pieces, of which the last may follow a stop reason.
    fn end(&mut self) -> Vec<Step> {
        let mut out = Vec::new();
        if let Some(stop) = self.stop.take() {
            self.tools.close_all(&stop, &mut out);
            self.kept.give(&mut out);
            out.push(Step::Stop(self.settled(stop)));
        }
        out
    }
}

/// The error in a chunk, or in place of one.
fn failure(chunk: &Value) -> Option<AiError> {
    if error_in(chunk).is_some() {
        return Some(told(chunk, None));
    }
    if chunk
        .get("choices")
        .is_some_and(|choices| !choices.is_nullish())
    {
        return None;
    }
    // vLLM and Mistral put the error's members into the chunk itself, MiniMax a status.
    let named = ["object", "type"]
        .iter()
        .any(|key| chunk.get(key).and_then(Value::as_str) == Some("error"));
    if named {
        return Some(told(chunk, None));
    }
    let status = chunk.get("base_resp")?;
    let number = status.get("status_code").and_then(Value::as_f64)?;
    let text = text(status, "status_msg").unwrap_or_default();
    (number != 0.0).then(|| AiError::new(AiCode::Unavailable, text))
}

impl Chunks {
    fn new(ids: CallIds) -> Chunks {
        Chunks {
            tools: Pieces::new(ids),
            ..Chunks::default()
        }
    }

    /// Reads a chunk, or a whole completion, whose choices have a `message` instead of a
    /// `delta`. A value without choices is not a part of the answer.
    fn chunk(&mut self, chunk: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        if let Some(error) = failure(chunk) {
            return Err(error);
        }
        let choices = items(chunk, "choices")?;
        let first = choices
            .iter()
            .find(|choice| index(choice).unwrap_or(0) == 0);
        if let Some(choice) = first {
            self.choice(choice, out)?;
        }
        // Groq sends it here if it was not requested.
        let groq = || chunk.get("x_groq").and_then(|own| own.get("usage"));
        let usage = chunk.get("usage").filter(|usage| !usage.is_nullish());
        if let Some(usage) = usage.or_else(groq).and_then(usage_of) {
            out.push(Step::Event(StreamEvent::Usage(usage)));
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        if error_in(choice).is_some() {
            return Err(told(choice, None));
        }
        for (key, is_whole) in [("delta", false), ("message", true)] {
            if let Some(delta) = choice.get(key).filter(|delta| !delta.is_nullish()) {
                if delta.as_object().is_none() {
                    return Err(malformed(&format!("a `{key}` is no object")));
                }
                self.delta(delta, is_whole, out)?;
            }
        }
        let reason = text(choice, "finish_reason")?;
        if reason == "error" {
            return Err(AiError::new(AiCode::Unavailable, ""));
        }
        if !reason.is_empty() {
            let stop = self.stop_reason(&reason, choice);
            self.stop = Some(stop.clone());
            out.push(Step::Stop(stop));
        }
        Ok(())
    }

    /// Reads a part of the message, or all of it: some services send the whole after its parts.
    fn delta(&mut self, delta: &Value, is_whole: bool, out: &mut Vec<Step>) -> Result<(), AiError> {
        let repeats = is_whole && (self.said > 0 || self.tools.any());
        if !repeats {
            let thinking = match text(delta, "reasoning_content")? {
                none if none.is_empty() => thinking_of(delta)?,
                thinking => thinking,
            };
            Step::thinking(out, thinking);
            self.kept.take(delta);
        }
        let words = content(delta, self.said, &mut self.kept, out)?;
        let refusal = text(delta, "refusal")?;
        self.refused |= !refusal.is_empty();
        let words = words + &refusal;
        let words = match repeats {
            true => words.get(self.said..).unwrap_or_default().to_owned(),
            false => words,
        };
        self.said += words.len();
        Step::text(out, words);
        if repeats && self.tools.any() {
            return Ok(());
        }
        let calls = items(delta, "tool_calls")?;
        let legacy = delta.get("function_call").filter(|call| !call.is_nullish());
        for (at, call) in calls.iter().enumerate() {
            let mut piece = piece(call, call.get("function").unwrap_or(&Value::Undefined))?;
            // In one list, calls without index and id are different calls.
            let unmarked = piece.index.is_none() && piece.id.is_empty() && !piece.name.is_empty();
            if is_whole {
                piece.index = Some(at as u64);
            }
            match is_whole || (unmarked && at > 0) {
                true => self.tools.begin(piece)?,
                false => self.tools.take(piece)?,
            }
            out.push(Step::Part);
        }
        if let Some(call) = legacy.filter(|_| calls.is_empty()) {
            self.tools.take(piece(&Value::Undefined, call)?)?;
            out.push(Step::Part);
        }
        Ok(())
    }

    fn stop_reason(&self, reason: &str, choice: &Value) -> StopReason {
        // vLLM and SGLang report the stop sequence.
        let stopped_by = ["stop_reason", "matched_stop"];
        let by_text = stopped_by
            .iter()
            .any(|key| choice.get(key).and_then(Value::as_text).is_some());
        match self.settled(stop_reason(reason)) {
            StopReason::EndTurn if by_text => StopReason::StopSequence,
            other => other,
        }
    }

    /// Corrects the stop reason: some services say `stop` when the model waits for tools.
    fn settled(&self, stop: StopReason) -> StopReason {
        match stop {
            StopReason::EndTurn if self.tools.any() => StopReason::ToolUse,
            StopReason::EndTurn if self.refused => StopReason::Refusal,
            other => other,
        }
    }
}

/// A piece of a tool call.
fn piece(call: &Value, function: &Value) -> Result<Piece, AiError> {
    let arguments = function.get("arguments").unwrap_or(&Value::Undefined);
    let (written, given) = match arguments {
        Value::Object(_) => (String::new(), Some(arguments.clone())),
        _ => (text(function, "arguments")?, None),
    };
    Ok(Piece {
        index: index(call),
        id: text(call, "id")?,
        name: text(function, "name")?,
        written,
        given,
        opaque: call_members(call, function),
    })
}

/// The thinking of a delta, under the names that other services use.
fn thinking_of(delta: &Value) -> Result<String, AiError> {
    for key in ["reasoning", "reasoning_text", "thinking"] {
        // Some services send an object here.
        if let Some(found) = delta
            .get(key)
            .and_then(text_of)
            .filter(|text| !text.is_empty())
        {
            return Ok(found);
        }
    }
    let details = delta.get("reasoning_details").and_then(Value::as_array);
    let details = details.unwrap_or_default().iter();
    details.map(|part| text(part, "text")).collect()
}

/// The text of a delta's content, which is a text or parts; it also keeps thinking parts.
fn content(
    delta: &Value,
    said: usize,
    kept: &mut OpaqueMembers,
    out: &mut Vec<Step>,
) -> Result<String, AiError> {
    let Some(parts) = delta.get("content").and_then(Value::as_array) else {
        return text(delta, "content");
    };
    let mut words = String::new();
    for part in parts {
        match part.get("type").and_then(Value::as_str) {
            Some("thinking") => {
                let inner = match part.get("thinking").and_then(Value::as_array) {
                    Some(inner) => inner.iter().map(|part| text(part, "text")).collect(),
                    None => text(part, "thinking"),
                }?;
                kept.think(said + words.len(), &inner);
                Step::thinking(out, inner);
            }
            _ => words.push_str(&text(part, "text")?),
        }
    }
    Ok(words)
}

/// Usage; `None` without any valid number.
fn usage_of(usage: &Value) -> Option<Usage> {
    let inner = |key: &str, of: &str| usage.get(key).and_then(|details| count(details, of));
    let counters = Counters {
        prompt: count(usage, "prompt_tokens"),
        completion: count(usage, "completion_tokens"),
        total: count(usage, "total_tokens"),
        cached: inner("prompt_tokens_details", "cached_tokens"),
        reasoning: inner("completion_tokens_details", "reasoning_tokens"),
    };
    counters.usage()
}

#[cfg(test)]
mod tests;
