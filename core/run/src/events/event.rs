//! Events of runs, and their JSON form.

use crate::events::trace::TraceEvent;
use crate::events::{VALUE_BYTES, held_bytes};
use a99_core::call_id::CallId;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// An event of a run. Serializes as [`RunEvent::to_json`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunEvent {
    /// Names of the sub-agents in which the event occurred, outermost first; empty for the
    /// run itself.
    pub agents: Arc<[Text]>,
    /// The kind of event, with its data.
    pub kind: RunEventKind,
}

/// The kinds of events. Events of one call are in order, from
/// [`CallStarted`](RunEventKind::CallStarted) to [`CallEnded`](RunEventKind::CallEnded);
/// those of concurrent calls interleave.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEventKind {
    /// A host call began. A call repeated after its run was restored begins again.
    CallStarted {
        /// Id of the call in its run.
        call: CallId,
        /// The atom's name.
        op: Text,
    },
    /// A piece of a model's answer, of at most
    /// [`MAX_TEXT_BYTES`](crate::events::MAX_TEXT_BYTES).
    Text {
        /// The call to the model.
        call: CallId,
        /// The piece.
        text: String,
    },
    /// A piece of a model's reasoning before its answer, of the same maximum length.
    Thinking {
        /// The call to the model.
        call: CallId,
        /// The piece.
        text: String,
    },
    /// Data that the program sent by `streamChunk`, or an atom of the host.
    Chunk {
        /// The call that sent it.
        call: CallId,
        /// The data.
        value: Value,
    },
    /// A host call ended.
    CallEnded {
        /// Id of the call in its run.
        call: CallId,
        /// How the call ended.
        end: CallEnd,
    },
    /// A line that the program wrote by `console`.
    Log(LogLine),
    /// A step ended; sent to sinks that are also the sink of the run's trace.
    Step(Box<TraceEvent>),
    /// Events were dropped because the reader was too slow.
    Missed {
        /// Number of dropped events.
        events: u64,
    },
}

/// A line that a program wrote by `console`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The function that wrote it.
    pub level: LogLevel,
    /// The values separated by spaces; texts are written literally, others as JSON.
    pub text: Text,
}

impl LogLine {
    /// The line as an object: `level` and `text`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("level", self.level.name());
        map.insert("text", self.text.clone());
        Value::Object(map)
    }
}

/// The function of `console` that wrote a line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogLevel {
    /// `console.debug`.
    Debug,
    /// `console.log`, and the atom `consoleLog`.
    Log,
    /// `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
}

impl LogLevel {
    /// The name of the function.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Log => "log",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// How a call ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallEnd {
    /// The atom returned a value.
    Answered,
    /// The atom failed.
    Failed,
    /// The answer is no longer wanted: the call timed out, or the run ended.
    Stopped,
}

impl CallEnd {
    /// The name in events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CallEnd::Answered => "answered",
            CallEnd::Failed => "failed",
            CallEnd::Stopped => "stopped",
        }
    }
}

impl RunEventKind {
    /// The name: the member `event` of [`RunEvent::to_json`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            RunEventKind::CallStarted { .. } => "call",
            RunEventKind::Text { .. } => "text",
            RunEventKind::Thinking { .. } => "thinking",
            RunEventKind::Chunk { .. } => "chunk",
            RunEventKind::CallEnded { .. } => "call_end",
            RunEventKind::Log(_) => "log",
            RunEventKind::Step(_) => "step",
            RunEventKind::Missed { .. } => "missed",
        }
    }

    /// The call that the event belongs to.
    #[must_use]
    pub fn call(&self) -> Option<&CallId> {
        match self {
            RunEventKind::CallStarted { call, .. }
            | RunEventKind::Text { call, .. }
            | RunEventKind::Thinking { call, .. }
            | RunEventKind::Chunk { call, .. }
            | RunEventKind::CallEnded { call, .. } => Some(call),
            RunEventKind::Log(_) | RunEventKind::Step(_) | RunEventKind::Missed { .. } => None,
        }
    }

    /// Approximate size in memory, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let more = match self {
            RunEventKind::CallStarted { op, .. } => op.len_bytes(),
            RunEventKind::Text { text, .. } | RunEventKind::Thinking { text, .. } => text.len(),
            RunEventKind::Chunk { value, .. } => held_bytes(vec![value]),
            RunEventKind::Log(line) => line.text.len_bytes(),
            RunEventKind::Step(step) => step.held_bytes(),
            RunEventKind::CallEnded { .. } | RunEventKind::Missed { .. } => 0,
        };
        size_of::<RunEvent>() + VALUE_BYTES + more
    }
}

