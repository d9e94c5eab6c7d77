//! Slots: a host's record of each agent, awake or asleep.

use super::handled::Handled;
use crate::activation::{Signal, Status};
use crate::agent::Identity;
use crate::bus::{Participant, is_handle};
use crate::error::{AgentError, codes};
use crate::metrics::Looked;
use crate::roster::own_metadata;
use crate::runner::Runner;
use a99_runtime_engine::{AgentKey, Body, Event, Registration, Seq, Uuid};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Back-off between attempts to start an agent: first and maximum pause.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The phase of an agent.
pub(crate) enum Phase {
    Asleep,
    Awake(Awake),
    /// Its start failed.
    Failed(AgentError),
    /// It stopped and does not restart automatically.
    Stopped(AgentError),
}

pub(crate) struct Awake {
    signals: mpsc::UnboundedSender<Signal>,
    status: watch::Receiver<Status>,
}

/// The status of an awaited agent.
pub(crate) enum Standing {
    Asleep,
    Awake(watch::Receiver<Status>),
    /// Its start failed and is retried.
    Failed(AgentError),
    /// It does not restart automatically.
    Over(AgentError),
}

struct Slot {
    identity: Arc<Identity>,
    participant: Uuid,
    /// Its place among the channel's participants.
    seen: u64,
    /// The metadata that the agent set; `None` for that of its connect options.
    metadata: Option<Map<String, Value>>,
    phase: Phase,
    /// The host-wide number of this waking.
    generation: u64,
    /// Consecutive failed starts.
    failures: u32,
    /// Whether the agent has not woken since the store was interrupted.
    was_cut_off: bool,
    /// The same flag at its last waking.
    woke_cut_off: bool,
    /// The status when it last went to sleep.
    last: Option<Box<Status>>,
    /// A value made before the first waking.
    made: Option<Arc<dyn Runner>>,
    /// While the agent is held asleep: whether it has a reason to wake.
    held: Option<bool>,
}

/// A participant of a channel.
pub(super) enum Member {
    /// An agent of this host, and the metadata that it set.
    Agent(Arc<Identity>, Option<Map<String, Value>>),
    Joined(Participant),
}

/// The parts of a slot that an activation needs.
pub(crate) struct Start {
    pub(crate) identity: Arc<Identity>,
    pub(crate) generation: u64,
    pub(crate) signals: mpsc::UnboundedReceiver<Signal>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) was_cut_off: bool,
    pub(crate) made: Option<Arc<dyn Runner>>,
}

#[derive(Default)]
pub(crate) struct Slots {
    by_key: BTreeMap<AgentKey, Slot>,
    by_channel: HashMap<String, Vec<AgentKey>>,
    /// Participants that joined a channel and are not agents of this host, with their places.
    joined: HashMap<String, Vec<(u64, Participant)>>,
    /// Counts the participants of all channels, in the order in which they came.
    seen: u64,
    /// Counts all wakings.
    generation: u64,
    /// Agents that were removed while awake and have not ended yet.
    leaving: BTreeMap<AgentKey, u64>,
}

impl Slots {
    /// Adds an agent, or changes the configuration for its next waking. Gives whether it is
    /// new.
    pub(crate) fn add(&mut self, registration: Registration, was_cut_off: bool) -> bool {
        let (key, config) = (registration.key, registration.config);
        let identity = Arc::new(Identity {
            key: key.clone(),
            config: Arc::new(config),
        });
        if let Some(slot) = self.by_key.get_mut(&key) {
            slot.identity = identity;
            slot.made = None;
            return false;
        }
        let on_channel = self.by_channel.entry(key.channel().to_owned()).or_default();
        on_channel.push(key.clone());
        self.seen += 1;
        let slot = Slot {
            identity,
            participant: key.participant(),
            seen: self.seen,
            metadata: registration.metadata.as_ref().map(own_metadata),
            phase: Phase::Asleep,
            generation: 0,
            failures: 0,
            was_cut_off,
            woke_cut_off: false,
            last: None,
            made: None,
            held: None,
        };
        self.by_key.insert(key, slot);
        true
    }

