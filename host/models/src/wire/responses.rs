//! OpenAI's responses: items in, items out.

use super::json::{count, items, map, objects, text};
use super::openai::{EFFORTS, is_strict};
use super::pieces::{CallIds, Piece, Pieces};
use super::sampling::Sampling;
use super::usage::Counters;
use super::{
    Ask, Decoder, Protocol, Step, Turn, Woven, error_in, malformed, stop_reason, texts_of, told,
    turns,
};
use crate::sse::Event;
use a99_capabilities::ai::{
    AiError, Format, MediaKind, Message, Opaque, Part, Place, Role, StopReason, StreamEvent,
    ToolChoice, Usage,
};
use a99_core::value::{Map, Value};
use std::collections::BTreeMap;

/// The final mark of a stream, which some services send.
const DONE: &str = "[DONE]";

/// The service refuses a smaller limit ("integer below minimum value").
const LEAST_ANSWER: u32 = 16;

/// The wire format has neither seeds nor stop sequences.
const SAMPLING: Sampling = Sampling {
    temperature: ("temperature", 2.0),
    top_p: "top_p",
    seed: None,
    stop: None,
    efforts: &EFFORTS,
    audio: false,
};

pub(super) struct Responses;

impl Protocol for Responses {
    fn path(&self) -> &'static str {
        "/responses"
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

    fn least_answer(&self) -> u32 {
        LEAST_ANSWER
    }

    fn body(&self, ask: &Ask<'_>) -> Map {
        let request = ask.request;
        let mut body = Map::new();
        body.insert("model", ask.model);
        if let Some(system) = &request.system {
            body.insert("instructions", system.as_str());
        }
        let mut input = Vec::new();
        for turn in turns(&request.messages) {
            push_turn(&mut input, ask, &turn);
        }
        body.insert("input", input);
        // The service stores no conversation: the answer contains the parts that it needs back.
        body.insert("store", false);
        if ask.send_opaque && (reasons(ask.model) || request.effort.is_some()) {
            body.insert("include", vec![Value::from("reasoning.encrypted_content")]);
        }
        if let Some(most) = request.max_tokens.or(ask.max_tokens) {
            let name = ask.max_tokens_name.unwrap_or("max_output_tokens");
            body.insert(name, f64::from(most.max(LEAST_ANSWER)));
        }
        SAMPLING.write(request, &mut body);
        if let Some(effort) = request.effort {
            body.insert("reasoning", map([("effort", effort.name().into())]));
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                let mut entry = Map::new();
                entry.insert("type", "function");
                entry.insert("name", tool.name.as_str());
                if let Some(description) = &tool.description {
                    entry.insert("description", description.as_str());
                }
                entry.insert("parameters", tool.input_schema.clone());
                // The default is strict, which most schemas do not satisfy.
                entry.insert("strict", false);
                entry.into()
            });
            body.insert("tools", tools.collect::<Vec<Value>>());
            let choice: Option<Value> = match &request.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None => Some("none".into()),
                ToolChoice::Required => Some("required".into()),
                ToolChoice::Tool(name) => Some(map([
                    ("type", "function".into()),
                    ("name", name.as_str().into()),
                ])),
            };
            if let Some(choice) = choice {
                body.insert("tool_choice", choice);
            }
        }
        let format = match &request.format {
            Format::Text => None,
            Format::Json => Some(map([("type", "json_object".into())])),
            Format::Schema { name, schema } => Some(map([
                ("type", "json_schema".into()),
                ("name", name.as_str().into()),
                ("schema", schema.clone()),
                ("strict", is_strict(schema).into()),
            ])),
        };
        if let Some(format) = format {
            body.insert("text", map([("format", format)]));
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
        if error_in(answer).is_some() {
            return Err(told(answer, None));
        }
        if answer.get("output").is_none() {
            return Err(malformed("it has no `output`"));
        }
        let mut out = Vec::new();
        Events::new(ids).end(answer, &mut out)?;
        out.push(Step::End);
        Ok(out)
    }
}

/// Whether a model reasons, by its name. Other models refuse a request for their reasoning
/// ("Encrypted content is not supported with this model"), so unknown names count as not
/// reasoning.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let number = |rest: &str| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse::<u32>().ok())
    };
    let after = |start: &str| name.strip_prefix(start).and_then(number);
    let is_chat = name.starts_with("gpt-5-chat");
    name.contains("codex")
        || name.starts_with("gpt-oss")
        || (after("gpt-").is_some_and(|number| number >= 5) && !is_chat)
        || after("o").is_some()
}

/// Whether the service recognises an item sent back. It stores nothing, so a reasoning item
/// must contain encrypted content, or the text of services that do not encrypt it.
fn goes_back(item: &Value) -> bool {
    let is_reasoning = item.get("type").and_then(Value::as_str) == Some("reasoning");
    let has = |key: &str| match item.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(parts)) => !parts.is_empty(),
        _ => false,
    };
    !is_reasoning || has("encrypted_content") || has("content")
}

