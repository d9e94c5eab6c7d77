//! Mounts: folders that the host shares with a guest, and checks that sharing them is safe.

use super::budget::{Budget, Spent};
use super::descriptors::CountedFd;
use super::git::GitWrites;
use super::host::{Host, Node};
use rustix::fs::{FileType, Mode, OFlags, fstatfs, open};
use rustix::io::Errno;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Maximum mounts of one guest.
pub const MAX_MOUNTS: usize = 256;

/// Access of a guest to a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MountMode {
    /// Read only.
    #[default]
    ReadOnly,
    /// Read and write, with the rights of the host's user.
    ReadWrite,
    /// Read from the host, and keep writes in the guest, which mounts an overlay on top:
    /// read-only for this server.
    Overlay,
}

/// A folder or file of the host, mounted in a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Mount point in the guest, for the component that mounts it there.
    pub guest: PathBuf,
    /// Folder or regular file on the host. Symbolic links in this path are followed,
    /// because the host chose it.
    pub host: PathBuf,
    /// Access of the guest.
    pub mode: MountMode,
    /// Which of git's own files the guest may write, in a writable mount.
    pub git: GitWrites,
    /// How much the guest may add, in a writable mount.
    pub budget: Budget,
}

impl Mount {
    /// Mounts `host` at `guest`, with git's settings protected.
    pub fn new(guest: impl Into<PathBuf>, host: impl Into<PathBuf>, mode: MountMode) -> Self {
        Self {
            guest: guest.into(),
            host: host.into(),
            mode,
            git: GitWrites::Refused,
            budget: Budget::default(),
        }
    }
}

/// Why a mount cannot be shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountError {
    /// Reason of the failure.
    pub code: MountCode,
    /// The folder at fault, if any.
    pub path: PathBuf,
    /// Error of the system call.
    pub errno: Option<Errno>,
}

/// Reasons why a mount cannot be shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountCode {
    /// The kernel lacks `openat2`, or forbids it.
    NoContainment,
    /// `/proc` is not mounted.
    NoProc,
    /// The folder cannot be opened.
    Unreadable,
    /// The path is neither a folder nor a regular file.
    WrongKind,
    /// It lies in `/proc`, `/sys` or a similar folder, which leads out of any mount.
    KernelInterface,
    /// The guest has more than [`MAX_MOUNTS`] mounts.
    TooMany,
    /// It is a folder of Agent99, with images or sockets.
    OwnFolder(PathBuf),
}

impl MountCode {
    /// Returns the stable name.
    pub fn as_str(&self) -> &'static str {
        self.names().0
    }

    /// Returns the name that was published before the stable one, if it differed.
    pub fn alias(&self) -> Option<&'static str> {
        let (name, alias) = self.names();
        (name != alias).then_some(alias)
    }

    /// Stable name and alias.
    fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::NoContainment => ("mount.no_containment", "mount.noContainment"),
            Self::NoProc => ("mount.no_proc", "mount.noProc"),
            Self::Unreadable => ("mount.unreadable", "mount.unreadable"),
            Self::WrongKind => ("mount.wrong_kind", "mount.wrongKind"),
            Self::KernelInterface => ("mount.kernel_interface", "mount.kernelInterface"),
            Self::TooMany => ("mount.too_many", "mount.tooMany"),
            Self::OwnFolder(_) => ("mount.own_folder", "mount.ownFolder"),
        }
    }

    /// Returns a remedy for the failure.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoContainment => {
                "mounts need the system call openat2: Linux 5.6 or later, and a container \
                 whose seccomp profile allows it"
            }
            Self::NoProc => "mount the proc file system at /proc",
            Self::Unreadable => "check that the path exists and that this user may open it",
            Self::WrongKind => "share a folder or a regular file",
            Self::KernelInterface => "share a folder with files of your own",
            Self::TooMany => "share a folder that holds several of them",
            Self::OwnFolder(_) => {
                "share a folder beside it; A99_CACHE_DIR and XDG_RUNTIME_DIR say where these are"
            }
        }
    }
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.code {
            MountCode::NoContainment => f.write_str("the host cannot contain file accesses")?,
            MountCode::NoProc => write!(f, "{path} is not usable")?,
            MountCode::Unreadable => write!(f, "cannot share {path}")?,
            MountCode::WrongKind => write!(f, "{path} is neither a folder nor a regular file")?,
            MountCode::KernelInterface => write!(f, "{path} is an interface of the kernel")?,
            MountCode::TooMany => write!(f, "more than {MAX_MOUNTS} mounts")?,
            MountCode::OwnFolder(own) => {
                let own = own.display();
                write!(
                    f,
                    "{path} would show the guest {own}, from which the host runs code"
                )?;
            }
        }
        if let Some(errno) = self.errno {
            write!(f, ": {errno}")?;
        }
        write!(f, " ({}): {}", self.code.as_str(), self.code.help())
    }
}

impl std::error::Error for MountError {}

/// A mount whose root is held open.
#[derive(Debug)]
pub(super) struct OpenMount {
    pub mount: Mount,
    pub root: Node,
    pub spent: Spent,
}

impl OpenMount {
    /// Opens the root of mount `number`.
    pub(crate) fn open(host: &Host, number: usize, mount: Mount) -> Result<Self, MountError> {
        let failed = |code, errno| MountError {
            code,
            path: mount.host.clone(),
            errno,
        };
        let unreadable = |errno| failed(MountCode::Unreadable, Some(errno));
        let fd: OwnedFd =
            open(&mount.host, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(unreadable)?;
        if is_kernel_interface(&fd).map_err(unreadable)? {
            return Err(failed(MountCode::KernelInterface, None));
        }
        let permit = host.permit().map_err(unreadable)?;
        let root = Node::root(number, CountedFd::new(fd, permit)).map_err(unreadable)?;
        if !matches!(root.kind, FileType::Directory | FileType::RegularFile) {
            return Err(failed(MountCode::WrongKind, None));
        }
        // One contained step now detects a kernel without support.
        if root.kind == FileType::Directory
            && let Err(errno @ (Errno::NOSYS | Errno::PERM)) = host.step(&root, b"\x01")
        {
            return Err(failed(MountCode::NoContainment, Some(errno)));
        }
        let spent = Spent::new(mount.budget);
        Ok(Self { mount, root, spent })
    }

    /// Whether the guest may change files here.
    pub(crate) fn writable(&self) -> bool {
        self.mount.mode == MountMode::ReadWrite
    }

    /// Path of `absolute` relative to this mount.
    pub(crate) fn relative<'a>(&self, host: &Host, absolute: &'a Path) -> Result<&'a Path, Errno> {
        let root = host.path(&self.root)?;
        absolute.strip_prefix(&root).map_err(|_| Errno::STALE)
    }
}

/// File systems that are kernel interfaces rather than storage: their files can read and
/// write the memory of processes, this one's included, or control the machine. Numbers from
/// Linux `include/uapi/linux/magic.h`.
const KERNEL_INTERFACES: [u64; 14] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0xcafe_4a11, // bpf
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x1cd1,      // devpts
    0xf97c_ff8c, // selinuxfs
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0x4249_4e4d, // binfmt_misc
];

/// Whether `fd` is on one of those file systems.
pub(super) fn is_kernel_interface(fd: impl AsFd) -> Result<bool, Errno> {
    let kind = fstatfs(fd)?.f_type as u64 & 0xffff_ffff;
    Ok(KERNEL_INTERFACES.contains(&kind))
}
