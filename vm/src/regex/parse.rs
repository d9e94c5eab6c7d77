//! Parser for JavaScript's regular expressions.
//!
//! It parses the grammar of patterns without the flags `u` and `v` (ECMA-262 §22.2.1 with
//! annex §B.1.2), unit by unit, into a tree. Errors have the messages of JavaScriptCore. It
//! does not match.

use super::set::{ClassAtom, DIGIT, LINE_END, Ranges, SPACE, Set, WORD, outside};

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
    pub(crate) names: Vec<(Vec<u16>, u32)>,
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
}

/// The index of a node.
pub(crate) type NodeId = usize;

/// A part of a pattern.
#[derive(Debug)]
pub(crate) enum Node {
    /// One unit.
    Unit(u16),
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
    /// `\b`
    Word,
    /// `\B`
    NotWord,
    /// `^` with the flag `m`
    LineStart,
    /// `$` with the flag `m`
    LineEnd,
}

/// Parses the UTF-16 units of a pattern.
///
/// # Errors
/// The pattern is invalid or cannot be matched in linear time.
pub(crate) fn parse(pattern: &[u16], flags: Flags) -> Result<Parsed, String> {
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
        opened: 0,
        open: Vec::new(),
        level: GroupLevel::default(),
        last: Last::None,
    };
    t.run()?;
    let level = std::mem::take(&mut t.level);
    let positions = level.sum.max(1);
    t.close(level);
    Ok(Parsed {
        nodes: t.nodes,
        sets: t.sets,
        positions,
        groups,
        names: t.names,
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
}

/// The item before a quantifier.
#[derive(Copy, Clone)]
enum Last {
    /// No repeatable item.
    None,
    /// An atom with this many positions.
    Atom(u64),
}

struct Parser<'a> {
    pattern: &'a [u16],
    flags: Flags,
    at: usize,
    nodes: Vec<Node>,
    sets: Vec<Set>,
    /// Number of capturing groups in the whole pattern.
    groups: u32,
    /// Whether a group has a name, which makes `\k` a back-reference.
    named: bool,
    names: Vec<(Vec<u16>, u32)>,
    /// Number of capturing groups that have begun.
    opened: u32,
    /// The enclosing groups.
    open: Vec<GroupLevel>,
    /// The innermost group.
    level: GroupLevel,
    last: Last,
}

