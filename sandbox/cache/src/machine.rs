//! Machine: the trait that boots, saves, compiles and starts guests, and the names of the
//! files that pass between it and the cache.
//!
//! The cache does not know how a guest runs. Of a machine's results, the snapshot is
//! portable and the compiled module is not.

use super::entry::Entry;
use super::error::{At, ImageError};
use super::seal::SealKey;
use std::fs;
use std::path::Path;

/// File name of the portable snapshot in its result.
pub const SNAPSHOT: &str = "guest.wasm";

/// File name of the compiled module in its result.
pub const MODULE: &str = "guest.cwasm";

/// File name of the image's disk beside both.
pub const DISK: &str = "guest.disk";

/// Space for a snapshot and for a compiled module, in bytes.
pub const ROOM: u64 = 500_000_000;

/// Inputs of a guest's snapshot.
#[derive(Copy, Clone, Debug)]
pub struct Parts<'a> {
    /// Emulator, a WebAssembly module.
    pub emulator: &'a [u8],
    /// Kernel image.
    pub kernel: &'a [u8],
    /// Archive of the root file system.
    pub root_files: &'a [u8],
    /// File of the image's disk.
    pub disk: &'a Path,
}

/// Runs guests for the cache and the image builder.
pub trait Machine {
    /// Describes the dependencies of a snapshot apart from its parts, such as the size of
    /// the guest's memory.
    fn settings(&self) -> String;

    /// Describes the dependencies of a compiled module apart from the snapshot: the
    /// compiler's release, its configuration, the processor's features. A foreign module
    /// can be interrupted from outside.
    fn compatibility(&self, foreign: bool) -> String;

    /// Boots a guest, runs the commands in it, and returns it as a module that continues
    /// from there, with AOT regions of the training workload's hottest code.
    fn snapshot(
        &self,
        parts: &Parts<'_>,
        warm_up: &[&[&str]],
        training: &str,
    ) -> Result<Vec<u8>, ImageError>;

    /// Compiles a module into a file, with its companion files beside it, sealed with the
    /// key of the cache. The image's disk is there already. A foreign module may be
    /// hostile.
    fn precompile(
        &self,
        module: &[u8],
        file: &Path,
        key: &SealKey,
        foreign: bool,
    ) -> Result<(), ImageError>;

    /// Whether a compiled module was made here and is unchanged since.
    fn is_sealed(&self, file: &Path, key: &SealKey) -> bool;

    /// Verifies a compiled module in full, starts a guest from it and runs a command there.
    fn smoke_test(&self, file: &Path, key: &SealKey, foreign: bool) -> Result<(), ImageError>;
}

/// Places a file beside its user: as a hard link where the file system allows that, to save
/// space, else as a copy.
pub fn link_or_copy(file: &Path, to: &Path) -> Result<(), ImageError> {
    match fs::hard_link(file, to) {
        Ok(()) => Ok(()),
        Err(_) => fs::copy(file, to).map(drop).at(to),
    }
}

/// Reads a file of a result.
pub fn read(entry: &Entry, name: &str) -> Result<Vec<u8>, ImageError> {
    let path = entry.path(name);
    fs::read(&path).at(&path)
}
