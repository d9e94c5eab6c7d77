//! JSON Schemas of Rust types, and the subset for output checks.
//!
//! Schemas are of draft 2020-12, with all types inlined except recursive ones. Formats of
//! Rust's number types are left out: JSON Schema does not define them.

use a99_core::schema::Schema;
use a99_core::value::Value;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, ReplaceBoolSchemas, Transform};
use schemars::{JsonSchema, Schema as Generated};
use serde_json::{Map, Value as Json, json};

/// Number formats of `schemars` that no standard defines.
const RUST_FORMATS: &[&str] = &[
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64",
    "uint128", "uint", "float", "double",
];

/// Replaces boolean schemas by objects, except in `additionalProperties`: not every tool API
/// reads them.
fn no_bools(schema: &mut Generated) {
    let mut replace = ReplaceBoolSchemas::default();
    replace.skip_additional_properties = true;
    replace.transform(schema);
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12()
        .with(|s| {
            s.inline_subschemas = true;
            s.meta_schema = None;
        })
        .with_transform(no_bools)
        .with_transform(RecursiveTransform(drop_rust_formats))
}

fn drop_rust_formats(schema: &mut Generated) {
    let rust = |format: &Json| format.as_str().is_some_and(|f| RUST_FORMATS.contains(&f));
    if schema.get("format").is_some_and(rust) {
        schema.remove("format");
    }
}

/// The schema of an input struct, closed to other fields.
#[must_use]
pub fn input_schema<T: JsonSchema>() -> Json {
    let schema = settings().for_deserialize().into_generator();
    let mut schema = object(schema.into_root_schema_for::<T>());
    schema.remove("title");
    schema.remove("description");
    schema.entry("type").or_insert_with(|| json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.entry("required").or_insert_with(|| json!([]));
    schema.insert("additionalProperties".to_owned(), Json::Bool(false));
    Json::Object(schema)
}

/// The schema of a type's serialized form.
#[must_use]
pub fn output_schema<T: JsonSchema + ?Sized>() -> Json {
    let schema = settings().for_serialize().into_generator();
    let mut schema = object(schema.into_root_schema_for::<T>());
    schema.remove("title");
    Json::Object(schema)
}

fn object(schema: Generated) -> Map<String, Json> {
    match schema.to_value() {
        Json::Object(map) => map,
        // `true`; no type with values gives `false`.
        _ => Map::new(),
    }
}

/// Converts a schema to the language's subset for checks: renames keywords, and drops
/// unsupported ones, which then allow everything.
pub(super) fn checkable(schema: &Json) -> Schema {
    Schema::parse(&Value::from(subset(schema)))
}

/// The recursion is as deep as the schema, which the host wrote.
fn subset(schema: &Json) -> Json {
    let Json::Object(map) = schema else {
        return json!({});
    };
    let each = |list: &Json| match list {
        Json::Array(list) => Json::Array(list.iter().map(subset).collect()),
        other => other.clone(),
    };
    let mut out = Map::new();
    for (key, value) in map {
        match key.as_str() {
            "anyOf" | "oneOf" => {
                out.insert("anyOf".to_owned(), each(value));
            }
            "prefixItems" => {
                out.insert("items".to_owned(), each(value));
            }
            // Items after the prefix are not checked.
            "items" if map.contains_key("prefixItems") => {}
            "items" | "additionalProperties" => {
                out.insert(key.clone(), subset(value));
            }
            "properties" => {
                let members = value.as_object().into_iter().flatten();
                let members = members.map(|(key, value)| (key.clone(), subset(value)));
                out.insert(key.clone(), Json::Object(members.collect()));
            }
            // The language would take it for a wrapper.
            "schema" => {}
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    split_types(out)
}

/// The subset checks only the first of several types and `null`.
fn split_types(mut schema: Map<String, Json>) -> Json {
    let Some(Json::Array(types)) = schema.get("type") else {
        return Json::Object(schema);
    };
    let (null, mut others): (Vec<Json>, Vec<Json>) =
        types.iter().cloned().partition(|kind| kind == "null");
    if others.len() <= 1 {
        others.extend(null);
        schema.insert("type".to_owned(), Json::Array(others));
        return Json::Object(schema);
    }
    let each = others.into_iter().chain(null).map(|kind| {
        let mut one = schema.clone();
        one.insert("type".to_owned(), kind);
        Json::Object(one)
    });
    json!({ "anyOf": each.collect::<Vec<Json>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_core::schema::validate;

    #[test]
    fn subsets() {
        let check = |schema: Json, value: Json| {
            validate(&Value::from(value), &checkable(&schema)).map_err(|e| e.message)
        };
        let mixed = json!({"type": ["null", "integer", "string"]});
        for good in [json!(null), json!(1), json!("x")] {
            assert_eq!(check(mixed.clone(), good), Ok(()));
        }
        assert!(check(mixed, json!(true)).is_err());
        let pair = json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}]});
        assert_eq!(check(pair.clone(), json!(["a", null])), Ok(()));
        assert!(check(pair, json!([1, null])).is_err());
        let tagged = json!({"oneOf": [{"const": "a"}, {"type": "object", "required": ["b"]}]});
        assert_eq!(check(tagged.clone(), json!({"b": 1})), Ok(()));
        assert!(check(tagged, json!({})).is_err());
    }

    #[test]
    fn types() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is looked at")]
        struct In {
            /// How many.
            n: Option<u8>,
            any: Json,
            list: Vec<i64>,
        }
        assert_eq!(
            input_schema::<In>(),
            json!({
                "type": "object",
                "properties": {
                    "n": {
                        "description": "How many.",
                        "type": ["integer", "null"], "minimum": 0, "maximum": 255
                    },
                    "any": {},
                    "list": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["any", "list"],
                "additionalProperties": false,
            })
        );
        assert_eq!(output_schema::<()>(), json!({"type": "null"}));
        assert_eq!(output_schema::<Json>(), json!({}));
        assert_eq!(output_schema::<str>(), json!({"type": "string"}));
    }
}
