//! Escapes and classes of regular expressions.

use super::regex::{Node, Parser, ascii, text_of};
use super::regex_set::{DIGITS, Member, SPACES, Set, WORDS, WORDS_FOLDED, property};

impl Parser {
    pub(super) fn escape(&mut self) -> Result<(Node, bool), String> {
        let Some(c) = self.peek() else {
            return Err("\\ at end of pattern".into());
        };
        match c {
            'b' | 'B' => {
                self.at += 1;
                let folds = self.flags.unicode && self.flags.ignore_case;
                Ok((Node::Boundary(c == 'b', folds), false))
            }
            'k' if self.named || self.flags.unicode => {
                self.at += 1;
                let name = if self.accept("<") { self.name() } else { None };
                let name = name.ok_or("invalid \\k named reference")?;
                self.not_linear(&format!("back-reference \\k<{name}>"))?;
                Ok((Node::AgainNamed(name), true))
            }
            '1'..='9' => {
                let digits: String = self.units[self.at..]
                    .iter()
                    .map(|u| ascii(*u))
                    .take_while(char::is_ascii_digit)
                    .collect();
                match digits.parse::<u64>() {
                    Ok(number) if number <= self.groups => {
                        self.not_linear(&format!("back-reference \\{number}"))?;
                        self.at += digits.len();
                        Ok((Node::Again(number as usize), true))
                    }
                    _ => {
                        let set = Set::one(self.character(false)?);
                        Ok((self.unit(set), true))
                    }
                }
            }
            _ => {
                let set = match self.kind()? {
                    Some(set) => set,
                    None => Set::one(self.character(false)?),
                };
                Ok((self.unit(set), true))
            }
        }
    }

    /// `\d` and the like, after the backslash.
    fn kind(&mut self) -> Result<Option<Set>, String> {
        let Some(c) = self.peek() else {
            return Ok(None);
        };
        let folds = self.flags.unicode && self.flags.ignore_case;
        let mut ranges = match c.to_ascii_lowercase() {
            'd' => DIGITS.to_vec(),
            'w' if folds => [WORDS, WORDS_FOLDED].concat(),
            'w' => WORDS.to_vec(),
            's' => SPACES.to_vec(),
            'p' if self.flags.unicode => {
                self.at += 1;
                let invalid = || "invalid property expression".to_owned();
                let end = self.units[self.at..].iter().position(|u| *u == 125);
                let end = self.at + end.ok_or_else(invalid)?;
                let name = text_of(&self.units[self.at..end]);
                let name = name.as_deref().and_then(|name| name.strip_prefix('{'));
                let ranges = property(name.ok_or_else(invalid)?).ok_or_else(invalid)?;
                self.at = end;
                ranges
            }
            _ => return Ok(None),
        };
        self.at += 1;
        ranges.sort_unstable();
        Ok(Some(Set::of(ranges, c.is_ascii_uppercase())))
    }

    /// The unit of an escape, after the backslash.
    fn character(&mut self, in_class: bool) -> Result<u32, String> {
        let unicode = self.flags.unicode;
        let Some(unit) = self.next() else {
            return Ok(92);
        };
        let invalid = || Err("invalid escaped character for Unicode pattern".to_owned());
        let octal = |c: Option<char>| c.and_then(|c| c.to_digit(8));
        Ok(match ascii(unit) {
            't' => 9,
            'n' => 10,
            'v' => 11,
            'f' => 12,
            'r' => 13,
            'c' => match self.peek().filter(char::is_ascii_alphabetic) {
                Some(letter) => {
                    self.at += 1;
                    letter as u32 % 32
                }
                None if unicode => return invalid(),
                // The backslash is a character, and the letter the next one.
                None => {
                    self.at -= 1;
                    92
                }
            },
            c @ ('x' | 'u') => match (self.numbered(c), unicode) {
                (Some(found), _) => found,
                (None, true) => return invalid(),
                (None, false) => unit,
            },
            '0' if unicode && !self.peek().is_some_and(|c| c.is_ascii_digit()) => 0,
            '0'..='7' if !unicode => {
                let mut value = unit - 48;
                // Up to \377: three digits only if the first is below 4.
                let more = if value < 4 { 2 } else { 1 };
                for _ in 0..more {
                    let Some(digit) = octal(self.peek()) else {
                        break;
                    };
                    self.at += 1;
                    value = value * 8 + digit;
                }
                value
            }
            '-' if in_class => unit,
            c if unicode && !"^$\\.*+?()[]{}|/".contains(c) => return invalid(),
            _ => unit,
        })
    }

