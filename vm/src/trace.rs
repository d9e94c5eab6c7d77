//! The trace: one event for each step that ran, in order of completion
//! (language section 4.10).

use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::collections::VecDeque;

/// What one step did.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// Its op.
    pub op: Text,
    /// The step as written, without `op` and `result`.
    pub input: Value,
    /// Variables of its scope that it changed, with their new values.
    pub state_diff: Map,
    /// The value it returned.
    pub result: Value,
    /// The message it failed with, if it failed itself.
    pub error: Option<Text>,
    /// Fuel left before its own price was taken.
    pub fuel_before: Fuel,
    /// Fuel left when it ended; zero where the budget was overdrawn.
    pub fuel_after: Fuel,
    /// When it ended, ISO 8601 (D43).
    pub timestamp: String,
}

impl TraceEvent {
    /// The event with the references' member names.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
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
        Value::Object(map)
    }
}

/// Estimated bytes of a value in memory, its place in an array included.
const VALUE_BYTES: usize = 40;

/// Estimated bytes of a member of an object beyond its key and value.
const MEMBER_BYTES: usize = 120;

impl TraceEvent {
    /// Estimated bytes that the event takes in memory beyond itself, which is
    /// many times its JSON text where values are small.
    pub(crate) fn held_bytes(&self) -> usize {
        let text = |text: &Text| text.len_bytes() + VALUE_BYTES;
        let mut sum = text(&self.op) + self.error.as_ref().map_or(0, text);
        let mut todo = vec![&self.input, &self.result];
        let mut members = Vec::from([&self.state_diff]);
        while !(todo.is_empty() && members.is_empty()) {
            while let Some(map) = members.pop() {
                for (key, value) in map.iter() {
                    sum += MEMBER_BYTES + key.len_bytes();
                    todo.push(value);
                }
            }
            while let Some(value) = todo.pop() {
                sum += VALUE_BYTES;
                match value {
                    Value::String(text) => sum += text.len_bytes(),
                    Value::Array(items) => todo.extend(items),
                    Value::Object(map) => members.push(map),
                    _ => {}
                }
            }
        }
        sum
    }
}

/// Estimated bytes of an event beyond its values.
const EVENT_BYTES: usize = 256;

/// A bounded log of events: the oldest are dropped when it is full (M06, M07).
#[derive(Debug)]
pub(crate) struct TraceLog {
    events: VecDeque<(TraceEvent, usize)>,
    bytes: usize,
    limit: usize,
    dropped: u64,
}

impl TraceLog {
    pub(crate) fn new(limit: usize) -> TraceLog {
        TraceLog {
            events: VecDeque::new(),
            bytes: 0,
            limit,
            dropped: 0,
        }
    }

    /// Adds an event whose values take about `size` bytes; returns how many
    /// bytes the log holds now.
    pub(crate) fn push(&mut self, event: TraceEvent, size: usize) -> usize {
        let size = size + EVENT_BYTES;
        self.bytes += size;
        self.events.push_back((event, size));
        while self.bytes > self.limit && self.events.len() > 1 {
            if let Some((_, size)) = self.events.pop_front() {
                self.bytes -= size;
                self.dropped += 1;
            }
        }
        self.bytes
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn into_events(self) -> Vec<TraceEvent> {
        self.events.into_iter().map(|(event, _)| event).collect()
    }
}
