//! Retries: the number of attempts, and the back-off between them.

use crate::key::Millis;
use serde::{Deserialize, Serialize};

/// The retry policy of a turn.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Maximum attempts, at least one.
    pub max_attempts: u32,
    /// The pause before the second attempt. It doubles each time.
    pub first: Millis,
    /// The maximum pause.
    pub most: Millis,
}

impl Default for Retry {
    /// Five attempts, after half a second, one, two and four.
    fn default() -> Retry {
        Retry {
            max_attempts: 5,
            first: 500,
            most: 30_000,
        }
    }
}

impl Retry {
    /// Milliseconds to wait after this many failed attempts; `None` after the last.
    #[must_use]
    pub fn after(&self, failed: u32) -> Option<Millis> {
        (failed < self.max_attempts).then(|| {
            let doubled = 1_u64
                .checked_shl(failed.saturating_sub(1))
                .unwrap_or(u64::MAX);
            self.first.saturating_mul(doubled).min(self.most)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Retry;

    #[test]
    fn waits_double_up_to_the_most() {
        let retry = Retry {
            max_attempts: 9,
            first: 500,
            most: 3_000,
        };
        let waits: Vec<_> = (1..6).map(|failed| retry.after(failed)).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 3_000, 3_000].map(Some));
        assert_eq!(
            (
                retry.after(9),
                Retry {
                    max_attempts: 99,
                    ..retry
                }
                .after(80)
            ),
            (None, Some(3_000))
        );
    }
}
