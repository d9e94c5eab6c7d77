//! Trees from a host's JSON text, for a program whose schema applies to all of its arguments.
//!
//! The text is already validated; the same scanner walks it once more. The tree belongs to
//! the host, like trees that hosts pass: it takes no heap. The walk has yield points.

use super::decode::decoded;
use super::scan::{Expected, NotRead, Scan};
use crate::native::{Cx, Fault};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_ecma::number_parse::long_json_number;
use std::ops::Range;

/// Work to make a value.
const MADE_WORK: i64 = 64;

/// An open container.
enum Open {
    Array(Vec<Value>),
    /// Its members, and the key of the next one. They become a map at the end: a growing map
    /// would be rehashed at once.
    Object(Vec<(Text, Value)>, Text),
}

/// Builds the tree of a scanned text; of repeated keys the last one counts.
///
/// # Errors
/// A stop. The values made before it are left to the owner of the heap.
pub(crate) fn tree(cx: &mut Cx<'_>, text: &[u8]) -> Result<Value, NotRead> {
    let mut open = Vec::new();
    let made = build(cx, &mut Scan::new(text), &mut open);
    for open in open {
        match open {
            Open::Array(items) => cx.heap.leave(Value::Array(items)),
            Open::Object(members, _) => leave_members(cx, members),
        }
    }
    made
}

/// Leaves the members of an unfinished object to the owner of the heap.
#[cold]
fn leave_members(cx: &mut Cx<'_>, members: impl IntoIterator<Item = (Text, Value)>) {
    let members = members.into_iter();
    let values = members.flat_map(|(key, value)| [Value::String(key), value]);
    cx.heap.leave(Value::Array(values.collect()));
}

/// An object of these members; of repeated names the last one counts.
fn object(cx: &mut Cx<'_>, members: Vec<(Text, Value)>) -> Result<Value, Fault> {
    let mut map = Map::with_capacity(members.len());
    let mut members = members.into_iter();
    while members.len() > 0 {
        let put = cx.work(MADE_WORK).and_then(|()| {
            let replaced = (members.next()).and_then(|(key, value)| map.insert(key, value));
            let (heap, mut clock) = cx.split();
            replaced.map_or(Ok(()), |value| heap.discard(vec![value], &mut clock))
        });
        if let Err(fault) = put {
            cx.heap.leave(Value::Object(map));
            leave_members(cx, members);
            return Err(fault);
        }
    }
    Ok(Value::Object(map))
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
                    open.push(Open::Object(Vec::new(), key));
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
        // Ends all containers that end with this value.
        loop {
            match open.last_mut() {
                None => return Ok(done),
                Some(Open::Array(items)) => items.push(done),
                Some(Open::Object(members, key)) => members.push((std::mem::take(key), done)),
            }
            if scan.next(cx)? == Some(b',') {
                scan.at += 1;
                if let Some(Open::Object(_, next)) = open.last_mut() {
                    *next = key(cx, scan)?;
                }
                break;
            }
            scan.close();
            done = match open.pop() {
                None => return Err(scan.bad(Expected::End)),
                Some(Open::Array(items)) => Value::Array(items),
                Some(Open::Object(members, _)) => object(cx, members)?,
            };
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
    use crate::native::{Host, StopReason};
    use crate::pace::WORK_SLICE;
    use a99_core::json::{Document, Limits};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
    fn a_tree_takes_no_heap() {
        let mut bench = Bench::default();
        bench.heap.reset(&Arc::default(), &Arc::default(), 0);
        let text = format!("{{\"\\n{0}\": \"\\n{0}\"}}", "x".repeat(1000));
        assert!(tree(&mut bench.cx(), text.as_bytes()).is_ok());
    }

    #[test]
    fn wide_objects_are_made_piece_by_piece() {
        /// Stops when it was asked so often.
        struct After(AtomicUsize);
        impl Host for After {
            fn stop(&self) -> Option<StopReason> {
                let left = self.0.fetch_sub(1, Ordering::Relaxed);
                (left == 0).then_some(StopReason::Aborted)
            }
            fn now_ms(&self) -> f64 {
                0.0
            }
            fn random(&self, _: &mut [u8]) {}
        }
        const MEMBERS: usize = 20_000;
        const WORK: usize = MADE_WORK as usize * MEMBERS;
        let members: Vec<_> = (0..MEMBERS).map(|n| format!("\"{n}\":[]")).collect();
        let text = format!("{{{}}}", members.join(","));
        // The members were read when the host says so.
        let host = After(AtomicUsize::new(WORK * 3 / 2 / WORK_SLICE as usize));
        let mut bench = Bench::default();
        let mut cx = Cx::new(&mut bench.heap, &mut bench.meter, &host);
        let made = tree(&mut cx, text.as_bytes());
        assert!(matches!(made, Err(NotRead::Ends(Fault::Stop(_)))));
        assert!(bench.heap.left_bytes() > 0);
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
