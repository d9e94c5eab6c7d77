//! Sub-agents of a run: the programs that `--agent` names, for `agentRun`.

use crate::config::EffectiveConfig;
use crate::failure::{Failure, USAGE};
use crate::input;
use agent99::account::AccountLimits;
use agent99::artifact::sign::TrustedKeys;
use agent99::{AgentRegistry, Capabilities, Engine, RunOptions, SubAgent};

/// Adds the sub-agents of a run. They get the run's grants and options.
///
/// # Errors
/// Those of [`registry`].
pub(crate) fn grant(
    engine: &Engine,
    config: &EffectiveConfig,
    keys: Option<&TrustedKeys>,
    options: &RunOptions,
    set: Capabilities,
) -> Result<Capabilities, Failure> {
    let registry = registry(engine, config, keys, options, &set)?;
    Ok(registry.map_or(set, |registry| registry.capabilities()))
}

/// The sub-agents of a run, if any. They get the run's grants and options.
///
/// # Errors
/// A program that is rejected or lacks a trusted signature; a share that is too large; an invalid
/// name; a script that answers `agentRun` instead.
pub(crate) fn registry(
    engine: &Engine,
    config: &EffectiveConfig,
    keys: Option<&TrustedKeys>,
    options: &RunOptions,
    set: &Capabilities,
) -> Result<Option<AgentRegistry>, Failure> {
    let agents = &config.set.agent;
    if agents.is_empty() {
        return Ok(None);
    }
    let wrong = |at: usize, why: String, help: &str| config.wrong("agent", at, why, help);
    if config.yields("agent", set.agent.is_some()) {
        return Ok(None);
    }
    if set.agent.is_some() {
        let why = "it and the script's `agent` exclude each other".to_owned();
        return Err(wrong(0, why, "leave one of them out"));
    }
    let mut registry = AgentRegistry::builder(engine);
    for (at, arg) in agents.iter().enumerate() {
        let source = input::read_for(&config.named("agent", at), &arg.file)?;
        if let Some(keys) = keys {
            source.check_signature(keys)?;
        }
        let (agent, _) = input::agent_in(engine, source, false)?;
        let share = arg.share();
        let share = share.map_err(|why| wrong(at, why, "write a smaller number"))?;
        let limits = AccountLimits {
            tokens: arg.tokens,
            ..AccountLimits::default()
        };
        let agent = SubAgent::new(agent).share(share).limits(limits);
        registry = registry.sub_agent(&arg.name, agent.options(options.clone()));
    }
    let registry = registry.granted(set.clone()).build();
    let registry = registry.map_err(|error| {
        let named = config.named("agent", 0);
        Failure::coded(
            USAGE[0],
            format!("{named}: {error}"),
            "give each agent a unique name",
        )
    })?;
    Ok(Some(registry))
}
