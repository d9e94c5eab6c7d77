//! Retries: conditions, number, and back-off with jitter.

use a99_capabilities::Random;
use serde::Deserialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Retry limits of requests. A request is retried only before any part of an answer came, and
/// only after transient errors: too many requests, a failing or unreachable service, no first
/// token in time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Retries {
    /// Maximum retries of one request with one model; 2 by default.
    pub most: u32,
    /// Maximum seconds before the first retry; it doubles with each. 0.5 by default.
    pub first_wait: f64,
    /// Maximum seconds before any retry. A service that asks for a longer wait is not retried.
    /// 20 by default.
    pub longest_wait: f64,
    /// Retry budget of all requests together: each retry takes one, ten answers give one back.
    /// 20 by default.
    pub budget: u32,
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            most: 2,
            first_wait: 0.5,
            longest_wait: 20.0,
            budget: 20,
        }
    }
}

impl Retries {
    /// No retries.
    #[must_use]
    pub fn none() -> Retries {
        Retries {
            most: 0,
            ..Retries::default()
        }
    }

    /// The pause before a retry after `made` earlier ones; `None` if the service asks for a
    /// longer wait than the maximum.
    pub(crate) fn wait(
        &self,
        made: u32,
        wanted: Option<Duration>,
        random: &dyn Random,
    ) -> Option<Duration> {
        let longest = seconds(self.longest_wait);
        let wanted = wanted.unwrap_or_default();
        if wanted > longest {
            return None;
        }
        let most = seconds(self.first_wait).saturating_mul(1 << made.min(20));
        // Full jitter: requests that failed together must not retry together.
        let mut bytes = [0; 4];
        random.fill(&mut bytes);
        let part = f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX);
        Some(wanted.saturating_add(most.min(longest).mul_f64(part)))
    }
}

/// Converts a checked number of seconds.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// The shared retry budget.
#[derive(Debug)]
pub(crate) struct Budget {
    /// In tenths of a retry.
    left: AtomicU64,
    most: u64,
}

/// Tenths of a retry.
const RETRY: u64 = 10;

impl Budget {
    pub(crate) fn new(retries: &Retries) -> Budget {
        let most = u64::from(retries.budget) * RETRY;
        Budget {
            left: AtomicU64::new(most),
            most,
        }
    }

    /// Takes a retry, if there is one.
    pub(crate) fn take(&self) -> bool {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(RETRY)
            });
        taken.is_ok()
    }

    /// Gives back a tenth of a retry for an answer.
    pub(crate) fn answered(&self) {
        let more = |left: u64| Some((left + 1).min(self.most));
        // The function always gives a value.
        let _ = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// The wait that a service asks for in the headers `Retry-After` and `retry-after-ms`.
pub(crate) fn retry_after(
    header: Option<&str>,
    millis: Option<&str>,
    now: SystemTime,
) -> Option<Duration> {
    /// A year: longer waits mean never, and the cap prevents overflow.
    const MAX: Duration = Duration::from_secs(366 * 24 * 3600);
    let number = |text: &str| {
        let number: f64 = text.trim().parse().ok()?;
        (number >= 0.0 && number.is_finite()).then_some(number)
    };
    if let Some(millis) = millis.and_then(number) {
        return Some(
            Duration::try_from_secs_f64(millis / 1000.0)
                .unwrap_or(MAX)
                .min(MAX),
        );
    }
    let header = header?.trim();
    if let Some(seconds) = number(header) {
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(MAX).min(MAX));
    }
    let until = httpdate::parse_http_date(header).ok()?;
    Some(until.duration_since(now).unwrap_or_default().min(MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_capabilities::SeededRandom;

    #[test]
    fn times_to_wait_are_read() {
        // Thu, 26 Nov 2026 08:00:00 GMT.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_680_000);
        let secs = |n| Some(Duration::from_secs(n));
        for (header, millis, expected) in [
            (None, None, None),
            (Some("7"), None, secs(7)),
            (Some(" 0 "), None, secs(0)),
            (Some("1.5"), None, Some(Duration::from_millis(1500))),
            (Some("7"), Some("250"), Some(Duration::from_millis(250))),
            (Some("7"), Some("x"), secs(7)),
            (Some("-1"), None, None),
            (Some("NaN"), None, None),
            (Some("inf"), None, None),
            (Some("soon"), None, None),
            (Some("1e300"), None, secs(366 * 24 * 3600)),
            (Some("Thu, 26 Nov 2026 08:00:30 GMT"), None, secs(30)),
            (Some("Thursday, 26-Nov-26 08:00:30 GMT"), None, secs(30)),
            (Some("Thu Nov 26 08:00:30 2026"), None, secs(30)),
            (Some("Thu, 26 Nov 2026 07:00:00 GMT"), None, secs(0)),
            (
                Some("Sun, 26 Nov 9026 07:00:00 GMT"),
                None,
                secs(366 * 24 * 3600),
            ),
        ] {
            assert_eq!(
                retry_after(header, millis, now),
                expected,
                "{header:?} {millis:?}"
            );
        }
    }

    #[test]
    fn waits_grow_and_are_bounded() {
        let random = SeededRandom::new(7);
        let retries = Retries::default();
        for made in [0, 1, 5, 20, 40, u32::MAX] {
            let most = (0.5 * f64::from(1 << made.min(20))).min(20.0);
            let mut longest = 0.0_f64;
            for _ in 0..200 {
                let wait = retries.wait(made, None, &random).unwrap().as_secs_f64();
                assert!(wait <= most + 1e-6, "{made}: {wait}");
                longest = longest.max(wait);
            }
            assert!(longest > most / 2.0, "{made}: {longest}");
        }
        let wanted = Some(Duration::from_secs(3));
        let wait = retries.wait(0, wanted, &random).unwrap();
        assert!((3.0..=3.5).contains(&wait.as_secs_f64()));
        let wanted = Some(Duration::from_secs(21));
        assert_eq!(retries.wait(0, wanted, &random), None);
    }

    #[test]
    fn the_budget_is_used_up_and_comes_back() {
        let budget = Budget::new(&Retries {
            budget: 2,
            ..Retries::default()
        });
        assert!(budget.take() && budget.take() && !budget.take());
        (0..9).for_each(|_| budget.answered());
        assert!(!budget.take());
        budget.answered();
        assert!(budget.take() && !budget.take());
        (0..1000).for_each(|_| budget.answered());
        assert!(budget.take() && budget.take() && !budget.take());
    }
}