impl RunEvent {
    /// The event as an object, as in a line of `a99 run --stream --json`: `event`, the name
    /// of its kind; `agents`, a list of names, if it occurred in a sub-agent; then
    ///
    /// | `event` | other members |
    /// |---|---|
    /// | `call` | `call` ([`CallId`] as text), `op` |
    /// | `text`, `thinking` | `call`, `text` |
    /// | `chunk` | `call`, `value` unless it is `undefined` |
    /// | `call_end` | `call`, `end`: `answered`, `failed` or `stopped` |
    /// | `log` | `level`: `debug`, `log`, `info`, `warn` or `error`; `text` |
    /// | `step` | `step`: [`TraceEvent::to_json`] |
    /// | `missed` | `events`, a number |
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("event", self.kind.name());
        if !self.agents.is_empty() {
            let agents = self.agents.iter().cloned().map(Value::from);
            map.insert("agents", Value::Array(agents.collect()));
        }
        if let Some(call) = self.kind.call() {
            map.insert("call", call.to_string());
        }
        match &self.kind {
            RunEventKind::CallStarted { op, .. } => map.insert("op", op.clone()),
            RunEventKind::Text { text, .. } | RunEventKind::Thinking { text, .. } => {
                map.insert("text", text.as_str())
            }
            RunEventKind::Chunk { value, .. } if value.is_undefined() => None,
            RunEventKind::Chunk { value, .. } => map.insert("value", value.clone()),
            RunEventKind::CallEnded { end, .. } => map.insert("end", end.name()),
            RunEventKind::Log(line) => {
                map.insert("level", line.level.name());
                map.insert("text", line.text.clone())
            }
            RunEventKind::Step(step) => map.insert("step", step.to_json()),
            // Far below the limit of exact integers in a double.
            RunEventKind::Missed { events } => map.insert("events", *events as f64),
        };
        Value::Object(map)
    }
}

impl Serialize for RunEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(agents: &[&str], kind: RunEventKind) -> String {
        let agents = agents.iter().map(|name| Text::from(*name)).collect();
        RunEvent { agents, kind }.to_json().to_json_string()
    }

    #[test]
    fn forms_for_machines_stay() {
        let call: CallId = "2.0/0.1".parse().unwrap();
        let op = Text::from("llmPredict");
        let started = RunEventKind::CallStarted { call, op };
        assert_eq!(
            json(&["research", "read"], started),
            r#"{"event":"call","agents":["research","read"],"call":"2.0/0.1","op":"llmPredict"}"#
        );
        let call = CallId::default();
        let thinking = RunEventKind::Thinking {
            call: call.clone(),
            text: "hm".to_owned(),
        };
        assert_eq!(
            json(&[], thinking),
            r#"{"event":"thinking","call":"0.0","text":"hm"}"#
        );
        let chunk = |value| RunEventKind::Chunk {
            call: CallId::default(),
            value,
        };
        assert_eq!(
            json(&[], chunk(Value::Array(vec![1.0.into()]))),
            r#"{"event":"chunk","call":"0.0","value":[1]}"#
        );
        assert_eq!(
            json(&[], chunk(Value::Undefined)),
            r#"{"event":"chunk","call":"0.0"}"#
        );
        for end in [CallEnd::Answered, CallEnd::Failed, CallEnd::Stopped] {
            let call = call.clone();
            assert_eq!(
                json(&[], RunEventKind::CallEnded { call, end }),
                format!(
                    r#"{{"event":"call_end","call":"0.0","end":"{}"}}"#,
                    end.name()
                )
            );
        }
        assert_eq!(
            json(&[], RunEventKind::Missed { events: 3 }),
            r#"{"event":"missed","events":3}"#
        );
    }
}
