//! Removes the reasoning that models write before or within an answer. It may hold drafts of
//! programs.

use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::ops::Range;

/// Names of tags, fences and channels that mark reasoning.
const NAMES: [&str; 9] = [
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "scratchpad",
    "analysis",
    "inner_monologue",
];

/// Longest tag in bytes, with attributes.
const MAX_TAG: usize = 100;

/// Bytes that may be read for unclosed objects, at most.
const MAX_READ: usize = 8 << 20;

/// Blanks the reasoning in an answer, so that offsets and lines stay valid.
///
/// Reasoning is the text between tags, in a fence or in a channel of thinking, and all text
/// before an unopened closing tag: chat templates write the opening tag themselves. Marks
/// inside JSON or between backticks are text.
pub(crate) fn spoken(text: &[u8]) -> Cow<'_, [u8]> {
    let thought = thought(text);
    if thought.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = text.to_vec();
    for range in thought {
        let part = out.get_mut(range).into_iter().flatten();
        part.filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b' ');
    }
    Cow::Owned(out)
}

enum Mark {
    Open,
    Close,
    /// A channel of the harmony format (gpt-oss).
    Channel {
        is_thinking: bool,
        is_final: bool,
    },
    /// The end of a message of the harmony format.
    End,
    Fence,
}

/// The mark that closes a reasoning part.
#[derive(Copy, Clone, PartialEq)]
enum Until {
    Tag,
    Channel,
    /// A fence, after this number of nested fences.
    Fence(usize),
}

fn thought(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, Until)> = None;
    let (mut at, mut read) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(Until::Fence(inside)) = open.map(|(_, until)| until)
            && let Some(word) = fence(text, at)
        {
            let end = at + 3 + word.len();
            open = match (word.is_empty(), inside, open) {
                (true, 0, Some((start, _))) => {
                    found.push(start..end);
                    None
                }
                (true, inside, Some((start, _))) => Some((start, Until::Fence(inside - 1))),
                (false, inside, Some((start, _))) => Some((start, Until::Fence(inside + 1))),
                (_, _, None) => None,
            };
            at = end;
            continue;
        }
        if rest[0] == b'{'
            && read <= MAX_READ + text.len()
            && let Some(size) = object(rest, &mut read)
        {
            at += size;
            continue;
        }
        let Some((mark, size)) = mark(text, at) else {
            at += 1;
            continue;
        };
        let end = at + size;
        match (mark, open) {
            (Mark::Open, None) => open = Some((at, Until::Tag)),
            (Mark::Fence, None) => open = Some((at, Until::Fence(0))),
            (Mark::Close, Some((start, Until::Tag))) => {
                found.push(start..end);
                open = None;
            }
            (Mark::Close, None) => only(&mut found, end),
            (
                Mark::Channel {
                    is_thinking,
                    is_final,
                },
                None | Some((_, Until::Channel)),
            ) => {
                found.extend(open.map(|(start, _)| start..at));
                // Text before the final channel is not part of the answer.
                if is_final {
                    only(&mut found, end);
                }
                open = is_thinking.then_some((at, Until::Channel));
            }
            (Mark::End, Some((start, Until::Channel))) => {
                found.push(start..end);
                open = None;
            }
            _ => {}
        }
        at = end;
    }
    // The answer was truncated during reasoning.
    found.extend(open.map(|(start, _)| start..text.len()));
    found
}

/// Replaces all ranges found so far by everything up to `end`.
fn only(found: &mut Vec<Range<usize>>, end: usize) {
    found.clear();
    found.push(0..end);
}

/// Length in bytes of the JSON object at the start, if it is complete.
fn object(rest: &[u8], read: &mut usize) -> Option<usize> {
    let mut inner = rest.get(1..)?.iter();
    inner
        .find(|byte| !byte.is_ascii_whitespace())
        .filter(|byte| **byte == b'"')?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
    match values.next()? {
        Ok(_) => Some(values.byte_offset()),
        Err(error) => {
            let lines = rest.split_inclusive(|byte| *byte == b'\n');
            let before = lines.take(error.line().saturating_sub(1));
            *read += before.map(<[u8]>::len).sum::<usize>() + error.column();
            None
        }
    }
}

/// The mark at this offset, and its length in bytes.
fn mark(text: &[u8], at: usize) -> Option<(Mark, usize)> {
    let rest = text.get(at..)?;
    // Single backticks quote a mark; a fence does not.
    let before = text.get(..at)?;
    let is_quoted = before.ends_with(b"`") && !before.ends_with(b"```");
    match *rest.first()? {
        b'`' => {
            let word = fence(text, at)?;
            is_name(word).then_some((Mark::Fence, 3 + word.len()))
        }
        b'<' if rest.starts_with(b"<|") => {
            let inner = rest.get(2..)?;
            let size = inner.iter().take(40).position(|byte| *byte == b'|')?;
            let word = inner
                .get(..size)
                .filter(|_| inner.get(size + 1) == Some(&b'>'))?;
            let size = size + 4;
            let mark = match word {
                b"START_THINKING" => Mark::Open,
                b"END_THINKING" => Mark::Close,
                b"end" | b"return" | b"start" => Mark::End,
                b"channel" => {
                    let name = rest.get(size..)?.trim_ascii_start();
                    Mark::Channel {
                        is_thinking: name.starts_with(b"analysis"),
                        is_final: name.starts_with(b"final"),
                    }
                }
                word => return tag(word).map(|mark| (mark, size)),
            };
            Some((mark, size))
        }
        b'<' if !is_quoted => within(rest, b"<", b">"),
        b'[' if !is_quoted => within(rest, b"[", b"]"),
        0xE2 if !is_quoted => within(rest, "◁".as_bytes(), "▷".as_bytes()),
        _ => None,
    }
}

/// The tag between these brackets.
fn within(rest: &[u8], open: &[u8], close: &[u8]) -> Option<(Mark, usize)> {
    let inner = rest.strip_prefix(open)?;
    let most = inner.get(..MAX_TAG.min(inner.len()))?;
    let size = most.windows(close.len()).position(|part| part == close)?;
    let mark = tag(inner.get(..size)?)?;
    Some((mark, open.len() + size + close.len()))
}

/// Parses a tag by its name and attributes. A prefix such as that of `seed:think` is ignored.
fn tag(inner: &[u8]) -> Option<Mark> {
    let (is_close, inner) = match inner.strip_prefix(b"/") {
        Some(inner) => (true, inner),
        None => (false, inner),
    };
    if inner.ends_with(b"/") {
        return None;
    }
    let name = inner.split(u8::is_ascii_whitespace).next()?;
    let name = name.rsplit(|byte| *byte == b':').next()?;
    is_name(name).then_some(match is_close {
        true => Mark::Close,
        false => Mark::Open,
    })
}

fn is_name(word: &[u8]) -> bool {
    NAMES
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

/// The language tag of a fence that begins here, at the start of its line.
fn fence(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(at..)?.strip_prefix(b"```")?;
    let mut before = text.get(..at)?.iter().rev();
    let before = before.find(|byte| **byte == b'\n' || !byte.is_ascii_whitespace());
    if before.is_some_and(|byte| *byte != b'\n') {
        return None;
    }
    let line = rest.split(|byte| *byte == b'\n').next()?;
    Some(line.trim_ascii())
}
