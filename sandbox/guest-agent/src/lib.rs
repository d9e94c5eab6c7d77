//! The program inside the guest that runs commands for the host, and the
//! protocol both speak.
//!
//! [`protocol`] is plain Rust that both sides compile. [`agent`] is the guest's
//! side: one thread around `poll`, which owns every process it starts. It
//! trusts the host and nothing it runs. [`tree`] copies files between the two.

pub mod protocol;

#[cfg(target_os = "linux")]
pub mod agent;

#[cfg(target_os = "linux")]
pub mod tree;
