//! Escapes and character classes of patterns.

use super::parse::{Assertion, Node, Parser, text_of};
use super::property;
use super::set::{ClassAtom, DIGIT, Ranges, SPACE, WORD, WORD_FOLDED};

/// Maximum number of `\p{...}` in a pattern, whose tables take time to read.
const MAX_PROPERTIES: u64 = 64;

impl Parser<'_> {
    /// Parses an escape outside of classes.
    pub(super) fn escape(&mut self) -> Result<(), String> {
        let start = self.at;
        let Some(unit) = self.next() else {
            return Err("\\ at end of pattern".to_owned());
        };
        let folds = self.folds_words();
        let border = |wanted| Assertion::Border { wanted, folds };
        match u8::try_from(unit).unwrap_or(0) {
            b'b' => self.assertion(border(true)),
            b'B' => self.assertion(border(false)),
            b'k' if self.named || self.flags.unicode => {
                let name = if self.take("<") { self.name() } else { None };
                let name = name.ok_or("invalid \\k named reference")?;
                self.backtrack(&format!("back-reference \\k<{name}>"))?;
                self.references.push((self.nodes.len(), name));
                self.atom(Node::Reference(0));
            }
            b'1'..=b'9' => {
                self.at = start;
                let number = self.number().unwrap_or(0);
                if number <= u64::from(self.groups) {
                    self.backtrack(&format!("back-reference \\{number}"))?;
                    self.atom(Node::Reference(number as u32));
                    return Ok(());
                }
                if self.flags.unicode {
                    return Err("invalid escaped character for Unicode pattern".to_owned());
                }
                self.at = start;
                let unit = self.character_escape(false)?;
                self.unit(unit);
            }
            _ => {
                self.at = start;
                match self.set_escape()? {
                    Some((ranges, true)) => self.complement(&ranges),
                    Some((ranges, false)) => self.set(ranges.into_owned(), false),
                    None => {
                        let unit = self.character_escape(false)?;
                        self.unit(unit);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether two letters beyond ASCII are of words: those whose other case is ASCII.
    fn folds_words(&self) -> bool {
        self.flags.unicode && self.flags.ignore_case
    }

    /// Parses `\d` and similar sets, after the backslash: the ranges, and whether their
    /// complement is meant.
    fn set_escape(&mut self) -> Result<Option<(Ranges, bool)>, String> {
        let word = if self.folds_words() {
            WORD_FOLDED
        } else {
            WORD
        };
        let set = match self.peek() {
            Some(b'd') => (DIGIT.into(), false),
            Some(b'D') => (DIGIT.into(), true),
            Some(b'w') => (word.into(), false),
            Some(b'W') => (word.into(), true),
            Some(b's') => (SPACE.into(), false),
            Some(b'S') => (SPACE.into(), true),
            Some(sign @ (b'p' | b'P')) if self.flags.unicode => {
                self.at += 1;
                return Ok(Some((self.property()?, sign == b'P')));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(set))
    }

    /// Parses `{...}` after `\p`.
    fn property(&mut self) -> Result<Ranges, String> {
        let invalid = || "invalid property expression".to_owned();
        let rest = &self.pattern[self.at..];
        let len = rest.iter().position(|u| *u == u32::from(b'}'));
        let text = len.and_then(|len| text_of(&rest[..len]));
        let text = text.as_deref().and_then(|text| text.strip_prefix('{'));
        let text = text.ok_or_else(invalid)?;
        self.properties += 1;
        if self.properties > MAX_PROPERTIES {
            return Err("regular expression too large".to_owned());
        }
        let ranges = property::ranges(text).ok_or_else(invalid)?;
        self.at += text.len() + 2;
        Ok(ranges.into())
    }

    /// Parses an escape of one character, after the backslash. An unknown escape is a literal
    /// (§B.1.2), except with the flag `u`.
    fn character_escape(&mut self, in_class: bool) -> Result<u32, String> {
        let unicode = self.flags.unicode;
        let Some(unit) = self.next() else {
            return Ok(u32::from(b'\\'));
        };
        let literal = |found: Option<u32>| match found {
            None if unicode => Err("invalid escaped character for Unicode pattern".to_owned()),
            found => Ok(found.unwrap_or(unit)),
        };
        let digit = |at: Option<u8>| at.is_some_and(|c| c.is_ascii_digit());
        match u8::try_from(unit).unwrap_or(0) {
            b't' => Ok(0x09),
            b'n' => Ok(0x0A),
            b'v' => Ok(0x0B),
            b'f' => Ok(0x0C),
            b'r' => Ok(0x0D),
            b'c' => match self.peek().filter(u8::is_ascii_alphabetic) {
                Some(letter) => {
                    self.at += 1;
                    Ok(u32::from(letter % 32))
                }
                None if unicode => literal(None),
                None => {
                    // The backslash is a literal and the `c` comes next.
                    self.at -= 1;
                    Ok(u32::from(b'\\'))
                }
            },
            b'x' => literal(self.hex(2)),
            b'u' => literal(self.code_point()),
            b'0' if unicode && !digit(self.peek()) => Ok(0),
            b'0'..=b'7' if !unicode => Ok(self.octal(unit - u32::from(b'0'))),
            b'-' if unicode && in_class => Ok(unit),
            c => literal((!unicode || b"^$\\.*+?()[]{}|/".contains(&c)).then_some(unit)),
        }
    }

    /// Parses the rest of `\u1234`, with the flag `u` also of `\u{1f600}` and of a pair.
    fn code_point(&mut self) -> Option<u32> {
        if !self.flags.unicode {
            return self.hex(4);
        }
        if self.take("{") {
            let rest = &self.pattern[self.at..];
            let len = rest.iter().position(|u| *u == u32::from(b'}'))?;
            let digits = text_of(&rest[..len])?;
            let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
            let digits = digits.trim_start_matches('0');
            let point = match digits {
                "" if len > 0 => 0,
                digits => u32::from_str_radix(digits, 16).ok()?,
            };
            self.at += len + 1;
            return (hex && point <= u32::from(char::MAX)).then_some(point);
        }
        let high = self.hex(4)?;
        let start = self.at;
        if (0xD800..0xDC00).contains(&high)
            && self.take("\\u")
            && let Some(low @ 0xDC00..0xE000) = self.hex(4)
        {
            return Some(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00));
        }
        self.at = start;
        Some(high)
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let mut n = 0;
        for unit in self.pattern.get(self.at..self.at + digits)? {
            n = n * 16 + char::from_u32(*unit)?.to_digit(16)?;
        }
        self.at += digits;
        Some(n)
    }

    /// Parses the rest of a legacy octal escape: at most three digits, below 256.
    fn octal(&mut self, first: u32) -> u32 {
        let mut n = first;
        for _ in 0..2 {
            match self.peek() {
                Some(digit @ b'0'..=b'7') if n * 8 + u32::from(digit - b'0') < 256 => {
                    n = n * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                _ => break,
            }
        }
        n
    }

    /// Parses a character class, after its bracket.
    pub(super) fn class(&mut self) -> Result<(), String> {
        let (negated, most) = (self.take("^"), self.most());
        let mut body = Vec::new();
        while let Some(from) = self.class_atom()? {
            let dash = self.pattern[self.at..].first() == Some(&u32::from(b'-'))
                && self.pattern.get(self.at + 1) != Some(&u32::from(b']'));
            if !dash {
                from.push(&mut body, most);
                continue;
            }
            self.at += 1;
            let Some(to) = self.class_atom()? else { break };
            match (from, to) {
                (ClassAtom::Unit(a), ClassAtom::Unit(b)) if a > b => {
                    return Err("range out of order in character class".to_owned());
                }
                (ClassAtom::Unit(a), ClassAtom::Unit(b)) => body.push((a, b)),
                _ if self.flags.unicode => {
                    return Err("invalid range in character class for Unicode pattern".to_owned());
                }
                // With a set at either end the dash is a literal (§B.1.2).
                (from, to) => {
                    from.push(&mut body, most);
                    ClassAtom::Unit(u32::from(b'-')).push(&mut body, most);
                    to.push(&mut body, most);
                }
            }
        }
        self.set(body, negated);
        Ok(())
    }

    /// Parses the next member of a class; `None` at its end, which is consumed.
    fn class_atom(&mut self) -> Result<Option<ClassAtom>, String> {
        let unterminated = || "missing terminating ] for character class".to_owned();
        let unit = self.next().ok_or_else(unterminated)?;
        if unit == u32::from(b']') {
            return Ok(None);
        }
        if unit != u32::from(b'\\') {
            return Ok(Some(ClassAtom::Unit(unit)));
        }
        if let Some((ranges, negated)) = self.set_escape()? {
            return Ok(Some(ClassAtom::Set(ranges, negated)));
        }
        if self.at == self.pattern.len() {
            return Err("\\ at end of pattern".to_owned());
        }
        if self.take("b") {
            return Ok(Some(ClassAtom::Unit(0x08)));
        }
        Ok(Some(ClassAtom::Unit(self.class_character_escape()?)))
    }

    /// As [`Parser::character_escape`]; in classes `\c` also accepts digits and the
    /// underscore, except with the flag `u`.
    fn class_character_escape(&mut self) -> Result<u32, String> {
        if !self.flags.unicode
            && self.peek() == Some(b'c')
            && let Some(next) = self.pattern.get(self.at + 1)
            && let Ok(digit @ (b'0'..=b'9' | b'_')) = u8::try_from(*next)
        {
            self.at += 2;
            return Ok(u32::from(digit % 32));
        }
        self.character_escape(true)
    }
}
