//! Parser for JavaScript's regular expressions.
//!
//! It parses the grammar of ECMA-262 §22.2.1 into a tree: with the flag `u` by code points,
//! else with annex §B.1.2 and unit by unit. Errors have the messages of JavaScriptCore. It does
//! not match. [`escape`](super::escape) parses escapes and classes.

use super::set::{LINE_END, Ranges, Set, outside};

/// A pattern as a tree.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The nodes of the tree, children before their parents; the last one is the root.
    pub(crate) nodes: Vec<Node>,
    /// The sets that nodes refer to.
    pub(super) sets: Vec<Set>,
    /// Its size with repetitions expanded, to which the cost of compiling and matching is
    /// proportional.
    pub(crate) positions: u64,
    /// Number of capturing groups.
    pub(crate) groups: u32,
    /// The names of groups, with their numbers from 1 on.
    pub(crate) names: Vec<(String, u32)>,
    /// Number of `\p{...}`, whose tables are read.
    pub(crate) properties: u64,
    /// Whether it looks around or refers back, which takes a backtracking matcher.
    pub(crate) backtracks: bool,
}

/// The flags that affect parsing.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// `i`: letters match in both cases.
    pub(crate) ignore_case: bool,
    /// `m`: `^` and `$` match at the ends of lines.
    pub(crate) multiline: bool,
    /// `s`: `.` matches the ends of lines too.
    pub(crate) dot_all: bool,
    /// `u`: characters are code points.
    pub(crate) unicode: bool,
    /// Whether look-around and back-references are refused.
    pub(crate) linear: bool,
}

/// The index of a node.
pub(crate) type NodeId = usize;

/// A part of a pattern.
#[derive(Debug)]
pub(crate) enum Node {
    /// One unit, or one code point with the flag `u`.
    Unit(u32),
    /// One unit of a set.
    Set(usize),
    /// An assertion.
    Assert(Assertion),
    /// A sequence.
    Concat(Vec<NodeId>),
    /// Alternatives.
    Alt(Vec<NodeId>),
    /// A repetition: minimum, maximum, greediness.
    Repeat(NodeId, u64, Option<u64>, Greed),
    /// A capturing group, by its number from 1 on.
    Group(NodeId, u32),
    /// The text of a group again.
    Reference(u32),
    /// Look-around.
    Look(NodeId, Look),
}

/// How look-around looks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Backwards.
    pub(crate) behind: bool,
    /// Whether it must not match.
    pub(crate) negated: bool,
}

/// Which repetition count is tried first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Greed {
    /// The largest.
    Greedy,
    /// The smallest.
    Lazy,
}

/// An assertion (ECMA-262 §22.2.2.4).
#[derive(Copy, Clone, Debug)]
pub(crate) enum Assertion {
    /// `^`
    Start,
    /// `$`
    End,
    /// `\b` (wanted) or `\B`; with the flags `i` and `u` two more letters are of words.
    Border { wanted: bool, folds: bool },
    /// `^` with the flag `m`
    LineStart,
    /// `$` with the flag `m`
    LineEnd,
}

/// Parses the units of a pattern, or its code points with the flag `u`.
///
/// # Errors
/// The pattern is invalid, or cannot be matched in linear time and must.
pub(crate) fn parse(pattern: &[u32], flags: Flags) -> Result<Parsed, String> {
    let (groups, named) = count_groups(pattern);
    let mut t = Parser {
        pattern,
        flags,
        at: 0,
        nodes: Vec::with_capacity(pattern.len() + 2),
        sets: Vec::new(),
        groups,
        named,
        names: Vec::new(),
        references: Vec::new(),
        properties: 0,
        backtracks: false,
        opened: 0,
        open: Vec::new(),
        level: GroupLevel::default(),
        last: Last::None,
    };
    t.run()?;
    for (node, name) in std::mem::take(&mut t.references) {
        let group = t.names.iter().find(|(known, _)| *known == name);
        let (_, group) = group.ok_or("invalid named capture referenced")?;
        t.nodes[node] = Node::Reference(*group);
    }
    let level = std::mem::take(&mut t.level);
    let positions = level.sum.max(1);
    t.close(level);
    Ok(Parsed {
        nodes: t.nodes,
        sets: t.sets,
        positions,
        groups,
        names: t.names,
        properties: t.properties,
        backtracks: t.backtracks,
    })
}

