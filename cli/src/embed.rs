//! Embeddings of a run, with the model that `--embed` names.

use crate::failure::Failure;
use agent99::Capabilities;
use std::path::Path;

/// What the run is granted with the model in this folder.
#[cfg(feature = "embed")]
pub(crate) fn grant(model: Option<&Path>, set: Capabilities) -> Result<Capabilities, Failure> {
    use a99_embed::{EmbedModel, Precision, TextEmbedder};
    let Some(folder) = model else { return Ok(set) };
    if set.embedder.is_some() {
        let why = "--embed and the script's `embed` exclude each other";
        return Err(Failure::usage(why));
    }
    // The weights as they were published, whose vectors are those of other programs.
    let model = EmbedModel::load(folder, Precision::F32).map_err(|error| failure(&error))?;
    Ok(set.with_embedder(TextEmbedder::new(model)))
}

#[cfg(not(feature = "embed"))]
pub(crate) fn grant(model: Option<&Path>, set: Capabilities) -> Result<Capabilities, Failure> {
    match model {
        Some(_) => Err(Failure::missing_feature("`a99 run --embed`", "embed")),
        None => Ok(set),
    }
}

/// A failure with the code of the library, and what helps in terms of this command.
#[cfg(feature = "embed")]
pub(crate) fn failure(error: &a99_embed::EmbedError) -> Failure {
    let help = error.help().unwrap_or("see `a99 model import --help`");
    Failure::coded(error.code().name(), error.to_string(), help)
}
