//! Strings as WTF-8 bytes, addressed in UTF-16 units (decision D36).
//!
//! WTF-8 is UTF-8 that may also contain lone surrogates in three-byte form. A surrogate pair
//! is always the one four-byte sequence of its code point, so equal strings have equal bytes.
//! Lengths and offsets that the language exposes are in UTF-16 units; names here say `byte`
//! for bytes.
//!
//! Finding a unit is linear in the string except for ASCII, in which units are bytes: callers
//! that index often should cache [`is_ascii`].

mod build;
mod compare;
mod iter;
mod position;
mod search;
mod space;

pub use build::{
    concat, from_utf16, needs_join, push_code_point, push_code_unit, slice_units, to_utf8_lossy,
    to_well_formed,
};
pub use compare::compare_utf16;
pub use iter::{CodePoints, Units, code_points, units};
pub use position::{
    UnitPos, code_point_at, code_unit_at, slice_range_if_whole, unit_offset_to_byte, utf16_len,
};
pub use search::{find, has_surrogate_edge, index_of, last_index_of, rfind};
pub use space::{trim, trim_end, trim_start};

/// First code unit of the high (leading) surrogates.
const HIGH_START: u32 = 0xD800;
/// First code unit of the low (trailing) surrogates.
const LOW_START: u32 = 0xDC00;
/// Last code unit of the low surrogates.
const LOW_END: u32 = 0xDFFF;
/// First code point that needs two UTF-16 units.
const SUPPLEMENTARY_START: u32 = 0x1_0000;
/// First byte of a four-byte sequence: a code point of two UTF-16 units.
const FOUR_BYTE_LEAD: u8 = 0xF0;
/// First byte of every encoded surrogate (and of U+D000 to U+D7FF).
const SURROGATE_LEAD: u8 = 0xED;
/// U+FFFD in UTF-8.
const REPLACEMENT: [u8; 3] = [0xEF, 0xBF, 0xBD];

/// Whether every unit is one byte.
#[inline]
#[must_use]
pub fn is_ascii(text: &[u8]) -> bool {
    text.is_ascii()
}

/// The text as UTF-8, if it has no lone surrogates.
#[inline]
#[must_use]
pub fn as_utf8(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok()
}

/// Whether there are no lone surrogates (ECMA-262 §22.1.3.10).
#[inline]
#[must_use]
pub fn is_well_formed(text: &[u8]) -> bool {
    as_utf8(text).is_some()
}

/// Whether the bytes are WTF-8: UTF-8 and lone surrogates, without an unjoined pair.
#[must_use]
pub fn validate(text: &[u8]) -> bool {
    let mut rest = text;
    let mut after_high = false;
    loop {
        let valid = match std::str::from_utf8(rest) {
            Ok(_) => return true,
            Err(error) => error.valid_up_to(),
        };
        after_high &= valid == 0;
        rest = &rest[valid..];
        match rest {
            [SURROGATE_LEAD, 0xA0..=0xAF, 0x80..=0xBF, tail @ ..] => {
                after_high = true;
                rest = tail;
            }
            [SURROGATE_LEAD, 0xB0..=0xBF, 0x80..=0xBF, tail @ ..] if !after_high => {
                rest = tail;
            }
            _ => return false,
        }
    }
}

/// Whether the byte continues a sequence.
#[inline]
const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// Whether a high surrogate in three-byte form ends the text.
#[inline]
fn ends_with_high(text: &[u8]) -> bool {
    matches!(text, [.., SURROGATE_LEAD, 0xA0..=0xAF, _])
}

/// Whether a low surrogate in three-byte form begins the text.
#[inline]
fn starts_with_low(text: &[u8]) -> bool {
    matches!(text, [SURROGATE_LEAD, 0xB0..=0xBF, _, ..])
}

