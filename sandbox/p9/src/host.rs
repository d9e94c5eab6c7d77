//! Contained path resolution: host files held by `O_PATH` descriptors, and single steps
//! from one to the next.
//!
//! A step is one name, resolved by `openat2` beneath a held directory and without following
//! any link. So no name leads out of a mount, even while the tree changes. Symbolic links
//! are for the guest's kernel to follow, inside the guest. `rustix` exposes these calls
//! directly. `cap-std` was not chosen: it falls back to its own resolution, which makes
//! more calls and is open to races of the host, and it lacks the calls on open files, such
//! as locks, extended attributes and directory cookies.
//!
//! A file to be read or written is reopened from such a descriptor through `/proc/self/fd`,
//! after its type was checked: the opened file is the checked one, and never a FIFO or a
//! device.

use super::descriptors::{CountedFd, Descriptors, Permit};
use super::mount::{MountCode, MountError, is_kernel_interface};
use super::wire::Qid;
use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, openat, openat2, readlinkat,
};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// `PROC_SUPER_MAGIC`.
const PROC_MAGIC: u64 = 0x9fa0;

/// Suffix that the kernel appends to the path of an unlinked file.
const DELETED: &[u8] = b" (deleted)";

/// Identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
        }
    }
}

/// A file of a mount.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Number of the mount.
    pub mount: usize,
    /// File type, which never changes.
    pub kind: FileType,
    pub id: Identity,
    fd: Arc<CountedFd>,
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Node {
    /// Wraps the root of mount `mount`.
    pub(crate) fn root(mount: usize, fd: CountedFd) -> Result<Self, Errno> {
        Self::of(mount, Arc::new(fd))
    }

    /// Wraps a shared descriptor.
    pub(crate) fn of(mount: usize, fd: Arc<CountedFd>) -> Result<Self, Errno> {
        let stat = fstat(&*fd)?;
        Ok(Self {
            mount,
            kind: FileType::from_raw_mode(stat.st_mode),
            id: Identity::of(&stat),
            fd,
        })
    }

    /// Whether both are the same file in the same mount.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.mount, self.id) == (other.mount, other.id)
    }

    /// Current attributes on the host.
    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        fstat(&*self.fd)
    }

    /// Current qid of the file.
    pub(crate) fn qid(&self) -> Result<Qid, Errno> {
        Ok(qid(self.mount, &self.stat()?))
    }

    /// Whether the file still has a name.
    pub(crate) fn is_linked(&self) -> Result<bool, Errno> {
        Ok(self.stat()?.st_nlink != 0)
    }
}

/// Qid of a file of mount `mount`.
pub(super) fn qid(mount: usize, stat: &Stat) -> Qid {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Qid::DIR,
        FileType::Symlink => Qid::SYMLINK,
        _ => 0,
    };
    Qid {
        kind,
        version: version(stat),
        path: qid_path(mount, Identity::of(stat)),
    }
}

/// Unique path of each file of each mount: one file in two mounts is two files to the
/// guest, which otherwise would confuse the mounts' folders. It is exact within a device
/// and a hash between devices.
pub(super) fn qid_path(mount: usize, id: Identity) -> u64 {
    id.ino ^ mix(mix(id.dev).wrapping_add(mount as u64 + 1))
}

