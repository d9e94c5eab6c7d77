//! Embeddings of a run, by the model or service of `--embed`.

use crate::address::is_address;
use crate::config::EffectiveConfig;
use crate::failure::Failure;
#[cfg(feature = "embed")]
use crate::failure::USAGE;
use agent99::Capabilities;
#[cfg(feature = "embed")]
use std::path::Path;

/// Adds the embeddings that these settings grant.
#[cfg(feature = "embed")]
pub(crate) fn grant(config: &EffectiveConfig, set: Capabilities) -> Result<Capabilities, Failure> {
    use a99_embed::{EmbedModel, Precision, TextEmbedder};
    let Some(from) = config.set.embed.as_deref() else {
        return Ok(set);
    };
    let model = config.set.embed_model.as_deref();
    if config.yields("embed", set.embedder.is_some()) {
        return Ok(set);
    }
    if set.embedder.is_some() {
        let why = "--embed and the script's `embed` exclude each other";
        return Err(Failure::coded(USAGE[0], why, "leave one of the two out"));
    }
    if is_address(from) {
        return by_service(from, model, config, set);
    }
    if model.is_some() {
        return Err(Failure::coded(
            USAGE[0],
            "--embed-model is for --embed with an address",
            "leave it out: the folder of `--embed` holds the model",
        ));
    }
    // The published weights in full precision give the same vectors as other programs.
    let model = EmbedModel::load(Path::new(from), Precision::F32);
    let model = model.map_err(|error| match failure(&error) {
        Failure::Coded {
            code,
            message,
            help,
        } => Failure::coded(code, format!("--embed {from}: {message}"), help),
        other => other,
    })?;
    Ok(set.with_embedder(TextEmbedder::new(model)))
}

#[cfg(all(feature = "embed", feature = "http"))]
fn by_service(
    url: &str,
    model: Option<&str>,
    config: &EffectiveConfig,
    set: Capabilities,
) -> Result<Capabilities, Failure> {
    let Some(model) = model else {
        let why = "--embed with an address needs --embed-model NAME, the model to ask for";
        let help = "add `--embed-model NAME`, as in `--embed-model text-embedding-3-small`";
        return Err(Failure::coded(USAGE[0], why, help));
    };
    let fetch = crate::network::to_origin(
        config,
        &format!("--embed {}", crate::address::shown_address(url)),
        url,
    )?;
    let embedder = a99_embed::EndpointEmbedder::new(fetch, url, model);
    match price(config, url, model) {
        Some(price) => Ok(set.with_embedder(embedder.priced(price))),
        None if config.set.max_money.is_some() => {
            let help = format!(
                "write what a million tokens cost, `--price {model}=PROMPT,0` (`0,0` if nothing)"
            );
            let model = format!("the model `{model}`");
            Err(crate::limits::without_price(config, &model, &help))
        }
        None => Ok(set.with_embedder(embedder)),
    }
}

/// Price of a service's model, if known.
#[cfg(all(feature = "embed", feature = "http"))]
fn price(
    config: &EffectiveConfig,
    url: &str,
    model: &str,
) -> Option<agent99::capabilities::ai::PriceOf> {
    #[cfg(feature = "models")]
    if let Some(price) = crate::models::embedding_price(config, url, model) {
        return Some(std::sync::Arc::new(move |_, usage| Some(price.cost(usage))));
    }
    let _ = (config, url, model);
    None
}

#[cfg(all(feature = "embed", not(feature = "http")))]
fn by_service(
    _: &str,
    _: Option<&str>,
    _: &EffectiveConfig,
    _: Capabilities,
) -> Result<Capabilities, Failure> {
    Err(Failure::missing_feature("`a99 run --embed URL`", "http"))
}

#[cfg(not(feature = "embed"))]
pub(crate) fn grant(config: &EffectiveConfig, set: Capabilities) -> Result<Capabilities, Failure> {
    match config.set.embed.as_deref() {
        Some(from) if is_address(from) && config.set.embed_model.is_none() => Err(Failure::usage(
            "--embed with an address needs --embed-model NAME, the model to ask for",
        )),
        Some(_) => Err(Failure::missing_feature("`a99 run --embed`", "embed")),
        None => Ok(set),
    }
}

/// A failure with the library's code, and help in terms of this command.
#[cfg(feature = "embed")]
pub(crate) fn failure(error: &a99_embed::EmbedError) -> Failure {
    let help = error.help().unwrap_or("see `a99 model import --help`");
    Failure::coded(error.code().name(), error.to_string(), help)
}
