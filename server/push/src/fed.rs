//! Pushed events of channels, and the streams that watch them.

use a99_runtime::{Event, Passing, Seq};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{broadcast, watch};

/// Events of a channel that are kept, their approximate bytes, and channels. Other events are
/// read from the server.
const MAX_EVENTS: usize = 1_024;
const MAX_BYTES: usize = 64 << 20;
const MAX_CHANNELS: usize = 4_096;

/// Ephemeral events that wait for a reader; beyond it the reader loses the oldest.
const EPHEMERAL: usize = 256;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pushed events of all channels.
#[derive(Debug, Default)]
pub(crate) struct Fed(Mutex<Channels>);

#[derive(Debug, Default)]
struct Channels {
    by_name: HashMap<String, Channel>,
    /// Approximate bytes of all events.
    bytes: usize,
}

#[derive(Debug)]
struct Channel {
    events: BTreeMap<Seq, Arc<Event>>,
    /// The last sequence number that was pushed or read, or the head that the server had before.
    last: watch::Sender<Seq>,
    passing: broadcast::Sender<Arc<Event>>,
}

/// A reader of a channel's pushed events.
pub(crate) struct Reader {
    pub(crate) last: watch::Receiver<Seq>,
    pub(crate) passing: broadcast::Receiver<Arc<Event>>,
}

impl Channel {
    fn reach(&self, last: Seq) {
        self.last.send_if_modified(|old| {
            let is_later = last > *old;
            *old = last.max(*old);
            is_later
        });
    }
}

impl Channels {
    fn channel(&mut self, name: &str) -> &mut Channel {
        if self.by_name.len() >= MAX_CHANNELS && !self.by_name.contains_key(name) {
            // Their streams end, and their events are read from the server.
            *self = Channels::default();
        }
        self.by_name
            .entry(name.to_owned())
            .or_insert_with(|| Channel {
                events: BTreeMap::new(),
                last: watch::Sender::new(0),
                passing: broadcast::Sender::new(EPHEMERAL),
            })
    }

    fn keep(&mut self, name: &str, events: &[Arc<Event>]) {
        let coming: usize = events.iter().map(|event| size(event)).sum();
        if self.bytes.saturating_add(coming) > MAX_BYTES {
            for channel in self.by_name.values_mut() {
                channel.events.clear();
            }
            self.bytes = 0;
        }
        let channel = self.channel(name);
        let mut dropped = 0;
        for event in events {
            if let Some(seq) = event.seq {
                let before = channel.events.insert(seq, Arc::clone(event));
                dropped += before.map_or(0, |event| size(&event));
            }
        }
        while channel.events.len() > MAX_EVENTS {
            let old = channel.events.pop_first();
            dropped += old.map_or(0, |(_, event)| size(&event));
        }
        self.bytes = (self.bytes + coming).saturating_sub(dropped);
    }
}

impl Fed {
    fn with<T>(&self, name: &str, use_it: impl FnOnce(&mut Channel) -> T) -> T {
        use_it(locked(&self.0).channel(name))
    }

    /// Takes events of a request.
    pub(crate) fn feed(&self, name: &str, events: &[Arc<Event>], ephemeral: &[Arc<Event>]) {
        locked(&self.0).keep(name, events);
        self.with(name, |channel| {
            if let Some(last) = events.iter().filter_map(|event| event.seq).max() {
                channel.reach(last);
            }
            for event in ephemeral {
                // Without readers no agent is awake to see it.
                let _ = channel.passing.send(Arc::clone(event));
            }
        });
    }

    /// Records that the log reaches an event that was read before it was pushed.
    pub(crate) fn reach(&self, name: &str, last: Seq) {
        self.with(name, |channel| channel.reach(last));
    }

    /// Records the head of the log before the first push.
    pub(crate) fn know(&self, name: &str, head: Seq) {
        self.with(name, |channel| {
            channel.last.send_if_modified(|last| {
                let is_first = *last == 0 && head > 0;
                *last = if is_first { head } else { *last };
                is_first
            })
        });
    }

