//! JSON Schemas and kinds of values as types of TypeScript.

use a99_core::sig::JsonKinds;
use serde_json::Value as Json;

/// Deepest nesting of a schema that has a type; what is deeper is `any`.
const MAX_DEPTH: u32 = 8;

/// The type of a value of these kinds.
pub(super) fn kinds(kinds: JsonKinds, parts: JsonKinds) -> String {
    if kinds.contains(JsonKinds::ANY.without_null()) || kinds == JsonKinds::NONE {
        return "any".to_owned();
    }
    let names = kinds.names().map(|name| match name {
        "array" => {
            let part = match parts.contains(JsonKinds::ANY.without_null()) {
                true => "any".to_owned(),
                false => flat(parts),
            };
            match part.contains('|') {
                true => format!("({part})[]"),
                false => format!("{part}[]"),
            }
        }
        "object" => "Record<string, any>".to_owned(),
        name => name.to_owned(),
    });
    names.collect::<Vec<_>>().join(" | ")
}

/// The type of values without parts.
fn flat(kinds: JsonKinds) -> String {
    let names = kinds.names().map(|name| match name {
        "array" => "any[]",
        "object" => "any",
        name => name,
    });
    names.collect::<Vec<_>>().join(" | ")
}

/// The type of the values that a schema admits; `any` where it says nothing.
pub(super) fn schema(schema: &Json, root: &Json) -> String {
    of(schema, root, MAX_DEPTH)
}

fn of(schema: &Json, root: &Json, depth: u32) -> String {
    let any = || "any".to_owned();
    let Some(depth) = depth.checked_sub(1) else {
        return any();
    };
    if let Some(target) = schema.get("$ref").and_then(Json::as_str) {
        let found = target.strip_prefix('#').and_then(|path| root.pointer(path));
        return found.map_or_else(any, |found| of(found, root, depth));
    }
    if let Some(value) = schema.get("const") {
        return literal(value);
    }
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        return union(values.iter().map(literal));
    }
    let either = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    if let Some(branches) = either.and_then(Json::as_array) {
        return union(branches.iter().map(|branch| of(branch, root, depth)));
    }
    match schema.get("type") {
        Some(Json::String(name)) => named(name, schema, root, depth),
        Some(Json::Array(names)) => {
            let names = names.iter().filter_map(Json::as_str);
            // Every kind but perhaps null.
            if names.clone().filter(|name| *name != "null").count() >= 5 {
                return any();
            }
            union(names.map(|name| named(name, schema, root, depth)))
        }
        _ => any(),
    }
}

fn named(name: &str, schema: &Json, root: &Json, depth: u32) -> String {
    match name {
        "string" | "boolean" | "null" => name.to_owned(),
        "number" | "integer" => "number".to_owned(),
        "array" => {
            if let Some(items) = schema.get("prefixItems").and_then(Json::as_array) {
                let items = items.iter().map(|item| of(item, root, depth));
                return format!("[{}]", items.collect::<Vec<_>>().join(", "));
            }
            match schema.get("items").map(|items| of(items, root, depth)) {
                Some(item) if item.contains(['|', ' ']) => format!("({item})[]"),
                Some(item) => format!("{item}[]"),
                None => "any[]".to_owned(),
            }
        }
        "object" => object(schema, root, depth),
        _ => "any".to_owned(),
    }
}

fn object(schema: &Json, root: &Json, depth: u32) -> String {
    let others = match schema.get("additionalProperties") {
        Some(Json::Bool(false)) => None,
        Some(others) => Some(of(others, root, depth)),
        None => Some("any".to_owned()),
    };
    let properties = schema.get("properties").and_then(Json::as_object);
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        return format!(
            "Record<string, {}>",
            others.unwrap_or_else(|| "never".to_owned())
        );
    };
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let mut members: Vec<String> = properties
        .iter()
        .map(|(name, schema)| {
            let mark = if is_required(name) { "" } else { "?" };
            let kind = of(schema, root, depth);
            let name = match super::is_name(name) {
                true => name.clone(),
                false => Json::from(name.as_str()).to_string(),
            };
            format!("{name}{mark}: {kind}")
        })
        .collect();
    if others.is_some() {
        // Members beside the named ones may have any type: TypeScript wants one that fits all.
        members.push("[key: string]: any".to_owned());
    }
    format!("{{ {} }}", members.join("; "))
}

/// The type of one value.
fn literal(value: &Json) -> String {
    match value {
        Json::Array(_) | Json::Object(_) => "any".to_owned(),
        value => value.to_string(),
    }
}

/// Alternatives without repetition; `any` takes the others in.
fn union(types: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for one in types {
        if one == "any" {
            return one;
        }
        if !all.contains(&one) {
            all.push(one);
        }
    }
    match all.is_empty() {
        true => "any".to_owned(),
        false => all.join(" | "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_become_types() {
        let cases = [
            (json!({}), "any"),
            (json!(true), "any"),
            (json!({"type": "integer"}), "number"),
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"const": "a"}), "\"a\""),
            (json!({"enum": ["a", 1, null]}), "\"a\" | 1 | null"),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                "string[]",
            ),
            (
                json!({"type": "array", "items": {"type": ["string", "number"]}}),
                "(string | number)[]",
            ),
            (
                json!({"type": "array", "prefixItems": [{"type": "number"}, {}]}),
                "[number, any]",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "number"}}),
                "Record<string, number>",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "boolean"}, "b-c": {}},
                    "required": ["a"], "additionalProperties": false}),
                "{ a: boolean; \"b-c\"?: any }",
            ),
            (
                json!({"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}],
                    "$defs": {"N": {"type": "number"}}}),
                "number | null",
            ),
            (json!({"$ref": "#/nowhere"}), "any"),
        ];
        for (case, expected) in cases {
            assert_eq!(schema(&case, &case), expected, "{case}");
        }
        let endless = json!({"type": "array", "items": {"$ref": "#"}});
        assert_eq!(schema(&endless, &endless), "any[][][][]");
    }

    #[test]
    fn kinds_become_types() {
        assert_eq!(kinds(JsonKinds::ANY, JsonKinds::ANY), "any");
        assert_eq!(kinds(JsonKinds::ARRAY, JsonKinds::STRING), "string[]");
        let either = JsonKinds::STRING | JsonKinds::ARRAY;
        assert_eq!(kinds(either, JsonKinds::ANY), "string | any[]");
        assert_eq!(
            kinds(JsonKinds::ARRAY, JsonKinds::STRING | JsonKinds::NUMBER),
            "(string | number)[]"
        );
    }
}
