//! Turns in the format of OpenAI's responses.

use super::Said;
use super::openai::{pieces, written};
use crate::wire::map;
use a99_capabilities::ai::{ModelTurn, StopReason, StreamEvent, ToolUse, Usage};
use a99_core::value::{Map, Value};

fn usage(usage: Usage) -> Value {
    let number = |n: u64| Value::Number(n as f64);
    let cached = map([("cached_tokens", number(usage.cached_tokens))]);
    let thought = map([("reasoning_tokens", number(usage.reasoning_tokens))]);
    map([
        ("input_tokens", number(usage.prompt_tokens)),
        ("input_tokens_details", cached),
        ("output_tokens", number(usage.completion_tokens)),
        ("output_tokens_details", thought),
        ("total_tokens", number(usage.total())),
    ])
}

fn reasoning(text: &str, number: usize) -> Value {
    let part = map([("type", "summary_text".into()), ("text", text.into())]);
    map([
        ("type", "reasoning".into()),
        ("id", format!("rs_{number}").into()),
        ("summary", vec![part].into()),
        ("encrypted_content", format!("encrypted-{number}").into()),
    ])
}

fn message(turn: &ModelTurn, text: &str, number: usize) -> Value {
    let (kind, key) = match turn.stop_reason() {
        StopReason::Refusal => ("refusal", "refusal"),
        _ => ("output_text", "text"),
    };
    let part = map([("type", kind.into()), (key, text.into())]);
    map([
        ("type", "message".into()),
        ("id", format!("msg_{number}").into()),
        ("role", "assistant".into()),
        ("status", "completed".into()),
        ("content", vec![part].into()),
    ])
}

fn call(used: &ToolUse) -> Value {
    map([
        ("type", "function_call".into()),
        ("id", format!("fc_{}", used.id).into()),
        ("call_id", used.id.as_str().into()),
        ("name", used.name.as_str().into()),
        ("arguments", written(used).into()),
        ("status", "completed".into()),
    ])
}

fn output(turn: &ModelTurn, number: usize) -> Vec<Value> {
    let mut output = Vec::new();
    let (thinking, text) = (turn.thinking.concat(), turn.text.concat());
    if !thinking.is_empty() {
        output.push(reasoning(&thinking, number));
    }
    if !text.is_empty() {
        output.push(message(turn, &text, number));
    }
    output.extend(turn.tools.iter().map(call));
    output
}

pub(super) fn whole(turn: &ModelTurn, model: &str, prompt_bytes: usize, number: usize) -> Value {
    let stop = turn.stop_reason();
    let why = match &stop {
        StopReason::MaxTokens => Some("max_output_tokens"),
        StopReason::ContentFilter => Some("content_filter"),
        _ => None,
    };
    let status = match &stop {
        _ if why.is_some() => "incomplete",
        StopReason::Other(word) => word,
        _ => "completed",
    };
    let mut response = Map::new();
    response.insert("id", format!("resp_{number}"));
    response.insert("object", "response");
    response.insert("model", model);
    response.insert("status", status);
    if let Some(why) = why {
        response.insert("incomplete_details", map([("reason", why.into())]));
    }
    response.insert("output", output(turn, number));
    response.insert("usage", usage(turn.tokens(prompt_bytes)));
    response.into()
}

fn event(kind: &str, members: Vec<(&str, Value)>) -> String {
    let mut data = Map::new();
    data.insert("type", kind);
    for (key, value) in members {
        data.insert(key, value);
    }
    let data = Value::Object(data).to_json_string();
    format!("event: {kind}\ndata: {data}\n\n")
}

pub(super) fn events(
    turn: &ModelTurn,
    model: &str,
    prompt_bytes: usize,
    number: usize,
) -> Vec<Said> {
    let refused = turn.stop_reason() == StopReason::Refusal;
    let start = map([
        ("id", format!("resp_{number}").into()),
        ("status", "in_progress".into()),
    ]);
    let created = event("response.created", vec![("response", start)]);
    let mut said = vec![Said::Start(created)];
    // Item indices: thinking, text, then tools.
    let text_at = u32::from(!turn.thinking.is_empty());
    let mut tool_at = text_at + u32::from(!turn.text.concat().is_empty());
    let at = |n: u32| ("output_index", f64::from(n).into());
    let mut thought = (text_at > 0).then(|| reasoning(&turn.thinking.concat(), number));
    let done = |place, item| event("response.output_item.done", vec![place, ("item", item)]);
    for piece in turn.pieces() {
        let is_thinking = matches!(piece, StreamEvent::Thinking(_));
        if let Some(item) = thought.take_if(|_| !is_thinking) {
            said.push(Said::Start(done(at(0), item)));
        }
        said.push(Said::Piece(match piece {
            StreamEvent::Thinking(text) => vec![event(
                "response.reasoning_summary_text.delta",
                vec![at(0), ("delta", text.into())],
            )],
            StreamEvent::Text(text) => {
                let kind = match refused {
                    true => "response.refusal.delta",
                    false => "response.output_text.delta",
                };
                vec![event(kind, vec![at(text_at), ("delta", text.into())])]
            }
            StreamEvent::ToolUse(used) => {
                let place = at(tool_at);
                tool_at += 1;
                let mut events: Vec<String> = pieces(&written(&used))
                    .into_iter()
                    .map(|piece| {
                        let members = vec![place.clone(), ("delta", piece.into())];
                        event("response.function_call_arguments.delta", members)
                    })
                    .collect();
                events.push(done(place, call(&used)));
                events
            }
            _ => Vec::new(),
        }));
    }
    let whole = whole(turn, model, prompt_bytes, number);
    let kind = match whole.get("status").and_then(Value::as_str) {
        Some("incomplete") => "response.incomplete",
        _ => "response.completed",
    };
    said.push(Said::End(event(kind, vec![("response", whole)])));
    said
}
