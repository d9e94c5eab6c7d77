//! The strict form of a schema for OpenAI's structured outputs.
//!
//! Every object requires all its members and allows no others; optional members may be `null`
//! instead. Unsupported keywords are left out: the atom itself still checks its input.

use serde_json::{Map, Value as Json, json};

/// String formats that strict schemas support.
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Keywords with the same meaning in a strict schema.
const KEPT: &[&str] = &[
    "description",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

/// Converts an object's schema to the strict form; `None` if a part allows arbitrary values
/// or arbitrary member names.
#[must_use]
pub fn strict(schema: &Json) -> Option<Json> {
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    let strict = is_object.then(|| rewrite(schema)).flatten()?;
    let Json::Object(mut strict) = strict else {
        return None;
    };
    if let Some(definitions) = schema.get("$defs").and_then(Json::as_object) {
        let mut rewritten = Map::new();
        for (name, definition) in definitions {
            rewritten.insert(name.clone(), rewrite(definition)?);
        }
        strict.insert("$defs".to_owned(), Json::Object(rewritten));
    }
    Some(Json::Object(strict))
}

/// Rewrites a part. The recursion is as deep as the schema, which the host wrote.
fn rewrite(schema: &Json) -> Option<Json> {
    let map = schema.as_object()?;
    if let Some(reference) = map.get("$ref") {
        return Some(json!({ "$ref": reference }));
    }
    let mut out: Map<String, Json> = map
        .iter()
        .filter(|(key, _)| KEPT.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(Json::Array(branches)) = map.get("anyOf").or_else(|| map.get("oneOf")) {
        let branches: Option<Vec<Json>> = branches.iter().map(rewrite).collect();
        out.insert("anyOf".to_owned(), Json::Array(branches?));
        return Some(Json::Object(out));
    }
    if let Some(Json::Array(parts)) = map.get("allOf") {
        // One part is a reference with annotations; several have no strict form.
        return match &parts[..] {
            [one] => rewrite(one),
            _ => None,
        };
    }
    let allowed = match (map.get("const"), map.get("enum")) {
        (Some(constant), _) => Some(json!([constant])),
        (None, allowed) => allowed.cloned(),
    };
    match (map.get("type"), &allowed) {
        (Some(kind), _) => out.insert("type".to_owned(), kind.clone()),
        (None, Some(_)) => None,
        (None, None) => return None,
    };
    out.extend(allowed.map(|allowed| ("enum".to_owned(), allowed)));
    let format = map.get("format").and_then(Json::as_str);
    if let Some(format) = format.filter(|f| FORMATS.contains(f)) {
        out.insert("format".to_owned(), json!(format));
    }
    if has_type(map, "object") {
        object(map, &mut out)?;
    }
    if has_type(map, "array") {
        if map.contains_key("prefixItems") {
            return None;
        }
        out.insert("items".to_owned(), rewrite(map.get("items")?)?);
    }
    Some(Json::Object(out))
}

fn has_type(map: &Map<String, Json>, kind: &str) -> bool {
    match map.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(|k| k == kind),
        Some(single) => single == kind,
        None => false,
    }
}

fn object(map: &Map<String, Json>, out: &mut Map<String, Json>) -> Option<()> {
    let closed = |rest: Option<&Json>| matches!(rest, None | Some(Json::Bool(false)));
    let named = map.get("properties").and_then(Json::as_object)?;
    if !closed(map.get("additionalProperties")) || map.contains_key("patternProperties") {
        return None;
    }
    let required = map.get("required").and_then(Json::as_array);
    let is_required = |key: &str| required.is_some_and(|list| list.iter().any(|k| k == key));
    let mut properties = Map::new();
    for (key, inner) in named {
        let inner = rewrite(inner)?;
        let inner = match is_required(key) {
            true => inner,
            false => nullable(inner),
        };
        properties.insert(key.clone(), inner);
    }
    let keys: Vec<&String> = properties.keys().collect();
    out.insert("required".to_owned(), json!(keys));
    out.insert("properties".to_owned(), Json::Object(properties));
    out.insert("additionalProperties".to_owned(), Json::Bool(false));
    Some(())
}

/// The schema, or `null`.
fn nullable(schema: Json) -> Json {
    let Json::Object(mut map) = schema else {
        return schema;
    };
    let with_null = |list: &mut Vec<Json>, null: Json| {
        if !list.contains(&null) {
            list.push(null);
        }
    };
    if let Some(Json::Array(branches)) = map.get_mut("anyOf") {
        with_null(branches, json!({"type": "null"}));
        return Json::Object(map);
    }
    if map.contains_key("$ref") {
        return json!({"anyOf": [map, {"type": "null"}]});
    }
    if let Some(Json::Array(allowed)) = map.get_mut("enum") {
        with_null(allowed, Json::Null);
    }
    match map.get_mut("type") {
        Some(Json::Array(kinds)) => with_null(kinds, json!("null")),
        Some(kind) => *kind = json!([kind.take(), "null"]),
        None => {}
    }
    Json::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_members_may_be_null() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "minLength": 3, "default": "x"},
                "b": {"enum": ["x", "y"], "type": "string"},
                "c": {"$ref": "#/$defs/C"},
                "d": {"oneOf": [{"const": 1}, {"type": "array", "items": {"type": "null"}}]},
            },
            "required": ["a"],
            "$defs": {"C": {"type": "object", "properties": {}}},
        });
        assert_eq!(
            strict(&schema),
            Some(json!({
                "type": "object",
                "required": ["a", "b", "c", "d"],
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": ["string", "null"], "enum": ["x", "y", null]},
                    "c": {"anyOf": [{"$ref": "#/$defs/C"}, {"type": "null"}]},
                    "d": {"anyOf": [
                        {"enum": [1]},
                        {"type": "array", "items": {"type": "null"}},
                        {"type": "null"},
                    ]},
                },
                "additionalProperties": false,
                "$defs": {"C": {
                    "type": "object", "required": [], "properties": {},
                    "additionalProperties": false,
                }},
            }))
        );
    }

    #[test]
    fn what_may_be_anything_has_no_strict_form() {
        for open in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "array"}),
            json!({"anyOf": [{"type": "string"}, {}]}),
        ] {
            let schema = json!({"type": "object", "properties": {"x": open}, "required": ["x"]});
            assert_eq!(strict(&schema), None, "{schema}");
        }
        assert_eq!(strict(&json!({"type": "string"})), None);
    }
}