    /// Stores the value for a new agent's first waking.
    pub(crate) fn give(&mut self, key: &AgentKey, made: Option<Arc<dyn Runner>>) {
        if let Some(slot) = self.by_key.get_mut(key) {
            slot.made = made;
        }
    }

    /// Refuses a handle that another participant of the channel has.
    pub(crate) fn check_handle(&self, key: &AgentKey) -> Result<(), AgentError> {
        let agents = self.by_channel.get(key.channel()).into_iter().flatten();
        let mut agents = agents.filter(|other| *other != key);
        let mut joined = self.joined.get(key.channel()).into_iter().flatten();
        let agent = agents.find(|other| is_handle(other.handle(), key.handle()));
        let joined = joined.find(|(_, other)| is_handle(&other.handle, key.handle()));
        let other = agent
            .map(ToString::to_string)
            .or_else(|| joined.map(|(_, other)| other.name.clone()));
        match other {
            None => Ok(()),
            Some(other) => Err(AgentError::new(
                codes::HANDLE_CONFLICT,
                format!("the handle @{} is {other}'s on this channel", key.handle()),
            )
            .fatal()),
        }
    }

    pub(crate) fn remove(&mut self, key: &AgentKey) -> Option<mpsc::UnboundedSender<Signal>> {
        if let Some(there) = self.by_channel.get_mut(key.channel()) {
            there.retain(|other| other != key);
        }
        let slot = self.by_key.remove(key)?;
        match slot.phase {
            Phase::Awake(awake) => {
                self.leaving.insert(key.clone(), slot.generation);
                Some(awake.signals)
            }
            _ => None,
        }
    }

    pub(crate) fn contains(&self, key: &AgentKey) -> bool {
        self.by_key.contains_key(key)
    }

    pub(crate) fn identity(&self, key: &AgentKey) -> Option<Arc<Identity>> {
        self.by_key.get(key).map(|slot| Arc::clone(&slot.identity))
    }

    pub(crate) fn keys(&self) -> Vec<AgentKey> {
        self.by_key.keys().cloned().collect()
    }

    /// Sleeping agents that may want an event.
    pub(crate) fn asleep_for(&self, channel: &str, event: &Event) -> Vec<AgentKey> {
        let there = self.by_channel.get(channel).into_iter().flatten();
        let asleep = there.filter(|key| {
            self.by_key.get(*key).is_some_and(|slot| {
                let is_asked = match &event.body {
                    Body::MethodCall { provider_id, .. } => *provider_id == slot.participant,
                    _ => true,
                };
                matches!(slot.phase, Phase::Asleep)
                    && slot.participant != event.sender.id
                    && is_asked
            })
        });
        asleep.cloned().collect()
    }

    /// Takes a sleeping slot for an activation.
    pub(crate) fn start(&mut self, key: &AgentKey) -> Option<Start> {
        if self.leaving.contains_key(key) {
            return None;
        }
        let slot = self.by_key.get_mut(key)?;
        if let Some(is_wanted) = &mut slot.held {
            *is_wanted = true;
            return None;
        }
        if !matches!(slot.phase, Phase::Asleep) {
            return None;
        }
        let (sender, signals) = mpsc::unbounded_channel();
        let status = slot
            .last
            .take()
            .map_or_else(Status::default, |status| *status);
        let (status, seen) = watch::channel(status);
        slot.phase = Phase::Awake(Awake {
            signals: sender,
            status: seen,
        });
        self.generation += 1;
        slot.generation = self.generation;
        slot.woke_cut_off = std::mem::take(&mut slot.was_cut_off);
        Some(Start {
            identity: Arc::clone(&slot.identity),
            generation: slot.generation,
            signals,
            status,
            was_cut_off: slot.woke_cut_off,
            made: slot.made.take(),
        })
    }

