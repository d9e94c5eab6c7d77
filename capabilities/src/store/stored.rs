//! Byte encoding of values and keys, for persistent stores.
//!
//! A value is JSON text where that is lossless, so that people can read it, and tagged bytes
//! otherwise. JSON lacks `undefined`, NaN, infinities and negative zero, and its texts must be
//! UTF-8. The tagged form has all of them. Both keep the order of members.

use super::memory::Key;
use crate::error::CapabilityError;
use a99_core::json::{Document, Limits, write_js_number, write_json_string};
use a99_core::text::Text;
use a99_core::value::{Map, MapIter, Value};

/// Deepest nesting of arrays and objects: four times the default limit at a program's boundary
/// (D21).
const MAX_DEPTH: usize = 2_048;

/// Initial capacity of a container, at most: a damaged file may claim any length.
const ROOM: usize = 64;

/// Version of the tagged form, its first byte.
const VERSION: u8 = 1;

const UNDEFINED: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
/// Followed by the eight bytes of a double, little-endian.
const NUMBER: u8 = 4;
/// Followed by a whole number from 0 to 127 in one byte.
const SMALL: u8 = 5;
/// Followed by a length and that many bytes.
const TEXT: u8 = 6;
/// Followed by a length and that many values.
const ARRAY: u8 = 7;
/// Followed by a length and that many members: length and bytes of the key, then a value.
const OBJECT: u8 = 8;

/// An encoded value.
///
/// ```
/// use a99_capabilities::StoredValue;
/// use a99_core::value::Value;
///
/// let list = StoredValue::of(&vec![Value::Null, 1.5.into()].into(), 100)?;
/// assert_eq!(list, StoredValue::Json(b"[null,1.5]".to_vec()));
/// let zero = StoredValue::of(&(-0.0).into(), 100)?;
/// assert!(matches!(zero, StoredValue::Tagged(_)));
/// assert_eq!(StoredValue::read(zero.as_bytes()), Some((-0.0).into()));
/// # Ok::<(), a99_capabilities::CapabilityError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredValue {
    /// JSON text.
    Json(Vec<u8>),
    /// The tagged form, whose first byte is 1.
    Tagged(Vec<u8>),
}

impl StoredValue {
    /// Encodes a value in at most `max_bytes`.
    ///
    /// # Errors
    /// The encoding is larger, or the value has more than 2,048 levels.
    pub fn of(value: &Value, max_bytes: usize) -> Result<StoredValue, CapabilityError> {
        encode(value, max_bytes)
    }

    /// Bytes of either form.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            StoredValue::Json(bytes) | StoredValue::Tagged(bytes) => bytes,
        }
    }

    /// Decodes either form, distinguished by the first byte; `None` for bytes that
    /// [`StoredValue::of`] never writes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Value> {
        match bytes.first() {
            Some(&VERSION) => StoredValue::read_tagged(bytes),
            _ => StoredValue::read_json(bytes),
        }
    }

    /// Decodes JSON text.
    #[must_use]
    pub fn read_json(json: &[u8]) -> Option<Value> {
        decode_json(json)
    }

    /// Decodes the tagged form.
    #[must_use]
    pub fn read_tagged(bytes: &[u8]) -> Option<Value> {
        decode_tagged(bytes)
    }
}

/// Rest of a container that is being written.
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

/// Yields the parts of a value in order. Iterative.
///
/// # Errors
/// Errors of `f`, and a value that is too deep.
fn walk<'a>(
    value: &'a Value,
    mut f: impl FnMut(Part<'a>, bool) -> Result<(), CapabilityError>,
) -> Result<(), CapabilityError> {
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

fn too_deep() -> CapabilityError {
    CapabilityError::new(format!(
        "Store value too deep: the limit is {MAX_DEPTH} levels"
    ))
}

fn too_large(max_bytes: usize) -> CapabilityError {
    CapabilityError::new(format!(
        "Store value too large: the limit is {max_bytes} bytes"
    ))
}

fn encode(value: &Value, max_bytes: usize) -> Result<StoredValue, CapabilityError> {
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
        true => json(value, max_bytes).map(StoredValue::Json),
        false => tagged(value, max_bytes).map(StoredValue::Tagged),
    }
}

