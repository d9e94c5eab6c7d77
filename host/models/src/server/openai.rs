//! Turns in OpenAI's chat completions format.

use super::Said;
use crate::wire::map;
use a99_capabilities::ai::{ModelTurn, StopReason, StreamEvent, ToolUse, Usage};
use a99_core::value::{Map, Value};

/// A fixed creation time in the past, which keeps answers reproducible.
const CREATED: f64 = 1_700_000_000.0;

/// The finish reason, and the stop sequence.
fn reason(stop: &StopReason) -> (&str, Option<&str>) {
    match stop {
        StopReason::EndTurn => ("stop", None),
        // As in vLLM: the wire format itself does not report which sequence it was.
        StopReason::StopSequence => ("stop", Some("STOP")),
        StopReason::MaxTokens => ("length", None),
        StopReason::ToolUse => ("tool_calls", None),
        // The text of a refusal is a separate member.
        StopReason::Refusal => ("stop", None),
        StopReason::ContentFilter => ("content_filter", None),
        other => (other.name(), None),
    }
}

/// The member with a turn's text.
fn said_as(turn: &ModelTurn) -> &'static str {
    match turn.stop_reason() {
        StopReason::Refusal => "refusal",
        _ => "content",
    }
}

fn usage(usage: Usage) -> Value {
    let number = |n: u64| Value::Number(n as f64);
    map([
        ("prompt_tokens", number(usage.prompt_tokens)),
        ("completion_tokens", number(usage.completion_tokens)),
        ("total_tokens", number(usage.total())),
        (
            "prompt_tokens_details",
            map([("cached_tokens", number(usage.cached_tokens))]),
        ),
        (
            "completion_tokens_details",
            map([("reasoning_tokens", number(usage.reasoning_tokens))]),
        ),
    ])
}

fn frame(kind: &str, model: &str, number: usize) -> Map {
    let mut frame = Map::new();
    frame.insert("id", format!("chatcmpl-{number}"));
    frame.insert("object", kind);
    frame.insert("created", CREATED);
    frame.insert("model", model);
    frame
}

/// The input of a tool as text.
pub(super) fn written(used: &ToolUse) -> String {
    used.arguments().to_string_lossy().into_owned()
}

/// A text in pieces, as models write it.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    /// Approximate bytes of a piece.
    const PIECE: usize = 12;
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE.min(rest.len())));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

pub(super) fn events(
    turn: &ModelTurn,
    model: &str,
    prompt_bytes: usize,
    number: usize,
) -> Vec<Said> {
    let event = |choices: Vec<Value>, tokens: Value| {
        let mut chunk = frame("chat.completion.chunk", model, number);
        chunk.insert("choices", choices);
        chunk.insert("usage", tokens);
        format!("data: {}\n\n", Value::Object(chunk).to_json_string())
    };
    let choice = |delta: Value| {
        let choice = map([
            ("index", 0.0.into()),
            ("delta", delta),
            ("finish_reason", Value::Null),
        ]);
        event(vec![choice], Value::Null)
    };
    let start = map([("role", "assistant".into()), ("content", "".into())]);
    let mut said = vec![Said::Start(choice(start))];
    let mut tools = 0;
    for piece in turn.pieces() {
        said.push(Said::Piece(match piece {
            StreamEvent::Thinking(text) => vec![choice(map([("reasoning_content", text.into())]))],
            StreamEvent::Text(text) => vec![choice(map([(said_as(turn), text.into())]))],
            StreamEvent::ToolUse(used) => {
                let call = |call: Value| choice(map([("tool_calls", vec![call].into())]));
                let at = f64::from(tools);
                tools += 1;
                let function = map([
                    ("name", used.name.as_str().into()),
                    ("arguments", "".into()),
                ]);
                let mut events = vec![call(map([
                    ("index", at.into()),
                    ("id", used.id.as_str().into()),
                    ("type", "function".into()),
                    ("function", function),
                ]))];
                events.extend(pieces(&written(&used)).into_iter().map(|piece| {
                    let function = map([("arguments", piece.into())]);
                    call(map([("index", at.into()), ("function", function)]))
                }));
                events
            }
            _ => Vec::new(),
        }));
    }
    let stop = turn.stop_reason();
    let (word, by) = reason(&stop);
    let mut end = Map::new();
    end.insert("index", 0.0);
    end.insert("delta", Value::Object(Map::new()));
    end.insert("finish_reason", word);
    if let Some(by) = by {
        end.insert("stop_reason", by);
    }
    said.push(Said::End(event(vec![end.into()], Value::Null)));
    said.push(Said::End(event(
        Vec::new(),
        usage(turn.tokens(prompt_bytes)),
    )));
    said.push(Said::End("data: [DONE]\n\n".to_owned()));
    said
}

pub(super) fn whole(turn: &ModelTurn, model: &str, prompt_bytes: usize, number: usize) -> Value {
    let mut message = Map::new();
    message.insert("role", "assistant");
    message.insert("content", Value::Null);
    message.insert(said_as(turn), turn.text.concat());
    if !turn.thinking.is_empty() {
        message.insert("reasoning_content", turn.thinking.concat());
    }
    let calls = turn.tools.iter().map(|used| {
        let function = map([
            ("name", used.name.as_str().into()),
            ("arguments", written(used).into()),
        ]);
        map([
            ("id", used.id.as_str().into()),
            ("type", "function".into()),
            ("function", function),
        ])
    });
    let calls: Vec<Value> = calls.collect();
    if !calls.is_empty() {
        message.insert("tool_calls", calls);
    }
    let stop = turn.stop_reason();
    let (word, by) = reason(&stop);
    let mut choice = Map::new();
    choice.insert("index", 0.0);
    choice.insert("message", message);
    choice.insert("finish_reason", word);
    if let Some(by) = by {
        choice.insert("stop_reason", by);
    }
    let mut answer = frame("chat.completion", model, number);
    answer.insert("choices", vec![Value::Object(choice)]);
    answer.insert("usage", usage(turn.tokens(prompt_bytes)));
    answer.into()
}
