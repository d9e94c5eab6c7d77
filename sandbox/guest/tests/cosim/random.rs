//! SplitMix64: small, and equal on all platforms.

/// A generator of numbers that depend only on a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A likely corner case of integers, of single or of double precision.
    pub fn interesting(&mut self) -> u64 {
        const BOX: u64 = 0xffff_ffff << 32;
        let raw = self.next();
        match self.below(12) {
            0 => raw,
            1 => raw >> self.below(64),
            2 => (raw as i64 >> self.below(64)) as u64,
            3 => self.pick(&[
                0,
                1,
                2,
                u64::MAX,
                1 << 63,
                (1 << 63) - 1,
                1 << 31,
                (1 << 31) - 1,
            ]),
            4 => self.pick(&[0, 1 << 63]) | self.pick(&DOUBLES),
            5 => BOX | self.pick(&[0, 1 << 31]) | self.pick(&SINGLES),
            // Exponents near each other, so that sums cancel.
            6 | 7 => (1 << 63 & raw) | (1020 + self.below(8)) << 52 | self.fraction(52),
            8 | 9 => BOX | (1 << 31 & raw) | (124 + self.below(8)) << 23 | self.fraction(23),
            10 => raw & !(0x7ff << 52) | self.pick(&[0, 1, 2, 2045, 2046, 500, 1500]) << 52,
            _ => BOX | raw & 0x807f_ffff | self.pick(&[0, 1, 2, 253, 254, 60, 190]) << 23,
        }
    }

    /// A fraction of random width at either end.
    fn fraction(&mut self, bits: u64) -> u64 {
        let raw = self.next() & ((1 << bits) - 1);
        let cut = self.below(bits);
        match self.below(5) {
            0 => raw,
            1 => raw >> cut,
            2 => raw >> cut << cut,
            // One or two bits: sums and products become ties.
            3 => 1 << cut,
            _ => 1 << cut | 1 << self.below(bits),
        }
    }
}

/// Zero, least subnormal, least normal and its neighbour, one, largest,
/// infinity, quiet and signaling NaN, powers of two at the ends of integers.
const DOUBLES: [u64; 14] = [
    0,
    1,
    1 << 52,
    (1 << 52) - 1,
    1023 << 52,
    (1023 << 52) + 1,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x43e0_0000_0000_0000,
    0x43f0_0000_0000_0000,
    0x41df_ffff_ffc0_0000,
    0x41ef_ffff_ffe0_0000,
];

/// The same values in single precision.
const SINGLES: [u64; 14] = [
    0,
    1,
    1 << 23,
    (1 << 23) - 1,
    127 << 23,
    (127 << 23) + 1,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0x4f00_0000,
    0x4f80_0000,
    0x5f00_0000,
    0x5f80_0000,
];
