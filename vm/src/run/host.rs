//! The deadline of a run, and the machine's view of its host.

use crate::abort::AbortSignal;
use crate::clock::{Environment, FOREVER, RunClock};
use crate::options::{RunOptions, TIMEOUT_MS_PER_FUEL};
use crate::pace::{Host, StopReason};
use a99_core::fuel::Fuel;
use std::time::Duration;

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
