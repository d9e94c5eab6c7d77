//! Real implementations of capabilities, each behind a feature, so that a host
//! builds only what it grants:
//!
//! - `sandbox`: `SandboxShell`, a Linux in WebAssembly
//!   as the computer that an agent's commands run on.
//!
//! Nothing here is granted by itself: a host puts an implementation into its
//! `Capabilities`. Each proves itself with the conformance suite of its trait.

#![warn(unreachable_pub)]

#[cfg(feature = "sandbox")]
pub mod sandbox;
