//! The live text of a heap, and its new offsets.
//!
//! Live values view ranges of text. A small number of ranges is kept and sorted. A heap can
//! hold millions of short texts, whose ranges would take more memory than the text: beyond
//! [`FEW`] ranges, a bitmap marks live bytes.

use super::Str;
use super::pieces::{PIECE, copy_down, sort_by_key};
use crate::pace::{StopReason, Watch};

/// Maximum number of ranges kept as a list.
const FEW: usize = 128 << 10;

/// Bytes of text per bitmap word, one bit each.
const WORD: usize = 64;

/// Bitmap words between two counts of live bytes.
const STEP: usize = 8;

/// Number of recently found texts to remember: a field of many objects often has one of a few
/// texts, which must be sorted only once.
const RECENT: usize = 64;

/// `(old start, old end, new start)` of moved text.
pub(super) type Range = (u32, u32, u32);

/// The live text found so far.
#[derive(Debug)]
pub(super) struct LiveText {
    ranges: Vec<(u32, u32)>,
    /// Recently found ranges, indexed by their start modulo [`RECENT`].
    recent: [(u32, u32); RECENT],
    bits: Vec<u64>,
    /// Bytes of text in the heap.
    bytes: usize,
    /// Number of ranges found.
    pub(super) found: usize,
}

impl Default for LiveText {
    fn default() -> LiveText {
        LiveText::new(0)
    }
}

impl LiveText {
    pub(super) fn new(bytes: usize) -> LiveText {
        LiveText {
            ranges: Vec::new(),
            recent: [(0, 0); RECENT],
            bits: Vec::new(),
            bytes,
            found: 0,
        }
    }

    /// Marks the text that a live value views.
    #[inline]
    pub(super) fn add(&mut self, s: Str, watch: &mut Watch<'_>) -> Result<(), StopReason> {
        self.found += 1;
        let range = (s.offset(), s.offset() + s.len_bytes() as u32);
        let recent = &mut self.recent[s.offset() as usize % RECENT];
        if *recent == range {
            return Ok(());
        }
        *recent = range;
        if self.ranges.len() == FEW {
            self.mark(watch)?;
        }
        self.ranges.push(range);
        Ok(())
    }

    /// Converts the ranges found so far to the bitmap.
    #[cold]
    fn mark(&mut self, watch: &mut Watch<'_>) -> Result<(), StopReason> {
        if self.bits.is_empty() {
            self.bits = vec![0; self.bytes.div_ceil(WORD)];
        }
        for (start, end, _) in union(&mut self.ranges, watch)? {
            let (mut at, end) = (start as usize, end as usize);
            while at < end {
                // Whole words except the first and the last of a piece.
                let stop = end.min(at + PIECE * WORD);
                watch.work(4 + (stop - at) / WORD)?;
                while at < stop {
                    let (word, bit) = (at / WORD, at % WORD);
                    let n = (WORD - bit).min(stop - at);
                    self.bits[word] |= (u64::MAX >> (WORD - n)) << bit;
                    at += n;
                }
            }
        }
        self.ranges.clear();
        Ok(())
    }

    /// The new offsets of live text, which slides together in order.
    pub(super) fn into_map(mut self, watch: &mut Watch<'_>) -> Result<TextMap, StopReason> {
        if self.bits.is_empty() {
            return Ok(TextMap::Ranges(union(&mut self.ranges, watch)?));
        }
        self.mark(watch)?;
        self.ranges = Vec::new();
        let mut live = 0u32;
        let mut counts = Vec::with_capacity(self.bits.len().div_ceil(STEP));
        for words in self.bits.chunks(STEP) {
            watch.work(STEP)?;
            counts.push(live);
            live += words.iter().map(|word| word.count_ones()).sum::<u32>();
        }
        Ok(TextMap::Bits {
            bits: self.bits,
            counts,
        })
    }
}

/// Merges ranges to their union, in order.
fn union(ranges: &mut Vec<(u32, u32)>, watch: &mut Watch<'_>) -> Result<Vec<Range>, StopReason> {
    // Values mostly view text in allocation order: an adaptive sort is several times as fast
    // as one that is not.
    sort_by_key(ranges, |range| *range, watch)?;
    let mut map: Vec<Range> = Vec::new();
    for part in ranges.chunks(PIECE) {
        watch.work(part.len() * 4)?;
        for &(start, end) in part {
            match map.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => map.push((start, end, 0)),
            }
        }
    }
    Ok(map)
}

/// New offsets of live text.
#[derive(Debug)]
pub(super) enum TextMap {
    /// Sorted ranges.
    Ranges(Vec<Range>),
    /// One bit per byte, and the number of live bytes before every [`STEP`]th word.
    Bits { bits: Vec<u64>, counts: Vec<u32> },
}

