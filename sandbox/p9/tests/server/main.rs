//! The 9p server, asked as Linux asks it: what comes of each call inside a
//! mount is held against the same call on the host.

mod attack;
mod budget;
mod calls;
mod client;
mod directory;
mod flocks;
mod git;
mod locks;
mod snapshot;
mod walkattr;
