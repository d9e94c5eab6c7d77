//! Container images: an archive of `docker save` or an OCI image layout, read into one
//! read-only file system that a guest uses as its root.
//!
//! The archive is hostile until proven otherwise. Nothing of it is ever extracted to a path
//! of the host: its layers become a tree in memory (`tree`), whose files are spans of one
//! spool file, and the tree becomes an EROFS file. Every blob has the digest that its
//! manifest names, every layer the `diff_id` of the configuration, and everything that an
//! archive can make large has a limit ([`Limits`]). The reading runs in a process with
//! limits on memory, processor time, files and descriptors ([`Worker`]).
//!
//! Devices of layers are dropped: guests have their own `/dev`, and overlayfs would take a
//! device 0:0 for a deleted file. Extended attributes are dropped with them.
//
// - `archive`: the outer tar file or folder, and its blobs; `tar`: entries of a tar stream.
// - `manifest`: JSON from the index to one image; `blob`: digests and compression.
// - `tree`: layers with whiteouts; `read`: all of it together; `users`: `User` of an image.
// - `store`: images in the user's cache; `worker`: the process that reads.
// - `registry`: images of registries, downloaded as layouts.

#![warn(unreachable_pub)]

mod archive;
mod blob;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod limits;
mod manifest;
mod read;
#[cfg(feature = "registry")]
pub mod registry;
mod store;
mod tar;
mod tree;
mod users;
mod worker;

pub use error::{OciCode, OciError};
pub use limits::Limits;
pub use read::{Config, Image, Input, RunAs, Step, read};
pub use store::{Store, StoredImage, check_name};
pub use worker::{TASK, Worker, serve};
