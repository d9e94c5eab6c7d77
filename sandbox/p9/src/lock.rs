//! Range locks (`fcntl`), which also hold against programs of the host; [`super::flock`]
//! has those on whole files.
//!
//! The guest's kernel arbitrates between its processes before it asks. To the host the
//! guest is one owner: for each file with locks, one descriptor holds the union of all its
//! processes' locks, as open-file-description locks. Locks by fid would conflict with each
//! other: a process may hold locks through two fids of a file, and Linux requests a lock
//! before it releases the one that had to go first.
//!
//! A lock on a file that this user may not write is a shared one on the host, because an
//! exclusive one needs a file open for writing. A lock in a read-only mount stays in the
//! guest: otherwise it would keep programs of the host from their own files.

use super::Server;
use super::descriptors::CountedFd;
use super::fid::Fid;
use super::host::{Identity, Node};
use super::lock_table::{LockKind, LockTable, Range, Step};
use super::wire::{MAX_NAME_BYTES, Reader, Writer};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::HashMap;

/// Lock types in messages (`P9_LOCK_TYPE_*`).
mod lock_type {
    pub(super) const READ: u8 = 0;
    pub(super) const WRITE: u8 = 1;
    pub(super) const UNLOCK: u8 = 2;
}

/// Flags of `Tlock`.
mod flag {
    /// Marks a `flock` lock: only the image's kernel sets it, once
    /// [`super::super::EXTENDED_PROTOCOL`] is negotiated.
    pub(super) const FLOCK: u32 = 1 << 31;
}

/// Statuses of `Rlock` (`P9_LOCK_*`).
mod status {
    pub(super) const SUCCESS: u8 = 0;
    pub(super) const BLOCKED: u8 = 1;
}

/// Process number for a process outside this guest.
const STRANGER: u32 = u32::MAX;

/// Range locks of all files.
#[derive(Debug)]
pub(super) struct Locks {
    max: usize,
    count: usize,
    files: HashMap<(usize, Identity), FileLocks>,
}

/// Range locks of one file.
#[derive(Debug)]
pub(super) struct FileLocks {
    file: LockFile,
    table: LockTable,
}

/// A descriptor that holds locks, and the kinds that it supports.
#[derive(Debug)]
pub(super) struct LockFile {
    /// `None` for locks that stay in the guest.
    fd: Option<CountedFd>,
    shared: bool,
    exclusive: bool,
}

/// Key of a node's file in the lock tables.
pub(super) fn key(node: &Node) -> (usize, Identity) {
    (node.mount, node.id)
}

impl Locks {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            count: 0,
            files: HashMap::new(),
        }
    }

    /// Releases the locks taken through a fid.
    pub(crate) fn release_fid(&mut self, node: &Node, fid: u32) {
        if let Some(locks) = self.files.get(&key(node)) {
            let mut next = locks.table.clone();
            next.release_fid(fid);
            // Weakening locks always succeeds.
            let _ = self.change(node, next, Range::ALL, 0);
        }
    }

    /// Number of locks.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Makes the host hold the locks of `next` within `window` of a file; `others` is the
    /// number of all other locks.
    ///
    /// # Errors
    /// `EAGAIN` on a conflicting lock of another process, `ENOLCK` if there are too many;
    /// both leave the locks unchanged.
    fn change(
        &mut self,
        node: &Node,
        next: LockTable,
        window: Range,
        others: usize,
    ) -> Result<(), Errno> {
        let Some(locks) = self.files.get_mut(&key(node)) else {
            return Ok(());
        };
        let count = self.count - locks.table.locks.len() + next.locks.len();
        if count + others > self.max && count > self.count {
            return Err(Errno::NOLCK);
        }
        locks.file.apply(&locks.table.steps(&next, window))?;
        self.count = count;
        locks.table = next;
        if locks.table.locks.is_empty() {
            self.files.remove(&key(node));
        }
        Ok(())
    }

    /// Iterates over all locks of all files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = super::lock_table::RangeLock> {
        self.files
            .values()
            .flat_map(|file| file.table.locks.iter().copied())
    }
}

