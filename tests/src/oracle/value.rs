//! Values of the oracle: reference-counted, with UTF-16 text.
//!
//! Arrays, sets and objects are shared and mutable (decisions D49 and D66). Text is kept as
//! UTF-16 units, as in ECMA-262, so that lengths and indices need no conversion (decision D36).

use a99_core::error::ErrorCode;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use indexmap::IndexMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Guest text in UTF-16 units.
pub(super) type JsStr = Rc<[u16]>;

/// Members of a guest object in insertion order. Values are copied out, so that no borrow is
/// left during a change.
#[derive(Debug, Default)]
pub(super) struct Obj(RefCell<IndexMap<JsStr, OVal>>);

impl Obj {
    pub(super) fn new() -> Obj {
        Obj::default()
    }

    pub(super) fn get(&self, key: &[u16]) -> Option<OVal> {
        self.0.borrow().get(key).cloned()
    }

    /// A member that may be missing.
    pub(super) fn member(&self, key: &[u16]) -> OVal {
        self.get(key).unwrap_or(OVal::Undef)
    }

    pub(super) fn contains_key(&self, key: &[u16]) -> bool {
        self.0.borrow().contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Sets a member; a new one comes last.
    pub(super) fn insert(&self, key: JsStr, value: OVal) {
        self.0.borrow_mut().insert(key, value);
    }

    pub(super) fn extend(&self, members: impl IntoIterator<Item = (JsStr, OVal)>) {
        self.0.borrow_mut().extend(members);
    }

    /// Deletes a member; returns whether it existed.
    pub(super) fn remove(&self, key: &[u16]) -> bool {
        self.0.borrow_mut().shift_remove(key).is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (JsStr, OVal)> + use<> {
        let members = self.0.borrow();
        let members: Vec<_> = members
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        members.into_iter()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = JsStr> + use<> {
        self.iter().map(|(key, _)| key)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = OVal> + use<> {
        self.iter().map(|(_, value)| value)
    }
}

impl<const N: usize> From<[(JsStr, OVal); N]> for Obj {
    fn from(members: [(JsStr, OVal); N]) -> Obj {
        members.into_iter().collect()
    }
}

impl FromIterator<(JsStr, OVal)> for Obj {
    fn from_iter<T: IntoIterator<Item = (JsStr, OVal)>>(members: T) -> Obj {
        Obj(RefCell::new(members.into_iter().collect()))
    }
}

/// A value of a program that the oracle runs.
#[derive(Clone, Debug)]
pub(super) enum OVal {
    /// `undefined`
    Undef,
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A double.
    Num(f64),
    /// Text.
    Str(JsStr),
    /// An array, by reference.
    Arr(Rc<RefCell<Vec<OVal>>>),
    /// An object, by reference.
    Obj(Rc<Obj>),
    /// A set (decision D34), by reference.
    Set(Rc<RefCell<Vec<OVal>>>),
    /// A date in milliseconds since the epoch (decision D34).
    Date(Rc<f64>),
    /// A map (decision D111), by reference.
    Map(super::maps::Entries),
    /// A builtin function, by its row in `builtins::FUNCTIONS` (decision D35).
    Fn(u16),
    /// A builtin namespace, by its row in `builtins::NAMESPACES`.
    Ns(u8),
}

/// A failure on its way to a handler; `op` is set by the first atom it leaves.
#[derive(Clone, Debug)]
pub(super) struct Fail {
    /// The stable code; it decides whether the failure can be caught.
    pub code: ErrorCode,
    /// Message for the program.
    pub message: JsStr,
    /// The atom that failed, once known (language section 3.8).
    pub op: Option<String>,
}

/// Result of an evaluation.
pub(super) type Res<T> = Result<T, Fail>;

impl Fail {
    /// An ordinary failure.
    pub(super) fn new(message: impl AsRef<str>) -> Fail {
        Fail::coded(ErrorCode::Program, message)
    }

    /// A failure with a code.
    pub(super) fn coded(code: ErrorCode, message: impl AsRef<str>) -> Fail {
        Fail {
            code,
            message: js(message.as_ref()),
            op: None,
        }
    }

    /// The refusal of a forbidden name (decision D16).
    pub(super) fn forbidden(name: &str) -> Fail {
        Fail::coded(
            ErrorCode::Security,
            a99_core::builtins::forbidden_text(name),
        )
    }

    /// The failure with this atom as its place, unless it has one.
    pub(super) fn at(mut self, op: &str) -> Fail {
        self.op.get_or_insert_with(|| op.to_owned());
        self
    }
}

/// Fails with an ordinary message.
pub(super) fn fail<T>(message: impl AsRef<str>) -> Res<T> {
    Err(Fail::new(message))
}

/// UTF-16 text of a Rust string.
pub(super) fn js(s: &str) -> JsStr {
    s.encode_utf16().collect()
}

/// The text of UTF-16 units as a Rust string, lone surrogates replaced.
pub(super) fn lossy(s: &[u16]) -> String {
    String::from_utf16_lossy(s)
}

/// UTF-16 units as WTF-8 bytes.
pub(super) fn to_wtf8(units: &[u16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(units.len());
    for item in char::decode_utf16(units.iter().copied()) {
        match item {
            Ok(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let u = u32::from(lone.unpaired_surrogate());
                out.push(0xE0 | (u >> 12) as u8);
                out.push(0x80 | (u >> 6 & 0x3F) as u8);
                out.push(0x80 | (u & 0x3F) as u8);
            }
        }
    }
    out
}

/// WTF-8 bytes as UTF-16 units.
pub(super) fn from_wtf8(bytes: &[u8]) -> JsStr {
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let b = bytes[i];
        let len = match b {
            0..=0x7F => 1,
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            _ => 4,
        };
        let part = &bytes[i..(i + len).min(bytes.len())];
        i += len;
        if let Ok(s) = std::str::from_utf8(part) {
            out.extend(s.encode_utf16());
        } else if let [a, b, c] = part {
            let unit =
                (u32::from(a & 0x0F) << 12) | (u32::from(b & 0x3F) << 6) | u32::from(c & 0x3F);
            out.push(unit as u16);
        } else {
            out.push(0xFFFD);
        }
    }
    out.into()
}

/// The text type of the host for UTF-16 units.
pub(super) fn to_text(units: &[u16]) -> Text {
    Text::from_wtf8(to_wtf8(units))
}

impl OVal {
    /// A text value.
    pub(super) fn str(s: &str) -> OVal {
        OVal::Str(js(s))
    }

    /// A text value of units.
    pub(super) fn units(s: Vec<u16>) -> OVal {
        OVal::Str(s.into())
    }

    /// A new array.
    pub(super) fn array(items: Vec<OVal>) -> OVal {
        OVal::Arr(Rc::new(RefCell::new(items)))
    }

    /// A new set of these items, which must be distinct.
    pub(super) fn set(items: Vec<OVal>) -> OVal {
        OVal::Set(Rc::new(RefCell::new(items)))
    }

    /// A new object.
    pub(super) fn object(members: Obj) -> OVal {
        OVal::Obj(Rc::new(members))
    }

    /// A new date.
    pub(super) fn date(ms: f64) -> OVal {
        OVal::Date(Rc::new(ms))
    }

    /// True for `undefined` and `null`.
    pub(super) fn is_nullish(&self) -> bool {
        matches!(self, OVal::Undef | OVal::Null)
    }

    /// True for `undefined`.
    pub(super) fn is_undef(&self) -> bool {
        matches!(self, OVal::Undef)
    }

    /// ECMA-262 §7.1.2 ToBoolean.
    pub(super) fn truthy(&self) -> bool {
        match self {
            OVal::Undef | OVal::Null => false,
            OVal::Bool(b) => *b,
            OVal::Num(n) => *n != 0.0 && !n.is_nan(),
            OVal::Str(s) => !s.is_empty(),
            _ => true,
        }
    }

    /// `typeof` (ECMA-262 §13.5.3).
    pub(super) fn type_of(&self) -> &'static str {
        match self {
            OVal::Undef => "undefined",
            OVal::Bool(_) => "boolean",
            OVal::Num(_) => "number",
            OVal::Str(_) => "string",
            OVal::Fn(_) => "function",
            OVal::Ns(n) if a99_core::builtins::NAMESPACES[*n as usize] == "Date" => "function",
            _ => "object",
        }
    }

    /// Identity of two values; the test of state diffs.
    pub(super) fn is_same(&self, other: &OVal) -> bool {
        match (self, other) {
            (OVal::Num(a), OVal::Num(b)) => {
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            }
            _ => self.strict_eq(other),
        }
    }

    /// `===` (ECMA-262 §7.2.14).
    pub(super) fn strict_eq(&self, other: &OVal) -> bool {
        match (self, other) {
            (OVal::Undef, OVal::Undef) | (OVal::Null, OVal::Null) => true,
            (OVal::Bool(a), OVal::Bool(b)) => a == b,
            (OVal::Num(a), OVal::Num(b)) => a == b,
            (OVal::Str(a), OVal::Str(b)) => a == b,
            (OVal::Arr(a), OVal::Arr(b)) | (OVal::Set(a), OVal::Set(b)) => Rc::ptr_eq(a, b),
            (OVal::Obj(a), OVal::Obj(b)) => Rc::ptr_eq(a, b),
            (OVal::Date(a), OVal::Date(b)) => Rc::ptr_eq(a, b),
            (OVal::Map(a), OVal::Map(b)) => Rc::ptr_eq(a, b),
            (OVal::Fn(a), OVal::Fn(b)) => a == b,
            (OVal::Ns(a), OVal::Ns(b)) => a == b,
            _ => false,
        }
    }

    /// SameValueZero (ECMA-262 §7.2.11).
    pub(super) fn same_value_zero(&self, other: &OVal) -> bool {
        match (self, other) {
            (OVal::Num(a), OVal::Num(b)) => a == b || (a.is_nan() && b.is_nan()),
            _ => self.strict_eq(other),
        }
    }
}

/// The canonical array index that a key names (ECMA-262 §6.1.7).
pub(super) fn array_index(key: &[u16]) -> Option<usize> {
    if key.is_empty() || key.len() > 10 || (key[0] == 48 && key.len() > 1) {
        return None;
    }
    let mut n = 0u64;
    for &u in key {
        if !(48..=57).contains(&u) {
            return None;
        }
        n = n * 10 + u64::from(u - 48);
    }
    (n < u64::from(u32::MAX)).then_some(n as usize)
}

/// The keys of an object in enumeration order (decision D37).
pub(super) fn ordered_keys(obj: &Obj) -> Vec<JsStr> {
    let mut indices: Vec<(usize, JsStr)> = Vec::new();
    let mut names = Vec::new();
    for key in obj.keys() {
        match array_index(&key) {
            Some(i) => indices.push((i, key)),
            None => names.push(key),
        }
    }
    indices.sort_by_key(|(i, _)| *i);
    indices.into_iter().map(|(_, k)| k).chain(names).collect()
}

/// A host value as a fresh guest value.
pub(super) fn from_value(value: &Value) -> OVal {
    match value {
        Value::Undefined => OVal::Undef,
        Value::Null => OVal::Null,
        Value::Bool(b) => OVal::Bool(*b),
        Value::Number(n) => OVal::Num(*n),
        Value::String(s) => OVal::Str(from_wtf8(s.as_bytes())),
        Value::Array(items) => OVal::array(items.iter().map(from_value).collect()),
        Value::Object(map) => OVal::object(
            map.iter()
                .map(|(k, v)| (from_wtf8(k.as_bytes()), from_value(v)))
                .collect(),
        ),
    }
}

/// A guest value as a host value: sets are arrays, dates their ISO text,
/// builtins `undefined` (decisions D34 and D35).
///
/// # Errors
/// A cycle, or nesting deeper than `max_depth` (decision D21).
pub(super) fn to_value(value: &OVal, max_depth: usize) -> Res<Value> {
    if max_depth == 0 {
        return Err(Fail::coded(
            ErrorCode::Boundary,
            "value is cyclic or nested too deeply",
        ));
    }
    Ok(match value {
        OVal::Undef | OVal::Fn(_) | OVal::Ns(_) => Value::Undefined,
        OVal::Null => Value::Null,
        OVal::Bool(b) => Value::Bool(*b),
        OVal::Num(n) => Value::Number(*n),
        OVal::Str(s) => Value::String(to_text(s)),
        OVal::Arr(items) | OVal::Set(items) => Value::Array(
            items
                .borrow()
                .iter()
                .map(|v| to_value(v, max_depth - 1))
                .collect::<Res<_>>()?,
        ),
        OVal::Obj(obj) => {
            let mut map = Map::new();
            for (k, v) in obj.iter() {
                map.insert(to_text(&k), to_value(&v, max_depth - 1)?);
            }
            Value::Object(map)
        }
        OVal::Date(ms) => super::dates::iso(**ms).map_or(Value::Null, |s| Value::String(s.into())),
        OVal::Map(_) => return Err(Fail::coded(ErrorCode::Boundary, "value contains a Map")),
    })
}

/// A deep copy that keeps sets and dates, for values that leave and return within one run
/// (decision D49).
pub(super) fn deep_copy(value: &OVal, max_depth: usize) -> Res<OVal> {
    if max_depth == 0 {
        return Err(Fail::coded(
            ErrorCode::Boundary,
            "value is cyclic or nested too deeply",
        ));
    }
    let items = |items: &Rc<RefCell<Vec<OVal>>>| {
        items
            .borrow()
            .iter()
            .map(|v| deep_copy(v, max_depth - 1))
            .collect::<Res<Vec<_>>>()
    };
    Ok(match value {
        OVal::Arr(a) => OVal::array(items(a)?),
        OVal::Set(s) => OVal::set(items(s)?),
        OVal::Date(ms) => OVal::date(**ms),
        OVal::Map(entries) => {
            let copy = |(k, v): &(OVal, OVal)| {
                Ok((deep_copy(k, max_depth - 1)?, deep_copy(v, max_depth - 1)?))
            };
            let entries = entries.borrow().iter().map(copy).collect::<Res<_>>()?;
            OVal::Map(Rc::new(RefCell::new(entries)))
        }
        OVal::Obj(obj) => OVal::object(
            obj.iter()
                .map(|(k, v)| Ok((k, deep_copy(&v, max_depth - 1)?)))
                .collect::<Res<_>>()?,
        ),
        other => other.clone(),
    })
}
