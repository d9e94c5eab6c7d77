//! Anthropic's messages.

mod schema;

use super::json::{count, index, items, map, objects, parse, text};
use super::pieces::{CallIds, Piece, Pieces};
use super::sampling::Sampling;
use super::{
    Ask, Decoder, Protocol, Step, Turn, Woven, malformed, stop_reason, texts_of, told, turns,
};
use crate::sse::Event;
use a99_capabilities::ai::{
    AiError, Effort, Format, Image, MediaKind, Message, Opaque, Part, Place, Role, StreamEvent,
    ToolChoice, ToolUse, Usage,
};
use a99_core::value::{Map, Value};
use std::collections::BTreeMap;

/// Default maximum tokens of an answer: the wire format requires a number.
const DEFAULT_MAX_TOKENS: u32 = 4096;

/// The instruction for JSON answers without a schema, for which the wire format has no member.
const ONLY_JSON: &str = "Answer with one JSON object and nothing else.";

/// The instruction for answers whose schema the service does not accept.
const ONLY_FORM: &str = "Answer with one JSON value and nothing else. Its JSON Schema: ";

/// The wire format has no seeds.
const SAMPLING: Sampling = Sampling {
    temperature: ("temperature", 1.0),
    top_p: "top_p",
    seed: None,
    stop: Some("stop_sequences"),
    efforts: &[
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::XHigh,
        Effort::Max,
    ],
    audio: false,
};

pub(super) struct Anthropic;

impl Protocol for Anthropic {
    fn path(&self) -> &'static str {
        "/messages"
    }

    fn key_header(&self) -> &'static str {
        "x-api-key"
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn sampling(&self) -> &'static Sampling {
        &SAMPLING
    }

    fn body(&self, ask: &Ask<'_>) -> Map {
        let request = ask.request;
        let mut body = Map::new();
        body.insert("model", ask.model);
        let most = request
            .max_tokens
            .or(ask.max_tokens)
            .unwrap_or(DEFAULT_MAX_TOKENS);
        let name = ask.max_tokens_name.unwrap_or("max_tokens");
        body.insert(name, f64::from(most));
        let mut system = request.system.clone().unwrap_or_default();
        let (form, asked) = match &request.format {
            Format::Text => (None, None),
            Format::Json => (None, Some(ONLY_JSON.to_owned())),
            Format::Schema { schema, .. } => match schema::closed(schema) {
                None => (
                    None,
                    Some(format!("{ONLY_FORM}{}", schema.to_json_string())),
                ),
                form => (form, None),
            },
        };
        if let Some(asked) = asked {
            if !system.is_empty() {
                system.push_str("\n\n");
            }
            system.push_str(&asked);
        }
        if !is_blank(&system) {
            body.insert("system", system);
        }
        let turns = turns(&request.messages);
        let messages = turns.iter().filter_map(|turn| message(ask, turn));
        let mut messages: Vec<Value> = messages.collect();
        trim_last(&mut messages);
        body.insert("messages", messages);
        SAMPLING.write(request, &mut body);
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                let mut entry = Map::new();
                entry.insert("name", tool.name.as_str());
                if let Some(description) = &tool.description {
                    entry.insert("description", description.as_str());
                }
                entry.insert("input_schema", tool.input_schema.clone());
                entry.into()
            });
            body.insert("tools", tools.collect::<Vec<Value>>());
            let kind = |kind: &str| Some(map([("type", kind.into())]));
            let choice = match &request.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None => kind("none"),
                ToolChoice::Required => kind("any"),
                ToolChoice::Tool(name) => Some(map([
                    ("type", "tool".into()),
                    ("name", name.as_str().into()),
                ])),
            };
            if let Some(choice) = choice {
                body.insert("tool_choice", choice);
            }
        }
        let mut output = Map::new();
        if let Some(effort) = request.effort {
            output.insert("effort", effort.name());
        }
        if let Some(schema) = form {
            let format = map([("type", "json_schema".into()), ("schema", schema)]);
            output.insert("format", format);
        }
        if !output.is_empty() {
            body.insert("output_config", output);
        }
        if ask.prompt_cache {
            mark_for_cache(&mut body);
        }
        if ask.stream {
            body.insert("stream", true);
        }
        body
    }

    fn decoder(&self, ids: CallIds) -> Box<dyn Decoder> {
        Box::new(Events::new(ids))
    }

    fn whole(&self, answer: &Value, ids: CallIds) -> Result<Vec<Step>, AiError> {
        if answer.get("content").is_none() {
            return Err(match answer.get("error") {
                Some(_) => told(answer, None),
                None => malformed("it has no `content`"),
            });
        }
        let mut events = Events::new(ids);
        let mut out = Vec::new();
        for (at, block) in items(answer, "content")?.iter().enumerate() {
            events.open(at as u64, block, &mut out)?;
            events.close(at as u64, &mut out);
        }
        events.stop(answer, &mut out)?;
        events.take_usage(answer.get("usage").unwrap_or(&Value::Undefined), &mut out);
        out.push(Step::End);
        Ok(out)
    }
}

