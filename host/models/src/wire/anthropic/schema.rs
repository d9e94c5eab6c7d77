//! Schemas for Anthropic's structured outputs, which support a part of JSON Schema and refuse
//! the rest (`https://platform.claude.com/docs/en/build-with-claude/structured-outputs`, read
//! in November 2026). Answers are checked against the program's original schema afterwards.

use a99_core::value::{Map, Value};
use std::collections::BTreeSet;

/// Maximum nesting of a schema that is sent as a schema.
const MAX_DEPTH: usize = 32;

/// Maximum optional properties that the service accepts.
const MAX_OPTIONAL: usize = 24;

/// Maximum schemas with `anyOf` or several types that the service accepts.
const MAX_UNIONS: usize = 16;

/// Text formats that the service supports.
const FORMATS: [&str; 10] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Keywords without effect on an answer.
const SILENT: [&str; 4] = ["$schema", "$id", "$comment", "examples"];

/// Converts a schema to one that the service accepts: objects are closed, and unsupported
/// keywords move into the description. `None` if an object allows unnamed members, types are
/// missing, schemas are recursive or joined by `allOf`, or there are too many.
pub(super) fn closed(schema: &Value) -> Option<Value> {
    let mut form = Form::default();
    let closed = form.schema(schema, 0)?;
    let is_small = form.optional <= MAX_OPTIONAL && form.unions <= MAX_UNIONS;
    (is_small && !is_recursive(schema)).then_some(closed)
}

#[derive(Debug, Default)]
struct Form {
    optional: usize,
    unions: usize,
}

impl Form {
    fn schema(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        let members = schema.as_object().filter(|_| depth < MAX_DEPTH)?;
        let mut out = Map::new();
        let mut refused = Map::new();
        for (key, value) in members.iter() {
            let name = key.to_string_lossy();
            match &*name {
                "$defs" | "definitions" | "properties" => {
                    out.insert(key.clone(), self.each(value, depth)?);
                }
                "anyOf" | "oneOf" => {
                    self.unions += 1;
                    let any = value.as_array()?.iter();
                    let any = any.map(|one| self.schema(one, depth + 1));
                    out.insert("anyOf", any.collect::<Option<Vec<Value>>>()?);
                }
                "items" => {
                    out.insert("items", self.schema(value, depth + 1)?);
                }
                "type" => {
                    self.unions += usize::from(value.as_array().is_some());
                    out.insert("type", value.clone());
                }
                "enum" if value.as_array()?.iter().all(is_simple) => {
                    out.insert("enum", value.clone());
                }
                "$ref" => {
                    // A definition of the schema itself.
                    let place = value.as_str()?;
                    let name = DEFINITIONS.iter().find_map(|of| place.strip_prefix(of))?;
                    (!name.contains('/')).then_some(())?;
                    out.insert("$ref", value.clone());
                }
                "const" if is_simple(value) => drop(out.insert("const", value.clone())),
                "title" | "description" | "default" | "required" => {
                    out.insert(key.clone(), value.clone());
                }
                "format" if value.as_str().is_some_and(|name| FORMATS.contains(&name)) => {
                    out.insert("format", value.clone());
                }
                "minItems" if matches!(value.as_f64(), Some(0.0 | 1.0)) => {
                    out.insert("minItems", value.clone());
                }
                "additionalProperties" if value.as_bool() == Some(false) => {
                    out.insert("additionalProperties", false);
                }
                // Schemas with these keywords cannot be expressed without them.
                "additionalProperties"
                | "patternProperties"
                | "allOf"
                | "prefixItems"
                | "enum"
                | "const" => return None,
                "unevaluatedProperties" if value.as_bool() != Some(false) => return None,
                silent if SILENT.contains(&silent) => {}
                _ => {
                    refused.insert(key.clone(), value.clone());
                }
            }
        }
        self.close(&mut out)?;
        if !refused.is_empty() {
            let before = out.get("description").and_then(Value::as_text);
            let before = before.map(|text| format!("{}\n\n", text.to_string_lossy()));
            let refused = Value::Object(refused).to_json_string();
            out.insert("description", before.unwrap_or_default() + &refused);
        }
        Some(out.into())
    }

    /// Converts schemas by name.
    fn each(&mut self, schemas: &Value, depth: usize) -> Option<Map> {
        let mut out = Map::new();
        for (name, schema) in schemas.as_object()?.iter() {
            out.insert(name.clone(), self.schema(schema, depth + 1)?);
        }
        Some(out)
    }

    /// Closes an object. An object without named members allows any and cannot be closed.
    fn close(&mut self, out: &mut Map) -> Option<()> {
        let is = |kind: &str| match out.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|of| of.as_str() == Some(kind)),
            of => of.and_then(Value::as_str) == Some(kind),
        };
        let properties = out.get("properties").and_then(Value::as_object);
        let names = properties.map_or(0, Map::len);
        if is("object") || properties.is_some() {
            (names > 0 || out.contains("additionalProperties")).then_some(())?;
            let required = out.get("required").and_then(Value::as_array);
            let required = required.map_or(0, <[Value]>::len);
            self.optional += names.saturating_sub(required);
            if !out.contains("type") {
                out.insert("type", "object");
            }
            out.insert("additionalProperties", false);
            return Some(());
        }
        (!is("array") || out.contains("items")).then_some(())?;
        let has_form = ["type", "enum", "const", "anyOf", "$ref"];
        has_form.iter().any(|key| out.contains(key)).then_some(())
    }
}

