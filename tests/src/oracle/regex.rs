//! Regular expressions (ECMA-262 §22.2 with annex §B.1.2) as a matching test, for `regexMatch`
//! and schemas (decision D39); `regex_find` finds.
//!
//! Look-around and back-references are for `regex_find` only.
//!
//! A recursive-descent parser builds a tree over UTF-16 units. The tree is not compiled: each
//! node maps the set of its start places to the set of its end places, so that alternatives and
//! repetitions are unions, each place is visited once, and no pattern is catastrophic. A
//! pattern matches if the final set is not empty.

use super::regex_set::{LINE_ENDS, Set, WORDS, WORDS_FOLDED};

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
    let tree = parse(pattern, LINEAR).map_err(|e| format!("Invalid regular expression: {e}"))?;
    let input: Vec<u32> = input.iter().map(|unit| u32::from(*unit)).collect();
    let input = &input[..];
    let everywhere = (0..=input.len()).collect();
    Ok(!ends(&tree, &everywhere, input).is_empty())
}

/// True if a pattern is valid.
pub(super) fn is_valid(pattern: &[u16]) -> bool {
    parse(pattern, LINEAR).is_ok()
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
    /// A word boundary, or the negated assertion; with more letters.
    Boundary(bool, bool),
    /// Nodes in sequence.
    Sequence(Vec<Node>),
    /// Alternatives.
    Either(Vec<Node>),
    /// Least and most repetitions, possibly lazy.
    Repeat(Box<Node>, u64, Option<u64>, Turns),
    /// A capturing group, by its number from 1 on.
    Group(usize, Box<Node>),
    /// The text of a group again; of a group with this name.
    Again(usize),
    AgainNamed(String),
    /// Look-around: backwards, negated.
    Look(bool, bool, Box<Node>),
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
    pub(super) unicode: bool,
    /// Whether look-around and back-references are refused.
    linear: bool,
}

const LINEAR: Flags = Flags {
    ignore_case: false,
    multiline: false,
    dot_all: false,
    unicode: false,
    linear: true,
};

pub(super) fn is_word(unit: Option<&u32>, folds: bool) -> bool {
    let lists = |list: &[(u32, u32)]| {
        unit.is_some_and(|unit| list.iter().any(|(a, b)| (a..=b).contains(&unit)))
    };
    lists(WORDS) || folds && lists(WORDS_FOLDED)
}

/// The code points of units.
pub(super) fn points(units: &[u16]) -> Vec<u32> {
    let mut points: Vec<u32> = Vec::new();
    let mut high = None;
    for unit in units {
        let unit = u32::from(*unit);
        match (high.take(), unit) {
            (Some(before), 0xDC00..=0xDFFF) => {
                points.pop();
                points.push(0x10000_u32 + ((before - 0xD800) << 10) + (unit - 0xDC00));
            }
            _ => points.push(unit),
        }
        high = (0xD800..0xDC00).contains(&unit).then_some(unit);
    }
    points
}

fn merged(mut places: Places) -> Places {
    places.sort_unstable();
    places.dedup();
    places
}

