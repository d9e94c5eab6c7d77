//! Conversions of [`Value`]: from Rust values, from and to `serde_json`, and to JSON text. All are
//! iterative.

use super::Value;
use super::map::{Iter, Map};
use crate::json::{write_json_number, write_json_string};
use crate::text::Text;
use serde_json::Value as Json;

/// Largest integer magnitude that `f64` counts exactly (Number.MAX_SAFE_INTEGER, ECMA-262
/// §21.1.2.6).
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

macro_rules! from_number {
    ($($source:ty),*) => {$(
        impl From<$source> for Value {
            // Integers beyond 2^53 round as in the language.
            fn from(number: $source) -> Self {
                Self::Number(number as f64)
            }
        }
    )*};
}
from_number!(f64, i32, u32, i64, u64, usize);

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Object(map)
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        Self::from(&json)
    }
}

/// A container under construction, with the elements still to be copied.
enum ConvertFrame<'a> {
    Array(std::slice::Iter<'a, Json>, Vec<Value>),
    Object(serde_json::map::Iter<'a>, Map, Text),
}

impl From<&Json> for Value {
    fn from(json: &Json) -> Self {
        let mut frames: Vec<ConvertFrame<'_>> = Vec::new();
        let mut next = json;
        loop {
            let mut done = match next {
                Json::Null => Self::Null,
                Json::Bool(value) => Self::Bool(*value),
                Json::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
                Json::String(text) => Self::String(text.as_str().into()),
                Json::Array(items) => {
                    let mut items = items.iter();
                    let built = Vec::with_capacity(items.len());
                    match items.next() {
                        None => Self::Array(built),
                        Some(first) => {
                            frames.push(ConvertFrame::Array(items, built));
                            next = first;
                            continue;
                        }
                    }
                }
                Json::Object(members) => {
                    let mut members = members.iter();
                    match members.next() {
                        None => Self::Object(Map::new()),
                        Some((key, first)) => {
                            let built = Map::with_capacity(members.len() + 1);
                            frames.push(ConvertFrame::Object(members, built, key.as_str().into()));
                            next = first;
                            continue;
                        }
                    }
                }
            };
            loop {
                match frames.pop() {
                    None => return done,
                    Some(ConvertFrame::Array(mut items, mut built)) => {
                        built.push(done);
                        if let Some(item) = items.next() {
                            frames.push(ConvertFrame::Array(items, built));
                            next = item;
                            break;
                        }
                        done = Self::Array(built);
                    }
                    Some(ConvertFrame::Object(mut members, mut built, key)) => {
                        built.insert(key, done);
                        if let Some((key, value)) = members.next() {
                            frames.push(ConvertFrame::Object(members, built, key.as_str().into()));
                            next = value;
                            break;
                        }
                        done = Self::Object(built);
                    }
                }
            }
        }
    }
}

/// A container being cloned: the unvisited part, the built part, and the name of the current
/// member.
enum Walk<'a> {
    Array(std::slice::Iter<'a, Value>, Vec<Value>),
    Object(Iter<'a>, Map, Option<&'a Text>),
}

/// Clones an array or object without recursion.
pub(super) fn clone_container(value: &Value) -> Value {
    let mut frames: Vec<Walk<'_>> = Vec::new();
    let mut next = value;
    'open: loop {
        match next {
            Value::Array(items) => {
                let built = Vec::with_capacity(items.len());
                frames.push(Walk::Array(items.iter(), built));
            }
            Value::Object(map) => {
                let built = Map::with_capacity(map.len());
                frames.push(Walk::Object(map.iter(), built, None));
            }
            // Only containers are on the stack.
            scalar => return scalar.clone(),
        }
        // A completed container.
        let mut done = None;
        loop {
            match frames.last_mut() {
                None => return done.unwrap_or(Value::Undefined),
                Some(Walk::Array(items, built)) => {
                    built.extend(done.take());
                    for item in items {
                        if is_container(item) {
                            next = item;
                            continue 'open;
                        }
                        built.push(item.clone());
                    }
                    done = Some(Value::Array(std::mem::take(built)));
                }
                Some(Walk::Object(members, built, key)) => {
                    if let (Some(key), Some(value)) = (key.take(), done.take()) {
                        built.push_distinct(key.clone(), value);
                    }
                    for (name, value) in members {
                        if is_container(value) {
                            *key = Some(name);
                            next = value;
                            continue 'open;
                        }
                        built.push_distinct(name.clone(), value.clone());
                    }
                    done = Some(Value::Object(std::mem::take(built)));
                }
            }
            frames.pop();
        }
    }
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// A container being written: its remaining members, and whether a member was already written.
enum OpenContainer<'a> {
    Array(std::slice::Iter<'a, Value>, bool),
    Object(Box<dyn Iterator<Item = (&'a Text, &'a Value)> + 'a>, bool),
}

/// Starts a new line at the given depth if the text is to be indented.
fn new_line(out: &mut Vec<u8>, indent: Option<usize>, depth: usize) {
    if let Some(width) = indent {
        out.push(b'\n');
        out.resize(out.len() + width * depth, b' ');
    }
}

/// Writes JSON text as `JSON.stringify` does; `indent` is its third argument.
fn write(value: &Value, out: &mut Vec<u8>, indent: Option<usize>) {
    let mut open: Vec<OpenContainer<'_>> = Vec::new();
    let mut next = value;
    loop {
        match next {
            Value::Undefined | Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Number(number) => write_json_number(*number, out),
            Value::String(text) => write_json_string(text.as_bytes(), out),
            Value::Array(items) => {
                out.push(b'[');
                open.push(OpenContainer::Array(items.iter(), false));
            }
            Value::Object(map) => {
                out.push(b'{');
                open.push(OpenContainer::Object(Box::new(map.iter_js_order()), false));
            }
        }
        loop {
            let depth = open.len();
            let (item, any, closer) = match open.last_mut() {
                None => return,
                Some(OpenContainer::Array(items, any)) => {
                    (items.next().map(|item| (None, item)), any, b']')
                }
                Some(OpenContainer::Object(members, any)) => (
                    members
                        .find(|(_, value)| !value.is_undefined())
                        .map(|(key, value)| (Some(key), value)),
                    any,
                    b'}',
                ),
            };
            let Some((key, item)) = item else {
                if *any {
                    new_line(out, indent, depth - 1);
                }
                out.push(closer);
                open.pop();
                continue;
            };
            if std::mem::replace(any, true) {
                out.push(b',');
            }
            new_line(out, indent, depth);
            if let Some(key) = key {
                write_json_string(key.as_bytes(), out);
                out.extend_from_slice(if indent.is_some() { b": " } else { b":" });
            }
            next = item;
            break;
        }
    }
}

impl Value {
    /// Appends the text of `JSON.stringify(value)` (ECMA-262 §25.5.2): `undefined` members are
    /// dropped, other `undefined`s and non-finite numbers become `null`, lone surrogates become
    /// `\udXXX` (decision D36).
    pub fn write_json(&self, out: &mut Vec<u8>) {
        write(self, out, None);
    }

    /// The text of [`Value::write_json`].
    #[must_use]
    pub fn to_json_string(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        into_string(out)
    }

    /// The text of `JSON.stringify(value, null, 2)`.
    #[must_use]
    pub fn to_json_pretty(&self) -> String {
        let mut out = Vec::new();
        write(self, &mut out, Some(2));
        into_string(out)
    }

    /// Converts the value to `serde_json`, with the losses of JSON: see [`Value::write_json`]. In
    /// addition, lone surrogates become U+FFFD, and whole numbers in the safe range become integers
    /// (so -0 becomes 0).
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut frames: Vec<(Json, Pending<'_>)> = Vec::new();
        let mut next = self;
        loop {
            let mut done = match next {
                Self::Array(items) => {
                    frames.push((
                        Json::Array(Vec::with_capacity(items.len())),
                        Pending::Array(items.iter()),
                    ));
                    None
                }
                Self::Object(map) => {
                    let members = Box::new(map.iter_js_order());
                    frames.push((
                        Json::Object(serde_json::Map::with_capacity(map.len())),
                        Pending::Object(members, None),
                    ));
                    None
                }
                scalar => Some(scalar_to_json(scalar)),
            };
            loop {
                let Some((built, pending)) = frames.last_mut() else {
                    return done.unwrap_or(Json::Null);
                };
                if let Some(item) = pending.step(built, done.take()) {
                    next = item;
                    break;
                }
                done = frames.pop().map(|(built, _)| built);
                if frames.is_empty() {
                    return done.unwrap_or(Json::Null);
                }
            }
        }
    }
}

/// The remaining part of a container being converted to `serde_json`. An object keeps the key of
/// the current member.
enum Pending<'a> {
    Array(std::slice::Iter<'a, Value>),
    Object(
        Box<dyn Iterator<Item = (&'a Text, &'a Value)> + 'a>,
        Option<&'a Text>,
    ),
}

impl<'a> Pending<'a> {
    /// Stores a converted child and returns the next one.
    fn step(&mut self, built: &mut Json, done: Option<Json>) -> Option<&'a Value> {
        match (self, built) {
            (Self::Array(items), Json::Array(built)) => {
                built.extend(done);
                items.next()
            }
            (Self::Object(members, key), Json::Object(built)) => {
                if let (Some(key), Some(done)) = (key.take(), done) {
                    built.insert(key.to_string_lossy().into_owned(), done);
                }
                let (name, value) = members.find(|(_, value)| !value.is_undefined())?;
                *key = Some(name);
                Some(value)
            }
            _ => None,
        }
    }
}

fn scalar_to_json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) if number.trunc() == *number && number.abs() <= MAX_SAFE_INTEGER => {
            Json::from(*number as i64)
        }
        // `Json::from` converts non-finite numbers to null.
        Value::Number(number) => Json::from(*number),
        Value::String(text) => Json::String(text.to_string_lossy().into_owned()),
        _ => Json::Null,
    }
}

/// The writers escape lone surrogates, so their output is UTF-8 unless a string violates the WTF-8
/// invariant. Such bytes become U+FFFD.
fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
