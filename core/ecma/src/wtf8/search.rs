//! Search in linear time, by bytes and by UTF-16 units.
//!
//! WTF-8 is self-synchronizing: a needle matches only at code point borders. The exception is
//! a needle that begins with a low or ends with a high surrogate and so may match half of a
//! pair. The functions that count in units handle it; callers of the byte functions check
//! [`has_surrogate_edge`] first.

use super::position::unit_offset_to_byte;
use super::{ends_with_high, starts_with_low, units, utf16_len};
use memchr::memmem;

/// Byte offset of the first occurrence that starts at or after `from_byte`.
#[inline]
#[must_use]
pub fn find(haystack: &[u8], needle: &[u8], from_byte: usize) -> Option<usize> {
    let rest = haystack.get(from_byte..)?;
    memmem::find(rest, needle).map(|at| from_byte + at)
}

/// Byte offset of the last occurrence that starts at or before `last_byte`.
#[inline]
#[must_use]
pub fn rfind(haystack: &[u8], needle: &[u8], last_byte: usize) -> Option<usize> {
    let end = last_byte.saturating_add(needle.len()).min(haystack.len());
    memmem::rfind(&haystack[..end], needle)
}

/// Whether the needle may match half of a surrogate pair, so that a byte search could miss an
/// occurrence.
#[inline]
#[must_use]
pub fn has_surrogate_edge(needle: &[u8]) -> bool {
    starts_with_low(needle) || ends_with_high(needle)
}

/// `indexOf` in UTF-16 units: the first occurrence at or after `from`, which
/// is clamped to the length (ECMA-262 §22.1.3.9).
#[must_use]
pub fn index_of(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    if needle.is_empty() {
        return Some(from.min(utf16_len(haystack)));
    }
    if has_surrogate_edge(needle) {
        return unit_matches(haystack, needle, |at| at >= from).0;
    }
    let start = unit_offset_to_byte(haystack, from);
    // Within a pair: no whole code point starts before the next one, and a
    // match at the pair itself would start one unit too early.
    let from_byte = start.byte + if start.mid_pair { 4 } else { 0 };
    find(haystack, needle, from_byte).map(|at| utf16_len(&haystack[..at]))
}

/// `lastIndexOf` in UTF-16 units: the last occurrence at or before `last`
/// (ECMA-262 §22.1.3.11).
#[must_use]
pub fn last_index_of(haystack: &[u8], needle: &[u8], last: usize) -> Option<usize> {
    if needle.is_empty() {
        return Some(last.min(utf16_len(haystack)));
    }
    if has_surrogate_edge(needle) {
        return unit_matches(haystack, needle, |at| at <= last).1;
    }
    let last_byte = unit_offset_to_byte(haystack, last).byte;
    rfind(haystack, needle, last_byte).map(|at| utf16_len(&haystack[..at]))
}

/// First and last occurrence among the requested ones, by units (Knuth, Morris and Pratt).
fn unit_matches(
    haystack: &[u8],
    needle: &[u8],
    wanted: impl Fn(usize) -> bool,
) -> (Option<usize>, Option<usize>) {
    let needle: Vec<u16> = units(needle).collect();
    let borders = borders(&needle);
    let (mut first, mut last, mut matched) = (None, None, 0);
    for (index, unit) in units(haystack).enumerate() {
        while matched > 0 && needle.get(matched) != Some(&unit) {
            matched = borders[matched - 1];
        }
        if needle[matched] == unit {
            matched += 1;
        }
        if matched == needle.len() {
            let at = index + 1 - matched;
            if wanted(at) {
                first = first.or(Some(at));
                last = Some(at);
            }
        }
    }
    (first, last)
}

/// For each prefix of the needle, the length of its longest proper border.
fn borders(needle: &[u16]) -> Vec<usize> {
    let mut borders = vec![0; needle.len()];
    let mut length = 0;
    for index in 1..needle.len() {
        while length > 0 && needle[index] != needle[length] {
            length = borders[length - 1];
        }
        if needle[index] == needle[length] {
            length += 1;
        }
        borders[index] = length;
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::super::tests::samples;
    use super::*;

    fn naive(haystack: &[u16], needle: &[u16]) -> Vec<usize> {
        if needle.is_empty() {
            return (0..=haystack.len()).collect();
        }
        let windows = haystack.windows(needle.len()).enumerate();
        windows
            .filter(|(_, w)| *w == needle)
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn searches_agree_with_utf16() {
        let all = samples();
        for (wide, bytes) in all.iter().step_by(5) {
            for (wide_needle, needle) in all.iter().take(400) {
                let places = naive(wide, wide_needle);
                for from in 0..=wide.len() {
                    let first = places.iter().copied().find(|&at| at >= from);
                    let last = places.iter().copied().rfind(|&at| at <= from);
                    assert_eq!(
                        index_of(bytes, needle, from),
                        first,
                        "{wide:X?} {wide_needle:X?}"
                    );
                    assert_eq!(
                        last_index_of(bytes, needle, from),
                        last,
                        "{wide:X?} {wide_needle:X?}"
                    );
                }
            }
        }
    }

    #[test]
    fn byte_searches() {
        assert_eq!(find(b"abcabc", b"bc", 2), Some(4));
        assert_eq!(find(b"abc", b"", 3), Some(3));
        assert_eq!(find(b"abc", b"a", 9), None);
        assert_eq!(rfind(b"abcabc", b"abc", 2), Some(0));
        assert_eq!(rfind(b"abcabc", b"abc", usize::MAX), Some(3));
        assert_eq!(rfind(b"abc", b"", 1), Some(1));
        assert_eq!(index_of(b"abc", b"", 9), Some(3));
        assert_eq!(last_index_of(b"abc", b"c", usize::MAX), Some(2));
    }

    #[test]
    fn repetitive_needles_stay_linear() {
        let haystack = vec![b'a'; 2_000_000];
        let mut needle = vec![b'a'; 100_000];
        needle.push(b'b');
        assert_eq!(find(&haystack, &needle, 0), None);
        assert_eq!(rfind(&haystack, &needle, usize::MAX), None);
    }
}
