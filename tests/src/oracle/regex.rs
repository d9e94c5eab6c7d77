//! Regular expressions (ECMA-262 §22.2 with annex §B.1.2) as a matching test, for `regexMatch`
//! and schemas (decision D39); `regex_find` finds.
//!
//! A recursive-descent parser builds a tree over UTF-16 units. The tree is not compiled: each
//! node maps the set of its start places to the set of its end places, so that alternatives and
//! repetitions are unions, each place is visited once, and no pattern is catastrophic. A
//! pattern matches if the final set is not empty.

use super::regex_set::{DIGITS, LINE_ENDS, Member, SPACES, Set, WORDS};

/// Longest pattern in UTF-16 units.
const MAX_PATTERN: usize = 1_000;
/// Longest input in UTF-16 units.
const MAX_INPUT: usize = 100_000;

/// True if a pattern matches somewhere in a text; both in UTF-16 units.
pub(super) fn is_match(pattern: &[u16], input: &[u16]) -> Result<bool, String> {
    if pattern.len() > MAX_PATTERN {
        let units = pattern.len();
        return Err(format!("Regex pattern too long ({units} > {MAX_PATTERN})"));
    }
    if input.len() > MAX_INPUT {
        let units = input.len();
        return Err(format!("Regex input too long ({units} > {MAX_INPUT})"));
    }
    let tree =
        parse(pattern, Flags::default()).map_err(|e| format!("Invalid regular expression: {e}"))?;
    let everywhere = (0..=input.len()).collect();
    Ok(!ends(&tree, &everywhere, input).is_empty())
}

/// True if a pattern is valid.
pub(super) fn is_valid(pattern: &[u16]) -> bool {
    parse(pattern, Flags::default()).is_ok()
}

/// Places in a text, in ascending order.
type Places = Vec<usize>;

pub(super) enum Node {
    /// One unit of a set.
    Unit(Set),
    /// The start of the text.
    Start,
    /// The end of the text.
    End,
    /// The start or the end of a line.
    LineStart,
    /// The end of a line.
    LineEnd,
    /// A word boundary, or the negated assertion.
    Boundary(bool),
    /// Nodes in sequence.
    Sequence(Vec<Node>),
    /// Alternatives.
    Either(Vec<Node>),
    /// Least and most repetitions, possibly lazy.
    Repeat(Box<Node>, u64, Option<u64>, Turns),
    /// A capturing group, by its number from 1 on.
    Group(usize, Box<Node>),
}

/// Data of a repetition for `regex_find`.
pub(super) struct Turns {
    pub(super) lazy: bool,
    /// The groups inside.
    pub(super) groups: std::ops::Range<usize>,
}

/// Effect of the flags.
#[derive(Copy, Clone, Default)]
pub(super) struct Flags {
    pub(super) ignore_case: bool,
    pub(super) multiline: bool,
    pub(super) dot_all: bool,
}

pub(super) fn is_word(unit: Option<&u16>) -> bool {
    let byte = unit.and_then(|u| u8::try_from(*u).ok());
    byte.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn merged(mut places: Places) -> Places {
    places.sort_unstable();
    places.dedup();
    places
}

/// The end places of a node for its start places.
fn ends(node: &Node, starts: &Places, text: &[u16]) -> Places {
    let at = |keep: &dyn Fn(usize) -> bool| starts.iter().copied().filter(|p| keep(*p)).collect();
    match node {
        Node::Unit(set) => {
            let fits = |p: &&usize| text.get(**p).is_some_and(|u| set.has(*u));
            starts.iter().filter(fits).map(|p| p + 1).collect()
        }
        Node::Start => at(&|p| p == 0),
        Node::End => at(&|p| p == text.len()),
        Node::LineStart | Node::LineEnd => at(&|p| at_line(node, p, text)),
        Node::Boundary(wanted) => at(&|p| {
            let before = p.checked_sub(1).and_then(|p| text.get(p));
            (is_word(before) != is_word(text.get(p))) == *wanted
        }),
        Node::Sequence(parts) => {
            let mut places = starts.clone();
            for part in parts {
                places = ends(part, &places, text);
            }
            places
        }
        Node::Either(ways) => merged(ways.iter().flat_map(|w| ends(w, starts, text)).collect()),
        Node::Repeat(inner, least, most, _) => repeated(inner, *least, *most, starts, text),
        Node::Group(_, inner) => ends(inner, starts, text),
    }
}

/// True if a line starts or ends at a place.
pub(super) fn at_line(node: &Node, place: usize, text: &[u16]) -> bool {
    let ends = |unit: &u16| LINE_ENDS.iter().any(|(a, b)| (a..=b).contains(&unit));
    match node {
        Node::LineStart => place == 0 || ends(&text[place - 1]),
        _ => text.get(place).is_none_or(ends),
    }
}

fn repeated(inner: &Node, least: u64, most: Option<u64>, starts: &Places, text: &[u16]) -> Places {
    let mut places = starts.clone();
    for _ in 0..least {
        let next = ends(inner, &places, text);
        // An empty or unchanged set stays so.
        if next == places || next.is_empty() {
            places = next;
            break;
        }
        places = next;
    }
    let mut seen = vec![false; text.len() + 1];
    places.iter().for_each(|p| seen[*p] = true);
    let mut new = places.clone();
    let mut turns = 0;
    while !new.is_empty() && most.is_none_or(|most| least.saturating_add(turns) < most) {
        new = ends(inner, &new, text);
        new.retain(|p| !std::mem::replace(&mut seen[*p], true));
        places.extend(&new);
        turns += 1;
    }
    merged(places)
}

struct Parser<'p> {
    units: &'p [u16],
    at: usize,
    groups: u64,
    named: bool,
    names: Vec<(String, usize)>,
    flags: Flags,
    opened: usize,
    /// True if the last quantifier was lazy.
    lazy: bool,
}

