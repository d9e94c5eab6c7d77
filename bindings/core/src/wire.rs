//! Lists of values as one buffer of words and one text of UTF-16, for hosts whose calls are dear.
//!
//! A word has a tag in its low four bits and a payload of 28 bits. Texts are taken from the one
//! text in the order of their words.
//!
//! | tag | payload | then |
//! |---|---|---|
//! | 0 undefined, 1 null, 2 false, 3 true | 0 | |
//! | 4 integer | two's complement; never -0 | |
//! | 5 number | 0 | two words of a double, the lower first |
//! | 6 text | UTF-16 units | |
//! | 7 array | items | the items |
//! | 8 object | members | for each its key (6 or 10) and its value |
//! | 9 bytes | bytes | words of four bytes, the lowest first |
//! | 10 key | place among the keys with tag 6 so far | |
//! | 11 error | 0 | an object: the failure of an operation |

use crate::failure::{Failure, codes};
use crate::host::Item;
use crate::runs::DirectAnswer;
use a99_core::text::push_code_point;
use agent99::{Map, Text, Value};

const UNDEFINED: u32 = 0;
const NULL: u32 = 1;
const FALSE: u32 = 2;
const TRUE: u32 = 3;
const INTEGER: u32 = 4;
const NUMBER: u32 = 5;
const TEXT: u32 = 6;
const ARRAY: u32 = 7;
const OBJECT: u32 = 8;
const BYTES: u32 = 9;
const KEY: u32 = 10;
const ERROR: u32 = 11;

const TAG_BITS: u32 = 4;
const TAG: u32 = (1 << TAG_BITS) - 1;
/// Largest payload.
const MAX_PAYLOAD: usize = (1 << 28) - 1;
/// Integers from `-MAX_INTEGER - 1` to this are one word.
const MAX_INTEGER: i32 = (1 << 27) - 1;
/// Deepest nesting of a message; the limits of runs are lower.
const MAX_DEPTH: usize = 10_000;

fn damaged(what: &str) -> Failure {
    Failure::new(codes::BAD_MESSAGE, format!("damaged message: {what}"))
}

/// Appends UTF-16 as WTF-8. A surrogate alone keeps its code.
fn push_utf16(out: &mut Vec<u8>, mut units: &[u16]) {
    out.reserve(units.len());
    while let Some(&first) = units.first() {
        // Whole runs are copied by vector instructions, also between other characters.
        let ascii = units.iter().take_while(|unit| **unit < 0x80).count();
        out.extend(units[..ascii].iter().map(|unit| *unit as u8));
        units = &units[ascii..];
        if ascii > 0 {
            continue;
        }
        let code = u32::from(first);
        let pair = match (code, units.get(1)) {
            (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) => Some(u32::from(*low)),
            _ => None,
        };
        match (code, pair) {
            (0..=0x7FF, _) => out.extend([0xC0 | (code >> 6) as u8, 0x80 | (code & 0x3F) as u8]),
            (_, Some(low)) => {
                push_code_point(out, 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00));
                units = &units[1..];
            }
            _ => out.extend([
                0xE0 | (code >> 12) as u8,
                0x80 | (code >> 6 & 0x3F) as u8,
                0x80 | (code & 0x3F) as u8,
            ]),
        }
        units = &units[1..];
    }
}

/// Appends WTF-8 as UTF-16 and returns the number of units.
fn push_units(out: &mut Vec<u16>, text: &[u8]) -> usize {
    let before = out.len();
    out.reserve(text.len());
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let (len, lead) = match first {
            0..=0x7F => {
                let ascii = rest.iter().take_while(|byte| byte.is_ascii()).count();
                out.extend(rest[..ascii].iter().map(|byte| u16::from(*byte)));
                rest = &rest[ascii..];
                continue;
            }
            0x80..=0xDF => (2, u32::from(first & 0x1F)),
            0xE0..=0xEF => (3, u32::from(first & 0x0F)),
            _ => (4, u32::from(first & 0x07)),
        };
        let len = len.min(rest.len());
        let tail = rest[1..len].iter();
        let code = tail.fold(lead, |code, byte| code << 6 | u32::from(byte & 0x3F));
        match code {
            0..=0xFFFF => out.push(code as u16),
            _ => {
                let above = code - 0x1_0000;
                out.push(0xD800 | (above >> 10) as u16);
                out.push(0xDC00 | (above & 0x3FF) as u16);
            }
        }
        rest = &rest[len..];
    }
    out.len() - before
}

