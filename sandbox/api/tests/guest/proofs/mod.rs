//! Guarantees of the guest, proven with the image that was built last: boots, entropy,
//! programs that give the same bytes as the host's, hostile programs; and the host's
//! handling of a tampered cache.
//!
//! Tools of the host that results are compared with are named where they are used.

mod boots;
mod elf;
mod entropy;
mod hostile;
mod python;
mod s08_cache;
mod support;
mod tools;
