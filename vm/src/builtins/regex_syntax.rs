//! From JavaScript's regular expressions to those of the `regex` crate.
//!
//! Reads the grammar that patterns without flags have (ECMA-262 §22.2.1 with
//! annex §B.1.2), unit by unit, and writes an equivalent pattern in which
//! every character is escaped, so that no syntax of the target can appear by
//! accident. Errors are worded as in JavaScriptCore. It does not match.

use std::fmt::Write as _;

/// What [`translate`] gives.
#[derive(Debug)]
pub(super) struct Translated {
    /// The pattern for the `regex` crate.
    pub(super) pattern: String,
    /// How many states it has, about, with repetitions written out.
    pub(super) positions: u64,
}

/// First of the characters that stand for surrogates. No other unit becomes
/// one of them: all other units are of the basic plane.
const SURROGATE_CHARS: u32 = 0x10_0000;

/// States of a class or dot: its characters may take several bytes.
const CLASS_POSITIONS: u64 = 8;

const DIGIT: &str = "[0-9]";
const NOT_DIGIT: &str = "[^0-9]";
const WORD: &str = "[0-9A-Za-z_]";
const NOT_WORD: &str = "[^0-9A-Za-z_]";
const SPACE: &str = r"[\t\n\x0B\x0C\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]";
const NOT_SPACE: &str = r"[^\t\n\x0B\x0C\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]";
const DOT: &str = r"[^\n\r\x{2028}\x{2029}]";
const ANY: &str = r"(?s:.)";
const NOTHING: &str = r"[a&&b]";

/// The character that stands for a UTF-16 unit.
pub(super) fn surrogate_as_char(unit: u16) -> char {
    char::from_u32(u32::from(unit))
        .or_else(|| char::from_u32(SURROGATE_CHARS + u32::from(unit)))
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Translates the UTF-16 units of a pattern.
///
/// # Errors
/// Why the pattern is invalid or cannot be matched in linear time.
pub(super) fn translate(pattern: &[u16]) -> Result<Translated, String> {
    let (groups, named) = count_groups(pattern);
    let mut t = Translator {
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len() * 2),
        groups,
        named,
        names: Vec::new(),
        open: Vec::new(),
        sum: 0,
        last: Last::None,
    };
    t.run()?;
    Ok(Translated {
        pattern: t.out,
        positions: t.sum.max(1),
    })
}

/// What stands before a quantifier.
#[derive(Copy, Clone)]
enum Last {
    /// Nothing that can be repeated.
    None,
    /// An atom with this many states.
    Atom(u64),
}

struct Translator<'a> {
    pattern: &'a [u16],
    at: usize,
    out: String,
    /// Capturing groups in the whole pattern.
    groups: u32,
    /// Whether a group has a name, which makes `\k` a back-reference.
    named: bool,
    names: Vec<Vec<u16>>,
    /// States counted outside each open group.
    open: Vec<u64>,
    /// States counted in the group being read.
    sum: u64,
    last: Last,
}

