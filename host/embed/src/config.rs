//! The configuration of a model: its dimensions, against which all later data is checked.

use crate::error::{EmbedCode, EmbedError};
use crate::matrix::BLOCK;
use a99_core::json::{Document, Kind, Limits};

/// Maximum bytes of a configuration.
pub(crate) const MAX_CONFIG_BYTES: usize = 64 << 10;

/// The dimensions of a BERT model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Dimension of a token's vector, and of an embedding.
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    /// Dimension of a token's vector inside the feed-forward part of a layer.
    pub(crate) intermediate: usize,
    pub(crate) vocabulary: usize,
    pub(crate) positions: usize,
    /// Number of token types; texts have the first.
    pub(crate) types: usize,
    /// The term added to the variance in normalisations.
    pub(crate) epsilon: f32,
}

impl Config {
    pub(crate) fn parse(text: &[u8]) -> Result<Config, EmbedError> {
        let wrong = |what: String| EmbedError::new(EmbedCode::Config, what);
        let limits = Limits {
            max_bytes: MAX_CONFIG_BYTES,
            max_depth: 16,
            max_nodes: 4096,
        };
        let document = Document::parse(text, &limits);
        let document = document.map_err(|_| wrong("it is not JSON".to_owned()))?;
        let root = document.root();
        for (key, wanted, is_needed) in [
            ("model_type", "bert", true),
            ("hidden_act", "gelu", true),
            ("position_embedding_type", "absolute", false),
        ] {
            let found = document.get(root, key).map(|node| document.str(node));
            let is_so = match found {
                Some(text) => text == Some(wanted.as_bytes()),
                None => !is_needed,
            };
            if !is_so {
                return Err(wrong(format!("{key} must be \"{wanted}\"")));
            }
        }
        let number = |key: &str| match document.get(root, key).map(|node| document.kind(node)) {
            Some(Kind::Number(number)) => Ok(number),
            _ => Err(wrong(format!("{key} must be a number"))),
        };
        let size = |key: &str, most: usize| {
            let found = number(key)?;
            if found.fract() == 0.0 && (1.0..=most as f64).contains(&found) {
                return Ok(found as usize);
            }
            Err(wrong(format!("{key} must be a number from 1 to {most}")))
        };
        let epsilon = number("layer_norm_eps")?;
        if !(1e-30..1.0).contains(&epsilon) {
            return Err(wrong("layer_norm_eps must lie between 0 and 1".to_owned()));
        }
        let config = Config {
            hidden: size("hidden_size", 1024)?,
            layers: size("num_hidden_layers", 24)?,
            heads: size("num_attention_heads", 64)?,
            intermediate: size("intermediate_size", 4096)?,
            vocabulary: size("vocab_size", 1 << 17)?,
            positions: size("max_position_embeddings", 4096)?,
            types: size("type_vocab_size", 16)?,
            epsilon: epsilon as f32,
        };
        if !config.hidden.is_multiple_of(config.heads) {
            let what = "hidden_size must be a multiple of num_attention_heads";
            return Err(wrong(what.to_owned()));
        }
        for (key, size) in [
            ("hidden_size", config.hidden),
            ("intermediate_size", config.intermediate),
        ] {
            if !size.is_multiple_of(BLOCK) {
                return Err(wrong(format!("{key} must be a multiple of {BLOCK}")));
            }
        }
        Ok(config)
    }
}
