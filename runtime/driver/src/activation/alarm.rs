//! Alarm of an activation: when its machine is told the time.

use super::Activation;
use a99_runtime_engine::Millis;
use std::time::Duration;
use tokio::time::Instant;

impl Activation {
    /// How long it is until the clock shows a time.
    pub(super) fn left(&self, at: Millis) -> Duration {
        Duration::from_millis(at.saturating_sub(self.shared.now()))
    }

    /// How long it is until the machine is told the time. A clock that is set back makes it no
    /// later.
    pub(super) fn alarm(&self) -> Option<Duration> {
        let (at, latest) = self.wake_at?;
        Some(
            self.left(at)
                .min(latest.saturating_duration_since(Instant::now())),
        )
    }
}
