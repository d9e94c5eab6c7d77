//! Collation: the order of `localeCompare`.
//!
//! Follows the root collation of CLDR as far as programs can observe it: spaces, then
//! punctuation, symbols, digits and letters. Letters are alphabetical; accents decide only
//! between equal letters, and case (lower before upper) only between equal accents. Scripts
//! and rare characters are ordered by code point. No locale has tailorings here.

use crate::native::{Fault, Reading};
use a99_ecma::case::to_lower;
use a99_ecma::forms::{Form, normalize};
use a99_ecma::wtf8;
use std::cmp::Ordering;

/// ASCII punctuation and symbols in the order of the root collation.
const PUNCTUATION: &[u8] = b"_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Bytes of a text weighed at once, if a boundary is near.
const PIECE: usize = 512;

/// Bytes after which a text is split between any two characters.
const LONGEST_PIECE: usize = 32 << 10;

/// Work to weigh a byte.
const BYTE_WORK: i64 = 64;

/// A collation weight; smaller weights sort first.
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

/// The end of the next piece: pieces can be decomposed and lowercased separately. The
/// boundary is before a character that is no letter, no mark, and does not continue a word.
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

/// The primary weights: class, then position in the class.
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
    // A letter has the weight of no accent, so that accents are compared by position.
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

/// Whether a character is a combining mark of the Latin, Greek or Cyrillic scripts, or of the
/// blocks that contain only marks.
fn is_mark(c: u32) -> bool {
    matches!(c, 0x300..=0x36F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF)
}

/// Whether a character is ignored: control characters, soft hyphen, joiners and marks of
/// direction.
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
