//! Snapshot and restore of a server.
//!
//! A restored server finds a file by its path in the mount, and accepts it only if it is
//! the same file. Files that are not found answer `ESTALE` from then on, so that the guest
//! neither reads nor writes another file. Unlinked files and attributes that were being
//! read or written are never found.

use super::data::flag;
use super::fid::{Fid, File};
use super::host::Identity;
use super::lock_table::{LockKind, Range};
use super::{Mount, MountError, Options, P9_MESSAGE_BYTES, Server};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Serialisable state of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerState {
    /// Message size negotiated with the guest.
    pub message_bytes: u32,
    /// Whether the image kernel's additional requests were negotiated.
    #[serde(default)]
    pub extended: bool,
    /// Fids of the guest, by number.
    pub fids: Vec<SavedFid>,
    /// Range locks of the guest's processes.
    pub locks: Vec<SavedLock>,
    /// Whole-file locks of the guest's open files.
    #[serde(default)]
    pub flocks: Vec<SavedFlock>,
}

/// A saved fid and its referent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFid {
    /// Number of the fid.
    pub fid: u32,
    /// Referent of the fid.
    pub kind: SavedKind,
}

/// Referent of a saved fid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SavedKind {
    /// The root of all mounts.
    Root,
    /// A file of a mount.
    File {
        /// Mount point in the guest.
        mount: Vec<u8>,
        /// Path in the mount, as bytes.
        path: Vec<u8>,
        /// Identity of the file.
        identity: Identity,
        /// Open flags of the guest, if the fid is open.
        open: Option<u32>,
    },
    /// A file that cannot be found again.
    Stale,
}

/// A range lock of a guest process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLock {
    /// Fid through which it was taken.
    pub fid: u32,
    /// The guest's number of the process.
    pub process: u32,
    /// First byte of the range.
    pub start: u64,
    /// Length in bytes; 0 is unbounded.
    pub length: u64,
    /// Whether the lock also excludes readers.
    pub exclusive: bool,
}

/// A whole-file lock of an open file of the guest (`flock`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFlock {
    /// Fid that holds the lock.
    pub fid: u32,
    /// Whether the lock also excludes readers.
    pub exclusive: bool,
}

impl Server {
    /// Saves the server's state for a snapshot of the guest.
    pub fn state(&self) -> ServerState {
        let fids = self.fids.iter().map(|(fid, what)| SavedFid {
            fid,
            kind: self.save(what).unwrap_or(SavedKind::Stale),
        });
        let mut fids: Vec<_> = fids.collect();
        fids.sort_by_key(|saved| saved.fid);
        let locks = self.locks.iter().map(|lock| SavedLock {
            fid: lock.fid,
            process: lock.process,
            start: lock.range.start,
            length: lock.range.length(),
            exclusive: lock.kind == LockKind::Exclusive,
        });
        let mut locks: Vec<_> = locks.collect();
        locks.sort_by_key(|lock| (lock.fid, lock.process, lock.start));
        let flocks = self.flocks.iter().map(|(fid, kind)| SavedFlock {
            fid,
            exclusive: kind == LockKind::Exclusive,
        });
        let mut flocks: Vec<_> = flocks.collect();
        flocks.sort_by_key(|lock| lock.fid);
        ServerState {
            message_bytes: self.msize as u32,
            extended: self.extended,
            fids,
            locks,
            flocks,
        }
    }

    fn save(&self, what: &Fid) -> Result<SavedKind, Errno> {
        let file = match what {
            Fid::Root => return Ok(SavedKind::Root),
            Fid::File(file) => file,
            Fid::XattrRead(_) | Fid::XattrWrite(_) | Fid::Stale => return Ok(SavedKind::Stale),
        };
        if !file.node.is_linked()? {
            return Ok(SavedKind::Stale);
        }
        let mount = &self.mounts[file.node.mount];
        let path = self.host.path(&file.node)?;
        let relative = mount.relative(&self.host, &path)?;
        Ok(SavedKind::File {
            mount: mount.mount.guest.as_os_str().as_bytes().to_vec(),
            path: relative.as_os_str().as_bytes().to_vec(),
            identity: file.node.id,
            open: file.open.as_ref().map(|open| open.flags),
        })
    }

    /// Restores a server from `state`.
    ///
    /// Mounts are matched by their mount point in the guest, so that they may have moved on
    /// this host. They must be given in their original order, because the guest knows their
    /// entries by number. The state is untrusted: it can open no file that the guest could
    /// not open itself.
    ///
    /// # Errors
    /// Those of [`Server::new`].
    pub fn restore(
        mounts: Vec<Mount>,
        options: Options,
        state: &ServerState,
    ) -> Result<Self, MountError> {
        let mut server = Self::new(mounts, options)?;
        let agreed = state.message_bytes as usize;
        server.msize = agreed.clamp(super::MIN_MESSAGE_BYTES, P9_MESSAGE_BYTES);
        server.extended = state.extended;
        for saved in &state.fids {
            server.restore_fid(saved);
        }
        for lock in &state.locks {
            if server.restore_lock(lock).is_err() {
                // The guest must not write under a lock that it has lost.
                server.make_stale(lock.fid);
            }
        }
        for lock in &state.flocks {
            if server
                .set_flock(lock.fid, Some(lock_kind(lock.exclusive)))
                .is_err()
            {
                server.make_stale(lock.fid);
            }
        }
        Ok(server)
    }

    fn restore_fid(&mut self, saved: &SavedFid) {
        let fid = match &saved.kind {
            SavedKind::Root => Some(Fid::Root),
            SavedKind::Stale => None,
            SavedKind::File {
                mount,
                path,
                identity,
                open,
            } => {
                let found = self.find(mount, path, *identity, *open);
                found.ok().map(Fid::File)
            }
        };
        self.fids.restore(saved.fid, fid.unwrap_or(Fid::Stale));
    }

    fn find(
        &self,
        mount: &[u8],
        path: &[u8],
        identity: Identity,
        open: Option<u32>,
    ) -> Result<File, Errno> {
        let guest = Path::new(std::ffi::OsStr::from_bytes(mount));
        let mount = self.mounts.iter().find(|open| open.mount.guest == guest);
        let root = &mount.ok_or(Errno::STALE)?.root;
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        let node = self.host.resolve(root, &path)?;
        if node.id != identity {
            return Err(Errno::STALE);
        }
        let open = match open {
            // Opening truncated it; now it holds the guest's data.
            Some(flags) => {
                self.fids.check_open()?;
                Some(self.open_node(&node, flags & !flag::TRUNCATE)?)
            }
            None => None,
        };
        Ok(File { node, open })
    }

    fn restore_lock(&mut self, lock: &SavedLock) -> Result<(), Errno> {
        let range = Range::new(lock.start, lock.length).ok_or(Errno::INVAL)?;
        let kind = lock_kind(lock.exclusive);
        self.set_lock(lock.fid, lock.process, range, Some(kind))
    }

    fn make_stale(&mut self, fid: u32) {
        let Ok(was) = self.fids.remove(fid) else {
            return;
        };
        if let Fid::File(file) = was {
            self.release_locks(&file.node, fid);
        }
        self.fids.restore(fid, Fid::Stale);
    }
}

fn lock_kind(exclusive: bool) -> LockKind {
    match exclusive {
        true => LockKind::Exclusive,
        false => LockKind::Shared,
    }
}
