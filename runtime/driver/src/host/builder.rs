//! Builder of hosts: agent definitions and the capabilities that agents get.

use super::inner::Present;
use super::shards::{Holding, HostShards};
use super::{Factory, Host, HostBuilder, Inner, shards, timers};
use crate::agent::{Agent, Identity};
use crate::error::AgentError;
use crate::hub::locked;
use crate::log::{AgentLogger, Log, LogLevel};
use crate::options::HostOptions;
use crate::runner::Typed;
use crate::shared::Shared;
use crate::trace::{Propagation, Tracer};
use crate::transport::{Remote, Transport};
use a99_capabilities::{AiProvider, Clock};
use a99_runtime_engine::{AgentStore, ChannelStore, Damaged, StoreCode};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, Weak};
use tokio::runtime::Handle;
use tokio::sync::watch;

impl HostBuilder {
    /// Defines an agent under a name. `make` creates a value each time that one of the agent's
    /// keys wakes.
    #[must_use]
    pub fn agent<A: Agent>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&Identity) -> A + Send + Sync + 'static,
    ) -> HostBuilder {
        let factory: Factory = Arc::new(move |identity| Arc::new(Typed::new(make(identity))));
        self.factories.insert(name.into(), factory);
        self
    }

    /// Defines agents whose code runs in another process. Store, model and credentials stay
    /// with the host: the process requests data turn by turn ([`Process`](crate::Process)).
    #[cfg(unix)]
    #[must_use]
    pub fn process<N: Into<String>>(
        mut self,
        process: crate::Process,
        agents: impl IntoIterator<Item = N>,
    ) -> HostBuilder {
        let names: Vec<String> = agents.into_iter().map(Into::into).collect();
        let link = crate::process::Link::new(process, names.clone());
        for name in names {
            let link = Arc::clone(&link);
            let factory: Factory = Arc::new(move |identity| link.runner(identity));
            self.factories.insert(name, factory);
        }
        self.processes.push(link);
        self
    }

    /// The language model that agents use.
    #[must_use]
    pub fn ai(mut self, ai: impl AiProvider + 'static) -> HostBuilder {
        self.ai = Some(Arc::new(ai));
        self
    }

    /// The receiver of log entries.
    #[must_use]
    pub fn logger(mut self, logger: impl AgentLogger + 'static) -> HostBuilder {
        self.log = Log(Some(Arc::new(logger)));
        self
    }

    /// Ties the spans of this host to trace contexts: its turns continue the traces of events,
    /// and what they send continues theirs.
    #[must_use]
    pub fn propagation(mut self, propagation: impl Propagation + 'static) -> HostBuilder {
        self.tracer = Tracer(Some(Arc::new(propagation)));
        self
    }

    /// The clock of timers, retries and events.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> HostBuilder {
        self.clock = Arc::new(clock);
        self
    }

    /// Options of the host.
    #[must_use]
    pub fn options(mut self, options: HostOptions) -> HostBuilder {
        self.options = options;
        self
    }

    /// Gives the host a part of the agents of a store that it shares with other hosts. Without
    /// this it runs all of them, and takes them over at once.
    ///
    /// The store is a handle of this host alone, opened as a shared one. Events of other agents
    /// stay in the log for their hosts. When the host loses a shard, it stops its agents
    /// (`host.shard_lost` in the log) and goes on with the others.
    #[must_use]
    pub fn shards(mut self, shards: HostShards) -> HostBuilder {
        self.shards = Some(shards);
        self
    }

    /// Starts the host on a store: agents with pending work wake.
    ///
    /// # Errors
    /// `host.not_owner` for a shared store without [`HostBuilder::shards`]; errors of the store.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start<S>(self, store: Arc<S>) -> Result<Host, AgentError>
    where
        S: AgentStore + ChannelStore + 'static,
    {
        let agents: Arc<dyn AgentStore> = Arc::clone(&store) as Arc<dyn AgentStore>;
        self.start_on(agents, store, None).await
    }

    /// Starts the host of agents whose channels another process has: `agents` keeps their states
    /// and what they sent until the transport has it. The store is one without channels.
    ///
    /// # Errors
    /// Errors of reading the store and of the transport.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start_over<S>(
        self,
        agents: Arc<S>,
        transport: Arc<dyn Transport>,
    ) -> Result<Host, AgentError>
    where
        S: AgentStore + 'static,
    {
        let channels: Arc<dyn ChannelStore> = Arc::clone(&transport) as Arc<dyn ChannelStore>;
        self.start_on(agents, channels, Some(transport)).await
    }

    async fn start_on(
        self,
        agents: Arc<dyn AgentStore>,
        channels: Arc<dyn ChannelStore>,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<Host, AgentError> {
        let holding = Holding::start(self.shards, &*agents, &*self.clock).await?;
        let registrations = agents.registrations().await?;
        let remote = transport.map(|transport| {
            let log = self.log.clone();
            let (agents, clock) = (Arc::clone(&agents), Arc::clone(&self.clock));
            let tracer = self.tracer.clone();
            Arc::new(Remote::new(transport, agents, clock, log, tracer))
        });
        let runtime = Handle::current();
        let inner = Arc::new_cyclic(|weak: &Weak<Inner>| {
            let (listener, present) = (weak.clone(), weak.clone());
            let shared = Shared::new(
                agents,
                channels,
                remote,
                Box::new(move |channel, event| {
                    if let Some(inner) = listener.upgrade() {
                        inner.heard(channel, event);
                    }
                }),
                self.clock,
                self.random,
                self.ai,
                self.log,
                self.tracer,
                self.options,
                Box::new(Present(present)),
            );
            Inner {
                shared: Arc::new(shared),
                factories: Mutex::new(self.factories),
                slots: Mutex::default(),
                membership: tokio::sync::Mutex::const_new(()),
                timers_changed: Arc::default(),
                ended: watch::Sender::new(0),
                is_stopping: AtomicBool::new(false),
                holding: holding.map(Arc::new),
                rang_at: AtomicU64::new(u64::MAX),
                runtime,
                weak: weak.clone(),
                #[cfg(unix)]
                processes: self.processes,
            }
        });
        let cut_off = inner.shared.agents().was_cut_off();
        {
            let mut slots = locked(&inner.slots);
            for registration in registrations {
                let was_cut_off = cut_off.contains(registration.key.shard());
                slots.add(registration, was_cut_off);
            }
        }
        for damaged in inner.shared.agents().damaged().await? {
            let Damaged { table, key, error } = damaged;
            let message = format!("a row of {table} for {key:?} is passed over: {error}");
            let log = &inner.shared.log;
            log.say(LogLevel::Error, None, error.code().name(), &message);
        }
        if let Some(why) = inner.shared.agents().moved() {
            let code = StoreCode::Copied.name();
            inner.shared.log.say(LogLevel::Warn, None, code, &why);
        }
        inner.connect().await?;
        inner.catch_up().await?;
        timers::spawn(&inner);
        shards::spawn(&inner);
        Ok(Host(inner))
    }
}