impl LockFile {
    /// Makes the changes on the host: first those that may be refused, then the rest.
    fn apply(&self, steps: &[Step]) -> Result<(), Errno> {
        let (stronger, weaker): (Vec<&Step>, Vec<&Step>) =
            steps.iter().partition(|step| step.to > step.from);
        for (number, step) in stronger.iter().enumerate() {
            if let Err(errno) = self.set(step.range, step.to) {
                for done in &stronger[..number] {
                    let _ = self.set(done.range, done.from);
                }
                return Err(errno);
            }
        }
        for step in weaker {
            self.set(step.range, step.to)?;
        }
        Ok(())
    }

    /// A lock in the form of the host's kernel.
    fn flock(&self, range: Range, lock: Option<LockKind>) -> libc::flock {
        let lock_type = match lock {
            None => libc::F_UNLCK,
            Some(LockKind::Shared) if self.shared => libc::F_RDLCK,
            Some(LockKind::Exclusive) if !self.exclusive => libc::F_RDLCK,
            Some(_) => libc::F_WRLCK,
        };
        libc::flock {
            l_type: lock_type as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: range.start as libc::off_t,
            l_len: range.length() as libc::off_t,
            l_pid: 0,
        }
    }

    fn set(&self, range: Range, lock: Option<LockKind>) -> Result<(), Errno> {
        let Some(fd) = &self.fd else {
            return Ok(());
        };
        let flock = self.flock(range, lock);
        match fcntl(fd, FcntlArg::F_OFD_SETLK(&flock)) {
            Ok(_) => Ok(()),
            Err(nix::errno::Errno::EACCES) => Err(Errno::AGAIN),
            // The file system has no locks: they hold only within the guest.
            Err(nix::errno::Errno::EOPNOTSUPP | nix::errno::Errno::ENOSYS) => Ok(()),
            Err(errno) => Err(Errno::from_raw_os_error(errno as i32)),
        }
    }

    /// A conflicting lock of another process.
    fn conflict(&self, range: Range, lock: LockKind) -> Result<Option<libc::flock>, Errno> {
        let Some(fd) = &self.fd else {
            return Ok(None);
        };
        let mut flock = self.flock(range, Some(lock));
        fcntl(fd, FcntlArg::F_OFD_GETLK(&mut flock))
            .map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        let free = i32::from(flock.l_type) == libc::F_UNLCK;
        Ok((!free).then_some(flock))
    }
}

/// Closing the descriptor alone would leave the locks to a process that another thread of
/// the host is about to start: until its `exec`, that process has a copy of every
/// descriptor.
impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = self.set(Range::ALL, None);
    }
}

/// Fields of `Tlock` and `Tgetlock` after type and flags.
struct Wanted<'a> {
    range: Range,
    process: u32,
    client: &'a [u8],
}

impl<'a> Wanted<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, Errno> {
        let (start, length, process) = (r.u64()?, r.u64()?, r.u32()?);
        let client = r.string()?;
        if client.len() > MAX_NAME_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        Ok(Self {
            range: Range::new(start, length).ok_or(Errno::INVAL)?,
            process,
            client,
        })
    }
}

fn lock_kind(lock_type: u8) -> Result<Option<LockKind>, Errno> {
    match lock_type {
        lock_type::READ => Ok(Some(LockKind::Shared)),
        lock_type::WRITE => Ok(Some(LockKind::Exclusive)),
        lock_type::UNLOCK => Ok(None),
        _ => Err(Errno::INVAL),
    }
}

