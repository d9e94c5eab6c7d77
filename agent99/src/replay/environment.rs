//! Clock and randomness of a run, identical at every replay.

use a99_vm::Environment;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A deterministic environment. Its time is the time of the run's start, advanced by the times
/// of answers. Its randomness is SHA-256 of the seed, the run's identity and a counter.
#[derive(Debug)]
pub struct RunEnvironment {
    /// Milliseconds since the Unix epoch, as the bits of a double.
    now: AtomicU64,
    random: Mutex<Stream>,
}

#[derive(Debug)]
struct Stream {
    key: [u8; 32],
    counter: u64,
    block: [u8; 32],
    /// Used bytes of the block.
    used: usize,
}

impl Stream {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            if self.used == self.block.len() {
                let hash = Sha256::new()
                    .chain_update(self.key)
                    .chain_update(self.counter.to_le_bytes());
                self.block = hash.finalize().into();
                self.counter += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }
}

impl RunEnvironment {
    /// The environment of a run. `run` is the identity of the call that it answers, empty for
    /// the main run.
    #[must_use]
    pub fn new(seed: &[u8; 32], run: &str, now: f64) -> RunEnvironment {
        let key = Sha256::new()
            .chain_update(seed)
            .chain_update(run.as_bytes());
        RunEnvironment {
            now: AtomicU64::new(now.to_bits()),
            random: Mutex::new(Stream {
                key: key.finalize().into(),
                counter: 0,
                block: [0; 32],
                used: 32,
            }),
        }
    }

    /// Advances the clock to the time of an answer; it never moves back.
    pub fn advance(&self, at: f64) {
        if at > self.now_ms() {
            self.now.store(at.to_bits(), Ordering::Release);
        }
    }
}

impl Environment for RunEnvironment {
    fn now_ms(&self) -> f64 {
        f64::from_bits(self.now.load(Ordering::Acquire))
    }

    fn random(&self, out: &mut [u8]) {
        self.random
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill(out);
    }
}

impl a99_capabilities::Random for RunEnvironment {
    fn fill(&self, out: &mut [u8]) {
        self.random
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same() {
        let draw = |seed: u8, run: &str, sizes: &[usize]| {
            let environment = RunEnvironment::new(&[seed; 32], run, 5.0);
            let mut all = Vec::new();
            for size in sizes {
                let mut out = vec![0; *size];
                environment.random(&mut out);
                all.extend(out);
            }
            all
        };
        assert_eq!(draw(1, "", &[100]), draw(1, "", &[1, 31, 33, 35]));
        assert_ne!(draw(1, "", &[32]), draw(2, "", &[32]));
        assert_ne!(draw(1, "", &[32]), draw(1, "0.0", &[32]));
    }

    #[test]
    fn the_clock_never_goes_back() {
        let environment = RunEnvironment::new(&[0; 32], "", 5.0);
        environment.advance(9.0);
        environment.advance(7.0);
        assert_eq!(environment.now_ms(), 9.0);
    }
}
