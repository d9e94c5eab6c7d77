//! Event sinks: a channel, or a function.

use crate::events::channel::Channel;
use crate::events::event::{RunEvent, RunEventKind};
use a99_core::call_id::CallId;
use a99_core::text::Text;
use a99_core::value::Value;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum bytes of text in one event; longer pieces are split.
pub const MAX_TEXT_BYTES: usize = 16 << 10;

/// The destination of a run's events; clones share it.
#[derive(Clone)]
pub struct EventSink(Arc<Inner>);

struct Inner {
    to: Arc<Target>,
    agents: Arc<[Text]>,
    waits: bool,
}

/// The receiver of the events.
pub(crate) enum Target {
    Channel(Arc<Channel>),
    Function(Box<Function>),
}

pub(crate) struct Function {
    call: Box<dyn Fn(RunEvent) + Send + Sync>,
    /// Whether the function panicked; it is not called again then.
    broken: AtomicBool,
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Target::Channel(channel) = self {
            channel.end();
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("EventSink");
        out.field("agents", &self.0.agents).finish_non_exhaustive()
    }
}

impl EventSink {
    pub(crate) fn of(target: Target) -> EventSink {
        EventSink(Arc::new(Inner {
            to: Arc::new(target),
            agents: Arc::from([]),
            waits: true,
        }))
    }

    /// Creates a sink that calls a function with each event.
    ///
    /// Its time counts as the run's: a blocking function delays the deadline check. Several
    /// threads may call it at once if several runs share the sink. After a panic it is not
    /// called again.
    #[must_use]
    pub fn to_function(call: impl Fn(RunEvent) + Send + Sync + 'static) -> EventSink {
        EventSink::of(Target::Function(Box::new(Function {
            call: Box::new(call),
            broken: AtomicBool::new(false),
        })))
    }

    /// The sink for the run of a sub-agent: its events carry the name after those of the
    /// enclosing agents.
    #[must_use]
    pub fn in_agent(&self, name: &str) -> EventSink {
        let outer = self.0.agents.iter().cloned();
        self.with(outer.chain([Text::from(name)]).collect(), self.0.waits)
    }

    /// A sink that never waits: events without room are dropped and counted
    /// ([`RunEventKind::Missed`]).
    #[must_use]
    pub fn without_waiting(&self) -> EventSink {
        self.with(self.0.agents.clone(), false)
    }

    fn with(&self, agents: Arc<[Text]>, waits: bool) -> EventSink {
        EventSink(Arc::new(Inner {
            to: Arc::clone(&self.0.to),
            agents,
            waits,
        }))
    }

    /// Whether the reader is gone, or the function panicked.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &*self.0.to {
            Target::Channel(channel) => channel.is_closed(),
            Target::Function(function) => function.broken.load(Ordering::Relaxed),
        }
    }

    fn event(&self, kind: RunEventKind) -> RunEvent {
        RunEvent {
            agents: Arc::clone(&self.0.agents),
            kind,
        }
    }

    /// Sends an event if there is room, else counts it as missed. Returns whether it was
    /// sent.
    pub fn try_send(&self, kind: RunEventKind) -> bool {
        self.send_now(kind, true)
    }

    /// Sends an event regardless of room, for the end of an operation whose start had room.
    pub fn send_beyond(&self, kind: RunEventKind) {
        self.send_now(kind, false);
    }

    fn send_now(&self, kind: RunEventKind, needs_room: bool) -> bool {
        match &*self.0.to {
            Target::Channel(channel) => channel.try_send(self.event(kind), needs_room),
            Target::Function(function) => function.take(self.event(kind)),
        }
    }

    /// Sends an event, and waits for room.
    pub async fn send(&self, kind: RunEventKind) {
        match &*self.0.to {
            Target::Channel(channel) if self.0.waits => channel.send(self.event(kind)).await,
            _ => {
                self.try_send(kind);
            }
        }
    }

    /// Sends a chunk of a call, as `streamChunk` does.
    pub async fn send_chunk(&self, call: CallId, value: Value) {
        self.send(RunEventKind::Chunk { call, value }).await;
    }

    /// Sends a part of a model's answer or reasoning, in pieces of at most
    /// [`MAX_TEXT_BYTES`].
    pub async fn send_text(&self, call: &CallId, text: &str, thinking: bool) {
        let mut rest = text;
        while !rest.is_empty() && !self.is_closed() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_TEXT_BYTES));
            rest = after;
            let (call, text) = (call.clone(), piece.to_owned());
            self.send(match thinking {
                false => RunEventKind::Text { call, text },
                true => RunEventKind::Thinking { call, text },
            })
            .await;
        }
    }
}

impl Function {
    fn take(&self, event: RunEvent) -> bool {
        if self.broken.load(Ordering::Relaxed) {
            return false;
        }
        let called = catch_unwind(AssertUnwindSafe(|| (self.call)(event)));
        if called.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
        called.is_ok()
    }
}
