//! Argument mismatches: the place at which arguments do not match a program's `inputSchema`,
//! with the expected and the actual kind.
//!
//! The error's message is part of the language and does not contain this (decision D24); the
//! help does.

use crate::describe::describe;
use a99_core::diag::excerpt;
use a99_core::pointer;
use a99_core::schema::SchemaError;
use a99_core::value::Value;

/// Maximum number of allowed values in a message.
const SHOWN_VALUES: usize = 8;

/// `/n: expected number, found the string "five"`. Reads both values only along the place,
/// and shows a bounded number of characters.
pub(crate) fn help(error: &SchemaError, schema: &Value, args: &Value) -> String {
    let place = match error.pointer.as_str() {
        "" => "the arguments".to_owned(),
        pointer => format!("`{}`", excerpt(pointer)),
    };
    if let Some(name) = error.message.strip_prefix("Missing ") {
        let name = excerpt(name);
        return format!("{place}: expected the member `{name}`, found none");
    }
    let expected = expected(error, part(schema, &error.pointer));
    let found = args.pointer(&error.pointer);
    let found = found.map_or_else(|| "nothing".to_owned(), describe);
    format!("{place}: expected {expected}, found {found}")
}

/// The part of a schema that applies at a place in a value.
fn part<'s>(schema: &'s Value, place: &str) -> Option<&'s Value> {
    let mut at = match schema.get("schema") {
        Some(inner) if schema.get("type").is_none() => inner,
        _ => schema,
    };
    for step in pointer::parse(place) {
        let member = at.get("properties").and_then(|all| all.get(&step));
        at = member
            .or_else(|| at.get("items"))
            .or_else(|| at.get("additionalProperties"))?;
    }
    Some(at)
}

/// The expectation of the schema at a failed check.
fn expected(error: &SchemaError, schema: Option<&Value>) -> String {
    let limit = |key: &str| schema.and_then(|s| s.get(key)).map(describe_plain);
    let known = match error.message.as_str() {
        "Enum mismatch" => schema.and_then(|s| s.get("enum")?.as_array()).map(one_of),
        "Const mismatch" => limit("const"),
        "Value < min" => limit("minimum").map(|n| format!("a number of at least {n}")),
        "Value > max" => limit("maximum").map(|n| format!("a number of at most {n}")),
        "Value not step" => limit("multipleOf").map(|n| format!("a multiple of {n}")),
        "Len < min" => limit("minLength").map(|n| format!("a text of at least {n} characters")),
        "Len > max" => limit("maxLength").map(|n| format!("a text of at most {n} characters")),
        "Pattern mismatch" => limit("pattern").map(|p| format!("a text that matches {p}")),
        "Format invalid" => limit("format").map(|f| format!("a text of the format {f}")),
        "Array too short" => limit("minItems").map(|n| format!("at least {n} elements")),
        "Array too long" => limit("maxItems").map(|n| format!("at most {n} elements")),
        "Too few props" => limit("minProperties").map(|n| format!("at least {n} members")),
        "Union mismatch" => Some("a value of one of the schemas under `anyOf`".to_owned()),
        _ => None,
    };
    known.unwrap_or_else(|| {
        let text = &error.message;
        excerpt(text.strip_prefix("Expected ").unwrap_or(text))
    })
}

fn one_of(allowed: &[Value]) -> String {
    let mut shown: Vec<String> = allowed
        .iter()
        .take(SHOWN_VALUES)
        .map(describe_plain)
        .collect();
    if allowed.len() > SHOWN_VALUES {
        shown.push(format!("{} others", allowed.len() - SHOWN_VALUES));
    }
    format!("one of {}", shown.join(", "))
}

/// A short description of a value, scalars as JSON.
fn describe_plain(value: &Value) -> String {
    let text = describe(value);
    let plain = ["the string ", "the number ", "the boolean "];
    let plain = plain.iter().find_map(|kind| text.strip_prefix(kind));
    plain.unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(pointer: &str, message: &str, schema: serde_json::Value) -> String {
        let error = SchemaError {
            path: String::new(),
            pointer: pointer.to_owned(),
            message: message.to_owned(),
        };
        let args = Value::from(json!({"n": "five", "tags": [{"a": 7}], "o": {}}));
        help(&error, &Value::from(schema), &args)
    }

    #[test]
    fn places_expectations_and_findings() {
        let number = json!({"properties": {"n": {"type": "number"}}});
        assert_eq!(
            told("/n", "Expected number", number.clone()),
            "`/n`: expected number, found the string \"five\""
        );
        assert_eq!(
            told("", "Missing m", number),
            "the arguments: expected the member `m`, found none"
        );
        let few = json!({"properties": {"n": {"enum": ["a", 1, null]}}});
        assert_eq!(
            told("/n", "Enum mismatch", few),
            "`/n`: expected one of \"a\", 1, null, found the string \"five\""
        );
        let many: Vec<u32> = (0..100_000).collect();
        let many = told(
            "/n",
            "Enum mismatch",
            json!({"properties": {"n": {"enum": many}}}),
        );
        assert!(many.contains("6, 7, 99992 others,"), "{many}");
        let inner =
            json!({"properties": {"tags": {"items": {"properties": {"a": {"maximum": 3}}}}}});
        assert_eq!(
            told("/tags/0/a", "Value > max", inner),
            "`/tags/0/a`: expected a number of at most 3, found the number 7"
        );
        assert_eq!(
            told("/o", "Something else", json!({})),
            "`/o`: expected Something else, found an object"
        );
    }
}
