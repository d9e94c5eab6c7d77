//! Bounded channels of events with asynchronous senders.

use crate::events::event::{RunEvent, RunEventKind};
use crate::events::sink::{EventSink, Target};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Capacity of a channel.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// Maximum number of events; at least one.
    pub events: usize,
    /// Maximum of their approximate size in memory, in bytes. A single larger event fits into
    /// an empty channel.
    pub bytes: usize,
}

impl Default for EventLimits {
    /// 256 events and 1 MiB.
    fn default() -> EventLimits {
        EventLimits {
            events: 256,
            bytes: 1 << 20,
        }
    }
}

impl From<usize> for EventLimits {
    fn from(events: usize) -> EventLimits {
        EventLimits {
            events,
            ..EventLimits::default()
        }
    }
}

/// Creates a channel with these limits, or for this number of events.
///
/// The stream ends when the sink and its clones are dropped, together with the runs that have
/// one.
#[must_use]
pub fn event_channel(limits: impl Into<EventLimits>) -> (EventSink, EventStream) {
    let channel = Arc::new(Channel {
        limits: limits.into(),
        state: Mutex::default(),
    });
    let stream = EventStream(Arc::clone(&channel));
    (EventSink::of(Target::Channel(channel)), stream)
}

pub(crate) struct Channel {
    limits: EventLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: VecDeque<(RunEvent, usize)>,
    bytes: usize,
    /// Number of events dropped since the last one that fit.
    missed: u64,
    /// Whether all senders are gone.
    ended: bool,
    /// Whether the reader is gone.
    abandoned: bool,
    reader: Option<Waker>,
    /// Senders that wait for room, by ticket, in order.
    writers: VecDeque<(u64, Waker)>,
    tickets: u64,
}

impl State {
    fn has_room(&self, size: usize, limits: &EventLimits) -> bool {
        let fits = self.bytes.saturating_add(size) <= limits.bytes;
        self.events.is_empty() || (fits && self.events.len() < limits.events)
    }

    fn push(&mut self, event: RunEvent, size: usize) {
        if self.missed > 0 {
            // Exceeds the limits at most once per event that fits.
            let events = std::mem::take(&mut self.missed);
            self.events.push_back((missed(events), 0));
        }
        self.bytes += size;
        self.events.push_back((event, size));
    }

    fn forget(&mut self, ticket: u64) {
        self.writers.retain(|(other, _)| *other != ticket);
    }
}

fn missed(events: u64) -> RunEvent {
    RunEvent {
        agents: Arc::from([]),
        kind: RunEventKind::Missed { events },
    }
}

impl Channel {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().abandoned
    }

    /// Sends an event if there is room or it needs none, else counts it as missed. Returns
    /// whether it was sent.
    pub(crate) fn try_send(&self, event: RunEvent, needs_room: bool) -> bool {
        let size = event.kind.held_bytes();
        let mut state = self.lock();
        if state.abandoned {
            return false;
        }
        if needs_room && !state.has_room(size, &self.limits) {
            state.missed += 1;
            return false;
        }
        state.push(event, size);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        true
    }

    /// Waits until the event fits or the reader is gone. Waiting senders are served in order.
    pub(crate) async fn send(&self, event: RunEvent) {
        let mut place = Place {
            channel: self,
            ticket: None,
        };
        let size = event.kind.held_bytes();
        let mut event = Some(event);
        poll_fn(|cx| {
            let mut state = self.lock();
            let first = match place.ticket {
                None => state.writers.is_empty(),
                Some(ticket) => state.writers.front().is_none_or(|(t, _)| *t == ticket),
            };
            let goes_on = state.abandoned || first && state.has_room(size, &self.limits);
            if !goes_on {
                match place.ticket {
                    Some(ticket) => {
                        let mut all = state.writers.iter_mut();
                        if let Some((_, waker)) = all.find(|(t, _)| *t == ticket) {
                            waker.clone_from(cx.waker());
                        }
                    }
                    None => {
                        let ticket = state.tickets;
                        state.tickets += 1;
                        state.writers.push_back((ticket, cx.waker().clone()));
                        place.ticket = Some(ticket);
                    }
                }
                return Poll::Pending;
            }
            let mut woken = Vec::new();
            if let Some(ticket) = place.ticket.take() {
                state.forget(ticket);
            }
            if let Some(event) = event.take()
                && !state.abandoned
            {
                state.push(event, size);
                woken.extend(state.reader.take());
            }
            // There may be room for the next sender, whose turn it is now.
            woken.extend(state.writers.front().map(|(_, waker)| waker.clone()));
            drop(state);
            woken.into_iter().for_each(Waker::wake);
            Poll::Ready(())
        })
        .await;
    }

    /// Marks that all senders are gone.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }
}

/// A place in the queue of senders, released when its future is dropped.
struct Place<'a> {
    channel: &'a Channel,
    ticket: Option<u64>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.channel.lock();
            state.forget(ticket);
            // The next sender may have waited only for this one.
            let next = state.writers.front().map(|(_, waker)| waker.clone());
            drop(state);
            next.into_iter().for_each(Waker::wake);
        }
    }
}

/// The receiving end of a channel. After it is dropped, senders send nothing and do not wait.
pub struct EventStream(Arc<Channel>);

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        let mut out = f.debug_struct("EventStream");
        out.field("waiting", &state.events.len());
        out.field("bytes", &state.bytes).finish()
    }
}

impl EventStream {
    /// Waits for the next event; `None` after the last.
    pub async fn next(&mut self) -> Option<RunEvent> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next event.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let (event, ended) = self.take(Some(cx.waker()));
        match (event, ended) {
            (None, false) => Poll::Pending,
            (event, _) => Poll::Ready(event),
        }
    }

    /// Blocks this thread until the next event; `None` after the last.
    pub fn next_blocking(&mut self) -> Option<RunEvent> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            if let Poll::Ready(event) = self.poll_next(&mut Context::from_waker(&waker)) {
                return event;
            }
            std::thread::park();
        }
    }

    /// The next event, if one is ready.
    pub fn try_next(&mut self) -> Option<RunEvent> {
        self.take(None).0
    }

    /// Approximate size of unread events, in bytes.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.0.lock().bytes
    }

    /// The next event, and whether the stream has ended; otherwise keeps the waker.
    fn take(&mut self, waker: Option<&Waker>) -> (Option<RunEvent>, bool) {
        let mut state = self.0.lock();
        let event = match state.events.pop_front() {
            Some((event, size)) => {
                state.bytes -= size;
                Some(event)
            }
            None if state.missed > 0 => {
                let events = std::mem::take(&mut state.missed);
                Some(missed(events))
            }
            None => None,
        };
        if event.is_none() && !state.ended {
            state.reader = waker.cloned();
        }
        let ended = state.ended;
        let writer = event
            .as_ref()
            .and_then(|_| state.writers.front().map(|(_, waker)| waker.clone()));
        drop(state);
        writer.into_iter().for_each(Waker::wake);
        (event, ended)
    }
}

/// Wakes a thread that waits for events.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.abandoned = true;
        state.bytes = 0;
        let events = std::mem::take(&mut state.events);
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        drop(events);
        writers.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
