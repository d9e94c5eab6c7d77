//! Text of the engine: immutable WTF-8 bytes (decision D36).
//!
//! WTF-8 is UTF-8 that may also contain lone surrogates, each encoded as three bytes (`ED A0..BF
//! 80..BF`). It is closed under every string operation of a guest program, while well-formed text
//! stays plain UTF-8 and needs no conversion. A surrogate *pair* is always one four-byte sequence.
//!
//! This module has the shared, cheaply cloned string type, concatenation that joins surrogates,
//! lossy conversions for text that leaves the engine, and escaping for terminals. Counting UTF-16
//! units, slicing and searching are elsewhere.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

/// An immutable WTF-8 string; clones share the bytes (decision D36).
///
/// Ordering is by bytes, which is code-point order, unlike the UTF-16 order of guest comparisons.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(Arc<[u8]>);

impl Text {
    /// Wraps WTF-8 bytes.
    ///
    /// Invariant: `bytes` is UTF-8 except for lone surrogates encoded as three bytes, and a high
    /// surrogate is never directly followed by a low one. Other bytes cause no unsafety: they are
    /// shown as U+FFFD.
    #[must_use]
    pub fn from_wtf8(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }

    /// Copies WTF-8 bytes once, with the invariant of [`from_wtf8`](Self::from_wtf8).
    #[must_use]
    pub fn copy_wtf8(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// The WTF-8 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text as `&str`; `None` if it holds a lone surrogate.
    #[must_use]
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text as UTF-8, where lone surrogates become U+FFFD (decision D36).
    #[must_use]
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        wtf8_to_string_lossy(&self.0)
    }

    /// True if the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Length in WTF-8 bytes, not in UTF-16 units.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.0.len()
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from("")
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_string_lossy())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for run in self.0.split_inclusive(|b| matches!(b, b'"' | b'\\')) {
            let (body, last) = match run.split_last() {
                Some((&last @ (b'"' | b'\\'), body)) => (body, Some(last)),
                _ => (run, None),
            };
            f.write_str(&escape_for_terminal(&wtf8_to_string_lossy(body)))?;
            if let Some(last) = last {
                write!(f, "\\{}", char::from(last))?;
            }
        }
        f.write_str("\"")
    }
}

impl From<&str> for Text {
    fn from(s: &str) -> Self {
        Self(s.as_bytes().into())
    }
}

impl From<String> for Text {
    fn from(s: String) -> Self {
        Self(s.into_bytes().into())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl serde::Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string_lossy())
    }
}

impl<'de> serde::Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

/// Compares two usually short names for equality: a few words are compared inline, without a call.
#[must_use]
#[inline]
pub fn same_name(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // The first and the last word cover all names of up to twice their length.
    if let (Some(first), Some(other)) = (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        return first == other
            && a.last_chunk::<8>() == b.last_chunk::<8>()
            && (a.len() <= 16 || a == b);
    }
    if let (Some(first), Some(other)) = (a.first_chunk::<4>(), b.first_chunk::<4>()) {
        return first == other && a.last_chunk::<4>() == b.last_chunk::<4>();
    }
    a.first() == b.first() && a.get(1) == b.get(1) && a.last() == b.last()
}

/// Converts WTF-8 to UTF-8; each lone surrogate and each other ill-formed sequence becomes one
/// U+FFFD (decision D36). Borrows if nothing changes.
#[must_use]
pub fn wtf8_to_string_lossy(bytes: &[u8]) -> Cow<'_, str> {
    let mut rest = match std::str::from_utf8(bytes) {
        Ok(s) => return Cow::Borrowed(s),
        Err(_) => bytes,
    };
    let mut out = String::with_capacity(bytes.len());
    while !rest.is_empty() {
        match std::str::from_utf8(rest) {
            Ok(s) => {
                out.push_str(s);
                break;
            }
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                // The prefix is valid by construction of the error.
                out.push_str(std::str::from_utf8(good).unwrap_or_default());
                out.push(char::REPLACEMENT_CHARACTER);
                let skip = match surrogate_at(bad) {
                    Some(_) => 3,
                    None => error.error_len().unwrap_or(bad.len()),
                };
                rest = &bad[skip..];
            }
        }
    }
    Cow::Owned(out)
}

/// The surrogate code unit whose three-byte form starts `bytes`.
#[must_use]
pub fn surrogate_at(bytes: &[u8]) -> Option<u16> {
    match *bytes {
        [0xED, b @ 0xA0..=0xBF, c @ 0x80..=0xBF, ..] => {
            Some(0xD000 | (u16::from(b & 0x3F) << 6) | u16::from(c & 0x3F))
        }
        _ => None,
    }
}

/// Appends WTF-8 to WTF-8. A high surrogate at the end of `out` and a low one at the start of
/// `tail` become one four-byte sequence (decision D36).
pub fn push_wtf8(out: &mut Vec<u8>, tail: &[u8]) {
    if let Some(low @ 0xDC00..=0xDFFF) = surrogate_at(tail)
        && let Some(at) = out.len().checked_sub(3)
        && let Some(high @ 0xD800..=0xDBFF) = surrogate_at(&out[at..])
    {
        out.truncate(at);
        push_code_point(out, join_surrogates(high, low));
        out.extend_from_slice(&tail[3..]);
    } else {
        out.extend_from_slice(tail);
    }
}

