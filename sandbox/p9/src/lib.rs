//! 9P2000.L server: serves all mounts of a guest from its host through one device.
//!
//! The guest mounts one root, which does not exist on the host: a read-only folder with an
//! entry for each mount ([`Server::entry_name`]). The agent in the guest binds the entries
//! to their mount points.
//!
//! [`Server::answer`] handles a request on the calling thread: the server has no threads
//! and waits only for the host's storage. A lock that another process holds is answered as
//! taken; the guest asks again.
//!
//! No request leads out of its mount or changes a read-only one, makes a device, FIFO,
//! socket or setuid program, touches attributes other than `user.*`, or writes files that
//! the host's git executes (see [`GitWrites`]; [`Server::git_refusals`] keeps the first
//! attempt). Malformed bytes get an error. Access is not checked per user: all users of the
//! guest act as the user of this process, who is the guest's ordinary user.
//!
//! The supported client is Linux's (`fs/9p`, with `cache=mmap`). The messages are those of
//! its `include/net/9p/9p.h`, and one more of the image's kernel (negotiated by
//! `Tversion`). Error numbers, flags and modes are those of the generic Linux ABI, which
//! RISC-V, x86-64 and arm64 share.

#![warn(unreachable_pub)]

mod attributes;
mod budget;
mod create;
mod data;
mod descriptors;
mod directory;
mod fid;
mod flock;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod git;
mod git_config;
mod host;
mod lock;
mod lock_table;
mod mount;
mod own;
mod rename;
mod restore;
mod walk;
mod wire;
mod xattr;

pub use a99_sandbox_abi::P9_MESSAGE_BYTES;
pub use budget::{Budget, Spent};
pub use fid::MAX_XATTR_BYTES;
pub use git::{GitPlace, GitWrites, completes, lock_parts, place_on_host};
pub use host::Identity;
pub use mount::{MAX_MOUNTS, Mount, MountCode, MountError, MountMode};
pub use own::{check_mounts, runtime_folder};
pub use restore::{SavedFid, SavedFlock, SavedKind, SavedLock, ServerState};

use fid::{Fid, Fids, File};
use flock::Flocks;
use host::{Host, Node};
use lock::Locks;
use mount::OpenMount;
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::collections::HashSet;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use wire::{HEADER_BYTES, NO_TAG, Qid, Reader, Writer, message};

/// Minimum message size that can be negotiated: the target of a symbolic link and a walk of
/// most names fit.
pub const MIN_MESSAGE_BYTES: usize = 8 << 10;

/// Protocol name in `Tversion`.
const PROTOCOL: &[u8] = b"9P2000.L";

/// Protocol name with our additional requests, which the image's kernel asks for
/// ([`message::WALKATTR`]).
const EXTENDED_PROTOCOL: &[u8] = b"9P2000.L.agent99";

/// Limits of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum fids; each holds up to one descriptor of this process. Linux has one for
    /// each file and folder that is open or a current folder, and some for those that it
    /// looks up. Beyond it the guest sees `EMFILE`.
    pub max_fids: usize,
    /// Maximum open files and folders; each holds one descriptor more. Beyond it the guest
    /// sees `EMFILE`.
    pub max_open: usize,
    /// Maximum locked ranges and locked whole files. Beyond it the guest sees `ENOLCK`.
    pub max_locks: usize,
}

impl Default for Options {
    /// Several times the needs of a build of a large project.
    fn default() -> Self {
        Self {
            max_fids: 8192,
            max_open: 4096,
            max_locks: 4096,
        }
    }
}

/// A 9P2000.L server for one guest.
#[derive(Debug)]
pub struct Server {
    host: Host,
    mounts: Vec<OpenMount>,
    options: Options,
    fids: Fids,
    locks: Locks,
    flocks: Flocks,
    /// Negotiated message size.
    msize: usize,
    /// Whether [`EXTENDED_PROTOCOL`] was negotiated.
    extended: bool,
    owner: Owner,
    /// Buffer of folder entries as the host's kernel writes them.
    entries: Vec<u8>,
    git_refused: Arc<OnceLock<PathBuf>>,
    /// Unlinked files that fids still hold: their space is not free yet.
    nameless: HashSet<(usize, Identity)>,
}

