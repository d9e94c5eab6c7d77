//! Classifies characters of sources: names, line ends and comment ends.

pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// True for ASCII characters of names.
pub(crate) fn is_ascii_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// True at U+2028 and U+2029, which end lines.
pub(crate) fn is_separator(text: &[u8]) -> bool {
    matches!(text, [0xe2, 0x80, 0xa8 | 0xa9, ..])
}

/// Returns the bytes up to the end of the line.
pub(crate) fn line_end(text: &[u8]) -> usize {
    let end =
        (0..text.len()).find(|&at| matches!(text[at], b'\n' | b'\r') || is_separator(&text[at..]));
    end.unwrap_or(text.len())
}

/// Returns the length in bytes of a block comment.
pub(crate) fn comment_end(text: &[u8]) -> usize {
    let end = text
        .get(2..)
        .and_then(|rest| rest.windows(2).position(|two| two == b"*/"));
    end.map_or(text.len(), |end| end + 4)
}
