//! Strings of JSON: their ends and their escapes.

use super::{Parser, SCAN_SLICE, Source, syntax, wtf8_head};
use crate::convert::{special, temp};
use crate::heap::{Str, Val};
use crate::pace::Fault;
use a99_core::text::{push_code_point, push_wtf8};

/// Work per escape.
pub(in crate::json) const ESCAPE_WORK: i64 = 16;

/// A parsed string.
pub(super) enum Token {
    /// A byte range of the text without escapes.
    Plain { start: usize, end: usize },
    /// Decoded into [`Parser::decoded`].
    Decoded,
}

impl<S: Source> Parser<'_, '_, S> {
    /// Parses a string up to its closing quote; the position is after the opening one.
    pub(super) fn string(&mut self) -> Result<Token, Fault> {
        let start = self.at;
        let mut decoding = false;
        loop {
            let from = self.at;
            let bytes = self.text.bytes(self.cx.heap);
            let rest = &bytes[from..];
            let slice = &rest[..rest.len().min(SCAN_SLICE)];
            let stop = special(slice);
            let len = stop.unwrap_or(slice.len());
            self.at = from + len;
            if decoding {
                temp::reserve(self.cx.heap, &mut self.decoded, len)?;
                push_wtf8(&mut self.decoded, &slice[..len]);
            }
            let found = stop.map(|at| slice[at]);
            let ended = slice.len() == rest.len();
            self.cx.work(len as i64 / 4)?;
            match found {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(if decoding {
                        Token::Decoded
                    } else {
                        Token::Plain { start, end }
                    });
                }
                Some(b'\\') => {
                    if !decoding {
                        decoding = true;
                        self.decoded.clear();
                        let plain = &self.text.bytes(self.cx.heap)[start..self.at];
                        temp::extend(self.cx.heap, &mut self.decoded, plain)?;
                    }
                    self.escape()?;
                    self.cx.work(ESCAPE_WORK)?;
                }
                Some(_) => return Err(syntax("Unterminated string")),
                None if ended => return Err(syntax("Unterminated string")),
                None => {}
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let bytes = self.text.bytes(self.cx.heap);
        let Some(&letter) = bytes.get(self.at + 1) else {
            return Err(syntax("Unterminated string"));
        };
        let byte = match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(),
            _ => {
                let shown = wtf8_head(&bytes[self.at + 1..]);
                return Err(syntax(format_args!("Invalid escape character {shown}")));
            }
        };
        temp::push(self.cx.heap, &mut self.decoded, byte)?;
        self.at += 2;
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<(), Fault> {
        let bytes = self.text.bytes(self.cx.heap);
        let digits = bytes.get(self.at + 2..self.at + 6).unwrap_or_default();
        let mut unit = 0u32;
        for digit in digits {
            match char::from(*digit).to_digit(16) {
                Some(value) => unit = unit * 16 + value,
                None => unit = u32::MAX >> 8,
            }
        }
        if digits.len() < 4 || unit > 0xFFFF {
            return Err(syntax("Invalid unicode escape"));
        }
        let mut encoded = Vec::with_capacity(4);
        push_code_point(&mut encoded, unit);
        temp::reserve(self.cx.heap, &mut self.decoded, 4)?;
        push_wtf8(&mut self.decoded, &encoded);
        self.at += 6;
        Ok(())
    }

    pub(super) fn string_val(&mut self, token: &Token) -> Result<Val, Fault> {
        match *token {
            Token::Plain { start, end } if start == end => Ok(Val::Str(Str::EMPTY)),
            Token::Plain { start, end } => self.text.part(self.cx, start..end),
            Token::Decoded => self.cx.str(&self.decoded),
        }
    }
}
