//! Values as bytes and back: JSON text where nothing of a value is lost in it, so that
//! people can read the file; otherwise a form with a tag before each part.
//!
//! JSON has no `undefined`, NaN, infinities and negative zero, and its texts no bytes that
//! are not UTF-8. The other form has all of it. Both keep the order of members.

use crate::error::{SqliteCode, SqliteError};
use a99_core::json::{Document, Limits, write_js_number, write_json_string};
use a99_core::text::Text;
use a99_core::value::{Map, MapIter, Value};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// Arrays and objects inside each other, at most: four times what crosses into a program
/// by default (D21).
pub(crate) const MAX_DEPTH: usize = 2_048;

/// Members that a container has room for from the start, whatever a damaged file says.
const ROOM: usize = 64;

/// The first byte of the form with tags: its version.
const VERSION: u8 = 1;

const UNDEFINED: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
/// Eight bytes of a double follow, the lowest first.
const NUMBER: u8 = 4;
/// A whole number from 0 to 127 follows in a byte.
const SMALL: u8 = 5;
/// A length and that many bytes follow.
const TEXT: u8 = 6;
/// A length and that many values follow.
const ARRAY: u8 = 7;
/// A length and that many members follow: the length and bytes of the key, a value.
const OBJECT: u8 = 8;

/// A value as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// JSON text.
    Json(Vec<u8>),
    /// The form with tags.
    Tagged(Vec<u8>),
}

impl Stored {
    pub(crate) fn len(&self) -> usize {
        match self {
            Stored::Json(bytes) | Stored::Tagged(bytes) => bytes.len(),
        }
    }
}

