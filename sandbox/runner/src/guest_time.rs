//! Guest time: the processor time of a guest's thread, plus the time for which the thread
//! was parked because the guest was idle. Time that the host gave to others does not count,
//! so a busy host cannot make a guest late.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Guest time of the current thread; see the module.
#[derive(Debug)]
pub(super) struct GuestTime {
    time: Duration,
    /// The thread's processor time at the last update.
    seen: Duration,
}

/// Processor time of this thread.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl GuestTime {
    /// Starts to measure on this thread.
    pub(crate) fn new() -> Self {
        Self {
            time: Duration::ZERO,
            seen: processor(),
        }
    }

    /// Adds the thread's processor time since the last update.
    pub(crate) fn update(&mut self) {
        let now = processor();
        self.time += now.saturating_sub(self.seen);
        self.seen = now;
    }

    /// Adds the time in `park`, at most `timeout`: a process that was stopped meanwhile
    /// gave its guest no more.
    pub(crate) fn park(&mut self, timeout: Option<Duration>, park: impl FnOnce()) {
        let start = Instant::now();
        park();
        let took = start.elapsed();
        self.time += timeout.map_or(took, |timeout| took.min(timeout));
    }

    /// Guest time so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computation_and_planned_sleep_count_and_nothing_else() {
        let mut guest_time = GuestTime::new();
        std::thread::sleep(Duration::from_millis(30));
        guest_time.update();
        assert!(
            guest_time.elapsed() < Duration::from_millis(20),
            "{guest_time:?}"
        );
        let before = guest_time.elapsed();
        let sleep = || std::thread::sleep(Duration::from_millis(30));
        guest_time.park(Some(Duration::from_millis(10)), sleep);
        assert_eq!(guest_time.elapsed() - before, Duration::from_millis(10));
        let before = guest_time.elapsed();
        let mut sum = 0u64;
        while guest_time.elapsed() - before < Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
            guest_time.update();
        }
    }
}
