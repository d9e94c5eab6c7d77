//! The trace: one event for each step that ran, in order of completion
//! (language section 4.10).

use crate::run::snapshot::wire::{Reader, Taken, Writer};
use a99_core::call_id::CallId;
use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;

/// What one step did. Serializes as [`TraceEvent::to_json`].
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// The number of the event in its run, from 0, in the order in which steps
    /// ended: those that a full trace has dropped are counted, too.
    pub sequence: u64,
    /// In how many steps the step lies that have not ended: 0 for the program's own
    /// `seq`, 1 for its steps.
    pub depth: u32,
    /// RFC 6901 pointer to the step in its program, or to the list of steps for a
    /// `seq` that nobody wrote; none where the program came
    /// without its source, or an atom wrote the event.
    pub pointer: Option<String>,
    /// The step's index in its list of steps, from 0, if it stands in one.
    pub index: Option<u32>,
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
    /// Calls of the host that it made, in their order.
    pub calls: Vec<TraceCall>,
}

impl TraceEvent {
    /// The event with the references' member names, and only these: `op`, `input`,
    /// `stateDiff`, `result` and `error` where there are any, `fuelBefore` and
    /// `fuelAfter` in units, `timestamp`.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        self.write(&mut map);
        Value::Object(map)
    }

    /// The event as an object, that of a line of `a99 run --trace`: the numbers
    /// `sequence`, `depth` and `index` and the string `pointer`, the latter two
    /// where there are any, then all of [`TraceEvent::to_value`], and `calls` where there
    /// are any, each as [`TraceCall::to_json`] has it.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        // Far below what a double counts exactly.
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

/// A call of the host that a step made.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceCall {
    /// Which of the run's calls it is.
    pub id: CallId,
    /// The atom's name: in a `callAll` another one than the step's.
    pub op: Text,
    /// When it was made, in milliseconds since 1970 by the engine's clock.
    pub started: f64,
    /// Bytes that its inputs take in memory, about.
    pub bytes_out: usize,
    /// How it ended; nothing if the run did not wait for that.
    pub end: Option<TraceCallEnd>,
}

/// How a call of the host ended.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct TraceCallEnd {
    /// When the run took the answer, as [`TraceCall::started`] is given. Those of a
    /// `callAll` are taken together.
    pub ended: f64,
    /// Bytes that the answer takes in memory, about.
    pub bytes_in: usize,
    /// Whether it is an error.
    pub failed: bool,
}

impl TraceCall {
    /// Milliseconds between its start and its end.
    #[must_use]
    pub fn duration_ms(&self) -> Option<f64> {
        let end = self.end?;
        Some((end.ended - self.started).max(0.0))
    }

    /// The call as an object: `id`, `op`, `started` (ISO 8601), `bytesOut`, and, where it
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

    /// Writes the call.
    pub(crate) fn save(&self, w: &mut Writer) {
        w.bytes(self.id.to_string().as_bytes());
        w.bytes(self.op.as_bytes());
        w.f64(self.started);
        w.u64(self.bytes_out as u64);
        if w.is_some(self.end.as_ref())
            && let Some(end) = self.end
        {
            w.f64(end.ended);
            w.u64(end.bytes_in as u64);
            w.bool(end.failed);
        }
    }

    /// Reads a list of them.
    pub(crate) fn load_all(r: &mut Reader<'_>) -> Taken<Vec<TraceCall>> {
        let mut calls = Vec::new();
        for _ in 0..r.len(25, CALL_BYTES)? {
            let Some(id) = r.text()?.to_str().and_then(|id| id.parse().ok()) else {
                return r.wrong("a call has no identity");
            };
            calls.push(TraceCall {
                id,
                op: r.text()?,
                started: r.f64()?,
                bytes_out: usize::try_from(r.u64()?).unwrap_or(usize::MAX),
                end: match r.bool()? {
                    false => None,
                    true => Some(TraceCallEnd {
                        ended: r.f64()?,
                        bytes_in: usize::try_from(r.u64()?).unwrap_or(usize::MAX),
                        failed: r.bool()?,
                    }),
                },
            });
        }
        Ok(calls)
    }
}

