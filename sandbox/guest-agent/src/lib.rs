//! Guest agent: the program inside the guest that runs commands for the host.
//!
//! [`agent`] is the guest's side of [`a99_sandbox_protocol`]: one thread around `poll`,
//! which owns every process it starts. It trusts the host, but not the processes it runs.

#![warn(unreachable_pub)]

use a99_sandbox_protocol as protocol;

#[cfg(target_os = "linux")]
pub mod agent;
