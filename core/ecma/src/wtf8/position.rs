//! UTF-16 offsets: length, units and code points at an offset, byte ranges.

use super::{FOUR_BYTE_LEAD, decode, is_continuation, surrogates_of};
use std::ops::Range;

/// Bytes counted at a time; a whole number of vector registers.
const BLOCK: usize = 32;

/// Number of blocks whose per-lane counts (at most 2 each) fit a byte.
const BLOCKS_PER_SUM: usize = 127;

/// The byte position of a UTF-16 offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitPos {
    /// Byte offset of the code point that starts at, or contains, the unit; the length of the
    /// text if the offset is at or past the end.
    pub byte: usize,
    /// Whether the offset falls between the two halves of a surrogate pair.
    pub mid_pair: bool,
}

/// Number of UTF-16 units that a byte accounts for: none, one or two.
#[inline]
const fn units_of(byte: u8) -> u8 {
    !is_continuation(byte) as u8 + (byte >= FOUR_BYTE_LEAD) as u8
}

/// Length in UTF-16 units.
#[inline]
#[must_use]
pub fn utf16_len(text: &[u8]) -> usize {
    let mut total = 0;
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    for group in blocks.chunks(BLOCKS_PER_SUM) {
        let mut lanes = [0_u8; BLOCK];
        for block in group {
            for (lane, &byte) in lanes.iter_mut().zip(block) {
                *lane += units_of(byte);
            }
        }
        total += lanes.iter().map(|&lane| usize::from(lane)).sum::<usize>();
    }
    total
        + rest
            .iter()
            .map(|&byte| usize::from(units_of(byte)))
            .sum::<usize>()
}

/// Finds a UTF-16 offset. Linear in the offset; offsets past the end give the
/// end.
#[inline]
#[must_use]
pub fn unit_offset_to_byte(text: &[u8], unit: usize) -> UnitPos {
    advance(text, 0, unit)
}

/// The position `units` units after the code point that starts at `byte`.
fn advance(text: &[u8], byte: usize, units: usize) -> UnitPos {
    let mut left = units;
    let mut at = byte;
    if left >= BLOCK {
        for block in text[at..].as_chunks::<BLOCK>().0 {
            let in_block: u8 = block.iter().map(|&byte| units_of(byte)).sum();
            if usize::from(in_block) > left {
                break;
            }
            left -= usize::from(in_block);
            at += BLOCK;
        }
    }
    while let Some(&lead) = text.get(at) {
        if !is_continuation(lead) {
            let width = usize::from(units_of(lead));
            if left < width {
                return UnitPos {
                    byte: at,
                    mid_pair: left == 1,
                };
            }
            left -= width;
        }
        at += 1;
    }
    UnitPos {
        byte: text.len(),
        mid_pair: false,
    }
}

/// The code unit at a UTF-16 offset; `None` past the end
/// (ECMA-262 §22.1.3.3).
#[inline]
#[must_use]
pub fn code_unit_at(text: &[u8], unit: usize) -> Option<u16> {
    let position = unit_offset_to_byte(text, unit);
    let (code_point, length) = decode(text, position.byte)?;
    if length < 4 {
        return Some(code_point as u16);
    }
    let (high, low) = surrogates_of(code_point);
    Some(if position.mid_pair { low } else { high })
}

/// The code point that starts at a UTF-16 offset, a low surrogate when the
/// offset splits a pair; `None` past the end (ECMA-262 §22.1.3.4).
#[inline]
#[must_use]
pub fn code_point_at(text: &[u8], unit: usize) -> Option<u32> {
    let position = unit_offset_to_byte(text, unit);
    let (code_point, _) = decode(text, position.byte)?;
    Some(if position.mid_pair {
        u32::from(surrogates_of(code_point).1)
    } else {
        code_point
    })
}

/// Positions of both ends of a slice in units; an end before the start counts
/// as the start.
pub(super) fn ends(text: &[u8], start: usize, end: usize) -> (UnitPos, UnitPos) {
    let from = unit_offset_to_byte(text, start);
    let extra = usize::from(from.mid_pair);
    (
        from,
        advance(text, from.byte, end.saturating_sub(start) + extra),
    )
}

/// The bytes of a slice in units (`start` to `end`, clamped to the text) if
/// neither end splits a surrogate pair: the slice can then be a view.
#[inline]
#[must_use]
pub fn slice_range_if_whole(text: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let (from, to) = ends(text, start, end);
    (!from.mid_pair && !to.mid_pair).then_some(from.byte..to.byte)
}

#[cfg(test)]
mod tests {
    use super::super::tests::samples;
    use super::*;

    #[test]
    fn units_agree_with_utf16() {
        for (wide, bytes) in samples() {
            for unit in 0..wide.len() + 2 {
                assert_eq!(code_unit_at(&bytes, unit), wide.get(unit).copied());
                let rest = wide.get(unit..).unwrap_or_default();
                let expected = char::decode_utf16(rest.iter().copied())
                    .next()
                    .map(|c| c.map_or_else(|e| u32::from(e.unpaired_surrogate()), u32::from));
                assert_eq!(code_point_at(&bytes, unit), expected, "{wide:X?} {unit}");
            }
        }
    }

    #[test]
    fn long_texts_cross_blocks() {
        let text = "abé€😀xyz".repeat(700);
        let wide: Vec<u16> = text.encode_utf16().collect();
        let bytes = text.as_bytes();
        assert_eq!(utf16_len(bytes), wide.len());
        for unit in 0..wide.len() + 40 {
            assert_eq!(code_unit_at(bytes, unit), wide.get(unit).copied(), "{unit}");
        }
        let emoji = "😀".repeat(5000);
        assert_eq!(utf16_len(emoji.as_bytes()), 10_000);
        assert_eq!(
            unit_offset_to_byte(emoji.as_bytes(), 77),
            UnitPos {
                byte: 38 * 4,
                mid_pair: true
            }
        );
    }

    #[test]
    fn views_need_whole_ends() {
        let text = "a😀b".as_bytes();
        assert_eq!(slice_range_if_whole(text, 0, 1), Some(0..1));
        assert_eq!(slice_range_if_whole(text, 1, 3), Some(1..5));
        assert_eq!(slice_range_if_whole(text, 1, 2), None);
        assert_eq!(slice_range_if_whole(text, 2, 4), None);
        assert_eq!(slice_range_if_whole(text, 3, 99), Some(5..6));
        assert_eq!(slice_range_if_whole(text, 3, 1), Some(5..5));
        assert_eq!(slice_range_if_whole(text, 9, 9), Some(6..6));
    }
}