/// The code point at a byte offset that starts a sequence, and the length of the sequence;
/// `None` at the end. Missing bytes count as zero bits.
#[inline]
pub(crate) fn decode(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let lead = *text.get(at)?;
    let tail = |index: usize| u32::from(text.get(at + index).copied().unwrap_or(0) & 0x3F);
    let (code_point, length) = match lead {
        0..=0xBF => (u32::from(lead), 1),
        0xC0..=0xDF => (u32::from(lead & 0x1F) << 6 | tail(1), 2),
        0xE0..=0xEF => (u32::from(lead & 0x0F) << 12 | tail(1) << 6 | tail(2), 3),
        _ => (
            u32::from(lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3),
            4,
        ),
    };
    Some((code_point, length.min(text.len() - at)))
}

/// The surrogates of a code point above U+FFFF.
#[inline]
const fn surrogates_of(code_point: u32) -> (u16, u16) {
    let offset = code_point.wrapping_sub(SUPPLEMENTARY_START);
    let high = HIGH_START + ((offset >> 10) & 0x3FF);
    let low = LOW_START + (offset & 0x3FF);
    (high as u16, low as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All strings of up to four of a few representative units, as UTF-16 and as WTF-8.
    pub(super) fn samples() -> Vec<(Vec<u16>, Vec<u8>)> {
        const UNITS: [u16; 7] = [0x61, 0xE9, 0x20AC, 0xFFFD, 0xD83D, 0xDE00, 0xDBFF];
        let mut all: Vec<Vec<u16>> = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..4 {
            let to = all.len();
            for index in from..to {
                for unit in UNITS {
                    let mut longer = all[index].clone();
                    longer.push(unit);
                    all.push(longer);
                }
            }
            from = to;
        }
        all.into_iter()
            .map(|units| (units.clone(), from_utf16(&units)))
            .collect()
    }

    #[test]
    fn conversions_keep_units() {
        for (wide, bytes) in samples() {
            assert!(validate(&bytes), "{wide:X?}");
            assert_eq!(units(&bytes).collect::<Vec<_>>(), wide);
            assert_eq!(utf16_len(&bytes), wide.len());
            assert_eq!(is_well_formed(&bytes), String::from_utf16(&wide).is_ok());
            assert_eq!(to_utf8_lossy(&bytes), String::from_utf16_lossy(&wide));
            assert_eq!(
                &*to_well_formed(&bytes),
                String::from_utf16_lossy(&wide).as_bytes()
            );
        }
    }

    #[test]
    fn validation_refuses_broken_bytes() {
        assert!(validate(b""));
        assert!(validate("aé€😀".as_bytes()));
        assert!(validate(&[0xED, 0xB8, 0x80, 0xED, 0xA0, 0xBD]));
        assert!(validate(&[0xED, 0xA0, 0xBD, b'x', 0xED, 0xB8, 0x80]));
        assert!(validate(&[0xED, 0xA0, 0xBD, 0xED, 0xA0, 0xBD]));
        let bad: [&[u8]; 7] = [
            &[0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80],
            &[0xED, 0xA0],
            &[0x80],
            &[0xC0, 0x80],
            &[0xF4, 0x90, 0x80, 0x80],
            &[0xE2, 0x82],
            &[0xFF],
        ];
        for bytes in bad {
            assert!(!validate(bytes), "{bytes:X?}");
        }
    }

    #[test]
    fn broken_bytes_never_panic() {
        let mut seed = 7_u64;
        for _ in 0..5000 {
            let mut bytes = Vec::new();
            for _ in 0..(seed >> 60) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push((seed >> 33) as u8 | 0x80);
            }
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let _ = validate(&bytes);
            let _ = to_utf8_lossy(&bytes);
            let _ = trim(&bytes);
            let _ = units(&bytes).count() + code_points(&bytes).count();
            let _ = compare_utf16(&bytes, &[0xED, 0xA0, 0xBD]);
            for unit in 0..bytes.len() + 2 {
                let _ = code_unit_at(&bytes, unit);
                let _ = code_point_at(&bytes, unit);
                let mut out = bytes.clone();
                slice_units(&bytes, unit / 2, unit, &mut out);
                let _ = index_of(&bytes, &[0xED, 0xB8, 0x80], unit);
            }
        }
    }
}
