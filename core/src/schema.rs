//! The JSON Schema subset of the language: checking values and projecting them
//! (language section 2.9, with the semantics and messages of tosijs-schema 1.3.0).
//!
//! A schema is read once from its JSON form and never fails to be read: what
//! the subset does not know is ignored. Nothing refers to itself (there is no
//! `$ref`), so checks descend at most [`MAX_SCHEMA_DEPTH`] levels, whatever
//! the value. Regular expressions are the host's: see [`PatternMatcher`].
//!
//! Not enforced, like in the reference: `additionalProperties: false`, and
//! every element of long arrays (a sample is checked unless `strict`).

mod check;
mod example;
mod format;
#[cfg(test)]
mod tests;

pub use check::{PatternMatcher, UncheckedPatterns, validate_with};
pub use example::{from_example, infer};

use crate::text::Text;
use crate::value::{Map, Value};
use std::fmt;

/// How deep schemas may nest; a deeper part refuses every value, so that what
/// cannot be checked does not pass.
pub const MAX_SCHEMA_DEPTH: u32 = 512;

/// A schema in the form that checks use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Nested deeper than [`MAX_SCHEMA_DEPTH`].
    too_deep: bool,
    any_of: Option<Vec<Schema>>,
    constant: Option<Value>,
    /// The type, or the first of a list of types.
    kind: Option<Text>,
    /// Whether `type` is a list: such schemas are checked but not projected.
    kind_is_list: bool,
    /// Whether a list of types holds `null`.
    nullable: bool,
    /// The marker by which `undefined` is told from `null`.
    is_undefined: bool,
    allowed: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    multiple_of: Option<f64>,
    min_length: Option<f64>,
    max_length: Option<f64>,
    pattern: Option<Text>,
    format: Option<Text>,
    min_properties: Option<f64>,
    max_properties: Option<f64>,
    required: Vec<Text>,
    properties: Option<Vec<(Text, Schema)>>,
    additional: Option<Box<Schema>>,
    items: Option<Items>,
    min_items: Option<f64>,
    max_items: Option<f64>,
}

/// The schema of an array's elements.
#[derive(Clone, Debug, PartialEq)]
enum Items {
    /// One schema for all.
    All(Box<Schema>),
    /// One schema for each place; further elements are not checked.
    Each(Vec<Schema>),
}

/// Why a value does not match; shown as `<path>: <message>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The place in the value, keys and indices joined by dots; `root` for the
    /// value itself.
    pub path: String,
    /// RFC 6901 pointer to the same place; empty for the value itself.
    pub pointer: String,
    /// What is wrong there, in the reference's words.
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for SchemaError {}

impl Schema {
    /// Reads a schema. A builder's wrapper `{schema: {..}}` is looked through;
    /// whatever is not understood allows everything.
    #[must_use]
    pub fn parse(value: &Value) -> Self {
        let inner = value.get("schema").filter(|inner| is_truthy(inner));
        Self::read(inner.unwrap_or(value), 0)
    }

    /// Bytes that the schemas in a schema take in memory once they are read,
    /// beyond the values that they hold.
    #[must_use]
    pub fn bytes_of(value: &Value) -> usize {
        let inner = value.get("schema").filter(|inner| is_truthy(inner));
        let mut schemas = 0usize;
        let mut todo = vec![(inner.unwrap_or(value), 0)];
        while let Some((value, depth)) = todo.pop() {
            schemas += 1;
            let (Some(map), true) = (value.as_object(), depth < MAX_SCHEMA_DEPTH) else {
                continue;
            };
            if let Some(properties) = map.get("properties").and_then(Value::as_object) {
                todo.extend(properties.values().map(|value| (value, depth + 1)));
            }
            for key in ["anyOf", "items", "additionalProperties"] {
                match map.get(key) {
                    Some(Value::Array(list)) if key != "additionalProperties" => {
                        todo.extend(list.iter().map(|value| (value, depth + 1)));
                    }
                    Some(value) => todo.push((value, depth + 1)),
                    None => {}
                }
            }
        }
        schemas.saturating_mul(size_of::<Schema>())
    }

