//! Anthropic's messages.

use super::json::{count, items, map, object, text};
use super::pieces::{Open, Pieces};
use super::{Ask, Decoder, Protocol, Step, malformed, told};
use crate::sse::Event;
use a99_capabilities::ai::{
    AiError, Format, Image, Message, Part, Role, StopReason, StreamEvent, ToolChoice, Usage,
};
use a99_core::value::{Map, Value};

/// Tokens of an answer if nobody says: the wire wants a number.
const DEFAULT_MAX_TOKENS: u32 = 4096;

/// How an answer of JSON is asked for, for which there is no member without a schema.
const ONLY_JSON: &str = "Answer with one JSON object and nothing else.";

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
        if request.format == Format::Json {
            if !system.is_empty() {
                system.push_str("\n\n");
            }
            system.push_str(ONLY_JSON);
        }
        if !system.is_empty() {
            body.insert("system", system);
        }
        let messages = request.messages.iter().filter_map(message);
        body.insert("messages", messages.collect::<Vec<Value>>());
        if let Some(temperature) = request.temperature {
            body.insert("temperature", temperature);
        }
        if !request.stop_sequences.is_empty() {
            let stop = request
                .stop_sequences
                .iter()
                .map(|stop| stop.as_str().into());
            body.insert("stop_sequences", stop.collect::<Vec<Value>>());
        }
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
        if let Format::Schema { schema, .. } = &request.format {
            let format = map([("type", "json_schema".into()), ("schema", schema.clone())]);
            body.insert("output_config", map([("format", format)]));
        }
        if ask.stream {
            body.insert("stream", true);
        }
        body
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Events::default())
    }

    fn whole(&self, answer: &Value) -> Result<Vec<Step>, AiError> {
        if answer.get("content").is_none() {
            return Err(match answer.get("error") {
                Some(_) => told(answer, None),
                None => malformed("it has no `content`"),
            });
        }
        let mut events = Events::default();
        let mut out = Vec::new();
        for (at, block) in items(answer, "content")?.iter().enumerate() {
            events.open(at as u64, block, &mut out)?;
            events.tools.close(at as u64, &mut out);
        }
        events.stop(answer, &mut out)?;
        events.take_usage(answer.get("usage").unwrap_or(&Value::Undefined), &mut out);
        out.push(Step::End);
        Ok(out)
    }
}

/// A message; none if nothing is in it, which the wire does not take.
fn message(message: &Message) -> Option<Value> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let content: Vec<Value> = message.content.iter().filter_map(part).collect();
    let content = match &message.content[..] {
        [Part::Text(text)] => text.as_str().into(),
        _ => Value::Array(content),
    };
    let empty = match &content {
        Value::Array(parts) => parts.is_empty(),
        other => other.as_text().is_some_and(|text| text.is_empty()),
    };
    (!empty).then(|| map([("role", role.into()), ("content", content)]))
}

fn part(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) if text.is_empty() => return None,
        Part::Text(text) => map([("type", "text".into()), ("text", text.as_str().into())]),
        Part::Image(Image::Url(url)) => {
            let source = map([("type", "url".into()), ("url", url.as_str().into())]);
            map([("type", "image".into()), ("source", source)])
        }
        Part::Image(Image::Base64 { media_type, data }) => {
            let source = map([
                ("type", "base64".into()),
                ("media_type", media_type.as_str().into()),
                ("data", data.as_str().into()),
            ]);
            map([("type", "image".into()), ("source", source)])
        }
        Part::ToolUse(used) => map([
            ("type", "tool_use".into()),
            ("id", used.id.as_str().into()),
            ("name", used.name.as_str().into()),
            // The wire takes objects only.
            (
                "input",
                match &used.input {
                    input @ Value::Object(_) => input.clone(),
                    other => map([("input", other.clone())]),
                },
            ),
        ]),
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
    usage: Usage,
    /// What came of `usage`: the parts of a prompt.
    fresh: u64,
    written: u64,
    stopped: bool,
}

