//! Subscriptions: a channel's log from any place on, then what comes.

use crate::hub::{Hub, Passing, Reader};
use a99_runtime_engine::{Event, Seq, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Events that are read at a time.
const PAGE: usize = 500;

/// Events of a channel after a place: each once, in the order of their places, first those
/// that are there and then those that come. An event that is in no log comes after those that
/// were in the log when it was sent, and before those that were not.
pub struct Subscription {
    hub: Arc<Hub>,
    name: String,
    reader: Reader,
    passing: Option<broadcast::Receiver<Passing>>,
    /// One of those, which comes after events of the log that were not given yet.
    next_passing: Option<Passing>,
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
            cursor: after.unwrap_or_else(|| channel.head()),
            reader: channel.reader(),
            passing,
            next_passing: None,
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
            if let Some(event) = self.take_passing() {
                return Ok(event);
            }
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.cursor < self.reader.channel.head() {
                let read = self
                    .hub
                    .read(&self.name, &self.reader.channel, self.cursor, PAGE);
                let events = read.await?;
                self.cursor += events.len() as Seq;
                self.ready.extend(events);
                continue;
            }
            let Some(passing) = &mut self.passing else {
                self.reader.changed().await;
                continue;
            };
            tokio::select! {
                () = self.reader.changed() => {}
                // Of events that are in no log, some may be missed.
                event = passing.recv() => self.next_passing = event.ok(),
            }
        }
    }

    /// The next event that is in no log, if it comes before the next one of the log.
    fn take_passing(&mut self) -> Option<Arc<Event>> {
        let given = self.cursor();
        while self.next_passing.is_none() {
            match self.passing.as_mut()?.try_recv() {
                Ok(passing) => self.next_passing = Some(passing),
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(_) => return None,
            }
        }
        let comes = |passing: &mut Passing| passing.after <= given;
        self.next_passing.take_if(comes).map(|next| next.event)
    }
}
