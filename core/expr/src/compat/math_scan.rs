//! Characters, numbers, strings, names and operators of `mathCalc` texts.
//!
//! It behaves like the first generation's scanner: it has no token list, the grammar scans
//! each position as needed, and positions count UTF-16 units.

use super::error::MathError;
use crate::{ExprKind, Lit};

/// Binary operators of language section 3.10, with their precedence; longer spellings precede
/// their prefixes.
const BINARY: &[(&str, u8)] = &[
    (">>>", 8),
    ("===", 6),
    ("!==", 6),
    ("neq", 6),
    ("and", 1),
    ("||", 1),
    ("??", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("**", 11),
    ("or", 1),
    ("eq", 6),
    ("gt", 7),
    ("lt", 7),
    ("ge", 7),
    ("le", 7),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

/// A binary operator as written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct BinaryOp {
    /// The spelling in the text.
    pub text: &'static str,
    /// Its precedence.
    pub precedence: u8,
}

/// The text and the position in it.
pub(super) struct Scanner {
    units: Vec<u16>,
    /// The byte offset of each unit, and of the end.
    offsets: Vec<u32>,
    /// The position, in UTF-16 units.
    pub index: usize,
}

impl Scanner {
    pub(super) fn new(text: &str) -> Self {
        let mut units = Vec::with_capacity(text.len());
        let mut offsets = Vec::with_capacity(text.len() + 1);
        for (at, c) in text.char_indices() {
            let mut buffer = [0; 2];
            for unit in c.encode_utf16(&mut buffer) {
                units.push(*unit);
                offsets.push(at as u32);
            }
        }
        offsets.push(text.len() as u32);
        Self {
            units,
            offsets,
            index: 0,
        }
    }

    /// The unit at the position, `None` at the end.
    pub(super) fn code(&self) -> Option<u16> {
        self.units.get(self.index).copied()
    }

    /// Whether the unit at the position is this ASCII character.
    pub(super) fn at(&self, c: char) -> bool {
        self.code() == Some(c as u16)
    }

    /// Whether the unit after the next is this ASCII character.
    pub(super) fn next_is(&self, c: char) -> bool {
        self.units.get(self.index + 1) == Some(&(c as u16))
    }

    pub(super) fn at_end(&self) -> bool {
        self.index >= self.units.len()
    }

    /// The byte offset of the position.
    pub(super) fn offset(&self) -> u32 {
        self.offsets[self.index.min(self.units.len())]
    }

    /// The character at the position, empty at the end.
    pub(super) fn char_text(&self) -> String {
        String::from_utf16_lossy(self.code().as_slice())
    }

    /// An error at the position.
    pub(super) fn error(&self, message: impl Into<String>) -> MathError {
        let mut message = message.into();
        message.push_str(&format!(" at character {}", self.index));
        MathError {
            message,
            offset: self.offset(),
        }
    }

    /// Skips space, tab, line feed and carriage return.
    pub(super) fn skip_spaces(&mut self) {
        while let Some(9 | 10 | 13 | 32) = self.code() {
            self.index += 1;
        }
    }

    /// Parses a binary operator; a word counts only if the next character cannot continue a
    /// name.
    pub(super) fn binary_op(&mut self) -> Option<BinaryOp> {
        self.skip_spaces();
        let rest = &self.units[self.index.min(self.units.len())..];
        let word = rest.first().copied().is_some_and(is_ident_start);
        let found = BINARY.iter().find(|(text, _)| {
            rest.len() >= text.len()
                && text
                    .bytes()
                    .zip(rest)
                    .all(|(byte, unit)| u16::from(byte) == *unit)
                && (!word
                    || rest
                        .get(text.len())
                        .copied()
                        .is_some_and(|u| !is_ident_part(u)))
        })?;
        self.index += found.0.len();
        Some(BinaryOp {
            text: found.0,
            precedence: found.1,
        })
    }

    fn digits(&mut self) {
        while self.code().is_some_and(is_digit) {
            self.index += 1;
        }
    }

    fn text_since(&self, start: usize) -> String {
        let units = &self.units[start..self.index];
        let mut text = String::with_capacity(units.len());
        let chars = char::decode_utf16(units.iter().copied());
        text.extend(chars.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        text
    }

    /// Reads a number that begins with a digit or a dot.
    pub(super) fn number(&mut self) -> Result<ExprKind, MathError> {
        let start = self.index;
        self.digits();
        if self.at('.') {
            self.index += 1;
            self.digits();
        }
        if self.at('e') || self.at('E') {
            self.index += 1;
            if self.at('+') || self.at('-') {
                self.index += 1;
            }
            self.digits();
            if !is_digit(self.units[self.index - 1]) {
                let number = self.text_since(start);
                return Err(self.error(format!("Expected exponent ({number}{})", self.char_text())));
            }
        }
        let number = self.text_since(start);
        if self.code().is_some_and(is_ident_start) {
            let c = self.char_text();
            let message = format!("Variable names cannot start with a number ({number}{c})");
            return Err(self.error(message));
        }
        if self.at('.') || number == "." {
            return Err(self.error("Unexpected period"));
        }
        // `.e5` has no digits: `parseFloat` gives NaN for it.
        Ok(ExprKind::Literal(Lit::Number(
            number.parse().unwrap_or(f64::NAN),
        )))
    }

    /// Reads a string that begins with a quote.
    pub(super) fn string(&mut self) -> Result<ExprKind, MathError> {
        let quote = self.code();
        self.index += 1;
        let mut value: Vec<u16> = Vec::new();
        while let Some(unit) = self.code() {
            self.index += 1;
            if Some(unit) == quote {
                let text = String::from_utf16_lossy(&value);
                return Ok(ExprKind::Literal(Lit::String(text.into_bytes())));
            }
            if unit != u16::from(b'\\') {
                value.push(unit);
                continue;
            }
            let escaped = self.code();
            self.index += 1;
            value.extend(escaped.map(|unit| match u8::try_from(unit) {
                Ok(b'n') => 10,
                Ok(b'r') => 13,
                Ok(b't') => 9,
                Ok(b'b') => 8,
                Ok(b'f') => 12,
                Ok(b'v') => 11,
                _ => unit,
            }));
        }
        let value = String::from_utf16_lossy(&value);
        Err(self.error(format!("Unclosed quote after \"{value}\"")))
    }

    /// Reads a name.
    pub(super) fn identifier(&mut self) -> Result<String, MathError> {
        let start = self.index;
        if !self.code().is_some_and(is_ident_start) {
            return Err(self.error(format!("Unexpected {}", self.char_text())));
        }
        while self.code().is_some_and(is_ident_part) {
            self.index += 1;
        }
        Ok(self.text_since(start))
    }
}

fn is_digit(unit: u16) -> bool {
    (48..=57).contains(&unit)
}

/// Whether a name can begin with this unit: `A-Z a-z _ $` and all units beyond ASCII.
pub(super) fn is_ident_start(unit: u16) -> bool {
    match u8::try_from(unit) {
        Ok(byte) if byte < 128 => byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$',
        _ => true,
    }
}

fn is_ident_part(unit: u16) -> bool {
    is_ident_start(unit) || is_digit(unit)
}
