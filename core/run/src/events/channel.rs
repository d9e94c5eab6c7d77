//! Bounded channels of events, whose senders may wait.

use crate::events::event::{RunEvent, RunEventKind};
use crate::events::sink::{EventSink, Target};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// What may wait in a channel until it is read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// So many events; at least one.
    pub events: usize,
    /// Bytes that they take in memory, about. One event that is larger has room when no
    /// other waits.
    pub bytes: usize,
}

impl Default for EventLimits {
    /// 256 events of 1 MiB.
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

/// The two ends of a channel with these limits, or for so many events.
///
/// The stream ends when the sink and its clones are gone: with the runs that were given one.
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
    /// Events that had no room since the last one that had.
    missed: u64,
    /// Nobody sends any more.
    ended: bool,
    /// Nobody reads any more.
    abandoned: bool,
    reader: Option<Waker>,
    /// Those who wait for room, by ticket, in their order.
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
            // Beyond the limits, once for each event that has room.
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

    /// Sends an event if there is room for it or it needs none, else counts it as missed.
    /// Whether it was sent.
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

    /// Waits until the event has room, or nobody reads. Those who wait come in their order.
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
            // There may be room for another, whose turn it is now.
            woken.extend(state.writers.front().map(|(_, waker)| waker.clone()));
            drop(state);
            woken.into_iter().for_each(Waker::wake);
            Poll::Ready(())
        })
        .await;
    }

    /// Nobody sends any more.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }
}

/// A place among those who wait, given up with its future.
struct Place<'a> {
    channel: &'a Channel,
    ticket: Option<u64>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.channel.lock();
            state.forget(ticket);
            // Whoever comes next may have been waiting for this one only.
            let next = state.writers.front().map(|(_, waker)| waker.clone());
            drop(state);
            next.into_iter().for_each(Waker::wake);
        }
    }
}

/// The end of a channel that the host reads. Whoever drops it is sent nothing more, and
/// nobody waits for them.
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
    /// The next event; none after the last.
    pub async fn next(&mut self) -> Option<RunEvent> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same for who polls.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let (event, ended) = self.take(Some(cx.waker()));
        match (event, ended) {
            (None, false) => Poll::Pending,
            (event, _) => Poll::Ready(event),
        }
    }

    /// The next event, waiting on this thread; none after the last.
    pub fn next_blocking(&mut self) -> Option<RunEvent> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            if let Poll::Ready(event) = self.poll_next(&mut Context::from_waker(&waker)) {
                return event;
            }
            std::thread::park();
        }
    }

    /// The next event, if there is one now.
    pub fn try_next(&mut self) -> Option<RunEvent> {
        self.take(None).0
    }

    /// Bytes that wait to be read, about.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.0.lock().bytes
    }

    /// The next event, and whether none comes any more; else the waker is kept.
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
