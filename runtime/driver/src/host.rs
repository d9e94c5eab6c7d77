//! Host: runs agents in this process, wakes them when something is for them, and lets them
//! sleep.

mod builder;
mod calls;
mod handled;
mod hold;
mod inner;
mod run;
mod slots;
mod timers;

pub use handled::Handling;
pub use hold::Held;
pub use run::{AgentRunEnd, RunAgentOptions, run_agent};

use crate::activation::Signal;
use crate::agent::Identity;
use crate::bus::{Participant, is_handle};
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::log::{Log, LogLevel};
use crate::options::HostOptions;
use crate::runner::Runner;
use crate::shared::Shared;
use crate::subscription::Subscription;
use a99_capabilities::{AiProvider, Clock, Random, SystemClock, SystemRandom};
use a99_runtime_engine::{
    AgentKey, Attachment, Body, DeadLetter, Event, Fence, NewEvent, PresenceAction, Registration,
    Sender, Seq, TimerRow, TurnCommit, Uuid, check_part, published,
};
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

/// Runs agents in this process. Clones share it.
///
/// It needs a tokio runtime. Agents that have nothing to do take no task and nearly no
/// memory; an event on their channel or a timer wakes them.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    factories: Mutex<HashMap<String, Factory>>,
    slots: Mutex<Slots>,
    /// Held while somebody comes or goes.
    membership: tokio::sync::Mutex<()>,
    /// Rings when a timer was set, or an agent that had one went to sleep.
    timers_changed: Arc<Notify>,
    /// Changes whenever an agent ends.
    ended: watch::Sender<u64>,
    is_stopping: AtomicBool,
    /// When timers were looked at last, by the host's clock; later than any time at first.
    rang_at: AtomicU64,
    runtime: Handle,
    weak: Weak<Inner>,
    /// Other processes that run agents.
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
    options: HostOptions,
    #[cfg(unix)]
    processes: Vec<Arc<crate::process::Link>>,
}

/// What somebody publishes on a channel.
#[derive(Clone, Debug)]
pub struct Publish {
    /// What it says.
    pub body: Body,
    /// Who says it.
    pub sender: Sender,
    /// Publishing again under the same key, by the same sender, does nothing.
    pub key: Option<String>,
    /// Bytes that belong to it.
    pub attachments: Vec<Attachment>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The event, as it stands in the log.
    pub event: Arc<Event>,
    /// Whether it was appended now: it was there already if not.
    pub is_new: bool,
}

