//! Programs as agents: compiled programs of agents.toml with grants and options.

use super::config::AgentSpec;
use crate::commands::run::{account_limits, check_ops, limits, with_env};
use crate::failure::Failure;
use crate::{agents, embed, input, models, network, store};
use a99_runtime::program::ProgramAgent;
use a99_runtime::{AgentKey, ConnectOptions, Host, HostBuilder};
use a99_runtime_engine::digest;
use agent99::account::Account;
use agent99::capabilities::Capabilities;
use agent99::{Agent, Engine, RunOptions, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Default timeout of a turn that may wait for the network or a model.
const WITH_NETWORK: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct Programs(pub(super) BTreeMap<String, Program>);

/// An agent of a file, and the store that its program has open.
pub(super) struct Program {
    pub(super) spec: Arc<AgentSpec>,
    agent: ProgramAgent,
    opened: store::Opened,
    pub(super) shape: Shape,
}

/// All inputs of an agent. An agent with an unchanged shape keeps running across a reload.
#[derive(PartialEq)]
pub(super) struct Shape {
    /// Its program, keys and settings, without the position in the file.
    text: String,
    /// With its password, which `text` omits.
    store: Option<store::StorePlace>,
    /// Hashes of its files.
    files: Vec<Option<u64>>,
}

impl Programs {
    /// Compiles the programs and opens their grants.
    ///
    /// # Errors
    /// A rejected program; a grant that cannot be opened.
    pub(super) fn prepare(agents: &[Arc<AgentSpec>]) -> Result<Programs, Failure> {
        let mut programs = Programs::default();
        for spec in agents {
            let shape = spec.shape();
            let (agent, opened) = agent(spec)?;
            let program = Program {
                spec: Arc::clone(spec),
                agent,
                opened,
                shape,
            };
            programs.0.insert(spec.name.clone(), program);
        }
        Ok(programs)
    }

    /// Registers the programs with hosts that are being built.
    pub(super) fn adder(&self) -> impl Fn(HostBuilder) -> HostBuilder + Send + Sync + use<> {
        let programs = self.0.iter();
        let agents = programs.map(|(name, program)| (name.clone(), program.agent.clone()));
        let agents: Vec<(String, ProgramAgent)> = agents.collect();
        move |mut builder| {
            for (name, agent) in &agents {
                let agent = agent.clone();
                builder = builder.agent(name, move |_| agent.clone());
            }
            builder
        }
    }

    /// All keys, by agent.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&AgentKey, &Arc<AgentSpec>)> {
        let programs = self.0.values();
        programs.flat_map(|program| program.spec.keys.iter().map(|key| (key, &program.spec)))
    }

    /// Waits until all stores of programs are flushed.
    pub(super) fn close(self) {
        self.0.into_values().for_each(Program::close);
    }
}

impl Program {
    /// Registers the program with a running host.
    pub(super) fn define(&self, host: &Host) {
        let agent = self.agent.clone();
        host.define(&self.spec.name, move |_| agent.clone());
    }

    /// Waits until its store is flushed.
    pub(super) fn close(self) {
        self.opened.close();
    }
}

