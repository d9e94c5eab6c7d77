//! What the guest promises, proven with the image that was built last: boots,
//! entropy, programs that give the same bytes as the host's, hostile programs;
//! and what the host does about a cache that others had their hands in.
//!
//! Other tools of the host that are compared with are named where they are used.

mod boots;
mod elf;
mod entropy;
mod hostile;
mod python;
mod s08_cache;
mod support;
mod tools;
