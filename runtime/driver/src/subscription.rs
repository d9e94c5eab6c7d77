//! Subscriptions: a channel's log from any place on, then what comes.

use crate::hub::{Channel, Hub};
use a99_runtime_engine::{Event, Seq, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

/// Events that are read at a time.
const PAGE: usize = 500;

/// Events of a channel after a place: each once, in the order of their places, first those
/// that are there and then those that come.
pub struct Subscription {
    hub: Arc<Hub>,
    name: String,
    channel: Arc<Channel>,
    head: watch::Receiver<Seq>,
    passing: Option<broadcast::Receiver<Arc<Event>>>,
    cursor: Seq,
    ready: VecDeque<Arc<Event>>,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Subscription");
        out.field("channel", &self.name)
            .field("cursor", &self.cursor);
        out.finish_non_exhaustive()
    }
}

impl Subscription {
    pub(crate) async fn new(
        hub: &Arc<Hub>,
        name: &str,
        after: Option<Seq>,
        with_passing: bool,
    ) -> Result<Subscription, StoreError> {
        let channel = hub.channel(name).await?;
        let passing = with_passing.then(|| channel.passing());
        Ok(Subscription {
            hub: Arc::clone(hub),
            name: name.to_owned(),
            head: channel.watch(),
            cursor: after.unwrap_or_else(|| channel.head()),
            channel,
            passing,
            ready: VecDeque::new(),
        })
    }

    /// The channel.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.name
    }

    /// The place of the last event that was given.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.cursor - self.ready.len() as Seq
    }

    /// The next event; it waits for one. Nothing is lost if it is dropped.
    ///
    /// # Errors
    /// Those of reading the log.
    pub async fn next(&mut self) -> Result<Arc<Event>, StoreError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.cursor < self.channel.head() {
                let read = self.hub.read(&self.name, &self.channel, self.cursor, PAGE);
                let events = read.await?;
                self.cursor += events.len() as Seq;
                self.ready.extend(events);
                continue;
            }
            let Some(passing) = &mut self.passing else {
                // The sender lives in the channel that is held here.
                drop(self.head.changed().await);
                continue;
            };
            tokio::select! {
                changed = self.head.changed() => drop(changed),
                event = passing.recv() => if let Ok(event) = event {
                    return Ok(event);
                },
            }
        }
    }
}