fn json(value: &Value, max_bytes: usize) -> Result<Vec<u8>, CapabilityError> {
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

fn tagged(value: &Value, max_bytes: usize) -> Result<Vec<u8>, CapabilityError> {
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

/// Writes a length in groups of seven bits, lowest first; the last byte is below 128.
fn write_length(mut length: usize, out: &mut Vec<u8>) {
    while length > 0x7f {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
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

/// A container that is being read, and the number of missing values.
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
                // Each value has at least one byte.
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

/// An encoded key: a kind and bytes. A text's bytes are unchanged, so that texts sort by their
/// bytes and no character is special.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// 0 for `undefined`, 1 `null`, 2 booleans, 3 numbers, [`StoredKey::TEXT`], 5 data.
    pub kind: u8,
    /// Empty, one byte, eight bytes of a number, a text, or JSON text.
    pub bytes: Vec<u8>,
}

impl StoredKey {
    /// The kind of text keys.
    pub const TEXT: u8 = 4;

    /// Encodes scalars by value, data by its JSON text. There is one zero and one NaN.
    ///
    /// # Errors
    /// The key is longer than [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES).
    pub fn of(value: Value) -> Result<StoredKey, CapabilityError> {
        let key = Key::of(value)?;
        let kind = key.kind();
        let bytes = match key {
            Key::Undefined | Key::Null => Vec::new(),
            Key::Bool(b) => vec![u8::from(b)],
            Key::Number(bits) => bits.to_be_bytes().to_vec(),
            Key::Text(text) => text.as_bytes().to_vec(),
            Key::Data(json) => json.into_vec(),
        };
        Ok(StoredKey { kind, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_KEY_BYTES;
    use super::*;
    use proptest::prelude::*;

    /// Strict equality, including the order of members and the sign of zero.
    fn is_same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => a.to_bits() == b.to_bits(),
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
            }
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|((k, a), (l, b))| k == l && is_same(a, b))
            }
            (a, b) => a == b,
        }
    }

    fn texts() -> impl Strategy<Value = Text> {
        let halves = prop::collection::vec(0xa0u8..0xc0, 0..3);
        (any::<String>(), halves, any::<String>()).prop_map(|(a, halves, b)| {
            let mut bytes = a.into_bytes();
            for half in halves {
                // A character between halves keeps them from forming a pair.
                bytes.extend([0xed, half, 0x80, b'-']);
            }
            bytes.extend(b.into_bytes());
            Text::from_wtf8(bytes)
        })
    }

    fn values() -> impl Strategy<Value = Value> {
        let odd = vec![
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            5e-324,
            127.0,
            128.0,
            9_007_199_254_740_993.0,
            1e21,
        ];
        let leaf = prop_oneof![
            Just(Value::Undefined),
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<f64>().prop_map(|n| Value::Number(if n.is_nan() { f64::NAN } else { n })),
            prop::sample::select(odd).prop_map(Value::Number),
            texts().prop_map(Value::String),
        ];
        leaf.prop_recursive(5, 64, 8, |inner| {
            let keys = prop_oneof![texts(), (0..20u8).prop_map(|n| n.to_string().into())];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
                prop::collection::vec((keys, inner), 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect::<Map>())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn every_value_comes_back(value in values()) {
            let stored = StoredValue::of(&value, usize::MAX).unwrap();
            let back = StoredValue::read(stored.as_bytes()).unwrap();
            prop_assert!(is_same(&back, &value), "{:?} became {:?}", value, back);
            let tagged = tagged(&value, usize::MAX).unwrap();
            let back = StoredValue::read(&tagged).unwrap();
            prop_assert!(is_same(&back, &value), "{:?} became {:?}", value, back);
        }

        #[test]
        fn other_bytes_are_refused_or_values(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let with_tag = [&[VERSION], bytes.as_slice()].concat();
            for bytes in [bytes, with_tag] {
                if let Some(value) = StoredValue::read(&bytes) {
                    let again = StoredValue::of(&value, usize::MAX).unwrap();
                    let again = StoredValue::read(again.as_bytes()).unwrap();
                    prop_assert!(is_same(&again, &value));
                }
            }
        }
    }

    #[test]
    fn plain_values_are_json() {
        let value = crate::testing::value(r#"{"b":[1.5,"x",null],"1":true}"#);
        let stored = StoredValue::of(&value, 100).unwrap();
        let json = br#"{"b":[1.5,"x",null],"1":true}"#;
        assert_eq!(stored, StoredValue::Json(json.to_vec()));
    }

    #[test]
    fn large_and_deep_values_are_refused() {
        let large = |value: &Value| StoredValue::of(value, 10).unwrap_err().to_string();
        let text = "Store value too large: the limit is 10 bytes";
        assert_eq!(large(&"x".repeat(9).into()), text);
        assert_eq!(large(&vec![Value::Undefined; 9].into()), text);
        assert!(StoredValue::of(&"x".repeat(8).into(), 10).is_ok());
        let nest = |levels: usize| (0..levels).fold(Value::Null, |v, _| vec![v].into());
        let deepest = StoredValue::of(&nest(MAX_DEPTH), usize::MAX).unwrap();
        assert!(StoredValue::read(deepest.as_bytes()).unwrap() == nest(MAX_DEPTH));
        let error = StoredValue::of(&nest(MAX_DEPTH + 1), usize::MAX).unwrap_err();
        assert!(error.to_string().starts_with("Store value too deep"));
    }

    #[test]
    fn damage_is_told() {
        for bytes in [
            &b"\x07\xff\xff\xff\xff\x0f"[..],
            b"",
            b"\x01\x06\xff",
            b"\x01\x07\xff\xff\xff\xff\x0f",
            b"\x01\x07\x05\x00",
            b"[1",
            b"\x01\x01\x01",
        ] {
            assert_eq!(StoredValue::read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn keys_have_kinds() {
        let key = |value: Value| StoredKey::of(value).unwrap();
        assert_eq!(key("7".into()).kind, StoredKey::TEXT);
        assert_ne!(key(7.0.into()), key("7".into()));
        assert_eq!(key((-0.0).into()), key(0.0.into()));
        assert_eq!(key((-f64::NAN).into()), key(f64::NAN.into()));
        assert_ne!(key(Value::Array(Vec::new())), key("[]".into()));
        let long = StoredKey::of("x".repeat(MAX_KEY_BYTES + 1).into()).unwrap_err();
        assert_eq!(
            long.to_string(),
            "Store key too long: the limit is 65536 bytes"
        );
    }
}
