//! Deterministic random numbers for tests: Marsaglia's xorshift.

/// State of the generator.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// A generator for a seed; near seeds give unrelated numbers.
    #[must_use]
    pub fn new(seed: u64) -> Numbers {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            numbers.next();
        }
        numbers
    }

    /// A generator with this state, which must not be 0.
    #[must_use]
    pub fn of_state(state: u64) -> Numbers {
        Numbers(state)
    }

    /// The next state.
    #[expect(clippy::should_implement_trait, reason = "there is no end")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n.max(1)
    }

    /// True once in `n` times, at random.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    /// The bytes of a random program.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 32) as u8).collect()
    }
}
