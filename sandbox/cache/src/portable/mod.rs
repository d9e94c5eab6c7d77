//! Portable image: one file that carries an image to another machine, which then needs no
//! apt.
//!
//! The file is a tar archive that common tools can list, gzipped or packed with zstd. It holds the portable
//! snapshot, the image's disk, the licence texts of its contents, the kernel's
//! configuration, and a manifest with the hash of every part. It holds no native machine
//! code: [`import()`] compiles the snapshot on the target machine.
//!
//! The contents of a file are checked, and trusted no further than that. Its parts are
//! bounded and have the names from the manifest. The snapshot is a WebAssembly module with
//! the same access as every guest. It is stored under the hash of its file, so that no
//! later build takes it for its own result. The format does not authenticate the
//! author of a file. A caller that knows the hash of a file from a trusted place vouches for
//! it: the snapshot then counts as one that was built here. Any other one is foreign, and
//! runs on an engine that can stop it from outside.

mod export;
mod import;
mod manifest;
mod pack;
mod tar;
mod unpack;

pub use export::export;
pub use import::import;
pub use manifest::{Origin, Part, Portable};
pub use pack::{Carried, export_pack, import_pack, is_pack};

use super::entry::Entry;
use super::machine::{DISK, SNAPSHOT};

/// Name of the kernel's configuration in the result of its step.
pub const CONFIGURATION: &str = "kernel.config";

/// Folder of licence texts, as in the results of steps.
pub const LICENCES: &str = "licences";

/// File in which an imported image keeps its manifest.
const ORIGIN: &str = "origin.json";

/// Name of the step whose result a portable image is.
const STEP: &str = "snapshot";

/// Label of the hash of a vouched file among the inputs of its snapshot.
const VOUCHED: &str = "vouched";

/// Whether a snapshot was imported rather than built here.
pub fn is_imported(snapshot: &Entry) -> bool {
    snapshot.sha256(ORIGIN).is_ok()
}

/// Returns the SHA-256 of the file that a snapshot came from, if its importer vouched for
/// it.
pub fn vouched(snapshot: &Entry) -> Option<&str> {
    snapshot.manifest.inputs.get(VOUCHED)
}

/// Whether a snapshot may be hostile: it was imported, and the importer did not vouch for it.
pub fn is_foreign(snapshot: &Entry) -> bool {
    is_imported(snapshot) && vouched(snapshot).is_none()
}

#[cfg(test)]
mod tests;
