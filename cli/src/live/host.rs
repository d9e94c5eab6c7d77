//! `a99 agent host`: runs the agents of a file until a signal.

use super::config::{AgentSpec, AgentsFile, FILE};
use super::known;
use super::net;
use super::otlp::Spans;
use super::place::{Place, resolved, socket_of};
use super::program::Programs;
use super::report::Report;
use super::serve;
use super::socket::Listening;
use super::timers;
use super::wire::{Change, Refusal};
use crate::args::{HostArgs, StorePlace};
use crate::failure::{Exit, Failure};
use crate::input::name_of;
use a99_runtime::{AgentKey, Held, Host, HostBuilder, HostOptions, LogEntry, Transport};
use a99_runtime_engine::{AgentStore as _, ChannelStore, Registration, StoreCode};
use a99_runtime_stores::{RuntimeStore, StoreOptions};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet};

/// How often a host checks that it still owns the store.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// How long a host that lost its store waits for its turns to be cut off.
const LOST_TIME: Duration = Duration::from_secs(5);

/// A running host with its options.
pub(super) struct Live {
    pub(super) store: Arc<RuntimeStore>,
    pub(super) report: Report,
    pub(super) host: Host,
    pub(super) config: PathBuf,
    pub(super) named: bool,
    drain: Duration,
    /// Locked during a reload and during shutdown.
    pub(super) current: Mutex<Current>,
}

/// The programs of the current file.
pub(super) struct Current {
    pub(super) programs: Programs,
    pub(super) telling: Telling,
}

pub(crate) fn run(args: &HostArgs) -> Result<Exit, Failure> {
    let config = args.config.clone().unwrap_or_else(|| FILE.into());
    let named = args.config.is_some();
    let file = AgentsFile::read(&config, named)?;
    let report = Report { is_json: args.json };
    warn(&file, report);
    let place = args.store.clone();
    let place = resolved(place.unwrap_or_else(|| StorePlace::File(file.store.clone())));
    let socket = socket_of(&place, &config);
    let durability = args.durability.map_or(file.durability, Into::into);
    let options = StoreOptions {
        durability,
        refuses_copies: !args.moved,
        has_channels: args.channels.is_none(),
        ..StoreOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::about("cannot start the runtime", error))?;
    runtime.block_on(async {
        // Report mistakes of programs before writing to the store.
        let programs = Programs::prepare(&file.agents)?;
        let store = Place::own(&place, Some(&socket), &options).await;
        let store = Arc::new(store.map_err(Refusal::failure)?);
        let listening = Listening::at(socket).map_err(Refusal::failure)?;
        let signals = Signals::new()?;
        let transport = net::transport(args).await?;
        let network = net::Network::of(args).await?;
        let spans = Spans::start(args.otlp.as_deref(), "a99-agents", report)?;
        let builder = spans.of(builder(file.keep_turns, report));
        let host = start(&store, transport, &programs, builder).await;
        let host = host.map_err(Refusal::failure)?;
        let mut telling = Telling::default();
        let told = telling.hear(&host, &programs, report).await;
        told.map_err(Refusal::failure)?;
        let live = Arc::new(Live {
            store,
            report,
            host,
            config,
            named,
            drain: args.drain,
            current: Mutex::new(Current { programs, telling }),
        });
        let members = [
            ("store", place.to_string().into()),
            ("socket", name_of(listening.path()).into()),
            ("pid", std::process::id().into()),
            ("agents", live.host.agents().len().into()),
        ];
        report.did("started", &members);
        let served = network.serve_live(&live)?;
        let ended = live.until_end(listening, signals).await;
        served.stop().await;
        spans.stop().await;
        ended
    })
}

/// Reports warnings about the settings of agents.
pub(super) fn warn(file: &AgentsFile, report: Report) {
    for spec in &file.agents {
        for warning in &spec.run.warnings {
            let members = [
                ("agent", spec.name.as_str().into()),
                ("message", warning.as_str().into()),
            ];
            report.did("warning", &members);
        }
    }
}

