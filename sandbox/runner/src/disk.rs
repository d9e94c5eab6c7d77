//! Disks of a guest: the image's and its layers, files that all guests read; the guest's own;
//! and one for files that do not fit its memory. The last two are unnamed files that vanish
//! with the guest even after a crash.
//!
//! Most guests never write to the last one: its file is made by the first write. The image's
//! guest has prepared it before it was saved (`/init`), and reads of it only what it wrote.
//!
//! The guest copies blocks straight between these files and its memory. This module caches
//! nothing: the host's kernel does, once for all guests.

use super::error::{VmCode, VmError};
use super::levels::{FrozenDisk, Levels};
use super::precompiled::{open_trusted, untrusted};
use a99_sandbox_abi::{Disk, LAYERS, SWAP_BYTES};
use a99_sandbox_cache::{Entry, digest};
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

/// A layer of the files of a guest's root: a read-only file system (EROFS) in a file, which
/// all its guests share.
#[derive(Clone, Debug)]
pub struct Layer {
    disk: ImageDisk,
    sha256: String,
}

impl Layer {
    /// Opens the layer in a file with this hash, which is compared in full.
    ///
    /// # Errors
    /// [`VmCode::UntrustedImage`] for other contents, or a file that other users may
    /// change; [`VmCode::Io`].
    pub fn open(path: &Path, sha256: &str) -> Result<Self, VmError> {
        let layer = Self::of_user(path, sha256)?;
        let found = digest::of_file(path);
        match found.map_err(|error| VmError::new(VmCode::Io, error.to_string()))? == sha256 {
            true => Ok(layer),
            false => Err(untrusted(path, "has other contents than were written")),
        }
    }

    /// Opens the layer in a result of the cache. Its contents were compared when the entry
    /// was opened.
    ///
    /// # Errors
    /// Those of [`Layer::open`].
    pub fn of_entry(entry: &Entry, name: &str) -> Result<Self, VmError> {
        let sha256 = entry.sha256(name);
        let sha256 = sha256.map_err(|error| VmError::new(VmCode::Io, error.to_string()))?;
        Self::of_user(&entry.path(name), sha256)
    }

    /// Opens the layer in a file of the cache whose contents the caller compared.
    ///
    /// # Errors
    /// Those of [`Layer::open`].
    pub fn of_user(path: &Path, sha256: &str) -> Result<Self, VmError> {
        let disk = ImageDisk::new(open_trusted(path)?);
        let disk = disk.map_err(|error| VmError::io(path, &error))?;
        if disk.bytes == 0 || !disk.bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(untrusted(path, "is no file system"));
        }
        let sha256 = sha256.to_owned();
        Ok(Self { disk, sha256 })
    }

    /// Whole sectors of the layer.
    pub(super) fn sectors(&self) -> u64 {
        self.disk.sectors()
    }

    /// SHA-256 of the file, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.disk.bytes
    }
}

/// Maximum number of layers of a guest: each has a drive in the machine.
pub const MAX_LAYERS: usize = LAYERS as usize;

/// Options of a guest's own disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Size in bytes.
    pub bytes: u64,
    /// Folder whose file system holds the disk.
    pub folder: Option<PathBuf>,
}

/// A disk that only one guest uses: its own, or the one for files that do not fit memory.
#[derive(Debug)]
pub struct OwnDisk {
    levels: Levels,
    /// Bytes that may be written before the host's free space is looked at again, for a disk
    /// that the caller did not ask for.
    unchecked: Option<u64>,
}

/// Free space that the disk for files that do not fit memory leaves to the host, and how
/// many bytes it writes between two looks.
const SPARE_BYTES: u64 = 1 << 30;
const CHECK_BYTES: u64 = 16 << 20;

impl OwnDisk {
    /// Creates an empty disk, which takes no space before the guest writes.
    ///
    /// # Errors
    /// [`VmCode::BadOption`] for a size out of range or beyond the free space;
    /// [`VmCode::Io`] if the folder cannot hold it.
    pub fn new(options: &DiskOptions) -> Result<Self, VmError> {
        Self::with(options, |folder, bytes| {
            let mut levels = Levels::new(folder, bytes);
            levels.top()?;
            Ok(levels)
        })
    }

    /// Creates the disk for files that do not fit memory. The first write creates its file:
    /// where that fails, the guest sees a broken disk.
    pub fn swap() -> Self {
        Self {
            levels: Levels::new(&usual_folder(), SWAP_BYTES),
            unchecked: Some(0),
        }
    }

    /// Creates a copy of such a disk.
    pub(super) fn swap_of(frozen: &FrozenDisk) -> Self {
        Self {
            levels: Levels::of(frozen, &usual_folder()),
            unchecked: Some(0),
        }
    }

    /// Creates a copy of a frozen disk, which takes no space before its guest writes.
    ///
    /// # Errors
    /// Those of [`OwnDisk::new`].
    pub(super) fn of(frozen: &FrozenDisk, folder: Option<PathBuf>) -> Result<Self, VmError> {
        let bytes = frozen.bytes;
        Self::with(&DiskOptions { bytes, folder }, |folder, _| {
            Ok(Levels::of(frozen, folder))
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
        let free = free_bytes(&folder).map_err(io)?;
        if free < bytes {
            let text = format!(
                "a disk of {bytes} bytes in {}: there are {free} free",
                folder.display()
            );
            return Err(VmError::new(VmCode::BadOption, text));
        }
        Ok(Self {
            levels: make(&folder, bytes).map_err(io)?,
            unchecked: None,
        })
    }

    /// Freezes its contents; it continues in another file.
    pub(super) fn freeze(&mut self) -> Result<FrozenDisk, VmError> {
        let frozen = self.levels.freeze();
        frozen.map_err(|error| VmError::new(VmCode::Io, format!("disk of the guest: {error}")))
    }

    /// Writes what the guest writes, or contents of a saved disk.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(unchecked) = &mut self.unchecked {
            let len = bytes.len() as u64;
            if *unchecked < len {
                if free_bytes(self.levels.folder())? < SPARE_BYTES {
                    return Err(std::io::ErrorKind::StorageFull.into());
                }
                *unchecked = CHECK_BYTES.max(len);
            }
            *unchecked -= len;
        }
        self.levels.write(offset, bytes)
    }