impl TextMap {
    /// Slides live text together.
    pub(super) fn slide(
        &mut self,
        bytes: &mut Vec<u8>,
        watch: &mut Watch<'_>,
    ) -> Result<(), StopReason> {
        let mut at = 0usize;
        let mut slide = |start: usize, end: usize| {
            watch.work(8)?;
            copy_down(bytes, start..end, at, watch)?;
            let new = at;
            at += end - start;
            Ok(new as u32)
        };
        match self {
            TextMap::Ranges(ranges) => {
                for (start, end, new) in ranges {
                    *new = slide(*start as usize, *end as usize)?;
                }
            }
            TextMap::Bits { bits, .. } => {
                let mut from = 0;
                while let Some((start, end)) = run(bits, from) {
                    slide(start, end)?;
                    from = end;
                }
            }
        }
        bytes.truncate(at);
        Ok(())
    }

    /// Number of live bytes before this one.
    fn before(bits: &[u64], counts: &[u32], byte: usize) -> u32 {
        let (word, bit) = (byte / WORD, byte % WORD);
        let first = word / STEP * STEP;
        let words = bits[first..word].iter().map(|word| word.count_ones());
        let part = bits.get(word).map_or(0, |word| word & ((1 << bit) - 1));
        counts[word / STEP] + words.sum::<u32>() + part.count_ones()
    }

    /// The live range that contains a byte.
    pub(super) fn around(&self, byte: u32) -> Option<Range> {
        match self {
            TextMap::Ranges(ranges) => {
                let at = ranges.partition_point(|r| r.1 <= byte);
                ranges.get(at).copied().filter(|r| r.0 <= byte)
            }
            TextMap::Bits { bits, counts } => {
                let at = byte as usize;
                let (start, end) = run(bits, at)?;
                let new = Self::before(bits, counts, at);
                // No caller needs the part before this byte.
                (start == at).then_some((byte, end as u32, new))
            }
        }
    }

    /// A text at its new offset.
    #[inline]
    pub(super) fn moved(&self, s: Str) -> Str {
        if s.is_static() {
            return s;
        }
        let new = match self {
            TextMap::Ranges(ranges) => {
                let at = ranges.partition_point(|r| r.1 <= s.offset());
                let (start, _, new) = ranges[at];
                new + (s.offset() - start)
            }
            TextMap::Bits { bits, counts } => Self::before(bits, counts, s.offset() as usize),
        };
        Str::in_heap(new, s.len_bytes() as u32, s.units() as u32)
    }
}

/// The first run of live bytes at or after an offset.
fn run(bits: &[u64], from: usize) -> Option<(usize, usize)> {
    let start = find(bits, from, 0)?;
    let end = find(bits, start, u64::MAX).unwrap_or(bits.len() * WORD);
    Some((start, end))
}

/// The first byte at or after `from` whose bit differs from those of `other`.
fn find(bits: &[u64], from: usize, other: u64) -> Option<usize> {
    let mut word = from / WORD;
    let mut left = (bits.get(word)? ^ other) & (u64::MAX << (from % WORD));
    while left == 0 {
        word += 1;
        left = bits.get(word)? ^ other;
    }
    Some(word * WORD + left.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::Still;

    /// Both forms say the same of the same ranges.
    #[test]
    fn bits_and_ranges_agree() {
        const BYTES: u32 = 4_000;
        let mut watch = Watch::new(&Still);
        let watch = &mut watch;
        let text: Vec<u8> = (0..BYTES).map(|n| n as u8).collect();
        let mut state = 7u32;
        let mut next = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for ranges in [1, 10, 100] {
            let mut few = LiveText::new(text.len());
            for _ in 0..ranges {
                let start = next(BYTES - 100);
                few.add(Str::in_heap(start, 1 + next(99), 1), watch)
                    .unwrap();
            }
            let views = few.ranges.clone();
            let mut many = LiveText::new(text.len());
            many.ranges.clone_from(&views);
            many.mark(watch).unwrap();
            let (mut few, mut many) = (few.into_map(watch).unwrap(), many.into_map(watch).unwrap());
            let (mut a, mut b) = (text.clone(), text.clone());
            few.slide(&mut a, watch).unwrap();
            many.slide(&mut b, watch).unwrap();
            assert_eq!(a, b);
            for (start, end) in views {
                let s = Str::in_heap(start, end - start, 1);
                let (x, y) = (few.moved(s), many.moved(s));
                assert_eq!(x, y);
                let new = x.offset() as usize;
                let old = &text[start as usize..end as usize];
                assert_eq!(&a[new..new + old.len()], old);
                let (at, last, new) = few.around(start).unwrap();
                let (first, end, there) = many.around(start).unwrap();
                assert_eq!((first, end, there), (start, last, new + (start - at)));
            }
            assert_eq!(few.around(BYTES - 1), many.around(BYTES - 1));
        }
    }
}
