//! Watchdog of the guest's agent: pings it at intervals of guest time while a caller waits
//! for it. An answer only requires that the kernel runs and schedules the agent, which has
//! priority over all commands.

use super::error::{VmCode, VmError};
use std::time::Duration;

/// Silence after which the agent is pinged.
const PING_AFTER: Duration = Duration::from_millis(500);

/// Time limit of an answer. With [`PING_AFTER`], a silent guest is stopped after two
/// seconds of its time.
const PONG_TIMEOUT: Duration = Duration::from_millis(1500);

/// Watchdog of one guest's agent.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// Guest time of the last report.
    last_report: Duration,
    /// Id and time of the unanswered ping.
    pinged: Option<(u64, Duration)>,
}

impl Watchdog {
    /// Records a report of the agent.
    pub(crate) fn on_report(&mut self, now: Duration) {
        self.last_report = now;
    }

    /// Records an answer; returns whether it matches a ping.
    pub(crate) fn on_pong(&mut self, id: u64, now: Duration) -> bool {
        self.last_report = now;
        self.pinged.take_if(|(pinged, _)| *pinged == id).is_some()
    }

    /// Checks the time; returns the id of a new ping, drawn by `id`, if one is due. Without
    /// `waiting`, no caller waits for the agent.
    ///
    /// # Errors
    /// [`VmCode::Unresponsive`].
    pub(crate) fn check(
        &mut self,
        waiting: bool,
        now: Duration,
        id: impl FnOnce() -> u64,
    ) -> Result<Option<u64>, VmError> {
        if let Some((_, pinged)) = self.pinged {
            if now.saturating_sub(pinged.max(self.last_report)) > PONG_TIMEOUT {
                let text = "the guest runs and does not answer";
                return Err(VmError::new(VmCode::Unresponsive, text));
            }
            return Ok(None);
        }
        if !waiting {
            // Silence means nothing until a caller waits.
            self.last_report = now;
            return Ok(None);
        }
        if now.saturating_sub(self.last_report) < PING_AFTER {
            return Ok(None);
        }
        let id = id();
        self.pinged = Some((id, now));
        Ok(Some(id))
    }

    /// Time until the next check, if no event comes first.
    pub(crate) fn poll_interval(&self, waiting: bool) -> Option<Duration> {
        (waiting || self.pinged.is_some()).then_some(PING_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn s6_a_guest_that_never_answers_is_stopped_within_two_seconds() {
        let mut watchdog = Watchdog::default();
        let stopped = (0..)
            .find(|now| watchdog.check(true, at(*now), || 7).is_err())
            .unwrap();
        assert!((1000..=2001).contains(&stopped), "{stopped}");
    }

    #[test]
    fn s6_one_that_answers_is_never_stopped() {
        let mut watchdog = Watchdog::default();
        for now in 0..20_000 {
            if let Some(id) = watchdog.check(true, at(now), || now).unwrap() {
                assert!(watchdog.on_pong(id, at(now + 1400)));
                assert!(!watchdog.on_pong(id, at(now + 1400)), "once");
            }
        }
        // An agent that talks, or that no caller waits for, is not pinged.
        for now in 30_000..40_000 {
            watchdog.on_report(at(now));
            assert_eq!(watchdog.check(true, at(now + 1), || 1), Ok(None));
        }
        for now in 50_000..60_000 {
            assert_eq!(watchdog.check(false, at(now), || 1), Ok(None));
        }
        assert_eq!(watchdog.check(true, at(60_000), || 1), Ok(None));
    }
}
