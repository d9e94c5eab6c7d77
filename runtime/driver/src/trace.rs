//! Spans of the runtime, and the trace context of the W3C: what an agent sends belongs to the
//! trace of what it handles.
//!
//! Spans are those of the crate `tracing`; without a subscriber they cost a check. A
//! [`Propagation`] ties them to contexts. A host without one passes contexts on unchanged, as
//! the recommendation asks of participants that do not trace.

use a99_runtime_engine::{AgentKey, Body, Event, NewEvent, StoreError, TRACEPARENT};
use serde_json::{Map, Value};
use std::sync::Arc;
use tracing::field::Empty;
use tracing::level_filters::LevelFilter;
use tracing::{Span, info_span};

/// Ties spans to trace contexts, as text of the form `traceparent`.
///
/// It knows the subscriber that records spans; `a99-runtime-otlp` has one for `tracing-opentelemetry`.
pub trait Propagation: Send + Sync {
    /// Makes a context the parent of a span that was not entered yet.
    fn set_parent(&self, span: &Span, traceparent: &str);

    /// The context of a span; `None` if no subscriber records it.
    fn context(&self, span: &Span) -> Option<String>;
}

/// The propagation of a host, if it traces.
#[derive(Clone, Default)]
pub(crate) struct Tracer(pub(crate) Option<Arc<dyn Propagation>>);

impl Tracer {
    /// Gives a new span its parent.
    pub(crate) fn follow(&self, span: &Span, parent: Option<&str>) {
        if let (Some(tracer), Some(parent), false) = (&self.0, parent, span.is_disabled()) {
            tracer.set_parent(span, parent);
        }
    }

    /// The context of what is sent within a span: that of the span, or the context that it
    /// followed where no span is recorded.
    pub(crate) fn within(&self, span: &Span, parent: Option<Arc<str>>) -> Option<Arc<str>> {
        let tracer = self.0.as_ref().filter(|_| !span.is_disabled());
        let own = tracer.and_then(|tracer| tracer.context(span));
        own.map(Arc::from).or(parent)
    }

    /// Spans of writing events to a log. An event without a context has none: it would be a
    /// trace by itself.
    pub(crate) fn of_append(&self, events: &[NewEvent]) -> Vec<Span> {
        self.each(events, |first, is_traced| match is_traced {
            true => info_span!(
                "append",
                otel.status_code = Empty,
                "error.type" = Empty,
                a99.channel = first.channel,
                a99.events = int(events.len()),
            ),
            false => Span::none(),
        })
    }

    /// Spans of sending what an agent's turns left.
    pub(crate) fn of_outbox(&self, key: &AgentKey, events: &[NewEvent]) -> Vec<Span> {
        self.each(events, |first, _| {
            info_span!(
                "outbox",
                otel.kind = "producer",
                otel.status_code = Empty,
                "error.type" = Empty,
                a99.agent = key.as_str(),
                a99.channel = first.channel,
                a99.events = int(events.len()),
            )
        })
    }

    /// A span for each trace in events that leave together, made by `new` of its first event and
    /// whether this has a context.
    fn each<'a>(
        &self,
        events: &'a [NewEvent],
        new: impl Fn(&'a NewEvent, bool) -> Span,
    ) -> Vec<Span> {
        if LevelFilter::current() < LevelFilter::INFO {
            return Vec::new();
        }
        let mut spans: Vec<(Option<Arc<str>>, Span)> = Vec::new();
        for event in events {
            let parent = parent(&event.event);
            if !spans.iter().any(|(there, _)| *there == parent) {
                let span = new(event, parent.is_some());
                self.follow(&span, parent.as_deref());
                spans.push((parent, span));
            }
        }
        spans.into_iter().map(|(_, span)| span).collect()
    }
}

/// A number as attributes of OpenTelemetry have it.
pub(crate) fn int(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

/// Marks spans as failed.
pub(crate) fn fail_all<T>(spans: &[Span], result: &Result<T, StoreError>) {
    if let Err(error) = result {
        spans
            .iter()
            .for_each(|span| fail(span, error.code().name()));
    }
}

/// Marks a span as failed.
pub(crate) fn fail(span: &Span, code: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", code);
}

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