    /// Ends an activation. Gives the pause before the next attempt, if there is to be one.
    pub(crate) fn end(
        &mut self,
        key: &AgentKey,
        generation: u64,
        phase: Phase,
    ) -> Option<Duration> {
        if self.leaving.get(key) == Some(&generation) {
            self.leaving.remove(key);
            // The agent may have been invited again meanwhile.
            return self.by_key.contains_key(key).then_some(Duration::ZERO);
        }
        let slot = self.by_key.get_mut(key)?;
        if slot.generation != generation {
            return None;
        }
        if matches!(phase, Phase::Failed(_)) {
            slot.was_cut_off = slot.woke_cut_off;
        }
        if let Phase::Awake(awake) = &slot.phase {
            let mut status = awake.status.borrow().clone();
            // The store has it.
            status.state = None;
            status.is_up = false;
            slot.last = Some(Box::new(status));
        }
        let again = match &phase {
            Phase::Failed(error) if !error.is_final() => {
                slot.failures = slot.failures.saturating_add(1);
                let pause = 2_u32.saturating_pow(slot.failures - 1);
                Some(FIRST_PAUSE.saturating_mul(pause).min(MAX_PAUSE))
            }
            _ => {
                slot.failures = 0;
                None
            }
        };
        slot.phase = phase;
        again
    }

    /// Allows a failed agent to start again.
    pub(crate) fn try_again(&mut self, key: &AgentKey) {
        if let Some(slot) = self.by_key.get_mut(key)
            && matches!(slot.phase, Phase::Failed(_))
        {
            slot.phase = Phase::Asleep;
        }
    }

    /// Allows a failed or stopped agent to start again. Gives whether the agent exists.
    pub(crate) fn forgive(&mut self, key: &AgentKey) -> bool {
        let Some(slot) = self.by_key.get_mut(key) else {
            return false;
        };
        if matches!(slot.phase, Phase::Failed(_) | Phase::Stopped(_)) {
            slot.phase = Phase::Asleep;
        }
        true
    }

    /// Keeps an agent asleep, or makes an awake one sleep. `None` for an unknown agent; false
    /// if it is already held.
    pub(super) fn hold(&mut self, key: &AgentKey) -> Option<bool> {
        let slot = self.by_key.get_mut(key)?;
        if slot.held.is_some() {
            return Some(false);
        }
        slot.held = Some(!matches!(slot.phase, Phase::Asleep));
        self.signal(key, Signal::Drain);
        Some(true)
    }

    /// Allows a held agent to wake again, even after it failed or stopped. Gives whether it has
    /// a reason to wake. Its checkpoint may have changed.
    pub(super) fn release(&mut self, key: &AgentKey) -> bool {
        self.forgive(key);
        let Some(slot) = self.by_key.get_mut(key) else {
            return false;
        };
        slot.last = slot.last.take().map(|last| {
            Box::new(Status {
                turns: last.turns,
                failed: last.failed,
                hop_limited: last.hop_limited,
                ..Status::default()
            })
        });
        slot.held.take().unwrap_or_default()
    }

    /// Drops unused values of a definition.
    pub(super) fn forget_made(&mut self, name: &str) {
        let of_name = self.by_key.iter_mut();
        let of_name = of_name.filter(|(key, _)| key.agent() == name);
        of_name.for_each(|(_, slot)| slot.made = None);
    }

    /// Signals an agent if it is awake. Gives whether it is.
    pub(crate) fn signal(&self, key: &AgentKey, signal: Signal) -> bool {
        match self.by_key.get(key).map(|slot| &slot.phase) {
            Some(Phase::Awake(awake)) => awake.signals.send(signal).is_ok(),
            _ => false,
        }
    }

    pub(crate) fn signal_all(&self, signal: impl Fn() -> Signal) {
        for slot in self.by_key.values() {
            if let Phase::Awake(awake) = &slot.phase {
                // It may have ended meanwhile.
                drop(awake.signals.send(signal()));
            }
        }
    }

