//! Unicode case conversion (ECMA-262 §22.1.3.28 and .30).
//!
//! The full, language-independent mappings with their special cases: final sigma, `ß` to
//! `SS`. Lone surrogates have no case and are unchanged. Locales have no influence.

use crate::pages::Pages;
use crate::tick::{PIECE, Tick, whole};
use std::borrow::Cow;

/// The text in lower case.
#[must_use]
pub fn to_lower(text: &[u8]) -> Cow<'_, [u8]> {
    whole(to_lower_with(text, &mut |_| Ok(())))
}

/// [`to_lower`] for possibly long text.
///
/// # Errors
/// Those of `tick`.
pub fn to_lower_with<'a, E>(text: &'a [u8], tick: &mut impl Tick<E>) -> Result<Cow<'a, [u8]>, E> {
    map_case(text, tick, u8::is_ascii_uppercase, |at, c, out, tick| {
        if c == SIGMA {
            let end = at + c.len_utf8();
            let last = follows_letter(text, at, tick)? && !precedes_letter(text, end, tick)?;
            push(out, if last { 'ς' } else { 'σ' });
        } else {
            match LOWER.of(c) {
                Some(small) => push(out, small),
                None => c.to_lowercase().for_each(|c| push(out, c)),
            }
        }
        Ok(())
    })
}

/// The text in upper case.
#[must_use]
pub fn to_upper(text: &[u8]) -> Cow<'_, [u8]> {
    whole(to_upper_with(text, &mut |_| Ok(())))
}

/// [`to_upper`] for possibly long text.
///
/// # Errors
/// Those of `tick`.
pub fn to_upper_with<'a, E>(text: &'a [u8], tick: &mut impl Tick<E>) -> Result<Cow<'a, [u8]>, E> {
    map_case(text, tick, u8::is_ascii_lowercase, |_, c, out, _| {
        match UPPER.of(c) {
            Some(large) => push(out, large),
            None => c.to_uppercase().for_each(|c| push(out, c)),
        }
        Ok(())
    })
}

static LOWER: Pages<char> = Pages::new(|c| alone(c.to_lowercase()));
static UPPER: Pages<char> = Pages::new(|c| alone(c.to_uppercase()));

/// The single character of a mapping, if it has just one.
fn alone(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next();
    if chars.next().is_some() { None } else { first }
}

/// The only letter whose lower case depends on its neighbours.
const SIGMA: char = 'Σ';

pub(crate) fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Flips the case of ASCII letters that satisfy `changes`, and maps other characters with
/// `map`, which gets their position.
fn map_case<'a, E, T: Tick<E>>(
    text: &'a [u8],
    tick: &mut T,
    changes: impl Fn(&u8) -> bool,
    map: impl Fn(usize, char, &mut Vec<u8>, &mut T) -> Result<(), E>,
) -> Result<Cow<'a, [u8]>, E> {
    /// The bit that differs between the two cases of an ASCII letter.
    const CASE: u8 = 0x20;
    // Length of the unchanged prefix.
    let mut kept = 0;
    for part in text.chunks(PIECE) {
        tick(part.len())?;
        match part.iter().position(|b| !b.is_ascii() || changes(b)) {
            Some(at) => {
                kept += at;
                break;
            }
            None => kept += part.len(),
        }
    }
    if kept == text.len() {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut next = 0;
    let mut at = 0;
    while at < text.len() {
        if at >= next {
            tick(PIECE)?;
            next = at + PIECE;
        }
        let ascii = &text[at..text.len().min(next.max(at + 1))];
        let run = ascii
            .iter()
            .position(|b| !b.is_ascii())
            .unwrap_or(ascii.len());
        out.extend(ascii[..run].iter().map(|b| match changes(b) {
            true => b ^ CASE,
            false => *b,
        }));
        at += run;
        if run == ascii.len() {
            continue;
        }
        while at < next && text.get(at).is_some_and(|b| !b.is_ascii()) {
            let (c, length) = char_at(text, at);
            match c {
                Some(c) => map(at, c, &mut out, tick)?,
                None => out.extend_from_slice(&text[at..at + length]),
            }
            at += length;
        }
    }
    Ok(Cow::Owned(out))
}

/// The character at an offset, unless it is half of a surrogate pair, and its length in
/// bytes.
#[inline]
pub(crate) fn char_at(text: &[u8], at: usize) -> (Option<char>, usize) {
    match crate::wtf8::decode(text, at) {
        Some((code_point, length)) => (char::from_u32(code_point), length),
        None => (None, 1),
    }
}

/// The role of a character next to a final sigma (the Unicode Standard, 3.13, Final_Sigma).
#[derive(Copy, Clone, PartialEq, Eq)]
enum Neighbour {
    Letter,
    Skipped,
    Other,
}

