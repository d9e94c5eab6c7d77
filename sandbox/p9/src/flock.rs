//! Whole-file locks (`flock`), which belong to the open file: independent of
//! locks on ranges ([`super::lock`]), here as at the host.
//!
//! Only the image's kernel asks for them (a flag of `Tlock`); another client
//! asks for the lock of a range instead. Which of the guest's open files may
//! have a lock is decided by the guest's kernel before it asks. To the host the
//! guest is one: for each file with locks one descriptor holds, as a lock of
//! `flock`, the strongest that any of them holds.
//!
//! A lock on a file that the guest may not change is a shared one at the host,
//! and one in a mount that is read-only stays in the guest, as for ranges.

use super::Server;
use super::descriptors::CountedFd;
use super::host::{Identity, Node};
use super::lock::key;
use super::lock_table::LockKind;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::collections::HashMap;

/// The locks of all files.
#[derive(Debug, Default)]
pub(super) struct Flocks {
    count: usize,
    files: HashMap<(usize, Identity), FileFlocks>,
}

/// Who holds a lock of one file, and the descriptor that holds it for all.
#[derive(Debug)]
struct FileFlocks {
    /// None for locks that stay in the guest.
    fd: Option<CountedFd>,
    /// Whether the host may be asked for an exclusive lock.
    exclusive: bool,
    /// By fid.
    holders: HashMap<u32, LockKind>,
    /// What the host holds for us.
    host: Option<LockKind>,
}

impl FileFlocks {
    /// Makes the host hold the strongest of the guest's locks.
    fn apply(&mut self) -> Result<(), Errno> {
        let strongest = self.holders.values().max().copied();
        let wanted = match strongest {
            Some(_) if !self.exclusive => Some(LockKind::Shared),
            strongest => strongest,
        };
        let Some(fd) = self.fd.as_ref().filter(|_| self.host != wanted) else {
            return Ok(());
        };
        let operation = match wanted {
            None => FlockOperation::NonBlockingUnlock,
            Some(LockKind::Shared) => FlockOperation::NonBlockingLockShared,
            Some(LockKind::Exclusive) => FlockOperation::NonBlockingLockExclusive,
        };
        match flock(fd, operation) {
            // A file system without locks: they hold in the guest only.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.host = wanted;
                Ok(())
            }
            Err(errno) => {
                // The lock before is gone as well: `flock` changes a lock by
                // giving it back first.
                self.host = None;
                Err(errno)
            }
        }
    }
}

/// Given back, not only closed, for the reason that [`super::lock`]'s descriptors
/// give.
impl Drop for FileFlocks {
    fn drop(&mut self) {
        if let Some(fd) = &self.fd {
            let _ = flock(fd, FlockOperation::NonBlockingUnlock);
        }
    }
}

impl Flocks {
    /// How many locks there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Gives back what was locked through a fid.
    pub(crate) fn release_fid(&mut self, node: &Node, fid: u32) {
        let key = key(node);
        let Some(file) = self.files.get_mut(&key) else {
            return;
        };
        if file.holders.remove(&fid).is_none() {
            return;
        }
        self.count -= 1;
        if file.holders.is_empty() {
            // Which gives the lock of its descriptor back.
            self.files.remove(&key);
        } else {
            // A weaker lock is always to be had.
            let _ = file.apply();
        }
    }

    /// All locks: fid and kind.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, LockKind)> {
        let holders = self.files.values().flat_map(|file| &file.holders);
        holders.map(|(fid, kind)| (*fid, *kind))
    }
}

impl Server {
    /// Takes, changes or gives back the lock of an open file.
    ///
    /// # Errors
    /// `EAGAIN` if a program of the host is in the way: then the fid has no lock
    /// any more, as `flock` has it. `ENOLCK` if there are too many.
    pub(super) fn set_flock(&mut self, fid: u32, kind: Option<LockKind>) -> Result<(), Errno> {
        let file = self.file(fid)?;
        file.opened()?;
        let node = file.node.clone();
        let Some(kind) = kind else {
            self.flocks.release_fid(&node, fid);
            return Ok(());
        };
        let key = key(&node);
        let held = self.flocks.files.get(&key);
        let new = held.is_none_or(|file| !file.holders.contains_key(&fid));
        if new && self.flocks.count + self.locks.count() >= self.options.max_locks {
            return Err(Errno::NOLCK);
        }
        if held.is_none() {
            let opened = self.flock_file(&node)?;
            self.flocks.files.insert(key, opened);
        }
        let Some(file) = self.flocks.files.get_mut(&key) else {
            return Err(Errno::NOLCK);
        };
        file.holders.insert(fid, kind);
        self.flocks.count += usize::from(new);
        let taken = file.apply();
        if taken.is_err() {
            self.flocks.release_fid(&node, fid);
        }
        taken
    }

    /// Gives back all that was locked through a fid.
    pub(super) fn release_locks(&mut self, node: &Node, fid: u32) {
        self.locks.release_fid(node, fid);
        self.flocks.release_fid(node, fid);
    }

    /// Opens a file for its locks.
    fn flock_file(&self, node: &Node) -> Result<FileFlocks, Errno> {
        let fd = match self.check_writable(node) {
            Err(_) => None,
            Ok(()) => Some(match self.host.reopen(node, OFlags::RDONLY) {
                Err(Errno::ACCESS) => self.host.reopen(node, OFlags::WRONLY)?,
                opened => opened?,
            }),
        };
        Ok(FileFlocks {
            exclusive: self.check_change(node).is_ok(),
            fd,
            holders: HashMap::new(),
            host: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptors::Descriptors;
    use std::fs::File;

    /// As for locks of ranges.
    #[test]
    fn a_lock_is_given_back_though_a_copy_of_its_descriptor_stays_open() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        let open = || File::options().read(true).write(true).open(path.path());
        let file = open().expect("open");
        let copy = file.try_clone().expect("a copy");
        let permit = Descriptors::default().take().expect("one more");
        let mut held = FileFlocks {
            fd: Some(CountedFd::new(file.into(), permit)),
            exclusive: true,
            holders: HashMap::from([(1, LockKind::Exclusive)]),
            host: None,
        };
        assert_eq!(held.apply(), Ok(()));
        let other = open().expect("open");
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        assert_eq!(flock(&other, exclusive), Err(Errno::AGAIN));
        drop(held);
        assert_eq!(flock(&other, exclusive), Ok(()));
        drop(copy);
    }
}
