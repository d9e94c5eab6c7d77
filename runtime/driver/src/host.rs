//! Host: runs agents in this process, wakes them for events and timers, and lets them sleep.

mod builder;
mod calls;
mod channels;
mod handled;
mod hold;
mod inner;
mod run;
mod shards;
mod slots;
mod timers;

pub use handled::Handling;
pub use hold::Held;
pub use run::{AgentRunEnd, RunAgentOptions, run_agent};
pub use shards::HostShards;

use crate::activation::Signal;
use crate::agent::Identity;
use crate::bus::{Participant, is_handle};
use crate::changes::Changes;
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::log::{Log, LogLevel};
use crate::options::HostOptions;
use crate::publishing::Publishing;
use crate::roster::{ReadRoster, RosterChange, ToolRoleConflict, conflict_changes, roster_changes};
use crate::runner::Runner;
use crate::shared::Shared;
use crate::states::{StateChange, StateSubscription};
use crate::subscription::Subscription;
use crate::trace::Tracer;
use a99_capabilities::{AiProvider, Clock, Random, SystemClock, SystemRandom};
use a99_runtime_engine::{
    AgentKey, Attachment, Body, DeadLetter, Event, Fence, NewEvent, PresenceAction, Registration,
    Sender, Seq, Shards, TimerRow, TurnCommit, Uuid, check_part, published,
};
use inner::described;
use serde::Serialize;
use serde_json::Value;
use slots::Slots;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

type Factory = Arc<dyn Fn(&Identity) -> Arc<dyn Runner> + Send + Sync>;

/// Runs agents in this process. Clones share one host.
///
/// It needs a tokio runtime. An idle agent has no task and uses almost no memory; an event on
/// its channel or a timer wakes it.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    factories: Mutex<HashMap<String, Factory>>,
    slots: Mutex<Slots>,
    /// Serialises joins and leaves.
    membership: tokio::sync::Mutex<()>,
    /// Notified when a timer is set, or an agent with a timer goes to sleep.
    timers_changed: Arc<Notify>,
    /// Changes whenever an agent ends.
    ended: watch::Sender<u64>,
    is_stopping: AtomicBool,
    /// The shards of a host that shares its store.
    holding: Option<Arc<shards::Holding>>,
    /// When timers were last checked, by the host's clock; initially later than any time.
    rang_at: AtomicU64,
    runtime: Handle,
    weak: Weak<Inner>,
    /// Processes that run agents for this host.
    #[cfg(unix)]
    processes: Vec<Arc<crate::process::Link>>,
}

/// Builds a [`Host`].
pub struct HostBuilder {
    factories: HashMap<String, Factory>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    ai: Option<Arc<dyn AiProvider>>,
    log: Log,
    tracer: Tracer,
    options: HostOptions,
    shards: Option<HostShards>,
    #[cfg(unix)]
    processes: Vec<Arc<crate::process::Link>>,
}

/// An event to publish on a channel.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The event's content.
    pub body: Body,
    /// The event's sender.
    pub sender: Sender,
    /// Idempotency key: publishing again under the same key by the same sender has no effect.
    pub key: Option<String>,
    /// Attached bytes.
    pub attachments: Vec<Attachment>,
}

/// The result of [`Host::publish`].
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The event as the log stores it.
    pub event: Arc<Event>,
    /// Whether this call appended it; false if the idempotency key was already used.
    pub is_new: bool,
}

/// Status and counters of an agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// The agent's key.
    pub key: AgentKey,
    /// `awake`, `asleep`, `failed`, `stopped`, or `unknown` for an agent of another host.
    pub status: &'static str,
    /// The state; `None` before the first committed turn, or if the stored text is not valid
    /// JSON.
    pub state: Option<Value>,
    /// The version of the state.
    pub version: u32,
    /// The last sequence number that the agent has processed.
    pub checkpoint: Seq,
    /// Number of channel events after the checkpoint.
    pub lag: Seq,
    /// The settings that users changed.
    pub settings: Option<Value>,
    /// The agent's timers.
    pub timers: Vec<TimerRow>,
    /// Turns that were given up.
    pub dead_letters: Vec<DeadLetter>,
    /// Turns committed since the host started.
    pub turns: u64,
    /// Failed attempts since the host started.
    pub failed: u64,
    /// Events dropped since the host started because they passed through more agents than
    /// [`HostOptions::max_hops`].
    pub hop_limited: u64,
    /// Code and message of the last error.
    pub last_error: Option<(String, String)>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder").finish_non_exhaustive()
    }
}

impl Host {
    /// A builder with the system's clock and randomness, and no agents.
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder {
            factories: HashMap::new(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            ai: None,
            log: Log(None),
            tracer: Tracer::default(),
            options: HostOptions::default(),
            shards: None,
            #[cfg(unix)]
            processes: Vec::new(),
        }
    }

