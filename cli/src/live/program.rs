//! Programs as agents: what a program of agents.toml needs to run.

use super::config::AgentSpec;
use crate::commands::run::{account_limits, check_ops, limits, with_env};
use crate::failure::Failure;
use crate::{agents, embed, input, models, network, store};
use a99_runtime::program::ProgramAgent;
use a99_runtime::{ConnectOptions, HostBuilder};
use agent99::account::Account;
use agent99::capabilities::Capabilities;
use agent99::{Engine, RunOptions, Value};
use std::sync::Arc;
use std::time::Duration;

/// Time of a turn that may ask a network or a model, unless it is told.
const WITH_NETWORK: Duration = Duration::from_secs(600);

/// The agents of a file, and the stores that their programs have open.
#[derive(Default)]
pub(super) struct Programs {
    all: Vec<(String, ProgramAgent)>,
    opened: Vec<store::Opened>,
}

impl Programs {
    /// Reads the programs, and opens what they are granted.
    ///
    /// # Errors
    /// A program that is rejected, a grant that cannot be given.
    pub(super) fn prepare(agents: &[Arc<AgentSpec>]) -> Result<Programs, Failure> {
        let mut programs = Programs::default();
        for spec in agents {
            let (agent, opened) = agent(spec)?;
            programs.opened.push(opened);
            programs.all.push((spec.name.clone(), agent));
        }
        Ok(programs)
    }

    /// Makes the programs known to a host.
    pub(super) fn add(&self, mut builder: HostBuilder) -> HostBuilder {
        for (name, agent) in &self.all {
            let agent = agent.clone();
            builder = builder.agent(name, move |_| agent.clone());
        }
        builder
    }

    /// Waits until all that programs stored is in its files.
    pub(super) fn close(self) {
        self.opened.into_iter().for_each(store::Opened::close);
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
    /// The time of a turn's run, unless its fuel says it.
    fn time_of_run(&self) -> Option<Duration> {
        let set = &self.run.set;
        let waits = !set.allow.is_empty() || set.llm.is_some() || self.run.models.is_some();
        set.timeout.or(waits.then_some(WITH_NETWORK))
    }
}