/// A container under construction.
enum Open {
    Array(Vec<Value>, usize),
    Object(Map, Text, usize),
}

struct Reader<'a> {
    words: std::slice::Iter<'a, u32>,
    text: &'a [u16],
    keys: Vec<Text>,
    buffer: Vec<u8>,
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u32, Failure> {
        self.words
            .next()
            .copied()
            .ok_or_else(|| damaged("it is cut"))
    }

    fn text(&mut self, units: usize) -> Result<Text, Failure> {
        let Some((units, rest)) = self.text.split_at_checked(units) else {
            return Err(damaged("a text is cut"));
        };
        self.text = rest;
        self.buffer.clear();
        push_utf16(&mut self.buffer, units);
        Ok(Text::copy_wtf8(&self.buffer))
    }

    fn key(&mut self) -> Result<Text, Failure> {
        let word = self.word()?;
        let payload = (word >> TAG_BITS) as usize;
        match word & TAG {
            TEXT => {
                let text = self.text(payload)?;
                self.keys.push(text.clone());
                Ok(text)
            }
            KEY => {
                let key = self.keys.get(payload).cloned();
                key.ok_or_else(|| damaged("a key is unknown"))
            }
            _ => Err(damaged("a key is no text")),
        }
    }

    /// Reads a value that has no parts, or opens a container.
    fn open(&mut self, word: u32) -> Result<Result<Value, Open>, Failure> {
        let payload = word >> TAG_BITS;
        Ok(Ok(match word & TAG {
            UNDEFINED => Value::Undefined,
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            // The shift brings the sign bit of 28 bits to that of 32.
            INTEGER => Value::Number(f64::from((word as i32) >> TAG_BITS)),
            NUMBER => {
                let (low, high) = (self.word()?, self.word()?);
                Value::Number(f64::from_bits(u64::from(high) << 32 | u64::from(low)))
            }
            TEXT => Value::String(self.text(payload as usize)?),
            ARRAY if payload == 0 => Value::Array(Vec::new()),
            OBJECT if payload == 0 => Value::Object(Map::new()),
            ARRAY => {
                // Each item has a word, so that a wrong count cannot reserve much.
                let room = (payload as usize).min(self.words.len());
                return Ok(Err(Open::Array(Vec::with_capacity(room), payload as usize)));
            }
            OBJECT => {
                let room = (payload as usize).min(self.words.len() / 2);
                let key = self.key()?;
                let map = Map::with_capacity(room);
                return Ok(Err(Open::Object(map, key, payload as usize)));
            }
            _ => return Err(damaged("a value has an unknown tag")),
        }))
    }

    fn value(&mut self, word: u32) -> Result<Value, Failure> {
        let mut open: Vec<Open> = Vec::new();
        let mut next = self.open(word)?;
        loop {
            let mut value = match next {
                Ok(value) => value,
                Err(container) if open.len() < MAX_DEPTH => {
                    open.push(container);
                    let word = self.word()?;
                    next = self.open(word)?;
                    continue;
                }
                Err(_) => return Err(damaged("it is nested too deeply")),
            };
            // Close the containers that this value completes.
            loop {
                match open.last_mut() {
                    None => return Ok(value),
                    Some(Open::Array(items, left)) => {
                        items.push(value);
                        *left -= 1;
                        if *left > 0 {
                            break;
                        }
                    }
                    Some(Open::Object(map, key, left)) => {
                        map.insert(std::mem::take(key), value);
                        *left -= 1;
                        if *left > 0 {
                            *key = self.key()?;
                            break;
                        }
                    }
                }
                value = match open.pop() {
                    Some(Open::Array(items, _)) => Value::Array(items),
                    Some(Open::Object(map, ..)) => Value::Object(map),
                    None => return Err(damaged("it is empty")),
                };
            }
            let word = self.word()?;
            next = self.open(word)?;
        }
    }
}

