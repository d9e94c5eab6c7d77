//! Mount server: host files for an image. The kernel resolves every path beneath the
//! mount's folder (`openat2` with `RESOLVE_BENEATH`), so that no `..`, symbolic link or
//! race leads out. Only regular files and directories are opened.
//!
//! In a writable mount, files that make the host's git run programs are protected by the
//! rule of [`a99_sandbox_p9`], applied to the real place of a path rather than to its
//! spelling.

use super::wasi::abi::{Answer, Errno, fdflags, oflags, rights};
use a99_sandbox_p9::{GitPlace, completes, lock_parts, place_on_host};
use a99_sandbox_runner::{VmCode, VmError};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Timestamps, fstat, ftruncate, futimens,
    linkat, mkdirat, openat2, readlinkat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno as HostErrno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Retries of a resolution that a rename on the host disturbed.
const RACE_RETRIES: usize = 32;

/// A folder of the host, mounted in the guest.
#[derive(Debug)]
pub(super) struct Root {
    /// Mount point in the guest.
    pub guest: String,
    fd: OwnedFd,
    read_only: bool,
    allow_git: bool,
}

/// An open directory of a mount.
#[derive(Debug)]
pub(super) struct Directory {
    pub fd: OwnedFd,
    pub root: Arc<Root>,
}

#[derive(Debug)]
pub(super) enum Opened {
    File(OwnedFd),
    Directory(Directory),
}

/// Arguments of `path_open`.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct How {
    pub follow: bool,
    pub oflags: u16,
    pub rights: u64,
    pub fdflags: u16,
}

impl How {
    fn writes(&self) -> bool {
        self.rights & rights::FD_WRITE != 0 && !self.has(oflags::DIRECTORY)
    }

    /// Whether a missing file is created.
    pub(crate) fn creates(&self) -> bool {
        self.has(oflags::CREAT)
    }

    fn has(&self, flag: u16) -> bool {
        self.oflags & flag != 0
    }

    fn flags(&self) -> OFlags {
        let reads = self.rights & rights::FD_READ != 0;
        // A FIFO must not block the thread, and a terminal must not become ours.
        let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        flags |= match (reads, self.writes()) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        let pairs = [
            (fdflags::APPEND, OFlags::APPEND),
            (fdflags::DSYNC, OFlags::DSYNC),
            (fdflags::SYNC | fdflags::RSYNC, OFlags::SYNC),
        ];
        for (flag, host) in pairs {
            if self.fdflags & flag != 0 {
                flags |= host;
            }
        }
        if self.has(oflags::DIRECTORY) {
            flags |= OFlags::DIRECTORY;
        }
        if !self.follow {
            flags |= OFlags::NOFOLLOW;
        }
        flags
    }
}

/// Opens a path beneath a directory.
fn beneath(dir: impl AsFd, path: &[u8], flags: OFlags, mode: Mode) -> Answer<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..RACE_RETRIES {
        match openat2(dir.as_fd(), path, flags | OFlags::CLOEXEC, mode, resolve) {
            Err(HostErrno::AGAIN) => {}
            Err(HostErrno::XDEV) => return Err(Errno::Notcapable),
            opened => return Ok(opened?),
        }
    }
    Err(Errno::Again)
}

/// Real path of a descriptor.
fn real_path(fd: BorrowedFd<'_>) -> rustix::io::Result<Vec<u8>> {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(readlinkat(CWD, link, Vec::new())?.into_bytes())
}

