//! Events: what a host learns of a run while it goes on (D87).
//!
//! A run sends to an [`EventSink`]: the end of a bounded channel whose other end, an
//! [`EventStream`], the host reads, or a function. Who reads slowly makes calls wait that
//! have something to say, and who reads no more is sent nothing; neither changes what comes
//! of the run.
//!
//! ```
//! use a99_core::call_id::CallId;
//! use a99_run::events::{RunEventKind, event_channel};
//!
//! let (sink, mut stream) = event_channel(16);
//! sink.try_send(RunEventKind::Text { call: CallId::default(), text: "Hel".to_owned() });
//! let event = stream.try_next().expect("it was sent");
//! assert_eq!(event.to_json().to_json_string(), r#"{"event":"text","call":"0.0","text":"Hel"}"#);
//! ```

mod channel;
mod event;
mod sink;
mod trace;

pub use channel::{EventLimits, EventStream, event_channel};
pub use event::{CallEnd, LogLevel, LogLine, RunEvent, RunEventKind};
pub use sink::{EventSink, MAX_TEXT_BYTES};
pub use trace::{CALL_BYTES, TraceCall, TraceCallEnd, TraceEvent};

use a99_core::value::Value;

/// Estimated bytes of a value in memory, its place in an array included.
pub(crate) const VALUE_BYTES: usize = 40;

/// Estimated bytes of a member of an object beyond its key and value.
const MEMBER_BYTES: usize = 120;

/// Estimated bytes that values take in memory.
pub(crate) fn held_bytes(mut todo: Vec<&Value>) -> usize {
    let mut sum = 0;
    while let Some(value) = todo.pop() {
        sum += VALUE_BYTES;
        match value {
            Value::String(text) => sum += text.len_bytes(),
            Value::Array(items) => todo.extend(items),
            Value::Object(map) => {
                for (key, value) in map.iter() {
                    sum += MEMBER_BYTES + key.len_bytes();
                    todo.push(value);
                }
            }
            _ => {}
        }
    }
    sum
}
