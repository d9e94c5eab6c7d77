//! Time line of a kept turn: what it did and when, without running it again.

use super::record::TurnRecord;
use super::start::Start;
use a99_runtime_engine::KeptTurn;
use agent99::Value;
use agent99::replay::Recording;
use serde::Serialize;

/// Maximum calls of a time line.
const MAX_CALLS: usize = 1_000;

/// Maximum characters of an answer in a time line.
const MAX_VALUE: usize = 2_000;

/// What a kept turn did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnTimeline {
    /// When it began, in milliseconds since 1970.
    pub began: f64,
    /// The fuel of the program's run.
    pub fuel: f64,
    /// Number of its calls.
    pub count: usize,
    /// The first thousand calls, in the order of their answers.
    pub calls: Vec<TimelineCall>,
    /// Number of sent events.
    pub sent: usize,
    /// Number of timers that it set and removed.
    pub timers: usize,
    /// Code and text of the error for which it was given up.
    pub error: Option<(String, String)>,
}

/// A call of a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineCall {
    /// The atom.
    pub atom: String,
    /// When its answer came, in milliseconds since 1970.
    pub at: f64,
    /// The fuel that it charged.
    pub fuel: f64,
    /// Tokens of the prompt of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<f64>,
    /// Tokens of the answer of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<f64>,
    /// The beginning of the answer as JSON.
    pub value: String,
    /// Code and text of its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The beginning of a text.
fn beginning(text: String) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The time line of a kept turn; `None` for an unreadable turn.
#[must_use]
pub fn timeline(turn: &KeptTurn) -> Option<TurnTimeline> {
    let record = TurnRecord::read(&turn.record)?;
    let start = Start::decode(&record.start)?;
    let lines = record.calls.as_deref().unwrap_or_default().lines();
    let mut recording = Recording::begin(Value::Null, start.now, start.seed, Vec::new());
    for line in lines.clone().take(MAX_CALLS) {
        if !recording.add(line) {
            return None;
        }
    }
    let calls = recording.order.iter().filter_map(|id| {
        let call = recording.calls.get(id)?;
        let mut shown = TimelineCall {
            atom: call.atom.clone(),
            at: call.answered.at,
            fuel: call.answered.charged.to_f64(),
            input_tokens: None,
            output_tokens: None,
            value: String::new(),
            error: None,
        };
        match &call.answered.result {
            Ok(reply) => {
                let value = &reply.value.0;
                let usage = value.get("usage");
                let tokens = |name: &str| usage?.get(name)?.as_f64();
                shown.input_tokens = tokens("inputTokens");
                shown.output_tokens = tokens("outputTokens");
                shown.value = beginning(value.to_json_string());
            }
            Err(error) => {
                let text = format!("{}: {}", error.code.as_str(), error.message);
                shown.error = Some(beginning(text));
            }
        }
        Some(shown)
    });
    Some(TurnTimeline {
        began: start.now,
        fuel: record.fuel().to_f64(),
        count: lines.count(),
        calls: calls.collect(),
        sent: record.sent.len(),
        timers: record.timers.len(),
        error: record.dead,
    })
}
