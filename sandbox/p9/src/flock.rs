//! Whole-file locks (`flock`), which belong to the open file: independent of range locks
//! ([`super::lock`]), here as on the host.
//!
//! Only the image's kernel requests them (a flag of `Tlock`); other clients request a range
//! lock instead. The guest's kernel arbitrates between its open files before it asks. To
//! the host the guest is one owner: for each file with locks, one descriptor holds a
//! `flock` lock as strong as the strongest of the guest's.
//!
//! A lock on a file that the guest may not change is a shared one on the host, and one in a
//! read-only mount stays in the guest, as for ranges.

use super::Server;
use super::descriptors::CountedFd;
use super::host::{Identity, Node};
use super::lock::key;
use super::lock_table::LockKind;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::collections::HashMap;

/// Whole-file locks of all files.
#[derive(Debug, Default)]
pub(super) struct Flocks {
    count: usize,
    files: HashMap<(usize, Identity), FileFlocks>,
}

/// Holders of one file's lock, and the descriptor that holds it for all.
#[derive(Debug)]
struct FileFlocks {
    /// `None` for locks that stay in the guest.
    fd: Option<CountedFd>,
    /// Whether the host may be asked for an exclusive lock.
    exclusive: bool,
    /// Lock kinds by fid.
    holders: HashMap<u32, LockKind>,
    /// The lock that the host holds for this guest.
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
            // The file system has no locks: they hold only within the guest.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.host = wanted;
                Ok(())
            }
            Err(errno) => {
                // The previous lock is lost as well: `flock` releases a lock to change it.
                self.host = None;
                Err(errno)
            }
        }
    }
}

/// Releases the lock explicitly, for the reason at [`super::lock`]'s descriptors.
impl Drop for FileFlocks {
    fn drop(&mut self) {
        if let Some(fd) = &self.fd {
            let _ = flock(fd, FlockOperation::NonBlockingUnlock);
        }
    }
}

impl Flocks {
    /// Number of locks.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Releases the lock taken through a fid.
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
            // Also releases the lock of its descriptor.
            self.files.remove(&key);
        } else {
            // Weakening a lock always succeeds.
            let _ = file.apply();
        }
    }

    /// Iterates over all locks as fid and kind.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, LockKind)> {
        let holders = self.files.values().flat_map(|file| &file.holders);
        holders.map(|(fid, kind)| (*fid, *kind))
    }
}

impl Server {
    /// Takes, changes or releases the lock of an open file.
    ///
    /// # Errors
    /// `EAGAIN` if a program of the host holds a conflicting lock: the fid then has no lock
    /// any more, as with `flock`. `ENOLCK` if there are too many.
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

    /// Releases all locks taken through a fid.
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

    /// The same holds for range locks.
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
