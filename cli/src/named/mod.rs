//! Sandboxes that have a name and stay: `a99 sandbox start NAME` and what
//! follows it.
//!
//! Each is kept by a background process of its own, this binary started again
//! (`keeper`), which listens on a Unix socket in a folder that only its user can
//! enter (`place`). A client connects for one request (`client`), and both speak
//! in frames (`wire`). The keeper holds a lock on a file beside the socket for
//! as long as it lives; whatever is left of one that was killed is known by its
//! free lock, and removed by whoever comes next.
//!
//! Nothing is kept over the end of the keeper: a sandbox that should outlive it
//! is what snapshots of the library are for.

pub(crate) mod args;
pub(crate) mod client;
mod input;
pub(crate) mod keeper;
pub(crate) mod launch;
mod lock;
pub(crate) mod name;
pub(crate) mod place;
pub(crate) mod problem;
mod serve;
pub(crate) mod spec;
pub(crate) mod wire;
