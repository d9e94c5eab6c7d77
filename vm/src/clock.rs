//! Time and randomness of runs, as their hosts give them.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The clock and random source of runs.
pub trait Environment: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> f64;
    /// Fills a buffer with random bytes.
    fn random(&self, out: &mut [u8]);
}

/// Longer deadlines are ignored: they would overflow timers.
pub(crate) const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The time since a run began.
///
/// A [`Duration`] is one moment: no time passes while the machine works, and a deadline takes
/// effect at the next call. A running clock, such as one around `std::time::Instant`, stops
/// even a single long instruction within a millisecond of the deadline.
pub trait RunClock: Send + Sync {
    /// The time since the run began, or since it was restored; it never decreases.
    fn elapsed(&self) -> Duration;

    /// Whether this much time has passed.
    fn is_past(&self, moment: Duration) -> bool {
        self.elapsed() >= moment
    }
}

impl RunClock for Duration {
    fn elapsed(&self) -> Duration {
        *self
    }
}

/// The system's clock; `None` on targets without one, such as WebAssembly without a system.
pub(crate) fn wall_clock() -> Option<Instant> {
    match cfg!(all(target_family = "wasm", target_os = "unknown")) {
        true => None,
        false => Some(Instant::now()),
    }
}

/// A stopwatch, started explicitly or at its first use. Without a system clock no time
/// passes.
#[derive(Debug)]
pub(crate) struct Stopwatch(OnceLock<Option<Instant>>);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(OnceLock::from(wall_clock()))
    }

    /// Creates a stopwatch that starts at its first use: after the first slice of a run, some
    /// microseconds, or with its first call. Two readings of the system clock take longer
    /// than a short run.
    pub(crate) fn lazy() -> Stopwatch {
        Stopwatch(OnceLock::new())
    }

    fn started(&self) -> Option<Instant> {
        *self.0.get_or_init(wall_clock)
    }

    /// The instant at which the stopwatch shows this time.
    pub(crate) fn at(&self, elapsed: Duration) -> Option<Instant> {
        self.started()?.checked_add(elapsed)
    }
}

impl RunClock for Stopwatch {
    fn elapsed(&self) -> Duration {
        self.started()
            .map_or(Duration::ZERO, |started| started.elapsed())
    }

    fn is_past(&self, moment: Duration) -> bool {
        self.at(moment).is_some_and(|at| Instant::now() >= at)
    }
}
