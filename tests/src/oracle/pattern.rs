//! Price of a regular expression in the metered model: its positions, its size with expanded
//! repetitions, and positions times the units of the text.

use super::meter::{pay, pay_metered};
use super::value::{Fail, Res};
use a99_core::costs::{READ, Sizes, regex_price};

const MAX_POSITIONS: u64 = 20_000;
const MAX_STEPS: u64 = 100_000_000;

/// Pays for matching a pattern against a text of `units` units, and refuses a pattern or text
/// that is too large. A refused length costs nothing, and an invalid pattern only its reading.
pub(super) fn pay_match(pattern: &[u16], units: usize) -> Res<()> {
    if pattern.len() > 1_000 || units > 100_000 {
        return Ok(());
    }
    pay(READ, Sizes::units(pattern.len() + units))?;
    if !super::regex::is_valid(pattern) {
        return Ok(());
    }
    let (positions, _) = positions(pattern, false)?;
    if positions.saturating_mul(units as u64) > MAX_STEPS {
        return Err(Fail::new(format!(
            "Regex too costly for an input of this length ({positions} positions x {units} \
             units > {MAX_STEPS})"
        )));
    }
    pay_metered(regex_price(positions, units as u64))
}

/// The positions of a valid pattern and its number of properties, or the error of too many.
pub(super) fn positions(pattern: &[u16], unicode: bool) -> Res<(u64, u64)> {
    let points = match unicode {
        true => super::regex::points(pattern),
        false => pattern.iter().map(|unit| u32::from(*unit)).collect(),
    };
    let mut reader = Reader {
        pattern: &points,
        at: 0,
        unicode,
        properties: 0,
    };
    let positions = reader.group().unwrap_or(0).max(1);
    if positions > MAX_POSITIONS {
        return Err(Fail::new(
            "Invalid regular expression: regular expression too large",
        ));
    }
    Ok((positions, reader.properties))
}

