//! Bytes as text: base64 with the standard alphabet (RFC 4648 section 4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes as base64 with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            out.push(match digit <= chunk.len() {
                true => char::from(ALPHABET[(group >> (18 - 6 * digit) & 63) as usize]),
                false => '=',
            });
        }
    }
    out
}

/// Decodes base64 text; `None` if it is malformed. Padding is optional, unused bits must be zero
/// (RFC 4648 section 3.5).
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|c| **c == b'=').count();
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let digits = &text[..text.len() - padding];
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.chunks(4) {
        let mut group = 0;
        for i in 0..4 {
            let value = chunk.get(i).map_or(Some(0), |digit| value(*digit))?;
            group = group << 6 | value;
        }
        let bytes = match chunk.len() {
            4 => 3,
            3 if group & 0xFF == 0 => 2,
            2 if group & 0xFFFF == 0 => 1,
            _ => return None,
        };
        out.extend_from_slice(&group.to_be_bytes()[1..=bytes]);
    }
    Some(out)
}

fn value(digit: u8) -> Option<u32> {
    Some(match digit {
        b'A'..=b'Z' => u32::from(digit - b'A'),
        b'a'..=b'z' => u32::from(digit - b'a') + 26,
        b'0'..=b'9' => u32::from(digit - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(decode(coded.as_bytes()).as_deref(), Some(plain.as_bytes()));
            let bare = coded.trim_end_matches('=');
            assert_eq!(decode(bare.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn every_byte_goes_there_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in 250..=256 {
            assert_eq!(
                decode(encode(&bytes[..len]).as_bytes()).as_deref(),
                Some(&bytes[..len])
            );
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in [
            "A", "Zh==", "Zm9=", "Zg=", "Zg===", "====", "Z=g=", "Zg =", "Zm9v\n", "Z-_w",
        ] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
