//! Waits for the agents that an event concerns, and for the agents that their answers concern.

use super::{Host, Inner};
use crate::error::AgentError;
use crate::hub::locked;
use a99_runtime_engine::{AgentKey, Body, Event, Seq, Uuid};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Page size of log reads, in events.
const PAGE: usize = 500;

/// Interval at which awake agents are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How far an agent is relative to a sequence number.
pub(super) enum Handled {
    Yes,
    /// It is working, is about to wake, or its start is being retried.
    No,
    /// It sleeps, and the host's last known checkpoint is earlier: the store decides.
    InStore,
    /// It stopped, or can never start.
    Never,
}

/// The newest events that agents of a channel must have handled.
#[derive(Debug, Default)]
struct Wanted {
    first: Seq,
    /// The first event and the events that follow from it.
    events: BTreeSet<Seq>,
    /// The last event addressed to all, with its sender, and the last one by another sender.
    to_all: Option<(Seq, Uuid)>,
    by_others: Option<Seq>,
    to_one: HashMap<Uuid, Seq>,
}

impl Wanted {
    /// The sequence number that an agent must reach, if any of the events concerns it.
    fn of(&self, participant: Uuid) -> Option<Seq> {
        let to_all = match self.to_all {
            Some((_, sender)) if sender == participant => self.by_others,
            Some((seq, _)) => Some(seq),
            None => None,
        };
        to_all.max(self.to_one.get(&participant).copied())
    }

    /// Adds an event: the first one, or an event sent by an agent that an earlier one concerns.
    fn take(&mut self, event: &Event) {
        let (seq, sender) = (event.seq.unwrap_or_default(), event.sender.id);
        let follows = self.of(sender).is_some_and(|before| before < seq);
        if !event.body.wakes() || !(seq == self.first || follows) {
            return;
        }
        self.events.insert(seq);
        match &event.body {
            Body::MethodCall { provider_id, .. } => {
                self.to_one.insert(*provider_id, seq);
            }
            Body::Message(message) if !message.at.is_empty() => {
                for one in message.at.iter().filter(|one| **one != sender) {
                    self.to_one.insert(*one, seq);
                }
            }
            // An answer addressed to all is awaited only from agents already in the
            // conversation.
            _ if self.to_all.is_none() && seq != self.first => {
                let others = self.to_one.iter_mut().filter(|(one, _)| **one != sender);
                others.for_each(|(_, place)| *place = seq);
            }
            _ => {
                self.by_others = match self.to_all {
                    Some((_, before)) if before == sender => self.by_others,
                    before => before.map(|(seq, _)| seq),
                };
                self.to_all = Some((seq, sender));
            }
        }
    }
}

/// The handling of an event and its consequences by the agents that it concerns.
///
/// A wait may be dropped and restarted without reading the channel again.
#[derive(Debug)]
pub struct Handling {
    host: Host,
    channel: String,
    wanted: Wanted,
    /// The last event that was read.
    cursor: Seq,
}