/// The items of a turn.
fn push_turn(out: &mut Vec<Value>, ask: &Ask<'_>, turn: &Turn<'_>) {
    for result in &turn.results {
        if let Part::ToolResult {
            id,
            content,
            is_error,
        } = result
        {
            // The wire format has no tool errors: the text states it.
            let output = match is_error {
                true => format!("Error: {content}"),
                false => content.clone(),
            };
            out.push(map([
                ("type", "function_call_output".into()),
                ("call_id", id.as_str().into()),
                ("output", output.into()),
            ]));
        }
    }
    for message in &turn.messages {
        match turn.role {
            Role::User => {
                let content = message.content.iter().filter_map(part);
                let content: Vec<Value> = content.collect();
                if !content.is_empty() {
                    out.push(said("user", content));
                }
            }
            Role::Assistant => push_answer(out, ask, message),
        }
    }
}

fn said(role: &str, content: Vec<Value>) -> Value {
    map([
        ("type", "message".into()),
        ("role", role.into()),
        ("content", content.into()),
    ])
}

fn part(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) => map([
            ("type", "input_text".into()),
            ("text", text.as_str().into()),
        ]),
        Part::Image(image) if image.kind() == MediaKind::Document => map([
            ("type", "input_file".into()),
            ("filename", "document.pdf".into()),
            ("file_data", image.to_url().into()),
        ]),
        Part::Image(image) => map([
            ("type", "input_image".into()),
            ("image_url", image.to_url().into()),
        ]),
        _ => return None,
    })
}

/// The items of an assistant message, with reasoning at its place.
fn push_answer(out: &mut Vec<Value>, ask: &Ask<'_>, message: &Message) {
    let texts = texts_of(message);
    for part in ask.woven(message, &texts) {
        out.push(match part {
            Woven::Opaque(item) if !goes_back(item) => continue,
            Woven::Text(text) => {
                let part = [("type", "output_text".into()), ("text", text.into())];
                said("assistant", vec![map(part)])
            }
            Woven::Opaque(item) => item.clone(),
            Woven::Call(used) => map([
                ("type", "function_call".into()),
                ("call_id", used.id.as_str().into()),
                ("name", used.name.as_str().into()),
                ("arguments", used.arguments().into()),
            ]),
        });
    }
}

/// Reads the events of a response.
#[derive(Debug, Default)]
struct Events {
    tools: Pieces,
    /// Complete items, and bytes of text that came of others, by their places.
    items: BTreeMap<u64, Item>,
    /// Bytes of text so far.
    said: usize,
    refused: bool,
}

#[derive(Debug, Default)]
struct Item {
    said: usize,
    thought: bool,
    is_whole: bool,
}

impl Decoder for Events {
    fn event(&mut self, event: &Event) -> Result<Vec<Step>, AiError> {
        if event.data.trim() == DONE {
            return Ok(vec![Step::End]);
        }
        let mut out = Vec::new();
        for value in objects(&event.data)? {
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
        let at = count(value, "output_index").unwrap_or(0);
        let response = value.get("response").unwrap_or(&Value::Undefined);
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let piece = text(value, "delta")?;
                self.refused |= kind == "response.refusal.delta";
                self.items.entry(at).or_default().said += piece.len();
                self.said += piece.len();
                Step::text(out, piece);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.items.entry(at).or_default().thought = true;
                Step::thinking(out, text(value, "delta")?);
            }
            "response.function_call_arguments.delta" => out.push(Step::Part),
            "response.output_item.done" => {
                let item = value.get("item").unwrap_or(&Value::Undefined);
                self.item(at, item, out)?;
            }
            "response.completed" | "response.incomplete" => {
                self.end(response, out)?;
                out.push(Step::End);
            }
            "response.failed" => return Err(told(response, None)),
            "error" => return Err(told(value, None)),
            _ if error_in(value).is_some() => return Err(told(value, None)),
            _ => {}
        }
        Ok(())
    }

    /// Completes an item.
    fn item(&mut self, at: u64, item: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        let seen = self.items.entry(at).or_default();
        if std::mem::replace(&mut seen.is_whole, true) {
            return Ok(());
        }
        let (said, thought) = (seen.said, seen.thought);
        match &*text(item, "type")? {
            "message" => {
                let mut words = String::new();
                for part in items(item, "content")? {
                    words.push_str(&text(part, "text")?);
                    let refusal = text(part, "refusal")?;
                    self.refused |= !refusal.is_empty();
                    words.push_str(&refusal);
                }
                // Text that already came in pieces is skipped.
                let rest = words.get(said..).unwrap_or_default().to_owned();
                self.said += rest.len();
                Step::text(out, rest);
            }
            // It was cut off.
            "function_call" if text(item, "status")? == "incomplete" => {}
            "function_call" => {
                self.tools.begin(Piece {
                    index: Some(at),
                    id: text(item, "call_id")?,
                    name: text(item, "name")?,
                    written: text(item, "arguments")?,
                    ..Piece::default()
                })?;
                self.tools.close(at, out);
            }
            "" => {}
            kind => {
                if kind == "reasoning" && !thought {
                    for part in items(item, "summary")? {
                        Step::thinking(out, text(part, "text")?);
                    }
                }
                let place = Place::Content {
                    text: self.said,
                    calls: self.tools.len(),
                };
                Step::opaque(out, Opaque::new(place, item.clone()));
            }
        }
        Ok(())
    }

    /// Ends the response: takes the parts that did not come as events, the usage and the stop
    /// reason.
    fn end(&mut self, response: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        for (at, item) in items(response, "output")?.iter().enumerate() {
            self.item(at as u64, item, out)?;
        }
        if let Some(usage) = response.get("usage").and_then(usage_of) {
            out.push(Step::Event(StreamEvent::Usage(usage)));
        }
        let why = response.get("incomplete_details");
        let why = why
            .map(|why| text(why, "reason"))
            .transpose()?
            .unwrap_or_default();
        let status = text(response, "status")?;
        out.push(Step::Stop(match &*status {
            _ if !why.is_empty() => stop_reason(&why),
            "completed" | "" if self.tools.any() => StopReason::ToolUse,
            "completed" | "" if self.refused => StopReason::Refusal,
            "completed" | "" => StopReason::EndTurn,
            "failed" => return Err(told(response, None)),
            // An unfinished or abandoned response is not an answer.
            "queued" | "in_progress" => return Ok(()),
            other => StopReason::Other(a99_core::diag::excerpt(other)),
        }));
        Ok(())
    }
}

