//! Regular expressions of the `regexMatch` atom and of schemas, in linear time
//! (D39).
//!
//! Patterns use JavaScript's syntax without flags (`parse`) and match UTF-16 units, as
//! in JavaScript without the `u` flag. Look-around and back-references cannot be matched in
//! linear time and are refused by name here. The atoms that find take them, and the flag `u`:
//! `back` matches them by backtracking, and each step pays.
//!
//! Compilation is charged by the positions of a pattern (its size with repetitions expanded),
//! whether or not a thread has cached the program. Matching is charged by positions times the
//! units of the text. Both can be stopped at any point.

mod back;
pub(crate) mod captures;
mod escape;
mod fold;
pub(crate) mod machine;
pub(crate) mod parse;
mod program;
mod property;
mod set;

use self::parse::{Flags, Parsed};
use self::program::Program;
use crate::heap::Str;
use crate::native::{Cx, Fault, Reading};
use a99_core::costs::{READ, Sizes, regex_price};
use a99_ecma::wtf8;
use std::cell::RefCell;
use std::char::DecodeUtf16Error;
use std::rc::Rc;

/// Maximum pattern length in UTF-16 units; the third generation's limit.
pub const MAX_PATTERN_UNITS: usize = 1_000;

/// Maximum input length in UTF-16 units; the third generation's limit.
pub const MAX_INPUT_UNITS: usize = 100_000;

/// Maximum positions of a pattern with repetitions expanded.
const MAX_POSITIONS: u64 = 20_000;

/// Maximum of positions times input units.
const MAX_STEPS: u64 = 100_000_000;

/// Compiled patterns cached per thread.
const CACHED: usize = 16;

/// Length of the longest cached program.
const CACHED_LEN: usize = 4_096;

/// Work to parse a unit of a pattern.
const PARSE_WORK: i64 = 64;

/// Cache of recently used patterns, the last used at the end. It affects only speed: prices
/// and results do not depend on it.
pub(crate) struct Recent<K, V>(Vec<(K, V)>);

impl<K, V: Clone> Recent<K, V> {
    pub(crate) const fn new() -> Recent<K, V> {
        Recent(Vec::new())
    }

    pub(crate) fn find(&mut self, is: impl Fn(&K) -> bool) -> Option<V> {
        let at = self.0.iter().position(|(key, _)| is(key))?;
        self.0[at..].rotate_left(1);
        self.0.last().map(|(_, found)| found.clone())
    }

    /// Caches a pattern with a program of `len` instructions, unless it is too long.
    pub(crate) fn keep(&mut self, key: impl FnOnce() -> K, value: V, len: usize) {
        if len > CACHED_LEN {
            return;
        }
        if self.0.len() == CACHED {
            self.0.remove(0);
        }
        self.0.push((key(), value));
    }
}

/// Parses a pattern within the size limits; the inner error is a fault of the pattern.
pub(crate) fn parsed(
    run: &mut Reading<'_>,
    pattern: &[u8],
    flags: Flags,
) -> Result<Result<Parsed, String>, Fault> {
    run.work(PARSE_WORK * pattern.len() as i64)?;
    let units = match flags.unicode {
        true => points(wtf8::units(pattern)),
        false => wtf8::units(pattern).map(u32::from).collect(),
    };
    let parsed = match parse::parse(&units, flags) {
        Ok(parsed) if parsed.positions > MAX_POSITIONS => {
            Err("regular expression too large".to_owned())
        }
        read => read,
    };
    Ok(parsed.map_err(|why| format!("Invalid regular expression: {why}")))
}

/// The code points of units; a lone surrogate stands for itself.
pub(crate) fn points(units: impl Iterator<Item = u16>) -> Vec<u32> {
    let point = |found: Result<char, DecodeUtf16Error>| match found {
        Ok(c) => c.into(),
        Err(lone) => lone.unpaired_surrogate().into(),
    };
    char::decode_utf16(units).map(point).collect()
}

/// A compiled pattern.
#[derive(Clone)]
struct Compiled {
    program: Rc<Program>,
    positions: u64,
}

thread_local! {
    static CACHE: RefCell<Recent<Box<[u8]>, Compiled>> = const { RefCell::new(Recent::new()) };
}

/// Whether `pattern` matches anywhere in `text`; both are WTF-8.
///
/// # Errors
/// Those of [`regex_match_str`].
pub fn regex_match(cx: &mut Cx<'_>, pattern: &[u8], text: &[u8]) -> Result<bool, Fault> {
    let units = wtf8::utf16_len(text);
    search(&mut cx.reading(), pattern, text, units)?.map_err(Fault::throw)
}

/// [`regex_match`] for strings of the heap, without copying them.
///
/// # Errors
/// Fuel, memory, a stop. Text that is too long; a pattern that is too long, invalid, too
/// large or not matchable in linear time.
pub fn regex_match_str(cx: &mut Cx<'_>, pattern: Str, text: Str) -> Result<bool, Fault> {
    let mut run = cx.reading();
    let heap = run.heap();
    let (pattern, units) = (heap.bytes(pattern), text.units());
    search(&mut run, pattern, heap.bytes(text), units)?.map_err(Fault::throw)
}

