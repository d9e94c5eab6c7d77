//! Helpers for short programs.

use agent99::json;
use serde_json::Value as Json;

pub(super) fn id(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

pub(super) fn lit(value: impl Into<Json>) -> Json {
    json!({"$expr": "literal", "value": value.into()})
}

pub(super) fn bin(op: &str, left: Json, right: Json) -> Json {
    json!({"$expr": "binary", "op": op, "left": left, "right": right})
}

pub(super) fn call(object: Json, method: &str, arguments: Json) -> Json {
    json!({"$expr": "methodCall", "object": object, "method": method, "arguments": arguments})
}

pub(super) fn func(callee: &str, arguments: Json) -> Json {
    json!({"$expr": "call", "callee": callee, "arguments": arguments})
}

pub(super) fn list(elements: Json) -> Json {
    json!({"$expr": "array", "elements": elements})
}

pub(super) fn record(members: &[(&str, Json)]) -> Json {
    let properties: Vec<Json> = members
        .iter()
        .map(|(key, value)| json!({"key": key, "value": value}))
        .collect();
    json!({"$expr": "object", "properties": properties})
}

pub(super) fn set(key: &str, value: Json) -> Json {
    json!({"op": "varSet", "key": key, "value": value})
}

/// A text of this many characters.
pub(super) fn text(units: usize) -> Json {
    call(lit("x"), "repeat", json!([lit(units)]))
}

/// `[undefined, ...]` of this length.
pub(super) fn holes(len: usize) -> Json {
    call(
        id("Array"),
        "from",
        json!([record(&[("length", lit(len))])]),
    )
}

/// A list that repeats a value.
pub(super) fn times(len: usize, value: Json) -> Json {
    call(holes(len), "fill", json!([value]))
}

/// A loop that runs `body` for `i` from 0 to `turns`.
pub(super) fn count(turns: usize, body: &[Json]) -> Vec<Json> {
    let mut body = body.to_vec();
    body.push(set("i", bin("+", id("i"), lit(1))));
    vec![
        set("i", lit(0)),
        json!({"op": "while", "condition": bin("<", id("i"), lit(turns)), "body": body}),
    ]
}

/// Concatenates steps.
pub(super) fn seq(parts: &[&[Json]]) -> Json {
    Json::Array(parts.concat())
}
