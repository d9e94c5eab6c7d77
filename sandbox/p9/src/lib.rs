//! 9P2000.L server: the files that a guest shares with its host, all of its mounts
//! behind one device.
//!
//! The guest mounts one root, which does not exist on the host: a read-only
//! folder with an entry for each mount ([`Server::entry_name`]), which the
//! agent in the guest binds to where it belongs.
//!
//! [`Server::answer`] takes a request and writes the answer, on the thread that
//! calls it: it has no threads and waits for nothing but the host's storage. A
//! lock that somebody else holds is answered as taken; the guest asks again.
//!
//! No request leads out of its mount or changes one that is read-only, makes a
//! device, FIFO, socket or setuid program, touches attributes other than
//! `user.*`, or writes what the host's git runs (see [`GitWrites`];
//! [`Server::git_refusals`] keeps the first attempt). Bytes that are no message
//! get an error. What is not done: access by user. All users of
//! the guest act as the user of this process, who is the guest's ordinary user.
//!
//! Linux's client is the one that is served (`fs/9p`, with `cache=mmap`); the
//! messages are those of its `include/net/9p/9p.h`, and one that the image's
//! kernel has besides (`Tversion` agrees on it). Its numbers of errors,
//! flags and modes are those of the generic Linux ABI, which RISC-V, x86-64 and
//! arm64 share.

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

/// Shortest agreeable limit of messages: the target of a symbolic link and a
/// walk of most names fit.
pub const MIN_MESSAGE_BYTES: usize = 8 << 10;

/// The protocol, as `Tversion` names it.
const PROTOCOL: &[u8] = b"9P2000.L";

/// The same with the requests of ours that the image's kernel asks for
/// ([`message::WALKATTR`]).
const EXTENDED_PROTOCOL: &[u8] = b"9P2000.L.agent99";

/// Limits of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most fids at once; each holds up to one descriptor of this process.
    /// Linux has one for each file and folder that is open or somebody's
    /// current folder, and some for those that it looks at. More: `EMFILE`.
    pub max_fids: usize,
    /// Most files and folders open at once; each holds one descriptor more.
    /// More: `EMFILE`.
    pub max_open: usize,
    /// Most ranges of files and whole files locked at once. More: `ENOLCK`.
    pub max_locks: usize,
}

impl Default for Options {
    /// What a build of a large project needs several times over.
    fn default() -> Self {
        Self {
            max_fids: 8192,
            max_open: 4096,
            max_locks: 4096,
        }
    }
}

/// Answers the requests of one guest.
#[derive(Debug)]
pub struct Server {
    host: Host,
    mounts: Vec<OpenMount>,
    options: Options,
    fids: Fids,
    locks: Locks,
    flocks: Flocks,
    /// Longest message, as agreed.
    msize: usize,
    /// Whether [`EXTENDED_PROTOCOL`] was agreed.
    extended: bool,
    owner: Owner,
    /// Entries of a folder as the host's kernel writes them.
    entries: Vec<u8>,
    git_refused: Arc<OnceLock<PathBuf>>,
    /// Files without a name that fids still hold: their room is not free yet.
    nameless: HashSet<(usize, Identity)>,
}