impl Host {
    /// Waits until the agents that an event concerns have handled it and the events that follow
    /// from it. A message with addressees concerns those; any other event concerns all agents
    /// of the channel except its sender. An answer addressed to all, where the first event was
    /// not, concerns only the agents already involved. Other agents are not awaited.
    ///
    /// Gives the agents that did not handle it and will not, because they stopped or can never
    /// start; `None` if the time limit passes first. An agent whose failed start is being
    /// retried is awaited.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn handled(
        &self,
        channel: &str,
        seq: Seq,
        limit: Duration,
    ) -> Result<Option<Vec<AgentKey>>, AgentError> {
        let mut handling = self.handling(channel, seq);
        match tokio::time::timeout(limit, handling.done()).await {
            Ok(never) => never.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The same as [`Host::handled`], for callers that do other work while they wait.
    #[must_use]
    pub fn handling(&self, channel: &str, seq: Seq) -> Handling {
        Handling {
            host: self.clone(),
            channel: channel.to_owned(),
            wanted: Wanted {
                first: seq,
                ..Wanted::default()
            },
            cursor: seq.saturating_sub(1),
        }
    }
}

impl Handling {
    /// Waits until the event and the events that follow from it are handled. Gives the agents
    /// that did not handle it and will not.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn done(&mut self) -> Result<Vec<AgentKey>, AgentError> {
        let inner = Arc::clone(&self.host.0);
        loop {
            let mut ended = inner.ended.subscribe();
            if let Some(never) = self.look(&inner).await? {
                return Ok(never);
            }
            // The progress of awake agents sends no notification, hence the polling.
            drop(tokio::time::timeout(POLL_INTERVAL, ended.changed()).await);
        }
    }

    /// The newest event that concerns an agent, as far as the channel was read.
    #[must_use]
    pub fn newest_for(&self, agent: &AgentKey) -> Option<Seq> {
        self.wanted.of(agent.participant())
    }

    /// The concerned agents that failed to start or stopped: those to report when the wait is
    /// given up.
    #[must_use]
    pub fn failed(&self) -> Vec<AgentKey> {
        let slots = locked(&self.host.0.slots);
        let agents = slots.of_channel(&self.channel).into_iter();
        let failed = agents.filter(|(key, participant)| {
            let place = self.wanted.of(*participant);
            place.is_some_and(|place| slots.has_failed(key, place))
        });
        failed.map(|(key, _)| key).collect()
    }

    /// Whether an event is the awaited one or follows from it, as far as the channel was read.
    #[must_use]
    pub fn includes(&self, seq: Seq) -> bool {
        self.wanted.events.contains(&seq)
    }

    /// The agents that will never handle their events, once all others have.
    async fn look(&mut self, inner: &Inner) -> Result<Option<Vec<AgentKey>>, AgentError> {
        let hub = inner.shared.hub();
        let log = hub.channel(&self.channel).await?;
        loop {
            let events = hub.read(&self.channel, &log, self.cursor, PAGE).await?;
            let Some(last) = events.last().and_then(|event| event.seq) else {
                break;
            };
            events.iter().for_each(|event| self.wanted.take(event));
            self.cursor = last;
        }
        let mut never = Vec::new();
        let agents = locked(&inner.slots).of_channel(&self.channel);
        for (key, participant) in agents {
            let Some(place) = self.wanted.of(participant) else {
                continue;
            };
            let handled = locked(&inner.slots).handled(&key, place);
            match handled {
                Handled::Yes => {}
                Handled::No => return Ok(None),
                Handled::Never => never.push(key),
                Handled::InStore => {
                    let row = inner.shared.agents().load(&key).await?;
                    if row.is_none_or(|row| !row.progress.has(place)) {
                        return Ok(None);
                    }
                }
            }
        }
        // An agent's events are in the log before its progress is visible.
        let is_all = log.head() <= self.cursor;
        Ok(is_all.then_some(never))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_runtime_engine::{EventKind, Message, Sender};

    fn event(seq: Seq, sender: u128, at: &[u128]) -> Event {
        let at = at.iter().map(|id| Uuid::from_u128(*id)).collect();
        Event {
            id: Uuid::from_u128(1_000 + u128::from(seq)),
            seq: Some(seq),
            kind: EventKind::Persisted,
            ts: 0,
            sender: Arc::new(Sender {
                id: Uuid::from_u128(sender),
                ..Sender::default()
            }),
            hops: 0,
            body: Body::Message(Message {
                at,
                ..Message::text("x")
            }),
            attachments: Vec::new(),
        }
    }

    #[test]
    fn an_event_concerns_its_addressees_and_those_of_what_follows() {
        let begin = |event: Event| {
            let mut wanted = Wanted {
                first: 5,
                ..Wanted::default()
            };
            wanted.take(&event);
            wanted
        };
        let of = |wanted: &Wanted, id| wanted.of(Uuid::from_u128(id));
        let mut wanted = begin(event(5, 9, &[1, 2]));
        assert_eq!((of(&wanted, 1), of(&wanted, 3)), (Some(5), None));
        // Of another conversation.
        wanted.take(&event(6, 3, &[4]));
        assert_eq!(wanted.events.iter().copied().collect::<Vec<_>>(), [5]);
        assert_eq!(of(&wanted, 4), None);
        wanted.take(&event(7, 1, &[]));
        assert_eq!((of(&wanted, 1), of(&wanted, 2)), (Some(5), Some(7)));
        assert_eq!(of(&wanted, 3), None);
        wanted.take(&event(8, 1, &[3]));
        assert_eq!(of(&wanted, 3), Some(8));
        // An event to all, and the events that follow from it.
        let mut wanted = begin(event(5, 9, &[]));
        assert_eq!((of(&wanted, 1), of(&wanted, 2)), (Some(5), Some(5)));
        for seq in [6, 7] {
            wanted.take(&event(seq, 2, &[]));
            assert_eq!((of(&wanted, 1), of(&wanted, 2)), (Some(seq), Some(5)));
        }
    }
}
