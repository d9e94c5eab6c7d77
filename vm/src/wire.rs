//! Fields of a snapshot as bytes: little-endian, no padding, lists and texts preceded by
//! their length.
//!
//! A read checks that the bytes exist and that the run may hold the result, before it
//! allocates.

use a99_core::suspend::codes;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_ecma::wtf8;
use std::fmt;

/// A run that cannot be suspended, or a snapshot that cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotError {
    /// The stable code.
    pub code: &'static str,
    /// The message, without a full stop.
    pub message: String,
    /// The offset after the faulty content, in bytes from the end of the header, if the
    /// content is at fault.
    pub offset: Option<usize>,
}

impl SnapshotError {
    #[cold]
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> SnapshotError {
        SnapshotError {
            code,
            message: message.into(),
            offset: None,
        }
    }

    pub(crate) fn at(self, offset: usize) -> SnapshotError {
        SnapshotError {
            offset: Some(offset),
            ..self
        }
    }

    #[cold]
    pub(crate) fn too_large() -> SnapshotError {
        let text = "it holds more than the limits of these options allow";
        SnapshotError::new(codes::SNAPSHOT_TOO_LARGE, text)
    }

    /// A suggestion for a fix.
    #[must_use]
    pub fn help(&self) -> &'static str {
        a99_core::codes::find(self.code).map_or("", |row| row.help)
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match self.offset {
            Some(offset) => write!(f, " (byte {offset})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SnapshotError {}

/// Writes the bytes of a snapshot.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) out: Vec<u8>,
}

macro_rules! put_numbers {
    ($($name:ident: $type:ty),*) => { $(
        pub(crate) fn $name(&mut self, n: $type) {
            self.out.extend_from_slice(&n.to_le_bytes());
        }
    )* };
}

impl Writer {
    put_numbers!(u8: u8, u16: u16, u32: u32, u64: u64, i64: i64);

    /// Writes the bits of a number, with one canonical NaN.
    pub(crate) fn f64(&mut self, n: f64) {
        let n = if n.is_nan() { f64::NAN } else { n };
        self.u64(n.to_bits());
    }

    pub(crate) fn bool(&mut self, b: bool) {
        self.u8(u8::from(b));
    }

    /// Writes the length of a list; no list of a run exceeds the type.
    pub(crate) fn len(&mut self, n: usize) {
        self.u32(u32::try_from(n).unwrap_or(u32::MAX));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    /// Writes whether an option has a value.
    pub(crate) fn is_some<T>(&mut self, option: Option<&T>) -> bool {
        self.bool(option.is_some());
        option.is_some()
    }

    /// Writes a value of the host; members keep their order.
    pub(crate) fn value(&mut self, value: &Value) {
        self.parts(vec![Part::Value(value)]);
    }

    pub(crate) fn map(&mut self, map: &Map) {
        self.map_head(map);
        self.parts(members(map));
    }

    fn parts(&mut self, mut parts: Vec<Part<'_>>) {
        while let Some(part) = parts.pop() {
            let value = match part {
                Part::Value(value) => value,
                Part::Member(key, value) => {
                    self.bytes(key.as_bytes());
                    value
                }
            };
            match value {
                Value::Undefined => self.u8(0),
                Value::Null => self.u8(1),
                Value::Bool(b) => self.u8(2 + u8::from(*b)),
                Value::Number(n) => {
                    self.u8(4);
                    self.f64(*n);
                }
                Value::String(text) => {
                    self.u8(5);
                    self.bytes(text.as_bytes());
                }
                Value::Array(items) => {
                    self.u8(6);
                    self.len(items.len());
                    parts.extend(items.iter().rev().map(Part::Value));
                }
                Value::Object(map) => {
                    self.map_head(map);
                    parts.extend(members(map));
                }
            }
        }
    }

    fn map_head(&mut self, map: &Map) {
        self.u8(7);
        self.len(map.len());
    }
}

/// A part of a value that is still to be written.
enum Part<'v> {
    Value(&'v Value),
    Member(&'v Text, &'v Value),
}

/// The members of an object in reverse order.
fn members(map: &Map) -> Vec<Part<'_>> {
    let mut parts: Vec<_> = map
        .iter()
        .map(|(key, value)| Part::Member(key, value))
        .collect();
    parts.reverse();
    parts
}

/// Maximum depth of host values: the default boundary depth with a margin.
const MAX_DEPTH: usize = 1024;

/// Maximum of a counter: each count takes a nanosecond at least, so this is more than a
/// century.
const MAX_COUNT: u64 = u64::MAX / 3;

/// Memory of a value, or of a member of an object, in bytes.
const VALUE_BYTES: usize = 40;
const MEMBER_BYTES: usize = 120;

/// Reads the bytes of a snapshot.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes of memory that may still be allocated.
    room: usize,
}

pub(crate) type Taken<T> = Result<T, SnapshotError>;

macro_rules! take_numbers {
    ($($name:ident: $type:ty),*) => { $(
        pub(crate) fn $name(&mut self) -> Taken<$type> {
            let mut bytes = [0; size_of::<$type>()];
            bytes.copy_from_slice(self.slice(size_of::<$type>())?);
            Ok(<$type>::from_le_bytes(bytes))
        }
    )* };
}

impl<'a> Reader<'a> {
    take_numbers!(u8: u8, u16: u16, u32: u32, u64: u64, i64: i64);