/// Usage; `None` without any valid number.
fn usage_of(usage: &Value) -> Option<Usage> {
    let inner = |key: &str, of: &str| usage.get(key).and_then(|details| count(details, of));
    let counters = Counters {
        prompt: count(usage, "input_tokens"),
        completion: count(usage, "output_tokens"),
        total: count(usage, "total_tokens"),
        cached: inner("input_tokens_details", "cached_tokens"),
        reasoning: inner("output_tokens_details", "reasoning_tokens"),
    };
    counters.usage()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plain, round, value};
    use super::*;
    use crate::fuzz::whole;
    use crate::wire::Wire;
    use a99_capabilities::ai::{Effort, TextRequest};

    fn body(model: &str, request: &TextRequest) -> Value {
        Value::Object(Responses.body(&plain(request, model, "s")))
    }

    #[test]
    fn t6_only_models_that_think_are_asked_for_reasoning() {
        for (model, asks) in [
            ("gpt-5", true),
            ("gpt-5.4-mini", true),
            ("gpt-6-luna", true),
            ("gpt-10", true),
            ("openai/o3-mini", true),
            ("codex-mini-latest", true),
            ("gpt-oss-120b", true),
            ("gpt-5-chat-latest", false),
            ("gpt-4o", false),
            ("gpt-4.1", false),
            ("gpt-3.5-turbo", false),
            ("chatgpt-4o-latest", false),
            ("omni-moderation", false),
            ("my-deployment", false),
        ] {
            let plain = TextRequest::new("x");
            let sent = body(model, &plain);
            assert_eq!(sent.get("include").is_some(), asks, "{model}");
            let thinks = TextRequest {
                effort: Some(Effort::Low),
                ..plain
            };
            assert!(body(model, &thinks).get("include").is_some(), "{model}");
        }
    }

    #[test]
    fn t6_reasoning_that_the_service_does_not_know_again_stays_here() {
        for (members, goes) in [
            (r#""summary":[]"#, false),
            (r#""summary":[],"encrypted_content":null"#, false),
            (r#""summary":[],"encrypted_content":"","content":[]"#, false),
            (r#""summary":[],"encrypted_content":"gAAA""#, true),
            (
                r#""summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]"#,
                true,
            ),
        ] {
            let answer = format!(
                r#"{{"status":"completed","output":[{{"type":"reasoning","id":"rs_1",{members}}},{{"type":"function_call","call_id":"c","name":"f","arguments":"{{}}"}}]}}"#
            );
            let mut result = whole(Wire::Responses, answer.as_bytes()).unwrap();
            result.model = Some("s/gpt-5".to_owned());
            let talk = vec![
                value(r#"{"role":"user","content":"Go"}"#),
                result.to_message(),
                value(r#"{"role":"tool","tool_call_id":"c","content":"1"}"#),
            ];
            let sent = body("gpt-5", &round(Value::Array(talk)));
            let input = sent.get("input").and_then(Value::as_array).unwrap();
            let kinds = input.iter().filter_map(|item| item.get("type")?.as_str());
            let kinds: Vec<&str> = kinds.collect();
            let calls = ["function_call", "function_call_output"];
            match goes {
                true => assert_eq!(
                    kinds[1..],
                    [&["reasoning"][..], &calls].concat(),
                    "{members}"
                ),
                false => assert_eq!(kinds[1..], calls, "{members}"),
            }
        }
    }
}
