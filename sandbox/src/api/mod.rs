//! The sandbox as programs use it; the tour is the crate's page.
//!
//! - `builder`: what can be chosen, and the start; `sandbox`: what a running
//!   one does.
//! - `command`: a program to run; `collect`: waiting for its end; `process`:
//!   following its streams; `cancel`: ending it from elsewhere.
//! - `copy`: files between host and guest; `wiring`: mounts and network.
//! - `foreign`: an image of container2wasm in place of our guest.
//!
//! Nothing here waits but futures and [`Builder::start_blocking`]; the guest's
//! own thread ([`crate::vm`]) does the work.

mod builder;
mod cancel;
mod collect;
mod command;
mod copy;
mod foreign;
mod process;
mod sandbox;
pub(crate) mod wiring;

pub use crate::p9::{Mount, MountMode};
pub use a99_egress::{Policy, PolicyError};
pub use a99_sandbox_protocol::tree::Copied;
pub use a99_sandbox_protocol::{Ending, Exited, Stream};
pub use builder::Builder;
pub use cancel::Cancel;
pub use command::{Command, ExecOptions};
pub use process::{Chunk, Process};
pub use sandbox::Sandbox;