impl Decoder for Events {
    fn event(&mut self, event: &Event) -> Result<Vec<Step>, AiError> {
        let value = object(&event.data)?;
        let kind = match text(&value, "type")? {
            none if none.is_empty() => event.event.clone(),
            kind => kind,
        };
        let at = count(&value, "index").unwrap_or(0);
        let member = |key: &str| value.get(key).unwrap_or(&Value::Undefined);
        let mut out = Vec::new();
        match &*kind {
            "error" => return Err(told(&value, None)),
            "message_start" => {
                let usage = member("message").get("usage");
                self.take_usage(usage.unwrap_or(&Value::Undefined), &mut out);
            }
            // Nothing of the answer comes after its end.
            "content_block_start" | "content_block_delta" | "content_block_stop"
                if self.stopped => {}
            "content_block_start" => {
                let block = member("content_block");
                if block.as_object().is_none() {
                    return Err(malformed("a block is no object"));
                }
                self.open(at, block, &mut out)?;
            }
            "content_block_delta" => self.delta(at, member("delta"), &mut out)?,
            "content_block_stop" => self.tools.close(at, &mut out),
            "message_delta" => {
                self.take_usage(member("usage"), &mut out);
                if !self.stopped {
                    self.stop(member("delta"), &mut out)?;
                }
            }
            "message_stop" => out.push(Step::End),
            // The documentation wants other kinds to be passed over.
            _ => {}
        }
        Ok(out)
    }
}

impl Events {
    fn open(&mut self, at: u64, block: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        match &*text(block, "type")? {
            "text" => Step::text(out, text(block, "text")?),
            "thinking" => Step::thinking(out, text(block, "thinking")?),
            "tool_use" => {
                let input = block.get("input").filter(|input| !input.is_nullish());
                let tool = Open {
                    id: text(block, "id")?,
                    name: text(block, "name")?,
                    written: String::new(),
                    given: input.cloned(),
                };
                self.tools.add(at, tool)?;
                out.push(Step::Part);
            }
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, at: u64, delta: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        if delta.as_object().is_none() {
            return Err(malformed("a `delta` is no object"));
        }
        match &*text(delta, "type")? {
            "text_delta" => Step::text(out, text(delta, "text")?),
            "thinking_delta" => Step::thinking(out, text(delta, "thinking")?),
            // Of another block than a tool of ours it says nothing.
            "input_json_delta" if self.tools.get(at).is_some() => {
                let piece = Open {
                    written: text(delta, "partial_json")?,
                    ..Open::default()
                };
                self.tools.add(at, piece)?;
                out.push(Step::Part);
            }
            _ => {}
        }
        Ok(())
    }

    /// The reason of a message's end, if it has one.
    fn stop(&mut self, of: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        let reason = text(of, "stop_reason")?;
        if !reason.is_empty() {
            self.tools.close_all(out);
            self.stopped = true;
            let reason = StopReason::named(&reason);
            out.push(Step::Stop(match reason {
                StopReason::Other(other) => StopReason::Other(a99_core::diag::excerpt(&other)),
                known => known,
            }));
        }
        Ok(())
    }

    /// Usage as far as it is told; each number replaces the one before.
    fn take_usage(&mut self, usage: &Value, out: &mut Vec<Step>) {
        let input = count(usage, "input_tokens");
        let output = count(usage, "output_tokens");
        if input.or(output).is_none() {
            return;
        }
        self.fresh = input.unwrap_or(self.fresh);
        self.written = count(usage, "cache_creation_input_tokens").unwrap_or(self.written);
        let cached = count(usage, "cache_read_input_tokens");
        self.usage.cached_tokens = cached.unwrap_or(self.usage.cached_tokens);
        self.usage.completion_tokens = output.unwrap_or(self.usage.completion_tokens);
        let parts = self.fresh.saturating_add(self.written);
        self.usage.prompt_tokens = parts.saturating_add(self.usage.cached_tokens);
        out.push(Step::Event(StreamEvent::Usage(self.usage)));
    }
}

#[cfg(test)]
mod tests;
