//! Errors of arguments that are invalid JSON: the place, the text found there, and a
//! suggestion.

use super::scan::{Expected, MAX_TEXT_DEPTH};
use crate::native::{Cx, Fault, Thrown};
use a99_core::error::ErrorCode;
use a99_core::text::escape_for_terminal;

/// Bytes counted between two yield points.
const SLICE: usize = 64 << 10;

/// Maximum characters of a quoted word.
const MAX_QUOTED: usize = 20;

/// The error of text that is invalid JSON at a byte offset; or a stop, since lines and
/// columns are counted here.
#[cold]
pub(crate) fn not_json(cx: &mut Cx<'_>, text: &[u8], at: usize, expected: Expected) -> Fault {
    let (line, column) = match line_column(cx, &text[..at]) {
        Ok(place) => place,
        Err(fault) => return fault,
    };
    let found = found(text, at, expected);
    let wrong = expected.wrong();
    let message =
        format!("The arguments are not JSON: line {line}, column {column}: {wrong}, found {found}");
    Fault::Throw(Box::new(Thrown {
        code: ErrorCode::ArgsNotJson,
        message: message.into_bytes(),
        help: Some(expected.help(&text[at..]).to_owned()),
        details: None,
        op: None,
        host_code: None,
    }))
}

/// Line and column after a text, both from 1; columns are characters.
fn line_column(cx: &mut Cx<'_>, text: &[u8]) -> Result<(usize, usize), Fault> {
    let (mut line, mut column) = (1, 1);
    for part in text.chunks(SLICE) {
        let lines = part.iter().filter(|byte| **byte == b'\n').count();
        let last = part.iter().rposition(|byte| *byte == b'\n');
        if let Some(last) = last {
            line += lines;
            column = 1;
            column += starts(&part[last + 1..]);
        } else {
            column += starts(part);
        }
        cx.work(SLICE as i64 / 4)?;
    }
    Ok((line, column))
}

/// Number of characters that begin in a text.
fn starts(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// A description of the text at an offset.
fn found(text: &[u8], at: usize, expected: Expected) -> String {
    let rest = &text[at..];
    let Some(&first) = rest.first() else {
        return "the end of the text".to_owned();
    };
    if matches!(expected, Expected::Utf8) {
        return format!("the byte 0x{first:02X}");
    }
    if matches!(expected, Expected::NoMark) {
        return "U+FEFF".to_owned();
    }
    if first < b' ' || first == 0x7F {
        return format!("U+{first:04X}");
    }
    let escape = usize::from(first == b'\\');
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let word = rest[escape..].iter().take(MAX_QUOTED).take_while(is_word);
    let shown = match escape + word.count() {
        0 => utf8_head(rest),
        len => String::from_utf8_lossy(&rest[..len]).into_owned(),
    };
    format!("`{}`", escape_for_terminal(&shown))
}

/// The first character of a text.
fn utf8_head(text: &[u8]) -> String {
    let head = String::from_utf8_lossy(&text[..text.len().min(4)]);
    head.chars().next().map(String::from).unwrap_or_default()
}

impl Expected {
    fn wrong(self) -> String {
        let wrong = match self {
            Expected::Value => "expected a value",
            Expected::KeyOrEnd => "expected a key in double quotes or `}`",
            Expected::Key => "expected a key in double quotes",
            Expected::Colon => "expected `:` after the key",
            Expected::InObject => "expected `,` or `}`",
            Expected::InArray => "expected `,` or `]`",
            Expected::End => "expected the end of the text",
            Expected::Quote => "expected `\"` at the end of a string",
            Expected::Escaped => "expected no control character in a string",
            Expected::Escape => "expected an escape of JSON",
            Expected::Hex => "expected four hexadecimal digits after `\\u`",
            Expected::Digit => "expected a digit",
            Expected::Utf8 => "expected UTF-8",
            Expected::NoMark => "expected no byte order mark",
            Expected::Shallower => {
                return format!(
                    "expected at most {MAX_TEXT_DEPTH} arrays and objects in each other"
                );
            }
        };
        wrong.to_owned()
    }

    /// A suggestion, given the expectation and the text found.
    fn help(self, rest: &[u8]) -> &'static str {
        if rest.is_empty() {
            return "give the whole text: it is empty or was cut off";
        }
        match (self, rest) {
            (Expected::Key, [b'}', ..]) | (Expected::Value, [b']', ..]) => {
                "remove the comma before it"
            }
            (_, [b'\'', ..]) => "write strings and keys in double quotes",
            (_, [b'/', b'/' | b'*', ..] | [b'#', ..]) => "remove the comment: JSON has none",
            (Expected::Value, [b'T' | b'F' | b'N' | b'u' | b'I', ..]) => {
                "JSON has `true`, `false` and `null`, and no other such words"
            }
            (Expected::Key | Expected::KeyOrEnd, _) => "write the key in double quotes",
            (Expected::Value, _) => {
                "write a string, number, list, object, `true`, `false` or `null`"
            }
            (Expected::Colon, _) => "write the key, a colon and the value",
            (Expected::InObject | Expected::InArray, _) => "write a comma before it, or remove it",
            (Expected::End, _) => "give one value: remove the rest",
            (Expected::Escaped, _) => "write it as an escape, such as `\\n`",
            (Expected::Escape | Expected::Hex, _) => "write a backslash as `\\\\`",
            (Expected::Digit, _) => "write the number with digits on both sides of the point",
            (Expected::Utf8, _) => "encode the text as UTF-8",
            (Expected::NoMark, _) => "leave the mark out: the text is UTF-8 anyway",
            (Expected::Shallower, _) => "nest the arguments less deeply",
            (Expected::Quote, _) => "close the string",
        }
    }
}
