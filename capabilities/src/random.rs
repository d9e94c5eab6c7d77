//! Randomness.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random bytes. Tokens and ids need an unpredictable one. A source that fails must
/// not return.
pub trait Random: Send + Sync {
    /// Fills the buffer.
    fn fill(&self, out: &mut [u8]);
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use system::SystemRandom;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod system {
    use super::Random;

    /// The operating system's generator. It is missing on `wasm32-unknown-unknown`, which has
    /// no operating system.
    #[derive(Copy, Clone, Debug, Default)]
    pub struct SystemRandom;

    impl Random for SystemRandom {
        /// # Panics
        /// If the operating system has no randomness, which supported systems do not report
        /// after start-up; predictable bytes would be worse.
        fn fill(&self, out: &mut [u8]) {
            getrandom::fill(out).expect("the operating system delivers random bytes");
        }
    }
}

/// A reproducible sequence (SplitMix64), for tests and replays; it is not secure.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(AtomicU64::new(seed))
    }

    fn next(&self) -> u64 {
        /// The odd increment of SplitMix64.
        const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self
            .0
            .fetch_add(GAMMA, Ordering::Relaxed)
            .wrapping_add(GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl Random for SeededRandom {
    fn fill(&self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// An RFC 4122 version 4 UUID in lower case, from 16 random bytes.
#[must_use]
pub fn uuid_v4(mut bytes: [u8; 16]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    bytes[6] = (bytes[6] & 0x0F) | 0x40;
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    let mut out = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 0x0F)]));
    }
    out
}

/// Conformance suite of [`Random`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::Random;
    use crate::error::{SuiteResult, ensure};

    /// Draws some bytes.
    pub fn conformance(random: &dyn Random) -> SuiteResult {
        let (mut first, mut second) = ([0u8; 64], [0u8; 64]);
        random.fill(&mut first);
        random.fill(&mut second);
        ensure(first != [0; 64], "a long buffer does not stay zero")?;
        ensure(first != second, "two draws differ")?;
        random.fill(&mut []);
        let mut odd = [0u8; 13];
        random.fill(&mut odd);
        ensure(odd[8..] != [0; 5], "the end of an odd buffer is filled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_conform() {
        suite::conformance(&SystemRandom).unwrap();
        suite::conformance(&SeededRandom::new(1)).unwrap();
    }

    #[test]
    fn seeds_repeat() {
        let draw = |seed| {
            let mut out = [0; 20];
            SeededRandom::new(seed).fill(&mut out);
            out
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn uuids_have_their_marks() {
        assert_eq!(uuid_v4([0xFF; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid_v4([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