/// Prefixes of references to definitions.
const DEFINITIONS: [&str; 2] = ["#/$defs/", "#/definitions/"];

fn is_simple(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// Whether a definition of a schema contains itself.
fn is_recursive(schema: &Value) -> bool {
    let mut definitions = Map::new();
    for key in ["$defs", "definitions"] {
        let map = schema.get(key).and_then(Value::as_object);
        for (name, schema) in map.into_iter().flat_map(Map::iter) {
            definitions.insert(
                format!("#/{key}/{}", name.to_string_lossy()),
                schema.clone(),
            );
        }
    }
    definitions.keys().any(|place| {
        let place = place.to_string_lossy();
        let (mut seen, mut pending) = (BTreeSet::new(), vec![place.clone().into_owned()]);
        while let Some(next) = pending.pop() {
            for of in definitions.get(&next).map(references).unwrap_or_default() {
                if of == place {
                    return true;
                }
                if seen.insert(of.clone()) {
                    pending.push(of);
                }
            }
        }
        false
    })
}

/// The targets of a schema's references.
fn references(schema: &Value) -> Vec<String> {
    let (mut found, mut pending) = (Vec::new(), vec![schema]);
    while let Some(next) = pending.pop() {
        if let Some(place) = next.get("$ref").and_then(Value::as_str) {
            found.push(place.to_owned());
        }
        match next {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::value;

    fn sent(schema: &str) -> Option<String> {
        closed(&value(schema)).map(|schema| schema.to_json_string())
    }

    #[test]
    fn t6_schemas_are_sent_as_far_as_the_service_takes_them() {
        for (schema, expected) in [
            (
                r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}"#,
                r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}},"additionalProperties":false}"#,
            ),
            (
                r#"{"properties":{"n":{"type":"integer","minimum":1,"maximum":9,"description":"How many"}},"required":["n"]}"#,
                r#"{"properties":{"n":{"type":"integer","description":"How many\n\n{\"minimum\":1,\"maximum\":9}"}},"required":["n"],"type":"object","additionalProperties":false}"#,
            ),
            (
                r#"{"$schema":"x","type":"array","items":{"type":"string","minLength":2,"format":"uuid"},"minItems":1,"maxItems":3}"#,
                r#"{"type":"array","items":{"type":"string","format":"uuid","description":"{\"minLength\":2}"},"minItems":1,"description":"{\"maxItems\":3}"}"#,
            ),
            (
                r#"{"type":"string","format":"color","pattern":"^a"}"#,
                r#"{"type":"string","description":"{\"format\":\"color\",\"pattern\":\"^a\"}"}"#,
            ),
            (
                r#"{"oneOf":[{"type":"string"},{"type":"null"}],"title":"T"}"#,
                r#"{"anyOf":[{"type":"string"},{"type":"null"}],"title":"T"}"#,
            ),
            (
                r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"enum":["x",1,null]}}}"##,
                r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"enum":["x",1,null]}}}"##,
            ),
            (
                r#"{"type":"object","additionalProperties":false}"#,
                r#"{"type":"object","additionalProperties":false}"#,
            ),
            // A property that has the name of a keyword.
            (
                r#"{"type":"object","properties":{"minimum":{"const":1},"allOf":{"type":"boolean"}}}"#,
                r#"{"type":"object","properties":{"minimum":{"const":1},"allOf":{"type":"boolean"}},"additionalProperties":false}"#,
            ),
        ] {
            assert_eq!(sent(schema).as_deref(), Some(expected), "{schema}");
        }
    }

    #[test]
    fn t6_what_cannot_be_closed_is_not_sent_as_a_schema() {
        let optional: Vec<String> = (0..25)
            .map(|n| format!(r#""p{n}":{{"type":"null"}}"#))
            .collect();
        let optional = format!(r#"{{"properties":{{{}}}}}"#, optional.join(","));
        let deep = format!(
            "{}{}{}",
            r#"{"type":"array","items":"#.repeat(40),
            r#"{"type":"null"}"#,
            "}".repeat(40)
        );
        for schema in [
            "{}",
            "true",
            r#"{"type":"object"}"#,
            r#"{"type":["object","null"]}"#,
            r#"{"type":"array"}"#,
            r#"{"type":"array","items":{}}"#,
            r#"{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":true}"#,
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
            r#"{"type":"object","properties":{"a":{"type":"null"}},"patternProperties":{"^x":{}}}"#,
            r#"{"allOf":[{"type":"object","properties":{"a":{"type":"null"}}}]}"#,
            r#"{"enum":[{"a":1}]}"#,
            r##"{"$ref":"#"}"##,
            r#"{"$ref":"https://example.com/a.json"}"#,
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"type":"array","items":{"$ref":"#/$defs/a"}}}}"##,
            &optional,
            &deep,
        ] {
            assert_eq!(sent(schema), None, "{schema}");
        }
    }
}
