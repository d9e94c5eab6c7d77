//! The newest events of a channel in memory.

use a99_runtime_engine::{Event, Seq};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum events of a channel in memory.
const RECENT: usize = 1_024;

/// Approximate bytes of text in memory: of one channel, of all channels, and of a channel
/// without readers, for the first reader that wakes.
const RECENT_BYTES: usize = 4 << 20;
pub(super) const ALL_RECENT_BYTES: usize = 64 << 20;
pub(super) const UNREAD_BYTES: usize = 4 << 10;

/// The newest events, without gaps.
#[derive(Default)]
pub(super) struct Recent {
    pub(super) events: VecDeque<Arc<Event>>,
    pub(super) bytes: usize,
    /// The count shared by all channels.
    pub(super) all_bytes: Arc<AtomicUsize>,
    /// Events that arrived before their predecessors.
    pub(super) early: BTreeMap<Seq, Arc<Event>>,
    /// Whether the head is known: the store was asked after the channel was created here, so
    /// that no event falls between the store's answer and the notifications.
    pub(super) is_known: bool,
}

/// Approximate bytes of an event in memory.
pub(crate) fn size(event: &Event) -> usize {
    use a99_runtime_engine::Body;
    let text = match &event.body {
        Body::Message(message) => message.content.len(),
        Body::UpdateMessage { content, .. } => content.as_ref().map_or(0, String::len),
        _ => 256,
    };
    let attached: usize = event.attachments.iter().map(|a| a.data.len()).sum();
    text + attached + 256
}

impl Recent {
    pub(super) fn push(&mut self, event: Arc<Event>) {
        let bytes = size(&event);
        self.bytes += bytes;
        self.all_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.events.push_back(event);
        while self.events.len() > RECENT || (self.is_large() && self.events.len() > 1) {
            self.drop_oldest();
        }
    }

    pub(super) fn is_large(&self) -> bool {
        let all = self.all_bytes.load(Ordering::Relaxed);
        self.bytes > RECENT_BYTES || all > ALL_RECENT_BYTES
    }

    pub(super) fn drop_oldest(&mut self) {
        if let Some(old) = self.events.pop_front() {
            let bytes = size(&old);
            self.bytes -= bytes;
            self.all_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Evicts all but [`UNREAD_BYTES`] and releases the spare capacity.
    pub(super) fn shrink(&mut self) {
        while self.bytes > UNREAD_BYTES {
            self.drop_oldest();
        }
        self.events.shrink_to_fit();
    }

    pub(super) fn clear(&mut self) {
        self.all_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        (self.events, self.bytes) = (VecDeque::new(), 0);
    }
}