/// Whether `pattern` matches anywhere in `text`, which has `units` units; the inner error is
/// a fault of the pattern or text.
///
/// # Errors
/// Fuel, memory, a stop.
pub(crate) fn search(
    run: &mut Reading<'_>,
    pattern: &[u8],
    text: &[u8],
    units: usize,
) -> Result<Result<bool, String>, Fault> {
    let pattern_units = wtf8::utf16_len(pattern);
    run.charge(READ, Sizes::units(pattern_units + units))?;
    if pattern_units > MAX_PATTERN_UNITS {
        return Ok(Err(format!(
            "Regex pattern too long ({pattern_units} > {MAX_PATTERN_UNITS})"
        )));
    }
    if units > MAX_INPUT_UNITS {
        return Ok(Err(format!(
            "Regex input too long ({units} > {MAX_INPUT_UNITS})"
        )));
    }
    let compiled = match compiled(run, pattern, units)? {
        Ok(compiled) => compiled,
        Err(why) => return Ok(Err(why)),
    };
    compiled.program.search(run, text).map(Ok)
}

/// The compiled form of a pattern; charges for it and for a search in a text with this number
/// of units.
fn compiled(
    run: &mut Reading<'_>,
    pattern: &[u8],
    units: usize,
) -> Result<Result<Compiled, String>, Fault> {
    if let Some(found) = CACHE.with_borrow_mut(|recent| recent.find(|key| **key == *pattern)) {
        return Ok(match pay(run, found.positions, units)? {
            Ok(()) => Ok(found),
            Err(why) => Err(why),
        });
    }
    let flags = Flags {
        linear: true,
        ..Flags::default()
    };
    let parsed = match parsed(run, pattern, flags)? {
        Ok(parsed) => parsed,
        Err(why) => return Ok(Err(why)),
    };
    let positions = parsed.positions;
    if let Err(why) = pay(run, positions, units)? {
        return Ok(Err(why));
    }
    let new = Compiled {
        program: Rc::new(Program::compile(run, parsed)?),
        positions,
    };
    let len = new.program.len();
    CACHE.with_borrow_mut(|recent| recent.keep(|| pattern.into(), new.clone(), len));
    Ok(Ok(new))
}

/// Pays for a pattern of this size and a text with this number of units.
fn pay(run: &mut Reading<'_>, positions: u64, units: usize) -> Result<Result<(), String>, Fault> {
    if positions.saturating_mul(units as u64) > MAX_STEPS {
        return Ok(Err(format!(
            "Regex too costly for an input of this length ({positions} positions x {units} units \
             > {MAX_STEPS})"
        )));
    }
    run.pay_metered(regex_price(positions, units as u64))?;
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::{Bench, message};

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
        let nested = format!("{}a{}", "(".repeat(330), ")*".repeat(330));
        assert_eq!(run(&nested, ""), Ok(true));
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
        let price = 1_300 + regex_price(3, 10);
        let mut bench = Bench::with_fuel(price + 1);
        let mut cx = bench.cx();
        let pattern = cx.heap.alloc_str(b"b+$").unwrap();
        let text = cx.heap.alloc_str(b"abbbbbbbbb").unwrap();
        assert!(regex_match_str(&mut cx, pattern, text).unwrap());
        assert_eq!(bench.meter.fuel(), 1);
    }

    /// The price is that of compilation, whether or not the thread has the pattern cached,
    /// and grows with the work of compiling and matching.
    #[test]
    fn a6_the_price_is_by_compiled_size() {
        let price = |pattern: &str, text: &str| {
            let mut bench = Bench::with_fuel(i64::MAX);
            regex_match(&mut bench.cx(), pattern.as_bytes(), text.as_bytes()).unwrap();
            i64::MAX - bench.meter.fuel()
        };
        for pattern in ["^a{1,50}b", r"(?:\s{1,50}|\W{1,50}){9}qN"] {
            let first = price(pattern, "text");
            for _ in 0..CACHED {
                price(&format!("x{pattern}"), "other");
                assert_eq!(price(pattern, "text"), first);
            }
        }
        let of = |positions, units: i64, text: u64| regex_price(positions, text) + units * 100;
        assert_eq!(price("a{100}", "bb"), of(100, 8, 2));
        assert_eq!(price("(?:a|b){10}", "bb"), of(40, 13, 2));
        assert_eq!(price("(?:a{10}){10}", "bb"), of(110, 15, 2));
    }

    /// A host that stops the run from the n-th poll on.
    #[derive(Debug)]
    struct StopsAt(std::sync::atomic::AtomicUsize);

    impl crate::native::Host for StopsAt {
        fn stop(&self) -> Option<crate::native::StopReason> {
            let left = self.0.load(std::sync::atomic::Ordering::Relaxed);
            self.0
                .store(left.saturating_sub(1), std::sync::atomic::Ordering::Relaxed);
            (left == 0).then_some(crate::native::StopReason::Deadline)
        }
        fn now_ms(&self) -> f64 {
            0.0
        }
        fn random(&self, _: &mut [u8]) {}
    }

    /// Compiling and matching poll the host every few microseconds.
    #[test]
    fn a6_compiling_and_matching_stop() {
        let stops = |pattern: &str, text: &str, after: usize| {
            let mut bench = Bench::with_fuel(i64::MAX);
            let host = StopsAt(after.into());
            let mut cx = Cx::new(&mut bench.heap, &mut bench.meter, &host);
            matches!(
                regex_match(&mut cx, pattern.as_bytes(), text.as_bytes()),
                Err(Fault::Stop(_))
            )
        };
        // Twenty thousand instructions, and five million visits of states.
        for after in [0, 3, 10] {
            assert!(stops("(?:a{100}b{99}){99}", "", after), "{after}");
        }
        for after in [0, 10, 500] {
            assert!(stops("(?:a?){99}b", &"a".repeat(50_000), after), "{after}");
        }
    }
}
