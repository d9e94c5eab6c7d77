//! Time of a run, and the machine's view of its host.

use crate::driver::AbortSignal;
use crate::options::{RunOptions, TIMEOUT_MS_PER_FUEL};
use crate::pace::{Host, StopReason};
use crate::vm::Environment;
use a99_core::fuel::Fuel;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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

/// The system's clock; `None` if there is none, as in WebAssembly without a system.
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

/// The deadline of a run with these options, as time since its start.
pub(crate) fn deadline(options: &RunOptions) -> Option<Duration> {
    let timeout = match options.timeout_ms {
        Some(ms) => Some(Duration::from_millis(ms)),
        None => by_fuel(options.fuel),
    };
    timeout.filter(|t| *t < FOREVER)
}

/// The time limit that an amount of fuel implies.
pub(crate) fn by_fuel(fuel: Fuel) -> Option<Duration> {
    Duration::try_from_secs_f64(fuel.to_f64() * TIMEOUT_MS_PER_FUEL / 1000.0).ok()
}

/// The machine's view of its host during a run.
pub(crate) struct RunHost<'a, C> {
    pub(crate) environment: &'a dyn Environment,
    pub(crate) signal: Option<&'a AbortSignal>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) clock: &'a C,
}

impl<C: RunClock> Host for RunHost<'_, C> {
    fn is_aborted(&self) -> bool {
        self.signal.is_some_and(AbortSignal::is_aborted)
    }

    fn stop(&self) -> Option<StopReason> {
        if self.is_aborted() {
            return Some(StopReason::Aborted);
        }
        let late = self.deadline.is_some_and(|at| self.clock.is_past(at));
        late.then_some(StopReason::Deadline)
    }

    fn now_ms(&self) -> f64 {
        self.environment.now_ms()
    }

    fn random(&self, out: &mut [u8]) {
        self.environment.random(out);
    }
}
