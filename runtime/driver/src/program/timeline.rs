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

#[cfg(test)]
mod tests {
    use super::*;
    use a99_runtime_engine::Trigger;

    #[test]
    fn calls_have_their_times_and_tokens() {
        let start = Start {
            now: 1_000.0,
            seed: [7; 32],
            program: [8; 32],
        };
        let record = TurnRecord {
            start: start.encode().expect("a start"),
            fuel: 2_500_000,
            ..TurnRecord::default()
        };
        let head = serde_json::to_string(&record).expect("JSON");
        let line = |id: &str, answer: serde_json::Value| {
            let answer = answer.to_string();
            let line =
                serde_json::json!({"call": id, "atom": "llmChat", "inputs": "0", "answer": answer});
            format!("{line}\n")
        };
        let long = "x".repeat(3_000);
        let usage = serde_json::json!({"inputTokens": 11, "outputTokens": 3});
        let said = serde_json::json!({"text": long, "usage": usage});
        let first = line(
            "a",
            serde_json::json!({"at": 1_250, "charged": "500000", "value": said}),
        );
        let turn = |calls: &str| KeptTurn {
            trigger: Trigger::Event(1),
            base: 0,
            state: "{}".into(),
            record: format!("{head}\n{calls}"),
            keep: 1,
        };
        let shown = timeline(&turn(&first)).expect("readable");
        assert_eq!((shown.began, shown.fuel, shown.count), (1_000.0, 2.5, 1));
        let call = &shown.calls[0];
        assert_eq!((call.at, call.fuel), (1_250.0, 0.5));
        assert_eq!(
            (call.input_tokens, call.output_tokens),
            (Some(11.0), Some(3.0))
        );
        assert_eq!(call.value.chars().count(), MAX_VALUE + 1);
        assert_eq!(call.error, None);
        let many: String = (0..MAX_CALLS + 5)
            .map(|n| {
                line(
                    &n.to_string(),
                    serde_json::json!({"at": n, "charged": "0", "value": n}),
                )
            })
            .collect();
        let shown = timeline(&turn(&many)).expect("readable");
        assert_eq!((shown.count, shown.calls.len()), (MAX_CALLS + 5, MAX_CALLS));
        assert_eq!(timeline(&turn("no call\n")), None);
    }
}
