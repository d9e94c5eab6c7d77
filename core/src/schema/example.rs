//! Schemas from examples (language section 3.6).

use super::MAX_SCHEMA_DEPTH;
use crate::value::{Map, Value};

/// The schema that an example stands for, in its JSON form.
///
/// `null` has the type `null`, `undefined` allows anything. An object with a string `type` or an
/// object `schema` is a schema already. Whole numbers are `integer`, an array follows its first
/// element, an object requires all its keys. Parts below [`MAX_SCHEMA_DEPTH`] allow anything.
#[must_use]
pub fn from_example(example: &Value) -> Value {
    let mut schema = convert(example, 0, true);
    // A builder's wrapper is unwrapped.
    if let Value::Object(map) = example
        && !map
            .get("type")
            .is_some_and(|kind| matches!(kind, Value::String(_)))
        && let Some(inner @ Value::Object(_)) = map.get("schema")
    {
        schema = inner.clone();
    }
    schema
}

/// The schema of a value with any keys (the `infer` builder).
#[must_use]
pub fn infer(example: &Value) -> Value {
    convert(example, 0, false)
}

fn typed(kind: &str) -> Map {
    [("type", kind)].into_iter().collect()
}

/// The depth limit bounds the recursion.
fn convert(example: &Value, depth: u32, accept_schemas: bool) -> Value {
    if depth >= MAX_SCHEMA_DEPTH {
        return Map::new().into();
    }
    match example {
        Value::Undefined => Map::new().into(),
        Value::Null => typed("null").into(),
        Value::Bool(_) => typed("boolean").into(),
        Value::String(_) => typed("string").into(),
        Value::Number(number) if number.is_finite() && number.trunc() == *number => {
            typed("integer").into()
        }
        Value::Number(_) => typed("number").into(),
        Value::Array(items) => {
            let mut schema = typed("array");
            if let Some(first) = items.first() {
                schema.insert("items", convert(first, depth + 1, accept_schemas));
            }
            schema.into()
        }
        Value::Object(map) if accept_schemas && is_schema(map) => example.clone(),
        Value::Object(map) => {
            let properties: Map = map
                .iter_js_order()
                .map(|(key, value)| (key.clone(), convert(value, depth + 1, accept_schemas)))
                .collect();
            let required: Vec<Value> = map
                .iter_js_order()
                .map(|(key, _)| Value::String(key.clone()))
                .collect();
            let mut schema = typed("object");
            schema.insert("properties", properties);
            schema.insert("required", required);
            schema.insert("additionalProperties", false);
            schema.into()
        }
    }
}

fn is_schema(map: &Map) -> bool {
    matches!(map.get("type"), Some(Value::String(_)))
        || matches!(map.get("schema"), Some(Value::Object(_)))
}
