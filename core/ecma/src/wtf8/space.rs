//! Trimming of ECMAScript white space.

use super::{decode, is_continuation};

/// Whether the code point is `WhiteSpace` or `LineTerminator`
/// (ECMA-262 §12.2, §12.3).
#[inline]
const fn is_space(code_point: u32) -> bool {
    matches!(
        code_point,
        0x09..=0x0D
            | 0x20
            | 0xA0
            | 0x1680
            | 0x2000..=0x200A
            | 0x2028
            | 0x2029
            | 0x202F
            | 0x205F
            | 0x3000
            | 0xFEFF
    )
}

/// The text without white space at both ends (ECMA-262 §22.1.3.32).
#[inline]
#[must_use]
pub fn trim(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text))
}

/// The text without white space at the start.
#[must_use]
pub fn trim_start(text: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some((code_point, length)) = decode(text, at) {
        if !is_space(code_point) {
            break;
        }
        at += length;
    }
    &text[at..]
}

/// The text without white space at the end.
#[must_use]
pub fn trim_end(text: &[u8]) -> &[u8] {
    /// Maximum length of a sequence, so that the search for its start is bounded.
    const MAX_SEQUENCE: usize = 4;
    let mut end = text.len();
    while end > 0 {
        let mut start = end - 1;
        while start > 0 && end - start < MAX_SEQUENCE && is_continuation(text[start]) {
            start -= 1;
        }
        match decode(&text[..end], start) {
            Some((code_point, length)) if start + length == end && is_space(code_point) => {
                end = start;
            }
            _ => break,
        }
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_the_white_space_of_the_language() {
        let padded = "\u{FEFF}\u{2003} \t\n\u{3000}x y\u{A0}\u{2029}\u{1680}";
        assert_eq!(trim(padded.as_bytes()), b"x y");
        assert_eq!(trim_start(b"  a "), b"a ");
        assert_eq!(trim_end(b"  a "), b"  a");
        assert_eq!(trim("\u{200B}\u{180E}\u{85}".as_bytes()).len(), 8);
        assert_eq!(trim(b" \t "), b"");
        assert_eq!(trim(b""), b"");
        assert_eq!(trim(&[0x20, 0xED, 0xA0, 0x80, 0x20]), &[0xED, 0xA0, 0x80]);
    }
}
