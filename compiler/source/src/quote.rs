//! Writes names, texts and keys in the syntax of JavaScript and of expression texts.

use a99_core::json::{Document, Kind, NodeId, write_js_number};
use a99_core::text::surrogate_at;

/// True if a text can be a member name after a dot.
pub(crate) fn is_name(text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else {
        return false;
    };
    let mut chars = text.chars();
    let begins = |c: char| c.is_alphabetic() || matches!(c, '_' | '$');
    chars.next().is_some_and(begins) && chars.all(|c| begins(c) || c.is_ascii_digit())
}

/// Writes a text in quotes. In JavaScript, U+2028 and U+2029 end lines in code, but not in string
/// literals.
pub(crate) fn quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    let mut done = 0;
    for (at, &byte) in text.iter().enumerate() {
        if at < done {
            continue;
        }
        match byte {
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            b'\'' | b'\\' => out.extend([b'\\', byte]),
            _ => match surrogate_at(&text[at..]) {
                // Only JavaScript has lone surrogates; expression texts do not.
                Some(unit) => {
                    out.extend(format!("\\u{unit:04x}").bytes());
                    done = at + 3;
                }
                None => out.push(byte),
            },
        }
    }
    out.push(b'\'');
}

/// Writes the key of an object.
pub(crate) fn property_key(key: &[u8], out: &mut Vec<u8>) {
    match is_name(key) {
        true => out.extend(key),
        false => quoted(key, out),
    }
}

/// Writes a literal.
pub(crate) fn constant(doc: &Document, value: NodeId, out: &mut Vec<u8>) {
    match doc.kind(value) {
        Kind::Bool(true) => out.extend(b"true"),
        Kind::Bool(false) => out.extend(b"false"),
        Kind::Number(number) if number == 0.0 && number.is_sign_negative() => {
            out.extend(b"-0");
        }
        Kind::Number(number) => write_js_number(number, out),
        Kind::String(text) => quoted(text, out),
        Kind::Null => out.extend(b"null"),
        Kind::Array => {
            out.push(b'[');
            for (index, item) in doc.elements(value).enumerate() {
                out.extend(if index > 0 { &b", "[..] } else { b"" });
                constant(doc, item, out);
            }
            out.push(b']');
        }
        Kind::Object => {
            out.push(b'{');
            for (index, (key, item)) in doc.members(value).enumerate() {
                out.extend(if index > 0 { &b", "[..] } else { b" " });
                property_key(key, out);
                out.extend(b": ");
                constant(doc, item, out);
            }
            out.extend(if doc.is_empty(value) {
                &b"}"[..]
            } else {
                b" }"
            });
        }
    }
}