/// The code point of a surrogate pair (ECMA-262 §11.1.3).
#[must_use]
pub fn join_surrogates(high: u16, low: u16) -> u32 {
    0x1_0000 + ((u32::from(high & 0x3FF) << 10) | u32::from(low & 0x3FF))
}

/// Appends one code point as WTF-8 (generalised UTF-8); a value above
/// U+10FFFF becomes U+FFFD. Does not join surrogates.
pub fn push_code_point(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None if (0xD800..=0xDFFF).contains(&code) => out.extend_from_slice(&[
            0xED,
            // Each cast keeps six bits and a marker, which fit.
            0x80 | ((code >> 6) & 0x3F) as u8,
            0x80 | (code & 0x3F) as u8,
        ]),
        None => out.extend_from_slice("\u{FFFD}".as_bytes()),
    }
}

/// Escapes text for a terminal: control, bidirectional and zero-width characters become `\u{..}`
/// (security E18, P05). All other characters stay, including quotes and backslashes.
#[must_use]
pub fn escape_for_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// True if a character is invisible or changes the display of its neighbours: controls,
/// bidirectional marks, zero-width and tag characters, line separators, invisible relatives of
/// variation selectors, and the BOM.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{00AD}'
                | '\u{034F}'
                | '\u{061C}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_bytes_are() {
        for len in 0..40 {
            let name: Vec<u8> = (0..len).map(|at| b'a' + at % 26).collect();
            assert!(same_name(&name, &name.clone()));
            for at in 0..name.len() {
                let mut other = name.clone();
                other[at] = b'-';
                assert!(!same_name(&name, &other), "{len} {at}");
                assert!(!same_name(&name, &name[..at]), "{len} {at}");
            }
        }
    }

    #[test]
    fn lone_surrogates_are_lossy_and_not_str() {
        let text = Text::from_wtf8(b"a\xED\xA0\x80b\xED\xBF\xBF".to_vec());
        assert_eq!(text.to_str(), None);
        assert_eq!(text.to_string_lossy(), "a\u{FFFD}b\u{FFFD}");
        assert_eq!(text.to_string(), "a\u{FFFD}b\u{FFFD}");
        assert_eq!(text.len_bytes(), 8);
    }

    #[test]
    fn ill_formed_bytes_do_not_panic() {
        for bytes in [
            &b"\xFF"[..],
            b"\xE2\x82",
            b"\xED",
            b"\xED\xA0",
            b"\xC0\x80x",
        ] {
            let text = Text::from_wtf8(bytes.to_vec());
            assert!(text.to_string_lossy().contains('\u{FFFD}'));
            assert!(!format!("{text:?}").is_empty());
        }
    }

    #[test]
    fn concatenation_joins_a_pair() {
        let mut out = b"x\xED\xA0\xBD".to_vec();
        push_wtf8(&mut out, b"\xED\xB8\x80y");
        assert_eq!(std::str::from_utf8(&out), Ok("x\u{1F600}y"));
        let mut out = b"\xED\xB8\x80".to_vec();
        push_wtf8(&mut out, b"\xED\xA0\xBD");
        assert_eq!(out, b"\xED\xB8\x80\xED\xA0\xBD");
    }

    #[test]
    fn code_points() {
        let mut out = Vec::new();
        for code in [0x41, 0xD800, 0xDFFF, 0x1F600, 0x11_0000] {
            push_code_point(&mut out, code);
        }
        assert_eq!(
            out,
            b"A\xED\xA0\x80\xED\xBF\xBF\xF0\x9F\x98\x80\xEF\xBF\xBD"
        );
        assert_eq!(surrogate_at(&out[1..]), Some(0xD800));
        assert_eq!(surrogate_at(b"\xED\x9F\xBF"), None);
    }

    #[test]
    fn debug_and_terminal_escapes() {
        let text = Text::from("q\"\\\u{1b}[31m\u{202e}\u{200b}\n\u{e9}");
        assert_eq!(
            format!("{text:?}"),
            "\"q\\\"\\\\\\u{1b}[31m\\u{202e}\\u{200b}\\u{a}\u{e9}\""
        );
        assert_eq!(escape_for_terminal("a\u{7}b\"\\"), "a\\u{7}b\"\\");
        assert_eq!(format!("{:?}", Text::from("x\"")), "\"x\\\"\"");
    }

    #[test]
    fn equality_and_serde() {
        let text = Text::from(String::from("ab"));
        assert!(text == "ab" && text == *"ab" && !text.is_empty());
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"ab\"");
        assert_eq!(serde_json::from_str::<Text>("\"ab\"").unwrap(), text);
        assert!(Text::default().is_empty());
        assert_eq!(size_of::<Text>(), 16);
    }
}