/// Reads the arguments of an operation.
///
/// # Errors
/// The message is damaged.
pub fn decode(words: &[u32], text: &[u16]) -> Result<Vec<Item>, Failure> {
    let mut reader = Reader {
        words: words.iter(),
        text,
        keys: Vec::new(),
        buffer: Vec::new(),
    };
    let mut items = Vec::new();
    while let Some(&word) = reader.words.next() {
        if word & TAG == BYTES {
            let count = (word >> TAG_BITS) as usize;
            let mut bytes = Vec::with_capacity(count.min(4 * words.len()));
            while bytes.len() < count {
                bytes.extend(reader.word()?.to_le_bytes());
            }
            bytes.truncate(count);
            items.push(Item::Bytes(bytes));
        } else {
            items.push(Item::Value(reader.value(word)?));
        }
    }
    Ok(items)
}

/// Reads what a host wrote for a call that it may answer at once: a count of words, and if there
/// are any whether the atom succeeded, its answer, what is charged, and whether the run must stop.
#[must_use]
pub fn decode_answer(buffer: &[u32], text: &[u16]) -> Option<DirectAnswer> {
    let (count, words) = buffer.split_first()?;
    let words = words.get(..*count as usize)?;
    if words.is_empty() {
        return None;
    }
    // The function has run: what cannot be read is an error, so that it does not run again.
    let items = decode(words, text).unwrap_or_default();
    let mut values = items.into_iter().map(|item| match item {
        Item::Value(value) => value,
        Item::Bytes(_) => Value::Undefined,
    });
    let mut next = || values.next().unwrap_or(Value::Undefined);
    let (ok, value, extra, stops) = (next(), next(), next(), next());
    Some(DirectAnswer {
        answer: match ok.as_bool() {
            Some(true) => Ok(value),
            _ => Err(value),
        },
        extra,
        stops: stops.as_bool() == Some(true),
    })
}

/// Operation of the glue between a host and its buffer: the output that did not fit.
pub const TAKE: u32 = 255;

/// First word of an output that did not fit; the second is the number of words needed.
const TOO_SMALL: u32 = u32::MAX;

/// The parts of a container that are not written yet.
enum Left<'a> {
    Items(std::slice::Iter<'a, Value>),
    Members(std::vec::IntoIter<(&'a Text, &'a Value)>),
}

impl<'a> Left<'a> {
    fn of(value: &'a Value) -> Option<Left<'a>> {
        match value {
            Value::Array(items) => Some(Left::Items(items.iter())),
            Value::Object(map) => {
                let members: Vec<_> = map.iter_js_order().collect();
                Some(Left::Members(members.into_iter()))
            }
            _ => None,
        }
    }
}

/// A message for a host.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The words.
    pub words: Vec<u32>,
    /// The texts, one after the other.
    pub text: Vec<u16>,
    /// Keys that were written in full.
    keys: Vec<Text>,
    /// Place of the key that follows the last one in objects of the same shape.
    next_key: usize,
}

/// Keys before an object's own that are looked through; rows of one shape need none.
const LOOKED_THROUGH: usize = 16;

/// Keys that a message refers to; later ones are written in full.
const MAX_KEYS: usize = 1_024;

impl Message {
    /// Copies the number of words and the words to a host's buffer. False if they do not fit: then
    /// the buffer says how much room they need, and the host asks for them by [`TAKE`].
    #[must_use]
    pub fn copy_to(&self, buffer: &mut [u32]) -> bool {
        let count = self.words.len();
        match buffer {
            [first, rest @ ..] if rest.len() >= count => {
                *first = count as u32;
                rest[..count].copy_from_slice(&self.words);
                true
            }
            [first, second, ..] => {
                *first = TOO_SMALL;
                *second = count as u32 + 1;
                false
            }
            _ => false,
        }
    }

    /// Replaces the message by the result of an operation.
    pub fn write(&mut self, result: Result<Item, Failure>) {
        self.clear();
        match result {
            Ok(Item::Value(value)) => {
                if let Err(failure) = self.value(&value) {
                    self.clear();
                    self.failure(&failure);
                }
                value.dispose();
            }
            Ok(Item::Bytes(bytes)) if bytes.len() > MAX_PAYLOAD => self.failure(&too_large()),
            Ok(Item::Bytes(bytes)) => {
                self.word(BYTES, bytes.len());
                let words = bytes.chunks(4).map(|chunk| {
                    let mut word = [0; 4];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u32::from_le_bytes(word)
                });
                self.words.extend(words);
            }
            Err(failure) => self.failure(&failure),
        }
    }

