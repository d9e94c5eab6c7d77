//! Descriptor quota: what servers hold open is a share of what the process may.
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
static OPEN_DESCRIPTORS: AtomicU64 = AtomicU64::new(0);

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

/// The quota of one server, and how much of it is open.
#[derive(Debug)]
pub(super) struct Descriptors {
    open: Arc<AtomicU64>,
    share: u64,
    all: u64,
}

impl Default for Descriptors {
    fn default() -> Self {
        let all = most();
        Self {
            open: Arc::default(),
            share: all / 2,
            all,
        }
    }
}

impl Descriptors {
    /// A permit for one more.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(crate) fn take(&self) -> Result<Permit, Errno> {
        let permit = Permit(Arc::clone(&self.open));
        let own = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        let all = OPEN_DESCRIPTORS.fetch_add(1, Ordering::Relaxed) + 1;
        // Dropped, it gives both back.
        match own > self.share || all > self.all {
            true => Err(Errno::MFILE),
            false => Ok(permit),
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

/// A permit to hold a descriptor, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<AtomicU64>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        OPEN_DESCRIPTORS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A descriptor that counts against the quota.
#[derive(Debug)]
pub(super) struct CountedFd {
    fd: OwnedFd,
    _permit: Permit,
}

impl CountedFd {
    pub(crate) fn new(fd: OwnedFd, permit: Permit) -> Self {
        Self {
            fd,
            _permit: permit,
        }
    }
}

impl AsFd for CountedFd {
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
        let permits: Vec<Permit> = (0..3).map(|_| server.take().expect("a permit")).collect();
        assert_eq!(server.take().map(drop), Err(Errno::MFILE));
        let other = Descriptors::with_share(3);
        assert!(other.take().is_ok());
        drop(permits);
        assert!(server.take().is_ok());
        assert_eq!(server.open.load(Ordering::Relaxed), 0);
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        assert!(Descriptors::default().share <= limit / 2);
    }
}
