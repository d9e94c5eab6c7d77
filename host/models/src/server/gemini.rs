//! Turns in Gemini's `generateContent` format.

use super::Said;
use crate::wire::map;
use a99_capabilities::ai::{ModelTurn, StopReason, StreamEvent, ToolUse, Usage};
use a99_core::value::{Map, Value};

fn reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse => "STOP",
        StopReason::MaxTokens => "MAX_TOKENS",
        StopReason::Refusal => "REFUSAL",
        StopReason::ContentFilter => "SAFETY",
        other => other.name(),
    }
}

fn usage(usage: Usage) -> Value {
    let number = |n: u64| Value::Number(n as f64);
    let said = usage
        .completion_tokens
        .saturating_sub(usage.reasoning_tokens);
    map([
        ("promptTokenCount", number(usage.prompt_tokens)),
        ("candidatesTokenCount", number(said)),
        ("thoughtsTokenCount", number(usage.reasoning_tokens)),
        ("cachedContentTokenCount", number(usage.cached_tokens)),
        ("totalTokenCount", number(usage.total())),
    ])
}

fn call(used: &ToolUse, number: usize) -> Value {
    let call = map([
        ("id", used.id.as_str().into()),
        ("name", used.name.as_str().into()),
        ("args", used.input.clone()),
    ]);
    map([
        ("functionCall", call),
        ("thoughtSignature", format!("signature-{number}").into()),
    ])
}

fn part(piece: StreamEvent, number: usize) -> Option<Value> {
    Some(match piece {
        StreamEvent::Thinking(text) => map([("text", text.into()), ("thought", true.into())]),
        StreamEvent::Text(text) => map([("text", text.into())]),
        StreamEvent::ToolUse(used) => call(&used, number),
        _ => return None,
    })
}

fn answer(parts: Vec<Value>, end: Option<(&StopReason, Usage)>, model: &str, n: usize) -> Value {
    let content = map([("role", "model".into()), ("parts", parts.into())]);
    let mut candidate = Map::new();
    candidate.insert("content", content);
    candidate.insert("index", 0.0);
    if let Some((stop, _)) = end {
        candidate.insert("finishReason", reason(stop));
    }
    let mut answer = Map::new();
    answer.insert("candidates", vec![Value::Object(candidate)]);
    if let Some((_, tokens)) = end {
        answer.insert("usageMetadata", usage(tokens));
    }
    answer.insert("modelVersion", model);
    answer.insert("responseId", format!("response-{n}"));
    answer.into()
}

fn event(answer: &Value) -> String {
    format!("data: {}\r\n\r\n", answer.to_json_string())
}

pub(super) fn events(
    turn: &ModelTurn,
    model: &str,
    prompt_bytes: usize,
    number: usize,
) -> Vec<Said> {
    let mut said = Vec::new();
    for piece in turn.pieces() {
        let parts = part(piece, number).into_iter().collect();
        said.push(Said::Piece(vec![event(&answer(
            parts, None, model, number,
        ))]));
    }
    let (stop, tokens) = (turn.stop_reason(), turn.tokens(prompt_bytes));
    let end = answer(Vec::new(), Some((&stop, tokens)), model, number);
    said.push(Said::End(event(&end)));
    said
}

pub(super) fn whole(turn: &ModelTurn, model: &str, prompt_bytes: usize, number: usize) -> Value {
    let parts = turn
        .pieces()
        .filter_map(|piece| part(piece, number))
        .collect();
    let (stop, tokens) = (turn.stop_reason(), turn.tokens(prompt_bytes));
    answer(parts, Some((&stop, tokens)), model, number)
}
