//! Order by UTF-16 units.

use super::{is_continuation, units};
use std::cmp::Ordering;

/// Compares by UTF-16 units, as `<` does (ECMA-262 §7.2.12). The result differs from byte
/// order only between surrogates and U+E000 to U+FFFF.
#[must_use]
pub fn compare_utf16(a: &[u8], b: &[u8]) -> Ordering {
    let common = common_prefix(a, b);
    if common == a.len() || common == b.len() {
        return a.len().cmp(&b.len());
    }
    // Both texts are equal before `common`, so the sequence that contains it starts at the
    // same byte in both.
    let mut start = common;
    while start > 0 && (is_continuation(a[start]) || is_continuation(b[start])) {
        start -= 1;
    }
    units(&a[start..]).cmp(units(&b[start..]))
}

/// Length of the longest common prefix, found block by block.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let equal_blocks = a
        .chunks_exact(BLOCK)
        .zip(b.chunks_exact(BLOCK))
        .take_while(|(x, y)| x == y)
        .count();
    let from = equal_blocks * BLOCK;
    from + a[from..]
        .iter()
        .zip(&b[from..])
        .take_while(|(x, y)| x == y)
        .count()
}

#[cfg(test)]
mod tests {
    use super::super::tests::samples;
    use super::*;

    #[test]
    fn order_is_that_of_utf16() {
        let all = samples();
        for (wide_a, a) in all.iter().step_by(7) {
            for (wide_b, b) in all.iter().step_by(3) {
                assert_eq!(
                    compare_utf16(a, b),
                    wide_a.cmp(wide_b),
                    "{wide_a:X?} {wide_b:X?}"
                );
            }
        }
        assert_eq!(
            compare_utf16("😀".as_bytes(), "\u{FFFD}".as_bytes()),
            Ordering::Less
        );
        let long = "x".repeat(200);
        let (a, b) = (format!("{long}€"), format!("{long}₭"));
        assert_eq!(compare_utf16(a.as_bytes(), b.as_bytes()), Ordering::Less);
        assert_eq!(compare_utf16(a.as_bytes(), a.as_bytes()), Ordering::Equal);
    }
}
