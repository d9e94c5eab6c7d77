//! Ranges of a text or of code: validity of text ranges, and the first of several overlapping
//! ranges that contains a number.

use crate::program::TextRange;
use crate::text::surrogate_at;

/// Bytes of a surrogate in WTF-8.
const SURROGATE_BYTES: usize = 3;

/// Index of a text that checks ranges in logarithmic time, for any number of overlapping ranges.
pub(super) struct TextIndex {
    /// Positions where a high surrogate is directly followed by a low one. Two texts may meet like
    /// that; inside one text it is ill-formed (D36).
    pairs: Vec<usize>,
}

impl TextIndex {
    /// Indexes the text; `None` if it is not UTF-8 with surrogates.
    pub(super) fn new(text: &[u8]) -> Option<TextIndex> {
        let mut pairs = Vec::new();
        let mut after_high = usize::MAX;
        let mut at = 0;
        while let Err(error) = std::str::from_utf8(&text[at..]) {
            at += error.valid_up_to();
            let unit = surrogate_at(&text[at..])?;
            if unit >= 0xDC00 && at == after_high {
                pairs.push(at - SURROGATE_BYTES);
            }
            at += SURROGATE_BYTES;
            if unit < 0xDC00 {
                after_high = at;
            }
        }
        Some(TextIndex { pairs })
    }

    /// True if the range is in bounds, begins and ends between characters, and is WTF-8 by itself.
    pub(super) fn holds(&self, text: &[u8], r: TextRange) -> bool {
        let (start, end) = (r.start as usize, r.end as usize);
        let between = |at: usize| text.get(at).is_none_or(|b| b & 0xC0 != 0x80);
        if start > end || end > text.len() || !between(start) || !between(end) {
            return false;
        }
        let next = self.pairs.partition_point(|pair| *pair < start);
        self.pairs
            .get(next)
            .is_none_or(|pair| pair + 2 * SURROGATE_BYTES > end)
    }
}

/// For each of `len` numbers the first range of the list that contains it, or `u32::MAX`.
/// Near-linear for any overlap. Ranges must be inside `len`.
pub(super) fn first_holder(len: usize, ranges: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut holder = vec![u32::MAX; len];
    // `skip[i]` leads to the first number from `i` on without a range.
    let mut skip: Vec<usize> = (0..=len).collect();
    for (number, (start, end)) in (0u32..).zip(ranges) {
        let end = (end as usize).min(len);
        let mut at = free_from(&mut skip, (start as usize).min(len));
        while at < end {
            holder[at] = number;
            skip[at] = at + 1;
            at = free_from(&mut skip, at);
        }
    }
    holder
}

/// Follows and halves the path to the first free number.
fn free_from(skip: &mut [usize], mut at: usize) -> usize {
    while skip[at] != at {
        skip[at] = skip[skip[at]];
        at = skip[at];
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &[u8], start: u32, end: u32) -> Option<bool> {
        TextIndex::new(text).map(|index| index.holds(text, TextRange { start, end }))
    }

    #[test]
    fn ranges_lie_between_characters() {
        let text = "a\u{e9}b".as_bytes();
        assert_eq!(holds(text, 0, 4), Some(true));
        assert_eq!(holds(text, 4, 4), Some(true));
        assert_eq!(holds(text, 0, 2), Some(false));
        assert_eq!(holds(text, 2, 4), Some(false));
        assert_eq!(holds(text, 3, 5), Some(false));
        assert_eq!(holds(text, 3, 1), Some(false));
    }

    #[test]
    fn surrogates_stay_alone() {
        let text = b"x\xED\xA0\xBD\xED\xB8\x80y\xED\xB8\x80\xED\xA0\xBD";
        assert_eq!(holds(text, 0, 4), Some(true));
        assert_eq!(holds(text, 4, 8), Some(true));
        assert_eq!(holds(text, 0, 7), Some(false));
        assert_eq!(holds(text, 1, 14), Some(false));
        assert_eq!(holds(text, 7, 14), Some(true));
        assert_eq!(holds(b"\xED\xA0", 0, 0), None);
        assert_eq!(holds(b"\xC0\x80", 0, 0), None);
        assert_eq!(holds(b"\xFF", 0, 0), None);
    }

    #[test]
    fn the_first_range_wins() {
        const NONE: u32 = u32::MAX;
        let ranges = [(2, 4), (1, 6), (0, 3), (5, 90)];
        assert_eq!(
            first_holder(8, ranges.into_iter()),
            [2, 1, 0, 0, 1, 1, 3, 3]
        );
        assert_eq!(first_holder(2, [(1, 1)].into_iter()), [NONE, NONE]);
        assert!(first_holder(0, [(0, 1)].into_iter()).is_empty());
    }
}