/// Marks the ends of the parts that repeat between requests: tools, system, and the
/// conversation so far. The service caches up to each mark, and accepts at most four marks.
fn mark_for_cache(body: &mut Map) {
    if let Some(Value::Array(tools)) = body.get_mut("tools") {
        mark_last(tools);
    }
    if let Some(system) = body.get_mut("system") {
        mark_content(system);
    }
    let message = match body.get_mut("messages") {
        Some(Value::Array(messages)) => messages.last_mut(),
        _ => None,
    };
    if let Some(Value::Object(message)) = message
        && let Some(content) = message.get_mut("content")
    {
        mark_content(content);
    }
}

/// Marks a text, which becomes a block, or the last of blocks.
fn mark_content(content: &mut Value) {
    if let Value::String(text) = content {
        let block = map([("type", "text".into()), ("text", text.clone().into())]);
        *content = Value::Array(vec![block]);
    }
    if let Value::Array(blocks) = content {
        mark_last(blocks);
    }
}

/// Marks the last block that may have a mark: not thinking and not an empty text.
fn mark_last(blocks: &mut [Value]) {
    let may_be = |block: &&mut Value| {
        let text = block.get("text").and_then(Value::as_text);
        !is_thinking(block) && !text.is_some_and(|text| text.is_empty())
    };
    if let Some(Value::Object(block)) = blocks.iter_mut().rev().find(may_be) {
        block.insert("cache_control", map([("type", "ephemeral".into())]));
    }
}

/// The message of a turn; `None` if it is empty, which the service refuses. All results of a
/// round come first, in one message.
fn message(ask: &Ask<'_>, turn: &Turn<'_>) -> Option<Value> {
    let (role, content) = match turn.role {
        Role::User => {
            let parts = turn.messages.iter().flat_map(|message| &message.content);
            let parts: Vec<&Part> = parts.collect();
            let content: Value = match parts[..] {
                [Part::Text(text)] => text.as_str().into(),
                _ => {
                    let results = turn.results.iter().filter_map(|part| result(part));
                    let parts = parts.into_iter().filter_map(part);
                    results.chain(parts).collect::<Vec<Value>>().into()
                }
            };
            ("user", content)
        }
        Role::Assistant => {
            let mut content = Vec::new();
            for message in &turn.messages {
                blocks(ask, message, &mut content);
            }
            let plain = match &content[..] {
                [block] if is_text(block) => block.get("text").cloned(),
                _ => None,
            };
            ("assistant", plain.unwrap_or(Value::Array(content)))
        }
    };
    let empty = match &content {
        Value::Array(parts) => parts.is_empty(),
        other => other.as_str().is_some_and(is_blank),
    };
    (!empty).then(|| map([("role", role.into()), ("content", content)]))
}

/// Whether a text is only white space, which the service refuses.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// An answer that the model continues must not end in white space.
fn trim_last(messages: &mut [Value]) {
    let Some(Value::Object(last)) = messages.last_mut() else {
        return;
    };
    if last.get("role").and_then(Value::as_str) != Some("assistant") {
        return;
    }
    let text = match last.get_mut("content") {
        Some(Value::Array(blocks)) => match blocks.last_mut() {
            Some(Value::Object(block)) => block.get_mut("text"),
            _ => None,
        },
        content => content,
    };
    if let Some(text) = text
        && let Some(trimmed) = text.as_str().map(|text| text.trim_end().to_owned())
    {
        *text = trimmed.into();
    }
}

fn is_text(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("text")
}