/// Counts capturing groups; also returns whether one is named.
fn count_groups(p: &[u16]) -> (u32, bool) {
    let (mut groups, mut named, mut class, mut i) = (0, false, false, 0);
    let is = |i: usize, c: u8| p.get(i).copied() == Some(u16::from(c));
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
                b'.' if self.flags.dot_all => self.set(vec![(0, u16::MAX)], false),
                b'.' => self.complement(LINE_END),
                b'*' => self.quantifier(0, None)?,
                b'+' => self.quantifier(1, None)?,
                b'?' => self.quantifier(0, Some(1))?,
                b'{' => match self.braces()? {
                    Some((min, max)) => self.quantifier(min, max)?,
                    None => self.unit(unit),
                },
                _ => self.unit(unit),
            }
        }
        if self.open.is_empty() {
            Ok(())
        } else {
            Err("missing )".to_owned())
        }
    }

    fn next(&mut self) -> Option<u16> {
        let unit = self.pattern.get(self.at).copied()?;
        self.at += 1;
        Some(unit)
    }

    fn peek(&self) -> Option<u8> {
        self.pattern
            .get(self.at)
            .and_then(|u| u8::try_from(*u).ok())
    }

    /// Consumes `text` if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let found = self.pattern[self.at..]
            .iter()
            .zip(text.bytes())
            .all(|(u, b)| *u == u16::from(b));
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
    fn atom(&mut self, node: Node) {
        self.push(node);
        self.level.sum = self.level.sum.saturating_add(1);
        self.last = Last::Atom(1);
    }

    /// Adds a set of ranges, or its complement.
    fn set(&mut self, ranges: Vec<(u16, u16)>, negated: bool) {
        self.sets.push(match self.flags.ignore_case {
            true => Set::folded(ranges, negated),
            false => Set::new(ranges, negated),
        });
        self.atom(Node::Set(self.sets.len() - 1));
    }

    /// Adds the complement of ranges. If case is ignored, that is a separate set, not the
    /// complement of one (§22.2.2.9).
    fn complement(&mut self, ranges: Ranges) {
        match self.flags.ignore_case {
            true => self.set(outside(ranges), false),
            false => self.set(ranges.to_vec(), true),
        }
    }

    fn assertion(&mut self, assertion: Assertion) {
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
        self.nodes.len() - 1
    }

    /// Adds a literal unit.
    fn unit(&mut self, unit: u16) {
        self.atom(Node::Unit(unit));
    }

    fn open_group(&mut self) -> Result<(), String> {
        let mut captures = true;
        if self.take("?") {
            if self.take("=") {
                return Err(unsupported("look-ahead (?=...)"));
            } else if self.take("!") {
                return Err(unsupported("look-ahead (?!...)"));
            } else if self.take("<=") {
                return Err(unsupported("look-behind (?<=...)"));
            } else if self.take("<!") {
                return Err(unsupported("look-behind (?<!...)"));
            } else if self.take("<") {
                self.group_name()?;
            } else if self.take(":") {
                captures = false;
            } else {
                return Err("unrecognized character after (?".to_owned());
            }
        }
        self.open.push(std::mem::take(&mut self.level));
        if captures {
            self.opened += 1;
            self.level.capture = Some(self.opened);
        }
        self.last = Last::None;
        Ok(())
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
    fn name(&mut self) -> Option<Vec<u16>> {
        let len = self.pattern[self.at..]
            .iter()
            .position(|u| *u == u16::from(b'>'))?;
        let name = self.pattern[self.at..self.at + len].to_vec();
        let text = String::from_utf16(&name).ok()?;
        let mut chars = text.chars();
        let starts = |c: char| c.is_alphabetic() || c == '$' || c == '_';
        let goes_on =
            |c: char| starts(c) || c.is_alphanumeric() || c == '\u{200C}' || c == '\u{200D}';
        if !chars.next().is_some_and(starts) || !chars.all(goes_on) {
            return None;
        }
        self.at += len + 1;
        Some(name)
    }

    fn close_group(&mut self) -> Result<(), String> {
        let outside = self.open.pop().ok_or("unmatched parentheses")?;
        let group = std::mem::replace(&mut self.level, outside);
        let inside = group.sum.saturating_add(1);
        let node = self.close(group);
        self.level.parts.push(node);
        self.level.sum = self.level.sum.saturating_add(inside);
        self.last = Last::Atom(inside);
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

    fn number(&mut self) -> Option<u64> {
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

    /// Parses an escape outside of classes.
    fn escape(&mut self) -> Result<(), String> {
        let start = self.at;
        let Some(unit) = self.next() else {
            return Err("\\ at end of pattern".to_owned());
        };
        match u8::try_from(unit).unwrap_or(0) {
            b'b' => self.assertion(Assertion::Word),
            b'B' => self.assertion(Assertion::NotWord),
            b'k' if self.named => {
                let name = if self.take("<") { self.name() } else { None };
                let name = name.ok_or("invalid \\k named reference")?;
                let name = String::from_utf16_lossy(&name);
                return Err(unsupported(&format!("back-reference \\k<{name}>")));
            }
            b'1'..=b'9' => {
                self.at = start;
                let number = self.number().unwrap_or(0);
                if number <= u64::from(self.groups) {
                    return Err(unsupported(&format!("back-reference \\{number}")));
                }
                self.at = start;
                let unit = self.character_escape();
                self.unit(unit);
            }
            _ => {
                self.at = start;
                match self.set_escape() {
                    Some((ranges, true)) => self.complement(ranges),
                    Some((ranges, false)) => self.set(ranges.to_vec(), false),
                    None => {
                        let unit = self.character_escape();
                        self.unit(unit);
                    }
                }
            }
        }
        Ok(())
    }

    /// Parses `\d` and similar sets, after the backslash.
    fn set_escape(&mut self) -> Option<(Ranges, bool)> {
        let set = match self.peek()? {
            b'd' => (DIGIT, false),
            b'D' => (DIGIT, true),
            b'w' => (WORD, false),
            b'W' => (WORD, true),
            b's' => (SPACE, false),
            b'S' => (SPACE, true),
            _ => return None,
        };
        self.at += 1;
        Some(set)
    }

    /// Parses an escape of one unit, after the backslash. An unknown escape is a literal
    /// (§B.1.2).
    fn character_escape(&mut self) -> u16 {
        let Some(unit) = self.next() else {
            return u16::from(b'\\');
        };
        match u8::try_from(unit).unwrap_or(0) {
            b't' => 0x09,
            b'n' => 0x0A,
            b'v' => 0x0B,
            b'f' => 0x0C,
            b'r' => 0x0D,
            b'c' => match self.peek().filter(u8::is_ascii_alphabetic) {
                Some(letter) => {
                    self.at += 1;
                    u16::from(letter % 32)
                }
                None => {
                    // The backslash is a literal and the `c` comes next.
                    self.at -= 1;
                    u16::from(b'\\')
                }
            },
            b'x' => self.hex(2).unwrap_or(unit),
            b'u' => self.hex(4).unwrap_or(unit),
            b'0'..=b'7' => self.octal(unit - u16::from(b'0')),
            _ => unit,
        }
    }

    fn hex(&mut self, digits: usize) -> Option<u16> {
        let mut n = 0;
        for unit in self.pattern.get(self.at..self.at + digits)? {
            n = n * 16 + char::from_u32(u32::from(*unit))?.to_digit(16)? as u16;
        }
        self.at += digits;
        Some(n)
    }

    /// Parses the rest of a legacy octal escape: at most three digits, below 256.
    fn octal(&mut self, first: u16) -> u16 {
        let mut n = first;
        for _ in 0..2 {
            match self.peek() {
                Some(digit @ b'0'..=b'7') if n * 8 + u16::from(digit - b'0') < 256 => {
                    n = n * 8 + u16::from(digit - b'0');
                    self.at += 1;
                }
                _ => break,
            }
        }
        n
    }

    /// Parses a character class, after its bracket.
    fn class(&mut self) -> Result<(), String> {
        let negated = self.take("^");
        let mut body = Vec::new();
        while let Some(from) = self.class_atom()? {
            let dash = self.pattern[self.at..].first() == Some(&u16::from(b'-'))
                && self.pattern.get(self.at + 1) != Some(&u16::from(b']'));
            if !dash {
                from.push(&mut body);
                continue;
            }
            self.at += 1;
            let Some(to) = self.class_atom()? else { break };
            match (from, to) {
                (ClassAtom::Unit(a), ClassAtom::Unit(b)) if a > b => {
                    return Err("range out of order in character class".to_owned());
                }
                (ClassAtom::Unit(a), ClassAtom::Unit(b)) => body.push((a, b)),
                // With a set at either end the dash is a literal (§B.1.2).
                (from, to) => {
                    from.push(&mut body);
                    ClassAtom::Unit(u16::from(b'-')).push(&mut body);
                    to.push(&mut body);
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
        if unit == u16::from(b']') {
            return Ok(None);
        }
        if unit != u16::from(b'\\') {
            return Ok(Some(ClassAtom::Unit(unit)));
        }
        if let Some((ranges, negated)) = self.set_escape() {
            return Ok(Some(ClassAtom::Set(ranges, negated)));
        }
        if self.at == self.pattern.len() {
            return Err("\\ at end of pattern".to_owned());
        }
        if self.take("b") {
            return Ok(Some(ClassAtom::Unit(0x08)));
        }
        Ok(Some(ClassAtom::Unit(self.class_character_escape())))
    }

    /// As [`Parser::character_escape`]; in classes `\c` also accepts digits and the
    /// underscore.
    fn class_character_escape(&mut self) -> u16 {
        if self.peek() == Some(b'c')
            && let Some(next) = self.pattern.get(self.at + 1)
            && let Ok(digit @ (b'0'..=b'9' | b'_')) = u8::try_from(*next)
        {
            self.at += 2;
            return u16::from(digit % 32);
        }
        self.character_escape()
    }
}

fn unsupported(what: &str) -> String {
    format!("{what} is not supported (patterns are matched in linear time)")
}
