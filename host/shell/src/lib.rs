//! Implementations of capabilities, each behind a feature, so that a host builds only those
//! that it grants:
//!
//! - `sandbox`: `SandboxShell`, a Linux in WebAssembly as the computer for an agent's commands.
//!
//! Nothing here is granted automatically: a host puts an implementation into its
//! `Capabilities`. Each passes the conformance suite of its trait.

#![warn(unreachable_pub)]

#[cfg(feature = "sandbox")]
pub mod sandbox;
