//! Machine: who can boot, save, compile and start guests, and the names of the files
//! that pass between it and the cache.
//!
//! How a guest is run is not known here. Of what a machine makes, the snapshot is
//! portable and the compiled module is not.

use super::entry::Entry;
use super::error::{At, ImageError};
use super::seal::SealKey;
use std::fs;
use std::path::Path;

/// The name of the portable snapshot in its result.
pub const SNAPSHOT: &str = "guest.wasm";

/// The name of the compiled module in its result.
pub const MODULE: &str = "guest.cwasm";

/// The name of the image's disk beside both.
pub const DISK: &str = "guest.disk";

/// Room for a snapshot, and for a compiled module, in bytes.
pub const ROOM: u64 = 500_000_000;

/// What a guest is made of.
#[derive(Copy, Clone, Debug)]
pub struct Parts<'a> {
    /// The emulator, a WebAssembly module.
    pub emulator: &'a [u8],
    /// The kernel.
    pub kernel: &'a [u8],
    /// The archive of the root file system.
    pub root_files: &'a [u8],
    /// The file of the image's disk.
    pub disk: &'a Path,
}

/// Runner of guests.
pub trait Machine {
    /// What a snapshot depends on besides its parts, such as the size of the
    /// guest's memory.
    fn settings(&self) -> String;

    /// What a compiled module depends on besides the snapshot: the compiler's
    /// release, its configuration, the processor's features. That of an imported
    /// one can be stopped from outside.
    fn compatibility(&self, imported: bool) -> String;

    /// Boots a guest, runs the commands in it, and gives it as a module that
    /// goes on from there, with AOT regions of what the training workload's script
    /// needs most.
    fn snapshot(
        &self,
        parts: &Parts<'_>,
        warm_up: &[&[&str]],
        training: &str,
    ) -> Result<Vec<u8>, ImageError>;

    /// Compiles a module into a file, with whatever must stand beside it, sealed
    /// with the key of the cache; the image's disk stands there already. One that was imported may be made to do harm.
    fn precompile(
        &self,
        module: &[u8],
        file: &Path,
        key: &SealKey,
        imported: bool,
    ) -> Result<(), ImageError>;

    /// Whether a compiled module is one that was made here and not touched since.
    fn is_sealed(&self, file: &Path, key: &SealKey) -> bool;

    /// Smoke test: reads a compiled module in full, checks that it may be loaded,
    /// starts a guest from it and runs a command there.
    fn smoke_test(&self, file: &Path, key: &SealKey, imported: bool) -> Result<(), ImageError>;
}

/// Puts a file beside what needs it: under another name where the file system
/// allows that, so that it takes no room, else as a copy.
pub fn link_or_copy(file: &Path, to: &Path) -> Result<(), ImageError> {
    match fs::hard_link(file, to) {
        Ok(()) => Ok(()),
        Err(_) => fs::copy(file, to).map(drop).at(to),
    }
}

/// The content of one of a result's files.
pub fn read(entry: &Entry, name: &str) -> Result<Vec<u8>, ImageError> {
    let path = entry.path(name);
    fs::read(&path).at(&path)
}