    /// Invites an agent to its channel and wakes it, or changes its configuration. The log
    /// records that a new agent joins. The agent also receives the events that the log already
    /// holds, unless [`ConnectOptions::replay`](crate::ConnectOptions::replay) starts later.
    ///
    /// # Errors
    /// `agent.unknown`; `host.not_owner` for an agent of another host of the store;
    /// `handle-conflict` if another participant of the channel has the handle; `agent.bad_policy` for an agent with tables that would run concurrent turns; errors of
    /// the store.
    pub async fn invite(&self, key: &AgentKey, config: Value) -> Result<(), AgentError> {
        self.0.going_on()?;
        if self.0.factory(key.agent()).is_none() {
            return Err(AgentError::new(
                codes::UNKNOWN_AGENT,
                format!(
                    "no agent is called '{}'; known are: {}",
                    key.agent(),
                    self.0.known().join(", ")
                ),
            ));
        }
        let _gate = self.0.membership.lock().await;
        self.0.check_owned(key)?;
        locked(&self.0.slots).check_handle(key)?;
        let is_there = locked(&self.0.slots).contains(key);
        let made = match is_there {
            true => None,
            false => self.0.make(key, &config).await?,
        };
        let registration = Registration {
            key: key.clone(),
            config,
            registered_at: self.0.shared.now(),
            metadata: None,
        };
        let agents = self.0.shared.agents();
        agents.register(registration.clone()).await?;
        let is_new = locked(&self.0.slots).add(registration, false);
        if !is_new {
            return self.0.join_remote(key).await;
        }
        let identity = locked(&self.0.slots).identity(key);
        let who = identity.zip(made.clone());
        let who = who.map(|(identity, made)| described(&identity, || made));
        locked(&self.0.slots).give(key, made);
        if let Err(error) = self.0.join_remote(key).await {
            locked(&self.0.slots).remove(key);
            self.0.shared.agents().unregister(key).await?;
            return Err(error);
        }
        let told = match who.or_else(|| self.0.member(key)) {
            Some(who) => self.came(key, &who, PresenceAction::Join).await,
            None => Ok(()),
        };
        // It is registered, whether or not the log could record it.
        self.0.wake(key);
        told
    }

    /// Records in the log that an agent joins or leaves.
    async fn came(
        &self,
        key: &AgentKey,
        who: &Participant,
        action: PresenceAction,
    ) -> Result<(), AgentError> {
        if self.0.shared.hub().remote().is_some() {
            // The server of the channels does.
            return Ok(());
        }
        let channel = key.channel();
        let head = self.0.shared.hub().store().head(channel).await?;
        // The same history gives the same log.
        let once = Some(format!("{action:?} after {head}"));
        let reason = (action == PresenceAction::Leave).then_some("graceful");
        self.announce(channel, who, action, reason, once).await
    }

    /// Removes an agent from its channel when its turns have ended; its state remains. The log
    /// records that it leaves.
    ///
    /// # Errors
    /// `host.not_owner` for an agent of another host of the store; errors of the store.
    pub async fn remove(&self, key: &AgentKey) -> Result<bool, AgentError> {
        let _gate = self.0.membership.lock().await;
        self.0.check_owned(key)?;
        let who = self.0.member(key);
        let was_there = self.0.shared.agents().unregister(key).await?;
        if let Some(remote) = self.0.shared.hub().remote() {
            remote.transport.leave(key).await?;
        }
        let signals = locked(&self.0.slots).remove(key);
        if let Some(signals) = signals {
            // The activation may already have ended.
            drop(signals.send(Signal::Drain));
        }
        if let Some(who) = who.filter(|_| was_there) {
            self.came(key, &who, PresenceAction::Leave).await?;
        }
        Ok(was_there)
    }

    /// Publishes an event. It is durable when this returns.
    ///
    /// # Errors
    /// An invalid channel name; `store.changed_body` if the sender published a different event
    /// under the key; errors of the store.
    pub async fn publish(&self, channel: &str, publish: Publish) -> Result<Published, AgentError> {
        self.start_publish(channel, publish)?.await
    }

    /// Begins to publish an event, which comes after all that were begun before on its channel.
    /// It is durable when the future has its result; dropping the future changes nothing. The
    /// caller bounds how many events wait.
    ///
    /// # Errors
    /// An invalid channel name. The future has those of [`Host::publish`].
    pub fn start_publish(&self, channel: &str, publish: Publish) -> Result<Publishing, AgentError> {
        check_part("channel", channel)?;
        let id = match &publish.key {
            Some(key) => published(channel, publish.sender.id, key),
            None => self.0.shared.fresh(),
        };
        let mut body = publish.body;
        if let Body::Message(message) = &mut body
            && message.id.is_nil()
        {
            message.id = id;
        }
        let mut event = NewEvent::new(channel, id, Arc::new(publish.sender), 0, body);
        event.event.attachments = publish.attachments;
        let now = self.0.shared.now();
        Ok(self.0.shared.hub().publish(event, now))
    }