struct Reader<'a> {
    pattern: &'a [u32],
    at: usize,
    unicode: bool,
    properties: u64,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        let unit = *self.pattern.get(self.at + ahead)?;
        Some(char::from_u32(unit).unwrap_or('\u{FFFD}'))
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }

    fn hex(&mut self, digits: usize) {
        if (0..digits).all(|n| self.peek(n).is_some_and(|c| c.is_ascii_hexdigit())) {
            self.at += digits;
        }
    }

    /// The positions up to the end of a group or of the pattern.
    fn group(&mut self) -> Option<u64> {
        let mut sum = 0u64;
        while let Some(c) = self.peek(0) {
            if c == ')' {
                break;
            }
            self.at += 1;
            let size = match c {
                '|' | '^' | '$' => {
                    sum = sum.saturating_add(1);
                    continue;
                }
                '(' => {
                    if self.peek(0) == Some('?') {
                        self.at += 2;
                        let named = self.pattern.get(self.at - 1) == Some(&u32::from(b'<'));
                        if named && matches!(self.peek(0), Some('=' | '!')) {
                            self.at += 1;
                        } else if named {
                            while self.next()? != '>' {}
                        }
                    }
                    let inner = self.group()?;
                    (self.next()? == ')').then_some(inner.saturating_add(1))?
                }
                '[' => {
                    loop {
                        match self.next()? {
                            ']' => break,
                            '\\' => match self.next()? {
                                'p' | 'P' if self.unicode => self.property(),
                                _ => {}
                            },
                            _ => {}
                        }
                    }
                    1
                }
                '\\' => match self.next()? {
                    'b' | 'B' => {
                        sum = sum.saturating_add(1);
                        continue;
                    }
                    'p' | 'P' if self.unicode => {
                        self.property();
                        1
                    }
                    'k' if self.peek(0) == Some('<') && self.refers() => {
                        while self.next()? != '>' {}
                        1
                    }
                    'u' if self.unicode => {
                        self.code_point();
                        1
                    }
                    'x' => {
                        self.hex(2);
                        1
                    }
                    'u' => {
                        self.hex(4);
                        1
                    }
                    'c' => {
                        match self.peek(0) {
                            Some(c) if c.is_ascii_alphabetic() => self.at += 1,
                            // The backslash is a character, and the `c` another one.
                            _ => self.at -= 1,
                        }
                        1
                    }
                    // A reference to a group, or an octal escape.
                    digit @ '1'..='9' if self.number_after(digit) <= self.groups() => {
                        self.number();
                        1
                    }
                    digit @ '0'..='7' => {
                        self.octal(digit);
                        1
                    }
                    _ => 1,
                },
                _ => 1,
            };
            sum = sum.saturating_add(size.saturating_mul(self.copies()));
        }
        Some(sum)
    }

    /// The rest of `\p{...}`.
    fn property(&mut self) {
        self.properties += 1;
        while self.next().is_some_and(|c| c != '}') {}
    }

    /// The decimal number that a digit begins.
    fn number_after(&self, first: char) -> u64 {
        let mut value = u64::from(first as u32 - '0' as u32);
        let mut ahead = 0;
        while let Some(digit) = self.peek(ahead).and_then(|c| c.to_digit(10)) {
            value = value.saturating_mul(10).saturating_add(digit.into());
            ahead += 1;
        }
        value
    }

    /// Number of capturing groups.
    fn groups(&self) -> u64 {
        let c = |at: usize| self.pattern.get(at).and_then(|unit| char::from_u32(*unit));
        let (mut groups, mut in_class, mut at) = (0, false, 0);
        while let Some(found) = c(at) {
            match found {
                '\\' => at += 1,
                '[' => in_class = true,
                ']' => in_class = false,
                '(' if !in_class => {
                    let named = c(at + 1) == Some('?') && c(at + 2) == Some('<');
                    let named = named && !matches!(c(at + 3), Some('=' | '!'));
                    groups += u64::from(named || c(at + 1) != Some('?'));
                }
                _ => {}
            }
            at += 1;
        }
        groups
    }

    /// True if `\k` refers to a group, as it does with the flag `u` and where groups have names.
    fn refers(&self) -> bool {
        let named = |three: &[u32]| {
            three[0] == u32::from(b'(')
                && three[1] == u32::from(b'?')
                && three[2] == u32::from(b'<')
        };
        self.unicode
            || self
                .pattern
                .windows(4)
                .any(|four| named(four) && four[3] != u32::from(b'=') && four[3] != u32::from(b'!'))
    }

    /// The rest of `\u`: braces, or one or two surrogates.
    fn code_point(&mut self) {
        if self.peek(0) == Some('{') {
            while self.next().is_some_and(|c| c != '}') {}
            return;
        }
        let value = |reader: &Self, from: usize| -> Option<u32> {
            let mut digits = (from..from + 4).map(|n| reader.peek(n)?.to_digit(16));
            digits.try_fold(0, |value, digit| Some(value * 16 + digit?))
        };
        let high = value(self, 0);
        self.hex(4);
        if high.is_some_and(|high| (0xD800..0xDC00).contains(&high))
            && self.peek(0) == Some('\\')
            && self.peek(1) == Some('u')
            && value(self, 2).is_some_and(|low| (0xDC00..0xE000).contains(&low))
        {
            self.at += 6;
        }
    }

    /// The rest of an octal escape, below 256.
    fn octal(&mut self, first: char) {
        let mut value = first as u32 - '0' as u32;
        for _ in 0..2 {
            match self.peek(0) {
                Some(c @ '0'..='7') if value * 8 + (c as u32 - '0' as u32) < 256 => {
                    value = value * 8 + (c as u32 - '0' as u32);
                    self.at += 1;
                }
                _ => break,
            }
        }
    }

    /// Number of copies that the next quantifier expands to.
    fn copies(&mut self) -> u64 {
        let start = self.at;
        let copies = match self.next() {
            Some('*' | '?') => 1,
            Some('+') => 2,
            Some('{') => match self.braces() {
                Some((_, Some(max))) => max.max(1),
                Some((min, None)) => min.saturating_add(1),
                None => {
                    self.at = start;
                    return 1;
                }
            },
            _ => {
                self.at = start;
                return 1;
            }
        };
        if self.peek(0) == Some('?') {
            self.at += 1;
        }
        copies
    }

    fn braces(&mut self) -> Option<(u64, Option<u64>)> {
        let min = self.number()?;
        let mut max = Some(min);
        if self.peek(0) == Some(',') {
            self.at += 1;
            max = self.number();
        }
        (self.next()? == '}').then_some((min, max))
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = None;
        while let Some(digit) = self.peek(0).and_then(|c| c.to_digit(10)) {
            let before = value.unwrap_or(0u64);
            value = Some(before.saturating_mul(10).saturating_add(digit.into()));
            self.at += 1;
        }
        value
    }
}
