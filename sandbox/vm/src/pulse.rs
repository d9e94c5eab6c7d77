//! Whether the guest's agent is there: while somebody waits for it, it is asked
//! from time to time, by the guest's own time. Its answer needs no more than that
//! the kernel runs and lets it have its turn, which it has before all commands.

use super::error::{VmCode, VmError};
use std::time::Duration;

/// How long it may say nothing before it is asked.
const QUIET: Duration = Duration::from_millis(500);

/// How long it may take to answer. With [`QUIET`] the guest is given up after
/// two seconds of its time.
const PATIENCE: Duration = Duration::from_millis(1500);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// When it was heard last.
    heard: Duration,
    /// The question that is open, and when it was asked.
    asked: Option<(u64, Duration)>,
}

impl Pulse {
    /// It said something.
    pub fn heard(&mut self, now: Duration) {
        self.heard = now;
    }

    /// It answered a question; whether that was asked.
    pub fn answered(&mut self, id: u64, now: Duration) -> bool {
        self.heard = now;
        self.asked.take_if(|(asked, _)| *asked == id).is_some()
    }

    /// Looks at the time. `id` draws the number of a new question, which the
    /// answer tells, if it is time for one. Nobody waits for an answer without
    /// `waiting`.
    ///
    /// # Errors
    /// [`VmCode::Unresponsive`].
    pub fn check(
        &mut self,
        waiting: bool,
        now: Duration,
        id: impl FnOnce() -> u64,
    ) -> Result<Option<u64>, VmError> {
        if let Some((_, asked)) = self.asked {
            if now.saturating_sub(asked.max(self.heard)) > PATIENCE {
                let text = "the guest runs and does not answer";
                return Err(VmError::new(VmCode::Unresponsive, text));
            }
            return Ok(None);
        }
        if !waiting {
            // Silence is no sign before somebody waits.
            self.heard = now;
            return Ok(None);
        }
        if now.saturating_sub(self.heard) < QUIET {
            return Ok(None);
        }
        let id = id();
        self.asked = Some((id, now));
        Ok(Some(id))
    }

    /// After how long it is to be looked at again, if nothing happens.
    pub fn patience(&self, waiting: bool) -> Option<Duration> {
        (waiting || self.asked.is_some()).then_some(QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn s6_a_guest_that_never_answers_is_given_up_within_two_seconds() {
        let mut pulse = Pulse::default();
        let given_up = (0..)
            .find(|now| pulse.check(true, at(*now), || 7).is_err())
            .unwrap();
        assert!((1000..=2001).contains(&given_up), "{given_up}");
    }

    #[test]
    fn s6_one_that_answers_is_never_given_up() {
        let mut pulse = Pulse::default();
        for now in 0..20_000 {
            if let Some(id) = pulse.check(true, at(now), || now).unwrap() {
                assert!(pulse.answered(id, at(now + 1400)));
                assert!(!pulse.answered(id, at(now + 1400)), "once");
            }
        }
        // Nothing is asked of one that talks anyway, or that nobody waits for.
        for now in 30_000..40_000 {
            pulse.heard(at(now));
            assert_eq!(pulse.check(true, at(now + 1), || 1), Ok(None));
        }
        for now in 50_000..60_000 {
            assert_eq!(pulse.check(false, at(now), || 1), Ok(None));
        }
        assert_eq!(pulse.check(true, at(60_000), || 1), Ok(None));
    }
}