    /// Subscribes to a channel: the events after `after` and then live events. Without `after`
    /// it gives live events only. With `ephemeral` it includes ephemeral events.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn subscribe(
        &self,
        channel: &str,
        after: Option<Seq>,
        ephemeral: bool,
    ) -> Result<Subscription, AgentError> {
        Ok(Subscription::new(self.0.shared.hub(), channel, after, ephemeral).await?)
    }

    /// The participants of a channel: its agents, awake or asleep, and those that joined it, in
    /// the order in which this host first saw them.
    #[must_use]
    pub fn roster(&self, channel: &str) -> Vec<Participant> {
        self.0.roster(channel)
    }

    /// The roster of a channel if anybody is there, then the roster after each change.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn on_roster(&self, channel: &str) -> Result<Changes<RosterChange>, AgentError> {
        let events = self.subscribe(channel, None, false).await?;
        roster_changes(events, self.0.shared.now(), self.read_roster(channel)).await
    }

    /// The conflicts of tool roles on a channel: those that there are, then each new or changed
    /// one.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn on_tool_role_conflict(
        &self,
        channel: &str,
    ) -> Result<Changes<ToolRoleConflict>, AgentError> {
        let events = self.subscribe(channel, None, false).await?;
        conflict_changes(events, self.read_roster(channel)).await
    }

    fn read_roster(&self, channel: &str) -> ReadRoster {
        let (weak, channel) = (self.0.weak.clone(), channel.to_owned());
        Arc::new(move || {
            let inner = weak.upgrade();
            let roster = inner.map_or_else(Vec::new, |inner| inner.roster(&channel));
            Box::pin(std::future::ready(Ok(roster)))
        })
    }

    /// Calls `listener` after each commit that changes an agent's state, until the subscription
    /// is dropped. It must not block: the agent waits for it. A listener that panics harms no
    /// other. Turns of one group commit are one change.
    pub fn subscribe_state(
        &self,
        key: &AgentKey,
        listener: impl Fn(&StateChange) + Send + Sync + 'static,
    ) -> StateSubscription {
        self.0.shared.states.subscribe(key, listener)
    }

    /// Adds a participant that is not an agent of this host, until [`Host::leave`]. The log
    /// records it.
    ///
    /// # Errors
    /// `handle-conflict` if another participant of the channel has the handle; errors of the
    /// store.
    pub async fn join(&self, channel: &str, joining: Participant) -> Result<(), AgentError> {
        let _gate = self.0.membership.lock().await;
        let taken = self.0.roster(channel).into_iter();
        let mut taken = taken.filter(|other| other.id != joining.id);
        if let Some(other) = taken.find(|other| is_handle(&other.handle, &joining.handle)) {
            let message = format!(
                "the handle @{} is {}'s on this channel",
                other.handle, other.name
            );
            return Err(AgentError::new(codes::HANDLE_CONFLICT, message).fatal());
        }
        // First the roster, then the log: a reader of the event must find the participant.
        let before = locked(&self.0.slots).join(channel, joining.clone());
        let told = self
            .announce(channel, &joining, PresenceAction::Join, None, None)
            .await;
        if told.is_err() {
            let mut slots = locked(&self.0.slots);
            slots.leave(channel, joining.id);
            before.map(|before| slots.join(channel, before));
        }
        told
    }

    /// Removes a participant that joined. Gives whether it was present.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn leave(&self, channel: &str, id: Uuid) -> Result<bool, AgentError> {
        self.leave_because(channel, id, "graceful").await
    }

    /// Changes an agent's settings from outside; they override configuration and defaults.
    ///
    /// # Errors
    /// `agent.not_registered`; `turn.bad_value` if the agent cannot deserialize them as its
    /// settings; errors of the store.
    pub async fn update_settings(&self, key: &AgentKey, partial: &Value) -> Result<(), AgentError> {
        if !locked(&self.0.slots).contains(key) {
            let message = format!("{key} is on no channel of this host");
            return Err(AgentError::new(codes::NOT_REGISTERED, message));
        }
        let agents = self.0.shared.agents();
        let fence = Fence {
            epoch: agents.epoch(key),
            key: key.clone(),
        };
        if !partial.is_object() {
            let message = format!("settings are an object, not {partial:.40}");
            return Err(AgentError::new(codes::BAD_VALUE, message).fatal());
        }
        // The gate makes agents receive changes in the order in which the store wrote them.
        let (_gate, merged) = self.0.shared.merged_settings(key, partial).await?;
        self.0.check_settings(key, &merged)?;
        let mut commit = TurnCommit::new(fence, self.0.shared.now());
        commit.settings = Some(merged);
        agents.commit(commit).await?;
        locked(&self.0.slots).signal(key, Signal::Settings(partial.clone()));
        Ok(())
    }

    /// Status of an agent, from the store and from this host.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn inspect(&self, key: &AgentKey) -> Result<AgentInfo, AgentError> {
        let agents = self.0.shared.agents();
        let row = agents.load(key).await?;
        let head = self.0.shared.hub().store().head(key.channel()).await?;
        let (status, seen) = locked(&self.0.slots).look(key);
        let state = row.as_ref().filter(|row| !row.state.is_empty());
        // A damaged state must not prevent the inspection of the rest.
        let state = state.and_then(|row| serde_json::from_str(&row.state).ok());
        let kept = row.as_ref().map_or(0, |row| row.progress.checkpoint);
        // An awake agent is ahead of the store, which records filtered events later.
        let checkpoint = match status {
            "awake" => kept.max(seen.checkpoint),
            _ => kept,
        };
        let settings = row.as_ref().and_then(|row| row.settings.as_deref());
        Ok(AgentInfo {
            key: key.clone(),
            status,
            state,
            version: row.as_ref().map_or(0, |row| row.version),
            checkpoint,
            lag: head.saturating_sub(checkpoint),
            settings: settings.map(serde_json::from_str).transpose()?,
            timers: agents.timers(key).await?,
            dead_letters: agents.dead_letters(key).await?,
            turns: seen.turns,
            failed: seen.failed,
            hop_limited: seen.hop_limited,
            last_error: seen
                .last_error
                .map(|e| (e.code().to_owned(), e.to_string())),
        })
    }

    /// The shards whose agents this host runs.
    #[must_use]
    pub fn shards(&self) -> Shards {
        self.0.shared.agents().owned()
    }

    /// The keys of all agents on channels.
    #[must_use]
    pub fn agents(&self) -> Vec<AgentKey> {
        locked(&self.0.slots).keys()
    }

    /// Wakes an agent even after it failed or stopped. It has no effect on an awake agent.
    ///
    /// # Errors
    /// `agent.not_registered`
    pub fn wake(&self, key: &AgentKey) -> Result<(), AgentError> {
        let mut slots = locked(&self.0.slots);
        if !slots.forgive(key) {
            let message = format!("{key} is on no channel of this host");
            return Err(AgentError::new(codes::NOT_REGISTERED, message));
        }
        drop(slots);
        self.0.wake(key);
        Ok(())
    }

    /// Waits until all agents have processed their channels and no turn runs; gives false when
    /// the limit passes first. Meant for tests and finite jobs.
    pub async fn settled(&self, limit: Duration) -> bool {
        let wait = async {
            loop {
                let mut ended = self.0.ended.subscribe();
                if self.0.is_settled().await {
                    return;
                }
                // The progress of awake agents sends no notification, hence the polling.
                drop(tokio::time::timeout(Duration::from_millis(5), ended.changed()).await);
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }

    /// Stops the host: no new turn begins, running turns may end until the deadline and are
    /// then cancelled, agents run `on_sleep`, and everything acknowledged is durable. A host that
    /// shares its store releases its shards. Gives the agents whose turns were cancelled.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn drain(&self, deadline: Duration) -> Result<Vec<AgentKey>, AgentError> {
        self.0.is_stopping.store(true, Ordering::Release);
        self.0.timers_changed.notify_one();
        locked(&self.0.slots).signal_all(|| Signal::Drain);
        let mut cut = Vec::new();
        let all_asleep = |slots: &Slots| slots.awake().is_empty();
        if !self.0.until(deadline, all_asleep).await {
            cut = locked(&self.0.slots).awake();
            locked(&self.0.slots).signal_all(|| Signal::Halt);
            let limit = self.0.shared.options.hook_timeout;
            if !self.0.until(limit, all_asleep).await {
                let message = "agents did not end in their time";
                self.0
                    .shared
                    .log
                    .say(LogLevel::Error, None, codes::STOPPING, message);
            }
        }
        #[cfg(unix)]
        for process in &self.0.processes {
            process.stop().await;
        }
        if let Some(remote) = self.0.shared.hub().remote() {
            // What cannot be sent now is sent after the next start.
            let drained = remote.drain();
            drop(tokio::time::timeout(deadline, drained).await);
        }
        self.0.shared.agents().flush().await?;
        self.0.give_back().await?;
        Ok(cut)
    }
}
