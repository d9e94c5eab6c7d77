//! Regular expressions of the `regexMatch` atom on a linear-time engine (D39).
//!
//! A pattern is written in JavaScript's syntax without flags and translated by
//! `regex_syntax`. JavaScript matches UTF-16 units when
//! a pattern has no `u` flag, so text beyond the basic plane is matched as
//! units too: each surrogate is mapped to a private character, which nothing
//! else can become. Lone surrogates need no exception that way.
//!
//! Look-around and back-references cannot be matched in linear time and are
//! refused by name. Limits on pattern, input, compiled size and on their
//! product keep one match far below a second.

use super::regex_syntax::{self, surrogate_as_char};
use crate::heap::Str;
use crate::native::{Cx, Fault};
use a99_core::costs::{READ, Sizes};
use a99_ecma::wtf8;
use regex::bytes::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::cell::RefCell;

/// Longest pattern in UTF-16 units; the third generation's limit.
pub const MAX_PATTERN_UNITS: usize = 1_000;

/// Longest input in UTF-16 units; the third generation's limit.
pub const MAX_INPUT_UNITS: usize = 100_000;

/// Most positions of a pattern once repetitions are written out. Bounds the
/// time that compiling takes (about a millisecond).
const MAX_POSITIONS: u64 = 20_000;

/// Most positions times input units: at a few nanoseconds each in the slowest
/// of the matching strategies, well below a second.
const MAX_STEPS: u64 = 100_000_000;

/// Bytes that a compiled pattern may take.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// Bytes that the lazily built automaton may take while matching.
const MAX_AUTOMATON_BYTES: usize = 512 << 10;

/// Compiled patterns that a thread keeps. A loop uses few, and each may hold
/// more than a mebibyte.
const CACHED: usize = 16;

/// A compiled pattern.
#[derive(Clone)]
struct Compiled {
    regex: Regex,
    positions: u64,
}

thread_local! {
    /// Recently used patterns, the last used at the end. Only a matter of
    /// speed: prices and results do not depend on it.
    static CACHE: RefCell<Vec<(Box<[u8]>, Compiled)>> = const { RefCell::new(Vec::new()) };
}

/// Whether `pattern` matches anywhere in `text`; both are WTF-8. Pays for
/// reading both.
///
/// # Errors
/// Those of [`test()`] and fuel; memory for the automaton.
pub fn regex_match(cx: &mut Cx<'_>, pattern: &[u8], text: &[u8]) -> Result<bool, Fault> {
    pay(
        cx,
        wtf8::utf16_len(pattern) + wtf8::utf16_len(text),
        text.len(),
    )?;
    test(pattern, text).map_err(Fault::throw)
}

/// [`regex_match`] for strings of the heap, without copying them.
///
/// # Errors
/// As [`regex_match`].
pub fn regex_match_str(cx: &mut Cx<'_>, pattern: Str, text: Str) -> Result<bool, Fault> {
    pay(cx, pattern.units() + text.units(), text.len_bytes())?;
    test(cx.bytes(pattern), cx.bytes(text)).map_err(Fault::throw)
}

fn pay(cx: &mut Cx<'_>, units: usize, text_bytes: usize) -> Result<(), Fault> {
    cx.charge(READ, Sizes::units(units))?;
    // Usually matching is a table look-up for each unit, whatever the pattern.
    cx.work(units as i64)?;
    Ok(cx
        .heap
        .check(MAX_AUTOMATON_BYTES.saturating_add(text_bytes.saturating_mul(2)))?)
}

/// Whether `pattern` matches anywhere in `text`, without paying; for callers
/// that charge by themselves.
///
/// # Errors
/// Text that is too long; a pattern that is too long, invalid, too large or
/// not expressible in linear time.
pub fn test(pattern: &[u8], text: &[u8]) -> Result<bool, String> {
    let pattern_units = wtf8::utf16_len(pattern);
    if pattern_units > MAX_PATTERN_UNITS {
        return Err(format!(
            "Regex pattern too long ({pattern_units} > {MAX_PATTERN_UNITS})"
        ));
    }
    let text_units = wtf8::utf16_len(text);
    if text_units > MAX_INPUT_UNITS {
        return Err(format!(
            "Regex input too long ({text_units} > {MAX_INPUT_UNITS})"
        ));
    }
    let compiled = compiled(pattern)?;
    let positions = compiled.positions;
    if positions.saturating_mul(text_units as u64) > MAX_STEPS {
        return Err(format!(
            "Regex too costly for an input of this length ({positions} positions x {text_units} \
             units > {MAX_STEPS})"
        ));
    }
    Ok(compiled.regex.is_match(&units_as_chars(text)))
}

