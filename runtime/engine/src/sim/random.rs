//! Random numbers of a seed: SplitMix64.

/// A deterministic sequence of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// Mixes the bits of a number.
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(mix(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below a bound that is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// An index of a list; `None` for an empty one.
    pub(super) fn place(&mut self, len: usize) -> Option<usize> {
        let len = u64::try_from(len).ok().filter(|len| *len > 0)?;
        usize::try_from(self.below(len)).ok()
    }

    /// True with a probability of 1 in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