/// Estimated bytes of a call in memory.
pub(crate) const CALL_BYTES: usize = 192;

/// What takes the events of a run while it goes on: a function, or the sending
/// end of a bounded channel.
///
/// It is called on the run's thread, between two instructions, and its time is
/// the run's: a sink that waits keeps the run from its deadline. One event holds
/// values of at most [`Limits::trace_bytes`](crate::Limits::trace_bytes), and the
/// engine keeps none of it. A sink that panics is not called again, which a
/// warning of the run tells.
///
/// The events of sub-agents that run in the same machine are among them; those of
/// runs that a capability starts are not.
pub trait TraceSink: Send + Sync {
    /// Takes an event.
    fn event(&self, event: &TraceEvent);

    /// A call of the host is made; its step will have it in its event.
    fn call_started(&self, _call: &TraceCall) {}

    /// The run takes the answer of a call.
    fn call_ended(&self, _call: &TraceCall) {}
}

impl<F: Fn(&TraceEvent) + Send + Sync> TraceSink for F {
    fn event(&self, event: &TraceEvent) {
        self(event);
    }
}

/// What finds the channel full is dropped; [`TraceEvent::sequence`] shows the gap.
impl TraceSink for SyncSender<TraceEvent> {
    fn event(&self, event: &TraceEvent) {
        // Neither a slow receiver nor one that is gone is the run's matter.
        let _ = self.try_send(event.clone());
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
        sum += self.pointer.as_ref().map_or(0, String::len);
        sum += self.calls.len() * CALL_BYTES;
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

    /// Writes the events.
    pub(crate) fn save(&self, w: &mut Writer) {
        w.u64(self.dropped);
        w.len(self.events.len());
        for (event, _) in &self.events {
            w.u64(event.sequence);
            w.u32(event.depth);
            let pointer = event.pointer.as_deref().map(str::as_bytes);
            if w.is_some(pointer.as_ref()) {
                w.bytes(pointer.unwrap_or_default());
            }
            if w.is_some(event.index.as_ref()) {
                w.u32(event.index.unwrap_or_default());
            }
            w.bytes(event.op.as_bytes());
            w.value(&event.input);
            w.map(&event.state_diff);
            w.value(&event.result);
            if w.is_some(event.error.as_ref())
                && let Some(error) = &event.error
            {
                w.bytes(error.as_bytes());
            }
            w.i64(event.fuel_before.micro());
            w.i64(event.fuel_after.micro());
            w.bytes(event.timestamp.as_bytes());
            w.len(event.calls.len());
            event.calls.iter().for_each(|call| call.save(w));
        }
    }

    /// Reads them; returns how many bytes the log holds now.
    pub(crate) fn load(&mut self, r: &mut Reader<'_>) -> Taken<usize> {
        let dropped = r.count()?;
        for _ in 0..r.len(34, EVENT_BYTES)? {
            let (sequence, depth) = (r.count()?, r.u32()?);
            let pointer = match r.bool()? {
                true => Some(r.text()?.to_string()),
                false => None,
            };
            let index = match r.bool()? {
                true => Some(r.u32()?),
                false => None,
            };
            let op = r.text()?;
            let input = r.value()?;
            let Value::Object(state_diff) = r.value()? else {
                return r.wrong("the changes of a step are no object");
            };
            let result = r.value()?;
            let error = match r.bool()? {
                true => Some(r.text()?),
                false => None,
            };
            let (before, after) = (r.i64()?, r.i64()?);
            let timestamp = r.text()?.to_string();
            let event = TraceEvent {
                sequence,
                depth,
                pointer,
                index,
                op,
                input,
                state_diff,
                result,
                error,
                fuel_before: Fuel::from_micro(before),
                fuel_after: Fuel::from_micro(after),
                timestamp,
                calls: TraceCall::load_all(r)?,
            };
            let size = event.held_bytes();
            self.push(event, size);
        }
        self.dropped = self.dropped.saturating_add(dropped);
        Ok(self.bytes)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn into_events(self) -> Vec<TraceEvent> {
        self.events.into_iter().map(|(event, _)| event).collect()
    }
}
