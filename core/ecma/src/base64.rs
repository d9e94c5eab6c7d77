//! `btoa` and `atob` of the HTML standard: texts whose UTF-16 units are bytes.

use crate::tick::{PIECE, Tick};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes the units of a WTF-8 text as base64 with padding; `None` if a unit is above 255.
///
/// # Errors
/// Those of the meter.
pub fn btoa<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<Option<Vec<u8>>, E> {
    let mut out = Vec::with_capacity(text.len().div_ceil(3) * 4);
    let (mut group, mut count) = (0_u32, 0_u32);
    let (mut at, mut ticked) = (0, 0);
    while at < text.len() {
        if at >= ticked {
            tick(PIECE)?;
            ticked += PIECE;
        }
        let byte = match (text[at], text.get(at + 1)) {
            (byte, _) if byte < 0x80 => byte,
            (lead @ 0xC2..=0xC3, Some(next)) => {
                at += 1;
                lead << 6 | next & 0x3F
            }
            _ => return Ok(None),
        };
        at += 1;
        group = group << 8 | u32::from(byte);
        count += 1;
        if count == 3 {
            push(&mut out, group, 4);
            (group, count) = (0, 0);
        }
    }
    if count > 0 {
        push(&mut out, group << (8 * (3 - count)), count as usize + 1);
        out.resize(out.len().next_multiple_of(4), b'=');
    }
    Ok(Some(out))
}

fn push(out: &mut Vec<u8>, group: u32, digits: usize) {
    for digit in 0..digits {
        out.push(ALPHABET[(group >> (18 - 6 * digit) & 63) as usize]);
    }
}

/// Decodes base64 to the text whose units are the bytes; `None` if it is malformed. White space
/// and missing padding are allowed, unused bits are ignored ("forgiving-base64 decode").
///
/// # Errors
/// Those of the meter.
pub fn atob<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<Option<Vec<u8>>, E> {
    let mut out = Vec::with_capacity(text.len());
    let (mut group, mut count) = (0_u32, 0_usize);
    let (mut digits, mut padding) = (0_usize, 0_usize);
    for piece in text.chunks(PIECE) {
        tick(piece.len())?;
        for byte in piece {
            let value = match byte {
                b' ' | b'\t' | b'\n' | b'\x0C' | b'\r' => continue,
                b'=' => {
                    padding += 1;
                    continue;
                }
                _ if padding > 0 => return Ok(None),
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return Ok(None),
            };
            digits += 1;
            count += 1;
            group = group << 6 | u32::from(value);
            if count == 4 {
                bytes(&mut out, group, 3);
                (group, count) = (0, 0);
            }
        }
    }
    let is_padded = padding == 0 || padding <= 2 && (digits + padding).is_multiple_of(4);
    if count == 1 || !is_padded {
        return Ok(None);
    }
    if count > 1 {
        bytes(&mut out, group << (6 * (4 - count)), count - 1);
    }
    Ok(Some(out))
}

/// Appends the highest bytes of a group of 24 bits, each as a character.
fn bytes(out: &mut Vec<u8>, group: u32, count: usize) {
    for byte in &group.to_be_bytes()[1..=count] {
        out.extend(char::from(*byte).encode_utf8(&mut [0; 2]).bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn coded(text: &str) -> Option<String> {
        let Ok(out) = btoa::<Infallible>(text.as_bytes(), &mut |_| Ok(()));
        out.map(|out| String::from_utf8(out).expect("ASCII"))
    }

    fn plain(text: &str) -> Option<String> {
        let Ok(out) = atob::<Infallible>(text.as_bytes(), &mut |_| Ok(()));
        out.map(|out| String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn every_byte_goes_there_and_back() {
        let all: String = (0..=255).map(char::from).collect();
        for end in (0..=all.len()).filter(|end| all.is_char_boundary(*end)) {
            let text = &all[..end];
            assert_eq!(coded(text).and_then(|b| plain(&b)).as_deref(), Some(text));
        }
        let long = all.repeat(40);
        assert_eq!(coded(&long).and_then(|b| plain(&b)), Some(long));
    }

    #[test]
    fn forgiving_and_malformed_texts() {
        assert_eq!(coded("foob").as_deref(), Some("Zm9vYg=="));
        assert_eq!(coded("ā"), None);
        for good in ["Zm9v YmFy", "Zg", "Zg==", "Zh==", "", "\n"] {
            assert!(plain(good).is_some(), "{good}");
        }
        for bad in [
            "A", "Zg=", "Zg===", "=", "====", "Z=g=", "Z-_w", "Zm9vY", "Zm9v=",
        ] {
            assert_eq!(plain(bad), None, "{bad}");
        }
    }
}
