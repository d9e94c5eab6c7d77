//! Listed deviations: vectors whose outcome a decision changes, each with its full new outcome.

use super::read::parse;
use super::{EngineEvent, EngineOutcome};
use a99_core::fuel::Fuel;
use a99_core::value::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// One listed deviation.
#[derive(Clone, Debug)]
pub struct Deviation {
    /// The decision behind it, such as `D16`.
    pub decision: String,
    /// The new outcome, in the form of a vector's `expect`; `{"rejected": true}` for a refused
    /// program or condition.
    pub expect: Value,
    /// True if a fast machine may produce the recorded outcome: with a deadline the outcome
    /// depends on the run's progress.
    pub by_speed: bool,
}

/// Deviations by vector id.
pub type Deviations = BTreeMap<String, Deviation>;

/// Reads a list of deviations.
///
/// # Errors
/// A fault of the file; an id listed twice.
pub fn read(path: &Path) -> Result<Deviations, String> {
    let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut out = Deviations::new();
    for (number, line) in text.split(|b| *b == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let place = || format!("{}:{}", path.display(), number + 1);
        let value = parse(line).map_err(|e| format!("{}: {e}", place()))?;
        let part = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let (Some(id), Some(decision), Some(expect)) =
            (part("id"), part("decision"), value.get("expect"))
        else {
            return Err(format!("{}: needs id, decision and expect", place()));
        };
        let deviation = Deviation {
            decision,
            expect: expect.clone(),
            by_speed: value.get("bySpeed") == Some(&Value::Bool(true)),
        };
        if out.insert(id.clone(), deviation).is_some() {
            return Err(format!("{}: {id} is listed twice", place()));
        }
    }
    Ok(out)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut map = Map::new();
    for (key, value) in members {
        map.insert(key, value);
    }
    Value::Object(map)
}

/// A value in the notation of vectors, including markers.
pub(super) fn encode(value: &Value) -> Value {
    let mark = |name: &str, of: Value| object([(name, of)]);
    match value {
        Value::Undefined => mark("$undefined", Value::Bool(true)),
        Value::Number(n) if n.is_nan() => mark("$number", Value::String("NaN".into())),
        Value::Number(n) if n.is_infinite() => {
            let name = if *n > 0.0 { "Infinity" } else { "-Infinity" };
            mark("$number", Value::String(name.into()))
        }
        Value::Number(n) if *n == 0.0 && n.is_sign_negative() => {
            mark("$number", Value::String("-0".into()))
        }
        Value::Array(items) => Value::Array(items.iter().map(encode).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(k, v)| (k.clone(), encode(v))).collect())
        }
        other => other.clone(),
    }
}

fn fuel(amount: Fuel) -> Value {
    Value::Number(amount.to_f64())
}

fn event(event: &EngineEvent) -> Value {
    object([
        ("op", Value::String(event.op.clone())),
        ("input", encode(&event.input)),
        ("stateDiff", encode(&event.state_diff)),
        ("result", encode(&event.result)),
        (
            "error",
            event.error.clone().map_or(Value::Null, Value::String),
        ),
        ("fuelBefore", fuel(event.fuel_before)),
        ("fuelAfter", fuel(event.fuel_after)),
    ])
}

/// An outcome as an `expect`.
#[must_use]
pub(super) fn expect_of(outcome: &EngineOutcome) -> Value {
    let EngineOutcome::Ran {
        result,
        error,
        fuel_used,
        trace,
    } = outcome
    else {
        return object([("rejected", Value::Bool(true))]);
    };
    let error = match error {
        None => Value::Null,
        Some(e) => object([
            ("message", Value::String(e.message.clone())),
            ("op", Value::String(e.op.clone())),
        ]),
    };
    let mut out = object([
        ("result", encode(result)),
        ("error", error),
        ("fuelUsed", fuel(*fuel_used)),
    ]);
    if let (Value::Object(map), Some(trace)) = (&mut out, trace) {
        map.insert("trace", Value::Array(trace.iter().map(event).collect()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_go_both_ways() {
        let value = Value::Array(vec![
            Value::Undefined,
            Value::Number(f64::NAN),
            Value::Number(f64::NEG_INFINITY),
            Value::Number(-0.0),
            Value::Number(1.5),
        ]);
        let written = encode(&value);
        let text = r#"[{"$undefined":true},{"$number":"NaN"},{"$number":"-Infinity"},{"$number":"-0"},1.5]"#;
        assert_eq!(written.to_json_string(), text);
        assert_eq!(super::super::decode(&written), value);
    }
}
