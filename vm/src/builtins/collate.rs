//! Order of texts for people: what `localeCompare` gives.
//!
//! Follows the root collation of CLDR where programs can tell: spaces, then
//! punctuation, symbols, digits and letters; letters alphabetically, accents
//! only where the letters are equal, small before capital letters only where
//! the accents are equal too. The order of scripts and of rare characters is
//! that of their code points; no locale has tailorings here.

use crate::native::{Fault, Reading};
use a99_ecma::case::to_lower;
use a99_ecma::forms::{Form, normalize};
use a99_ecma::wtf8;
use std::cmp::Ordering;

/// ASCII punctuation and symbols in the order of the root collation.
const PUNCTUATION: &[u8] = b"_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Bytes of a text that are weighed at once, as far as there is a place to
/// part it near.
const PIECE: usize = 512;

/// Bytes after which a text is parted between any two characters.
const LONGEST_PIECE: usize = 32 << 10;

/// Work that weighing a byte stands for.
const BYTE_WORK: i64 = 64;

/// A weight: what is smaller comes first.
type Weight = (u8, u32);

/// The weights of a piece of text at one level.
type Level = fn(&[u8]) -> Vec<Weight>;

/// Compares two WTF-8 texts.
///
/// # Errors
/// A stop.
pub(super) fn compare(run: &mut Reading<'_>, a: &[u8], b: &[u8]) -> Result<Ordering, Fault> {
    const LEVELS: [Level; 3] = [primary, accents, small_first];
    for level in LEVELS {
        let order = compare_level(run, a, b, level)?;
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

fn compare_level(
    run: &mut Reading<'_>,
    a: &[u8],
    b: &[u8],
    level: Level,
) -> Result<Ordering, Fault> {
    let mut a = Weights::new(a, level);
    let mut b = Weights::new(b, level);
    loop {
        let order = match (a.next(run)?, b.next(run)?) {
            (None, None) => return Ok(Ordering::Equal),
            (x, y) => x.cmp(&y),
        };
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
}

/// The weights of a text, piece by piece.
struct Weights<'t> {
    rest: &'t [u8],
    level: Level,
    ready: std::vec::IntoIter<Weight>,
}

impl<'t> Weights<'t> {
    fn new(rest: &'t [u8], level: Level) -> Self {
        Weights {
            rest,
            level,
            ready: Vec::new().into_iter(),
        }
    }

    fn next(&mut self, run: &mut Reading<'_>) -> Result<Option<Weight>, Fault> {
        loop {
            if let Some(weight) = self.ready.next() {
                return Ok(Some(weight));
            }
            if self.rest.is_empty() {
                return Ok(None);
            }
            let (piece, rest) = self.rest.split_at(piece(self.rest));
            run.work(piece.len() as i64 * BYTE_WORK)?;
            self.rest = rest;
            self.ready = (self.level)(piece).into_iter();
        }
    }
}

/// Where a text is parted so that its pieces can be decomposed and made small
/// one by one: before a character that is no letter, no mark and nothing that
/// words go on behind.
fn piece(text: &[u8]) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let parts = |byte: &u8| {
        matches!(
            byte,
            b' ' | b'\n' | b'\t' | b',' | b';' | b'!'..=b'&' | b'(' | b')'
        )
    };
    let near = &text[PIECE..text.len().min(LONGEST_PIECE)];
    if let Some(at) = near.iter().position(parts) {
        return PIECE + at;
    }
    let mut end = text.len().min(LONGEST_PIECE);
    while end < text.len() && text[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    end
}

/// The weights that decide first: class, then place in the class.
fn primary(text: &[u8]) -> Vec<Weight> {
    let small = to_lower(&normalize(Form::Nfd, text)).into_owned();
    wtf8::code_points(&small)
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
        .collect()
}

fn accents(text: &[u8]) -> Vec<Weight> {
    let small = to_lower(&normalize(Form::Nfd, text)).into_owned();
    // A letter counts as no accent, so that accents are compared in place.
    wtf8::code_points(&small)
        .filter(|c| !is_ignored(*c))
        .map(|c| if is_mark(c) { (0, c) } else { (0, 0) })
        .collect()
}

fn small_first(text: &[u8]) -> Vec<Weight> {
    wtf8::code_points(&normalize(Form::Nfd, text))
        .filter(|c| !is_mark(*c) && !is_ignored(*c))
        .map(|c| (0, char::from_u32(c).is_some_and(char::is_uppercase).into()))
        .collect()
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
    use crate::builtins::testing::Bench;

    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        let mut bench = Bench::default();
        super::compare(&mut bench.cx().reading(), a, b).unwrap()
    }

    /// Texts are weighed in pieces, which makes no difference.
    #[test]
    fn long_texts() {
        for fill in ["word, ", "wörd", "ΟΔΟΣ", "x"] {
            let long = fill.repeat(40_000 / fill.len());
            let with = |tail: &str| format!("{long}{tail}");
            let order = |a: &str, b: &str| compare(with(a).as_bytes(), with(b).as_bytes());
            assert_eq!(order("a", "b"), Ordering::Less, "{fill}");
            assert_eq!(order("a", "á"), Ordering::Less);
            assert_eq!(order("A", "a"), Ordering::Greater);
            assert_eq!(order("e\u{301}", "é"), Ordering::Equal);
            assert_eq!(order("", "a"), Ordering::Less);
        }
    }

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
