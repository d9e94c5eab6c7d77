//! Slots: what a host knows of each agent, awake or not.

use super::handled::Handled;
use crate::activation::{Signal, Status};
use crate::agent::Identity;
use crate::bus::{Participant, is_handle};
use crate::error::{AgentError, codes};
use crate::runner::Runner;
use a99_runtime_engine::{AgentKey, Body, Event, Seq, Uuid};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Pauses between attempts to start an agent: the first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How an agent is.
pub(crate) enum Phase {
    Asleep,
    Awake(Awake),
    /// It could not be started.
    Failed(AgentError),
    /// It stopped and is not started again by itself.
    Stopped(AgentError),
}

pub(crate) struct Awake {
    signals: mpsc::UnboundedSender<Signal>,
    status: watch::Receiver<Status>,
}

/// How an agent stands that somebody waits for.
pub(crate) enum Standing {
    Asleep,
    Awake(watch::Receiver<Status>),
    /// It could not be started, and is tried again.
    Failed(AgentError),
    /// It is not started again by itself.
    Over(AgentError),
}

struct Slot {
    identity: Arc<Identity>,
    participant: Uuid,
    phase: Phase,
    /// Which waking of the host's it is.
    generation: u64,
    /// Starts that failed, one after the other.
    failures: u32,
    /// Whether it did not wake yet since the store was cut off.
    was_cut_off: bool,
    /// Whether that was so when it woke last.
    woke_cut_off: bool,
    /// As it was when it slept last.
    last: Option<Box<Status>>,
    /// The value with which it wakes first, if it was made already.
    made: Option<Arc<dyn Runner>>,
    /// While it is held asleep: whether something wants it awake.
    held: Option<bool>,
}

/// What an activation needs of its slot.
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
    /// Those who joined a channel and are no agents of this host.
    joined: HashMap<String, Vec<Participant>>,
    /// Counts all times that an agent woke.
    generation: u64,
    /// Agents that were removed while they were awake, and have not ended yet.
    leaving: BTreeMap<AgentKey, u64>,
}