fn compiled(pattern: &[u8]) -> Result<Compiled, String> {
    if let Some(found) = CACHE.with_borrow_mut(|cache| {
        let at = cache.iter().position(|(key, _)| **key == *pattern)?;
        cache[at..].rotate_left(1);
        cache.last().map(|(_, found)| found.clone())
    }) {
        return Ok(found);
    }
    let new = compile(pattern)?;
    CACHE.with_borrow_mut(|cache| {
        if cache.len() == CACHED {
            cache.remove(0);
        }
        cache.push((pattern.into(), new.clone()));
    });
    Ok(new)
}

fn compile(pattern: &[u8]) -> Result<Compiled, String> {
    let invalid = |why: &str| format!("Invalid regular expression: {why}");
    let units: Vec<u16> = wtf8::units(pattern).collect();
    let translated = regex_syntax::translate(&units).map_err(|e| invalid(&e))?;
    if translated.positions > MAX_POSITIONS {
        return Err(invalid("regular expression too large"));
    }
    let regex = RegexBuilder::new(&translated.pattern)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_AUTOMATON_BYTES)
        .build();
    match regex {
        Ok(regex) => Ok(Compiled {
            regex,
            positions: translated.positions,
        }),
        Err(regex::Error::CompiledTooBig(_)) => Err(invalid("regular expression too large")),
        // The translation is valid but for groups within groups.
        Err(_) => Err(invalid("too many nested groups")),
    }
}

