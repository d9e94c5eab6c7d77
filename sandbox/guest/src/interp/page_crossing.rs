//! Page-crossing instructions, of four bytes on two pages. Each is a separate block that
//! belongs to no page and is keyed by its bits. The caller reads both halves again for each
//! run, because either page may have changed or been remapped.

use super::blocks::{DecodedCode, NONE};
use super::decode;

/// Number of hash bits that select a slot.
const SLOT_BITS: u32 = 8;

/// Maximum blocks: four for each slot. Only guests whose instructions collide need more.
const MAX_BLOCKS: u32 = 4 << SLOT_BITS;

/// Spreads the bits of an instruction (Knuth's multiplicative hash).
const SPREAD: u32 = 0x9e37_79b1;

/// Cache of the blocks; see the module.
#[derive(Debug)]
pub(crate) struct PageCrossing {
    /// Decoded instructions.
    pub code: DecodedCode,
    /// Bits and block of the instruction decoded last in each slot.
    known: Box<[(u32, u32)]>,
    count: u32,
}

impl Default for PageCrossing {
    fn default() -> Self {
        Self {
            code: DecodedCode::new(0),
            known: vec![(0, NONE); 1 << SLOT_BITS].into(),
            count: 0,
        }
    }
}

impl PageCrossing {
    /// The block of an instruction.
    pub(crate) fn block(&mut self, bits: u32) -> u32 {
        let slot = (bits.wrapping_mul(SPREAD) >> (32 - SLOT_BITS)) as usize;
        let (known, block) = self.known[slot];
        if known == bits && block != NONE {
            return block;
        }
        if self.count == MAX_BLOCKS {
            *self = Self::default();
        }
        let block = self.code.hold(decode::decode(bits).0, 4);
        self.known[slot] = (bits, block);
        self.count += 1;
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::blocks::first;

    #[test]
    fn each_block_is_the_instruction_with_its_bits() {
        let mut page_crossing = PageCrossing::default();
        // addi a0, a0, n: more instructions than fit, then the last ones again.
        let addi = |n: u32| (n & 0x7ff) << 20 | 0x0005_0513;
        for n in (0..=MAX_BLOCKS + 10).chain(MAX_BLOCKS..=MAX_BLOCKS + 10) {
            let block = page_crossing.block(addi(n));
            let inst = page_crossing.code.line(block)[usize::from(first(block))];
            assert_eq!(inst, decode::decode(addi(n)).0, "{n}");
            assert_eq!(page_crossing.block(addi(n)), block);
        }
        assert!(page_crossing.count < MAX_BLOCKS);
    }
}