/// The content blocks of an assistant message, with opaque ones at their places.
fn blocks(ask: &Ask<'_>, message: &Message, out: &mut Vec<Value>) {
    // Thinking that the program wrote, in the form of other wire formats.
    for (_, thinking) in ask.opaque_members(message, &Place::Message) {
        let blocks = thinking.as_array().unwrap_or_default();
        out.extend(blocks.iter().filter(|block| is_thinking(block)).cloned());
    }
    let texts = texts_of(message);
    for part in ask.woven(message, &texts) {
        out.push(match part {
            Woven::Text(text) if is_blank(text) => continue,
            Woven::Text(text) => map([("type", "text".into()), ("text", text.into())]),
            Woven::Opaque(block) => block.clone(),
            Woven::Call(used) => tool_use(used),
        });
    }
}

fn is_thinking(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str);
    matches!(kind, Some("thinking" | "redacted_thinking"))
}

fn tool_use(used: &ToolUse) -> Value {
    // The wire format accepts objects only.
    let input = match &used.input {
        input @ Value::Object(_) => input.clone(),
        other => map([("input", other.clone())]),
    };
    map([
        ("type", "tool_use".into()),
        ("id", used.id.as_str().into()),
        ("name", used.name.as_str().into()),
        ("input", input),
    ])
}

/// A part of a user message.
fn part(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) if is_blank(text) => return None,
        Part::Text(text) => map([("type", "text".into()), ("text", text.as_str().into())]),
        Part::Image(Image::Url(url)) => {
            let source = map([("type", "url".into()), ("url", url.as_str().into())]);
            map([("type", "image".into()), ("source", source)])
        }
        Part::Image(image @ Image::Base64 { media_type, data }) => {
            let source = map([
                ("type", "base64".into()),
                ("media_type", media_type.as_str().into()),
                ("data", data.as_str().into()),
            ]);
            let kind = match image.kind() {
                MediaKind::Document => "document",
                _ => "image",
            };
            map([("type", kind.into()), ("source", source)])
        }
        _ => return None,
    })
}

fn result(part: &Part) -> Option<Value> {
    Some(match part {
        Part::ToolResult {
            id,
            content,
            is_error,
        } => {
            let mut result = Map::new();
            result.insert("type", "tool_result");
            result.insert("tool_use_id", id.as_str());
            result.insert("content", content.as_str());
            if *is_error {
                result.insert("is_error", true);
            }
            result.into()
        }
        _ => return None,
    })
}

/// Reads the events of a message.
#[derive(Debug, Default)]
struct Events {
    tools: Pieces,
    /// Blocks to send back unchanged, by index.
    opaque: BTreeMap<u64, Block>,
    /// Bytes of text so far.
    said: usize,
    usage: Usage,
    /// Tokens of the prompt outside of the cache.
    fresh: u64,
    stopped: bool,
}

/// A block to send back unchanged.
#[derive(Debug)]
struct Block {
    place: Place,
    members: Map,
    /// Members that arrive in pieces.
    thinking: String,
    signature: String,
    input: String,
}

impl Block {
    fn into_opaque(mut self) -> Opaque {
        for (key, text) in [("thinking", self.thinking), ("signature", self.signature)] {
            if !text.is_empty() {
                self.members.insert(key, text);
            }
        }
        if let Some(input) = parse(&self.input) {
            self.members.insert("input", input);
        }
        Opaque::new(self.place, self.members)
    }
}

impl Decoder for Events {
    fn event(&mut self, event: &Event) -> Result<Vec<Step>, AiError> {
        let mut out = Vec::new();
        let values = objects(&event.data)?;
        if values.is_empty() && event.event == "error" {
            return Err(told(&event.data.as_str().into(), None));
        }
        for value in values {
            self.value(&value, &event.event, &mut out)?;
        }
        Ok(out)
    }
}

impl Events {
    fn new(ids: CallIds) -> Events {
        Events {
            tools: Pieces::new(ids),
            ..Events::default()
        }
    }

