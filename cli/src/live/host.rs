//! `a99 agent host`: runs the agents of a file until a signal.

use super::config::{AgentsFile, FILE};
use super::known;
use super::place::{Place, resolved};
use super::program::Programs;
use super::report::Report;
use super::serve;
use super::socket::{self, Listening};
use super::timers;
use super::wire::{Change, Refusal};
use crate::args::HostArgs;
use crate::failure::{Exit, Failure};
use crate::input::name_of;
use a99_runtime::{AgentKey, Host, LogEntry};
use a99_runtime_engine::{AgentStore as _, Registration, StoreCode};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{RwLock, watch};
use tokio::task::JoinSet;

/// How often a host looks whether the store is still its own.
const LOOK: Duration = Duration::from_millis(250);

/// How long turns of a host that lost its store may take to be cut off.
const LOST_TIME: Duration = Duration::from_secs(5);

/// A host that runs, and what it was started with.
pub(super) struct Live {
    pub(super) store: Arc<SqliteRuntime>,
    pub(super) report: Report,
    config: PathBuf,
    named: bool,
    drain: Duration,
    current: RwLock<Current>,
    /// Changes whenever another host takes the place of the one before.
    pub(super) changed: watch::Sender<u64>,
}

/// The host, and the programs that it runs.
pub(super) struct Current {
    pub(super) host: Host,
    programs: Programs,
    file: AgentsFile,
    /// What reports its events, as long as it is there.
    _telling: JoinSet<()>,
}

/// Runs the command.
pub(crate) fn run(args: &HostArgs) -> Result<Exit, Failure> {
    let config = args.config.clone().unwrap_or_else(|| FILE.into());
    let named = args.config.is_some();
    let file = AgentsFile::read(&config, named)?;
    let report = Report { is_json: args.json };
    warn(&file, report);
    let path = args.store.clone().unwrap_or_else(|| file.store.clone());
    let path = resolved(path);
    let durability = args.durability.map_or(file.durability, Into::into);
    let options = StoreOptions {
        durability,
        ..StoreOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::about("cannot start the runtime", error))?;
    runtime.block_on(async {
        // What is wrong with programs is told before anything is written.
        let programs = Programs::prepare(&file.agents)?;
        let store = Place::own(&path, &options).await;
        let store = Arc::new(store.map_err(Refusal::failure)?);
        let listening = Listening::at(socket::beside(&path)).map_err(Refusal::failure)?;
        let signals = Signals::new()?;
        let (current, _) = start(&store, file, programs, report)
            .await
            .map_err(Refusal::failure)?;
        let live = Arc::new(Live {
            store,
            report,
            config,
            named,
            drain: args.drain,
            current: RwLock::new(current),
            changed: watch::Sender::new(0),
        });
        let store = name_of(&path);
        let members = [
            ("store", store.into()),
            ("socket", name_of(listening.path()).into()),
            ("pid", std::process::id().into()),
            ("agents", live.keys().await.len().into()),
        ];
        report.did("started", &members);
        live.until_end(listening, signals).await
    })
}

