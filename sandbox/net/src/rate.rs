//! Rate limit: a token bucket that may go into debt by one frame.

use std::time::{Duration, Instant};

/// Burst after silence: the bytes of this much time.
const BURST: Duration = Duration::from_millis(50);

/// Token bucket at a given rate, or unlimited.
#[derive(Debug)]
pub(super) struct TokenBucket {
    /// Bytes a second.
    rate: Option<f64>,
    bytes: f64,
    filled: Instant,
}

impl TokenBucket {
    pub(super) fn new(rate: Option<u64>, now: Instant) -> Self {
        // Zero would stop the network for good, which is the policy's job.
        let rate = rate.map(|rate| rate.max(1) as f64);
        Self {
            rate,
            bytes: rate.unwrap_or(0.0) * BURST.as_secs_f64(),
            filled: now,
        }
    }

    /// Adds the tokens of the elapsed time.
    pub(super) fn fill(&mut self, now: Instant) {
        let Some(rate) = self.rate else { return };
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.bytes = (self.bytes + rate * passed).min(rate * BURST.as_secs_f64());
    }

    /// Whether a frame may pass.
    pub(super) fn open(&self) -> bool {
        self.rate.is_none() || self.bytes > 0.0
    }

    /// Bytes that may pass before the bucket is empty.
    pub(super) fn allowance(&self) -> usize {
        match self.rate {
            None => usize::MAX,
            Some(_) => self.bytes.max(0.0).ceil() as usize,
        }
    }

    /// Charges a frame of `bytes`.
    pub(super) fn take(&mut self, bytes: usize) {
        if self.rate.is_some() {
            self.bytes -= bytes as f64;
        }
    }

    /// Time until a frame may pass.
    pub(super) fn closed_for(&self) -> Option<Duration> {
        let rate = self.rate.filter(|_| !self.open())?;
        // The margin keeps rounding from waking the caller too early.
        Some(Duration::from_secs_f64((1.0 - self.bytes) / rate) + Duration::from_micros(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_at_the_rate() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(Some(1_000_000), start);
        let mut now = start;
        let mut passed = 0;
        while now < start + Duration::from_secs(10) {
            bucket.fill(now);
            while bucket.open() {
                bucket.take(65_534);
                passed += 65_534;
            }
            now += bucket.closed_for().expect("closed");
        }
        assert!((9_900_000..=10_200_000).contains(&passed), "{passed}");
    }

    #[test]
    fn without_a_rate_it_is_open() {
        let mut bucket = TokenBucket::new(None, Instant::now());
        bucket.take(usize::MAX);
        assert!(bucket.open() && bucket.closed_for().is_none());
        assert_eq!(bucket.allowance(), usize::MAX);
    }

    #[test]
    fn silence_saves_up_little() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(Some(1000), start);
        bucket.fill(start + Duration::from_secs(3600));
        assert_eq!(bucket.allowance(), 50);
    }
}
