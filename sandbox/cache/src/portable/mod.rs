//! Portable image: one file that carries it to another machine and needs no apt
//! there.
//!
//! The file holds the portable snapshot, the image's disk, the licence texts of what is in it,
//! the kernel's configuration, and a manifest with the hash of every part: a
//! gzipped tar archive that common tools can list. It holds no machine code of
//! this processor: [`import()`] compiles the snapshot where it is.
//!
//! What a file says is checked and not believed further than that. Its parts
//! are bounded and have the names that the manifest gave them; the snapshot is
//! a WebAssembly module, which can reach nothing but what every guest reaches;
//! it is stored under the hash of its file, so that no later build takes it for
//! a result of its own. Who made a file is not proven: that is for the channel
//! it came over.

mod export;
mod import;
mod manifest;
mod tar;

pub use export::export;
pub use import::import;
pub use manifest::{Origin, Part, Portable};

use super::entry::Entry;
use super::machine::{DISK, SNAPSHOT};

/// The kernel's configuration among the results of its step.
pub const CONFIGURATION: &str = "kernel.config";

/// The folder of licence texts, as in the results of steps.
pub const LICENCES: &str = "licences";

/// Where an imported image keeps the manifest that it came with.
const ORIGIN: &str = "origin.json";

/// The name of the step whose result a portable image is.
const STEP: &str = "snapshot";

/// Whether a snapshot came out of a file, and was not built here.
pub fn is_imported(snapshot: &Entry) -> bool {
    snapshot.sha256(ORIGIN).is_ok()
}

#[cfg(test)]
mod tests;
