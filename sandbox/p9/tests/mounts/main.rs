//! The 9p server with requests as Linux makes them: the result of each call inside a mount
//! is compared with the same call on the host.

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
