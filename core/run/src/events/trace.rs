//! Trace events: one for each executed step, in order of completion (language section 4.10).

use crate::events::{MEMBER_BYTES, VALUE_BYTES, held_bytes};
use a99_core::call_id::CallId;
use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use serde::{Serialize, Serializer};

/// The execution of one step. Serializes as [`TraceEvent::to_json`].
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// Number of the event in its run, from 0, in the order in which steps ended. Events that
    /// a full trace has dropped count too.
    pub sequence: u64,
    /// Number of enclosing steps that have not ended: 0 for the program's own `seq`, 1 for
    /// its steps.
    pub depth: u32,
    /// RFC 6901 pointer to the step in its program, or to the list of steps for an implicit
    /// `seq`. `None` if the program has no source, or an atom wrote the event.
    pub pointer: Option<String>,
    /// Index of the step in its list of steps, from 0, if it is in one.
    pub index: Option<u32>,
    /// The op of the step.
    pub op: Text,
    /// The step's source, without `op` and `result`.
    pub input: Value,
    /// Variables of its scope that the step changed, with their new values.
    pub state_diff: Map,
    /// The value of the step.
    pub result: Value,
    /// The message of the step's own failure.
    pub error: Option<Text>,
    /// Fuel left before the step's own price.
    pub fuel_before: Fuel,
    /// Fuel left at the end of the step; zero if the budget was overdrawn.
    pub fuel_after: Fuel,
    /// End of the step, ISO 8601 (D43).
    pub timestamp: String,
    /// Host calls of the step, in order.
    pub calls: Vec<TraceCall>,
}

impl TraceEvent {
    /// The event with the references' member names, and only these: `op`, `input`,
    /// `stateDiff`, `result` and `error` if present, `fuelBefore` and `fuelAfter` in units,
    /// `timestamp`.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        self.write(&mut map);
        Value::Object(map)
    }

    /// The event as an object, as in a line of `a99 run --trace`: the numbers `sequence`,
    /// `depth` and `index` and the string `pointer`, the latter two if present, then all of
    /// [`TraceEvent::to_value`], and `calls` if there are any, each as
    /// [`TraceCall::to_json`].
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        // Far below the limit of exact integers in a double.
        map.insert("sequence", self.sequence as f64);
        map.insert("depth", f64::from(self.depth));
        if let Some(pointer) = &self.pointer {
            map.insert("pointer", pointer.as_str());
        }
        if let Some(index) = self.index {
            map.insert("index", f64::from(index));
        }
        self.write(&mut map);
        if !self.calls.is_empty() {
            let calls = self.calls.iter().map(TraceCall::to_json);
            map.insert("calls", Value::Array(calls.collect()));
        }
        Value::Object(map)
    }

    fn write(&self, map: &mut Map) {
        map.insert("op", Value::String(self.op.clone()));
        map.insert("input", self.input.clone());
        map.insert("stateDiff", Value::Object(self.state_diff.clone()));
        if !self.result.is_undefined() {
            map.insert("result", self.result.clone());
        }
        if let Some(error) = &self.error {
            map.insert("error", Value::String(error.clone()));
        }
        map.insert("fuelBefore", Value::Number(self.fuel_before.to_f64()));
        map.insert("fuelAfter", Value::Number(self.fuel_after.to_f64()));
        map.insert("timestamp", Value::from(self.timestamp.as_str()));
    }
}

impl Serialize for TraceEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// A host call of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceCall {
    /// Id of the call in its run.
    pub id: CallId,
    /// The atom's name; in a `callAll` it differs from the step's.
    pub op: Text,
    /// Start of the call, in milliseconds since 1970 by the engine's clock.
    pub started: f64,
    /// Approximate size of the inputs in memory, in bytes.
    pub bytes_out: usize,
    /// The end of the call; `None` if the run did not wait for it.
    pub end: Option<TraceCallEnd>,
}

/// The end of a host call.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct TraceCallEnd {
    /// Time at which the run took the answer, in the unit of [`TraceCall::started`]. The
    /// answers of a `callAll` are taken together.
    pub ended: f64,
    /// Approximate size of the answer in memory, in bytes.
    pub bytes_in: usize,
    /// Whether the answer is an error.
    pub failed: bool,
}

impl TraceCall {
    /// Milliseconds from start to end.
    #[must_use]
    pub fn duration_ms(&self) -> Option<f64> {
        let end = self.end?;
        Some((end.ended - self.started).max(0.0))
    }

    /// The call as an object: `id`, `op`, `started` (ISO 8601), `bytesOut`, and, if it has
    /// ended, `durationMs`, `bytesIn` and `failed`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("id", self.id.to_string());
        map.insert("op", Value::String(self.op.clone()));
        map.insert("started", a99_ecma::date::to_iso(self.started));
        map.insert("bytesOut", self.bytes_out as f64);
        if let (Some(end), Some(duration)) = (self.end, self.duration_ms()) {
            map.insert("durationMs", duration);
            map.insert("bytesIn", end.bytes_in as f64);
            map.insert("failed", end.failed);
        }
        Value::Object(map)
    }
}

/// Estimated size of a call in memory, in bytes.
pub const CALL_BYTES: usize = 192;

impl TraceEvent {
    /// Estimated size of the event's data in memory, in bytes. It is many times the JSON text
    /// if values are small.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let text = |text: &Text| text.len_bytes() + VALUE_BYTES;
        let mut sum = text(&self.op) + self.error.as_ref().map_or(0, text);
        sum += self.pointer.as_ref().map_or(0, String::len);
        sum += self.calls.len() * CALL_BYTES;
        let mut todo = vec![&self.input, &self.result];
        for (key, value) in self.state_diff.iter() {
            sum += MEMBER_BYTES + key.len_bytes();
            todo.push(value);
        }
        sum + held_bytes(todo)
    }
}
