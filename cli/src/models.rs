//! Language models of a run, by the service that `--llm` names.

use crate::config::InForce;
use crate::failure::Failure;
use agent99::Capabilities;

/// What answers the program's prompts.
pub(crate) struct Choice<'a> {
    /// The address of a service.
    pub url: Option<&'a str>,
    /// The model that it is asked for.
    pub model: Option<&'a str>,
    /// The variable that holds its key.
    pub key_env: Option<&'a str>,
}

/// What the run is granted with it.
#[cfg(feature = "models")]
pub(crate) fn grant(
    choice: &Choice<'_>,
    config: &InForce,
    set: Capabilities,
) -> Result<Capabilities, Failure> {
    use crate::failure::USAGE;
    use a99_models::{ModelConfig, ModelProvider, Secret};
    use std::sync::Arc;
    let (Some(url), Some(model)) = (choice.url, choice.model) else {
        return Ok(set);
    };
    let scripted = [
        ("ai", set.ai.is_some()),
        ("llm", set.llm.is_some()),
        ("llmBattery", set.llm_battery.is_some()),
    ];
    if let Some((member, _)) = scripted.iter().find(|(_, there)| *there) {
        let why = format!("--llm and the script's `{member}` exclude each other");
        return Err(Failure::coded(USAGE[0], why, "leave one of the two out"));
    }
    let key = match choice.key_env {
        None => None,
        Some(name) => match std::env::var(name).map(|key| key.trim().to_owned()) {
            Ok(key) if !key.is_empty() => Some(Secret::new(key)),
            _ => {
                let why = format!("--llm-key-env {name}: this variable is not set, or no text");
                let help = format!("set it, as in `export {name}=...`");
                return Err(Failure::coded(USAGE[0], why, help));
            }
        },
    };
    let fetch = crate::network::to_origin(config, "--llm", url)?;
    let provider = ModelProvider::builder(ModelConfig::single(url, model, key));
    let provider = provider.fetch(Arc::new(fetch)).build().map_err(|error| {
        let why = format!("--llm {url}: {error}");
        Failure::coded(error.code().name(), why, "see `a99 run --help`")
    })?;
    Ok(set.with_ai(provider))
}

#[cfg(not(feature = "models"))]
pub(crate) fn grant(
    choice: &Choice<'_>,
    _: &InForce,
    set: Capabilities,
) -> Result<Capabilities, Failure> {
    let _ = (choice.model, choice.key_env);
    match choice.url {
        Some(_) => Err(Failure::missing_feature("`a99 run --llm`", "models")),
        None => Ok(set),
    }
}
