//! JSON Schemas converted to Gemini's subset of OpenAPI 3.0: a type is one name, `null` is
//! `nullable`, objects have fixed member names, and there are no references.

use serde_json::{Map, Value, json};

/// Keywords with the same meaning in both.
const KEPT: &[&str] = &["description", "minimum", "maximum", "minItems", "maxItems"];

/// Converts a JSON Schema; `None` if Gemini cannot express it.
///
/// The recursion is as deep as the schema, which the host wrote.
pub(super) fn gemini(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    const UNKNOWN: [&str; 5] = ["$ref", "allOf", "not", "prefixItems", "patternProperties"];
    if UNKNOWN.iter().any(|key| map.contains_key(*key)) {
        return None;
    }
    let kept = map.iter().filter(|(key, _)| KEPT.contains(&key.as_str()));
    let kept: Map<String, Value> = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
    if let Some(Value::Array(branches)) = map.get("anyOf").or_else(|| map.get("oneOf")) {
        return either(branches, &kept);
    }
    let allowed = match (map.get("const"), map.get("enum")) {
        (Some(constant), _) => Some(vec![constant.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    };
    let types = types(map.get("type"), allowed.as_deref())?;
    let (null, types): (Vec<_>, Vec<_>) = types.into_iter().partition(|kind| kind == "null");
    let types: Option<Vec<Value>> = types
        .iter()
        .map(|kind| single(kind, map, &kept, allowed.as_deref()))
        .collect();
    union(types?, !null.is_empty())
}

/// The types that a schema names, or those of its allowed values.
fn types(named: Option<&Value>, allowed: Option<&[Value]>) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match (named, allowed) {
        (Some(Value::Array(types)), _) => types.iter().map(text).collect(),
        (Some(kind), _) => Some(vec![text(kind)?]),
        (None, Some(values)) => {
            let texts = values.iter().all(|v| v.is_string() || v.is_null());
            let null = values.iter().any(Value::is_null).then(|| "null".to_owned());
            let kinds = std::iter::once("string".to_owned()).chain(null);
            texts.then(|| kinds.collect())
        }
        (None, None) => None,
    }
}

/// A schema of one type.
fn single(
    kind: &str,
    map: &Map<String, Value>,
    kept: &Map<String, Value>,
    allowed: Option<&[Value]>,
) -> Option<Value> {
    let mut out = Map::new();
    out.insert("type".to_owned(), Value::String(kind.to_ascii_uppercase()));
    let mut keep = |keys: &[&str]| {
        for key in keys {
            if let Some(value) = kept.get(*key) {
                out.insert((*key).to_owned(), value.clone());
            }
        }
    };
    keep(&["description"]);
    match kind {
        "string" => {
            let texts: Vec<&str> = allowed
                .iter()
                .flat_map(|v| v.iter())
                .filter_map(Value::as_str)
                .collect();
            // Gemini refuses an empty string in `enum`.
            if !texts.is_empty() && !texts.contains(&"") {
                out.insert("format".to_owned(), json!("enum"));
                out.insert("enum".to_owned(), json!(texts));
            }
        }
        "number" | "integer" => keep(&["minimum", "maximum"]),
        "boolean" => {}
        "array" => {
            keep(&["minItems", "maxItems"]);
            out.insert("items".to_owned(), gemini(map.get("items")?)?);
        }
        "object" => object(map, &mut out)?,
        _ => return None,
    }
    Some(Value::Object(out))
}

fn object(map: &Map<String, Value>, out: &mut Map<String, Value>) -> Option<()> {
    let closed = matches!(
        map.get("additionalProperties"),
        None | Some(Value::Bool(false))
    );
    let named = map.get("properties")?.as_object()?;
    let mut properties = Map::new();
    for (name, inner) in named {
        properties.insert(name.clone(), gemini(inner)?);
    }
    if let Some(required) = map.get("required").filter(|list| **list != json!([])) {
        out.insert("required".to_owned(), required.clone());
    }
    out.insert("properties".to_owned(), Value::Object(properties));
    (closed && !named.is_empty()).then_some(())
}

/// Alternatives; a `null` branch becomes `nullable`.
fn either(branches: &[Value], kept: &Map<String, Value>) -> Option<Value> {
    let is_null = |branch: &&Value| branch.get("type").is_some_and(|kind| kind == "null");
    let others = branches.iter().filter(|branch| !is_null(branch));
    let described = others.map(|branch| {
        let mut branch = gemini(branch)?;
        if let Some(docs) = kept.get("description") {
            describe(&mut branch, docs);
        }
        Some(branch)
    });
    let described: Option<Vec<Value>> = described.collect();
    union(described?, branches.iter().any(|branch| is_null(&branch)))
}

/// Moves the description into a branch: Gemini allows no sibling of `anyOf`.
fn describe(branch: &mut Value, docs: &Value) {
    match branch.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(inner) => inner.iter_mut().for_each(|one| describe(one, docs)),
        None => branch["description"] = docs.clone(),
    }
}

/// One of these branches, or null.
fn union(mut branches: Vec<Value>, or_null: bool) -> Option<Value> {
    fn nullable(branch: &mut Value) {
        match branch.get_mut("anyOf").and_then(Value::as_array_mut) {
            Some(inner) => inner.iter_mut().for_each(nullable),
            None => branch["nullable"] = Value::Bool(true),
        }
    }
    if or_null {
        branches.iter_mut().for_each(nullable);
    }
    match branches.len() {
        0 => None,
        1 => branches.pop(),
        _ => Some(json!({ "anyOf": branches })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_type_and_nullable() {
        let schema = json!({"description": "How.", "type": ["string", "null"],
            "enum": ["a", null], "pattern": "a"});
        let expected = json!({"type": "STRING", "description": "How.", "format": "enum",
            "enum": ["a"], "nullable": true});
        assert_eq!(gemini(&schema), Some(expected));
        let schema = json!({"description": "Which.", "type": ["string", "array"],
            "items": {"type": "string"}});
        let expected = json!({"anyOf": [
            {"type": "STRING", "description": "Which."},
            {"type": "ARRAY", "description": "Which.", "items": {"type": "STRING"}}]});
        assert_eq!(gemini(&schema), Some(expected));
        let schema = json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
            "description": "N."});
        let expected = json!({"type": "INTEGER", "minimum": 0, "nullable": true,
            "description": "N."});
        assert_eq!(gemini(&schema), Some(expected));
    }

    #[test]
    fn what_is_open_or_refers_has_no_form() {
        for schema in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {}}}),
            json!({"type": "object", "properties": {"a": {"type": "null"}}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "array"}),
            json!({"$ref": "#/$defs/a"}),
            json!({"enum": [1, 2]}),
        ] {
            assert_eq!(gemini(&schema), None, "{schema}");
        }
        let named = json!({"type": "object", "properties": {"a": {"type": "boolean"}},
            "required": ["a"], "additionalProperties": false});
        let expected = json!({"type": "OBJECT", "required": ["a"],
            "properties": {"a": {"type": "BOOLEAN"}}});
        assert_eq!(gemini(&named), Some(expected));
    }
}