impl Server {
    pub(super) fn lock(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, lock_type, flags) = (r.u32()?, r.u8()?, r.u32()?);
        let wanted = Wanted::read(r)?;
        let kind = lock_kind(lock_type)?;
        let whole = self.extended && flags & flag::FLOCK != 0;
        let done = match whole {
            true => self.set_flock(fid, kind),
            false => self.set_lock(fid, wanted.process, wanted.range, kind),
        };
        match done {
            Ok(()) => w.u8(status::SUCCESS),
            // Linux asks again after a while, if its program wants to wait.
            Err(Errno::AGAIN) => w.u8(status::BLOCKED),
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// Takes, changes or releases a lock of one of the guest's processes.
    pub(super) fn set_lock(
        &mut self,
        fid: u32,
        process: u32,
        range: Range,
        kind: Option<LockKind>,
    ) -> Result<(), Errno> {
        let file = self.file(fid)?;
        file.opened()?;
        let node = file.node.clone();
        let known = self.locks.files.get(&key(&node));
        let mut next = match (known, kind) {
            (Some(known), _) => known.table.clone(),
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let fresh = FileLocks {
                    file: self.lock_file(&node)?,
                    table: LockTable::default(),
                };
                self.locks.files.insert(key(&node), fresh);
                LockTable::default()
            }
        };
        next.set(process, range, kind.map(|kind| (kind, fid)));
        let changed = self.locks.change(&node, next, range, self.flocks.count());
        if changed.is_err() {
            // Drops the table of a file whose first lock failed.
            let unused = |locks: &FileLocks| locks.table.locks.is_empty();
            if self.locks.files.get(&key(&node)).is_some_and(unused) {
                self.locks.files.remove(&key(&node));
            }
        }
        changed
    }

    /// Opens a file for its locks, for both kinds if permitted.
    fn lock_file(&self, node: &Node) -> Result<LockFile, Errno> {
        let open = |flags, shared, exclusive| {
            self.host.reopen(node, flags).map(|fd| LockFile {
                fd: Some(fd),
                shared,
                exclusive,
            })
        };
        if self.check_writable(node).is_err() {
            return Ok(LockFile {
                fd: None,
                shared: true,
                exclusive: true,
            });
        }
        let writable = self.check_change(node).is_ok();
        if writable && let Ok(file) = open(OFlags::RDWR, true, true) {
            return Ok(file);
        }
        match open(OFlags::RDONLY, true, false) {
            Err(Errno::ACCESS) if writable => open(OFlags::WRONLY, false, true),
            opened => opened,
        }
    }

    pub(super) fn getlock(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, lock_type) = (r.u32()?, r.u8()?);
        let wanted = Wanted::read(r)?;
        // Linux always sends "unlock" here, because its own search for a conflict has
        // overwritten the program's request (`v9fs_file_getlock`): then any lock is
        // reported.
        let kind = lock_kind(lock_type)?.unwrap_or(LockKind::Exclusive);
        if matches!(self.fids.get(fid)?, Fid::Root) {
            return Err(Errno::BADF);
        }
        let file = self.file(fid)?;
        file.opened()?;
        let conflict = match self.locks.files.get(&key(&file.node)) {
            Some(locks) => locks.file.conflict(wanted.range, kind)?,
            None => self.lock_file(&file.node)?.conflict(wanted.range, kind)?,
        };
        match conflict {
            None => {
                w.u8(lock_type::UNLOCK);
                w.u64(wanted.range.start);
                w.u64(wanted.range.length());
                w.u32(wanted.process);
            }
            Some(found) => {
                let exclusive = i32::from(found.l_type) == libc::F_WRLCK;
                w.u8(if exclusive {
                    lock_type::WRITE
                } else {
                    lock_type::READ
                });
                w.u64(found.l_start as u64);
                w.u64(found.l_len as u64);
                w.u32(STRANGER);
            }
        }
        w.string(wanted.client);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptors::Descriptors;
    use std::fs::File;

    /// A process that is being started has a copy of the descriptor.
    #[test]
    fn locks_are_given_back_though_a_copy_of_their_descriptor_stays_open() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        let open = || File::options().read(true).write(true).open(path.path());
        let lock_file = |file: File| {
            let permit = Descriptors::default().take().expect("one more");
            LockFile {
                fd: Some(CountedFd::new(file.into(), permit)),
                shared: true,
                exclusive: true,
            }
        };
        let other = lock_file(open().expect("open"));
        let file = open().expect("open");
        let copy = file.try_clone().expect("a copy");
        let held = lock_file(file);
        let exclusive = Some(LockKind::Exclusive);
        assert_eq!(held.set(Range::ALL, exclusive), Ok(()));
        assert_eq!(other.set(Range::ALL, exclusive), Err(Errno::AGAIN));
        drop(held);
        assert_eq!(other.set(Range::ALL, exclusive), Ok(()));
        drop(copy);
    }
}