    /// Creates a reader whose results take at most `room` bytes.
    pub(crate) fn new(bytes: &'a [u8], room: usize) -> Reader<'a> {
        Reader { bytes, at: 0, room }
    }

    /// An error at the offset after the field.
    #[cold]
    pub(crate) fn wrong<T>(&self, what: &str) -> Taken<T> {
        Err(self.fault(what))
    }

    #[cold]
    pub(crate) fn fault(&self, what: &str) -> SnapshotError {
        SnapshotError::new(codes::BAD_SNAPSHOT, what).at(self.at)
    }

    pub(crate) fn slice(&mut self, n: usize) -> Taken<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..n)) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => self.wrong("it ends inside a field"),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Taken<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.slice(N)?);
        Ok(bytes)
    }

    pub(crate) fn f64(&mut self) -> Taken<f64> {
        let n = f64::from_bits(self.u64()?);
        // The machine has one canonical NaN.
        Ok(if n.is_nan() { f64::NAN } else { n })
    }

    /// Reads a counter: bounded, so that later increments cannot overflow.
    pub(crate) fn count(&mut self) -> Taken<u64> {
        match self.u64()? {
            n if n <= MAX_COUNT => Ok(n),
            _ => self.wrong("a count is higher than any run's"),
        }
    }

    pub(crate) fn bool(&mut self) -> Taken<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.wrong("a flag is neither 0 nor 1"),
        }
    }

    /// Counts memory before it is allocated.
    pub(crate) fn take_room(&mut self, bytes: usize) -> Taken<()> {
        match self.room.checked_sub(bytes) {
            Some(room) => {
                self.room = room;
                Ok(())
            }
            None => Err(SnapshotError::too_large()),
        }
    }

    /// Reads the length of a list whose entries take at least `least` bytes here, and `held`
    /// bytes in memory.
    pub(crate) fn len(&mut self, least: usize, held: usize) -> Taken<usize> {
        let n = self.u32()? as usize;
        let left = self.bytes.len() - self.at;
        if n.checked_mul(least).is_none_or(|bytes| bytes > left) {
            return self.wrong("a list is longer than what follows");
        }
        self.take_room(n.saturating_mul(held))?;
        Ok(n)
    }

    pub(crate) fn bytes(&mut self) -> Taken<&'a [u8]> {
        let n = self.len(1, 1)?;
        self.slice(n)
    }

    pub(crate) fn wtf8(&mut self) -> Taken<&'a [u8]> {
        let bytes = self.bytes()?;
        match wtf8::validate(bytes) {
            true => Ok(bytes),
            false => self.wrong("a text is not WTF-8"),
        }
    }

    pub(crate) fn text(&mut self) -> Taken<Text> {
        Ok(Text::copy_wtf8(self.wtf8()?))
    }

    pub(crate) fn value(&mut self) -> Taken<Value> {
        /// An array or object with this number of parts still to read.
        enum Open {
            Array(Vec<Value>, usize),
            Object(Map, usize, Text),
        }
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.take_room(VALUE_BYTES)?;
            let mut value = match self.u8()? {
                0 => Value::Undefined,
                1 => Value::Null,
                2 => Value::Bool(false),
                3 => Value::Bool(true),
                4 => Value::Number(self.f64()?),
                5 => Value::String(self.text()?),
                6 => {
                    let n = self.len(1, VALUE_BYTES)?;
                    if n > 0 {
                        if open.len() == MAX_DEPTH {
                            return self.wrong("a value is nested too deeply");
                        }
                        open.push(Open::Array(Vec::with_capacity(n), n));
                        continue;
                    }
                    Value::Array(Vec::new())
                }
                7 => {
                    let n = self.len(5, MEMBER_BYTES)?;
                    if n > 0 {
                        if open.len() == MAX_DEPTH {
                            return self.wrong("a value is nested too deeply");
                        }
                        let key = self.text()?;
                        open.push(Open::Object(Map::with_capacity(n), n, key));
                        continue;
                    }
                    Value::Object(Map::new())
                }
                _ => return self.wrong("a value is of no kind"),
            };
            loop {
                value = match open.pop() {
                    None => return Ok(value),
                    Some(Open::Array(mut items, left)) => {
                        items.push(value);
                        if left > 1 {
                            open.push(Open::Array(items, left - 1));
                            break;
                        }
                        Value::Array(items)
                    }
                    Some(Open::Object(mut map, left, key)) => {
                        if map.insert(key, value).is_some() {
                            return self.wrong("an object has a key twice");
                        }
                        if left > 1 {
                            let key = self.text()?;
                            open.push(Open::Object(map, left - 1, key));
                            break;
                        }
                        Value::Object(map)
                    }
                };
            }
        }
    }

    /// Checks that no bytes follow.
    pub(crate) fn end(&self) -> Taken<()> {
        match self.at == self.bytes.len() {
            true => Ok(()),
            false => self.wrong("it goes on after its last field"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_core::json::{Document, Limits};

    fn value(json: &str) -> Value {
        let document = Document::parse(json, &Limits::default()).expect("JSON");
        document.to_value(document.root())
    }

    #[test]
    fn values_come_back() {
        for json in [
            "null",
            "[]",
            "{}",
            r#"[1,-0.5,"é",[[]],{"b":[{}],"a":{"c":[true,false,null]}}]"#,
        ] {
            let before = value(json);
            let mut w = Writer::default();
            w.value(&before);
            w.value(&Value::Undefined);
            let mut r = Reader::new(&w.out, 1 << 20);
            assert_eq!(r.value().expect("a value").to_json_string(), json);
            assert!(r.value().expect("a value").is_undefined());
            r.end().expect("nothing follows");
            for cut in 0..w.out.len() - 1 {
                let mut r = Reader::new(&w.out[..cut], 1 << 20);
                assert!(r.value().is_err(), "{json} {cut}");
            }
        }
    }

    #[test]
    fn what_lies_is_refused_before_room_is_made() {
        let code = |bytes: &[u8], room| Reader::new(bytes, room).value().expect_err("refused").code;
        // An array of four thousand million.
        assert_eq!(
            code(&[6, 255, 255, 255, 255, 0], 1 << 40),
            codes::BAD_SNAPSHOT
        );
        assert_eq!(
            code(&[6, 3, 0, 0, 0, 0, 0, 0], 100),
            codes::SNAPSHOT_TOO_LARGE
        );
        assert_eq!(code(&[5, 1, 0, 0, 0, 0xFF], 1000), codes::BAD_SNAPSHOT);
        assert_eq!(code(&[8], 1000), codes::BAD_SNAPSHOT);
        let deep: Vec<u8> = [6, 1, 0, 0, 0].repeat(5000);
        assert_eq!(code(&deep, 1 << 30), codes::BAD_SNAPSHOT);
        let twice = [7, 2, 0, 0, 0, 1, 0, 0, 0, b'a', 1, 1, 0, 0, 0, b'a', 1];
        assert_eq!(code(&twice, 1000), codes::BAD_SNAPSHOT);
    }
}
