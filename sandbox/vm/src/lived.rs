//! The time that a guest had: what its thread computed, and what it rested
//! because the guest had nothing to do. Time that the host gave to others does
//! not count, so on a busy host nothing is late that is not the guest's fault.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// See the module. It belongs to one thread.
#[derive(Debug)]
pub(super) struct Lived {
    time: Duration,
    /// The thread's processor time when it was last looked at.
    seen: Duration,
}

/// Processor time of this thread.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl Lived {
    /// From now on, on this thread.
    pub fn new() -> Self {
        Self {
            time: Duration::ZERO,
            seen: processor(),
        }
    }

    /// Counts what this thread computed.
    pub fn note(&mut self) {
        let now = processor();
        self.time += now.saturating_sub(self.seen);
        self.seen = now;
    }

    /// Counts a rest, which was to take no longer than `patience`: a process that
    /// was stopped meanwhile gave its guest no more.
    pub fn rest(&mut self, patience: Option<Duration>, rest: impl FnOnce()) {
        let start = Instant::now();
        rest();
        let took = start.elapsed();
        self.time += patience.map_or(took, |patience| took.min(patience));
    }

    /// All of it.
    pub fn time(&self) -> Duration {
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_and_planned_rest_count_and_nothing_else() {
        let mut lived = Lived::new();
        std::thread::sleep(Duration::from_millis(30));
        lived.note();
        assert!(lived.time() < Duration::from_millis(20), "{lived:?}");
        let before = lived.time();
        let nap = || std::thread::sleep(Duration::from_millis(30));
        lived.rest(Some(Duration::from_millis(10)), nap);
        assert_eq!(lived.time() - before, Duration::from_millis(10));
        let before = lived.time();
        let mut sum = 0u64;
        while lived.time() - before < Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
            lived.note();
        }
    }
}
