//! Contained path resolution: files of the host, held by descriptors that can do
//! nothing but be named (`O_PATH`), and the steps from one to the next.
//!
//! A step is one name, resolved by `openat2` beneath a held directory and
//! without following any link, so no name leads out of a mount, however the
//! tree changes meanwhile; symbolic links are for the guest's kernel to follow,
//! inside the guest. `rustix` has these calls as they are. `cap-std` was not
//! taken: it falls back to a resolution of its own that asks more often and is
//! open to races of the host, and it has none of the calls on open files, such
//! as locks, extended attributes and cookies of directories.
//!
//! What is open for reading or writing is opened anew from such a descriptor
//! through `/proc/self/fd`, after its kind was looked at: the file that is
//! opened is the one that was looked at, and a FIFO or a device never is.

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

/// What the kernel appends to the path of a file that has none any more.
const DELETED: &[u8] = b" (deleted)";

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The number of its device.
    pub dev: u64,
    /// Its number there.
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
    /// The number of the mount.
    pub mount: usize,
    /// Its kind, which a file keeps for life.
    pub kind: FileType,
    /// Which file.
    pub id: Identity,
    fd: Arc<CountedFd>,
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Node {
    /// The root of mount `mount`.
    pub(crate) fn root(mount: usize, fd: CountedFd) -> Result<Self, Errno> {
        Self::of(mount, Arc::new(fd))
    }

    /// The file of a descriptor that others hold, too.
    pub(crate) fn of(mount: usize, fd: Arc<CountedFd>) -> Result<Self, Errno> {
        let stat = fstat(&*fd)?;
        Ok(Self {
            mount,
            kind: FileType::from_raw_mode(stat.st_mode),
            id: Identity::of(&stat),
            fd,
        })
    }

    /// Whether it is the same file, in the same mount.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.mount, self.id) == (other.mount, other.id)
    }

    /// What the host says about it now.
    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        fstat(&*self.fd)
    }

    /// What the guest knows it by now.
    pub(crate) fn qid(&self) -> Result<Qid, Errno> {
        Ok(qid(self.mount, &self.stat()?))
    }

    /// Whether it has a name left.
    pub(crate) fn is_linked(&self) -> Result<bool, Errno> {
        Ok(self.stat()?.st_nlink != 0)
    }
}

/// The qid of a file of mount `mount`.
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

/// Unique for each file of each mount: one file in two mounts is two files to
/// the guest, which otherwise would take one mount's folder for the other's.
/// Within a device it is exact, between devices it is a hash.
pub(super) fn qid_path(mount: usize, id: Identity) -> u64 {
    id.ino ^ mix(mix(id.dev).wrapping_add(mount as u64 + 1))
}

/// Changes whenever content or attributes do. A guest that finds another
/// version when it opens a file forgets what it had cached of it.
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
    // 0 tells Linux not to cache (`fs/9p/fid.h`, v9fs_fid_add_modes).
    (hash as u32).max(1)
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The way back from descriptors to names.
#[derive(Debug)]
pub(super) struct Host {
    proc_fd: OwnedFd,
    descriptors: Descriptors,
}

impl Host {
    /// Finds `/proc/self/fd`.
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

    /// A permit for one more descriptor.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(crate) fn permit(&self) -> Result<Permit, Errno> {
        self.descriptors.take()
    }

    /// `/proc/self/fd` and the name of `fd` there, for calls that take a folder
    /// and a name and follow the last link.
    pub(crate) fn handle(&self, fd: BorrowedFd<'_>) -> (&OwnedFd, String) {
        (&self.proc_fd, fd.as_raw_fd().to_string())
    }

    /// The file `name` in `dir`, which must be a single name.
    ///
    /// # Errors
    /// The host's; `EACCES` for what speaks for the kernel and is no file.
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

    /// The file at `path` below `root`; none of its components is a link.
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

    /// Opens the file itself, for reading and writing as `access` says.
    ///
    /// # Errors
    /// `ELOOP` for a symbolic link, `EPERM` for what is neither a folder nor a
    /// regular file, and the host's.
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

    /// Where the file is now, from the root of the host.
    ///
    /// # Errors
    /// `ENOENT` if it has no name any more.
    pub(crate) fn path(&self, node: &Node) -> Result<PathBuf, Errno> {
        let (folder, name) = self.handle(node.as_fd());
        let path = readlinkat(folder, name, Vec::new())?.into_bytes();
        if path.ends_with(DELETED) && !self.is_at(node, &path) {
            return Err(Errno::NOENT);
        }
        Ok(PathBuf::from(OsString::from_vec(path)))
    }

    /// Whether a file whose name only looks deleted is at `path`.
    fn is_at(&self, node: &Node, path: &[u8]) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(CWD, path, flags, Mode::empty()).and_then(fstat);
        found.is_ok_and(|stat| Identity::of(&stat) == node.id)
    }
}

/// How names are resolved.
pub(super) fn contained() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS
}
