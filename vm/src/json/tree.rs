//! Trees of a host's JSON text, for a program whose schema is about all of its arguments.
//!
//! The text was scanned and is JSON; it is walked once more by the same scanner. What is made
//! is the host's, as the trees are that hosts hand in: it takes no heap, and the walk looks at
//! the host.

use super::decode::decoded;
use super::scan::{Expected, NotRead, Scan};
use crate::native::{Cx, Fault};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_ecma::number_parse::long_json_number;
use std::ops::Range;

/// Work of making a value.
const MADE_WORK: i64 = 64;

/// A container whose values are being read.
enum Open {
    Array(Vec<Value>),
    /// With the key of the next value.
    Object(Map, Text),
}

impl Open {
    fn value(self) -> Value {
        match self {
            Open::Array(items) => Value::Array(items),
            Open::Object(map, _) => Value::Object(map),
        }
    }
}

/// The tree of a text that was scanned; of repeated keys the last one counts.
///
/// # Errors
/// A stop. What was made until then is left to whoever drops the heap.
pub(crate) fn tree(cx: &mut Cx<'_>, text: &[u8]) -> Result<Value, NotRead> {
    let mut open = Vec::new();
    let made = build(cx, &mut Scan::new(text), &mut open);
    let left = open.into_iter().map(Open::value);
    left.for_each(|value| cx.heap.leave(value));
    made
}

fn build(cx: &mut Cx<'_>, scan: &mut Scan<'_>, open: &mut Vec<Open>) -> Result<Value, NotRead> {
    loop {
        cx.work(MADE_WORK)?;
        let first = scan.next(cx)?;
        let start = scan.at;
        let mut done = match first {
            Some(b'"') => {
                let is_plain = scan.string(cx)?;
                Value::String(string(cx, scan.text, start + 1..scan.at - 1, is_plain)?)
            }
            Some(b'{') => {
                scan.open(true)?;
                if scan.next(cx)? != Some(b'}') {
                    let key = key(cx, scan)?;
                    open.push(Open::Object(Map::new(), key));
                    continue;
                }
                scan.close();
                Value::Object(Map::new())
            }
            Some(b'[') => {
                scan.open(false)?;
                if scan.next(cx)? != Some(b']') {
                    open.push(Open::Array(Vec::new()));
                    continue;
                }
                scan.close();
                Value::Array(Vec::new())
            }
            Some(b't') => {
                scan.word(b"true")?;
                Value::Bool(true)
            }
            Some(b'f') => {
                scan.word(b"false")?;
                Value::Bool(false)
            }
            Some(b'n') => {
                scan.word(b"null")?;
                Value::Null
            }
            _ => {
                scan.number(cx)?;
                let number = &scan.text[start..scan.at];
                let number = long_json_number(number, &mut |n| cx.work(n as i64))?;
                Value::Number(number.unwrap_or(f64::NAN))
            }
        };
        // A value ends here, and with it what ends with it.
        loop {
            let replaced = match open.last_mut() {
                None => return Ok(done),
                Some(Open::Array(items)) => {
                    items.push(done);
                    None
                }
                Some(Open::Object(map, key)) => map.insert(std::mem::take(key), done),
            };
            if let Some(replaced) = replaced {
                let (heap, mut clock) = cx.split();
                heap.discard(vec![replaced], &mut clock)?;
            }
            if scan.next(cx)? == Some(b',') {
                scan.at += 1;
                if let Some(Open::Object(_, next)) = open.last_mut() {
                    *next = key(cx, scan)?;
                }
                break;
            }
            scan.close();
            let Some(ended) = open.pop() else {
                return Err(scan.bad(Expected::End));
            };
            done = ended.value();
        }
    }
}

fn key(cx: &mut Cx<'_>, scan: &mut Scan<'_>) -> Result<Text, NotRead> {
    let (key, is_plain) = scan.key(cx, Expected::Key)?;
    Ok(string(cx, scan.text, key, is_plain)?)
}

/// The string between two quotes.
fn string(
    cx: &mut Cx<'_>,
    text: &[u8],
    place: Range<usize>,
    is_plain: bool,
) -> Result<Text, Fault> {
    Ok(match is_plain {
        true => Text::copy_wtf8(&text[place]),
        false => Text::from_wtf8(decoded(cx, &text[place])?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::{Bench, Late};
    use a99_core::json::{Document, Limits};

    #[test]
    fn a_tree_is_what_the_text_says() {
        let texts = [
            r#" {"a": [1, -2.5e3, "x\n\ud800é", {}, [], null, true, false], "": {"b": [[[]]]}} "#,
            "[ ]",
            "\"\\u0041\"",
            "-0",
            "12345678901234567890.125",
            "null",
        ];
        for text in texts {
            let document = Document::parse(text, &Limits::default()).expect("JSON");
            let made = tree(&mut Bench::default().cx(), text.as_bytes());
            assert_eq!(
                made.ok(),
                Some(document.to_value(document.root())),
                "{text}"
            );
        }
        let repeated = br#"{"a": [[1]], "b": 2, "\u0061": 3}"#;
        let made = tree(&mut Bench::default().cx(), repeated).ok();
        let shown = made.map(|value| value.to_json_string());
        assert_eq!(shown.as_deref(), Some(r#"{"a":3,"b":2}"#));
    }

    #[test]
    fn a_stop_leaves_what_was_made() {
        let text = format!("[{}[]]", "[[1], {\"a\": \"b\"}],".repeat(10_000));
        let mut bench = Bench::default();
        let mut cx = Cx::new(&mut bench.heap, &mut bench.meter, &Late);
        let made = tree(&mut cx, text.as_bytes());
        assert!(matches!(made, Err(NotRead::Ends(Fault::Stop(_)))));
        assert!(bench.heap.left_bytes() > 0);
    }
}
