//! Disks of a guest: the image's, a file that all its guests read, and the guest's own, an
//! unnamed file that vanishes with the guest even after a crash.
//!
//! The guest copies blocks straight between these files and its memory. This module caches
//! nothing: the host's kernel does, once for all guests.

use super::error::{VmCode, VmError};
use super::levels::{FrozenDisk, Levels};
use a99_sandbox_abi::Disk;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a sector (virtio 1.2 section 5.2.4).
const SECTOR_BYTES: u64 = 512;

/// Size limits of a guest's own disk: a smaller one has no room beside file-system
/// metadata, and 1 TiB exceeds any plausible need.
const MIN_BYTES: u64 = 16 << 20;
const MAX_BYTES: u64 = 1 << 40;

/// Block size of the guest's file system; disk sizes are rounded up to it.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Default folder of disks: on a disk, while `/tmp` is often in memory (Filesystem
/// Hierarchy Standard 3.0, section 5.15).
const FOLDER: &str = "/var/tmp";

/// Names tried where the file system supports no unnamed files.
const TRIES: u32 = 16;

/// The disk of an image.
#[derive(Clone, Debug)]
pub(crate) struct ImageDisk {
    file: Arc<File>,
    bytes: u64,
}

impl ImageDisk {
    /// Opens the disk in a file that was verified.
    pub(crate) fn new(file: File) -> std::io::Result<Self> {
        let bytes = file.metadata()?.len();
        let file = Arc::new(file);
        Ok(Self { file, bytes })
    }

    /// Whole sectors of the disk.
    pub(crate) fn sectors(&self) -> u64 {
        self.bytes / SECTOR_BYTES
    }
}

/// Options of a guest's own disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Size in bytes.
    pub bytes: u64,
    /// Folder whose file system holds the disk.
    pub folder: Option<PathBuf>,
}

/// A guest's own disk.
#[derive(Debug)]
pub struct OwnDisk {
    levels: Levels,
}

impl OwnDisk {
    /// Creates an empty disk, which takes no space before the guest writes.
    ///
    /// # Errors
    /// [`VmCode::BadOption`] for a size out of range or beyond the free space;
    /// [`VmCode::Io`] if the folder cannot hold it.
    pub fn new(options: &DiskOptions) -> Result<Self, VmError> {
        Self::with(options, |folder, bytes| Levels::new(folder, bytes))
    }

    /// Creates a copy of a frozen disk, which takes no space before its guest writes.
    ///
    /// # Errors
    /// Those of [`OwnDisk::new`].
    pub(super) fn of(frozen: &FrozenDisk, folder: Option<PathBuf>) -> Result<Self, VmError> {
        let bytes = frozen.bytes;
        Self::with(&DiskOptions { bytes, folder }, |folder, _| {
            Levels::of(frozen, folder)
        })
    }

    fn with(
        options: &DiskOptions,
        make: impl FnOnce(&Path, u64) -> std::io::Result<Levels>,
    ) -> Result<Self, VmError> {
        let DiskOptions { bytes, folder } = options;
        check(*bytes)?;
        let bytes = bytes.next_multiple_of(BLOCK_BYTES);
        let folder = folder.clone().unwrap_or_else(usual_folder);
        let io = |error: std::io::Error| VmError::io(&folder, &error);
        let state = rustix::fs::statvfs(&folder).map_err(|error| io(error.into()))?;
        let free = state.f_bavail.saturating_mul(state.f_frsize);
        if free < bytes {
            let text = format!(
                "a disk of {bytes} bytes in {}: there are {free} free",
                folder.display()
            );
            return Err(VmError::new(VmCode::BadOption, text));
        }
        let levels = make(&folder, bytes).map_err(io)?;
        Ok(Self { levels })
    }

    /// Freezes its contents; it continues in another file.
    pub(super) fn freeze(&mut self) -> Result<FrozenDisk, VmError> {
        let frozen = self.levels.freeze();
        frozen.map_err(|error| VmError::new(VmCode::Io, format!("disk of the guest: {error}")))
    }

    /// Writes contents of a saved disk.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.levels.write(offset, bytes)
    }

    /// Sectors of the disk.
    pub fn sectors(&self) -> u64 {
        self.levels.bytes() / SECTOR_BYTES
    }
}

/// Checks the size of a guest's own disk.
pub fn check(bytes: u64) -> Result<(), VmError> {
    if (MIN_BYTES..=MAX_BYTES).contains(&bytes) {
        return Ok(());
    }
    let text = format!("a disk of {bytes} bytes: it can have {MIN_BYTES} to {MAX_BYTES}");
    Err(VmError::new(VmCode::BadOption, text))
}

fn usual_folder() -> PathBuf {
    let set = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
    set.map_or_else(|| PathBuf::from(FOLDER), PathBuf::from)
}

