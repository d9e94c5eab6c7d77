//! Where a sandbox keeps its files.

use super::builder::Builder;
use a99_sandbox_runner::DiskOptions;
use std::path::PathBuf;

impl Builder {
    /// Gives the guest a disk of `bytes` bytes for all that is written outside mounts.
    ///
    /// It is an unnamed file in a folder of the host: it grows as the guest writes and
    /// vanishes when the sandbox ends, even after a crash. A restored sandbox has the disk of
    /// its snapshot; this then only limits its size, to 10 GiB by default.
    ///
    /// Without this, files are in the guest's memory, and those that do not fit are moved to
    /// such a file of at most 4 GiB, in the folder that the variable `TMPDIR` names, or
    /// `/var/tmp`. It exists only once it is needed.
    pub fn disk(mut self, bytes: u64) -> Self {
        let folder = self.disk.and_then(|disk| disk.folder);
        self.disk = Some(DiskOptions { bytes, folder });
        self
    }

    /// Gives the guest such a disk in `folder`.
    ///
    /// The default is the folder that the variable `TMPDIR` names, or `/var/tmp`.
    pub fn disk_in(mut self, bytes: u64, folder: impl Into<PathBuf>) -> Self {
        let folder = Some(folder.into());
        self.disk = Some(DiskOptions { bytes, folder });
        self
    }

    /// Keeps all files in the guest's memory, some 110 MB, and half of what
    /// [`Builder::ram`] adds. A copy keeps them where its original does.
    pub fn files_in_memory(mut self) -> Self {
        self.swap = false;
        self
    }
}
