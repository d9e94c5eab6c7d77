//! Tests of the value type and its conversions.

use super::*;
use serde_json::json;

/// Far beyond the depth that a recursive walk survives on a test thread's stack.
const DEEP: usize = 200_000;

fn sample() -> Value {
    Value::from(json!({"b": [1, 2.5, null, true, "x"], "10": {}, "9": [], "a": {"c": "d"}}))
}

fn deep(object: bool) -> Value {
    let mut value = Value::Null;
    for _ in 0..DEEP {
        value = if object {
            Value::Object([("k", value)].into_iter().collect())
        } else {
            Value::Array(vec![value])
        };
    }
    value
}

#[test]
fn shown_as_json() {
    let value = Value::from(json!({"a": [1, "x"]}));
    assert_eq!(value.to_string(), r#"{"a":[1,"x"]}"#);
    assert_eq!(format!("{value:#}"), value.to_json_pretty());
    assert_eq!(format!("{:>6}", Value::Undefined), "undefined");
    assert_eq!(
        format!("{:>6}|{:3}|", Value::Null, Value::Bool(true)),
        "  null|true|"
    );
}

#[test]
fn small() {
    assert_eq!(size_of::<Value>(), 24);
}

#[test]
fn json_text_and_order() {
    let value = sample();
    assert_eq!(
        value.to_json_string(),
        r#"{"9":[],"10":{},"b":[1,2.5,null,true,"x"],"a":{"c":"d"}}"#
    );
    assert_eq!(value.to_json().to_string(), value.to_json_string());
    assert_eq!(
        serde_json::to_string(&value).unwrap(),
        value.to_json_string()
    );
    assert_eq!(
        serde_json::from_str::<Value>(&value.to_json_string()).unwrap(),
        value
    );
    assert_eq!(
        Value::from(json!({"a": [1, {}], "b": []})).to_json_pretty(),
        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"
    );
}

#[test]
fn json_losses() {
    let mut map = Map::new();
    map.insert("u", Value::Undefined);
    map.insert(
        "l",
        vec![
            Value::Undefined,
            f64::NAN.into(),
            f64::NEG_INFINITY.into(),
            (-0.0).into(),
            1e21.into(),
            Text::from_wtf8(b"\xED\xA0\x80".to_vec()).into(),
        ],
    );
    let value = Value::Object(map);
    assert_eq!(
        value.to_json_string(),
        r#"{"l":[null,null,null,0,1e+21,"\ud800"]}"#
    );
    assert_eq!(
        value.to_json(),
        json!({"l": [null, null, null, 0, 1e21, "\u{FFFD}"]})
    );
    assert_eq!(
        serde_json::to_value(&value).unwrap(),
        json!({"l": [null, null, null, 0, 1e21, "\u{FFFD}"]})
    );
    assert_eq!(Value::Undefined.to_json(), json!(null));
    assert_eq!(Value::Undefined.to_json_string(), "null");
}

#[test]
fn accessors() {
    let value = sample();
    assert_eq!(value.kind(), "object");
    assert_eq!(value.pointer("/b/1").and_then(Value::as_f64), Some(2.5));
    assert_eq!(value.pointer("/b/01"), None);
    assert_eq!(value.pointer("/b/9"), None);
    assert_eq!(value.pointer("/b/4").and_then(Value::as_str), Some("x"));
    assert_eq!(value.pointer(""), Some(&value));
    assert_eq!(
        value.get("a").unwrap().get("c").unwrap().as_str(),
        Some("d")
    );
    assert_eq!(value.pointer("/b/3").and_then(Value::as_bool), Some(true));
    assert_eq!(
        value.get("b").and_then(Value::as_array).map(<[_]>::len),
        Some(5)
    );
    assert!(Value::Undefined.is_undefined() && Value::Null.is_nullish());
    assert_eq!(format!("{:?}", Value::Undefined), "undefined");
}

#[test]
fn equality() {
    assert_eq!(Value::from(f64::NAN), Value::from(f64::NAN));
    assert_eq!(Value::from(0.0), Value::from(-0.0));
    assert_ne!(Value::Undefined, Value::Null);
    assert_eq!(
        Value::from(json!({"a": 1, "b": 2})),
        Value::from(json!({"b": 2, "a": 1}))
    );
    assert_ne!(Value::from(json!({"a": 1})), Value::from(json!({"b": 1})));
    assert_ne!(Value::from(json!([1])), Value::from(json!([1, 2])));
    assert_eq!(sample().clone(), sample());
}

#[test]
fn map_operations() {
    let mut map: Map = [("x", 1), ("y", 2), ("z", 3)].into_iter().collect();
    assert_eq!(map.insert("x", 9), Some(Value::from(1)));
    assert_eq!(map.remove("y"), Some(Value::from(2)));
    assert!(map.contains("z") && !map.contains("y") && !map.is_empty());
    *map.get_mut("z").unwrap() = Value::Null;
    let keys: Vec<String> = map.keys().map(Text::to_string).collect();
    assert_eq!(keys, ["x", "z"]);
    assert_eq!(map.into_iter().count(), 2);
}

#[test]
fn integer_like_keys_come_first() {
    let map: Map = ["b", "2", "01", "4294967295", "0", "a", "4294967294", "-1"]
        .into_iter()
        .map(|key| (key, Value::Null))
        .collect();
    let keys: Vec<String> = map
        .iter_js_order()
        .map(|(key, _)| key.to_string())
        .collect();
    assert_eq!(
        keys,
        ["0", "2", "4294967294", "b", "01", "4294967295", "a", "-1"]
    );
}

#[test]
fn deep_values_are_handled_without_recursion() {
    for object in [true, false] {
        let value = deep(object);
        let copy = value.clone();
        assert!(copy == value);
        assert!(value.to_json_string().len() > 2 * DEEP);
        let mut twice = vec![value.clone()];
        let mut left = 2;
        let mut tick = |n: usize| {
            left -= 1;
            if n == 0 || left == 0 { Err(()) } else { Ok(()) }
        };
        let _ = Value::dispose_all(&mut twice, &mut tick);
        assert!(Value::dispose_all(&mut twice, |_| Ok::<(), ()>(())).is_ok());
        assert!(twice.is_empty());
        value.dispose();
        copy.dispose();
    }
    // Dropping is iterative from the first object on.
    drop(deep(true));
    drop(Value::Object([("a", deep(false))].into_iter().collect()));
}

#[test]
fn arrays_of_document_depth_drop_within_a_small_stack() {
    let depth = crate::json::Limits::default().max_depth;
    let mut value = Value::Null;
    for _ in 0..depth {
        value = Value::Array(vec![value]);
    }
    // Test threads have 2 MiB, the smallest stack that the engine supports.
    drop(value);
}
