//! `encodeURI`, `encodeURIComponent` and their inverses (ECMA-262 §19.2.6).

use crate::tick::{PIECE, Tick, piece_end, whole};
use crate::wtf8::is_well_formed;
use std::borrow::Cow;

/// Characters that `encodeURI` does not escape and `decodeURI` does not unescape.
const RESERVED: &[u8] = b";/?:@&=+$,#";

/// Marks that are never escaped, in addition to letters and digits.
const MARKS: &[u8] = b"-_.!~*'()";

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// A JavaScript `URIError` with the message of JavaScriptCore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriError {
    /// The text to encode has a lone surrogate.
    LoneSurrogate,
    /// The text to decode has an invalid escape, or escapes that are not UTF-8.
    Malformed,
}

impl UriError {
    /// The message, without the name of the error class.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::LoneSurrogate => "String contained an illegal UTF-16 sequence.",
            Self::Malformed => "URI error",
        }
    }
}

impl std::fmt::Display for UriError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for UriError {}

/// `encodeURI` (ECMA-262 §19.2.6.3).
///
/// # Errors
/// [`UriError::LoneSurrogate`].
pub fn encode_uri(text: &[u8]) -> Result<Vec<u8>, UriError> {
    whole(encode_uri_with(text, &mut |_| Ok(())))
}

/// [`encode_uri`] for possibly long text.
///
/// # Errors
/// Those of `tick`.
pub fn encode_uri_with<E>(
    text: &[u8],
    tick: &mut impl Tick<E>,
) -> Result<Result<Vec<u8>, UriError>, E> {
    encode(text, tick, |byte| {
        is_unescaped(byte) || RESERVED.contains(&byte)
    })
}

/// `encodeURIComponent` (ECMA-262 §19.2.6.4).
///
/// # Errors
/// [`UriError::LoneSurrogate`].
pub fn encode_uri_component(text: &[u8]) -> Result<Vec<u8>, UriError> {
    whole(encode_uri_component_with(text, &mut |_| Ok(())))
}

/// [`encode_uri_component`] for possibly long text.
///
/// # Errors
/// Those of `tick`.
pub fn encode_uri_component_with<E>(
    text: &[u8],
    tick: &mut impl Tick<E>,
) -> Result<Result<Vec<u8>, UriError>, E> {
    encode(text, tick, is_unescaped)
}

/// `decodeURI` (ECMA-262 §19.2.6.1): escapes of reserved characters are kept.
///
/// # Errors
/// [`UriError::Malformed`].
pub fn decode_uri(text: &[u8]) -> Result<Cow<'_, [u8]>, UriError> {
    whole(decode_uri_with(text, &mut |_| Ok(())))
}

/// [`decode_uri`] for possibly long text.
///
/// # Errors
/// Those of `tick`.
pub fn decode_uri_with<'a, E>(
    text: &'a [u8],
    tick: &mut impl Tick<E>,
) -> Result<Result<Cow<'a, [u8]>, UriError>, E> {
    decode(text, tick, RESERVED)
}

/// `decodeURIComponent` (ECMA-262 §19.2.6.2).
///
/// # Errors
/// [`UriError::Malformed`].
pub fn decode_uri_component(text: &[u8]) -> Result<Cow<'_, [u8]>, UriError> {
    whole(decode_uri_component_with(text, &mut |_| Ok(())))
}

/// [`decode_uri_component`] for possibly long text.
///
/// # Errors
/// Those of `tick`.
pub fn decode_uri_component_with<'a, E>(
    text: &'a [u8],
    tick: &mut impl Tick<E>,
) -> Result<Result<Cow<'a, [u8]>, UriError>, E> {
    decode(text, tick, b"")
}

fn is_unescaped(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || MARKS.contains(&byte)
}

fn encode<E>(
    text: &[u8],
    tick: &mut impl Tick<E>,
    keep: impl Fn(u8) -> bool,
) -> Result<Result<Vec<u8>, UriError>, E> {
    let mut size = 0;
    let mut at = 0;
    while at < text.len() {
        let part = &text[at..piece_end(text, at)];
        tick(part.len())?;
        if !is_well_formed(part) {
            return Ok(Err(UriError::LoneSurrogate));
        }
        size += part
            .iter()
            .map(|b| if keep(*b) { 1 } else { 3 })
            .sum::<usize>();
        at += part.len();
    }
    let mut out = Vec::with_capacity(size);
    for part in text.chunks(PIECE) {
        tick(part.len())?;
        for &byte in part {
            if keep(byte) {
                out.push(byte);
            } else {
                out.extend_from_slice(&[
                    b'%',
                    HEX[usize::from(byte >> 4)],
                    HEX[usize::from(byte & 0xF)],
                ]);
            }
        }
    }
    Ok(Ok(out))
}