/// Who this process is, and therefore the guest's root.
#[derive(Clone, Copy, Debug)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Server {
    /// A server for these mounts; the first is entry `0` of the root.
    ///
    /// # Errors
    /// [`MountError`] if a mount cannot be shared, or nothing can.
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

    /// The name of mount `number` in the root that is served.
    pub fn entry_name(number: usize) -> String {
        number.to_string()
    }

    /// Each mount with the name of its entry.
    pub fn mounts(&self) -> impl Iterator<Item = (String, &Mount)> {
        let mounts = self.mounts.iter().enumerate();
        mounts.map(|(number, open)| (Self::entry_name(number), &open.mount))
    }

    /// Answers one request. Whatever the bytes are, `reply` then holds exactly
    /// one answer of at most [`P9_MESSAGE_BYTES`].
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
            // All requests before it are answered already.
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
            // Nobody has to say who they are: the channel is the guest's own.
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// `Tversion` begins anew: all that was open is closed.
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

    /// Forgets a fid: closes its file, gives its locks back, stores the
    /// attribute that was written to it.
    fn drop_fid(&mut self, fid: u32) -> Result<(), Errno> {
        let dropped = self.fids.remove(fid)?;
        if let Fid::File(file) = &dropped {
            self.release_locks(&file.node, fid);
            self.settle_nameless(&file.node);
        }
        self.store_xattr(dropped)
    }

    /// The file of a fid in a mount.
    ///
    /// # Errors
    /// `EROFS` for the root of all mounts, which nobody changes.
    fn file(&self, fid: u32) -> Result<&File, Errno> {
        match self.fids.get(fid)? {
            Fid::File(file) => Ok(file),
            Fid::Root => Err(Errno::ROFS),
            Fid::Stale => Err(Errno::STALE),
            Fid::XattrRead(_) | Fid::XattrWrite(_) => Err(Errno::BADF),
        }
    }

    /// The folder of a fid, in which the guest may change entries.
    fn writable_dir(&self, fid: u32) -> Result<&Node, Errno> {
        let node = &self.file(fid)?.node;
        if node.kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        self.check_writable(node)?;
        Ok(node)
    }

    /// What the guest has spent of a mount's budget.
    fn spent(&self, node: &Node) -> &Spent {
        &self.mounts[node.mount].spent
    }

    /// A name of this file was removed.
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

    /// Gives back what a file without a name took, if no fid holds it any more.
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

    /// Where the entry `name` of `dir` lies in a git directory; outside of any
    /// if the mount allows to write it.
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

    /// Whether the mount allows to write what is protected at a path.
    fn git_allowed(&self, node: &Node, path: &Path) -> Result<bool, Errno> {
        let mount = &self.mounts[node.mount];
        match mount.mount.git {
            GitWrites::Refused => Ok(false),
            _ => Ok(mount.mount.git.allows(mount.relative(&self.host, path)?)),
        }
    }

    /// Whether an entry of that name may not be made, because it would make a
    /// git directory of `dir`.
    fn completes_git(&self, dir: &Node, name: &[u8]) -> Result<bool, Errno> {
        use std::os::unix::ffi::OsStrExt;
        if !completes(dir.as_fd(), name) {
            return Ok(false);
        }
        let path = self.host.path(dir)?.join(std::ffi::OsStr::from_bytes(name));
        Ok(!self.git_allowed(dir, &path)?)
    }

    /// Notes that something of git's was refused, and where the guest has it.
    fn refuse_git(&self, dir: &Node, name: &[u8]) -> Errno {
        use std::os::unix::ffi::OsStrExt;
        let mount = &self.mounts[dir.mount];
        let path = self.host.path(dir);
        let below = path.and_then(|path| Ok(mount.relative(&self.host, &path)?.to_owned()));
        let below = below.unwrap_or_default();
        let name = std::ffi::OsStr::from_bytes(name);
        // The first one is enough to tell.
        let _ = self
            .git_refused
            .set(mount.mount.guest.join(below).join(name));
        Errno::PERM
    }

    /// Where the first refused change of git's settings was tried, for those who
    /// can tell its user what allows it.
    pub fn git_refusals(&self) -> Arc<OnceLock<PathBuf>> {
        Arc::clone(&self.git_refused)
    }

    /// Whether the guest may change this file.
    ///
    /// # Errors
    /// `EROFS`; `EPERM` for what the host's git would run.
    fn check_change(&self, node: &Node) -> Result<(), Errno> {
        self.check_writable(node)?;
        let place = match self.host.path(node) {
            Ok(path) => self.judge(node, &path)?,
            // Without a name it is nothing to git.
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

/// The root of all mounts. Its number is that of no file but by chance.
const ROOT_QID: Qid = Qid {
    kind: Qid::DIR,
    version: 1,
    path: 1,
};