    fn read(value: &Value, depth: u32) -> Self {
        let Some(map) = value.as_object() else {
            return Self::default();
        };
        if depth >= MAX_SCHEMA_DEPTH {
            return Self {
                too_deep: true,
                ..Self::default()
            };
        }
        let deeper = |value: &Value| Self::read(value, depth + 1);
        let each = |list: &[Value]| list.iter().map(deeper).collect::<Vec<_>>();
        let mut schema = Self::read_scalars(map);
        schema.any_of = map.get("anyOf").and_then(Value::as_array).map(each);
        schema.properties = map.get("properties").and_then(Value::as_object).map(|map| {
            map.iter_js_order()
                .map(|(key, value)| (key.clone(), deeper(value)))
                .collect()
        });
        schema.additional = map
            .get("additionalProperties")
            .filter(|value| is_truthy(value))
            .map(|value| Box::new(deeper(value)));
        schema.items = match map.get("items") {
            Some(Value::Array(list)) => Some(Items::Each(each(list))),
            Some(value) if is_truthy(value) => Some(Items::All(Box::new(deeper(value)))),
            _ => None,
        };
        schema
    }

    /// The parts of a schema that hold no schemas.
    fn read_scalars(map: &Map) -> Self {
        let number = |key| map.get(key).and_then(Value::as_f64);
        let text = |key| map.get(key).and_then(Value::as_text).cloned();
        let types: &[Value] = match map.get("type") {
            Some(Value::Array(list)) => list,
            Some(single) => std::slice::from_ref(single),
            None => &[],
        };
        Self {
            constant: map
                .get("const")
                .filter(|value| !value.is_undefined())
                .cloned(),
            kind: types.first().and_then(Value::as_text).cloned(),
            kind_is_list: matches!(map.get("type"), Some(Value::Array(_))),
            nullable: types.iter().any(|kind| kind.as_str() == Some("null")),
            is_undefined: map.get("x-tjs-undefined").is_some_and(is_truthy),
            allowed: map.get("enum").and_then(Value::as_array).map(<[_]>::to_vec),
            minimum: number("minimum"),
            maximum: number("maximum"),
            multiple_of: number("multipleOf"),
            min_length: number("minLength"),
            max_length: number("maxLength"),
            pattern: text("pattern").filter(|pattern| !pattern.is_empty()),
            format: text("format"),
            min_properties: number("minProperties"),
            max_properties: number("maxProperties"),
            required: map
                .get("required")
                .and_then(Value::as_array)
                .unwrap_or_default()
                .iter()
                .filter_map(|key| key.as_text().cloned())
                .collect(),
            min_items: number("minItems"),
            max_items: number("maxItems"),
            ..Self::default()
        }
    }

    /// Whether the type is exactly the string `kind`.
    fn is_plainly(&self, kind: &str) -> bool {
        !self.kind_is_list && self.kind.as_ref().is_some_and(|own| own == kind)
    }
}

/// ECMAScript truthiness of a JSON value (ECMA-262 §7.1.2).
pub(crate) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::Null | Value::Bool(false) => false,
        Value::Number(number) => *number != 0.0 && !number.is_nan(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

/// Checks a value against a schema. Patterns are not checked (see
/// [`validate_with`]), long arrays are sampled.
///
/// # Errors
/// The first mismatch.
pub fn validate(value: &Value, schema: &Schema) -> Result<(), SchemaError> {
    validate_with(value, schema, &UncheckedPatterns, false)
}

/// Checks a value and keeps what the schema declares. Patterns are not
/// checked (see [`filter_with`]).
///
/// # Errors
/// The first mismatch; then nothing is projected.
pub fn filter(value: &Value, schema: &Schema) -> Result<Value, SchemaError> {
    filter_with(value, schema, &UncheckedPatterns)
}

/// Like [`filter`], with regular expressions.
///
/// # Errors
/// The first mismatch; then nothing is projected.
pub fn filter_with(
    value: &Value,
    schema: &Schema,
    patterns: &dyn PatternMatcher,
) -> Result<Value, SchemaError> {
    validate_with(value, schema, patterns, false)?;
    Ok(project(value, schema))
}

/// Keeps the declared properties, in the schema's order, at every level that
/// says plainly what it is; anything else is kept whole. Recursion is bounded
/// by the schema's depth.
#[must_use]
pub fn project(value: &Value, schema: &Schema) -> Value {
    match (value, &schema.properties, &schema.items) {
        (Value::Object(map), Some(properties), _) if schema.is_plainly("object") => Value::Object(
            properties
                .iter()
                .filter_map(|(key, inner)| {
                    let value = map.get_bytes(key.as_bytes())?;
                    Some((key.clone(), project(value, inner)))
                })
                .collect(),
        ),
        (Value::Array(list), _, Some(items)) if schema.is_plainly("array") => {
            Value::Array(match items {
                Items::All(inner) => list.iter().map(|item| project(item, inner)).collect(),
                Items::Each(inner) => list
                    .iter()
                    .zip(inner)
                    .map(|(item, inner)| project(item, inner))
                    .collect(),
            })
        }
        _ => value.clone(),
    }
}