fn parse(units: &[u16], flags: Flags) -> Result<Node, String> {
    read(units, flags).map(|(tree, _)| tree)
}

/// Groups of a pattern: their number, and the named ones.
pub(super) struct Groups {
    pub(super) count: usize,
    pub(super) names: Vec<(String, usize)>,
}

/// Parses a pattern.
pub(super) fn read(units: &[u16], flags: Flags) -> Result<(Node, Groups), String> {
    let mut parser = Parser {
        units,
        at: 0,
        groups: 0,
        named: false,
        names: Vec::new(),
        flags,
        opened: 0,
        lazy: false,
    };
    parser.survey();
    let tree = parser.alternatives()?;
    match parser.peek() {
        None => {
            let count = parser.opened;
            let names = parser.names;
            Ok((tree, Groups { count, names }))
        }
        Some(_) => Err("unmatched parentheses".into()),
    }
}

impl Parser<'_> {
    /// Counts the capturing groups of the whole pattern.
    fn survey(&mut self) {
        let text: Vec<char> = self.units.iter().map(|u| ascii(*u)).collect();
        let (mut i, mut in_class) = (0, false);
        while i < text.len() {
            match text[i] {
                '\\' => i += 1,
                ']' => in_class = false,
                '[' => in_class = true,
                '(' if !in_class => {
                    let rest = &text[i + 1..];
                    let named =
                        rest.starts_with(&['?', '<']) && !matches!(rest.get(2), Some('=' | '!'));
                    self.named |= named;
                    self.groups += u64::from(named || rest.first() != Some(&'?'));
                }
                _ => {}
            }
            i += 1;
        }
    }

    fn peek(&self) -> Option<char> {
        self.units.get(self.at).map(|u| ascii(*u))
    }

    fn next(&mut self) -> Option<u16> {
        let unit = self.units.get(self.at).copied();
        self.at += usize::from(unit.is_some());
        unit
    }

    fn accept(&mut self, text: &str) -> bool {
        let matches = text
            .chars()
            .enumerate()
            .all(|(i, c)| self.units.get(self.at + i).map(|u| ascii(*u)) == Some(c));
        self.at += if matches { text.len() } else { 0 };
        matches
    }

    fn alternatives(&mut self) -> Result<Node, String> {
        let mut ways = vec![self.sequence()?];
        while self.accept("|") {
            ways.push(self.sequence()?);
        }
        Ok(Node::Either(ways))
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut parts = Vec::new();
        while let Some(c) = self.peek().filter(|c| !matches!(c, '|' | ')')) {
            let before = self.opened;
            let (part, repeatable) = self.term(c)?;
            parts.push(match self.quantifier()? {
                None => part,
                Some(_) if !repeatable => return Err("nothing to repeat".into()),
                Some((least, Some(most))) if least > most => {
                    return Err("numbers out of order in {} quantifier".into());
                }
                Some((least, most)) => {
                    let turns = Turns {
                        lazy: self.lazy,
                        groups: before + 1..self.opened + 1,
                    };
                    Node::Repeat(Box::new(part), least, most, turns)
                }
            });
        }
        Ok(Node::Sequence(parts))
    }

    /// A term, and true if it can be repeated.
    fn term(&mut self, first: char) -> Result<(Node, bool), String> {
        if matches!(first, '*' | '+' | '?' | '{') && self.quantifier()?.is_some() {
            return Err("nothing to repeat".into());
        }
        self.at += 1;
        Ok(match first {
            '^' if self.flags.multiline => (Node::LineStart, false),
            '$' if self.flags.multiline => (Node::LineEnd, false),
            '^' => (Node::Start, false),
            '$' => (Node::End, false),
            '.' if self.flags.dot_all => (self.unit(Set::of(Vec::new(), true)), true),
            '.' => (self.unit(Set::of(LINE_ENDS.to_vec(), true)), true),
            '(' => (self.group()?, true),
            '[' => {
                let mut set = self.class()?;
                set.class = true;
                (self.unit(set), true)
            }
            '\\' => return self.escape(),
            _ => (self.unit(Set::one(self.units[self.at - 1])), true),
        })
    }

    fn unit(&self, set: Set) -> Node {
        let folds = self.flags.ignore_case;
        Node::Unit(Set { folds, ..set })
    }

    /// `*`, `+`, `?` or braces with numbers, possibly lazy.
    fn quantifier(&mut self) -> Result<Option<(u64, Option<u64>)>, String> {
        let found = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.braces() {
                Some(found) => {
                    self.lazy = self.accept("?");
                    return Ok(Some(found));
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.at += 1;
        self.lazy = self.accept("?");
        Ok(Some(found))
    }

    fn braces(&mut self) -> Option<(u64, Option<u64>)> {
        let end = self.units[self.at..].iter().position(|u| *u == 125)? + self.at;
        let inner: String = self.units[self.at + 1..end]
            .iter()
            .map(|u| ascii(*u))
            .collect();
        let number = |digits: &str| {
            let all = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            all.then(|| digits.parse().unwrap_or(u64::MAX))
        };
        let found = match inner.split_once(',') {
            None => {
                let n = number(&inner)?;
                (n, Some(n))
            }
            Some((least, "")) => (number(least)?, None),
            Some((least, most)) => (number(least)?, Some(number(most)?)),
        };
        self.at = end + 1;
        Some(found)
    }

    fn group(&mut self) -> Result<Node, String> {
        let refused = [
            ("?=", "look-ahead (?=...)"),
            ("?!", "look-ahead (?!...)"),
            ("?<=", "look-behind (?<=...)"),
            ("?<!", "look-behind (?<!...)"),
        ];
        for (text, what) in refused {
            if self.accept(text) {
                return Err(nonlinear(what));
            }
        }
        let mut number = Some(self.opened + 1);
        if self.accept("?<") {
            let name = self.name().ok_or("invalid group specifier name")?;
            if self.names.iter().any(|(other, _)| *other == name) {
                return Err("duplicate group specifier name".into());
            }
            self.names.push((name, self.opened + 1));
        } else if self.accept("?:") {
            number = None;
        } else if self.peek() == Some('?') {
            return Err("unrecognized character after (?".into());
        }
        self.opened += usize::from(number.is_some());
        let inner = self.alternatives()?;
        match self.accept(")") {
            true => Ok(match number {
                Some(number) => Node::Group(number, Box::new(inner)),
                None => inner,
            }),
            false => Err("missing )".into()),
        }
    }

    /// An identifier with its closing bracket.
    fn name(&mut self) -> Option<String> {
        let length = self.units[self.at..].iter().position(|u| *u == 62)?;
        let name = String::from_utf16(&self.units[self.at..self.at + length]).ok()?;
        let begins = |c: char| c.is_alphabetic() || matches!(c, '$' | '_');
        let follows =
            |c: char| begins(c) || c.is_alphanumeric() || matches!(c, '\u{200C}' | '\u{200D}');
        if !name.starts_with(begins) || !name.chars().all(follows) {
            return None;
        }
        self.at += length + 1;
        Some(name)
    }

    fn escape(&mut self) -> Result<(Node, bool), String> {
        let Some(c) = self.peek() else {
            return Err("\\ at end of pattern".into());
        };
        match c {
            'b' | 'B' => {
                self.at += 1;
                Ok((Node::Boundary(c == 'b'), false))
            }
            'k' if self.named => {
                self.at += 1;
                let name = if self.accept("<") { self.name() } else { None };
                let name = name.ok_or("invalid \\k named reference")?;
                Err(nonlinear(&format!("back-reference \\k<{name}>")))
            }
            '1'..='9' => {
                let digits: String = self.units[self.at..]
                    .iter()
                    .map(|u| ascii(*u))
                    .take_while(char::is_ascii_digit)
                    .collect();
                match digits.parse::<u64>() {
                    Ok(number) if number <= self.groups => {
                        Err(nonlinear(&format!("back-reference \\{number}")))
                    }
                    _ => {
                        let set = Set::one(self.character());
                        Ok((self.unit(set), true))
                    }
                }
            }
            _ => {
                let set = match self.kind() {
                    Some(set) => set,
                    None => Set::one(self.character()),
                };
                Ok((self.unit(set), true))
            }
        }
    }

    /// `\d` and the like, after the backslash.
    fn kind(&mut self) -> Option<Set> {
        let c = self.peek()?;
        let ranges = match c.to_ascii_lowercase() {
            'd' => DIGITS,
            'w' => WORDS,
            's' => SPACES,
            _ => return None,
        };
        self.at += 1;
        Some(Set::of(ranges.to_vec(), c.is_ascii_uppercase()))
    }

    /// The unit of an escape, after the backslash.
    fn character(&mut self) -> u16 {
        let Some(unit) = self.next() else { return 92 };
        let octal = |c: Option<char>| c.and_then(|c| c.to_digit(8)).map(|d| d as u16);
        match ascii(unit) {
            't' => 9,
            'n' => 10,
            'v' => 11,
            'f' => 12,
            'r' => 13,
            'c' => match self.peek().filter(char::is_ascii_alphabetic) {
                Some(letter) => {
                    self.at += 1;
                    letter as u16 % 32
                }
                // The backslash is a character, and the letter the next one.
                None => {
                    self.at -= 1;
                    92
                }
            },
            'x' => self.hexadecimal(2).unwrap_or(unit),
            'u' => self.hexadecimal(4).unwrap_or(unit),
            '0'..='7' => {
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
            _ => unit,
        }
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u16> {
        let text = self.units.get(self.at..self.at + digits)?;
        let text: String = text.iter().map(|u| ascii(*u)).collect();
        let all = text.chars().all(|c| c.is_ascii_hexdigit());
        let value = u16::from_str_radix(&text, 16).ok().filter(|_| all)?;
        self.at += digits;
        Some(value)
    }

    /// A class, after its opening bracket.
    fn class(&mut self) -> Result<Set, String> {
        let negated = self.accept("^");
        let mut ranges = Vec::new();
        while let Some(first) = self.member()? {
            let dash =
                self.peek() == Some('-') && self.units.get(self.at + 1).is_none_or(|u| *u != 93);
            if !dash {
                ranges.extend(first.spread());
                continue;
            }
            self.at += 1;
            let Some(last) = self.member()? else { break };
            match (&first, &last) {
                (Member::Unit(a), Member::Unit(b)) if a > b => {
                    return Err("range out of order in character class".into());
                }
                (Member::Unit(a), Member::Unit(b)) => ranges.push((*a, *b)),
                _ => {
                    ranges.extend(first.spread());
                    ranges.push((45, 45));
                    ranges.extend(last.spread());
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
        if let Some(set) = self.kind() {
            return Ok(Some(Member::Set(set)));
        }
        if self.accept("b") {
            return Ok(Some(Member::Unit(8)));
        }
        // Inside a class, \c accepts digits and the underscore too.
        if self.peek() == Some('c')
            && let Some(&next) = self.units.get(self.at + 1)
            && matches!(ascii(next), '0'..='9' | '_')
        {
            self.at += 2;
            return Ok(Some(Member::Unit(next % 32)));
        }
        Ok(Some(Member::Unit(self.character())))
    }
}

/// An ASCII unit as a character, any other as a meaningless one.
fn ascii(unit: u16) -> char {
    match u8::try_from(unit) {
        Ok(byte) if byte < 128 => char::from(byte),
        _ => '\u{FFFD}',
    }
}

fn nonlinear(what: &str) -> String {
    format!("{what} is not supported (patterns are matched in linear time)")
}

#[cfg(test)]
mod tests;