/// The end places of a node for its start places.
fn ends(node: &Node, starts: &Places, text: &[u32]) -> Places {
    let at = |keep: &dyn Fn(usize) -> bool| starts.iter().copied().filter(|p| keep(*p)).collect();
    match node {
        Node::Unit(set) => {
            let fits = |p: &&usize| text.get(**p).is_some_and(|u| set.has(*u));
            starts.iter().filter(fits).map(|p| p + 1).collect()
        }
        Node::Start => at(&|p| p == 0),
        Node::End => at(&|p| p == text.len()),
        Node::LineStart | Node::LineEnd => at(&|p| at_line(node, p, text)),
        Node::Boundary(wanted, folds) => at(&|p| {
            let before = p.checked_sub(1).and_then(|p| text.get(p));
            (is_word(before, *folds) != is_word(text.get(p), *folds)) == *wanted
        }),
        // Refused by the parser.
        Node::Again(_) | Node::AgainNamed(_) | Node::Look(..) => Vec::new(),
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
pub(super) fn at_line(node: &Node, place: usize, text: &[u32]) -> bool {
    let ends = |unit: &u32| LINE_ENDS.iter().any(|(a, b)| (a..=b).contains(&unit));
    match node {
        Node::LineStart => place == 0 || ends(&text[place - 1]),
        _ => text.get(place).is_none_or(ends),
    }
}

fn repeated(inner: &Node, least: u64, most: Option<u64>, starts: &Places, text: &[u32]) -> Places {
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

pub(super) struct Parser {
    pub(super) units: Vec<u32>,
    pub(super) at: usize,
    pub(super) groups: u64,
    pub(super) named: bool,
    names: Vec<(String, usize)>,
    pub(super) flags: Flags,
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
        units: match flags.unicode {
            true => points(units),
            false => units.iter().map(|unit| u32::from(*unit)).collect(),
        },
        at: 0,
        groups: 0,
        named: false,
        names: Vec::new(),
        flags,
        opened: 0,
        lazy: false,
    };
    parser.survey();
    let mut tree = parser.alternatives()?;
    resolve(&mut tree, &parser.names)?;
    match parser.peek() {
        None => {
            let count = parser.opened;
            let names = parser.names;
            Ok((tree, Groups { count, names }))
        }
        Some(_) => Err("unmatched parentheses".into()),
    }
}

/// Gives references by name the numbers of their groups.
fn resolve(node: &mut Node, names: &[(String, usize)]) -> Result<(), String> {
    match node {
        Node::AgainNamed(name) => {
            let group = names.iter().find(|(known, _)| known == name);
            let (_, group) = group.ok_or("invalid named capture referenced")?;
            *node = Node::Again(*group);
            Ok(())
        }
        Node::Sequence(parts) | Node::Either(parts) => {
            parts.iter_mut().try_for_each(|part| resolve(part, names))
        }
        Node::Repeat(inner, ..) | Node::Group(_, inner) | Node::Look(.., inner) => {
            resolve(inner, names)
        }
        _ => Ok(()),
    }
}

impl Parser {
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

    pub(super) fn peek(&self) -> Option<char> {
        self.units.get(self.at).map(|u| ascii(*u))
    }

    pub(super) fn next(&mut self) -> Option<u32> {
        let unit = self.units.get(self.at).copied();
        self.at += usize::from(unit.is_some());
        unit
    }

    pub(super) fn accept(&mut self, text: &str) -> bool {
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

    /// The highest unit.
    pub(super) fn most(&self) -> u32 {
        if self.flags.unicode {
            0x10_FFFF
        } else {
            0xFFFF
        }
    }

    /// A term, and true if it can be repeated.
    fn term(&mut self, first: char) -> Result<(Node, bool), String> {
        if matches!(first, '*' | '+' | '?' | '{') && self.quantifier()?.is_some() {
            return Err("nothing to repeat".into());
        }
        if self.flags.unicode && matches!(first, '{' | '}' | ']') {
            return Err(match first {
                '{' => "nothing to repeat".into(),
                _ => "raw bracket is not allowed".into(),
            });
        }
        self.at += 1;
        Ok(match first {
            '^' if self.flags.multiline => (Node::LineStart, false),
            '$' if self.flags.multiline => (Node::LineEnd, false),
            '^' => (Node::Start, false),
            '$' => (Node::End, false),
            '.' if self.flags.dot_all => (self.unit(Set::of(Vec::new(), true)), true),
            '.' => (self.unit(Set::of(LINE_ENDS.to_vec(), true)), true),
            '(' => return self.group(),
            '[' => {
                let mut set = self.class()?;
                set.class = true;
                (self.unit(set), true)
            }
            '\\' => return self.escape(),
            _ => (self.unit(Set::one(self.units[self.at - 1])), true),
        })
    }

    pub(super) fn unit(&self, set: Set) -> Node {
        let (folds, unicode) = (self.flags.ignore_case, self.flags.unicode);
        Node::Unit(Set {
            folds,
            unicode,
            ..set
        })
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

    /// Notes a form that is not linear.
    pub(super) fn not_linear(&self, what: &str) -> Result<(), String> {
        match self.flags.linear {
            true => Err(nonlinear(what)),
            false => Ok(()),
        }
    }

    /// A group or look-around, and true if it can be repeated.
    fn group(&mut self) -> Result<(Node, bool), String> {
        let looks = [
            ("?=", "look-ahead (?=...)", false, false),
            ("?!", "look-ahead (?!...)", false, true),
            ("?<=", "look-behind (?<=...)", true, false),
            ("?<!", "look-behind (?<!...)", true, true),
        ];
        for (text, what, behind, negated) in looks {
            if self.accept(text) {
                self.not_linear(what)?;
                let inner = Box::new(self.alternatives()?);
                return match self.accept(")") {
                    true => Ok((
                        Node::Look(behind, negated, inner),
                        !behind && !self.flags.unicode,
                    )),
                    false => Err("missing )".into()),
                };
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
            true => Ok((
                match number {
                    Some(number) => Node::Group(number, Box::new(inner)),
                    None => inner,
                },
                true,
            )),
            false => Err("missing )".into()),
        }
    }

    /// An identifier with its closing bracket.
    pub(super) fn name(&mut self) -> Option<String> {
        let length = self.units[self.at..].iter().position(|u| *u == 62)?;
        let name = text_of(&self.units[self.at..self.at + length])?;
        let begins = |c: char| c.is_alphabetic() || matches!(c, '$' | '_');
        let follows =
            |c: char| begins(c) || c.is_alphanumeric() || matches!(c, '\u{200C}' | '\u{200D}');
        if !name.starts_with(begins) || !name.chars().all(follows) {
            return None;
        }
        self.at += length + 1;
        Some(name)
    }
}

/// An ASCII unit as a character, any other as a meaningless one.
pub(super) fn ascii(unit: u32) -> char {
    match u8::try_from(unit) {
        Ok(byte) if byte < 128 => char::from(byte),
        _ => '\u{FFFD}',
    }
}

/// Units or code points as text.
pub(super) fn text_of(units: &[u32]) -> Option<String> {
    let mut text = Vec::new();
    for unit in units {
        match u16::try_from(*unit) {
            Ok(unit) => text.push(unit),
            Err(_) => text.extend_from_slice(char::from_u32(*unit)?.encode_utf16(&mut [0; 2])),
        }
    }
    String::from_utf16(&text).ok()
}

fn nonlinear(what: &str) -> String {
    format!("{what} is not supported (patterns are matched in linear time)")
}

#[cfg(test)]
mod tests;