    pub(crate) fn is_awake(&self, key: &AgentKey) -> bool {
        let slot = self.by_key.get(key);
        slot.is_some_and(|slot| matches!(slot.phase, Phase::Awake(_)))
            || self.leaving.contains_key(key)
    }

    pub(crate) fn awake(&self) -> Vec<AgentKey> {
        let awake = self.by_key.iter();
        let awake = awake.filter(|(_, slot)| matches!(slot.phase, Phase::Awake(_)));
        let awake = awake.map(|(key, _)| key);
        awake.chain(self.leaving.keys()).cloned().collect()
    }

    /// Whether all other participants of a channel are people (type `panel`).
    pub(crate) fn is_solo(&self, channel: &str, me: Uuid) -> bool {
        let mut agents = self.by_channel.get(channel).into_iter().flatten();
        let mut joined = self.joined.get(channel).into_iter().flatten();
        agents.all(|key| {
            self.by_key
                .get(key)
                .is_none_or(|slot| slot.participant == me)
        }) && joined.all(|(_, other)| other.kind == "panel")
    }

    /// An agent of a channel as its roster shows it.
    pub(super) fn member(&self, key: &AgentKey) -> Option<Member> {
        let slot = self.by_key.get(key)?;
        Some(Member::Agent(
            Arc::clone(&slot.identity),
            slot.metadata.clone(),
        ))
    }

    /// The participants of a channel, in the order in which they came.
    pub(super) fn present(&self, channel: &str) -> Vec<Member> {
        let agents = self.by_channel.get(channel).into_iter().flatten();
        let agents = agents.filter_map(|key| Some((self.by_key.get(key)?.seen, self.member(key)?)));
        let joined = self.joined.get(channel).into_iter().flatten();
        let joined = joined.map(|(seen, who)| (*seen, Member::Joined(who.clone())));
        let mut present: Vec<_> = agents.chain(joined).collect();
        present.sort_by_key(|(seen, _)| *seen);
        present.into_iter().map(|(_, member)| member).collect()
    }

    /// Adds a participant. Gives the one of the same identity that it replaces.
    pub(crate) fn join(&mut self, channel: &str, joining: Participant) -> Option<Participant> {
        let there = self.joined.entry(channel.to_owned()).or_default();
        match there.iter_mut().find(|(_, other)| other.id == joining.id) {
            Some((_, other)) => Some(std::mem::replace(other, joining)),
            None => {
                self.seen += 1;
                there.push((self.seen, joining));
                None
            }
        }
    }

    pub(crate) fn leave(&mut self, channel: &str, id: Uuid) -> Option<Participant> {
        let there = self.joined.get_mut(channel)?;
        let at = there.iter().position(|(_, other)| other.id == id)?;
        Some(there.remove(at).1)
    }

    /// Replaces the metadata of a participant.
    pub(super) fn describe(&mut self, channel: &str, id: Uuid, metadata: &Map<String, Value>) {
        let metadata = own_metadata(metadata);
        let mut agents = self.by_channel.get(channel).into_iter().flatten();
        let is_it = |key: &&AgentKey| key.participant() == id;
        if let Some(slot) = agents.find(is_it).and_then(|key| self.by_key.get_mut(key)) {
            slot.metadata = Some(metadata);
            return;
        }
        let mut joined = self.joined.get_mut(channel).into_iter().flatten();
        if let Some((_, who)) = joined.find(|(_, who)| who.id == id) {
            who.metadata = metadata;
        }
    }

    /// The agents of a channel, with their participant identities.
    pub(super) fn of_channel(&self, channel: &str) -> Vec<(AgentKey, Uuid)> {
        let there = self.by_channel.get(channel).into_iter().flatten();
        let there = there.filter_map(|key| Some((key.clone(), self.by_key.get(key)?.participant)));
        there.collect()
    }