static NEIGHBOURS: Pages<Neighbour> = Pages::new(|c| {
    // The standard library does not expose these properties, but they show in its conversion
    // of a sigma next to the character.
    let is_small = |text: String| text.to_lowercase().contains('σ');
    Some(match c {
        // Beyond the pages: tags and variation selectors are skipped, no character has case.
        '\u{20000}'.. => match c {
            '\u{E0001}' | '\u{E0020}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}' => {
                Neighbour::Skipped
            }
            _ => Neighbour::Other,
        },
        c if is_small(format!("aΣ{c}")) => Neighbour::Letter,
        c if is_small(format!("aΣ{c}a")) => Neighbour::Skipped,
        _ => Neighbour::Other,
    })
});

fn neighbour(c: Option<char>) -> Neighbour {
    c.and_then(|c| NEIGHBOURS.of(c)).unwrap_or(Neighbour::Other)
}

/// Whether the last character before `at` that is not skipped is a letter.
fn follows_letter<E>(text: &[u8], at: usize, tick: &mut impl Tick<E>) -> Result<bool, E> {
    let mut end = at;
    while end > 0 {
        let mut start = end - 1;
        while start > 0 && text[start] & 0xC0 == 0x80 {
            start -= 1;
        }
        match neighbour(char_at(text, start).0) {
            Neighbour::Skipped => tick(SKIPPED)?,
            found => return Ok(found == Neighbour::Letter),
        }
        end = start;
    }
    Ok(false)
}

/// Whether the first character from `end` on that is not skipped is a letter.
fn precedes_letter<E>(text: &[u8], end: usize, tick: &mut impl Tick<E>) -> Result<bool, E> {
    let mut at = end;
    while at < text.len() {
        let (c, length) = char_at(text, at);
        match neighbour(c) {
            Neighbour::Skipped => tick(SKIPPED)?,
            found => return Ok(found == Neighbour::Letter),
        }
        at += length;
    }
    Ok(false)
}

/// Work of a skipped character, in bytes.
const SKIPPED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character has the case, and is the neighbour of a sigma, that the standard
    /// library says.
    #[test]
    fn e1_pages_hold_what_the_standard_library_says() {
        for c in ('\0'..'\u{20000}').chain('\u{E0000}'..'\u{E0200}') {
            let text = format!("aΣ{c}Σ{c}a");
            assert_eq!(lower(&text), text.to_lowercase(), "{c:?}");
            let upper = String::from_utf8(to_upper(text.as_bytes()).into_owned()).unwrap();
            assert_eq!(upper, text.to_uppercase(), "{c:?}");
        }
    }

    fn lower(text: &str) -> String {
        String::from_utf8(to_lower(text.as_bytes()).into_owned()).unwrap()
    }

    fn upper(text: &str) -> String {
        String::from_utf8(to_upper(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn special_casing() {
        assert_eq!(lower("ΟΔΟΣ ΣΑΣ Σ"), "οδος σας σ");
        assert_eq!(lower("İ"), "i\u{307}");
        assert_eq!(lower("ÀÉ Ω"), "àé ω");
        assert_eq!(upper("straße ŉ ﬃ"), "STRASSE ʼN FFI");
        assert_eq!(upper("ı😀é"), "I😀É");
        assert!(matches!(to_lower(b"abc 1"), Cow::Borrowed(_)));
        assert_eq!(upper("aZ1"), "AZ1");
    }

    #[test]
    fn case_is_as_in_the_standard_library() {
        let parts = [
            "Σ", "α", "Ω", "'", "\u{301}", " ", "x", "7", "ª", "ʰ", "İ", "ß", "😀", ".", "Ⓐ",
        ];
        let mut seed = 1_usize;
        for n in 0..4000 {
            let mut text = String::new();
            for _ in 0..n % 9 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(parts[(seed >> 33) % parts.len()]);
            }
            assert_eq!(lower(&text), text.to_lowercase(), "{text:?}");
            assert_eq!(upper(&text), text.to_uppercase(), "{text:?}");
        }
        let long = "ΑΣ'Σ ".repeat(5000);
        assert_eq!(lower(&long), long.to_lowercase());
        assert_eq!(upper(&long), long.to_uppercase());
    }

    #[test]
    fn long_work_ends_early() {
        let text = "ÀΣe\u{301}".repeat(50_000);
        let mut left = 3;
        let mut tick = |_| {
            left -= 1;
            if left == 0 { Err(()) } else { Ok(()) }
        };
        assert!(to_lower_with(text.as_bytes(), &mut tick).is_err());
    }

    #[test]
    fn surrogates_pass() {
        let text = [b'A', 0xED, 0xA0, 0xBD, 0xC3, 0x89, 0xED, 0xB8, 0x80];
        let expected = [b'a', 0xED, 0xA0, 0xBD, 0xC3, 0xA9, 0xED, 0xB8, 0x80];
        assert_eq!(&*to_lower(&text), &expected);
    }
}
