//! Named sandboxes: those that stay between commands, `a99 sandbox start NAME`
//! and what follows it.
//!
//! Each has a background process of its own, this binary started again
//! (`daemon`), which listens on a Unix socket in a folder that only its user can
//! enter (`runtime_dir`). A client connects for one request (`client`), and both speak
//! in frames (`wire`). Commands beyond what runs at once wait (`queue`). The daemon holds a lock on a file beside the socket for
//! as long as it lives; whatever is left of one that was killed is known by its
//! free lock, and removed by whoever comes next.
//!
//! Nothing is kept over the end of the daemon: a sandbox that should outlive it
//! is what snapshots of the library are for.

pub(crate) mod args;
pub(crate) mod client;
pub(crate) mod daemon;
pub(crate) mod error;
mod input;
pub(crate) mod launch;
mod lock;
pub(crate) mod name;
mod queue;
pub(crate) mod runtime_dir;
mod serve;
pub(crate) mod spec;
pub(crate) mod wire;
