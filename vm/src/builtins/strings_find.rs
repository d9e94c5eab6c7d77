//! Substring search in long texts, in pieces with yield points between them.
//!
//! A short needle is searched in overlapping windows. A long one uses the search of Knuth,
//! Morris and Pratt, which can stop anywhere.

use crate::heap::{Heap, Str};
use crate::native::{Cx, Fault};
use crate::pace::Clock;
use a99_ecma::wtf8::{self, UnitPos};

/// Possible starts of a needle per window.
const WINDOW: usize = 64 << 10;

/// Length in bytes above which needles are not searched in windows.
const LONG_NEEDLE: usize = 8 << 10;

/// How the search continues after a match.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Search for further, possibly overlapping, matches.
    Overlapping,
    /// Search after the match.
    Behind,
    Enough,
}

/// Calls `hit` with each position of a non-empty needle, in order.
///
/// # Errors
/// Memory; a stop.
pub(super) fn places<T: Copy + PartialEq>(
    heap: &Heap,
    clock: &mut Clock<'_>,
    text: &[T],
    needle: &[T],
    mut hit: impl FnMut(usize) -> Next,
) -> Result<(), Fault> {
    // border[i]: length of the longest border of needle[..=i].
    heap.check(needle.len().saturating_mul(size_of::<u32>()))?;
    let mut border: Vec<u32> = Vec::with_capacity(needle.len());
    let mut k = 0;
    for (i, unit) in needle.iter().enumerate() {
        clock.work(4)?;
        while i > 0 && k > 0 && *unit != needle[k] {
            k = border[k - 1] as usize;
        }
        k += usize::from(i > 0 && *unit == needle[k]);
        border.push(k as u32);
    }
    k = 0;
    for (i, unit) in text.iter().enumerate() {
        clock.work(2)?;
        while k > 0 && needle.get(k) != Some(unit) {
            k = border[k - 1] as usize;
        }
        k += usize::from(needle.get(k) == Some(unit));
        if k == needle.len() {
            match hit(i + 1 - k) {
                Next::Overlapping => {}
                Next::Behind => k = 0,
                Next::Enough => return Ok(()),
            }
        }
    }
    Ok(())
}

/// The first position of the needle at or after the byte `from`.
///
/// # Errors
/// Memory; a stop.
pub(super) fn find(
    cx: &mut Cx<'_>,
    s: Str,
    needle: Str,
    from: usize,
) -> Result<Option<usize>, Fault> {
    let (n, m) = (s.len_bytes(), needle.len_bytes());
    if from > n || m > n - from {
        return Ok(None);
    }
    if n - from <= WINDOW {
        return Ok(wtf8::find(cx.bytes(s), cx.bytes(needle), from));
    }
    if m > LONG_NEEDLE {
        let (heap, mut clock) = cx.split();
        let text = &heap.bytes(s)[from..];
        let mut found = None;
        places(heap, &mut clock, text, heap.bytes(needle), |at| {
            found = Some(from + at);
            Next::Enough
        })?;
        return Ok(found);
    }
    let mut at = from;
    loop {
        let end = n.min(at + WINDOW + m);
        let found = wtf8::find(&cx.bytes(s)[..end], cx.bytes(needle), at);
        if found.is_some() || end == n {
            return Ok(found);
        }
        cx.work((WINDOW / 4) as i64)?;
        at += WINDOW;
    }
}

/// The last position of the needle at or before the byte `last`.
///
/// # Errors
/// Memory; a stop.
pub(super) fn find_last(
    cx: &mut Cx<'_>,
    s: Str,
    needle: Str,
    last: usize,
) -> Result<Option<usize>, Fault> {
    let m = needle.len_bytes();
    let mut end = s.len_bytes().min(last.saturating_add(m));
    if m > end {
        return Ok(None);
    }
    if m > LONG_NEEDLE {
        let (heap, mut clock) = cx.split();
        let text = &heap.bytes(s)[..end];
        let mut found = None;
        places(heap, &mut clock, text, heap.bytes(needle), |at| {
            found = Some(at);
            Next::Overlapping
        })?;
        return Ok(found);
    }
    loop {
        let start = end.saturating_sub(WINDOW + m);
        let text = &cx.bytes(s)[start..end];
        let found = wtf8::rfind(text, cx.bytes(needle), text.len());
        if found.is_some() || start == 0 {
            return Ok(found.map(|at| start + at));
        }
        cx.work((WINDOW / 4) as i64)?;
        end -= WINDOW;
    }
}

/// The byte position of a UTF-16 offset in a text.
///
/// # Errors
/// A stop.
pub(super) fn unit_offset_to_byte(cx: &mut Cx<'_>, s: Str, unit: usize) -> Result<UnitPos, Fault> {
    let (mut at, mut left) = (0, unit);
    loop {
        let text = &cx.bytes(s)[at..];
        let mut end = text.len().min(WINDOW);
        while end < text.len() && text[end] & 0xC0 == 0x80 {
            end += 1;
        }
        let units = wtf8::utf16_len(&text[..end]);
        if units > left || end == text.len() {
            let found = wtf8::unit_offset_to_byte(text, left);
            return Ok(UnitPos {
                byte: at + found.byte,
                ..found
            });
        }
        left -= units;
        at += end;
        cx.work((WINDOW / 8) as i64)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::Bench;

    /// In pieces the same is found as at once.
    #[test]
    fn windows_lose_no_place() {
        let mut bench = Bench::default();
        let mut cx = bench.cx();
        let mut seed = 5_usize;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for (len, m) in [
            (200_000, 3),
            (300_000, 700),
            (300_000, 9_000),
            (200_000, 100_000),
        ] {
            let mut text: Vec<u8> = (0..len).map(|_| b'a' + next(2) as u8).collect();
            let at = WINDOW + next(len - WINDOW - m);
            text[at..at + m].fill(b'c');
            text[at + m - 1] = b'd';
            let needle: Vec<u8> = text[at..at + m].to_vec();
            let (s, needle) = (cx.heap.alloc_str(&text), cx.heap.alloc_str(&needle));
            let (s, needle) = (s.unwrap(), needle.unwrap());
            assert_eq!(find(&mut cx, s, needle, 0).unwrap(), Some(at));
            assert_eq!(find(&mut cx, s, needle, at).unwrap(), Some(at));
            assert_eq!(find(&mut cx, s, needle, at + 1).unwrap(), None);
            assert_eq!(find_last(&mut cx, s, needle, len).unwrap(), Some(at));
            assert_eq!(find_last(&mut cx, s, needle, at).unwrap(), Some(at));
            assert_eq!(find_last(&mut cx, s, needle, at - 1).unwrap(), None);
        }
        let text = "é😀a".repeat(40_000);
        let s = cx.heap.alloc_str(text.as_bytes()).unwrap();
        for unit in [0, 1, 2, 3, 4, 70_001, 130_002, 159_999, 160_000, 170_000] {
            assert_eq!(
                unit_offset_to_byte(&mut cx, s, unit).unwrap(),
                wtf8::unit_offset_to_byte(text.as_bytes(), unit),
                "{unit}"
            );
        }
    }
}