    /// Replaces the message by values, one after the other.
    pub fn write_all(&mut self, values: &[&Value]) {
        self.clear();
        for value in values {
            if let Err(failure) = self.value(value) {
                self.clear();
                self.failure(&failure);
                break;
            }
        }
    }

    fn clear(&mut self) {
        self.words.clear();
        self.text.clear();
        self.keys.clear();
        self.next_key = 0;
    }

    fn failure(&mut self, failure: &Failure) {
        self.word(ERROR, 0);
        // Failures are small.
        let _ = self.value(&failure.to_value());
    }

    fn word(&mut self, tag: u32, payload: usize) {
        self.words.push(tag | (payload as u32) << TAG_BITS);
    }

    fn texts(&mut self, text: &Text) -> Result<(), Failure> {
        let units = push_units(&mut self.text, text.as_bytes());
        if units > MAX_PAYLOAD {
            return Err(too_large());
        }
        self.word(TEXT, units);
        Ok(())
    }

    fn key(&mut self, key: &Text) -> Result<(), Failure> {
        let likely = self.next_key;
        let known = match self.keys.get(likely) {
            Some(next) if next == key => Some(likely),
            _ => self
                .keys
                .iter()
                .take(LOOKED_THROUGH)
                .position(|one| one == key),
        };
        match known {
            Some(at) => {
                self.word(KEY, at);
                self.next_key = at + 1;
            }
            None => {
                self.texts(key)?;
                // The reader counts every key that is written in full.
                if self.keys.len() < MAX_KEYS {
                    self.keys.push(key.clone());
                }
                self.next_key = self.keys.len();
            }
        }
        Ok(())
    }

    fn plain(&mut self, value: &Value) -> Result<(), Failure> {
        match value {
            Value::Undefined => self.word(UNDEFINED, 0),
            Value::Null => self.word(NULL, 0),
            Value::Bool(is) => self.word(if *is { TRUE } else { FALSE }, 0),
            Value::Number(n) => {
                let integer = *n as i32;
                let is_small = (-MAX_INTEGER - 1..=MAX_INTEGER).contains(&integer);
                if is_small && f64::from(integer).to_bits() == n.to_bits() {
                    self.words.push(INTEGER | (integer as u32) << TAG_BITS);
                } else {
                    let bits = n.to_bits();
                    self.words
                        .extend([NUMBER, bits as u32, (bits >> 32) as u32]);
                }
            }
            Value::String(text) => self.texts(text)?,
            Value::Array(items) if items.len() > MAX_PAYLOAD => return Err(too_large()),
            Value::Array(items) => self.word(ARRAY, items.len()),
            Value::Object(map) => self.word(OBJECT, map.len()),
        }
        Ok(())
    }

    fn value(&mut self, value: &Value) -> Result<(), Failure> {
        self.plain(value)?;
        let mut open: Vec<Left<'_>> = Left::of(value).into_iter().collect();
        while let Some(last) = open.last_mut() {
            let next = match last {
                Left::Items(items) => items.next(),
                Left::Members(members) => match members.next() {
                    Some((key, value)) => {
                        self.key(key)?;
                        Some(value)
                    }
                    None => None,
                },
            };
            match next {
                Some(value) => {
                    self.plain(value)?;
                    open.extend(Left::of(value));
                }
                None => drop(open.pop()),
            }
        }
        Ok(())
    }
}

fn too_large() -> Failure {
    Failure::new(
        codes::BAD_MESSAGE,
        "the result is too large for one message",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_units_are_the_same_after_both_conversions() {
        let singles = (0..=u16::MAX).map(|unit| vec![unit]);
        let pairs = (0xD7F0..0xE010_u32).step_by(7).flat_map(|first| {
            let seconds = [0x41, 0xE9, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xFFFD];
            seconds.map(|second| vec![0x61, first as u16, second, 0x7A])
        });
        for units in singles.chain(pairs) {
            let (mut bytes, mut back) = (Vec::new(), Vec::new());
            push_utf16(&mut bytes, &units);
            let text = Text::from_wtf8(bytes.clone());
            assert_eq!(text.as_bytes(), bytes, "{units:x?}");
            let lossy: String = char::decode_utf16(units.iter().copied())
                .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            assert_eq!(text.to_string_lossy(), lossy, "{units:x?}");
            assert_eq!(push_units(&mut back, &bytes), units.len());
            assert_eq!(back, units);
        }
    }
}
