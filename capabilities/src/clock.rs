//! The time of day.

use std::sync::atomic::{AtomicU64, Ordering};

/// A clock of the time of day. Deadlines do not use it.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch, whole or fractional.
    fn now_ms(&self) -> f64;
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use system::SystemClock;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod system {
    use super::Clock;
    use std::time::{SystemTime, UNIX_EPOCH};

    /// The machine's clock. It is missing on `wasm32-unknown-unknown`, which has no operating
    /// system.
    #[derive(Copy, Clone, Debug, Default)]
    pub struct SystemClock;

    impl Clock for SystemClock {
        fn now_ms(&self) -> f64 {
            // A clock set before 1970 reads as the epoch.
            let since = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            since.as_secs() as f64 * 1000.0 + f64::from(since.subsec_millis())
        }
    }
}

/// Time of the machine's clock, or zero without one.
pub(crate) fn system_now_ms() -> f64 {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    return SystemClock.now_ms();
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    return 0.0;
}

/// A clock that changes only when set.
#[derive(Debug)]
pub struct FixedClock(AtomicU64);

impl FixedClock {
    /// A clock with this time in milliseconds since the Unix epoch.
    #[must_use]
    pub fn new(now_ms: f64) -> FixedClock {
        FixedClock(AtomicU64::new(now_ms.to_bits()))
    }

    /// Sets the time in milliseconds since the Unix epoch.
    pub fn set(&self, now_ms: f64) {
        self.0.store(now_ms.to_bits(), Ordering::Release);
    }
}

impl Clock for FixedClock {
    fn now_ms(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Acquire))
    }
}

/// Conformance suite of [`Clock`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::Clock;
    use crate::error::{SuiteResult, ensure};

    /// Reads the clock twice.
    pub fn conformance(clock: &dyn Clock) -> SuiteResult {
        let (first, second) = (clock.now_ms(), clock.now_ms());
        ensure(
            first.is_finite() && first >= 0.0,
            "the time is a finite number",
        )?;
        ensure(second.is_finite(), "the time stays a finite number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_conform() {
        suite::conformance(&SystemClock).unwrap();
        assert!(SystemClock.now_ms() > 1_600_000_000_000.0);
        let clock = FixedClock::new(5.5);
        suite::conformance(&clock).unwrap();
        clock.set(7.0);
        assert_eq!(clock.now_ms(), 7.0);
    }
}