    /// How far an agent is relative to a sequence number.
    pub(super) fn handled(&self, key: &AgentKey, place: Seq) -> Handled {
        let Some(slot) = self.by_key.get(key) else {
            return Handled::Never;
        };
        let has = |status: &Status| status.checkpoint >= place || status.done.contains(&place);
        match &slot.phase {
            Phase::Awake(awake) if has(&awake.status.borrow()) => Handled::Yes,
            Phase::Awake(_) => Handled::No,
            Phase::Asleep | Phase::Failed(_) if slot.last.as_deref().is_some_and(has) => {
                Handled::Yes
            }
            Phase::Asleep => Handled::InStore,
            // It restarts automatically.
            Phase::Failed(error) if !error.is_final() => Handled::No,
            Phase::Failed(_) | Phase::Stopped(_) => Handled::Never,
        }
    }

    /// Whether an agent has not handled a sequence number and failed to start or stopped.
    pub(super) fn has_failed(&self, key: &AgentKey, place: Seq) -> bool {
        let phase = self.by_key.get(key).map(|slot| &slot.phase);
        matches!(phase, Some(Phase::Failed(_) | Phase::Stopped(_)))
            && !matches!(self.handled(key, place), Handled::Yes)
    }

    /// The status of an agent; an unknown one counts as asleep.
    pub(crate) fn standing(&self, key: &AgentKey) -> Standing {
        match self.by_key.get(key).map(|slot| &slot.phase) {
            Some(Phase::Awake(awake)) => Standing::Awake(awake.status.clone()),
            Some(Phase::Failed(error)) if !error.is_final() => Standing::Failed(error.clone()),
            Some(Phase::Failed(error) | Phase::Stopped(error)) => Standing::Over(error.clone()),
            Some(Phase::Asleep) | None => Standing::Asleep,
        }
    }

    /// The status word of an agent, and its counters.
    pub(crate) fn look(&self, key: &AgentKey) -> (&'static str, Status) {
        let Some(slot) = self.by_key.get(key) else {
            return ("unknown", Status::default());
        };
        let mut status = slot.last.as_deref().cloned().unwrap_or_default();
        let word = match &slot.phase {
            Phase::Asleep => "asleep",
            Phase::Awake(awake) => {
                status = awake.status.borrow().clone();
                "awake"
            }
            Phase::Failed(error) => {
                status.last_error = Some(error.clone());
                "failed"
            }
            Phase::Stopped(error) => {
                status.last_error = Some(error.clone());
                "stopped"
            }
        };
        (word, status)
    }

    /// State and lag of each agent, by the heads that the host knows. An agent that is asleep, or
    /// was not awake since the host started, has no lag.
    pub(crate) fn looked(&self, head: impl Fn(&str) -> Option<Seq>) -> Vec<Looked> {
        let looked = self.by_key.iter().map(|(key, slot)| {
            let (state, at) = match &slot.phase {
                Phase::Asleep => ("asleep", None),
                Phase::Awake(awake) => {
                    let status = awake.status.borrow();
                    ("awake", status.is_up.then_some(status.checkpoint))
                }
                Phase::Failed(_) => ("failed", slot.last.as_ref().map(|last| last.checkpoint)),
                Phase::Stopped(_) => ("stopped", slot.last.as_ref().map(|last| last.checkpoint)),
            };
            let lag = at.and_then(|at| Some(head(key.channel())?.saturating_sub(at)));
            Looked {
                key: key.to_string(),
                state,
                lag,
            }
        });
        looked.collect()
    }

    /// For each agent: whether it is awake, whether it stopped permanently, and its checkpoint.
    pub(crate) fn progress(&self) -> Vec<(AgentKey, bool, bool, Seq)> {
        let looked = self.by_key.iter().map(|(key, slot)| {
            let (is_awake, is_over) = match &slot.phase {
                Phase::Awake(_) => (true, false),
                Phase::Asleep => (false, false),
                Phase::Failed(error) => (false, error.is_final()),
                Phase::Stopped(_) => (false, true),
            };
            let (_, status) = self.look(key);
            (key.clone(), is_awake, is_over, status.checkpoint)
        });
        looked.collect()
    }
}