/// How an agent is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Who it is.
    pub key: AgentKey,
    /// `awake`, `asleep`, `failed`, `stopped`, or `unknown` for one of another host's.
    pub status: &'static str,
    /// Its state; none if it never ended a turn, or if it is no JSON any more.
    pub state: Option<Value>,
    /// The version of the state.
    pub version: u32,
    /// The place up to which its stream is done.
    pub checkpoint: Seq,
    /// Events of its channel beyond that.
    pub lag: Seq,
    /// What users changed of its settings.
    pub settings: Option<Value>,
    /// Its timers.
    pub timers: Vec<TimerRow>,
    /// Turns that were given up.
    pub dead_letters: Vec<DeadLetter>,
    /// Turns that were committed since the host started.
    pub turns: u64,
    /// Attempts that failed since the host started.
    pub failed: u64,
    /// Events that it did not get since the host started, because they came through more agents
    /// than [`HostOptions::max_hops`].
    pub hop_limited: u64,
    /// The last error: code and text.
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
            options: HostOptions::default(),
            #[cfg(unix)]
            processes: Vec::new(),
        }
    }

    /// Puts an agent on its channel, or changes its configuration; it wakes. What the
    /// channel's log has already is for it too, unless the agent says otherwise
    /// ([`ConnectOptions::replay`](crate::ConnectOptions::replay)).
    ///
    /// # Errors
    /// `agent.unknown`; `handle-conflict` if somebody else on the channel has the handle;
    /// `agent.bad_policy` for an agent with tables that would have several turns at a time;
    /// those of the store.
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
        locked(&self.0.slots).check_handle(key)?;
        let is_there = locked(&self.0.slots).contains(key);
        let made = match is_there {
            true => None,
            false => self.0.make(key, &config).await?,
        };
        let registration = Registration {
            key: key.clone(),
            config: config.clone(),
            registered_at: self.0.shared.now(),
        };
        self.0.shared.agents().register(registration).await?;
        let is_new = locked(&self.0.slots).add(key.clone(), config, false);
        if is_new {
            locked(&self.0.slots).give(key, made);
            self.0.wake(key);
        }
        Ok(())
    }

    /// Takes an agent off its channel when its turns have ended; its state stays.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn remove(&self, key: &AgentKey) -> Result<bool, AgentError> {
        let _gate = self.0.membership.lock().await;
        let was_there = self.0.shared.agents().unregister(key).await?;
        let signals = locked(&self.0.slots).remove(key);
        if let Some(signals) = signals {
            // It may have ended meanwhile.
            drop(signals.send(Signal::Drain));
        }
        Ok(was_there)
    }

    /// Publishes an event. It is durable when this returns.
    ///
    /// # Errors
    /// A name of a channel that is none; `store.changed_body` if the sender published
    /// something else under the key; those of the store.
    pub async fn publish(&self, channel: &str, publish: Publish) -> Result<Published, AgentError> {
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
        let appended = self.0.shared.hub().append(vec![event], None, now).await?;
        let one = appended.into_iter().next();
        let one = one.ok_or_else(|| AgentError::new(codes::BAD_VALUE, "nothing was appended"))?;
        Ok(Published {
            event: one.event,
            is_new: one.is_new,
        })
    }

    /// Events of a channel: those after a place and then what comes; only what comes, if no
    /// place is given. With `ephemeral`, what is in no log too.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn subscribe(
        &self,
        channel: &str,
        after: Option<Seq>,
        ephemeral: bool,
    ) -> Result<Subscription, AgentError> {
        Ok(Subscription::new(self.0.shared.hub(), channel, after, ephemeral).await?)
    }

    /// Who is on a channel: its agents, awake or not, and those that joined it.
    #[must_use]
    pub fn roster(&self, channel: &str) -> Vec<Participant> {
        self.0.roster(channel)
    }

    /// Puts somebody on a channel who is no agent of this host, until [`Host::leave`]. The
    /// log says so.
    ///
    /// # Errors
    /// `handle-conflict` if somebody on the channel has the handle; those of the store.
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
        self.present(channel, &joining, PresenceAction::Join)
            .await?;
        locked(&self.0.slots).join(channel, joining);
        Ok(())
    }

    /// Takes somebody off a channel who joined it. Whether it was there.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn leave(&self, channel: &str, id: Uuid) -> Result<bool, AgentError> {
        let left = locked(&self.0.slots).leave(channel, id);
        match left {
            Some(left) => {
                self.present(channel, &left, PresenceAction::Leave).await?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn present(
        &self,
        channel: &str,
        who: &Participant,
        action: PresenceAction,
    ) -> Result<(), AgentError> {
        let mut metadata = who.metadata.clone();
        for (name, value) in [
            ("name", &who.name),
            ("type", &who.kind),
            ("handle", &who.handle),
        ] {
            metadata.insert(name.to_owned(), Value::from(value.as_str()));
        }
        let sender = Sender {
            id: who.id,
            name: Some(who.name.clone()),
            kind: Some(who.kind.clone()),
            handle: Some(who.handle.clone()),
        };
        let leave_reason = (action == PresenceAction::Leave).then(|| "graceful".to_owned());
        let publish = Publish {
            body: Body::Presence {
                action,
                leave_reason,
                metadata,
            },
            sender,
            key: None,
            attachments: Vec::new(),
        };
        self.publish(channel, publish).await.map(drop)
    }

    /// Changes settings of an agent from outside: they win over configuration and defaults.
    ///
    /// # Errors
    /// `agent.not_registered`; `turn.bad_value` for what the agent could not read as its
    /// settings; those of the store.
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
        // Agents hear of changes in the order in which they were kept.
        let (_gate, merged) = self.0.shared.merged_settings(key, partial).await?;
        self.0.check_settings(key, &merged)?;
        let mut commit = TurnCommit::new(fence, self.0.shared.now());
        commit.settings = Some(merged);
        agents.commit(commit).await?;
        locked(&self.0.slots).signal(key, Signal::Settings(partial.clone()));
        Ok(())
    }

    /// How an agent is, from the store and from this host.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn inspect(&self, key: &AgentKey) -> Result<AgentInfo, AgentError> {
        let agents = self.0.shared.agents();
        let row = agents.load(key).await?;
        let head = self.0.shared.hub().store().head(key.channel()).await?;
        let (status, seen) = locked(&self.0.slots).look(key);
        let state = row.as_ref().filter(|row| !row.state.is_empty());
        // What is damaged keeps nobody from looking at the rest.
        let state = state.and_then(|row| serde_json::from_str(&row.state).ok());
        let kept = row.as_ref().map_or(0, |row| row.progress.checkpoint);
        // Events that were filtered are done, and kept a while later.
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

    /// All agents that are on a channel, by key.
    #[must_use]
    pub fn agents(&self) -> Vec<AgentKey> {
        locked(&self.0.slots).keys()
    }

    /// Wakes an agent, whatever it stopped for. An agent that is awake stays so.
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

    /// Waits until all agents have seen all of their channels and no turn runs, or until the
    /// time is up: then false. For tests and for work that ends.
    pub async fn settled(&self, limit: Duration) -> bool {
        let wait = async {
            loop {
                let mut ended = self.0.ended.subscribe();
                if self.0.is_settled().await {
                    return;
                }
                // Progress of agents that are awake tells nobody; it is looked at.
                drop(tokio::time::timeout(Duration::from_millis(5), ended.changed()).await);
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }

    /// Stops: no more turns begin; those that run may end until the deadline, then they are
    /// cancelled; agents run `on_sleep`; all that was acknowledged is durable. Gives the
    /// agents whose turns were cancelled.
    ///
    /// # Errors
    /// Those of the store.
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
        self.0.shared.agents().flush().await?;
        Ok(cut)
    }
}