/// The agent of a program, and the store that it has open.
fn agent(spec: &Arc<AgentSpec>) -> Result<(ProgramAgent, store::Opened), Failure> {
    let config = &spec.run;
    let engine = Engine::builder().build();
    check_ops(config, &engine)?;
    let inherited = limits(config)?;
    let named = spec.program.display().to_string();
    if !spec.program.exists() {
        let why = format!("{}`program`: there is no file {named}", spec.place);
        let help = "name a program or artifact beside this file";
        return Err(Failure::coded(crate::config::BAD_VALUE, why, help));
    }
    let (program, _) = input::agent(&engine, &spec.program)?;
    let opened = store::open(config, None)?;
    let granted = network::with_xml(network::grant(config, Capabilities::none())?);
    let granted = embed::grant(config, granted)?;
    let granted = models::grant(config, granted)?;
    crate::limits::check(config, &granted)?;
    let granted = opened.grant(config, granted)?;
    let agents = agents::registry(&engine, config, None, &inherited, &granted)?;
    let context = with_env(None, config)?;
    let of_run = Arc::clone(spec);
    let mut builder = ProgramAgent::builder(&engine, program)
        .granted(granted)
        .options(move || options(&of_run, context.clone()))
        .settings(spec.config.as_object().cloned().unwrap_or_default())
        .policy(spec.policy)
        .events(spec.events)
        .streaming(spec.is_streaming)
        .on_lost(spec.hears_lost)
        .invites(spec.guests.clone())
        .connect(ConnectOptions {
            replay: spec.replay,
            ..ConnectOptions::default()
        });
    if let Some(agents) = agents {
        builder = builder.agents(agents);
    }
    if let Some(time) = spec.time_of_run() {
        builder = builder.deadline(time);
    }
    if let Some(tables) = &spec.tables {
        builder = builder.tables(tables.clone());
    }
    for (name, method) in &spec.methods {
        builder = builder.method(name, method.clone());
    }
    let agent = builder.build();
    let agent = agent.map_err(|error| Failure::about(&named, error))?;
    Ok((agent, opened))
}

/// The agent of a program for a replay: with the limits of its file, without its grants.
///
/// # Errors
/// Limits that cannot be read.
pub(super) fn replayed(
    engine: &Engine,
    program: Agent,
    spec: Option<&Arc<AgentSpec>>,
) -> Result<ProgramAgent, Failure> {
    let mut builder = ProgramAgent::builder(engine, program);
    if let Some(spec) = spec {
        limits(&spec.run)?;
        let context = with_env(None, &spec.run)?;
        let of_run = Arc::clone(spec);
        builder = builder.options(move || options(&of_run, context.clone()));
        if let Some(time) = spec.time_of_run() {
            builder = builder.deadline(time);
        }
    }
    let agent = builder.build();
    agent.map_err(|error| Failure::about("the program", error))
}

/// Options of a turn's run, built for each turn; the start has reported their mistakes.
fn options(spec: &AgentSpec, context: Option<Value>) -> RunOptions {
    let config = &spec.run;
    let mut options = limits(config).unwrap_or_default();
    if let Some(context) = context {
        options = options.context(context);
    }
    match account_limits(config) {
        Ok(limits) => options.account(Account::new("", limits)),
        Err(_) => options,
    }
}

impl AgentSpec {
    fn shape(&self) -> Shape {
        let set = &self.run.set;
        let secrets = set
            .header
            .iter()
            .filter_map(|header| header.0.as_ref().ok());
        let files = [Some(self.program.as_path()), set.ca.as_deref()].into_iter();
        let files = files.flatten();
        let files = files.chain(set.agent.iter().map(|agent| agent.file.as_path()));
        let files = files.chain(secrets.filter_map(|header| header.file()));
        let said = (
            (
                &self.program,
                &self.keys,
                &self.config,
                &self.policy,
                &self.events,
            ),
            (
                &self.replay,
                &self.timers,
                &self.methods,
                (&self.is_streaming, &self.hears_lost, &self.guests),
                &self.tables,
            ),
            (set, &self.run.models, &self.run.warnings),
        );
        Shape {
            text: format!("{said:?}"),
            store: set.store.clone(),
            files: files
                .map(|file| std::fs::read(file).ok().map(|bytes| digest(&bytes)))
                .collect(),
        }
    }

    /// The timeout of a turn's run; without one its fuel decides.
    fn time_of_run(&self) -> Option<Duration> {
        let set = &self.run.set;
        let waits = !set.allow.is_empty() || set.llm.is_some() || self.run.models.is_some();
        set.timeout.or(waits.then_some(WITH_NETWORK))
    }
}