    /// The rest of `\x41`, `\u0041` or `\u{41}`.
    fn numbered(&mut self, kind: char) -> Option<u32> {
        if kind == 'u' && self.flags.unicode && self.accept("{") {
            let end = self.units[self.at..].iter().position(|u| *u == 125)?;
            let text = text_of(&self.units[self.at..self.at + end])?;
            self.at += end + 1;
            let all = text.chars().all(|c| c.is_ascii_hexdigit());
            let value = u128::from_str_radix(&text, 16).ok().filter(|_| all)?;
            return (value <= 0x10_FFFF).then_some(value as u32);
        }
        let high = self.hexadecimal(if kind == 'x' { 2 } else { 4 })?;
        let after = self.at;
        if kind == 'u'
            && self.flags.unicode
            && (0xD800..0xDC00).contains(&high)
            && self.accept("\\u")
        {
            match self.hexadecimal(4) {
                Some(low @ 0xDC00..=0xDFFF) => {
                    return Some(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00);
                }
                _ => self.at = after,
            }
        }
        Some(high)
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u32> {
        let text = self.units.get(self.at..self.at + digits)?;
        let text: String = text.iter().map(|u| ascii(*u)).collect();
        let all = text.chars().all(|c| c.is_ascii_hexdigit());
        let value = u32::from_str_radix(&text, 16).ok().filter(|_| all)?;
        self.at += digits;
        Some(value)
    }

    /// A class, after its opening bracket.
    pub(super) fn class(&mut self) -> Result<Set, String> {
        let (negated, most) = (self.accept("^"), self.most());
        let mut ranges = Vec::new();
        while let Some(first) = self.member()? {
            let dash =
                self.peek() == Some('-') && self.units.get(self.at + 1).is_none_or(|u| *u != 93);
            if !dash {
                ranges.extend(first.spread(most));
                continue;
            }
            self.at += 1;
            let Some(last) = self.member()? else { break };
            match (&first, &last) {
                (Member::Unit(a), Member::Unit(b)) if a > b => {
                    return Err("range out of order in character class".into());
                }
                (Member::Unit(a), Member::Unit(b)) => ranges.push((*a, *b)),
                _ if self.flags.unicode => {
                    return Err("invalid range in character class for Unicode pattern".into());
                }
                _ => {
                    ranges.extend(first.spread(most));
                    ranges.push((45, 45));
                    ranges.extend(last.spread(most));
                }
            }
        }
        Ok(Set::of(ranges, negated))
    }

    fn member(&mut self) -> Result<Option<Member>, String> {
        let Some(unit) = self.next() else {
            return Err("missing terminating ] for character class".into());
        };
        match ascii(unit) {
            ']' => return Ok(None),
            '\\' => {}
            _ => return Ok(Some(Member::Unit(unit))),
        }
        if self.peek().is_none() {
            return Err("\\ at end of pattern".into());
        }
        if let Some(set) = self.kind()? {
            return Ok(Some(Member::Set(set)));
        }
        if self.accept("b") {
            return Ok(Some(Member::Unit(8)));
        }
        // Inside a class, \c accepts digits and the underscore too.
        if !self.flags.unicode
            && self.peek() == Some('c')
            && let Some(&next) = self.units.get(self.at + 1)
            && matches!(ascii(next), '0'..='9' | '_')
        {
            self.at += 2;
            return Ok(Some(Member::Unit(next % 32)));
        }
        Ok(Some(Member::Unit(self.character(true)?)))
    }
}
