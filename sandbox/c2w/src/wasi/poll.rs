//! Poll calls: `poll_oneoff`, the only call in which an image waits.
//!
//! An emulator polls its console and its network in two consecutive calls, each with the
//! time until the guest's next timer. An arrival for the other source ends a wait early, as
//! if its time were over, which the emulator allows: it reads the time again. Each arrival
//! does so once, so that an image that ignores it is not kept awake.

use super::abi::{Answer, Errno, Memory, eventtype};
use super::state::{Descriptor, Host};
use std::time::{Duration, Instant};

/// Size of a `subscription` in bytes.
const SUBSCRIPTION: u32 = 48;

/// Size of an `event` in bytes.
const EVENT: u32 = 32;

/// Maximum subscriptions of one call; emulators use two.
const MAX_SUBSCRIPTIONS: u32 = 1024;

/// `subclockflags`: the time is absolute.
const ABSTIME: u16 = 1;

/// Interval at which frames that the network had no room for are offered again.
const FLUSH_INTERVAL: Duration = Duration::from_millis(2);

/// Awaited event.
#[derive(Copy, Clone)]
enum EventKind {
    /// The time, in nanoseconds from the call on.
    Clock(Answer<u64>),
    Read(u32),
    Write(u32),
    Unknown,
}

/// One of the events that a call waits for.
struct Subscription {
    userdata: u64,
    tag: u8,
    kind: EventKind,
}

/// Number of available bytes, if any are.
type Ready = Option<Answer<u64>>;

impl Host {
    fn subscription(&self, memory: &Memory<'_>, at: u32) -> Answer<Subscription> {
        let at = |offset| at.checked_add(offset).ok_or(Errno::Fault);
        let tag = memory.u8(at(8)?)?;
        let kind = match tag {
            eventtype::CLOCK => {
                let id = memory.u32(at(16)?)?;
                let timeout = memory.u64(at(24)?)?;
                let absolute = memory.u16(at(40)?)? & ABSTIME != 0;
                // The wait itself uses a monotonic clock.
                EventKind::Clock(self.clocks.now(id).map(|now| match absolute {
                    true => timeout.saturating_sub(now),
                    false => timeout,
                }))
            }
            eventtype::FD_READ => EventKind::Read(memory.u32(at(16)?)?),
            eventtype::FD_WRITE => EventKind::Write(memory.u32(at(16)?)?),
            _ => EventKind::Unknown,
        };
        Ok(Subscription {
            userdata: memory.u64(at(0)?)?,
            tag,
            kind,
        })
    }

    pub(super) fn poll_oneoff(
        &mut self,
        memory: &mut Memory<'_>,
        subscriptions: u32,
        events: u32,
        count: u32,
        result: u32,
    ) -> Answer {
        if count == 0 || count > MAX_SUBSCRIPTIONS {
            return Err(Errno::Inval);
        }
        memory.slice(subscriptions, count * SUBSCRIPTION)?;
        memory.slice(events, count * EVENT)?;
        let all = (0..count).map(|index| subscriptions + index * SUBSCRIPTION);
        let all = all.map(|at| self.subscription(memory, at));
        let all = all.collect::<Answer<Vec<_>>>()?;
        let happened = self.wait_for(&all);
        let mut at = events;
        for (subscription, answer) in &happened {
            put_event(memory, at, subscription, *answer)?;
            at += EVENT;
        }
        memory.put_u32(result, happened.len() as u32)
    }

    /// Waits until some of the events have happened; none have after a stop.
    fn wait_for<'a>(&mut self, all: &'a [Subscription]) -> Vec<(&'a Subscription, Answer<u64>)> {
        let began = Instant::now();
        let span = all
            .iter()
            .filter_map(|subscription| match subscription.kind {
                EventKind::Clock(Ok(span)) => Some(Duration::from_nanos(span)),
                _ => None,
            });
        let span = span.min();
        // Beyond the range of the monotonic clock means for ever.
        let until = span.and_then(|span| began.checked_add(span));
        let streams = all.iter().any(|one| matches!(one.kind, EventKind::Read(_)));
        loop {
            let seen = self.console.seen();
            if let Some(network) = &mut self.network {
                network.flush();
            }
            let happened: Vec<_> = all
                .iter()
                .filter_map(|one| Some((one, self.ready(one, began)?)))
                .collect();
            if !happened.is_empty() || self.console.is_stopped() {
                return happened;
            }
            if span.is_some() && streams && self.take_arrivals() {
                return all
                    .iter()
                    .filter(|one| is_clock(one))
                    .map(|one| (one, Ok(0)))
                    .collect();
            }
            self.park(seen, until);
        }
    }

    /// Parks until an arrival.
    fn park(&self, seen: crate::console::Seen, until: Option<Instant>) {
        let behind = self
            .network
            .as_ref()
            .is_some_and(|network| network.has_waiting());
        let until = match behind {
            true => {
                let soon = Instant::now() + FLUSH_INTERVAL;
                Some(until.map_or(soon, |until| until.min(soon)))
            }
            false => until,
        };
        self.console.wait_arrival(seen, until);
    }

    /// Whether there was an arrival that has not ended a wait yet.
    fn take_arrivals(&mut self) -> bool {
        let seen = self.console.seen();
        let input = seen.inputs != self.reported.inputs && self.console.readable() > 0;
        let frames = seen.frames != self.reported.frames
            && self
                .network
                .as_mut()
                .is_some_and(|network| network.is_readable());
        self.reported = seen;
        input || frames
    }

    /// Whether an awaited event has happened.
    fn ready(&mut self, subscription: &Subscription, began: Instant) -> Ready {
        match subscription.kind {
            EventKind::Clock(Err(errno)) => Some(Err(errno)),
            EventKind::Clock(Ok(span)) => {
                let over = began.elapsed() >= Duration::from_nanos(span);
                over.then_some(Ok(0))
            }
            EventKind::Unknown => Some(Err(Errno::Inval)),
            EventKind::Read(fd) => self.readable(fd),
            EventKind::Write(fd) => Some(self.descriptor(fd).map(|_| 1)),
        }
    }

    fn readable(&mut self, fd: u32) -> Ready {
        let bytes = match self.descriptor(fd) {
            Err(errno) => return Some(Err(errno)),
            Ok(Descriptor::Input) => self.console.readable(),
            Ok(Descriptor::Connection) => self.network.as_mut().map_or(0, |net| net.readable()),
            // A connection is pending until it is accepted.
            Ok(Descriptor::Listener) => usize::from(!self.is_connected()),
            Ok(Descriptor::File(..)) => 1,
            Ok(_) => return Some(Err(Errno::Badf)),
        };
        (bytes > 0).then_some(Ok(bytes as u64))
    }
}

fn is_clock(subscription: &Subscription) -> bool {
    matches!(subscription.kind, EventKind::Clock(Ok(_)))
}

fn put_event(
    memory: &mut Memory<'_>,
    at: u32,
    subscription: &Subscription,
    answer: Answer<u64>,
) -> Answer {
    let mut event = [0; EVENT as usize];
    event[..8].copy_from_slice(&subscription.userdata.to_le_bytes());
    let errno = answer.err().map_or(0, |errno| errno as u16);
    event[8..10].copy_from_slice(&errno.to_le_bytes());
    event[10] = subscription.tag;
    event[16..24].copy_from_slice(&answer.unwrap_or(0).to_le_bytes());
    memory.put(at, &event)
}
