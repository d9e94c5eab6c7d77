//! Trace context of the W3C: what an agent sends belongs to the trace of what it handles.
//!
//! A host makes no spans, so it passes the context on unchanged, as the recommendation asks of
//! participants that do not trace. The events of a turn are thereby the same at every retry.

use a99_runtime_engine::{Body, Event};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The member of a message's metadata.
const TRACEPARENT: &str = "traceparent";

/// The trace context of an event, if it has a valid one.
pub(crate) fn parent(event: &Event) -> Option<Arc<str>> {
    let Body::Message(message) = &event.body else {
        return None;
    };
    let text = message.metadata.as_ref()?.get(TRACEPARENT)?.as_str()?;
    is_valid(text).then(|| text.into())
}

/// Puts the context into a message, unless its metadata has one or has no members.
pub(crate) fn put(parent: &str, body: &mut Body) {
    let Body::Message(message) = body else {
        return;
    };
    let metadata = message.metadata.get_or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    if let Value::Object(members) = metadata {
        members.entry(TRACEPARENT).or_insert_with(|| parent.into());
    }
}

/// Whether a text is `00-TRACE-PARENT-FLAGS` with lower-case hexadecimal digits and no zero
/// identity (W3C Trace Context, section 3.2).
fn is_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 55
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => *byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    let is_zero = |range| {
        let id: Option<&[u8]> = bytes.get::<std::ops::Range<usize>>(range);
        id.is_none_or(|id| id.iter().all(|byte| *byte == b'0'))
    };
    shape && text.starts_with("00-") && !is_zero(3..35) && !is_zero(36..52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_runtime_engine::Message;
    use serde_json::json;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn invalid_contexts_are_none() {
        assert!(is_valid(GOOD));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}00f067aa0ba902b7-01",
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
    }

    #[test]
    fn a_message_keeps_its_metadata() {
        for (before, after) in [
            (None, json!({"traceparent": GOOD})),
            (Some(Value::Null), json!({"traceparent": GOOD})),
            (Some(json!({"a": 1})), json!({"a": 1, "traceparent": GOOD})),
            (
                Some(json!({"traceparent": "mine"})),
                json!({"traceparent": "mine"}),
            ),
            (Some(json!([1])), json!([1])),
        ] {
            let mut message = Message::text("x");
            message.metadata = before;
            let mut body = Body::Message(message);
            put(GOOD, &mut body);
            let Body::Message(message) = body else {
                unreachable!()
            };
            assert_eq!(message.metadata, Some(after));
        }
    }
}