    /// Forgets everything. Streams end.
    pub(crate) fn clear(&self) {
        *locked(&self.0) = Channels::default();
    }

    /// The last sequence number that was pushed or read; `None` before the first.
    pub(crate) fn last(&self, name: &str) -> Option<Seq> {
        let all = locked(&self.0);
        let last = all.by_name.get(name).map(|channel| *channel.last.borrow());
        last.filter(|last| *last > 0)
    }

    /// Pushed events after a sequence number, in order and without gaps.
    pub(crate) fn after(&self, name: &str, after: Seq, most: usize) -> Vec<Arc<Event>> {
        let all = locked(&self.0);
        let Some(channel) = all.by_name.get(name) else {
            return Vec::new();
        };
        let from = channel.events.range(after.saturating_add(1)..);
        let dense = from.zip(after + 1..).take_while(|((seq, _), n)| *seq == n);
        dense
            .take(most)
            .map(|((_, event), _)| Arc::clone(event))
            .collect()
    }

    pub(crate) fn reader(&self, name: &str) -> Reader {
        self.with(name, |channel| Reader {
            last: channel.last.subscribe(),
            passing: channel.passing.subscribe(),
        })
    }
}

/// Approximate bytes of an event in memory.
fn size(event: &Event) -> usize {
    use a99_runtime::Body;
    let text = match &event.body {
        Body::Message(message) => message.content.len(),
        Body::UpdateMessage { content, .. } => content.as_ref().map_or(0, String::len),
        body => serde_json::to_vec(body).map_or(0, |json| json.len()),
    };
    let attached: usize = event.attachments.iter().map(|one| one.data.len()).sum();
    text + attached + 256
}

/// Whether an event may have changed the participants.
pub(crate) fn is_presence(passing: &Passing) -> bool {
    matches!(passing, Passing::Event(event)
        if matches!(event.body, a99_runtime::Body::Presence { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_runtime::{Body, Message, Sender, Uuid};
    use a99_runtime_engine::NewEvent;

    fn event(seq: Seq, bytes: usize) -> Arc<Event> {
        let body = Body::Message(Message::text("x".repeat(bytes)));
        let (id, sender) = (
            Uuid::from_u128(u128::from(seq)),
            Arc::new(Sender::default()),
        );
        let mut event = NewEvent::new("c", id, sender, 0, body).event;
        event.seq = Some(seq);
        Arc::new(event)
    }

    #[test]
    fn only_what_is_dense_is_given() {
        let fed = Fed::default();
        fed.feed("c", &[event(2, 1), event(3, 1), event(5, 1)], &[]);
        let numbers = |after| -> Vec<Seq> {
            let events = fed.after("c", after, 10);
            events.iter().filter_map(|event| event.seq).collect()
        };
        assert_eq!(numbers(0), Vec::<Seq>::new());
        assert_eq!(numbers(1), [2, 3]);
        assert_eq!(numbers(4), [5]);
        assert_eq!(fed.last("c"), Some(5));
        fed.feed("c", &[event(4, 1)], &[]);
        assert_eq!((numbers(1), fed.last("c")), (vec![2, 3, 4, 5], Some(5)));
        fed.clear();
        assert_eq!(fed.last("c"), None);
    }

    #[test]
    fn memory_is_bounded() {
        let fed = Fed::default();
        for seq in 1..=2_000 {
            fed.feed("c", &[event(seq, 1)], &[]);
        }
        assert_eq!(locked(&fed.0).by_name["c"].events.len(), MAX_EVENTS);
        for (n, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let events: Vec<_> = (1..=20).map(|seq| event(seq, 1 << 20)).collect();
            fed.feed(name, &events, &[]);
            fed.feed(name, &events, &[]);
            let all = locked(&fed.0);
            let events = all
                .by_name
                .values()
                .flat_map(|channel| channel.events.values());
            let held: usize = events.map(|event| size(event)).sum();
            assert_eq!(held, all.bytes, "{n}");
            assert!(held <= MAX_BYTES, "{n}: {held}");
        }
    }
}
