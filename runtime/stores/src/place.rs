//! Place of a store's files: detects files that were moved while open.

use crate::lock::beside;
use a99_runtime_engine::{StoreCode, StoreError};
use std::path::{Path, PathBuf};

/// Device and inode of a file.
type Inode = (u64, u64);

/// The store's file, its write-ahead log and shared-memory index, as they were when opened.
pub(crate) struct Place(Vec<(PathBuf, Option<Inode>)>);

impl Place {
    /// The files of an open store.
    pub(crate) fn of(store: &Path) -> Place {
        let files = ["", "-wal", "-shm"].map(|end| beside(store, end));
        let files = files.into_iter().map(|file| {
            let inode = inode(&file);
            (file, inode)
        });
        Place(files.collect())
    }

    /// Refuses files that were deleted, renamed or replaced: data written to them would be
    /// unreachable.
    ///
    /// # Errors
    /// [`StoreCode::NotFound`]
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        for (file, opened) in &self.0 {
            if opened.is_some() && inode(file) != *opened {
                let message = format!(
                    "{}: it was deleted, renamed or replaced while it was open",
                    file.display()
                );
                return Err(StoreError::new(StoreCode::NotFound, message));
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
pub(crate) fn inode(file: &Path) -> Option<Inode> {
    use std::os::unix::fs::MetadataExt as _;
    let found = file.metadata().ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
pub(crate) fn inode(_: &Path) -> Option<Inode> {
    None
}