/// Says what should be known of the settings of agents.
fn warn(file: &AgentsFile, report: Report) {
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

/// The signals that a host hears.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Signals, Failure> {
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

    /// Waits for the one that ends the process.
    async fn end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Starts a host on a store: agents of the file are on their channels, all others leave.
/// Gives those too.
async fn start(
    store: &Arc<SqliteRuntime>,
    file: AgentsFile,
    programs: Programs,
    report: Report,
) -> Result<(Current, Vec<AgentKey>), Refusal> {
    let wanted: BTreeSet<&AgentKey> = file.keys().map(|(key, _)| key).collect();
    let there = known::keys(store).await?;
    let mut left = Vec::new();
    for key in &there {
        if !wanted.contains(key) {
            store.unregister(key).await?;
            left.push(key.clone());
        }
    }
    for (key, spec) in file.keys() {
        timers::set(store, key, spec).await?;
        if there.contains(key) {
            let registration = Registration {
                key: key.clone(),
                config: spec.config.clone(),
                registered_at: known::now(),
            };
            store.register(registration).await?;
        }
    }
    let builder = Host::builder().logger(move |entry: &LogEntry<'_>| report.entry(entry));
    let builder = programs.add(builder);
    let host = builder.start(Arc::clone(store)).await?;
    for (key, spec) in file.keys() {
        if !there.contains(key) {
            host.invite(key, spec.config.clone()).await?;
        }
    }
    let current = Current {
        _telling: tell(&host, &file, report).await?,
        host,
        programs,
        file,
    };
    Ok((current, left))
}

/// Reports what comes on the channels of the file, as long as the host is there.
async fn tell(host: &Host, file: &AgentsFile, report: Report) -> Result<JoinSet<()>, Refusal> {
    let mut telling = JoinSet::new();
    let channels: BTreeSet<&str> = file.keys().map(|(key, _)| key.channel()).collect();
    for channel in channels {
        let mut events = host.subscribe(channel, None, false).await?;
        let channel = channel.to_owned();
        telling.spawn(async move {
            while let Ok(event) = events.next().await {
                report.event(&channel, &event);
            }
        });
    }
    Ok(telling)
}

impl Live {
    /// Serves until a signal ends it, then lets the agents sleep.
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
                    if let Err(refusal) = self.reload().await {
                        self.report.refused(&refusal);
                    }
                }
            }
        };
        // Nobody new is let in, and the socket is gone; who was let in is answered until the
        // end.
        serving.abort();
        drop(serving.await);
        if let Some(refusal) = lost {
            self.report.refused(&refusal);
            // What its turns still do comes to nothing.
            let cut = async {
                let mut current = self.current.write().await;
                drop(current.host.drain(Duration::ZERO).await);
                std::mem::take(&mut current.programs).close();
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
        let closed = SqliteRuntime::clone(&self.store).close();
        closed.map_err(|error| Refusal::from(error).failure())?;
        self.report.did("stopped", &[("cutOff", json!(cut))]);
        Ok(Exit::Ok)
    }

    /// Waits until the store is not this host's any more: its file was deleted, renamed or
    /// replaced, or has another owner.
    async fn lost(&self) -> Refusal {
        loop {
            tokio::time::sleep(LOOK).await;
            match self.store.check_owned().await {
                Err(error) if matches!(error.code(), StoreCode::NotFound | StoreCode::Fenced) => {
                    let help = "another file is at its place, or another owner has it: see which \
                                is right, and start a host again";
                    return Refusal::from(error).helped(help);
                }
                // A disk that fails now may work again.
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Ends all turns. Gives the agents whose turns were cut off.
    async fn finish(&self) -> Result<Vec<AgentKey>, Refusal> {
        let mut current = self.current.write().await;
        let cut = current.host.drain(self.drain).await?;
        std::mem::take(&mut current.programs).close();
        Ok(cut)
    }

    /// The host, for work that may be cut off when another takes its place.
    pub(super) async fn host(&self) -> Host {
        self.current.read().await.host.clone()
    }

    /// The host that is not replaced as long as this is held.
    pub(super) async fn held(&self) -> tokio::sync::RwLockReadGuard<'_, Current> {
        self.current.read().await
    }

    /// The agents that are on channels.
    pub(super) async fn keys(&self) -> Vec<AgentKey> {
        self.host().await.agents()
    }

    /// Reads the file again. If something is wrong with it, all stays as it was.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) async fn reload(&self) -> Result<Json, Refusal> {
        let read = AgentsFile::read(&self.config, self.named);
        let file = read.map_err(|failure| Refusal::of(&failure))?;
        warn(&file, self.report);
        let programs = Programs::prepare(&file.agents);
        let programs = programs.map_err(|failure| Refusal::of(&failure))?;
        let mut current = self.current.write().await;
        let left = self.replace(&mut current, file, programs).await?;
        drop(current);
        let keys = self.keys().await;
        let members = [("agents", json!(keys)), ("left", json!(left))];
        self.report.did("reloaded", &members);
        Ok(json!({"ok": true, "agents": keys, "left": left}))
    }

    /// Lets the agents sleep and starts a host in the place of theirs.
    async fn replace(
        &self,
        current: &mut Current,
        file: AgentsFile,
        programs: Programs,
    ) -> Result<Vec<AgentKey>, Refusal> {
        let cut = current.host.drain(self.drain).await?;
        if !cut.is_empty() {
            self.report.did("cut off", &[("agents", json!(cut))]);
        }
        let (new, left) = start(&self.store, file, programs, self.report).await?;
        std::mem::replace(current, new).programs.close();
        self.changed.send_modify(|n| *n += 1);
        Ok(left)
    }

    /// Changes how far an agent is, while no agent is awake.
    ///
    /// # Errors
    /// Those of the change.
    pub(super) async fn change(&self, key: &AgentKey, change: Change) -> Result<Json, Refusal> {
        let mut current = self.current.write().await;
        current.host.drain(self.drain).await?;
        let done = known::change(&self.store, key, change).await;
        let file = current.file.clone();
        let programs = std::mem::take(&mut current.programs);
        self.replace(&mut current, file, programs).await?;
        done
    }
}

/// A time in seconds.
fn shown(time: Duration) -> String {
    format!("{time:?}")
}
