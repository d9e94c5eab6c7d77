//! The trace: one event for each executed step, in order of completion (language section
//! 4.10), its sinks and its bounded log.

use crate::link::Executable;
use crate::wire::{Reader, Taken, Writer};
use a99_core::fuel::Fuel;
use a99_core::program::{Program, Step};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
pub(crate) use a99_run::events::CALL_BYTES;
use a99_run::events::{EventSink, RunEventKind};
pub use a99_run::events::{TraceCall, TraceCallEnd, TraceEvent};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// The index at the end of a pointer.
pub(crate) fn index_of(pointer: &str) -> Option<u32> {
    pointer.rsplit('/').next()?.parse().ok()
}

/// A step's input for the trace and price functions: the step without `op` and `result`;
/// empty for a program without source.
pub(crate) fn step_input(program: &Program, step: &Step, is_main: bool) -> Value {
    let mut map = Map::new();
    let Some(doc) = program.source.document() else {
        return Value::Object(map);
    };
    if step.implicit {
        let op = program.text(program.ops[step.op as usize].name);
        let key = if op == b"hash" { "value" } else { "steps" };
        // For a missing list, the place is the step that should have it.
        if doc.get(step.node, "op").is_none() {
            map.insert(key, doc.to_value(step.node));
        }
    } else {
        for (key, node) in doc.members(step.node) {
            // Helpers of the root, which an inline program inherits, are not part of a step.
            let helpers = key == b"helpers" && step.node == doc.root() && !is_main;
            if !matches!(key, b"op" | b"result") && !helpers {
                map.insert(Text::from_wtf8(key.to_vec()), doc.to_value(node));
            }
        }
    }
    Value::Object(map)
}

/// Writes a call.
pub(crate) fn save_call(call: &TraceCall, w: &mut Writer) {
    w.bytes(call.id.to_string().as_bytes());
    w.bytes(call.op.as_bytes());
    w.f64(call.started);
    w.u64(call.bytes_out as u64);
    if w.is_some(call.end.as_ref())
        && let Some(end) = call.end
    {
        w.f64(end.ended);
        w.u64(end.bytes_in as u64);
        w.bool(end.failed);
    }
}

/// Reads a list of calls.
pub(crate) fn load_calls(r: &mut Reader<'_>) -> Taken<Vec<TraceCall>> {
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

/// Receives trace events while a run is in progress: a function, or the sending end of a
/// bounded channel.
///
/// The sink is called on the run's thread, between two instructions, and its time counts as
/// the run's: a blocking sink delays the deadline check. One event holds values of at most
/// [`Limits::trace_bytes`](crate::Limits::trace_bytes), and the engine does not keep it. A
/// sink that panics is not called again, and the run gets a warning.
///
/// Events of sub-agents in the same machine are included; those of runs that a capability
/// starts are not.
pub trait TraceSink: Send + Sync {
    /// Takes an event.
    fn event(&self, event: &TraceEvent);

    /// Takes the end of a step. The default converts it to an event; sinks that write many
    /// events override it to copy only the parts they need.
    fn step(&self, step: &TraceStep<'_>) {
        self.event(&step.to_event());
    }

    /// Called when a host call is made. The event of its step will include it.
    fn call_started(&self, _call: &TraceCall) {}

    /// Called when the run takes the answer of a call.
    fn call_ended(&self, _call: &TraceCall) {}
}

/// The end of a step: a [`TraceEvent`] before its values are copied.
#[derive(Copy, Clone, Debug)]
pub struct TraceStep<'a> {
    /// Number of the event in its run.
    pub sequence: u64,
    /// Number of enclosing steps that have not ended.
    pub depth: u32,
    /// Variables of its scope that the step changed, with their new values.
    pub state_diff: &'a Map,
    /// The value of the step.
    pub result: &'a Value,
    /// The message of the step's own failure.
    pub error: Option<&'a Text>,
    /// Fuel left before the step's own price.
    pub fuel_before: Fuel,
    /// Fuel left at the end of the step.
    pub fuel_after: Fuel,
    /// End of the step, in milliseconds since 1970.
    pub time: f64,
    /// Host calls of the step, in order.
    pub calls: &'a [TraceCall],
    pub(crate) exe: &'a Arc<Executable>,
    pub(crate) function: usize,
    pub(crate) step: u32,
    pub(crate) is_main: bool,
}

impl TraceStep<'_> {
    fn place(&self) -> &Step {
        &self.exe.program().functions[self.function].steps[self.step as usize]
    }

    /// RFC 6901 pointer to the step in its program, if the program has a source.
    #[must_use]
    pub fn pointer(&self) -> Option<String> {
        self.exe.program().source.pointer(self.place().node)
    }

    /// Line and column in the original text, if that text is not JSON.
    #[must_use]
    pub fn line_col(&self) -> Option<(u32, u32)> {
        self.exe.program().source.line_col(self.place().node)
    }

    /// The name of its op.
    #[must_use]
    pub fn op(&self) -> &[u8] {
        let program = self.exe.program();
        program.text(program.ops[self.place().op as usize].name)
    }

    /// The step's source, without `op` and `result`.
    #[must_use]
    pub fn input(&self) -> Value {
        step_input(self.exe.program(), self.place(), self.is_main)
    }

    /// The event, with copies of all values.
    #[must_use]
    pub fn to_event(&self) -> TraceEvent {
        let pointer = self.pointer();
        TraceEvent {
            sequence: self.sequence,
            depth: self.depth,
            index: pointer.as_deref().and_then(index_of),
            pointer,
            op: Text::from_wtf8(self.op().to_vec()),
            input: self.input(),
            state_diff: self.state_diff.clone(),
            result: self.result.clone(),
            error: self.error.cloned(),
            fuel_before: self.fuel_before,
            fuel_after: self.fuel_after,
            timestamp: a99_ecma::date::to_iso(self.time),
            calls: self.calls.to_vec(),
        }
    }
}

impl<F: Fn(&TraceEvent) + Send + Sync> TraceSink for F {
    fn event(&self, event: &TraceEvent) {
        self(event);
    }
}

/// A full channel drops events; [`TraceEvent::sequence`] shows the gap.
impl TraceSink for SyncSender<TraceEvent> {
    fn event(&self, event: &TraceEvent) {
        // A slow or closed receiver does not affect the run.
        let _ = self.try_send(event.clone());
    }
}

/// Without room an event is dropped and counted ([`RunEventKind::Missed`]): steps do not
/// wait.
impl TraceSink for EventSink {
    fn event(&self, event: &TraceEvent) {
        if !self.is_closed() {
            self.try_send(RunEventKind::Step(Box::new(event.clone())));
        }
    }
}

/// Estimated size of an event without its values, in bytes.
const EVENT_BYTES: usize = 256;

/// A bounded log of events, which drops the oldest when it is full (M06, M07).
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

    /// Adds an event with values of about `size` bytes; returns the log's size in bytes.
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
            event.calls.iter().for_each(|call| save_call(call, w));
        }
    }

    /// Reads the events; returns the log's size in bytes.
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
                calls: load_calls(r)?,
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