/// The user of this process, who is the guest's ordinary user.
#[derive(Clone, Copy, Debug)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Server {
    /// Creates a server for these mounts; the first is entry `0` of the root.
    ///
    /// # Errors
    /// [`MountError`] if a mount cannot be shared, or no file can.
    pub fn new(mounts: Vec<Mount>, options: Options) -> Result<Self, MountError> {
        if mounts.len() > MAX_MOUNTS {
            return Err(MountError {
                code: MountCode::TooMany,
                path: mounts[MAX_MOUNTS].host.clone(),
                errno: None,
            });
        }
        let host = Host::open()?;
        let mounts = mounts.into_iter().enumerate();
        let mounts = mounts
            .map(|(number, mount)| OpenMount::open(&host, number, mount))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            host,
            mounts,
            options,
            fids: Fids::new(options),
            locks: Locks::new(options.max_locks),
            flocks: Flocks::default(),
            msize: P9_MESSAGE_BYTES,
            extended: false,
            owner: Owner {
                uid: geteuid().as_raw(),
                gid: getegid().as_raw(),
            },
            entries: Vec::new(),
            git_refused: Arc::default(),
            nameless: HashSet::new(),
        })
    }

    /// Name of mount `number` in the served root.
    pub fn entry_name(number: usize) -> String {
        number.to_string()
    }

    /// Iterates over the mounts with their entry names.
    pub fn mounts(&self) -> impl Iterator<Item = (String, &Mount)> {
        let mounts = self.mounts.iter().enumerate();
        mounts.map(|(number, open)| (Self::entry_name(number), &open.mount))
    }

    /// Answers one request. For any input, `reply` then holds exactly one response of at
    /// most [`P9_MESSAGE_BYTES`].
    pub fn answer(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        let mut writer = Writer::new(reply);
        let mut header = Reader::new(request);
        let (Ok(size), Ok(kind), Ok(tag)) = (header.u32(), header.u8(), header.u16()) else {
            return writer.fail(Errno::PROTO, NO_TAG);
        };
        if size as usize != request.len() || request.len() > P9_MESSAGE_BYTES {
            return writer.fail(Errno::PROTO, tag);
        }
        let mut reader = Reader::new(&request[HEADER_BYTES..]);
        match self.serve(kind, &mut reader, &mut writer) {
            Ok(()) => writer.finish(kind + 1, tag),
            Err(errno) => writer.fail(errno, tag),
        }
    }

    fn serve(&mut self, kind: u8, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        match kind {
            message::VERSION => self.version(r, w),
            message::ATTACH => self.attach(r, w),
            // All earlier requests are answered already.
            message::FLUSH => Ok(()),
            message::WALK => self.walk(r, w),
            message::WALKATTR if self.extended => self.walkattr(r, w),
            message::CLUNK => self.clunk(r),
            message::REMOVE => self.remove(r),
            message::LOPEN => self.lopen(r, w),
            message::LCREATE => self.lcreate(r, w),
            message::READ => self.read(r, w),
            message::WRITE => self.write(r, w),
            message::FSYNC => self.fsync(r),
            message::READDIR => self.readdir(r, w),
            message::READLINK => self.readlink(r, w),
            message::GETATTR => self.getattr(r, w),
            message::SETATTR => self.setattr(r),
            message::STATFS => self.statfs(r, w),
            message::MKDIR => self.mkdir(r, w),
            message::SYMLINK => self.symlink(r, w),
            message::MKNOD => self.mknod(r, w),
            message::LINK => self.link(r),
            message::RENAME => self.rename(r),
            message::RENAMEAT => self.renameat(r),
            message::UNLINKAT => self.unlinkat(r),
            message::LOCK => self.lock(r, w),
            message::GETLOCK => self.getlock(r, w),
            message::XATTRWALK => self.xattrwalk(r, w),
            message::XATTRCREATE => self.xattrcreate(r),
            // No authentication: only the guest can use the channel.
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// `Tversion` resets the session: all open fids are closed.
    fn version(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let offered = r.u32()? as usize;
        let asked = r.string()?;
        if offered < MIN_MESSAGE_BYTES {
            return Err(Errno::MSGSIZE);
        }
        self.msize = offered.min(P9_MESSAGE_BYTES);
        self.fids = Fids::new(self.options);
        self.locks = Locks::new(self.options.max_locks);
        self.flocks = Flocks::default();
        w.u32(self.msize as u32);
        self.extended = asked == EXTENDED_PROTOCOL;
        let known = self.extended || asked == PROTOCOL;
        w.string(if known { asked } else { b"unknown" });
        Ok(())
    }

    fn attach(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, _auth) = (r.u32()?, r.u32()?);
        let (_user, name) = (r.string()?, r.string()?);
        if !name.is_empty() {
            return Err(Errno::NOENT);
        }
        self.fids.insert(fid, Fid::Root)?;
        w.qid(ROOT_QID);
        Ok(())
    }

    fn clunk(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let fid = r.u32()?;
        self.drop_fid(fid)
    }

    /// Clunks a fid: closes its file, releases its locks, and stores the attribute that was
    /// written to it.
    fn drop_fid(&mut self, fid: u32) -> Result<(), Errno> {
        let dropped = self.fids.remove(fid)?;
        if let Fid::File(file) = &dropped {
            self.release_locks(&file.node, fid);
            self.settle_nameless(&file.node);
        }
        self.store_xattr(dropped)
    }

    /// Returns the file of a fid in a mount.
    ///
    /// # Errors
    /// `EROFS` for the root of all mounts, which is read-only.
    fn file(&self, fid: u32) -> Result<&File, Errno> {
        match self.fids.get(fid)? {
            Fid::File(file) => Ok(file),
            Fid::Root => Err(Errno::ROFS),
            Fid::Stale => Err(Errno::STALE),
            Fid::XattrRead(_) | Fid::XattrWrite(_) => Err(Errno::BADF),
        }
    }

    /// Returns the folder of a fid whose entries the guest may change.
    fn writable_dir(&self, fid: u32) -> Result<&Node, Errno> {
        let node = &self.file(fid)?.node;
        if node.kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        self.check_writable(node)?;
        Ok(node)
    }

    /// Use of the mount's budget.
    fn spent(&self, node: &Node) -> &Spent {
        &self.mounts[node.mount].spent
    }

    /// Accounts for a removed name of a file.
    fn name_removed(&mut self, node: &Node, name: &[u8]) {
        let stat = node.stat().ok().filter(|stat| match node.kind {
            FileType::Directory => true,
            _ => stat.st_nlink == 0,
        });
        let target = match &stat {
            Some(stat) if node.kind == FileType::Symlink => stat.st_size as usize,
            _ => 0,
        };
        let spent = self.spent(node);
        spent.removed(name, target);
        match (node.kind, stat) {
            (FileType::RegularFile, Some(_)) => {
                self.nameless.insert((node.mount, node.id));
                self.settle_nameless(node);
            }
            (_, Some(stat)) => {
                spent.freed(&stat);
                spent.attributes_freed(self.attribute_bytes(node));
            }
            (_, None) => {}
        }
    }

    /// Refunds an unlinked file once no fid holds it.
    fn settle_nameless(&mut self, node: &Node) {
        if self.nameless.is_empty() || !self.nameless.contains(&(node.mount, node.id)) {
            return;
        }
        let holds = |fid: &Fid| matches!(fid, Fid::File(file) if file.node.is(node));
        if self.fids.iter().any(|(_, fid)| holds(fid)) {
            return;
        }
        self.nameless.remove(&(node.mount, node.id));
        if let Ok(stat) = node.stat() {
            let spent = self.spent(node);
            spent.freed(&stat);
            spent.attributes_freed(self.attribute_bytes(node));
        }
    }

    fn check_writable(&self, node: &Node) -> Result<(), Errno> {
        if self.mounts[node.mount].writable() {
            Ok(())
        } else {
            Err(Errno::ROFS)
        }
    }

    /// Classifies the entry `name` of `dir` within a git directory; [`GitPlace::Outside`]
    /// if the mount allows writing it.
    fn git_place(&self, dir: &Node, name: &[u8]) -> Result<GitPlace, Errno> {
        use std::os::unix::ffi::OsStrExt;
        let folder = self.host.path(dir)?;
        self.judge(dir, &folder.join(std::ffi::OsStr::from_bytes(name)))
    }

    fn judge(&self, node: &Node, path: &Path) -> Result<GitPlace, Errno> {
        let place = place_on_host(path);
        if place == GitPlace::Outside || self.git_allowed(node, path)? {
            return Ok(GitPlace::Outside);
        }
        Ok(place)
    }

    /// Whether the mount allows writing a protected path.
    fn git_allowed(&self, node: &Node, path: &Path) -> Result<bool, Errno> {
        let mount = &self.mounts[node.mount];
        match mount.mount.git {
            GitWrites::Refused => Ok(false),
            _ => Ok(mount.mount.git.allows(mount.relative(&self.host, path)?)),
        }
    }

    /// Whether an entry of that name is refused because it would make `dir` a git
    /// directory.
    fn completes_git(&self, dir: &Node, name: &[u8]) -> Result<bool, Errno> {
        use std::os::unix::ffi::OsStrExt;
        if !completes(dir.as_fd(), name) {
            return Ok(false);
        }
        let path = self.host.path(dir)?.join(std::ffi::OsStr::from_bytes(name));
        Ok(!self.git_allowed(dir, &path)?)
    }

    /// Records a refused write to git's files, with its path in the guest.
    fn refuse_git(&self, dir: &Node, name: &[u8]) -> Errno {
        use std::os::unix::ffi::OsStrExt;
        let mount = &self.mounts[dir.mount];
        let path = self.host.path(dir);
        let below = path.and_then(|path| Ok(mount.relative(&self.host, &path)?.to_owned()));
        let below = below.unwrap_or_default();
        let name = std::ffi::OsStr::from_bytes(name);
        // The first refusal is enough for a hint to the user.
        let _ = self
            .git_refused
            .set(mount.mount.guest.join(below).join(name));
        Errno::PERM
    }

    /// Cell with the path of the first refused change of git's settings, for a hint to the
    /// user about how to allow it.
    pub fn git_refusals(&self) -> Arc<OnceLock<PathBuf>> {
        Arc::clone(&self.git_refused)
    }

    /// Checks that the guest may change this file.
    ///
    /// # Errors
    /// `EROFS`; `EPERM` for files that the host's git would run.
    fn check_change(&self, node: &Node) -> Result<(), Errno> {
        self.check_writable(node)?;
        let place = match self.host.path(node) {
            Ok(path) => self.judge(node, &path)?,
            // Git cannot reach an unlinked file.
            Err(Errno::NOENT) => GitPlace::Outside,
            Err(errno) => return Err(errno),
        };
        match place {
            GitPlace::Protected => Err(self.refuse_git(node, b"")),
            GitPlace::Dot if node.kind != FileType::Directory => Err(self.refuse_git(node, b"")),
            _ => Ok(()),
        }
    }
}

/// Qid of the root of all mounts. It equals no file's but by chance.
const ROOT_QID: Qid = Qid {
    kind: Qid::DIR,
    version: 1,
    path: 1,
};