/// Creates an unnamed file that only this process can reach.
pub(super) fn nameless(folder: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
    if let Ok(file) = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        return Ok(File::from(file));
    }
    // Some file systems support no unnamed files: create a named one and unlink it at once.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let mut last = std::io::ErrorKind::AlreadyExists.into();
    for _ in 0..TRIES {
        let random = getrandom::u64().map_err(std::io::Error::other)?;
        let path = folder.join(format!("a99-disk-{:016x}", random));
        match options.open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The disks of one guest, by the emulator's numbers ([`Disk`]).
#[derive(Debug, Default)]
pub(super) struct Disks {
    /// [`Disk::Image`].
    pub image: Option<ImageDisk>,
    /// [`Disk::Own`].
    pub own: Option<OwnDisk>,
}

impl Disks {
    /// Reads at an offset; `false` unless the whole range exists.
    pub(crate) fn read(&self, disk: u32, offset: u64, buf: &mut [u8]) -> bool {
        let len = buf.len() as u64;
        match (Disk::from_number(disk), &self.image, &self.own) {
            (Some(Disk::Image), Some(image), _) => {
                is_inside(offset, len, image.bytes) && image.file.read_exact_at(buf, offset).is_ok()
            }
            (Some(Disk::Own), _, Some(own)) => {
                is_inside(offset, len, own.levels.bytes()) && own.levels.read(offset, buf).is_ok()
            }
            _ => false,
        }
    }

    /// Writes at an offset; `false` also if the host is out of space.
    pub(crate) fn write(&mut self, disk: u32, offset: u64, bytes: &[u8]) -> bool {
        self.own_mut(disk).is_some_and(|own| {
            let fits = is_inside(offset, bytes.len() as u64, own.levels.bytes());
            fits && own.levels.write(offset, bytes).is_ok()
        })
    }

    /// Returns a range's space to the host. If the host's file system cannot do that, the
    /// range stays, or is filled with zeros if `zero` is set.
    pub(crate) fn discard(&mut self, disk: u32, offset: u64, len: u64, zero: bool) -> bool {
        self.own_mut(disk).is_some_and(|own| {
            let fits = is_inside(offset, len, own.levels.bytes());
            fits && own.levels.discard(offset, len, zero).is_ok()
        })
    }

    /// Writes are not buffered here, and the disk does not outlive the guest.
    pub(crate) fn flush(&self, disk: u32) -> bool {
        Disk::from_number(disk) == Some(Disk::Own) && self.own.is_some()
    }

    fn own_mut(&mut self, disk: u32) -> Option<&mut OwnDisk> {
        let is_own = Disk::from_number(disk) == Some(Disk::Own);
        self.own.as_mut().filter(|_| is_own)
    }
}

fn is_inside(offset: u64, len: u64, bytes: u64) -> bool {
    offset.checked_add(len).is_some_and(|end| end <= bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn options(folder: &Path) -> DiskOptions {
        DiskOptions {
            bytes: 16 << 20,
            folder: Some(folder.to_owned()),
        }
    }

    fn disks(folder: &Path) -> Disks {
        Disks {
            image: None,
            own: Some(OwnDisk::new(&options(folder)).expect("a disk")),
        }
    }

    #[test]
    fn a_disk_has_no_name_and_no_size_before_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut disks = disks(folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0);
        let own = disks.own.as_ref().expect("a disk");
        let top = own.levels.top().try_clone().expect("a descriptor");
        let used = || top.metadata().expect("there").blocks() * 512;
        assert_eq!((own.sectors(), used()), (1 << 15, 0));
        assert!(disks.write(1, 1 << 20, &[7; 1 << 20]));
        assert!(used() >= 1 << 20);
        let mut back = [0; 8];
        assert!(disks.read(1, (2 << 20) - 4, &mut back));
        assert_eq!(back, [7, 7, 7, 7, 0, 0, 0, 0]);
        assert!(disks.discard(1, 1 << 20, 1 << 20, true));
        assert!(disks.read(1, 1 << 20, &mut back));
        assert_eq!(back, [0; 8]);
        assert!(used() < 1 << 20);
    }

    #[test]
    fn nothing_outside_is_reached() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut disks = disks(folder.path());
        let end = 16 << 20;
        for offset in [end, end - 1, u64::MAX, u64::MAX - 1] {
            assert!(!disks.read(1, offset, &mut [0; 2]), "{offset}");
            assert!(!disks.write(1, offset, &[0; 2]), "{offset}");
            assert!(!disks.discard(1, offset, 2, true), "{offset}");
        }
        for disk in [0, 2] {
            assert!(!disks.read(disk, 0, &mut [0; 2]));
            assert!(!disks.write(disk, 0, &[0; 2]));
            assert!(!disks.flush(disk));
        }
        let path = folder.path().join("image");
        std::fs::write(&path, [5; 1024]).expect("written");
        let image = File::open(&path)
            .and_then(ImageDisk::new)
            .expect("an image");
        assert_eq!(image.sectors(), 2);
        disks.image = Some(image);
        let mut back = [0; 2];
        assert!(disks.read(0, 1022, &mut back) && back == [5; 2]);
        assert!(!disks.read(0, 1023, &mut back));
        assert!(!disks.write(0, 0, &[0; 2]) && !disks.discard(0, 0, 2, true));
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        for bytes in [0, (16 << 20) - 1, (1 << 40) + 1, u64::MAX] {
            let options = DiskOptions {
                bytes,
                ..options(folder.path())
            };
            let error = OwnDisk::new(&options).expect_err("refused");
            assert_eq!(error.code, VmCode::BadOption, "{bytes}");
        }
        let error = OwnDisk::new(&options(&folder.path().join("none"))).expect_err("no folder");
        assert_eq!(error.code, VmCode::Io);
    }
}
