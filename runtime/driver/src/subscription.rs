//! Subscriptions: a channel's backlog after a cursor, then live events.

use crate::bus::Participant;
use crate::hub::{Ephemeral, Hub, Reader};
use a99_runtime_engine::{Event, Seq, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

/// Page size of log reads, in events.
const PAGE: usize = 500;

/// Delivers every event of a channel after a sequence number exactly once, in order: first the
/// backlog, then live events. An ephemeral event comes after the events that were in the log
/// when it was sent, and before all later ones.
pub struct Subscription {
    hub: Arc<Hub>,
    name: String,
    reader: Reader,
    passing: Option<broadcast::Receiver<Ephemeral>>,
    /// An ephemeral event that waits for undelivered events of the log.
    next_ephemeral: Option<Ephemeral>,
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
            next_ephemeral: None,
            ready: VecDeque::new(),
        })
    }

    /// The channel's name.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.name
    }

    /// The sequence number of the last delivered event.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.cursor - self.ready.len() as Seq
    }

    /// The sequence number of the channel's last event.
    #[must_use]
    pub fn head(&self) -> Seq {
        self.reader.channel.head()
    }

    /// Rosters that a transport reports.
    pub(crate) fn rosters(&self) -> watch::Receiver<Vec<Participant>> {
        self.reader.channel.rosters()
    }

    /// Waits for the next event. Cancel-safe: dropping the future loses no event.
    ///
    /// # Errors
    /// Errors of reading the log.
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
                // A slow reader may miss ephemeral events.
                event = passing.recv() => self.next_ephemeral = event.ok(),
            }
        }
    }

    /// The next ephemeral event, if it precedes the next event of the log.
    fn take_passing(&mut self) -> Option<Arc<Event>> {
        let given = self.cursor();
        while self.next_ephemeral.is_none() {
            match self.passing.as_mut()?.try_recv() {
                Ok(passing) => self.next_ephemeral = Some(passing),
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(_) => return None,
            }
        }
        let comes = |passing: &mut Ephemeral| passing.after <= given;
        self.next_ephemeral.take_if(comes).map(|next| next.event)
    }
}