impl Root {
    /// Opens a mount's folder.
    ///
    /// # Errors
    /// [`VmCode::Io`] if it is not a readable folder, or the kernel cannot confine paths.
    pub(crate) fn open(
        host: &Path,
        guest: String,
        read_only: bool,
        allow_git: bool,
    ) -> Result<Self, VmError> {
        let failed = |error: HostErrno| VmError::io(host, &error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(host, flags, Mode::empty()).map_err(failed)?;
        let works = beneath(&fd, b".", OFlags::PATH, Mode::empty());
        if works.err() == Some(Errno::Nosys) {
            let text = "mounts need a kernel with openat2, that is Linux 5.6 or later";
            return Err(VmError::new(VmCode::Io, text));
        }
        Ok(Self {
            guest,
            fd,
            read_only,
            allow_git,
        })
    }

    /// Opens its folder as a separate directory.
    pub(crate) fn directory(self: &Arc<Self>) -> Answer<Directory> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.fd, 3)?;
        let root = Arc::clone(self);
        Ok(Directory { fd, root })
    }

    /// Refuses a change at `parent`/`name` if `refused` holds for its place.
    fn check_place(
        &self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        refused: impl FnOnce(GitPlace) -> bool,
    ) -> Answer {
        if self.read_only {
            return Err(Errno::Rofs);
        }
        if self.allow_git {
            return Ok(());
        }
        let mut path = real_path(parent).map_err(|_| Errno::Acces)?;
        if !name.is_empty() {
            path.push(b'/');
            path.extend(name);
        }
        match refused(place_on_host(Path::new(OsStr::from_bytes(&path)))) {
            true => Err(Errno::Acces),
            false => Ok(()),
        }
    }

    /// Refuses a change of protected files.
    fn check(&self, parent: BorrowedFd<'_>, name: &[u8]) -> Answer {
        self.check_place(parent, name, |place| place == GitPlace::Protected)
    }

    /// Refuses a new entry that is a git directory, or would make its folder one. The
    /// caller holds the returned lock until the entry exists.
    fn check_new(&self, parent: BorrowedFd<'_>, name: &[u8]) -> Answer<Option<OwnedFd>> {
        let lock = match self.read_only || self.allow_git {
            true => None,
            false => lock_parts(parent, name)?,
        };
        self.check_place(parent, name, |place| {
            matches!(place, GitPlace::Protected | GitPlace::Dot) || completes(parent, name)
        })?;
        Ok(lock)
    }

    /// Does the same for moved or linked entries. Only files may move within a git
    /// directory, because a folder or symbolic link would carry protected files.
    fn check_move(&self, parent: BorrowedFd<'_>, name: &[u8], kind: FileType) -> Answer {
        self.check_place(parent, name, |place| match place {
            GitPlace::Protected | GitPlace::Dot => true,
            GitPlace::Inside => kind != FileType::RegularFile,
            GitPlace::Outside => false,
        })
    }
}

/// Opens the directory above a path's last component, and returns that component.
fn parent<'a>(dir: &Directory, path: &'a [u8]) -> Answer<(OwnedFd, &'a [u8])> {
    let end = path.iter().rposition(|&byte| byte != b'/');
    let path = &path[..end.map_or(0, |end| end + 1)];
    let (above, name) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&b"."[..], path),
    };
    if matches!(name, b"" | b"." | b"..") {
        return Err(Errno::Inval);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    Ok((beneath(&dir.fd, above, flags, Mode::empty())?, name))
}

