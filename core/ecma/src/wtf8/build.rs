//! WTF-8 construction: appending units, code points and texts, slicing, repair.
//!
//! Every append keeps the invariant: a high surrogate followed by a low one becomes the
//! four-byte sequence of their code point.

use super::position::{UnitPos, ends};
use super::{
    HIGH_START, LOW_END, LOW_START, REPLACEMENT, SUPPLEMENTARY_START, SURROGATE_LEAD, decode,
    ends_with_high, starts_with_low, surrogates_of,
};
use std::borrow::Cow;

/// Whether a concatenation joins a surrogate pair at the border, so that the bytes may not
/// simply be concatenated.
#[inline]
#[must_use]
pub fn needs_join(a: &[u8], b: &[u8]) -> bool {
    starts_with_low(b) && ends_with_high(a)
}

/// Appends a text, joining surrogates across the border.
#[inline]
pub fn concat(out: &mut Vec<u8>, tail: &[u8]) {
    if needs_join(out, tail) {
        join(out, tail);
    } else {
        out.extend_from_slice(tail);
    }
}

#[cold]
fn join(out: &mut Vec<u8>, tail: &[u8]) {
    let border = out.len() - 3;
    if let (Some((high, _)), Some((low, length))) = (decode(out, border), decode(tail, 0)) {
        out.truncate(border);
        let code_point = SUPPLEMENTARY_START + ((high - HIGH_START) << 10) + (low - LOW_START);
        push_encoded(out, code_point);
        out.extend_from_slice(&tail[length..]);
    }
}

/// Appends one UTF-16 unit, joining a low surrogate to a high one before it.
#[inline]
pub fn push_code_unit(out: &mut Vec<u8>, unit: u16) {
    push_code_point(out, u32::from(unit));
}

/// Appends one code point; a surrogate counts as a unit, a value above
/// U+10FFFF as U+FFFD.
#[inline]
pub fn push_code_point(out: &mut Vec<u8>, code_point: u32) {
    if code_point < 0x80 {
        out.push(code_point as u8);
    } else if (LOW_START..=LOW_END).contains(&code_point) {
        concat(out, &three_bytes(code_point));
    } else {
        push_encoded(out, code_point);
    }
}

/// Appends a code point that does not join with the text before it.
fn push_encoded(out: &mut Vec<u8>, code_point: u32) {
    match char::from_u32(code_point) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None if code_point <= LOW_END => out.extend_from_slice(&three_bytes(code_point)),
        None => out.extend_from_slice(&REPLACEMENT),
    }
}

/// The three-byte form of U+0800 to U+FFFF.
const fn three_bytes(code_point: u32) -> [u8; 3] {
    [
        0xE0 | (code_point >> 12) as u8,
        0x80 | (code_point >> 6 & 0x3F) as u8,
        0x80 | (code_point & 0x3F) as u8,
    ]
}

/// The WTF-8 form of UTF-16 units.
#[must_use]
pub fn from_utf16(units: &[u16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(units.len());
    for decoded in char::decode_utf16(units.iter().copied()) {
        match decoded {
            Ok(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                out.extend_from_slice(&three_bytes(u32::from(lone.unpaired_surrogate())));
            }
        }
    }
    out
}

/// Appends the units from `start` to `end` (clamped to the text). An end that
/// splits a pair leaves a lone surrogate (ECMA-262 §6.1.4).
pub fn slice_units(text: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    if start >= end {
        return;
    }
    let (from, to) = ends(text, start, end);
    let mut body = from.byte;
    if let Some((code_point, length)) = split_code_point(text, from) {
        concat(out, &three_bytes(u32::from(surrogates_of(code_point).1)));
        body += length;
    }
    if let Some(middle) = text.get(body..to.byte) {
        concat(out, middle);
    }
    if let Some((code_point, _)) = split_code_point(text, to) {
        out.extend_from_slice(&three_bytes(u32::from(surrogates_of(code_point).0)));
    }
}

fn split_code_point(text: &[u8], position: UnitPos) -> Option<(u32, usize)> {
    if position.mid_pair {
        decode(text, position.byte)
    } else {
        None
    }
}

/// The text with every lone surrogate replaced by U+FFFD
/// (ECMA-262 §22.1.3.31).
#[must_use]
pub fn to_well_formed(text: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let mut repaired = text.to_vec();
    for at in memchr::memchr_iter(SURROGATE_LEAD, text) {
        if let [_, 0xA0..=0xBF, _, ..] = text[at..] {
            repaired[at..at + 3].copy_from_slice(&REPLACEMENT);
        }
    }
    Cow::Owned(repaired)
}

/// Converts text at the engine's boundary: UTF-8 with U+FFFD for lone surrogates (decision
/// D36).
#[must_use]
pub fn to_utf8_lossy(text: &[u8]) -> Cow<'_, str> {
    match to_well_formed(text) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
            Ok(string) => string,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::samples;
    use super::super::validate;
    use super::*;

    #[test]
    fn slices_agree_with_utf16() {
        for (wide, bytes) in samples() {
            for start in 0..=wide.len() {
                for end in start..=wide.len() + 1 {
                    let expected = from_utf16(&wide[start..end.min(wide.len())]);
                    let mut out = Vec::new();
                    slice_units(&bytes, start, end, &mut out);
                    assert_eq!(out, expected, "{wide:X?} {start}..{end}");
                }
            }
        }
    }

    #[test]
    fn every_cut_joins_again() {
        for (wide, bytes) in samples() {
            for cut in 0..=wide.len() {
                let mut left = from_utf16(&wide[..cut]);
                let right = from_utf16(&wide[cut..]);
                assert_eq!(
                    needs_join(&left, &right),
                    left.len() + right.len() != bytes.len()
                );
                concat(&mut left, &right);
                assert_eq!(left, bytes);

                let mut sliced = Vec::new();
                slice_units(&bytes, 0, cut, &mut sliced);
                slice_units(&bytes, cut, wide.len(), &mut sliced);
                assert_eq!(sliced, bytes);
            }
            let mut pushed = Vec::new();
            wide.iter()
                .for_each(|&unit| push_code_unit(&mut pushed, unit));
            assert_eq!(pushed, bytes);
        }
    }

    #[test]
    fn code_points_are_encoded() {
        let mut out = Vec::new();
        for code_point in [0x41, 0xE9, 0x20AC, 0x1F600, 0xD83D, 0xDE00, 0x11_0000] {
            push_code_point(&mut out, code_point);
        }
        assert_eq!(out, "Aé€😀😀\u{FFFD}".as_bytes());
        assert!(validate(&out));
    }
}
