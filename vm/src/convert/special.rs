//! Bytes that end the verbatim part of a JSON string.

/// The first byte that ends a verbatim run of a JSON string: a quote, a backslash, or a
/// control character.
#[inline]
pub(crate) fn special(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xFF;
    const TOPS: u64 = ONES << 7;
    // Sets the top bit of each byte below `n`; the byte above such a one may have it, too.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & TOPS;
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let mut at = 0;
    while let Some(word) = text[at..].first_chunk() {
        let word = u64::from_le_bytes(*word);
        let found = below(word, 0x20) | equal(word, b'"') | equal(word, b'\\');
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = text[at..].iter();
    let mut rest = rest.map(|b| *b == b'"' || *b == b'\\' || *b < 0x20);
    rest.position(|is_special| is_special).map(|n| at + n)
}

#[cfg(test)]
mod tests {
    use super::special;

    #[test]
    fn the_first_special_byte_is_found_wherever_it_stands() {
        let is_special = |b: &u8| *b == b'"' || *b == b'\\' || *b < 0x20;
        for byte in 0..=u8::MAX {
            for (at, next) in (0..20).flat_map(|at| [0x00, 0x1F, b'"', b'#', 0x80].map(|n| (at, n)))
            {
                let mut text = [b'!'; 20];
                text[at] = byte;
                if let Some(after) = text.get_mut(at + 1) {
                    *after = next;
                }
                for from in 0..text.len() {
                    let text = &text[from..];
                    assert_eq!(special(text), text.iter().position(is_special), "{text:?}");
                }
            }
        }
    }
}
