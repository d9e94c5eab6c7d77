//! Events: progress of a run for its host (D87).
//!
//! A run sends to an [`EventSink`]: a function, or the sending end of a bounded channel, from
//! which the host reads with an [`EventStream`]. A slow reader delays only the calls that
//! send. After the reader is dropped, nothing is sent. Neither affects the result of the run.
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

/// Estimated size of a value in memory, with its place in an array, in bytes.
pub(crate) const VALUE_BYTES: usize = 40;

/// Estimated size of a member of an object in bytes, beyond its key and value.
const MEMBER_BYTES: usize = 120;

/// Estimated size of values in memory, in bytes.
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
