//! Alarm of an activation: when its machine gets the next time input.

use super::Activation;
use a99_runtime_engine::Millis;
use std::time::Duration;
use tokio::time::Instant;

impl Activation {
    /// The time left until the clock shows `at`.
    pub(super) fn left(&self, at: Millis) -> Duration {
        Duration::from_millis(at.saturating_sub(self.shared.now()))
    }

    /// The time left until the machine's next time input. Setting the clock back does not delay
    /// it.
    pub(super) fn alarm(&self) -> Option<Duration> {
        let (at, latest) = self.wake_at?;
        Some(
            self.left(at)
                .min(latest.saturating_duration_since(Instant::now())),
        )
    }
}
