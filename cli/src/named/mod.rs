//! Named sandboxes, which persist between commands: `a99 sandbox start NAME`, and `exec`, `shell`,
//! `cp`, `ls` and `stop`.
//!
//! Each has a background process, this binary started again (`daemon`). It listens on a Unix socket
//! in a folder that only its user can enter (`runtime_dir`). A client connects for one request
//! (`client`), and both exchange frames (`wire`). Commands beyond the limit wait (`queue`). The
//! daemon holds a lock on a file beside the socket until it ends. A free lock shows that its daemon
//! was killed; the next command removes the remaining files.
//!
//! The state of a sandbox ends with its daemon. Snapshots of the library keep it longer.

pub(crate) mod args;
pub(crate) mod client;
pub(crate) mod daemon;
pub(crate) mod error;
pub(crate) mod freeze;
mod input;
pub(crate) mod launch;
mod lock;
pub(crate) mod name;
mod queue;
pub(crate) mod runtime_dir;
mod serve;
pub(crate) mod spec;
pub(crate) mod wire;
