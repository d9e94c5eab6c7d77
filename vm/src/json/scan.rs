//! Scanner for a host's JSON text: validates it, and finds the places of used members. It
//! builds no values, and the walk is a loop.

use super::decode::decoded;
use crate::convert::special;
use crate::native::{Cx, Fault};
use smallvec::SmallVec;
use std::ops::Range;

/// Maximum nesting of arrays and objects in JSON arguments; deeper text is more likely an
/// attack than data. Used arguments have a lower limit.
pub(crate) const MAX_TEXT_DEPTH: usize = 8192;

/// Bytes read between two yield points.
const SLICE: usize = 64 << 10;

/// The expectation that an invalid text violates.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A value.
    Value,
    /// The first key of an object, or its end.
    KeyOrEnd,
    /// A key, after a comma.
    Key,
    /// The colon after a key.
    Colon,
    /// A comma, or the end of an object.
    InObject,
    /// A comma, or the end of an array.
    InArray,
    /// The end of the text.
    End,
    /// The rest of a string.
    Quote,
    /// A character other than a control character.
    Escaped,
    /// A valid character after a backslash.
    Escape,
    /// Four hexadecimal digits.
    Hex,
    /// A digit.
    Digit,
    /// UTF-8.
    Utf8,
    /// No byte order mark.
    NoMark,
    /// Less nesting.
    Shallower,
}

/// Why a text was not read.
pub(crate) enum NotRead {
    /// The text is invalid JSON.
    Bad {
        /// The offset of the unexpected byte; the length of the text if it is truncated.
        at: usize,
        expected: Expected,
    },
    /// The run ends.
    Ends(Fault),
}

impl From<Fault> for NotRead {
    fn from(fault: Fault) -> NotRead {
        NotRead::Ends(fault)
    }
}

/// The place of a member's value.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) bytes: Range<usize>,
    /// Whether it has a number that may become longer when it is written: one with an
    /// exponent, or with enough digits to be rounded to one more.
    pub(crate) grows: bool,
}

/// Maximum bytes of text per byte of a name: `\u0041`.
const ESCAPED: usize = 6;

/// Scans a whole text. If its outermost value is an object, reports the name of each member
/// with the place of its value; of repeated names the last one counts. Names longer than
/// `longest` bytes may be skipped.
///
/// # Errors
/// Invalid JSON; a stop.
pub(crate) fn scan(
    cx: &mut Cx<'_>,
    text: &[u8],
    is_utf8: bool,
    longest: usize,
    mut member: impl FnMut(&[u8], Place),
) -> Result<(), NotRead> {
    let mut scan = Scan::new(text);
    scan.longest = longest.saturating_mul(ESCAPED);
    if text.starts_with(b"\xEF\xBB\xBF") {
        return Err(scan.bad(Expected::NoMark));
    }
    if !is_utf8 {
        check_utf8(cx, text)?;
    }
    if scan.next(cx)? == Some(b'{') {
        scan.members(cx, &mut member)?;
    } else {
        scan.value(cx)?;
    }
    match scan.next(cx)? {
        None => Ok(()),
        Some(_) => Err(scan.bad(Expected::End)),
    }
}

fn check_utf8(cx: &mut Cx<'_>, text: &[u8]) -> Result<(), NotRead> {
    let mut at = 0;
    while at < text.len() {
        let end = text.len().min(at + SLICE);
        match std::str::from_utf8(&text[at..end]) {
            Ok(_) => at = end,
            // A character split by the slice is whole in the next one.
            Err(e) if e.error_len().is_none() && end < text.len() => at += e.valid_up_to(),
            Err(e) => {
                return Err(NotRead::Bad {
                    at: at + e.valid_up_to(),
                    expected: Expected::Utf8,
                });
            }
        }
        cx.work(SLICE as i64 / 16)?;
    }
    Ok(())
}

/// The open containers, as bits: set for an object.
#[derive(Default)]
struct Open {
    bits: SmallVec<[u64; 4]>,
    depth: usize,
}