/// The signals that a host handles.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Signals, Failure> {
        let hear = |kind| {
            let heard = signal(kind);
            heard.map_err(|error| Failure::about("cannot listen for signals", error))
        };
        Ok(Signals {
            interrupt: hear(SignalKind::interrupt())?,
            terminate: hear(SignalKind::terminate())?,
            hang_up: hear(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal that ends the process.
    pub(super) async fn end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Agents of a file, with their entries.
pub(super) type Keyed = Vec<(AgentKey, Arc<AgentSpec>)>;

/// Brings a sleeping store in line with a file: agents that it no longer has leave their channels,
/// and the others get its timers. Gives the agents that the store had.
///
/// # Errors
/// Those of the store and the channels.
pub(super) async fn settle(
    store: &RuntimeStore,
    channels: &dyn ChannelStore,
    agents: &Keyed,
) -> Result<Vec<AgentKey>, Refusal> {
    let there = known::keys(store).await?;
    let wanted: BTreeSet<&AgentKey> = agents.iter().map(|(key, _)| key).collect();
    for key in there.iter().filter(|key| !wanted.contains(key)) {
        store.unregister(key).await?;
    }
    for (key, spec) in agents {
        timers::set(store, channels, key, spec).await?;
    }
    Ok(there)
}

/// Starts a host on a store: agents of the file join their channels, all others leave.
async fn start(
    store: &Arc<RuntimeStore>,
    transport: Option<Arc<dyn Transport>>,
    programs: &Programs,
    builder: HostBuilder,
) -> Result<Host, Refusal> {
    let channels: &dyn ChannelStore = match &transport {
        Some(transport) => &**transport,
        None => &**store,
    };
    let agents = programs.keys();
    let agents: Keyed = agents
        .map(|(key, spec)| (key.clone(), Arc::clone(spec)))
        .collect();
    let there = settle(store, channels, &agents).await?;
    for (key, spec) in &agents {
        if there.contains(key) {
            let registration = Registration {
                key: key.clone(),
                config: spec.config.clone(),
                registered_at: known::now(),
                metadata: None,
            };
            store.register(registration).await?;
        }
    }
    let builder = programs.adder()(builder);
    let host = match transport {
        Some(transport) => builder.start_over(Arc::clone(store), transport).await?,
        None => builder.start(Arc::clone(store)).await?,
    };
    for (key, spec) in &agents {
        if !there.contains(key) {
            host.invite(key, spec.config.clone()).await?;
        }
    }
    Ok(host)
}

/// A host that reports, without agents yet.
pub(super) fn builder(keep_turns: u32, report: Report) -> HostBuilder {
    let options = HostOptions {
        keep_turns,
        ..HostOptions::default()
    };
    let builder = Host::builder().options(options);
    builder.logger(move |entry: &LogEntry<'_>| report.entry(entry))
}

/// Reports events of channels until dropped.
#[derive(Default)]
pub(super) struct Telling {
    tasks: JoinSet<()>,
    channels: BTreeMap<String, AbortHandle>,
}

impl Telling {
    /// Also reports the channels of these programs.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) async fn hear(
        &mut self,
        host: &Host,
        programs: &Programs,
        report: Report,
    ) -> Result<(), Refusal> {
        for (key, _) in programs.keys() {
            if self.channels.contains_key(key.channel()) {
                continue;
            }
            let mut events = host.subscribe(key.channel(), None, false).await?;
            let channel = key.channel().to_owned();
            let task = self.tasks.spawn(async move {
                while let Ok(event) = events.next().await {
                    report.event(events.channel(), &event);
                }
            });
            self.channels.insert(channel, task);
        }
        Ok(())
    }

    /// Stops reporting channels without an agent of these programs.
    pub(super) fn keep(&mut self, programs: &Programs) {
        let wanted: BTreeSet<&str> = programs.keys().map(|(key, _)| key.channel()).collect();
        self.channels.retain(|channel, task| {
            let stays = wanted.contains(channel.as_str());
            if !stays {
                task.abort();
            }
            stays
        });
    }
}

impl Live {
    /// Serves until a signal, then stops the agents.
    async fn until_end(
        self: Arc<Self>,
        listening: Listening,
        mut signals: Signals,
    ) -> Result<Exit, Failure> {
        let serving = tokio::spawn(serve::serve(Arc::clone(&self), listening));
        let lost = loop {
            tokio::select! {
                _ = signals.interrupt.recv() => break None,
                _ = signals.terminate.recv() => break None,
                refusal = self.lost() => break Some(refusal),
                _ = signals.hang_up.recv() => {
                    let live = Arc::clone(&self);
                    tokio::spawn(async move {
                        if let Err(refusal) = live.reload().await {
                            live.report.refused(&refusal);
                        }
                    });
                }
            }
        };
        // Accept no new clients and remove the socket; connected clients are served until the end.
        serving.abort();
        drop(serving.await);
        if let Some(refusal) = lost {
            self.report.refused(&refusal);
            // Their turns can no longer commit.
            let cut = async {
                drop(self.host.drain(Duration::ZERO).await);
                std::mem::take(&mut self.current.lock().await.programs).close();
            };
            drop(tokio::time::timeout(LOST_TIME, cut).await);
            return Err(refusal.failure());
        }
        self.report
            .did("stopping", &[("within", shown(self.drain).into())]);
        let drained = tokio::select! {
            drained = self.finish() => drained,
            () = signals.end() => {
                self.report.did("stopped", &[("cut", true.into())]);
                std::process::exit(i32::from(Exit::Aborted.code()));
            }
        };
        let cut = drained.map_err(Refusal::failure)?;
        let closed = RuntimeStore::clone(&self.store).close();
        closed.map_err(|error| Refusal::from(error).failure())?;
        self.report.did("stopped", &[("cutOff", json!(cut))]);
        Ok(Exit::Ok)
    }

    /// Waits until this host loses the store: its file was deleted, renamed or replaced, or has
    /// another owner.
    async fn lost(&self) -> Refusal {
        loop {
            tokio::time::sleep(LOOK).await;
            match self.store.check_owned().await {
                Err(error) if matches!(error.code(), StoreCode::NotFound | StoreCode::Fenced) => {
                    let help = "another file is at its place, or another owner has it: see which \
                                is right, and start a host again";
                    return Refusal::from(error).helped(help);
                }
                // An I/O error may be temporary.
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Drains all turns. Returns the agents whose turns were cut off.
    async fn finish(&self) -> Result<Vec<AgentKey>, Refusal> {
        let cut = self.host.drain(self.drain).await?;
        std::mem::take(&mut self.current.lock().await.programs).close();
        Ok(cut)
    }

    /// Drains the turns of one agent and keeps it asleep, while the others run on.
    ///
    /// # Errors
    /// Those of [`Host::hold`].
    pub(super) async fn hold(&self, key: &AgentKey) -> Result<Held, Refusal> {
        let held = self.host.hold(key, self.drain).await?;
        if held.was_cut() {
            self.report.did("cut off", &[("agents", json!([key]))]);
        }
        Ok(held)
    }

    /// Changes an agent's checkpoint or dead letters while it sleeps.
    ///
    /// # Errors
    /// Those of the change.
    pub(super) async fn change(&self, key: &AgentKey, change: Change) -> Result<Json, Refusal> {
        let _held = self.hold(key).await?;
        known::change(&self.store, &**self.host.channel_store(), key, change).await
    }
}

/// A duration for messages.
fn shown(time: Duration) -> String {
    format!("{time:?}")
}