/// Counts capturing groups, and whether one is named.
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

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(unit) = self.next() {
            match u8::try_from(unit).unwrap_or(0) {
                b'\\' => self.escape()?,
                b'[' => self.class()?,
                b'(' => self.open_group()?,
                b')' => self.close_group()?,
                b'|' => self.assertion("|"),
                b'^' => self.assertion("^"),
                b'$' => self.assertion("$"),
                b'.' => self.atom(DOT, CLASS_POSITIONS),
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

    /// Takes `text` if it comes next.
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

    fn atom(&mut self, text: &str, positions: u64) {
        self.out.push_str(text);
        self.sum = self.sum.saturating_add(positions);
        self.last = Last::Atom(positions);
    }

    fn assertion(&mut self, text: &str) {
        self.out.push_str(text);
        self.sum = self.sum.saturating_add(1);
        self.last = Last::None;
    }

    /// A unit that stands for itself.
    fn unit(&mut self, unit: u16) {
        push_char(&mut self.out, unit);
        self.sum = self.sum.saturating_add(if unit < 0x80 { 1 } else { 3 });
        self.last = Last::Atom(if unit < 0x80 { 1 } else { 3 });
    }

    fn open_group(&mut self) -> Result<(), String> {
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
            } else if !self.take(":") {
                return Err("unrecognized character after (?".to_owned());
            }
        }
        // Nothing asks for captures, so no group captures.
        self.out.push_str("(?:");
        self.open.push(std::mem::take(&mut self.sum));
        self.last = Last::None;
        Ok(())
    }

    fn group_name(&mut self) -> Result<(), String> {
        let name = self.name().ok_or("invalid group specifier name")?;
        if self.names.contains(&name) {
            return Err("duplicate group specifier name".to_owned());
        }
        self.names.push(name);
        Ok(())
    }

    /// The rest of `<name>`, if it is an identifier.
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
        self.out.push(')');
        let inside = self.sum.saturating_add(1);
        self.sum = outside.saturating_add(inside);
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
        self.sum = self
            .sum
            .saturating_add(positions.saturating_mul(copies - 1));
        // A count that is too large is refused by its positions; the numbers
        // only have to be readable.
        const READABLE: u64 = 1 << 20;
        let (min, max) = (min.min(READABLE), max.map(|m| m.min(READABLE)));
        match (min, max) {
            (0, None) => self.out.push('*'),
            (1, None) => self.out.push('+'),
            (0, Some(1)) => self.out.push('?'),
            (_, None) => _ = write!(self.out, "{{{min},}}"),
            (_, Some(max)) => _ = write!(self.out, "{{{min},{max}}}"),
        }
        if self.take("?") {
            self.out.push('?');
        }
        self.last = Last::None;
        Ok(())
    }

    /// The numbers of `{n}`, `{n,}` or `{n,m}` after the brace; anything else
    /// leaves the brace a character.
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

    /// An escape outside of classes.
    fn escape(&mut self) -> Result<(), String> {
        let start = self.at;
        let Some(unit) = self.next() else {
            return Err("\\ at end of pattern".to_owned());
        };
        match u8::try_from(unit).unwrap_or(0) {
            b'b' => self.assertion(r"(?-u:\b)"),
            b'B' => self.assertion(r"(?-u:\B)"),
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
                    Some(set @ (DIGIT | WORD)) => self.atom(set, 1),
                    Some(set) => self.atom(set, CLASS_POSITIONS),
                    None => {
                        let unit = self.character_escape();
                        self.unit(unit);
                    }
                }
            }
        }
        Ok(())
    }

    /// `\d` and its kin, after the backslash.
    fn set_escape(&mut self) -> Option<&'static str> {
        let set = match self.peek()? {
            b'd' => DIGIT,
            b'D' => NOT_DIGIT,
            b'w' => WORD,
            b'W' => NOT_WORD,
            b's' => SPACE,
            b'S' => NOT_SPACE,
            _ => return None,
        };
        self.at += 1;
        Some(set)
    }

    /// An escape that stands for one unit, after the backslash. What is no
    /// known escape stands for itself (§B.1.2).
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
                    // The backslash stands for itself and the `c` comes next.
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

    /// The rest of a legacy octal escape: at most three digits, below 256.
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

    /// A character class, after its bracket.
    fn class(&mut self) -> Result<(), String> {
        let negated = self.take("^");
        let mut body = String::new();
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
                (ClassAtom::Unit(a), ClassAtom::Unit(b)) => push_range(&mut body, a, b),
                // With a set at either end the dash is a character (§B.1.2).
                (from, to) => {
                    from.push(&mut body);
                    ClassAtom::Unit(u16::from(b'-')).push(&mut body);
                    to.push(&mut body);
                }
            }
        }
        match (body.is_empty(), negated) {
            (true, false) => self.atom(NOTHING, 1),
            (true, true) => self.atom(ANY, CLASS_POSITIONS),
            (false, _) => {
                let open = if negated { "[^" } else { "[" };
                self.out.push_str(open);
                self.out.push_str(&body);
                self.atom("]", CLASS_POSITIONS);
            }
        }
        Ok(())
    }

    /// The next member of a class; `None` at its end, which is taken.
    fn class_atom(&mut self) -> Result<Option<ClassAtom>, String> {
        let unterminated = || "missing terminating ] for character class".to_owned();
        let unit = self.next().ok_or_else(unterminated)?;
        if unit == u16::from(b']') {
            return Ok(None);
        }
        if unit != u16::from(b'\\') {
            return Ok(Some(ClassAtom::Unit(unit)));
        }
        if let Some(set) = self.set_escape() {
            return Ok(Some(ClassAtom::Set(set)));
        }
        if self.at == self.pattern.len() {
            return Err("\\ at end of pattern".to_owned());
        }
        if self.take("b") {
            return Ok(Some(ClassAtom::Unit(0x08)));
        }
        Ok(Some(ClassAtom::Unit(self.class_character_escape())))
    }

    /// Like [`Translator::character_escape`]; in classes `\c` takes digits and
    /// the underscore too.
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

/// A member of a class.
#[derive(Copy, Clone)]
enum ClassAtom {
    Unit(u16),
    Set(&'static str),
}

impl ClassAtom {
    fn push(self, out: &mut String) {
        match self {
            ClassAtom::Unit(unit) => push_char(out, unit),
            ClassAtom::Set(set) => out.push_str(set),
        }
    }
}

/// Writes a unit so that it means itself, in a class or outside.
fn push_char(out: &mut String, unit: u16) {
    let c = surrogate_as_char(unit);
    if c.is_ascii_alphanumeric() {
        out.push(c);
    } else {
        _ = write!(out, "\\x{{{:X}}}", u32::from(c));
    }
}

/// Writes a range of units. Surrogates lie in the middle of the units but
/// their characters at the end, so a range may fall into three.
fn push_range(out: &mut String, from: u16, to: u16) {
    for (low, high) in [(0, 0xD7FF), (0xD800, 0xDFFF), (0xE000, 0xFFFF)] {
        let (a, b) = (from.max(low), to.min(high));
        if a <= b {
            push_char(out, a);
            out.push('-');
            push_char(out, b);
        }
    }
}

fn unsupported(what: &str) -> String {
    format!("{what} is not supported (patterns are matched in linear time)")
}
