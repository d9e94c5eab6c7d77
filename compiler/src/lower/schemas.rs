//! Rewrites tool schemas into the form that inputs are checked against.
//!
//! The language's checks use only the first entry of a `type` list (language section 2.9), as
//! the references do. A model's input may match any entry, so each type becomes a separate
//! schema, one of which has to match.

use a99_core::value::{Map, Value};

/// Levels of a schema that are rewritten; deeper levels stay unchanged.
const MAX_DEPTH: u32 = 64;

/// Keywords that apply to objects only.
const OF_OBJECTS: [&str; 5] = [
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
];

/// Keywords that apply to lists only.
const OF_LISTS: [&str; 3] = ["items", "minItems", "maxItems"];

/// A schema that accepts the same values as this one under JSON Schema's rules for types.
pub(super) fn checkable(schema: &Value) -> Value {
    part(schema, MAX_DEPTH)
}

fn part(schema: &Value, depth: u32) -> Value {
    let (Value::Object(map), Some(depth)) = (schema, depth.checked_sub(1)) else {
        return schema.clone();
    };
    let each = |list: &Vec<Value>| Value::Array(list.iter().map(|one| part(one, depth)).collect());
    let mut out = Map::new();
    for (key, value) in map.iter() {
        let name = key.to_str().unwrap_or_default();
        let value = match (name, value) {
            ("properties", Value::Object(all)) => {
                let parts = all.iter().map(|(key, one)| (key.clone(), part(one, depth)));
                Value::Object(parts.collect())
            }
            ("items" | "additionalProperties", Value::Object(_)) => part(value, depth),
            ("items" | "anyOf", Value::Array(list)) => each(list),
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    let types = match out.get("type") {
        Some(Value::Array(types)) => types.clone(),
        _ => return Value::Object(out),
    };
    let is_null = |kind: &Value| kind.as_str() == Some("null");
    let nullable = types.iter().any(is_null);
    let kinds: Vec<Value> = types.into_iter().filter(|kind| !is_null(kind)).collect();
    let of_kind = |kind: &Value| match nullable {
        true => Value::Array(vec![kind.clone(), "null".into()]),
        false => kind.clone(),
    };
    if let [kind] = kinds.as_slice() {
        out.insert("type", of_kind(kind));
        return Value::Object(out);
    }
    let alternative = |kind: &Value| {
        let mut one = Map::new();
        for (key, value) in out.iter() {
            let name = key.to_str().unwrap_or_default();
            let apart = OF_OBJECTS.contains(&name) && kind.as_str() != Some("object")
                || OF_LISTS.contains(&name) && kind.as_str() != Some("array")
                || name == "description";
            if !apart {
                one.insert(key.clone(), value.clone());
            }
        }
        one.insert("type", of_kind(kind));
        Value::Object(one)
    };
    let mut any = Map::new();
    any.insert("anyOf", kinds.iter().map(alternative).collect::<Vec<_>>());
    Value::Object(any)
}

#[cfg(test)]
mod tests {
    use super::checkable;
    use a99_core::json::{Document, Limits};

    fn made(text: &str) -> String {
        let doc = Document::parse(text, &Limits::default()).unwrap();
        checkable(&doc.to_value(doc.root())).to_json_string()
    }

    #[test]
    fn lists_of_types_become_alternatives() {
        for (given, wanted) in [
            (r#"{"type":"string"}"#, r#"{"type":"string"}"#),
            (
                r#"{"type":["null","string"],"minLength":1}"#,
                r#"{"type":["string","null"],"minLength":1}"#,
            ),
            (
                r#"{"properties":{"a":{"type":["string","array"],"items":{"type":["number","boolean"]}}}}"#,
                r#"{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"anyOf":[{"type":"number"},{"type":"boolean"}]}}]}}}"#,
            ),
            (
                r#"{"type":["object","string","null"],"required":["a"]}"#,
                r#"{"anyOf":[{"type":["object","null"],"required":["a"]},{"type":["string","null"]}]}"#,
            ),
        ] {
            assert_eq!(made(given), wanted, "{given}");
        }
    }

    #[test]
    fn deep_schemas_end() {
        let mut schema = r#"{"type":["string","number"]}"#.to_owned();
        for _ in 0..100 {
            schema = format!(r#"{{"type":["array","object"],"properties":{{}},"items":{schema}}}"#);
        }
        let made = made(&schema);
        assert!(made.len() < 100_000, "{}", made.len());
    }
}