/// A group under construction, or the whole pattern.
#[derive(Default)]
struct GroupLevel {
    /// The previous alternatives.
    before: Vec<NodeId>,
    /// The parts of the current alternative.
    parts: Vec<NodeId>,
    /// Positions so far.
    sum: u64,
    /// The number of a capturing group.
    capture: Option<u32>,
    /// Look-around.
    look: Option<Look>,
}

/// The item before a quantifier.
#[derive(Copy, Clone)]
pub(super) enum Last {
    /// No repeatable item.
    None,
    /// An atom with this many positions.
    Atom(u64),
}

pub(super) struct Parser<'a> {
    pub(super) pattern: &'a [u32],
    pub(super) flags: Flags,
    pub(super) at: usize,
    pub(super) nodes: Vec<Node>,
    sets: Vec<Set>,
    /// Number of capturing groups in the whole pattern.
    pub(super) groups: u32,
    /// Whether a group has a name, which makes `\k` a back-reference.
    pub(super) named: bool,
    names: Vec<(String, u32)>,
    /// References to groups by name, which may follow.
    pub(super) references: Vec<(NodeId, String)>,
    pub(super) properties: u64,
    pub(super) backtracks: bool,
    /// Number of capturing groups that have begun.
    opened: u32,
    /// The enclosing groups.
    open: Vec<GroupLevel>,
    /// The innermost group.
    level: GroupLevel,
    last: Last,
}

