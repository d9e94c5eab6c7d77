//! Pushed events of channels, and the streams that watch them.

use a99_runtime::{Event, Passing, Seq};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{broadcast, watch};

/// Events of a channel that are kept, and channels. Others are read from the server.
const MAX_EVENTS: usize = 1_024;
const MAX_CHANNELS: usize = 4_096;

/// Ephemeral events that wait for a reader; beyond it the reader loses the oldest.
const EPHEMERAL: usize = 256;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pushed events of all channels.
#[derive(Debug, Default)]
pub(crate) struct Fed(Mutex<HashMap<String, Channel>>);

#[derive(Debug)]
struct Channel {
    events: BTreeMap<Seq, Arc<Event>>,
    /// The last sequence number that was pushed, or the head that the server had before.
    last: watch::Sender<Seq>,
    passing: broadcast::Sender<Arc<Event>>,
}

/// A reader of a channel's pushed events.
pub(crate) struct Reader {
    pub(crate) last: watch::Receiver<Seq>,
    pub(crate) passing: broadcast::Receiver<Arc<Event>>,
}

impl Fed {
    fn with<T>(&self, name: &str, use_it: impl FnOnce(&mut Channel) -> T) -> T {
        let mut channels = locked(&self.0);
        if channels.len() >= MAX_CHANNELS && !channels.contains_key(name) {
            // Their streams end, and their events are read from the server.
            channels.clear();
        }
        let channel = channels.entry(name.to_owned()).or_insert_with(|| Channel {
            events: BTreeMap::new(),
            last: watch::Sender::new(0),
            passing: broadcast::Sender::new(EPHEMERAL),
        });
        use_it(channel)
    }

    /// Takes events of a request.
    pub(crate) fn feed(&self, name: &str, events: &[Arc<Event>], ephemeral: &[Arc<Event>]) {
        self.with(name, |channel| {
            for event in events {
                if let Some(seq) = event.seq {
                    channel.events.insert(seq, Arc::clone(event));
                }
            }
            while channel.events.len() > MAX_EVENTS {
                channel.events.pop_first();
            }
            if let Some(last) = events.iter().filter_map(|event| event.seq).max() {
                channel.last.send_if_modified(|old| {
                    let is_later = last > *old;
                    *old = last.max(*old);
                    is_later
                });
            }
            for event in ephemeral {
                // Without readers no agent is awake to see it.
                let _ = channel.passing.send(Arc::clone(event));
            }
        });
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
        locked(&self.0).clear();
    }

    /// The last pushed sequence number; `None` before the first.
    pub(crate) fn last(&self, name: &str) -> Option<Seq> {
        let channels = locked(&self.0);
        let last = channels.get(name).map(|channel| *channel.last.borrow());
        last.filter(|last| *last > 0)
    }

    /// Pushed events after a sequence number, in order and without gaps.
    pub(crate) fn after(&self, name: &str, after: Seq, most: usize) -> Vec<Arc<Event>> {
        let channels = locked(&self.0);
        let Some(channel) = channels.get(name) else {
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

/// Whether an event may have changed the participants.
pub(crate) fn is_presence(passing: &Passing) -> bool {
    matches!(passing, Passing::Event(event)
        if matches!(event.body, a99_runtime::Body::Presence { .. }))
}
