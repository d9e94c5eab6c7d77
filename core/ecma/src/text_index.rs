//! Index arguments of string and array methods: relative, clamped and swapped forms converted
//! to `usize` ranges.
//!
//! `ToNumber` has already run on all arguments; truncation (`ToIntegerOrInfinity`, ECMA-262
//! §7.1.5) happens here. Units are those of `len`: UTF-16 units for strings, elements for
//! arrays.

use crate::arith::to_integer_or_infinity;
use std::ops::Range;

/// An index that counts from the end when negative, clamped to `0..=len`
/// (`slice`, `splice`, `includes`, `fill`; ECMA-262 §22.1.3.22).
#[inline]
#[must_use]
pub fn clamp_relative(x: f64, len: usize) -> usize {
    let x = to_integer_or_infinity(x);
    if x < 0.0 {
        let from_end = len as f64 + x;
        if from_end > 0.0 { from_end as usize } else { 0 }
    } else {
        clamp(x, len)
    }
}

/// An index clamped to `0..=len`, negatives being zero (`substring`,
/// `indexOf`, `startsWith`; ECMA-262 §22.1.3.24).
#[inline]
#[must_use]
pub fn clamp(x: f64, len: usize) -> usize {
    let x = to_integer_or_infinity(x);
    if x <= 0.0 {
        0
    } else if x >= len as f64 {
        len
    } else {
        x as usize
    }
}

/// The element of `at(x)`, counted from the end if negative; `None` if it is out of range
/// (ECMA-262 §22.1.3.1, §23.1.3.1).
#[inline]
#[must_use]
pub fn at(x: f64, len: usize) -> Option<usize> {
    let x = to_integer_or_infinity(x);
    let index = if x < 0.0 { len as f64 + x } else { x };
    (index >= 0.0 && index < len as f64).then_some(index as usize)
}

/// The element of a plain index (`charAt`, `charCodeAt`); `None` if it is out of range
/// (ECMA-262 §22.1.3.2).
#[inline]
#[must_use]
pub fn position(x: f64, len: usize) -> Option<usize> {
    let x = to_integer_or_infinity(x);
    (x >= 0.0 && x < len as f64).then_some(x as usize)
}

/// The range of `slice(start, end)`; an absent `end` is the length. An empty
/// range starts at the clamped start (ECMA-262 §22.1.3.22).
#[inline]
#[must_use]
pub fn slice_range(start: f64, end: Option<f64>, len: usize) -> Range<usize> {
    let from = clamp_relative(start, len);
    let to = end.map_or(len, |end| clamp_relative(end, len));
    from..to.max(from)
}

/// The range of `substring(start, end)`: both clamped, swapped when out of
/// order (ECMA-262 §22.1.3.24).
#[inline]
#[must_use]
pub fn substring_range(start: f64, end: Option<f64>, len: usize) -> Range<usize> {
    let from = clamp(start, len);
    let to = end.map_or(len, |end| clamp(end, len));
    from.min(to)..from.max(to)
}

/// The range of `substr(start, length)` (ECMA-262 §B.2.2.1).
#[inline]
#[must_use]
pub fn substr_range(start: f64, length: Option<f64>, len: usize) -> Range<usize> {
    let from = clamp_relative(start, len);
    let room = len - from;
    let count = length.map_or(room, |length| clamp(length, room));
    from..from + count
}

/// The start of a backward search: `lastIndexOf` of a string, where `NaN`
/// means the end (ECMA-262 §22.1.3.11).
#[inline]
#[must_use]
pub fn last_start(x: f64, len: usize) -> usize {
    if x.is_nan() { len } else { clamp(x, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_indices_clamp() {
        assert_eq!(clamp_relative(-1.9, 5), 4);
        assert_eq!(clamp_relative(-9.0, 5), 0);
        assert_eq!(clamp_relative(9.0, 5), 5);
        assert_eq!(clamp_relative(f64::NAN, 5), 0);
        assert_eq!(clamp_relative(f64::NEG_INFINITY, 5), 0);
        assert_eq!(clamp_relative(f64::INFINITY, 5), 5);
        assert_eq!(clamp_relative(-0.0, 5), 0);
        assert_eq!(clamp_relative(-0.5, 5), 0);
    }

    #[test]
    fn ranges_follow_their_methods() {
        assert_eq!(slice_range(-3.0, Some(-1.0), 5), 2..4);
        assert_eq!(slice_range(4.0, Some(1.0), 5), 4..4);
        assert_eq!(slice_range(1.0, None, 5), 1..5);
        assert_eq!(substring_range(4.0, Some(1.0), 5), 1..4);
        assert_eq!(substring_range(-4.0, Some(f64::NAN), 5), 0..0);
        assert_eq!(substr_range(-3.0, Some(2.0), 5), 2..4);
        assert_eq!(substr_range(3.0, Some(f64::INFINITY), 5), 3..5);
        assert_eq!(substr_range(3.0, Some(-1.0), 5), 3..3);
    }

    #[test]
    fn single_positions() {
        assert_eq!(at(-1.0, 3), Some(2));
        assert_eq!(at(-4.0, 3), None);
        assert_eq!(at(-0.9, 3), Some(0));
        assert_eq!(at(3.0, 3), None);
        assert_eq!(at(f64::INFINITY, 3), None);
        assert_eq!(position(-1.0, 3), None);
        assert_eq!(position(f64::NAN, 3), Some(0));
        assert_eq!(last_start(f64::NAN, 3), 3);
        assert_eq!(last_start(-2.0, 3), 0);
    }
}
