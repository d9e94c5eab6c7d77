//! Events of runs as lists: a number for the kind, then what the kind has.

use crate::asks::Request;
use crate::options::texts;
use agent99::{Call, CallId, LogLine, Map, Outcome, Quota, RunEvent, TraceEvent, Value};
use std::time::Duration;

/// Ids of calls and requests whose answers are no longer wanted.
pub(crate) struct NoLongerWanted {
    pub(crate) calls: Vec<CallId>,
    pub(crate) requests: Vec<u64>,
}

impl NoLongerWanted {
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.requests.is_empty()
    }

    fn value(self) -> Value {
        if self.is_empty() {
            return Value::Undefined;
        }
        let calls = self.calls.iter().map(|id| Value::from(id.to_string()));
        let requests = self.requests.iter().map(|id| Value::from(*id as f64));
        Value::Array(calls.chain(requests).collect())
    }
}

fn number(n: u64) -> Value {
    Value::Number(n as f64)
}

/// The end of a run.
pub(crate) fn done(outcome: Outcome, quotas: &[(String, Quota)]) -> Value {
    let optional = |value: Option<Value>| value.unwrap_or(Value::Undefined);
    let trace = outcome.trace.as_ref();
    let usage = outcome.usage.as_ref().filter(|usage| !usage.is_plain());
    let used = quotas
        .iter()
        .map(|(op, quota)| (op.as_str(), Value::from(quota.used() as f64)));
    Value::Array(vec![
        number(0),
        outcome.result,
        optional(outcome.error.map(|error| error.to_json())),
        outcome.fuel_used.to_f64().into(),
        texts(outcome.warnings),
        optional(
            trace.map(|events| Value::Array(events.iter().map(TraceEvent::to_json).collect())),
        ),
        Value::Array(outcome.logs.iter().map(LogLine::to_json).collect()),
        optional(usage.map(|usage| usage.to_json())),
        match quotas {
            [] => Value::Undefined,
            _ => Value::Object(used.collect::<Map>()),
        },
    ])
}

/// A call of an atom of the host.
pub(crate) fn call(run: u64, call: &Call, inputs: Value, cancelled: NoLongerWanted) -> Value {
    Value::Array(vec![
        number(1),
        number(run),
        call.id.to_string().into(),
        (*call.atom).into(),
        inputs,
        call.fuel_left().to_f64().into(),
        call.pointer().map_or(Value::Undefined, Value::from),
        cancelled.value(),
    ])
}

/// A call of a capability of the host.
pub(crate) fn request(run: u64, request: Request, cancelled: NoLongerWanted) -> Value {
    Value::Array(vec![
        number(2),
        number(run),
        number(request.id),
        request.method.into(),
        Value::Array(request.args),
        cancelled.value(),
    ])
}

/// All calls are pending.
pub(crate) fn wait(run: u64, until: Option<Duration>, cancelled: NoLongerWanted) -> Value {
    let until = until.map(|until| Value::Number(until.as_nanos() as f64 / 1e6));
    let until = until.unwrap_or(Value::Undefined);
    Value::Array(vec![number(3), number(run), until, cancelled.value()])
}

/// What happened in the run since the last event, such as chunks that it sent.
pub(crate) fn events(run: u64, events: &[RunEvent]) -> Value {
    let events = events.iter().map(RunEvent::to_json);
    Value::Array(vec![number(5), number(run), Value::Array(events.collect())])
}

/// A slice of work is done.
pub(crate) fn pause(run: u64) -> Value {
    Value::Array(vec![number(4), number(run)])
}