impl Open {
    #[inline]
    fn push(&mut self, object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        let mask = 1 << bit;
        let bits = &mut self.bits[word];
        *bits = if object { *bits | mask } else { *bits & !mask };
        self.depth += 1;
    }

    #[inline]
    fn is_object(&self) -> bool {
        let top = self.depth - 1;
        self.bits[top / 64] >> (top % 64) & 1 == 1
    }
}

pub(super) struct Scan<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
    /// Maximum length of a decoded key in bytes.
    longest: usize,
    open: Open,
    /// Whether a number was found that may become longer when it is written.
    grows: bool,
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t [u8]) -> Scan<'t> {
        Scan {
            text,
            at: 0,
            longest: 0,
            open: Open::default(),
            grows: false,
        }
    }

    #[cold]
    pub(super) fn bad(&self, expected: Expected) -> NotRead {
        NotRead::Bad {
            at: self.at.min(self.text.len()),
            expected,
        }
    }

    /// Skips blanks and returns the next byte.
    #[inline(always)]
    pub(super) fn next(&mut self, cx: &mut Cx<'_>) -> Result<Option<u8>, NotRead> {
        match self.text.get(self.at) {
            Some(byte) if *byte > b' ' => Ok(Some(*byte)),
            _ => self.skip_blanks(cx),
        }
    }

    #[inline(never)]
    fn skip_blanks(&mut self, cx: &mut Cx<'_>) -> Result<Option<u8>, NotRead> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        self.run(cx, is_blank)?;
        Ok(self.text.get(self.at).copied())
    }

    /// Skips bytes that satisfy `is`.
    fn run(&mut self, cx: &mut Cx<'_>, is: impl Fn(&u8) -> bool) -> Result<usize, NotRead> {
        let start = self.at;
        loop {
            let end = self.text.len().min(self.at + SLICE);
            let slice = &self.text[self.at..end];
            let stop = slice.iter().position(|byte| !is(byte));
            let len = stop.unwrap_or(slice.len());
            self.at += len;
            cx.work(len as i64)?;
            if stop.is_some() || end == self.text.len() {
                return Ok(self.at - start);
            }
        }
    }

    pub(super) fn open(&mut self, object: bool) -> Result<(), NotRead> {
        if self.open.depth >= MAX_TEXT_DEPTH {
            return Err(self.bad(Expected::Shallower));
        }
        self.at += 1;
        self.open.push(object);
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.at += 1;
        self.open.depth -= 1;
    }

    /// Scans the members of the outermost object.
    fn members(
        &mut self,
        cx: &mut Cx<'_>,
        member: &mut impl FnMut(&[u8], Place),
    ) -> Result<(), NotRead> {
        self.open(true)?;
        if self.next(cx)? == Some(b'}') {
            self.close();
            return Ok(());
        }
        let mut expected = Expected::KeyOrEnd;
        loop {
            let (key, is_plain) = self.key(cx, expected)?;
            let _ = self.next(cx)?;
            let start = self.at;
            self.grows = false;
            self.value(cx)?;
            let place = Place {
                bytes: start..self.at,
                grows: self.grows,
            };
            if is_plain {
                member(&self.text[key], place);
            } else if key.len() <= self.longest {
                let name = decoded(cx, &self.text[key])?;
                member(&name, place);
            }
            match self.next(cx)? {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.close();
                    return Ok(());
                }
                _ => return Err(self.bad(Expected::InObject)),
            }
            expected = Expected::Key;
        }
    }

    /// Scans a key and its colon: the range between its quotes, and whether it has no
    /// escapes.
    pub(super) fn key(
        &mut self,
        cx: &mut Cx<'_>,
        expected: Expected,
    ) -> Result<(Range<usize>, bool), NotRead> {
        if self.next(cx)? != Some(b'"') {
            return Err(self.bad(expected));
        }
        let start = self.at + 1;
        let is_plain = self.string(cx)?;
        let key = start..self.at - 1;
        if self.next(cx)? != Some(b':') {
            return Err(self.bad(Expected::Colon));
        }
        self.at += 1;
        Ok((key, is_plain))
    }

    /// Scans a value.
    fn value(&mut self, cx: &mut Cx<'_>) -> Result<(), NotRead> {
        let outer = self.open.depth;
        loop {
            cx.work(4)?;
            match self.next(cx)? {
                Some(b'"') => {
                    self.string(cx)?;
                }
                Some(b'-' | b'0'..=b'9') => self.number(cx)?,
                Some(b'{') => {
                    self.open(true)?;
                    if self.next(cx)? == Some(b'}') {
                        self.close();
                    } else {
                        self.key(cx, Expected::KeyOrEnd)?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.open(false)?;
                    if self.next(cx)? == Some(b']') {
                        self.close();
                    } else {
                        continue;
                    }
                }
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                _ => return Err(self.bad(Expected::Value)),
            }
            // Ends all containers that end with this value.
            loop {
                if self.open.depth == outer {
                    return Ok(());
                }
                let object = self.open.is_object();
                match self.next(cx)? {
                    Some(b',') => {
                        self.at += 1;
                        if object {
                            self.key(cx, Expected::Key)?;
                        }
                        break;
                    }
                    Some(b'}') if object => self.close(),
                    Some(b']') if !object => self.close(),
                    _ if object => return Err(self.bad(Expected::InObject)),
                    _ => return Err(self.bad(Expected::InArray)),
                }
            }
        }
    }

    pub(super) fn word(&mut self, word: &[u8]) -> Result<(), NotRead> {
        let rest = &self.text[self.at..];
        let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if !rest.starts_with(word) || rest.get(word.len()).is_some_and(goes_on) {
            return Err(self.bad(Expected::Value));
        }
        self.at += word.len();
        Ok(())
    }

    pub(super) fn number(&mut self, cx: &mut Cx<'_>) -> Result<(), NotRead> {
        /// Number of digits from which a whole number may change when it is written: 16 nines
        /// are 10^16.
        const ROUNDED: usize = 16;
        self.at += usize::from(self.text[self.at] == b'-');
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.grows |= self.digits(cx)? >= ROUNDED;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits(cx)?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.grows = true;
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits(cx)?;
        }
        Ok(())
    }

    #[inline]
    fn digits(&mut self, cx: &mut Cx<'_>) -> Result<usize, NotRead> {
        match self.run(cx, u8::is_ascii_digit)? {
            0 => Err(self.bad(Expected::Digit)),
            len => Ok(len),
        }
    }

    /// Scans a string with its quotes; whether it has no escapes.
    pub(super) fn string(&mut self, cx: &mut Cx<'_>) -> Result<bool, NotRead> {
        self.at += 1;
        let mut is_plain = true;
        loop {
            let rest = &self.text[self.at..];
            let slice = &rest[..rest.len().min(SLICE)];
            let stop = special(slice);
            let len = stop.unwrap_or(slice.len());
            let is_last = slice.len() == rest.len();
            self.at += len;
            cx.work(len as i64 / 8)?;
            match stop.map(|at| slice[at]) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(is_plain);
                }
                Some(b'\\') => {
                    is_plain = false;
                    self.escape()?;
                    cx.work(1)?;
                }
                Some(_) => return Err(self.bad(Expected::Escaped)),
                None if is_last => return Err(self.bad(Expected::Quote)),
                None => {}
            }
        }
    }

    fn escape(&mut self) -> Result<(), NotRead> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.bad(Expected::Hex));
                }
                self.at += 6;
            }
            Some(_) => return Err(self.bad(Expected::Escape)),
            None => {
                self.at = self.text.len();
                return Err(self.bad(Expected::Quote));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::{Bench, Late};
    use crate::json::parse;

    /// The members reported for a text, or the offset of its fault.
    fn told(text: &[u8], longest: usize) -> Result<Vec<(String, String, bool)>, usize> {
        let mut bench = Bench::default();
        let mut out = Vec::new();
        let done = scan(&mut bench.cx(), text, false, longest, |name, place| {
            let name = a99_core::text::wtf8_to_string_lossy(name).into_owned();
            let value = String::from_utf8_lossy(&text[place.bytes]);
            out.push((name, value.into_owned(), place.grows));
        });
        match done {
            Ok(()) => Ok(out),
            Err(NotRead::Bad { at, .. }) => Err(at),
            Err(NotRead::Ends(_)) => panic!("nobody stops it"),
        }
    }

    #[test]
    fn members_are_told_with_their_places() {
        let text = br#" { "a" : [1, {"b": 2}] , "\u0062": -1.5E3,"a":"x\"}" ,"c":{} } "#;
        let all = told(text, 1).unwrap();
        let all: Vec<_> = all.iter().map(|(n, v, e)| (&**n, &**v, *e)).collect();
        let expected = [
            ("a", r#"[1, {"b": 2}]"#, false),
            ("b", "-1.5E3", true),
            ("a", r#""x\"}""#, false),
            ("c", "{}", false),
        ];
        assert_eq!(all, expected);
        // Names longer than all requested ones need not be decoded.
        assert_eq!(told(br#"{"\u0062\u0062":1}"#, 1), Ok(Vec::new()));
        for none in ["[{\"a\": 1}]", "1", "\"a\"", "null", "{}"] {
            assert_eq!(told(none.as_bytes(), 9), Ok(Vec::new()));
        }
    }

    #[test]
    fn scan_and_parser_take_the_same_texts() {
        let parts: [&[u8]; 24] = [
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"\"a\"",
            b"1",
            b"-",
            b"0",
            b".",
            b"e",
            b"+",
            b"true",
            b"nul",
            b"l",
            b" ",
            b"\n",
            b"\"",
            b"\\",
            b"u00e",
            b"9",
            b"\xC3\xA9",
            b"\x1F",
        ];
        let mut numbers = 7_u64;
        let mut good = 0;
        for _ in 0..200_000 {
            let mut text = Vec::new();
            numbers = numbers
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let mut left = numbers >> 4;
            for _ in 0..(numbers % 9) {
                text.extend_from_slice(parts[(left % 24) as usize]);
                left /= 24;
            }
            let mut bench = Bench::default();
            let parsed = parse(&mut bench.cx(), &text);
            let scanned = told(&text, 9);
            good += usize::from(scanned.is_ok());
            let shown = String::from_utf8_lossy(&text);
            assert_eq!(scanned.is_ok(), parsed.is_ok(), "{shown}");
        }
        assert!(good > 1_000, "{good}");
    }

    #[test]
    fn characters_may_lie_across_slices() {
        for before in SLICE - 8..SLICE + 8 {
            for character in ["é", "€", "😀", "\u{2028}"] {
                let mut text = format!("\"{}{character}\"", "x".repeat(before)).into_bytes();
                assert_eq!(told(&text, 0), Ok(Vec::new()));
                text.truncate(text.len() - 2);
                assert_eq!(told(&text, 0), Err(before + 1));
            }
        }
    }

    #[test]
    fn a_stop_is_seen_in_whatever_is_long() {
        const LONG: usize = 4 << 20;
        // Less than is looked at once.
        let blanks = format!("1,{}", " ".repeat(SLICE - 8));
        let digits = format!("{},", "1".repeat(SLICE - 8));
        for part in [
            "[", " ", "1", "1.5,", &blanks, &digits, "\\n", "x", "{\"a\":",
        ] {
            let start = match part {
                "x" | "\\n" => "\"",
                part if part.contains(',') => "[",
                _ => "",
            };
            let text = format!("{start}{}", part.repeat(LONG / part.len()));
            for is_utf8 in [true, false] {
                let mut bench = Bench::default();
                let mut cx = Cx::new(&mut bench.heap, &mut bench.meter, &Late);
                let done = scan(&mut cx, text.as_bytes(), is_utf8, 0, |_, _| ());
                let stopped = matches!(done, Err(NotRead::Ends(Fault::Stop(_))));
                assert!(stopped, "{part}");
            }
        }
    }
}
