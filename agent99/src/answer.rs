//! Finds the program in a model's answer.

use crate::thinking::spoken;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::ops::Range;

/// Bytes that a search may read without a result, plus [`MAX_TEXTS`] times the answer's
/// length. The limit matters for answers with many unclosed brackets: each is read to the
/// end.
const MAX_READ: usize = 8 << 20;
const MAX_TEXTS: usize = 8;

/// Whether an object is a program: a `seq` with `steps`.
struct IsProgram(bool);

impl<'t> Deserialize<'t> for IsProgram {
    fn deserialize<D: Deserializer<'t>>(text: D) -> Result<IsProgram, D::Error> {
        text.deserialize_map(Head)
    }
}

struct Head;

impl<'t> Visitor<'t> for Head {
    type Value = IsProgram;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'t>>(self, mut members: M) -> Result<IsProgram, M::Error> {
        let (mut is_seq, mut has_steps) = (false, false);
        while let Some(key) = members.next_key()? {
            match key {
                Key::Op => {
                    is_seq = members.next_value::<Option<String>>()?.as_deref() == Some("seq")
                }
                Key::Steps => has_steps = members.next_value::<Option<IgnoredAny>>()?.is_some(),
                Key::Other => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(IsProgram(is_seq && has_steps))
    }
}

/// The keys of an object that decide whether it is a program.
enum Key {
    Op,
    Steps,
    Other,
}

impl<'t> Deserialize<'t> for Key {
    fn deserialize<D: Deserializer<'t>>(text: D) -> Result<Key, D::Error> {
        text.deserialize_identifier(KeyName)
    }
}

struct KeyName;

impl Visitor<'_> for KeyName {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
        Ok(match key {
            "op" => Key::Op,
            "steps" => Key::Steps,
            _ => Key::Other,
        })
    }
}

/// Finds the program in a model's answer: the first object that is a `seq` with `steps`.
///
/// The object may be nested in other JSON, in a Markdown fence or in prose. Reasoning between
/// tags such as `<think>` is skipped, because it holds drafts. If no object is a program, the
/// result is the most likely attempt: the JSON of the first fence, or else the first object.
/// `None` if there is neither.
///
/// ```
/// use agent99::find_program;
///
/// let answer = "Sure:\n```json\n{\"op\": \"seq\", \"steps\": []}\n```\nDone {1}.";
/// assert_eq!(&answer[find_program(answer).unwrap()], r#"{"op": "seq", "steps": []}"#);
/// ```
#[must_use]
pub fn find_program(answer: impl AsRef<[u8]>) -> Option<Range<usize>> {
    let text = &*spoken(answer.as_ref());
    first_program(text).0.or_else(|| {
        let within = fence(text).unwrap_or(0..text.len());
        let start = within.start + objects(&text[within.clone()]).next()?;
        Some(start..close(text, start..within.end))
    })
}

/// The first object that is a program, and the number of bytes read to find it.
pub(crate) fn first_program(text: &[u8]) -> (Option<Range<usize>>, usize) {
    let (most, mut read) = (MAX_READ + MAX_TEXTS * text.len(), 0);
    for start in objects(text) {
        if read > most {
            break;
        }
        let rest = &text[start..];
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter();
        match values.next() {
            Some(Ok(IsProgram(is_program))) => {
                read += values.byte_offset();
                if is_program {
                    return (Some(start..start + values.byte_offset()), read);
                }
            }
            Some(Err(error)) => read += offset_of(rest, &error),
            None => {}
        }
    }
    (None, read)
}

/// Byte offset of a JSON error.
fn offset_of(text: &[u8], error: &serde_json::Error) -> usize {
    let before = error.line().saturating_sub(1);
    let lines = text.split_inclusive(|byte| *byte == b'\n').take(before);
    lines.map(<[u8]>::len).sum::<usize>() + error.column()
}

/// Blanks all text outside the range, so that offsets and lines stay valid.
pub(crate) fn blank_around(mut text: Vec<u8>, range: &Range<usize>) -> Vec<u8> {
    for (at, byte) in text.iter_mut().enumerate() {
        if !range.contains(&at) && *byte != b'\n' {
            *byte = b' ';
        }
    }
    text
}

