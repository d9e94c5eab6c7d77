//! Clocks, coarse on purpose: a fine clock would let an image observe its neighbours.

use super::abi::{Answer, Errno, clock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// Clocks of one image, shared by clock calls and waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    start: Instant,
    /// Resolution in nanoseconds.
    resolution: u64,
}

impl Clocks {
    /// Creates clocks that start now.
    pub(super) fn new(resolution: u64) -> Self {
        Self {
            start: Instant::now(),
            resolution: resolution.max(1),
        }
    }

    fn wall(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.rounded(now.unwrap_or_default())
    }

    fn monotonic(&self) -> u64 {
        self.rounded(self.start.elapsed())
    }

    fn rounded(&self, now: Duration) -> u64 {
        let now = now.as_nanos() as u64;
        now - now % self.resolution
    }

    /// Reads a clock in nanoseconds, for a wait.
    ///
    /// # Errors
    /// `notsup` for the clocks of processor time, `inval` for others.
    pub(super) fn now(&self, id: u32) -> Answer<u64> {
        match id {
            clock::REALTIME => Ok(self.wall()),
            clock::MONOTONIC => Ok(self.monotonic()),
            2 | 3 => Err(Errno::Notsup),
            _ => Err(Errno::Inval),
        }
    }
}

impl HostWallClock for Clocks {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(self.resolution)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.wall())
    }
}

impl HostMonotonicClock for Clocks {
    fn resolution(&self) -> u64 {
        self.resolution
    }

    fn now(&self) -> u64 {
        self.monotonic()
    }
}
