//! Time line of a kept turn: what it did and when, without running it again.

use super::record::TurnRecord;
use super::start::Start;
use a99_runtime_engine::KeptTurn;
use agent99::Value;
use agent99::account::Money;
use agent99::replay::{ModelUse, RecordedCall, Recording};
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
    /// Tokens of prompts of models; `None` if they are unknown.
    pub input_tokens: Option<u64>,
    /// Tokens of answers of models; `None` if they are unknown.
    pub output_tokens: Option<u64>,
    /// Money for models, in the unit of their prices; `None` if it is unknown.
    pub money: Option<f64>,
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
    /// Its use of models, if it asked one.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub models: Option<TimelineModels>,
    /// The beginning of the answer as JSON.
    pub value: String,
    /// Code and text of its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The use of models by a call. In JSON `null` is what is unknown.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineModels {
    /// Tokens of prompts.
    pub input_tokens: Option<u64>,
    /// Tokens of answers.
    pub output_tokens: Option<u64>,
    /// Money, in the unit of the models' prices.
    pub money: Option<f64>,
}

impl From<ModelUse> for TimelineModels {
    fn from(used: ModelUse) -> TimelineModels {
        let (input_tokens, output_tokens) = used.tokens.unzip();
        TimelineModels {
            input_tokens,
            output_tokens,
            money: used.money.map(Money::to_f64),
        }
    }
}

/// The use of models by a call. One that an earlier version kept has tokens in its answer at
/// most, as one of a model that the host does not count.
fn used(call: &RecordedCall) -> Option<ModelUse> {
    let in_answer = || {
        let reply = call.answered.result.as_ref().ok()?;
        let Some(usage) = reply.value.0.get("usage") else {
            let is_model = call.atom.starts_with("llm");
            return is_model.then(ModelUse::default);
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts saturate, and NaN is 0"
        )]
        let tokens = |name: &str| Some(usage.get(name)?.as_f64()? as u64);
        let tokens = tokens("inputTokens").zip(tokens("outputTokens"))?;
        Some(ModelUse {
            tokens: Some(tokens),
            money: None,
        })
    };
    call.answered.models.or_else(in_answer)
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
            models: used(call).map(TimelineModels::from),
            value: String::new(),
            error: None,
        };
        match &call.answered.result {
            Ok(reply) => {
                let value = &reply.value.0;
                shown.value = beginning(value.to_json_string());
            }
            Err(error) => {
                let text = format!("{}: {}", error.code.as_str(), error.message);
                shown.error = Some(beginning(text));
            }
        }
        Some(shown)
    });
    let nothing = ModelUse {
        tokens: Some((0, 0)),
        money: Some(Money::ZERO),
    };
    let (count, used) = (lines.count(), recording.calls.values().filter_map(used));
    let sum = used.fold(nothing, ModelUse::plus);
    // What the other calls used is not shown.
    let sum = if count > MAX_CALLS {
        ModelUse::default()
    } else {
        sum
    };
    let TimelineModels {
        input_tokens,
        output_tokens,
        money,
    } = sum.into();
    Some(TurnTimeline {
        began: start.now,
        fuel: record.fuel().to_f64(),
        input_tokens,
        output_tokens,
        money,
        count,
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
        let models = call.models.expect("a model");
        // An earlier version kept no money.
        assert_eq!(
            (models.input_tokens, models.output_tokens, models.money),
            (Some(11), Some(3), None)
        );
        assert_eq!((shown.input_tokens, shown.money), (Some(11), None));
        let cost = |money: serde_json::Value, id| {
            line(
                id,
                serde_json::json!({
                    "at": 1, "charged": "0", "value": "said", "models": ["5", "2", money],
                }),
            )
        };
        let known = format!(
            "{}{}",
            cost("250000".into(), "a"),
            cost("500000".into(), "b")
        );
        let shown = timeline(&turn(&known)).expect("readable");
        assert_eq!((shown.output_tokens, shown.money), (Some(4), Some(0.75)));
        let json = serde_json::to_value(&shown).expect("JSON");
        assert_eq!(json["calls"][0]["money"], 0.25);
        let unknown = format!("{known}{}", cost(serde_json::Value::Null, "c"));
        let shown = timeline(&turn(&unknown)).expect("readable");
        assert_eq!((shown.output_tokens, shown.money), (Some(6), None));
        let json = serde_json::to_value(&shown).expect("JSON");
        assert_eq!(
            (&json["money"], &json["calls"][2]["money"]),
            (&serde_json::Value::Null, &serde_json::Value::Null)
        );
        assert_eq!(json["calls"][2]["inputTokens"], 5);
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
