//! Descriptors of this process that servers hold: a share of what the process may
//! have open.
//!
//! All servers together leave some for everything else, and one server leaves
//! half to others. A guest that is out of them gets `EMFILE` and goes on when it
//! has closed something.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Descriptors that servers leave to the rest of the process.
const RESERVED: u64 = 128;

/// Least that servers share, however few the process may have.
const LEAST: u64 = 64;

/// The soft limit that is asked for, where the hard one allows it.
const WANTED: u64 = 64 << 10;

/// Descriptors that all servers of the process hold.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Most descriptors of all servers. The process's soft limit is raised to its
/// hard one before, once.
fn most() -> u64 {
    static MOST: OnceLock<u64> = OnceLock::new();
    *MOST.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile);
        let hard = limit.maximum.unwrap_or(WANTED);
        let mut soft = limit.current.unwrap_or(WANTED);
        let wanted = hard.min(WANTED);
        if soft < wanted {
            let raised = Rlimit {
                current: Some(wanted),
                maximum: limit.maximum,
            };
            if setrlimit(Resource::Nofile, raised).is_ok() {
                soft = wanted;
            }
        }
        soft.saturating_sub(RESERVED).max(LEAST)
    })
}

/// What one server holds.
#[derive(Debug)]
pub(super) struct Descriptors {
    held: Arc<AtomicU64>,
    share: u64,
    all: u64,
}

impl Default for Descriptors {
    fn default() -> Self {
        let all = most();
        Self {
            held: Arc::default(),
            share: all / 2,
            all,
        }
    }
}

impl Descriptors {
    /// Room for one more.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn take(&self) -> Result<Room, Errno> {
        let room = Room(Arc::clone(&self.held));
        let own = self.held.fetch_add(1, Ordering::Relaxed) + 1;
        let all = HELD.fetch_add(1, Ordering::Relaxed) + 1;
        // Dropped, it gives both back.
        match own > self.share || all > self.all {
            true => Err(Errno::MFILE),
            false => Ok(room),
        }
    }

    #[cfg(test)]
    fn with_share(share: u64) -> Self {
        Self {
            share,
            ..Self::default()
        }
    }
}

/// Room for a descriptor, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Room(Arc<AtomicU64>);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A descriptor in its room.
#[derive(Debug)]
pub(super) struct Held {
    fd: OwnedFd,
    _room: Room,
}

impl Held {
    pub fn new(fd: OwnedFd, room: Room) -> Self {
        Self { fd, _room: room }
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_a_server_has_its_share_and_gives_it_back() {
        let server = Descriptors::with_share(3);
        let rooms: Vec<Room> = (0..3).map(|_| server.take().expect("room")).collect();
        assert_eq!(server.take().map(drop), Err(Errno::MFILE));
        let other = Descriptors::with_share(3);
        assert!(other.take().is_ok());
        drop(rooms);
        assert!(server.take().is_ok());
        assert_eq!(server.held.load(Ordering::Relaxed), 0);
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        assert!(Descriptors::default().share <= limit / 2);
    }
}
