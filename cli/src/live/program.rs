//! Programs as agents: what a program of agents.toml needs to run.

use super::config::AgentSpec;
use crate::commands::run::{account_limits, check_ops, limits, with_env};
use crate::failure::Failure;
use crate::{agents, embed, input, models, network, store};
use a99_runtime::program::ProgramAgent;
use a99_runtime::{AgentKey, ConnectOptions, Host, HostBuilder};
use a99_runtime_engine::digest;
use agent99::account::Account;
use agent99::capabilities::Capabilities;
use agent99::{Engine, RunOptions, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time of a turn that may ask a network or a model, unless it is told.
const WITH_NETWORK: Duration = Duration::from_secs(600);

/// The agents of a file, by name.
#[derive(Default)]
pub(super) struct Programs(pub(super) BTreeMap<String, Program>);

/// An agent of a file, and the store that its program has open.
pub(super) struct Program {
    pub(super) spec: Arc<AgentSpec>,
    agent: ProgramAgent,
    opened: store::Opened,
    pub(super) shape: Shape,
}

/// All that an agent follows from. One whose shape is the same goes on when its file is read
/// again.
#[derive(PartialEq)]
pub(super) struct Shape {
    /// What the file says of it, but not in which line.
    text: String,
    /// With its password, which is in no text.
    store: Option<store::StorePlace>,
    /// What its files have in them.
    files: Vec<Option<u64>>,
}

impl Programs {
    /// Reads the programs, and opens what they are granted.
    ///
    /// # Errors
    /// A program that is rejected, a grant that cannot be given.
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

    /// Makes the programs known to a host that is built.
    pub(super) fn add(&self, mut builder: HostBuilder) -> HostBuilder {
        for (name, program) in &self.0 {
            let agent = program.agent.clone();
            builder = builder.agent(name, move |_| agent.clone());
        }
        builder
    }

    /// All keys, by agent.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&AgentKey, &Arc<AgentSpec>)> {
        let programs = self.0.values();
        programs.flat_map(|program| program.spec.keys.iter().map(|key| (key, &program.spec)))
    }

    /// Waits until all that programs stored is in its files.
    pub(super) fn close(self) {
        self.0.into_values().for_each(Program::close);
    }
}

impl Program {
    /// Makes the program known to a host that runs.
    pub(super) fn define(&self, host: &Host) {
        let agent = self.agent.clone();
        host.define(&self.spec.name, move |_| agent.clone());
    }

    /// Waits until all that it stored is in its file.
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

/// Options of a turn's run, made for each: what was wrong with them was told at the start.
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
                (&self.is_streaming, &self.hears_lost),
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

    /// The time of a turn's run, unless its fuel says it.
    fn time_of_run(&self) -> Option<Duration> {
        let set = &self.run.set;
        let waits = !set.allow.is_empty() || set.llm.is_some() || self.run.models.is_some();
        set.timeout.or(waits.then_some(WITH_NETWORK))
    }
}