/// Counts capturing groups; also returns whether one is named.
fn count_groups(p: &[u32]) -> (u32, bool) {
    let (mut groups, mut named, mut class, mut i) = (0, false, false, 0);
    let is = |i: usize, c: u8| p.get(i).copied() == Some(u32::from(c));
    while i < p.len() {
        if is(i, b'\\') {
            i += 1;
        } else if class {
            class = !is(i, b']');
        } else if is(i, b'[') {
            class = true;
        } else if is(i, b'(') {
            if !is(i + 1, b'?') {
                groups += 1;
            } else if is(i + 2, b'<') && !is(i + 3, b'=') && !is(i + 3, b'!') {
                groups += 1;
                named = true;
            }
        }
        i += 1;
    }
    (groups, named)
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(unit) = self.next() {
            match u8::try_from(unit).unwrap_or(0) {
                b'\\' => self.escape()?,
                b'[' => self.class()?,
                b'(' => self.open_group()?,
                b')' => self.close_group()?,
                b'|' => self.alternative(),
                b'^' if self.flags.multiline => self.assertion(Assertion::LineStart),
                b'^' => self.assertion(Assertion::Start),
                b'$' if self.flags.multiline => self.assertion(Assertion::LineEnd),
                b'$' => self.assertion(Assertion::End),
                b'.' if self.flags.dot_all => self.set(vec![(0, self.most())], false),
                b'.' => self.complement(&LINE_END.into()),
                b'*' => self.quantifier(0, None)?,
                b'+' => self.quantifier(1, None)?,
                b'?' => self.quantifier(0, Some(1))?,
                b'{' => match self.braces()? {
                    Some((min, max)) => self.quantifier(min, max)?,
                    None if self.flags.unicode => return Err("nothing to repeat".to_owned()),
                    None => self.unit(unit),
                },
                b']' | b'}' if self.flags.unicode => {
                    return Err("raw bracket is not allowed".to_owned());
                }
                _ => self.unit(unit),
            }
        }
        if self.open.is_empty() {
            Ok(())
        } else {
            Err("missing )".to_owned())
        }
    }

    pub(super) fn next(&mut self) -> Option<u32> {
        let unit = self.pattern.get(self.at).copied()?;
        self.at += 1;
        Some(unit)
    }

    /// The highest unit.
    pub(super) fn most(&self) -> u32 {
        match self.flags.unicode {
            true => char::MAX.into(),
            false => u16::MAX.into(),
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.pattern
            .get(self.at)
            .and_then(|u| u8::try_from(*u).ok())
    }

    /// Consumes `text` if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.pattern[self.at..]
            .iter()
            .zip(text.bytes())
            .all(|(u, b)| *u == u32::from(b));
        let found = found && self.pattern.len() - self.at >= text.len();
        if found {
            self.at += text.len();
        }
        found
    }

    fn push(&mut self, node: Node) {
        self.level.parts.push(self.nodes.len());
        self.nodes.push(node);
    }

    /// Adds a node that matches one unit.
    pub(super) fn atom(&mut self, node: Node) {
        self.push(node);
        self.level.sum = self.level.sum.saturating_add(1);
        self.last = Last::Atom(1);
    }

    /// Adds a set of ranges, or its complement.
    pub(super) fn set(&mut self, ranges: Vec<(u32, u32)>, negated: bool) {
        let most = self.most();
        self.sets.push(match self.flags.ignore_case {
            true => Set::folded(ranges, negated, most),
            false => Set::new(ranges, negated, most),
        });
        self.atom(Node::Set(self.sets.len() - 1));
    }

    /// Adds the complement of ranges. If case is ignored, that is a separate set, not the
    /// complement of one (§22.2.2.9).
    pub(super) fn complement(&mut self, ranges: &Ranges) {
        match self.flags.ignore_case {
            true => self.set(outside(ranges, self.most()), false),
            false => self.set(ranges.to_vec(), true),
        }
    }

    pub(super) fn assertion(&mut self, assertion: Assertion) {
        self.push(Node::Assert(assertion));
        self.level.sum = self.level.sum.saturating_add(1);
        self.last = Last::None;
    }

    /// Ends an alternative.
    fn alternative(&mut self) {
        let parts = std::mem::take(&mut self.level.parts);
        self.level.before.push(self.nodes.len());
        self.nodes.push(Node::Concat(parts));
        self.level.sum = self.level.sum.saturating_add(1);
        self.last = Last::None;
    }

    /// The node of a complete group.
    fn close(&mut self, level: GroupLevel) -> NodeId {
        self.nodes.push(Node::Concat(level.parts));
        if !level.before.is_empty() {
            let mut all = level.before;
            all.push(self.nodes.len() - 1);
            self.nodes.push(Node::Alt(all));
        }
        if let Some(number) = level.capture {
            self.nodes.push(Node::Group(self.nodes.len() - 1, number));
        }
        if let Some(look) = level.look {
            self.nodes.push(Node::Look(self.nodes.len() - 1, look));
        }
        self.nodes.len() - 1
    }

    /// Adds a literal unit.
    pub(super) fn unit(&mut self, unit: u32) {
        self.atom(Node::Unit(unit));
    }

    fn open_group(&mut self) -> Result<(), String> {
        let (mut captures, mut looks) = (true, None);
        if self.take("?") {
            captures = false;
            looks = LOOKS.iter().find(|(sign, ..)| self.take(sign));
            if let Some((_, what, _)) = looks {
                self.backtrack(what)?;
            } else if self.take("<") {
                self.group_name()?;
                captures = true;
            } else if !self.take(":") {
                return Err("unrecognized character after (?".to_owned());
            }
        }
        self.open.push(std::mem::take(&mut self.level));
        if captures {
            self.opened += 1;
            self.level.capture = Some(self.opened);
        }
        self.level.look = looks.map(|(.., look)| *look);
        self.last = Last::None;
        Ok(())
    }

    /// Notes a form that takes backtracking.
    pub(super) fn backtrack(&mut self, what: &str) -> Result<(), String> {
        self.backtracks = true;
        match self.flags.linear {
            true => Err(unsupported(what)),
            false => Ok(()),
        }
    }

    fn group_name(&mut self) -> Result<(), String> {
        let name = self.name().ok_or("invalid group specifier name")?;
        if self.names.iter().any(|(other, _)| *other == name) {
            return Err("duplicate group specifier name".to_owned());
        }
        self.names.push((name, self.opened + 1));
        Ok(())
    }

    /// Parses the rest of `<name>`, if it is an identifier.
    pub(super) fn name(&mut self) -> Option<String> {
        let len = self.pattern[self.at..]
            .iter()
            .position(|u| *u == u32::from(b'>'))?;
        let text = text_of(&self.pattern[self.at..self.at + len])?;
        let mut chars = text.chars();
        let starts = |c: char| c.is_alphabetic() || c == '$' || c == '_';
        let goes_on =
            |c: char| starts(c) || c.is_alphanumeric() || c == '\u{200C}' || c == '\u{200D}';
        if !chars.next().is_some_and(starts) || !chars.all(goes_on) {
            return None;
        }
        self.at += len + 1;
        Some(text)
    }

    fn close_group(&mut self) -> Result<(), String> {
        let outside = self.open.pop().ok_or("unmatched parentheses")?;
        let group = std::mem::replace(&mut self.level, outside);
        let inside = group.sum.saturating_add(1);
        // Annex B repeats look-ahead, but not look-behind.
        let repeats = group
            .look
            .is_none_or(|look| !look.behind && !self.flags.unicode);
        let node = self.close(group);
        self.level.parts.push(node);
        self.level.sum = self.level.sum.saturating_add(inside);
        self.last = match repeats {
            true => Last::Atom(inside),
            false => Last::None,
        };
        Ok(())
    }

    fn quantifier(&mut self, min: u64, max: Option<u64>) -> Result<(), String> {
        let Last::Atom(positions) = self.last else {
            return Err("nothing to repeat".to_owned());
        };
        if max.is_some_and(|max| min > max) {
            return Err("numbers out of order in {} quantifier".to_owned());
        }
        let copies = max.unwrap_or(min.saturating_add(1)).max(1);
        let more = positions.saturating_mul(copies - 1);
        self.level.sum = self.level.sum.saturating_add(more);
        let greed = match self.take("?") {
            true => Greed::Lazy,
            false => Greed::Greedy,
        };
        if let Some(part) = self.level.parts.pop() {
            self.push(Node::Repeat(part, min, max, greed));
        }
        self.last = Last::None;
        Ok(())
    }

    /// Parses `{n}`, `{n,}` or `{n,m}` after the brace; in other cases the brace is a
    /// literal.
    fn braces(&mut self) -> Result<Option<(u64, Option<u64>)>, String> {
        let start = self.at;
        if let Some(min) = self.number() {
            let mut max = Some(min);
            if self.take(",") {
                max = self.number();
            }
            if self.take("}") {
                return Ok(Some((min, max)));
            }
        }
        self.at = start;
        Ok(None)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut n = None;
        while let Some(b) = self.peek().filter(u8::is_ascii_digit) {
            n = Some(
                n.unwrap_or(0u64)
                    .saturating_mul(10)
                    .saturating_add(u64::from(b - b'0')),
            );
            self.at += 1;
        }
        n
    }
}

/// The forms of look-around: sign, description, meaning.
const LOOKS: [(&str, &str, Look); 4] = [
    ("=", "look-ahead (?=...)", look(false, false)),
    ("!", "look-ahead (?!...)", look(false, true)),
    ("<=", "look-behind (?<=...)", look(true, false)),
    ("<!", "look-behind (?<!...)", look(true, true)),
];

const fn look(behind: bool, negated: bool) -> Look {
    Look { behind, negated }
}

/// The text of units or code points.
pub(super) fn text_of(units: &[u32]) -> Option<String> {
    let mut text = Vec::with_capacity(units.len());
    for unit in units {
        match u16::try_from(*unit) {
            Ok(unit) => text.push(unit),
            Err(_) => text.extend(char::from_u32(*unit)?.encode_utf16(&mut [0; 2]).iter()),
        }
    }
    String::from_utf16(&text).ok()
}

fn unsupported(what: &str) -> String {
    format!("{what} is not supported (patterns are matched in linear time)")
}