fn decode<'a, E>(
    text: &'a [u8],
    tick: &mut impl Tick<E>,
    preserved: &[u8],
) -> Result<Result<Cow<'a, [u8]>, UriError>, E> {
    let mut at = 0;
    while let Some(part) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let part = &part[..part.len().min(PIECE)];
        if let Some(found) = memchr::memchr(b'%', part) {
            at += found;
            break;
        }
        tick(part.len())?;
        at += part.len();
    }
    if at == text.len() {
        return Ok(Ok(Cow::Borrowed(text)));
    }
    let mut out = Vec::with_capacity(text.len());
    for part in text[..at].chunks(PIECE) {
        out.extend_from_slice(part);
        tick(part.len())?;
    }
    let mut next = at + PIECE;
    while let Some(&byte) = text.get(at) {
        if at >= next {
            tick(PIECE)?;
            next = at + PIECE;
        }
        if byte != b'%' {
            out.push(byte);
            at += 1;
            continue;
        }
        let (sequence, length) = match escaped_sequence(&text[at..]) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let escape_length = 3 * length;
        if length == 1 && preserved.contains(&sequence[0]) {
            out.extend_from_slice(&text[at..at + escape_length]);
        } else {
            out.extend_from_slice(&sequence[..length]);
        }
        at += escape_length;
    }
    Ok(Ok(Cow::Owned(out)))
}

/// The UTF-8 sequence of the code point escaped at the start of the text, and its length.
fn escaped_sequence(text: &[u8]) -> Result<([u8; 4], usize), UriError> {
    let mut sequence = [escaped_byte(text).ok_or(UriError::Malformed)?, 0, 0, 0];
    let length = match sequence[0] {
        0..=0x7F => 1,
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return Err(UriError::Malformed),
    };
    for (index, byte) in sequence.iter_mut().enumerate().take(length).skip(1) {
        let escape = text.get(3 * index..).and_then(escaped_byte);
        *byte = escape.ok_or(UriError::Malformed)?;
    }
    match std::str::from_utf8(&sequence[..length]) {
        Ok(_) => Ok((sequence, length)),
        Err(_) => Err(UriError::Malformed),
    }
}

/// The byte of a `%XX` at the start of the text.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *text else {
        return None;
    };
    let value = |digit: u8| char::from(digit).to_digit(16);
    Some((value(high)? << 4 | value(low)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding() {
        let component = encode_uri_component("a b&c=d/é?👍".as_bytes()).unwrap();
        assert_eq!(component, b"a%20b%26c%3Dd%2F%C3%A9%3F%F0%9F%91%8D");
        let whole = encode_uri("https://x.y/a b?q=é&r=1#f".as_bytes()).unwrap();
        assert_eq!(whole, b"https://x.y/a%20b?q=%C3%A9&r=1#f");
        assert_eq!(encode_uri_component(b"-_.!~*'()").unwrap(), b"-_.!~*'()");
        let error = encode_uri(&[b'a', 0xED, 0xA0, 0xBD]).unwrap_err();
        assert_eq!(
            error.message(),
            "String contained an illegal UTF-16 sequence."
        );
    }

    #[test]
    fn decoding() {
        assert_eq!(
            &*decode_uri_component(b"a%20b%26%C3%A9").unwrap(),
            "a b&é".as_bytes()
        );
        assert_eq!(&*decode_uri(b"%41%2F%20%2f").unwrap(), b"A%2F %2f");
        assert_eq!(
            &*decode_uri_component(b"%F0%9f%91%8D").unwrap(),
            "👍".as_bytes()
        );
        let lone = [0xED, 0xA0, 0xBD, b'%', b'4', b'1'];
        assert_eq!(
            &*decode_uri_component(&lone).unwrap(),
            [0xED, 0xA0, 0xBD, b'A']
        );
        let bad: [&[u8]; 9] = [
            b"%E0%A4%A",
            b"%",
            b"%4",
            b"%zz",
            b"%80",
            b"%C0%80",
            b"%ED%A0%80",
            b"%F5%80%80%80",
            b"%C3x%A9",
        ];
        for text in bad {
            assert_eq!(
                decode_uri_component(text).unwrap_err().message(),
                "URI error"
            );
        }
    }
}
