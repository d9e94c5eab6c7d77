//! What the guest promises, proven with the image that was built last: boots,
//! entropy, programs that give the same bytes as the host's, hostile programs;
//! and what the host does about a cache that others had their hands in.
//!
//! What needs the image (`cargo xtask guest`) is run by name, or all of it by
//! `cargo xtask guest-test`. Other tools of the host that are compared with are
//! named where they are used.

mod boots;
#[path = "../common/mod.rs"]
mod common;
mod elf;
mod entropy;
mod hostile;
mod python;
mod s08_cache;
mod support;
mod tools;