fn kind_of(above: &OwnedFd, name: &[u8]) -> Answer<FileType> {
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

impl Directory {
    /// Implements `path_open`.
    pub(crate) fn open(&self, path: &[u8], how: How) -> Answer<Opened> {
        let wants_change = how.writes() || how.has(oflags::TRUNC);
        if self.root.read_only && wants_change {
            return Err(Errno::Rofs);
        }
        let creates = how.has(oflags::CREAT) && !self.root.read_only;
        let fd = match creates {
            true => self.create(path, how)?,
            false => match beneath(&self.fd, path, how.flags(), Mode::empty()) {
                Err(Errno::Noent) if how.has(oflags::CREAT) => return Err(Errno::Rofs),
                opened => opened?,
            },
        };
        let opened = match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
            FileType::RegularFile => Opened::File(fd),
            FileType::Directory => {
                let root = Arc::clone(&self.root);
                return Ok(Opened::Directory(Directory { fd, root }));
            }
            FileType::Symlink => return Err(Errno::Loop),
            _ => return Err(Errno::Acces),
        };
        if let (Opened::File(fd), true) = (&opened, wants_change) {
            self.root.check_place(fd.as_fd(), b"", |place| {
                matches!(place, GitPlace::Protected | GitPlace::Dot)
            })?;
            if how.has(oflags::TRUNC) {
                ftruncate(fd, 0)?;
            }
        }
        Ok(opened)
    }

    /// Opens a file, creating it if necessary, but never through a symbolic link.
    fn create(&self, path: &[u8], how: How) -> Answer<OwnedFd> {
        let (above, name) = parent(self, path)?;
        let _lock = self.root.check_new(above.as_fd(), name)?;
        let mut flags = how.flags() | OFlags::CREATE | OFlags::NOFOLLOW;
        if how.has(oflags::EXCL) {
            flags |= OFlags::EXCL;
        }
        let mode = Mode::from_raw_mode(0o666);
        match beneath(&above, name, flags, mode) {
            Err(Errno::Loop) if how.follow => beneath(&self.fd, path, how.flags(), Mode::empty()),
            opened => opened,
        }
    }

    /// Attributes of the file at a path, or of the link itself.
    pub(crate) fn stat(&self, path: &[u8], follow: bool) -> Answer<rustix::fs::Stat> {
        let mut flags = OFlags::PATH;
        if !follow {
            flags |= OFlags::NOFOLLOW;
        }
        Ok(fstat(beneath(&self.fd, path, flags, Mode::empty())?)?)
    }

    /// Sets times of the file at a path, or of the link itself.
    pub(crate) fn set_times(&self, path: &[u8], follow: bool, times: &Timestamps) -> Answer {
        if follow {
            let how = How {
                follow,
                rights: rights::FD_READ,
                ..How::default()
            };
            let opened = self.open(path, how)?;
            let fd = match &opened {
                Opened::File(fd) => fd,
                Opened::Directory(directory) => &directory.fd,
            };
            self.root.check(fd.as_fd(), b"")?;
            return Ok(futimens(fd, times)?);
        }
        let (above, name) = parent(self, path)?;
        self.root.check(above.as_fd(), name)?;
        Ok(utimensat(&above, name, times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Whether its mount is read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.root.read_only
    }

    /// Checks that its mount is writable.
    pub(crate) fn check_writable(&self) -> Answer {
        self.root.check(self.fd.as_fd(), b"")
    }

    pub(crate) fn make_directory(&self, path: &[u8]) -> Answer {
        let (above, name) = parent(self, path)?;
        let _lock = self.root.check_new(above.as_fd(), name)?;
        Ok(mkdirat(&above, name, Mode::from_raw_mode(0o777))?)
    }

    pub(crate) fn remove(&self, path: &[u8], directory: bool) -> Answer {
        let (above, name) = parent(self, path)?;
        self.root.check(above.as_fd(), name)?;
        let flags = match directory {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        Ok(unlinkat(&above, name, flags)?)
    }

    pub(crate) fn rename(&self, path: &[u8], to: &Directory, new: &[u8]) -> Answer {
        let (above, name, new_above, new) = self.pair(path, to, new)?;
        let kind = kind_of(&above, name)?;
        self.root.check_move(above.as_fd(), name, kind)?;
        self.root.check_move(new_above.as_fd(), new, kind)?;
        let _lock = self.root.check_new(new_above.as_fd(), new)?;
        Ok(renameat(&above, name, &new_above, new)?)
    }

    /// Creates a hard link; a link to a symbolic link links the link.
    pub(crate) fn link(&self, path: &[u8], to: &Directory, new: &[u8]) -> Answer {
        let (above, name, new_above, new) = self.pair(path, to, new)?;
        let kind = kind_of(&above, name)?;
        self.root.check(above.as_fd(), name)?;
        self.root.check_move(new_above.as_fd(), new, kind)?;
        let _lock = self.root.check_new(new_above.as_fd(), new)?;
        if kind == FileType::Directory {
            return Err(Errno::Perm);
        }
        Ok(linkat(&above, name, &new_above, new, AtFlags::empty())?)
    }

    fn pair<'a>(
        &self,
        path: &'a [u8],
        to: &Directory,
        new: &'a [u8],
    ) -> Answer<(OwnedFd, &'a [u8], OwnedFd, &'a [u8])> {
        if !Arc::ptr_eq(&self.root, &to.root) {
            return Err(Errno::Xdev);
        }
        let (above, name) = parent(self, path)?;
        let (new_above, new) = parent(to, new)?;
        Ok((above, name, new_above, new))
    }

    /// Creates a symbolic link with any target, which is checked when it is followed.
    pub(crate) fn symlink(&self, target: &[u8], path: &[u8]) -> Answer {
        let (above, name) = parent(self, path)?;
        // A link at `.git` would redirect later accesses.
        self.root
            .check_move(above.as_fd(), name, FileType::Symlink)?;
        let _lock = self.root.check_new(above.as_fd(), name)?;
        Ok(symlinkat(target, &above, name)?)
    }

    pub(crate) fn read_link(&self, path: &[u8]) -> Answer<Vec<u8>> {
        let (above, name) = parent(self, path)?;
        Ok(readlinkat(&above, name, Vec::new())?.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn root(host: &Path, read_only: bool) -> Directory {
        let root = Root::open(host, "/m".to_owned(), read_only, false).unwrap();
        Arc::new(root).directory().unwrap()
    }

    fn write() -> How {
        How {
            follow: true,
            oflags: oflags::CREAT,
            rights: rights::FD_READ | rights::FD_WRITE,
            fdflags: 0,
        }
    }

    fn read() -> How {
        How {
            oflags: 0,
            rights: rights::FD_READ,
            ..write()
        }
    }

    #[test]
    fn nothing_leads_out() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(outer.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", inner.join("absolute")).unwrap();
        std::os::unix::fs::symlink("..", inner.join("up")).unwrap();
        std::os::unix::fs::symlink("/proc/self/root", inner.join("magic")).unwrap();
        let dir = root(&inner, false);
        let paths: [&[u8]; 6] = [
            b"../secret",
            b"absolute",
            b"up/secret",
            b"magic/etc/passwd",
            b"x/../../secret",
            b"..",
        ];
        for path in paths {
            let text = String::from_utf8_lossy(path);
            assert!(dir.open(path, read()).is_err(), "{text}");
            assert!(dir.open(path, write()).is_err(), "{text}");
            assert!(
                dir.remove(path, false).is_err() || path == b"absolute",
                "{text}"
            );
        }
        assert!(dir.rename(b"up/secret", &dir, b"got").is_err());
        assert!(dir.link(b"../secret", &dir, b"got").is_err());
        assert!(dir.stat(b"up/secret", true).is_err());
        assert_eq!(fs::read(outer.path().join("secret")).unwrap(), b"s");
        // Links within the mount are followed.
        std::os::unix::fs::symlink("sub/file", inner.join("in")).unwrap();
        fs::create_dir(inner.join("sub")).unwrap();
        fs::write(inner.join("sub/file"), "f").unwrap();
        assert!(matches!(dir.open(b"in", read()), Ok(Opened::File(_))));
    }

    #[test]
    fn a_read_only_mount_is_not_changed() {
        let host = tempfile::tempdir().unwrap();
        fs::write(host.path().join("f"), "x").unwrap();
        let dir = root(host.path(), true);
        assert!(dir.open(b"f", read()).is_ok());
        let truncate = How {
            oflags: oflags::TRUNC,
            ..read()
        };
        assert_eq!(dir.open(b"f", truncate).err(), Some(Errno::Rofs));
        assert_eq!(dir.open(b"f", write()).err(), Some(Errno::Rofs));
        assert_eq!(dir.open(b"new", write()).err(), Some(Errno::Rofs));
        assert_eq!(dir.make_directory(b"d"), Err(Errno::Rofs));
        assert_eq!(dir.remove(b"f", false), Err(Errno::Rofs));
        assert_eq!(dir.rename(b"f", &dir, b"g"), Err(Errno::Rofs));
        assert_eq!(dir.link(b"f", &dir, b"g"), Err(Errno::Rofs));
        assert_eq!(dir.symlink(b"f", b"g"), Err(Errno::Rofs));
        assert_eq!(fs::read(host.path().join("f")).unwrap(), b"x");
    }

    #[test]
    fn what_git_runs_is_not_changed_under_any_name() {
        let host = tempfile::tempdir().unwrap();
        let at = |path: &str| host.path().join(path);
        fs::create_dir_all(at("repo/.git/hooks")).unwrap();
        fs::write(at("repo/.git/config"), "c").unwrap();
        std::os::unix::fs::symlink("repo/.git", at("link")).unwrap();
        let dir = root(host.path(), false);
        let refused = Some(Errno::Acces);
        assert_eq!(dir.open(b"repo/.git/config", write()).err(), refused);
        assert_eq!(dir.open(b"link/config", write()).err(), refused);
        assert_eq!(dir.open(b"link/hooks/pre-commit", write()).err(), refused);
        assert_eq!(dir.rename(b"repo/.git", &dir, b"x").err(), refused);
        assert_eq!(dir.rename(b"link/hooks", &dir, b"x").err(), refused);
        assert_eq!(dir.link(b"link/config", &dir, b"x").err(), refused);
        let Ok(Opened::Directory(git)) = dir.open(b"repo/.git", read()) else {
            panic!("a directory");
        };
        assert_eq!(git.open(b"config", write()).err(), refused);
        // The same as in the mounts of our own guest.
        fs::create_dir_all(at("repo/.git/modules/a")).unwrap();
        fs::write(at("repo/.git/commondir"), "c").unwrap();
        fs::write(at("repo/.git/modules/a/config"), "c").unwrap();
        fs::create_dir(at("folder")).unwrap();
        for path in ["commondir", "modules/a/config", "CONFIG. "] {
            let path = format!("repo/.git/{path}");
            let how = How {
                oflags: oflags::CREAT,
                ..write()
            };
            assert_eq!(dir.open(path.as_bytes(), how).err(), refused, "{path}");
        }
        assert_eq!(dir.rename(b"folder", &dir, b"repo/.git/x").err(), refused);
        assert_eq!(dir.symlink(b"x", b"repo/.git/x").err(), refused);
        assert!(dir.open(b"repo/.git/HEAD", write()).is_ok());
        assert!(dir.open(b"repo/.git/config", read()).is_ok());
        assert_eq!(fs::read(at("repo/.git/config")).unwrap(), b"c");
        let root = Root::open(host.path(), "/m".to_owned(), false, true).unwrap();
        let dir = Arc::new(root).directory().unwrap();
        assert!(dir.open(b"repo/.git/config", write()).is_ok());
    }

    #[test]
    fn a_fifo_neither_opens_nor_holds() {
        let host = tempfile::tempdir().unwrap();
        let fifo = host.path().join("fifo");
        rustix::fs::mkfifoat(CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
        let dir = root(host.path(), false);
        assert_eq!(dir.open(b"fifo", read()).err(), Some(Errno::Acces));
        assert_eq!(dir.open(b"fifo", write()).err(), Some(Errno::Acces));
    }

    #[test]
    fn an_existing_file_opens_for_writing_without_being_made() {
        let host = tempfile::tempdir().unwrap();
        fs::write(host.path().join("f"), "abc").unwrap();
        let dir = root(host.path(), false);
        let how = How {
            oflags: 0,
            ..write()
        };
        let Ok(Opened::File(fd)) = dir.open(b"f", how) else {
            panic!("a file");
        };
        rustix::io::write(&fd, b"X").unwrap();
        assert_eq!(fs::read(host.path().join("f")).unwrap(), b"Xbc");
    }
}
