//! The register machine: runs verified programs within limits.
//!
//! An [`Artifact`](a99_core::verify::Artifact) is linked with a host's
//! [`AtomSet`](atom::AtomSet) into an [`Executable`], which a
//! [`Vm`] runs any number of times. The machine itself is pure: it owns its
//! heap, counts its fuel, and stops to be resumed whenever it needs the world.
//! Waiting, timers and signals are the business of one file, `driver`.
//!
//! It contains no atom, reads no clock and opens no socket.

#![warn(unreachable_pub)]

pub mod atom;
pub mod builtins;
pub mod coerce;
pub mod convert;
mod copies;
pub mod digest;
pub mod driver;
pub mod heap;
mod helpers;
pub mod json;
pub mod link;
pub mod machine;
pub mod member;
pub mod native;
pub mod options;
mod schema;
pub mod trace;
pub mod typed;
pub mod vm;

pub use driver::AbortSignal;
pub use link::{Executable, LinkError};
pub use options::{CostOverride, Equality, Limits, OptionError, Outcome, Quota, RunOptions};
pub use trace::TraceEvent;
pub use vm::{Environment, Pool, ProgramLoader, Vm};