/// Version that changes whenever content or attributes do. A guest that finds another
/// version when it opens a file drops its cache of it.
#[allow(
    clippy::unnecessary_cast,
    reason = "the widths differ between machines"
)]
fn version(stat: &Stat) -> u32 {
    let mut hash = 0;
    for part in [
        stat.st_mtime as u64,
        stat.st_mtime_nsec as u64,
        stat.st_ctime as u64,
        stat.st_ctime_nsec as u64,
        stat.st_size as u64,
    ] {
        hash = mix(hash ^ part);
    }
    // 0 would disable Linux's cache (`fs/9p/fid.h`, v9fs_fid_add_modes).
    (hash as u32).max(1)
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Maps descriptors back to names, through `/proc/self/fd`.
#[derive(Debug)]
pub(super) struct Host {
    proc_fd: OwnedFd,
    descriptors: Descriptors,
}

impl Host {
    /// Opens `/proc/self/fd`.
    pub(crate) fn open() -> Result<Self, MountError> {
        let path = Path::new("/proc/self/fd");
        let failed = |errno| MountError {
            code: MountCode::NoProc,
            path: path.to_owned(),
            errno,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, path, flags, Mode::empty());
        let proc_fd = opened.map_err(|errno| failed(Some(errno)))?;
        let found = fstatfs(&proc_fd).map_err(|errno| failed(Some(errno)))?;
        if found.f_type as u64 & 0xffff_ffff != PROC_MAGIC {
            return Err(failed(None));
        }
        Ok(Self {
            proc_fd,
            descriptors: Descriptors::default(),
        })
    }

    /// Takes a permit for one more descriptor.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(crate) fn permit(&self) -> Result<Permit, Errno> {
        self.descriptors.take()
    }

    /// `/proc/self/fd` and the name of `fd` in it, for calls that take a folder and a name
    /// and follow the last link.
    pub(crate) fn handle(&self, fd: BorrowedFd<'_>) -> (&OwnedFd, String) {
        (&self.proc_fd, fd.as_raw_fd().to_string())
    }

    /// Opens the file `name` in `dir`; `name` must be a single component.
    ///
    /// # Errors
    /// The host's; `EACCES` for files of kernel interfaces.
    pub(crate) fn step(&self, dir: &Node, name: &[u8]) -> Result<Node, Errno> {
        if dir.kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let permit = self.permit()?;
        let fd = openat2(dir, name, flags, Mode::empty(), contained())?;
        let node = Node::root(dir.mount, CountedFd::new(fd, permit))?;
        if node.id.dev != dir.id.dev && is_kernel_interface(&node)? {
            return Err(Errno::ACCESS);
        }
        Ok(node)
    }

    /// Opens the file at `path` below `root`; no component may be a link.
    pub(crate) fn resolve(&self, root: &Node, path: &Path) -> Result<Node, Errno> {
        let mut node = root.clone();
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(Errno::INVAL);
            };
            node = self.step(&node, name.as_encoded_bytes())?;
        }
        Ok(node)
    }

    /// Reopens the file itself, for reading or writing as in `access`.
    ///
    /// # Errors
    /// `ELOOP` for a symbolic link, `EPERM` for a file that is neither a folder nor
    /// regular, and the host's.
    pub(crate) fn reopen(&self, node: &Node, access: OFlags) -> Result<CountedFd, Errno> {
        match node.kind {
            FileType::Directory | FileType::RegularFile => {}
            FileType::Symlink => return Err(Errno::LOOP),
            _ => return Err(Errno::PERM),
        }
        let always = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (folder, name) = self.handle(node.as_fd());
        let permit = self.permit()?;
        let fd = openat(folder, name, access | always, Mode::empty())?;
        Ok(CountedFd::new(fd, permit))
    }

    /// Current path of the file, from the root of the host.
    ///
    /// # Errors
    /// `ENOENT` if the file was unlinked.
    pub(crate) fn path(&self, node: &Node) -> Result<PathBuf, Errno> {
        let (folder, name) = self.handle(node.as_fd());
        let path = readlinkat(folder, name, Vec::new())?.into_bytes();
        if path.ends_with(DELETED) && !self.is_at(node, &path) {
            return Err(Errno::NOENT);
        }
        Ok(PathBuf::from(OsString::from_vec(path)))
    }

    /// Whether `path` is a file whose name merely ends like that of an unlinked one.
    fn is_at(&self, node: &Node, path: &[u8]) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(CWD, path, flags, Mode::empty()).and_then(fstat);
        found.is_ok_and(|stat| Identity::of(&stat) == node.id)
    }
}

/// Flags of contained name resolution.
pub(super) fn contained() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS
}
