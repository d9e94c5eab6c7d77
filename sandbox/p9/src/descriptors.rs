//! Descriptor quota: servers may use only a share of the process's descriptors.
//!
//! All servers together leave a reserve to the rest of the process, and one server leaves
//! half of the share to others. A guest that exhausts it gets `EMFILE` and can continue
//! after closing files.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Descriptors that servers leave to the rest of the process.
const RESERVED: u64 = 128;

/// Minimum quota of all servers, even with a low process limit.
const LEAST: u64 = 64;

/// Soft limit that the process asks for, if the hard limit allows it.
const WANTED: u64 = 64 << 10;

/// Descriptors that all servers of the process hold.
static OPEN_DESCRIPTORS: AtomicU64 = AtomicU64::new(0);

/// Maximum descriptors of all servers. On the first call this raises the process's soft
/// limit towards its hard limit.
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

/// Quota of one server, and its open descriptors.
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
    /// Takes a permit for one more descriptor.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(crate) fn take(&self) -> Result<Permit, Errno> {
        let permit = Permit(Arc::clone(&self.open));
        let own = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        let all = OPEN_DESCRIPTORS.fetch_add(1, Ordering::Relaxed) + 1;
        // On failure, dropping the permit refunds both counts.
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

/// A permit to hold a descriptor, returned on drop.
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
