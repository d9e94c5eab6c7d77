//! Embeddings: with small models that are made here, and with the published one where
//! it is.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod capability;
mod damaged;
mod published;
mod reference;
mod small;
mod tokens;