impl ToSql for Stored {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Stored::Json(bytes) => ValueRef::Text(bytes),
            Stored::Tagged(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// What remains of a container that is being written.
enum Open<'a> {
    Array(std::slice::Iter<'a, Value>),
    Object(MapIter<'a>),
}

/// A part of a value, in order.
enum Part<'a> {
    Value(&'a Value),
    Key(&'a Text),
    End(bool),
}

/// Gives the parts of a value in order. Iterative.
///
/// # Errors
/// Those of `f`, and a value that is too deep.
fn walk<'a>(
    value: &'a Value,
    mut f: impl FnMut(Part<'a>, bool) -> Result<(), SqliteError>,
) -> Result<(), SqliteError> {
    let mut open: Vec<Open<'a>> = Vec::new();
    let mut next = Some(value);
    let mut is_first = true;
    loop {
        if let Some(value) = next.take() {
            f(Part::Value(value), is_first)?;
            is_first = true;
            match value {
                Value::Array(items) => open.push(Open::Array(items.iter())),
                Value::Object(map) => open.push(Open::Object(map.iter())),
                _ => is_first = false,
            }
            if open.len() > MAX_DEPTH {
                return Err(too_deep());
            }
        }
        let ended = match open.last_mut() {
            None => return Ok(()),
            Some(Open::Array(items)) => {
                next = items.next();
                false
            }
            Some(Open::Object(members)) => {
                if let Some((key, member)) = members.next() {
                    f(Part::Key(key), is_first)?;
                    is_first = true;
                    next = Some(member);
                }
                true
            }
        };
        if next.is_none() {
            open.pop();
            f(Part::End(ended), false)?;
            is_first = false;
        }
    }
}

fn too_deep() -> SqliteError {
    SqliteError::shown(
        SqliteCode::Input,
        format!("Store value too deep: the limit is {MAX_DEPTH} levels"),
    )
}

fn too_large(max_bytes: usize) -> SqliteError {
    SqliteError::shown(
        SqliteCode::Input,
        format!("Store value too large: the limit is {max_bytes} bytes"),
    )
}

/// A value as it is stored, in `max_bytes` at most.
pub(crate) fn encode(value: &Value, max_bytes: usize) -> Result<Stored, SqliteError> {
    let mut is_plain = true;
    walk(value, |part, _| {
        is_plain &= match part {
            Part::Value(Value::Undefined) => false,
            Part::Value(Value::Number(n)) => n.is_finite() && !(*n == 0.0 && n.is_sign_negative()),
            Part::Value(Value::String(text)) | Part::Key(text) => text.to_str().is_some(),
            _ => true,
        };
        Ok(())
    })?;
    match is_plain {
        true => json(value, max_bytes).map(Stored::Json),
        false => tagged(value, max_bytes).map(Stored::Tagged),
    }
}

fn json(value: &Value, max_bytes: usize) -> Result<Vec<u8>, SqliteError> {
    let mut out = Vec::new();
    let mut after_key = false;
    walk(value, |part, is_first| {
        if !is_first && !after_key && !matches!(part, Part::End(_)) {
            out.push(b',');
        }
        after_key = matches!(part, Part::Key(_));
        match part {
            Part::Key(key) => {
                write_json_string(key.as_bytes(), &mut out);
                out.push(b':');
            }
            Part::End(is_object) => out.push(if is_object { b'}' } else { b']' }),
            Part::Value(Value::Undefined | Value::Null) => out.extend_from_slice(b"null"),
            Part::Value(Value::Bool(b)) => out.extend_from_slice(b.to_string().as_bytes()),
            Part::Value(Value::Number(n)) => write_js_number(*n, &mut out),
            Part::Value(Value::String(text)) => write_json_string(text.as_bytes(), &mut out),
            Part::Value(Value::Array(_)) => out.push(b'['),
            Part::Value(Value::Object(_)) => out.push(b'{'),
        }
        match out.len() > max_bytes {
            true => Err(too_large(max_bytes)),
            false => Ok(()),
        }
    })?;
    Ok(out)
}

fn tagged(value: &Value, max_bytes: usize) -> Result<Vec<u8>, SqliteError> {
    let mut out = vec![VERSION];
    walk(value, |part, _| {
        match part {
            Part::End(_) => {}
            Part::Key(key) => write_bytes(key.as_bytes(), &mut out),
            Part::Value(value) => write_tagged(value, &mut out),
        }
        match out.len() > max_bytes {
            true => Err(too_large(max_bytes)),
            false => Ok(()),
        }
    })?;
    Ok(out)
}

fn write_tagged(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => out.push(UNDEFINED),
        Value::Null => out.push(NULL),
        Value::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
        Value::Number(n) => {
            match (0..128u8).contains(&(*n as u8)) && f64::from(*n as u8).to_bits() == n.to_bits() {
                true => out.extend_from_slice(&[SMALL, *n as u8]),
                false => {
                    out.push(NUMBER);
                    out.extend_from_slice(&n.to_le_bytes());
                }
            }
        }
        Value::String(text) => {
            out.push(TEXT);
            write_bytes(text.as_bytes(), out);
        }
        Value::Array(items) => {
            out.push(ARRAY);
            write_length(items.len(), out);
        }
        Value::Object(map) => {
            out.push(OBJECT);
            write_length(map.len(), out);
        }
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Seven bits a byte, the lowest first; the last byte is below 128.
fn write_length(mut length: usize, out: &mut Vec<u8>) {
    while length > 0x7f {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// The value that was stored.
///
/// # Errors
/// [`SqliteCode::Corrupt`] for whatever [`encode`] does not write.
pub(crate) fn decode(stored: ValueRef<'_>) -> Result<Value, SqliteError> {
    let value = match stored {
        ValueRef::Text(json) => decode_json(json),
        ValueRef::Blob(bytes) => decode_tagged(bytes),
        _ => None,
    };
    value.ok_or_else(|| SqliteError::new(SqliteCode::Corrupt, "a value is not in a form of ours"))
}

fn decode_json(json: &[u8]) -> Option<Value> {
    let limits = Limits {
        max_bytes: usize::MAX,
        max_depth: MAX_DEPTH as u32,
        max_nodes: u32::MAX,
    };
    let document = Document::parse(json, &limits).ok()?;
    Some(document.to_value(document.root()))
}

/// A container that is being read, and how many values are still to come.
enum Building {
    Array(Vec<Value>, usize),
    Object(Map, Text, usize),
}

fn decode_tagged(bytes: &[u8]) -> Option<Value> {
    let mut rest = bytes.strip_prefix(&[VERSION])?;
    let mut open: Vec<Building> = Vec::new();
    loop {
        let mut done = match byte(&mut rest)? {
            UNDEFINED => Value::Undefined,
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            SMALL => Value::Number(f64::from(byte(&mut rest)?)),
            NUMBER => {
                let (number, tail) = rest.split_first_chunk::<8>()?;
                rest = tail;
                Value::Number(f64::from_le_bytes(*number))
            }
            TEXT => Value::String(text(&mut rest)?),
            ARRAY => match length(&mut rest)? {
                0 => Value::Array(Vec::new()),
                // Each value has a byte at least.
                more if more <= rest.len() => {
                    open.push(Building::Array(Vec::with_capacity(more.min(ROOM)), more));
                    if open.len() > MAX_DEPTH {
                        return None;
                    }
                    continue;
                }
                _ => return None,
            },
            OBJECT => match length(&mut rest)? {
                0 => Value::Object(Map::new()),
                more if more <= rest.len() => {
                    let key = text(&mut rest)?;
                    open.push(Building::Object(
                        Map::with_capacity(more.min(ROOM)),
                        key,
                        more,
                    ));
                    if open.len() > MAX_DEPTH {
                        return None;
                    }
                    continue;
                }
                _ => return None,
            },
            _ => return None,
        };
        loop {
            match open.pop() {
                None => return rest.is_empty().then_some(done),
                Some(Building::Array(mut items, more)) => {
                    items.push(done);
                    if more > 1 {
                        open.push(Building::Array(items, more - 1));
                        break;
                    }
                    done = Value::Array(items);
                }
                Some(Building::Object(mut map, key, more)) => {
                    if map.insert(key, done).is_some() {
                        return None;
                    }
                    if more > 1 {
                        open.push(Building::Object(map, text(&mut rest)?, more - 1));
                        break;
                    }
                    done = Value::Object(map);
                }
            }
        }
    }
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    Some(*first)
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    let mut length = 0usize;
    for shift in (0..35).step_by(7) {
        let next = byte(rest)?;
        length |= usize::from(next & 0x7f) << shift;
        if next < 0x80 {
            return Some(length);
        }
    }
    None
}

fn text(rest: &mut &[u8]) -> Option<Text> {
    let length = length(rest)?;
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(Text::copy_wtf8(bytes))
}