/// The text with every surrogate, lone or of a pair, as a character of its
/// own; the same bytes for text of the basic plane.
fn units_as_chars(text: &[u8]) -> Cow<'_, [u8]> {
    let basic = !text.iter().any(|b| *b >= 0xF0) && wtf8::is_well_formed(text);
    if basic {
        return Cow::Borrowed(text);
    }
    // At most twice MAX_INPUT_UNITS characters of four bytes.
    Cow::Owned(
        wtf8::units(text)
            .map(surrogate_as_char)
            .collect::<String>()
            .into_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, message};
    use super::*;

    fn run(pattern: &str, text: &str) -> Result<bool, String> {
        let mut bench = Bench::default();
        regex_match(&mut bench.cx(), pattern.as_bytes(), text.as_bytes()).map_err(message)
    }

    #[test]
    fn javascript_patterns() {
        for (pattern, text, want) in [
            ("^a.c$", "abc", true),
            ("^a.c$", "a\nc", false),
            ("^a.c$", "a\u{2028}c", false),
            (r"\d{3}-\d{4}", "call 555-1234 now", true),
            (r"^\d$", "٣", false),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            ("ABC", "abc", false),
            ("", "anything", true),
            ("^$", "", true),
            ("^$", "\n", false),
            ("b|^c", "abc", true),
            (r"^\s*$", " \t\n\u{FEFF}\u{3000}", true),
            (r"^\s$", "\u{85}", false),
            (r"(?<y>\d{4})", "in 2024", true),
            (r"\bcat\b", "concat", false),
            (r"\bcat\b", "écaté", true),
            (r"\Bcat", "concat", true),
            (r"[\w.+-]+@[\w-]+\.[\w.]+", "a.b+c@x-y.org", true),
            ("^[^@]+$", "no at", true),
            ("a{2,3}?b", "aab", true),
            ("a{,3}", "a{,3}", true),
            ("^a{$", "a{", true),
            ("^}]$", "}]", true),
            (r"^\u0041\x42\cJ$", "AB\n", true),
            (r"^\u{2}$", "uu", true),
            ("[]", "a", false),
            ("^[^]$", "\n", true),
            (r"^[\b]$", "\u{8}", true),
            (r"^[\d-x]+$", "1-x", true),
            ("^[a&&b]+$", "a&b", true),
            ("^[[a]+$", "[a", true),
            (r"^\-\/\a$", "-/a", true),
            (r"^\0\1$", "\0\u{1}", true),
            ("^(?:ab)*?c", "ababc", true),
            ("^(a+)+$", "aaaaaaaaaaaaaaaaab", false),
        ] {
            assert_eq!(run(pattern, text), Ok(want), "{pattern} {text:?}");
        }
    }

    #[test]
    fn texts_are_utf16_units() {
        for (pattern, text, want) in [
            ("^.$", "👍", false),
            ("^..$", "👍", true),
            ("^[👍]$", "👍", false),
            ("^👍+$", "👍👍", false),
            ("^(?:👍)+$", "👍👍", true),
            (r"\ud83d", "👍", true),
            (r"^[\ud800-\udbff][\udc00-\udfff]$", "👍", true),
            ("^[^a]$", "é", true),
        ] {
            assert_eq!(run(pattern, text), Ok(want), "{pattern} {text:?}");
        }
        let mut bench = Bench::default();
        let lone = b"\xED\xA0\xBD";
        assert!(regex_match(&mut bench.cx(), b"^\\ud83d$", lone).unwrap());
        assert!(regex_match(&mut bench.cx(), b"^.$", lone).unwrap());
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (pattern, part) in [
            ("(", "missing )"),
            ("a)", "unmatched parentheses"),
            ("[", "missing terminating ] for character class"),
            ("*a", "nothing to repeat"),
            ("a**", "nothing to repeat"),
            ("^*", "nothing to repeat"),
            ("{2}", "nothing to repeat"),
            ("a{3,2}", "numbers out of order in {} quantifier"),
            ("[b-a]", "range out of order in character class"),
            ("\\", "\\ at end of pattern"),
            ("(?<1>a)", "invalid group specifier name"),
            ("(?x)", "unrecognized character after (?"),
            ("(?=a)", "look-ahead (?=...) is not supported"),
            ("(?!a)", "look-ahead (?!...) is not supported"),
            ("(?<=a)", "look-behind (?<=...) is not supported"),
            ("(?<!a)", "look-behind (?<!...) is not supported"),
            (r"(a)\1", "back-reference \\1 is not supported"),
            (r"(?<n>a)\k<n>", "back-reference \\k<n> is not supported"),
            ("(a{1000}){1000}", "regular expression too large"),
        ] {
            let text = run(pattern, "x").unwrap_err();
            assert!(text.starts_with("Invalid regular expression: "), "{text}");
            assert!(text.contains(part), "{pattern}: {text}");
        }
        let long = "a".repeat(1001);
        assert_eq!(
            run(&long, ""),
            Err("Regex pattern too long (1001 > 1000)".to_owned())
        );
        let long = "a".repeat(100_001);
        assert_eq!(
            run("a", &long),
            Err("Regex input too long (100001 > 100000)".to_owned())
        );
        assert!(run(&"(".repeat(500), "").is_err());
        let nested = format!("{}a{}", "(".repeat(480), ")".repeat(480));
        assert!(run(&nested, "").is_err());
    }

    #[test]
    fn hostile_patterns_stay_cheap() {
        let text = format!("{}b", "a".repeat(60_000));
        for pattern in [
            "(a+)+$",
            "(a|aa)+$",
            "a*a*a*c",
            "(.*)(.*)(.*)(.*)c",
            "(x+x+)+y",
        ] {
            assert!(run(pattern, &text).is_ok());
        }
        assert!(run("(?:.{0,200}a){40}c", &text).is_err());
        assert!(run(r"\W{1000}\W{1000}", &text).is_err());
    }

    #[test]
    fn the_price_is_by_length() {
        let mut bench = Bench::with_fuel(1_000);
        let result = regex_match(&mut bench.cx(), b"a", "b".repeat(10).as_bytes());
        assert!(matches!(result, Err(Fault::OutOfFuel)));
        let mut bench = Bench::with_fuel(1_301);
        let mut cx = bench.cx();
        let pattern = cx.heap.alloc_str(b"b+$").unwrap();
        let text = cx.heap.alloc_str(b"abbbbbbbbb").unwrap();
        assert!(regex_match_str(&mut cx, pattern, text).unwrap());
    }
}
