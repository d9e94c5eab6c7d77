//! String parsing: strings without escapes remain slices of the source, others are decoded to WTF-8
//! (decision D36).

use super::parse::{ParseStopped, Parser};
use super::{Tag, word};
use crate::text::{join_surrogates, push_code_point};

/// Bytes without special meaning inside a string, except quotes.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < 0x20 {
        plain[control] = false;
        control += 1;
    }
    plain[b'\\' as usize] = false;
    plain
};

impl Parser<'_> {
    /// Parses a string that starts at the current position with `quote`, and adds its node.
    pub(super) fn string(&mut self, quote: u8) -> Result<(), ParseStopped> {
        let start = self.pos;
        let body = start + 1;
        let rest = &self.src[body..];
        let plain = rest
            .iter()
            .position(|&byte| byte == quote || !PLAIN[usize::from(byte)])
            .unwrap_or(rest.len());
        self.pos = body + plain;
        if self.peek() == Some(quote) {
            self.pos += 1;
            self.node(Tag::SourceString, start, word(body), word(plain))?;
            return Ok(());
        }
        let from = self.strings.len();
        self.strings
            .extend_from_slice(&self.src[body..body + plain]);
        self.escaped_string(start, quote)?;
        let size = self.strings.len() - from;
        self.node(Tag::OwnString, start, word(from), word(size))?;
        Ok(())
    }

    /// Parses the rest of a string from its first special byte on.
    fn escaped_string(&mut self, start: usize, quote: u8) -> Result<(), ParseStopped> {
        loop {
            let run = self.pos;
            while self
                .peek()
                .is_some_and(|byte| byte != quote && byte != b'\\' && byte >= 0x20)
            {
                self.pos += 1;
            }
            self.strings.extend_from_slice(&self.src[run..self.pos]);
            match self.peek() {
                Some(b'\\') => self.escape(start)?,
                None | Some(b'\n' | b'\r') => return Err(self.unclosed_string(start)),
                Some(byte) if byte == quote => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(control) => {
                    self.control_character(control)?;
                    self.strings.push(control);
                    self.pos += 1;
                }
            }
        }
    }

    /// Parses an escape; the position is at its backslash.
    fn escape(&mut self, string: usize) -> Result<(), ParseStopped> {
        let start = self.pos;
        let Some(&letter) = self.src.get(start + 1) else {
            return Err(self.unclosed_string(string));
        };
        self.pos += 2;
        let byte = match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(start),
            _ => {
                // The escaped character itself becomes text.
                self.pos = start + 1;
                self.bad_escape(start)?;
                if letter == b'\'' || letter == b'`' {
                    self.pos += 1;
                    self.strings.push(letter);
                }
                return Ok(());
            }
        };
        self.strings.push(byte);
        Ok(())
    }

    /// Parses `\uXXXX`, and a following low half of a surrogate pair.
    fn unicode_escape(&mut self, start: usize) -> Result<(), ParseStopped> {
        let Some(unit) = self.hex4(start + 2) else {
            return self.bad_escape(start);
        };
        self.pos = start + 6;
        let mut code = u32::from(unit);
        if matches!(unit, 0xD800..=0xDBFF)
            && self.src[self.pos..].starts_with(b"\\u")
            && let Some(low @ 0xDC00..=0xDFFF) = self.hex4(self.pos + 2)
        {
            code = join_surrogates(unit, low);
            self.pos += 6;
        }
        push_code_point(&mut self.strings, code);
        Ok(())
    }

    fn hex4(&self, at: usize) -> Option<u16> {
        self.src
            .get(at..at + 4)?
            .iter()
            .try_fold(0u16, |unit, &digit| {
                let value = char::from(digit).to_digit(16)?;
                Some((unit << 4) | value as u16)
            })
    }
}
