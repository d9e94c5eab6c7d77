//! Token and money limits of a run, which starts only if each of them takes effect.

use crate::config::EffectiveConfig;
use crate::failure::{Failure, NO_LIMIT};
use agent99::Capabilities;

/// Refuses a limit that has no effect on the granted models. Prices of services were checked with
/// their grant.
///
/// # Errors
/// `cli.no_limit`, with the missing grant or price.
pub(crate) fn check(config: &EffectiveConfig, set: &Capabilities) -> Result<(), Failure> {
    let embeds = set
        .embedder
        .as_ref()
        .is_some_and(|embedder| embedder.is_billed());
    let scripted = [
        ("llm", set.llm.is_some()),
        ("llmBattery", set.llm_battery.is_some()),
    ];
    let has_models = set.ai.is_some() || embeds || scripted.iter().any(|(_, there)| *there);
    let settings = &config.set;
    let agent = settings
        .agent
        .iter()
        .position(|agent| agent.tokens.is_some());
    let limits = [
        (settings.max_tokens.is_some(), "max-tokens", 0, ""),
        (settings.max_money.is_some(), "max-money", 0, ""),
        (agent.is_some(), "agent", agent.unwrap_or(0), "`tokens`: "),
    ];
    if let Some((_, name, at, member)) = limits.iter().find(|(set, ..)| *set && !has_models) {
        let named = config.named(name, *at);
        let text = format!(
            "{named}: {member}there is nothing to limit: the run has no model and no service of \
             embeddings"
        );
        let help = "name a model, as in `--llm http://localhost:1234/v1 --model qwen3-8b`, or \
                    leave the limit out";
        return Err(Failure::coded(NO_LIMIT, text, help));
    }
    match scripted.iter().find(|(_, there)| *there) {
        Some((member, _)) if settings.max_money.is_some() => {
            let text = format!("the script's `{member}`");
            let help = "script models as `ai`, which costs nothing, or leave the limit out";
            Err(without_price(config, &text, help))
        }
        _ => Ok(()),
    }
}

/// The error of a money limit with a model that has no price.
pub(crate) fn without_price(config: &EffectiveConfig, model: &str, help: &str) -> Failure {
    let named = config.named("max-money", 0);
    let text = format!("{named}: money cannot be limited: {model} has no price");
    Failure::coded(NO_LIMIT, text, help)
}
