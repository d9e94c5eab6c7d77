//! State shared by all agents of a host: stores, channels, clock, randomness, model.

use crate::bus::{Participant, Waiting, Waits};
use crate::calls::Calls;
use crate::connection::Connection;
use crate::context::{EMBEDDED, PROCESS};
use crate::error::AgentError;
use crate::hub::{Hub, Listener};
use crate::metered::Metered;
use crate::metrics::Metrics;
use crate::options::HostOptions;
use crate::states::States;
use crate::trace::Tracer;
use crate::transport::Remote;
use a99_capabilities::{AiProvider, Clock, Random};
use a99_runtime_engine::{
    AgentKey, AgentStore, BoxFuture, ChannelStore, Millis, NewEvent, StoreCode, StoreError, Uuid,
    deep_merge, unique,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::{MutexGuard, Semaphore};

pub(crate) struct Shared {
    agents: Arc<dyn AgentStore>,
    hub: Arc<Hub>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) ai: Option<Arc<dyn AiProvider>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: crate::log::Log,
    pub(crate) tracer: Tracer,
    pub(crate) options: HostOptions,
    pub(crate) waits: Arc<Waits>,
    /// Listeners of agents' states.
    pub(crate) states: States,
    /// Running method calls of agents on this host.
    pub(crate) calls: Calls,
    /// Serialises the read-modify-write of settings by turns and hosts.
    settings_gate: tokio::sync::Mutex<()>,
    /// Crash isolation: one permit for turns under which the process crashed before.
    pub(crate) crash_isolation: Arc<Semaphore>,
    pub(crate) presence: Box<dyn Presence>,
    /// The connection to the host, if the host is another process.
    pub(crate) link: Option<Arc<dyn HostLink>>,
    /// Whether the channels can be reached. The transport of a target sets it.
    pub(crate) connection: Connection,
}

/// Requests of a turn to a host in another process, beyond its stores.
pub(crate) trait HostLink: Send + Sync {
    /// Sends an ephemeral event.
    fn pass(&self, event: NewEvent) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Registers that the agent waits for another one.
    fn wait(&self, callee: AgentKey) -> BoxFuture<'_, Result<Waiting, AgentError>>;
}

/// Presence: the participants of a channel.
pub(crate) trait Presence: Send + Sync {
    fn roster(&self, channel: &str) -> Vec<Participant>;

    /// Whether all other participants are people.
    fn is_solo(&self, channel: &str, me: Uuid) -> bool;

    /// Names of the agents that can be invited, sorted.
    fn known(&self) -> Vec<String>;

    /// [`Host::invite`](crate::Host::invite).
    fn invite(&self, key: AgentKey, config: Value) -> BoxFuture<'_, Result<(), AgentError>>;

    /// [`Host::remove`](crate::Host::remove).
    fn remove(&self, key: AgentKey) -> BoxFuture<'_, Result<bool, AgentError>>;

    /// Lets an agent sleep once its running turns have ended.
    fn close(&self, key: AgentKey) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Reads the roster again where it is a copy.
    fn refresh(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Shared {
    #[allow(
        clippy::too_many_arguments,
        reason = "it is made in one place, of what a host is"
    )]
    pub(crate) fn new(
        agents: Arc<dyn AgentStore>,
        channels: Arc<dyn ChannelStore>,
        remote: Option<Arc<Remote>>,
        listener: Listener,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        ai: Option<Arc<dyn AiProvider>>,
        log: crate::log::Log,
        tracer: Tracer,
        options: HostOptions,
        presence: Box<dyn Presence>,
    ) -> Shared {
        let metrics: Arc<Metrics> = remote
            .as_ref()
            .map_or_else(Arc::default, |remote| Arc::clone(&remote.metrics));
        let ai = ai.map(|ai| Metered::over(ai, &metrics));
        let counts = Arc::clone(&metrics);
        Shared {
            agents,
            hub: Arc::new(Hub::new(channels, remote, listener, counts, tracer.clone())),
            metrics,
            clock,
            random,
            ai,
            log,
            tracer,
            options,
            waits: Arc::default(),
            calls: Calls::default(),
            states: States::default(),
            settings_gate: tokio::sync::Mutex::const_new(()),
            crash_isolation: Arc::new(Semaphore::new(1)),
            presence,
            link: None,
            connection: Connection::default(),
        }
    }

    /// Registers that an agent waits for another, unless that would deadlock.
    pub(crate) async fn wait(&self, from: &AgentKey, to: &AgentKey) -> Result<Waiting, AgentError> {
        match &self.link {
            Some(link) => link.wait(to.clone()).await,
            None => self.waits.wait(from, to),
        }
    }

    /// The name of the target that turns run in.
    pub(crate) fn mode(&self) -> &'static str {
        match (&self.link, self.hub.remote()) {
            (Some(_), _) => PROCESS,
            (None, Some(remote)) => remote.transport.mode(),
            (None, None) => EMBEDDED,
        }
    }

    pub(crate) fn agents(&self) -> &Arc<dyn AgentStore> {
        &self.agents
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The users' settings of an agent in the store, with more merged over them, as JSON text.
    /// They cannot change while the guard is held.
    pub(crate) async fn merged_settings(
        &self,
        key: &AgentKey,
        changes: &Value,
    ) -> Result<(MutexGuard<'_, ()>, String), StoreError> {
        let gate = self.settings_gate.lock().await;
        let row = self.agents.load(key).await?;
        let saved = row.and_then(|row| row.settings);
        let saved = saved.as_deref().map(serde_json::from_str).transpose();
        let saved = saved.map_err(|error| {
            let message = format!("the settings cannot be read: {error}");
            StoreError::new(StoreCode::Unreadable, message)
        })?;
        let saved = saved.unwrap_or_else(|| json!({}));
        Ok((gate, deep_merge(&saved, changes).to_string()))
    }

    /// The current time.
    pub(crate) fn now(&self) -> Millis {
        now(&*self.clock)
    }

    /// A new random identity (RFC 9562, version 4).
    pub(crate) fn fresh(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        unique(bytes)
    }
}

/// The time of a clock; one that gives NaN yields 0.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts saturate, and NaN is 0"
)]
pub(crate) fn now(clock: &dyn Clock) -> Millis {
    clock.now_ms() as Millis
}
