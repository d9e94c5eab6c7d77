//! Turns in Anthropic's messages format.

use super::Said;
use super::openai::{pieces, written};
use crate::wire::map;
use a99_capabilities::ai::{ModelTurn, StreamEvent, Usage};
use a99_core::value::{Map, Value};

/// The signature of all thinking.
const SIGNATURE: &str = "c2lnbmF0dXJl";

/// Usage in this format, where cached tokens are not part of the others.
fn usage(usage: Usage) -> Value {
    let number = |n: u64| Value::Number(n as f64);
    let (cached, written) = (usage.cached_tokens, usage.written_tokens);
    let fresh = usage
        .prompt_tokens
        .saturating_sub(cached.saturating_add(written));
    map([
        ("input_tokens", number(fresh)),
        ("cache_creation_input_tokens", number(written)),
        ("cache_read_input_tokens", number(cached)),
        ("output_tokens", number(usage.completion_tokens)),
    ])
}

fn event(kind: &str, members: Vec<(&str, Value)>) -> String {
    let mut data = Map::new();
    data.insert("type", kind);
    for (key, value) in members {
        data.insert(key, value);
    }
    format!(
        "event: {kind}\ndata: {}\n\n",
        Value::Object(data).to_json_string()
    )
}

/// A message with this content, without its end.
fn message(model: &str, number: usize, content: Vec<Value>, tokens: Usage) -> Map {
    let mut message = Map::new();
    message.insert("id", format!("msg_{number}"));
    message.insert("type", "message");
    message.insert("role", "assistant");
    message.insert("model", model);
    message.insert("content", content);
    message.insert("stop_reason", Value::Null);
    message.insert("stop_sequence", Value::Null);
    message.insert("usage", usage(tokens));
    message
}

/// Writes content blocks with their start and stop events.
struct Blocks {
    at: u32,
    open: Option<&'static str>,
}

impl Blocks {
    fn index(&self) -> (&'static str, Value) {
        ("index", f64::from(self.at).into())
    }

    /// Ends the open block if it is of another kind.
    fn close(&mut self, kind: Option<&str>) -> Option<String> {
        let open = self.open?;
        if kind == Some(open) {
            return None;
        }
        let mut stop = String::new();
        if open == "thinking" {
            let delta = map([
                ("type", "signature_delta".into()),
                ("signature", SIGNATURE.into()),
            ]);
            stop = event("content_block_delta", vec![self.index(), ("delta", delta)]);
        }
        stop.push_str(&event("content_block_stop", vec![self.index()]));
        self.open = None;
        self.at += 1;
        Some(stop)
    }

    /// The events of a piece of text or thinking.
    fn text(&mut self, kind: &'static str, piece: &str) -> Vec<String> {
        let mut events: Vec<String> = self.close(Some(kind)).into_iter().collect();
        if self.open.is_none() {
            let block = map([("type", kind.into()), (kind, "".into())]);
            events.push(event(
                "content_block_start",
                vec![self.index(), ("content_block", block)],
            ));
            self.open = Some(kind);
        }
        let of = match kind {
            "thinking" => "thinking_delta",
            _ => "text_delta",
        };
        let delta = map([("type", of.into()), (kind, piece.into())]);
        events.push(event(
            "content_block_delta",
            vec![self.index(), ("delta", delta)],
        ));
        events
    }
}

pub(super) fn events(
    turn: &ModelTurn,
    model: &str,
    prompt_bytes: usize,
    number: usize,
) -> Vec<Said> {
    let tokens = turn.tokens(prompt_bytes);
    let first = Usage {
        completion_tokens: tokens.completion_tokens.min(1),
        ..tokens
    };
    let start = message(model, number, Vec::new(), first);
    let mut said = vec![
        Said::Start(event("message_start", vec![("message", start.into())])),
        Said::Start(event("ping", Vec::new())),
    ];
    let mut blocks = Blocks { at: 0, open: None };
    for piece in turn.pieces() {
        said.push(Said::Piece(match piece {
            StreamEvent::Thinking(text) => blocks.text("thinking", &text),
            StreamEvent::Text(text) => blocks.text("text", &text),
            StreamEvent::ToolUse(used) => {
                let mut events: Vec<String> = blocks.close(None).into_iter().collect();
                let block = map([
                    ("type", "tool_use".into()),
                    ("id", used.id.as_str().into()),
                    ("name", used.name.as_str().into()),
                    ("input", Value::Object(Map::new())),
                ]);
                let start = vec![blocks.index(), ("content_block", block)];
                events.push(event("content_block_start", start));
                for piece in pieces(&written(&used)) {
                    let delta = map([
                        ("type", "input_json_delta".into()),
                        ("partial_json", piece.into()),
                    ]);
                    let members = vec![blocks.index(), ("delta", delta)];
                    events.push(event("content_block_delta", members));
                }
                blocks.open = Some("tool_use");
                events.extend(blocks.close(None));
                events
            }
            _ => Vec::new(),
        }));
    }
    if let Some(stop) = blocks.close(None) {
        said.push(Said::End(stop));
    }
    let stop = turn.stop_reason();
    let delta = map([
        ("stop_reason", stop.name().into()),
        ("stop_sequence", Value::Null),
    ]);
    let members = vec![("delta", delta), ("usage", usage(tokens))];
    said.push(Said::End(event("message_delta", members)));
    said.push(Said::End(event("message_stop", Vec::new())));
    said
}

pub(super) fn whole(turn: &ModelTurn, model: &str, prompt_bytes: usize, number: usize) -> Value {
    let mut content = Vec::new();
    let mut block = |kind: &str, text: String| {
        if !text.is_empty() {
            content.push(map([("type", kind.into()), (kind, text.into())]));
        }
    };
    block("thinking", turn.thinking.concat());
    block("text", turn.text.concat());
    if let Some(Value::Object(thinking)) = content.first_mut().filter(|_| !turn.thinking.is_empty())
    {
        thinking.insert("signature", SIGNATURE);
    }
    content.extend(turn.tools.iter().map(|used| {
        map([
            ("type", "tool_use".into()),
            ("id", used.id.as_str().into()),
            ("name", used.name.as_str().into()),
            ("input", used.input.clone()),
        ])
    }));
    let mut answer = message(model, number, content, turn.tokens(prompt_bytes));
    answer.insert("stop_reason", turn.stop_reason().name());
    answer.into()
}