    fn value(&mut self, value: &Value, kind: &str, out: &mut Vec<Step>) -> Result<(), AiError> {
        let own = text(value, "type")?;
        let kind = match own.is_empty() {
            true => kind,
            false => &own,
        };
        let at = index(value).unwrap_or(0);
        let member = |key: &str| value.get(key).unwrap_or(&Value::Undefined);
        match kind {
            "error" => return Err(told(value, None)),
            "message_start" => {
                let usage = member("message").get("usage");
                self.take_usage(usage.unwrap_or(&Value::Undefined), out);
            }
            // Content after the end is ignored.
            "content_block_start" | "content_block_delta" | "content_block_stop"
                if self.stopped => {}
            "content_block_start" => {
                let block = member("content_block");
                if block.as_object().is_none() {
                    return Err(malformed("a block is no object"));
                }
                self.open(at, block, out)?;
            }
            "content_block_delta" => self.delta(at, member("delta"), out)?,
            "content_block_stop" => self.close(at, out),
            "message_delta" => {
                self.take_usage(member("usage"), out);
                if !self.stopped {
                    self.stop(member("delta"), out)?;
                }
            }
            "message_stop" => out.push(Step::End),
            // The documentation asks clients to ignore unknown kinds; some carry an error.
            _ if super::error_in(value).is_some() => return Err(told(value, None)),
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, at: u64, block: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        match &*text(block, "type")? {
            "text" => self.text(text(block, "text")?, out),
            "tool_use" => {
                let input = block.get("input").filter(|input| !input.is_nullish());
                self.tools.begin(Piece {
                    index: Some(at),
                    id: text(block, "id")?,
                    name: text(block, "name")?,
                    given: input.cloned(),
                    ..Piece::default()
                })?;
                out.push(Step::Part);
            }
            "" => {}
            kind => {
                let thinking = match kind {
                    "thinking" => text(block, "thinking")?,
                    _ => String::new(),
                };
                let block = Block {
                    place: Place::Content {
                        text: self.said,
                        calls: self.tools.len(),
                    },
                    members: block.as_object().cloned().unwrap_or_default(),
                    thinking: thinking.clone(),
                    signature: match kind {
                        "thinking" => text(block, "signature")?,
                        _ => String::new(),
                    },
                    input: String::new(),
                };
                self.opaque.insert(at, block);
                Step::thinking(out, thinking);
            }
        }
        Ok(())
    }

    fn text(&mut self, piece: String, out: &mut Vec<Step>) {
        self.said += piece.len();
        Step::text(out, piece);
    }

    fn delta(&mut self, at: u64, delta: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        if delta.as_object().is_none() {
            return Err(malformed("a `delta` is no object"));
        }
        let block = self.opaque.get_mut(&at);
        match (&*text(delta, "type")?, block) {
            ("text_delta", _) => self.text(text(delta, "text")?, out),
            ("thinking_delta", block) => {
                let piece = text(delta, "thinking")?;
                if let Some(block) = block {
                    block.thinking.push_str(&piece);
                }
                Step::thinking(out, piece);
            }
            ("signature_delta", Some(block)) => {
                block.signature.push_str(&text(delta, "signature")?);
            }
            ("input_json_delta", Some(block)) => {
                block.input.push_str(&text(delta, "partial_json")?);
            }
            ("input_json_delta", None) => {
                let is_ours = self.tools.extend(at, text(delta, "partial_json")?)?;
                out.extend(is_ours.then_some(Step::Part));
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes a block. An incomplete one is not sent back: its signature is missing.
    fn close(&mut self, at: u64, out: &mut Vec<Step>) {
        self.tools.close(at, out);
        if let Some(block) = self.opaque.remove(&at) {
            Step::opaque(out, block.into_opaque());
        }
    }

    /// The stop reason of a message, if it has one.
    fn stop(&mut self, of: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        let reason = text(of, "stop_reason")?;
        if !reason.is_empty() {
            let reason = stop_reason(&reason);
            self.tools.close_all(&reason, out);
            self.stopped = true;
            out.push(Step::Stop(reason));
        }
        Ok(())
    }

    /// Takes reported usage. Counters only grow, because some services repeat one as 0 at the
    /// end.
    fn take_usage(&mut self, usage: &Value, out: &mut Vec<Step>) {
        let input = count(usage, "input_tokens");
        let output = count(usage, "output_tokens");
        if input.or(output).is_none() {
            return;
        }
        self.fresh = self.fresh.max(input.unwrap_or(0));
        let told = |key: &str, before: u64| before.max(count(usage, key).unwrap_or(0));
        let (written, cached) = (self.usage.written_tokens, self.usage.cached_tokens);
        self.usage.written_tokens = told("cache_creation_input_tokens", written);
        self.usage.cached_tokens = told("cache_read_input_tokens", cached);
        self.usage.completion_tokens = self.usage.completion_tokens.max(output.unwrap_or(0));
        let parts = self.fresh.saturating_add(self.usage.written_tokens);
        self.usage.prompt_tokens = parts.saturating_add(self.usage.cached_tokens);
        out.push(Step::Event(StreamEvent::Usage(self.usage)));
    }
}

#[cfg(test)]
mod tests;