/// Offsets at which non-empty objects may begin.
fn objects(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let open = text.iter().enumerate().filter(|(_, byte)| **byte == b'{');
    open.map(|(at, _)| at).filter(|at| {
        let mut rest = text[at + 1..].iter();
        rest.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'"')
    })
}

/// The lines inside the first Markdown fence that begins with JSON.
fn fence(text: &[u8]) -> Option<Range<usize>> {
    let mut open: Option<usize> = None;
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let is_fence = line.trim_ascii_start().starts_with(b"```");
        match open {
            None if is_fence => open = Some(at + line.len()),
            Some(start) if is_fence => {
                if is_json(&text[start..at]) {
                    return Some(start..at);
                }
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    let start = open.filter(|&start| is_json(&text[start..]))?;
    Some(start..text.len())
}

fn is_json(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{")
}

/// The end of the object at the start of the range: after its closing bracket, or the end of
/// the range if it is unclosed.
fn close(text: &[u8], range: Range<usize>) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, byte) in text[range.clone()].iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return range.start + at + 1;
                }
            }
            _ => {}
        }
    }
    range.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;

    const PROGRAM: &str = r#"{"op": "seq", "steps": [{"op": "return", "value": {"a": "}"}}]}"#;

    fn found(text: &str) -> Option<&str> {
        find_program(text).map(|range| &text[range])
    }

    #[test]
    fn programs_amid_other_text() {
        for text in [
            PROGRAM.to_owned(),
            format!("Here it is: {PROGRAM} and {{\"op\": \"seq\", \"steps\": []}}"),
            format!("```js\nif (a) {{ b }}\n```\nThen:\n```json\n{PROGRAM}\n```\n"),
            format!("{{\"thought\": \"{{\", \"program\": {PROGRAM}}}"),
            format!("[{{\"op\": \"varSet\"}}, {PROGRAM}]"),
            format!("é\u{1F600} `{PROGRAM}`"),
        ] {
            assert_eq!(found(&text), Some(PROGRAM), "{text}");
        }
        assert_eq!(found("no program { here }"), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn what_was_meant_to_be_one_is_told_where_it_is_wrong() {
        let text =
            "Try {\"this\": 1}:\n```json\n{\"op\": \"seq\", \"steps\": [}\n```\nBye {\"x\": 1}";
        let range = find_program(text).unwrap();
        assert!(text[range].starts_with("{\"op\": \"seq\""));
        assert_eq!(
            found("a {\"op\": \"s}q\", [1]} b"),
            Some("{\"op\": \"s}q\", [1]}")
        );
        assert_eq!(found("a {\"op\": \"seq"), Some("{\"op\": \"seq"));
        let refused = Engine::new().compile_answer(text).unwrap_err();
        let region = refused.iter().next().and_then(|d| d.region).unwrap();
        assert_eq!((region.line, region.column), (3, 25), "{refused}");
    }

    #[test]
    fn places_are_those_of_the_answer() {
        let text = "é: {\"op\": \"seq\", \"steps\": [{\"op\": \"varSte\"}]} ok";
        let agent = Engine::new().compile_answer(text).unwrap();
        let region = agent
            .warnings()
            .iter()
            .next()
            .and_then(|d| d.region)
            .unwrap();
        let at = text.find("\"varSte\"").unwrap();
        assert_eq!(region.column as usize, text[..at].chars().count() + 1);
    }

    #[test]
    fn a11_brackets_that_nothing_closes_are_read_a_few_times() {
        let opening = "{\"op\":\"seq\",\"steps\":[";
        for (opening, end) in [
            (opening, ""),
            (opening, "x"),
            ("{\"op\":\n\n", "x"),
            ("[{\"op\":", "]"),
        ] {
            let text = format!("{}{end}", opening.repeat((1 << 20) / opening.len()));
            let (found, read) = first_program(text.as_bytes());
            let texts = read / text.len();
            assert!(found.is_none() && texts <= 17, "{opening:?}: {texts} times");
        }
        let late = format!("{}{PROGRAM}", "{\"a\": 1} ".repeat(10_000));
        assert_eq!(found(&late), Some(PROGRAM));
    }

    #[test]
    fn many_brackets_are_read_a_bounded_number_of_times() {
        let text = "{\"a\":".repeat(1 << 20);
        assert!(find_program(&text).is_some());
        let text = "{".repeat(4 << 20);
        assert_eq!(find_program(text), None);
    }
}
