//! Wait for the agents that an event concerns, and for those that their answers concern.

use super::{Host, Inner};
use crate::error::AgentError;
use crate::hub::locked;
use a99_runtime_engine::{AgentKey, Body, Event, Seq, Uuid};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Events that are read at a time.
const PAGE: usize = 500;

/// How often agents are looked at that are awake.
const LOOK: Duration = Duration::from_millis(5);

/// How an agent stands to a place of its channel.
pub(super) enum Handled {
    Yes,
    /// It is at work, is about to wake, or its start is tried again.
    No,
    /// It sleeps, and what the host remembers of it ends before.
    InStore,
    /// It stopped, or can never be started.
    Never,
}

/// The newest events that agents of a channel must have handled.
#[derive(Debug, Default)]
struct Wanted {
    first: Seq,
    /// All of them: the first, and those that follow on it.
    events: BTreeSet<Seq>,
    /// The last event to all, and the last that another one sent.
    to_all: Option<(Seq, Uuid)>,
    by_others: Option<Seq>,
    to_one: HashMap<Uuid, Seq>,
}

impl Wanted {
    /// The place that an agent must have handled, if events concern it.
    fn of(&self, participant: Uuid) -> Option<Seq> {
        let to_all = match self.to_all {
            Some((_, sender)) if sender == participant => self.by_others,
            Some((seq, _)) => Some(seq),
            None => None,
        };
        to_all.max(self.to_one.get(&participant).copied())
    }

    /// Takes an event in: the first, and what those send whom an event before concerns.
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
            // An answer to all is awaited from those who are in the conversation already.
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

/// The handling of an event by the agents that it concerns, and of all that follows on it.
///
/// A wait for it may be dropped and begun again: what was read of the channel is not read
/// again.
#[derive(Debug)]
pub struct Handling {
    host: Host,
    channel: String,
    wanted: Wanted,
    /// The last event that was read.
    cursor: Seq,
}

impl Host {
    /// Waits until the agents that an event concerns have handled it, and all that follows on
    /// its channel: what they sent meanwhile. A message with addressees concerns these, any other
    /// event all agents of the channel but its sender. An answer to all, where the event was not,
    /// concerns only those who were concerned before. Others are not waited for, however many
    /// sleep or are at work.
    ///
    /// Gives the agents that did not handle it and will not, since they stopped or can never be
    /// started; nothing if the time is up before. An agent whose start failed and is tried again
    /// is waited for.
    ///
    /// # Errors
    /// Those of the store.
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
    /// Waits until the event is handled, with all that follows on it. Gives the agents that
    /// did not handle it and will not.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn done(&mut self) -> Result<Vec<AgentKey>, AgentError> {
        let inner = Arc::clone(&self.host.0);
        loop {
            let mut ended = inner.ended.subscribe();
            if let Some(never) = self.look(&inner).await? {
                return Ok(never);
            }
            // Progress of agents that are awake rings no bell; it is looked at.
            drop(tokio::time::timeout(LOOK, ended.changed()).await);
        }
    }

    /// The newest event that an agent must handle, if one concerns it, as far as the channel was
    /// read.
    #[must_use]
    pub fn newest_for(&self, agent: &AgentKey) -> Option<Seq> {
        self.wanted.of(agent.participant())
    }

    /// The agents that the event concerns and that could not be started now, or stopped: those
    /// to name where the wait is given up.
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

    /// Whether an event is the one that is waited for, or follows on it, as far as the channel
    /// was read.
    #[must_use]
    pub fn includes(&self, seq: Seq) -> bool {
        self.wanted.events.contains(&seq)
    }

    /// The agents that will not handle what they should, once all others did.
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
        // What an agent sent is in the log before it is seen to be done.
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
        // One that is for all, and what follows on it.
        let mut wanted = begin(event(5, 9, &[]));
        assert_eq!((of(&wanted, 1), of(&wanted, 2)), (Some(5), Some(5)));
        for seq in [6, 7] {
            wanted.take(&event(seq, 2, &[]));
            assert_eq!((of(&wanted, 1), of(&wanted, 2)), (Some(seq), Some(5)));
        }
    }
}