impl Slots {
    /// Adds an agent, or changes its configuration, which it has when it wakes next. Whether
    /// it is new.
    pub(crate) fn add(&mut self, key: AgentKey, config: Value, was_cut_off: bool) -> bool {
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
        let slot = Slot {
            identity,
            participant: key.participant(),
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

    /// Gives a new agent the value with which it wakes.
    pub(crate) fn give(&mut self, key: &AgentKey, made: Option<Arc<dyn Runner>>) {
        if let Some(slot) = self.by_key.get_mut(key) {
            slot.made = made;
        }
    }

    /// Refuses a handle that somebody else has on the channel.
    pub(crate) fn check_handle(&self, key: &AgentKey) -> Result<(), AgentError> {
        let agents = self.by_channel.get(key.channel()).into_iter().flatten();
        let mut agents = agents.filter(|other| *other != key);
        let mut joined = self.joined.get(key.channel()).into_iter().flatten();
        let agent = agents.find(|other| is_handle(other.handle(), key.handle()));
        let joined = joined.find(|other| is_handle(&other.handle, key.handle()));
        let other = agent
            .map(ToString::to_string)
            .or_else(|| joined.map(|other| other.name.clone()));
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

    /// Agents that sleep and may want an event.
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

    /// Takes a slot that sleeps for an activation.
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

    /// Ends an activation. Gives the time after which it is to be tried again, if it is.
    pub(crate) fn end(
        &mut self,
        key: &AgentKey,
        generation: u64,
        phase: Phase,
    ) -> Option<Duration> {
        if self.leaving.get(key) == Some(&generation) {
            self.leaving.remove(key);
            // It may have been invited again meanwhile.
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
            // It is in the store.
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

    /// Lets an agent be started that failed.
    pub(crate) fn try_again(&mut self, key: &AgentKey) {
        if let Some(slot) = self.by_key.get_mut(key)
            && matches!(slot.phase, Phase::Failed(_))
        {
            slot.phase = Phase::Asleep;
        }
    }

    /// The same for one that stopped too. Whether it is there.
    pub(crate) fn forgive(&mut self, key: &AgentKey) -> bool {
        let Some(slot) = self.by_key.get_mut(key) else {
            return false;
        };
        if matches!(slot.phase, Phase::Failed(_) | Phase::Stopped(_)) {
            slot.phase = Phase::Asleep;
        }
        true
    }

    /// Keeps an agent from waking, and has one that is awake sleep. Nothing for one that is
    /// not there; false where it is held already.
    pub(super) fn hold(&mut self, key: &AgentKey) -> Option<bool> {
        let slot = self.by_key.get_mut(key)?;
        if slot.held.is_some() {
            return Some(false);
        }
        slot.held = Some(!matches!(slot.phase, Phase::Asleep));
        self.signal(key, Signal::Drain);
        Some(true)
    }

    /// Lets an agent wake again that was held, whatever it stopped for. Whether something
    /// wants that. How far it is may be another now.
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

    /// Forgets values that were made of a definition and that no agent woke with.
    pub(super) fn forget_made(&mut self, name: &str) {
        let of_name = self.by_key.iter_mut();
        let of_name = of_name.filter(|(key, _)| key.agent() == name);
        of_name.for_each(|(_, slot)| slot.made = None);
    }

    /// Tells an agent something, if it is awake. Whether it is.
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

    /// Whether everybody else on a channel is a person (type `panel`).
    pub(crate) fn is_solo(&self, channel: &str, me: Uuid) -> bool {
        let mut agents = self.by_channel.get(channel).into_iter().flatten();
        let mut joined = self.joined.get(channel).into_iter().flatten();
        agents.all(|key| {
            self.by_key
                .get(key)
                .is_none_or(|slot| slot.participant == me)
        }) && joined.all(|other| other.kind == "panel")
    }

    /// The agents of a channel, and those who joined it.
    pub(crate) fn present(&self, channel: &str) -> (Vec<Arc<Identity>>, Vec<Participant>) {
        let agents = self.by_channel.get(channel).into_iter().flatten();
        let agents = agents.filter_map(|key| Some(Arc::clone(&self.by_key.get(key)?.identity)));
        let joined = self.joined.get(channel).cloned().unwrap_or_default();
        (agents.collect(), joined)
    }

    pub(crate) fn join(&mut self, channel: &str, joining: Participant) {
        let there = self.joined.entry(channel.to_owned()).or_default();
        there.retain(|other| other.id != joining.id);
        there.push(joining);
    }

    pub(crate) fn leave(&mut self, channel: &str, id: Uuid) -> Option<Participant> {
        let there = self.joined.get_mut(channel)?;
        let at = there.iter().position(|other| other.id == id)?;
        Some(there.remove(at))
    }

    /// The agents of a channel.
    pub(super) fn of_channel(&self, channel: &str) -> Vec<(AgentKey, Uuid)> {
        let there = self.by_channel.get(channel).into_iter().flatten();
        let there = there.filter_map(|key| Some((key.clone(), self.by_key.get(key)?.participant)));
        there.collect()
    }

    /// How an agent stands to a place of its channel.
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
            // It is started again by itself.
            Phase::Failed(error) if !error.is_final() => Handled::No,
            Phase::Failed(_) | Phase::Stopped(_) => Handled::Never,
        }
    }

    /// Whether an agent has not handled a place, and cannot be started now, or stopped.
    pub(super) fn has_failed(&self, key: &AgentKey, place: Seq) -> bool {
        let phase = self.by_key.get(key).map(|slot| &slot.phase);
        matches!(phase, Some(Phase::Failed(_) | Phase::Stopped(_)))
            && !matches!(self.handled(key, place), Handled::Yes)
    }

    /// How an agent stands; one that is not there sleeps.
    pub(crate) fn standing(&self, key: &AgentKey) -> Standing {
        match self.by_key.get(key).map(|slot| &slot.phase) {
            Some(Phase::Awake(awake)) => Standing::Awake(awake.status.clone()),
            Some(Phase::Failed(error)) if !error.is_final() => Standing::Failed(error.clone()),
            Some(Phase::Failed(error) | Phase::Stopped(error)) => Standing::Over(error.clone()),
            Some(Phase::Asleep) | None => Standing::Asleep,
        }
    }

    /// How an agent is, in a word, and what was counted.
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

    /// Of each agent: whether it is awake, whether it stopped for good, and how far it is.
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