    /// Sectors of the disk.
    pub fn sectors(&self) -> u64 {
        self.levels.bytes() / SECTOR_BYTES
    }
}

/// Free space of a folder's file system.
fn free_bytes(folder: &Path) -> std::io::Result<u64> {
    let state = rustix::fs::statvfs(folder)?;
    Ok(state.f_bavail.saturating_mul(state.f_frsize))
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
    /// [`Disk::Layer`].
    pub layers: Vec<Layer>,
    /// [`Disk::Swap`].
    pub swap: Option<OwnDisk>,
}

impl Disks {
    /// Reads at an offset; `false` unless the whole range exists.
    pub(crate) fn read(&self, disk: u32, offset: u64, buf: &mut [u8]) -> bool {
        let shared = match Disk::from_number(disk) {
            Some(Disk::Image) => self.image.as_ref(),
            Some(Disk::Layer(number)) => {
                let layer = self.layers.get(usize::from(number));
                layer.map(|layer| &layer.disk)
            }
            Some(disk @ (Disk::Own | Disk::Swap)) => {
                let is_own = disk == Disk::Own;
                let own = if is_own { &self.own } else { &self.swap };
                return own.as_ref().is_some_and(|own| {
                    is_inside(offset, buf.len() as u64, own.levels.bytes())
                        && own.levels.read(offset, buf).is_ok()
                });
            }
            None => None,
        };
        shared.is_some_and(|shared| {
            is_inside(offset, buf.len() as u64, shared.bytes)
                && shared.file.read_exact_at(buf, offset).is_ok()
        })
    }

    /// Writes at an offset; `false` also if the host is out of space.
    pub(crate) fn write(&mut self, disk: u32, offset: u64, bytes: &[u8]) -> bool {
        self.own_mut(disk).is_some_and(|own| {
            let fits = is_inside(offset, bytes.len() as u64, own.levels.bytes());
            fits && own.write(offset, bytes).is_ok()
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
    pub(crate) fn flush(&mut self, disk: u32) -> bool {
        self.own_mut(disk).is_some()
    }

    fn own_mut(&mut self, disk: u32) -> Option<&mut OwnDisk> {
        match Disk::from_number(disk)? {
            Disk::Own => self.own.as_mut(),
            Disk::Swap => self.swap.as_mut(),
            Disk::Image | Disk::Layer(_) => None,
        }
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
            own: Some(OwnDisk::new(&options(folder)).expect("a disk")),
            ..Disks::default()
        }
    }

    #[test]
    fn a_disk_has_no_name_and_no_size_before_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut disks = disks(folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0);
        let own = disks.own.as_mut().expect("a disk");
        let top = own.levels.top().and_then(File::try_clone);
        let top = top.expect("a descriptor");
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
    fn the_disk_for_files_leaves_space_to_the_host() {
        let folder = tempfile::tempdir().expect("a folder");
        let free = free_bytes(folder.path()).expect("free space");
        let disk = |folder: &Path| OwnDisk {
            levels: Levels::new(folder, SWAP_BYTES),
            unchecked: Some(0),
        };
        let mut swap = disk(folder.path());
        assert_eq!(swap.write(4096, &[1; 4096]).is_ok(), free >= SPARE_BYTES);
        // A folder that is gone fails the write, and nothing else.
        let mut disks = Disks {
            swap: Some(disk(&folder.path().join("gone"))),
            ..Disks::default()
        };
        let number = Disk::Swap.number();
        let mut back = [7; 8];
        assert!(!disks.write(number, 0, &[1; 4096]));
        assert!(disks.read(number, 0, &mut back) && back == [0; 8]);
        assert!(!disks.write(number, SWAP_BYTES, &[1; 4096]));
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
    fn a_layer_is_the_file_that_was_named_and_only_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("layer");
        std::fs::write(&path, [5; 1024]).expect("written");
        let sha256 = digest::of_bytes(&[5; 1024]);
        let layer = Layer::open(&path, &sha256).expect("a layer");
        assert_eq!((layer.sectors(), layer.sha256()), (2, sha256.as_str()));
        let mut disks = Disks {
            layers: vec![layer],
            ..Disks::default()
        };
        let number = Disk::Layer(0).number();
        let mut back = [0; 2];
        assert!(disks.read(number, 1022, &mut back) && back == [5; 2]);
        assert!(!disks.read(number, 1023, &mut back) && !disks.read(number + 1, 0, &mut back));
        assert!(!disks.write(number, 0, &[0; 2]) && !disks.discard(number, 0, 2, true));
        let refused = |path: &Path, sha256: &str| {
            let error = Layer::open(path, sha256).expect_err("refused");
            assert_eq!(error.code, VmCode::UntrustedImage);
        };
        refused(&path, &digest::of_bytes(b"other"));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        refused(&link, &sha256);
        std::fs::write(&path, [5; 1000]).expect("written");
        refused(&path, &digest::of_bytes(&[5; 1000]));
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
