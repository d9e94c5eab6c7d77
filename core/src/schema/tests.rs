//! Tests of schemas: the cases of the conformance vectors and the limits.

use super::*;
use crate::value::Map;
use serde_json::json;

/// Counts its calls and stops the work at a limit of nodes.
#[derive(Default)]
struct Count {
    nodes: usize,
    elements: usize,
    units: usize,
    nanos: usize,
    bytes: usize,
    most: Option<usize>,
}

impl Gauge for Count {
    type Stop = ();

    fn nodes(&mut self, n: usize) -> Result<(), ()> {
        self.nodes += n;
        match self.most {
            Some(most) if self.nodes > most => Err(()),
            _ => Ok(()),
        }
    }

    fn reads(&mut self, elements: usize, units: usize) -> Result<(), ()> {
        self.elements += elements;
        self.units += units;
        Ok(())
    }

    fn passes(&mut self, nanos: usize) -> Result<(), ()> {
        self.nanos += nanos;
        Ok(())
    }

    fn holds(&mut self, bytes: usize) -> Result<(), ()> {
        self.bytes += bytes;
        Ok(())
    }

    /// Patterns act as prefixes here.
    fn matches(
        &mut self,
        pattern: &[u8],
        text: &[u8],
        units: usize,
    ) -> Result<Result<bool, String>, ()> {
        assert_eq!(units, text.len());
        Ok(match pattern.strip_prefix(b"^") {
            Some(prefix) => Ok(text.starts_with(prefix)),
            None => Err("Unsupported pattern".into()),
        })
    }
}

fn schema(json: serde_json::Value) -> Schema {
    Schema::parse(&Value::from(json))
}

fn check(value: serde_json::Value, against: serde_json::Value) -> Result<(), String> {
    validate(&value.into(), &schema(against)).map_err(|error| error.to_string())
}

fn kept(value: serde_json::Value, against: serde_json::Value) -> String {
    match filter(&value.into(), &schema(against)) {
        Ok(value) => value.to_json_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn messages() {
    for (value, against, expected) in [
        (
            json!(null),
            json!({"type": "object"}),
            "root: Expected value, got null",
        ),
        (
            json!(1.5),
            json!({"type": "integer"}),
            "root: Expected integer",
        ),
        (json!(1), json!({"type": "null"}), "root: Expected null"),
        (
            json!({"a": null}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            "a: Expected value, got null",
        ),
        (
            json!({"a": [1, "x"]}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}}),
            "a.1: Expected number",
        ),
        (
            json!({}),
            json!({"type": "object", "required": ["k"]}),
            "root: Missing k",
        ),
        (
            json!([1]),
            json!({"type": "array", "items": [{}, {"type": "string"}]}),
            "root.1",
        ),
        (
            json!([]),
            json!({"type": "object"}),
            "root: Expected object",
        ),
        (
            json!(5),
            json!({"anyOf": [{"type": "string"}]}),
            "root: Union mismatch",
        ),
        (json!(5), json!({"const": 6}), "root: Const mismatch"),
        (json!("b"), json!({"enum": ["a"]}), "root: Enum mismatch"),
        (json!(5), json!({"maximum": 4}), "root: Value > max"),
        (json!(5), json!({"minimum": 6}), "root: Value < min"),
        (
            json!(0.35),
            json!({"multipleOf": 0.1}),
            "root: Value not step",
        ),
        (
            json!("\u{1F600}"),
            json!({"minLength": 3}),
            "root: Len < min",
        ),
        (
            json!("\u{1F600}"),
            json!({"maxLength": 1}),
            "root: Len > max",
        ),
        (
            json!("x"),
            json!({"format": "email"}),
            "root: Format invalid",
        ),
        (
            json!({}),
            json!({"type": "object", "minProperties": 1}),
            "root: Too few props",
        ),
        (
            json!([]),
            json!({"type": "array", "items": {}, "minItems": 1}),
            "root: Array too short",
        ),
        (
            json!([1]),
            json!({"type": "array", "items": {}, "maxItems": 0}),
            "root: Array too long",
        ),
        (
            json!({"x": 1}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "x: Expected string",
        ),
    ] {
        let expected = expected.replace("root.1", "1: Expected value, got undefined");
        assert_eq!(check(value, against), Err(expected));
    }
}

#[test]
fn matches() {
    for (value, against) in [
        (json!(null), json!({})),
        (json!(null), json!({"type": "null"})),
        (json!(null), json!({"type": ["string", "null"]})),
        (
            json!({"extra": 1}),
            json!({"type": "object", "additionalProperties": false}),
        ),
        (
            json!({"extra": null}),
            json!({"type": "object", "additionalProperties": true}),
        ),
        (json!(0.3), json!({"multipleOf": 0.1})),
        (
            json!("x"),
            json!({"anyOf": [{"type": "number"}, {"type": "string"}]}),
        ),
        (json!(7), json!({"schema": {"type": "integer"}})),
        (json!([]), json!({"type": "array", "minItems": 1})),
        (json!(1), json!("nonsense")),
        (
            json!(1),
            json!({"properties": 5, "required": "x", "enum": {}, "anyOf": 3}),
        ),
    ] {
        assert_eq!(check(value, against), Ok(()));
    }
}

#[test]
fn undefined() {
    let is = |against| validate(&Value::Undefined, &schema(against)).is_ok();
    assert!(is(json!({})));
    assert!(is(json!({"type": "null", "x-tjs-undefined": true})));
    assert!(!is(json!({"type": "null"})));
    assert!(is(json!({"type": ["string", "null"]})));
    let error = validate(&Value::Undefined, &schema(json!({"type": "object"}))).unwrap_err();
    assert_eq!(error.to_string(), "root: Expected value, got undefined");
    let nan = validate(&f64::NAN.into(), &Schema::default()).unwrap_err();
    assert_eq!(nan.message, "Expected finite number");
}

#[test]
fn projection() {
    let user = json!({"type": "object", "properties": {"name": {"type": "string"}, "mail": {}}});
    assert_eq!(
        kept(json!({"x": 1, "name": "A"}), user.clone()),
        r#"{"name":"A"}"#
    );
    assert_eq!(
        kept(
            json!([{"name": "A", "x": 1}]),
            json!({"type": "array", "items": user})
        ),
        r#"[{"name":"A"}]"#
    );
    assert_eq!(
        kept(
            json!([1, 2, 3]),
            json!({"type": "array", "items": [{}, {}]})
        ),
        "[1,2]"
    );
    // Not projected: a list of types, anyOf, a missing type.
    let properties = json!({"a": {}});
    for against in [
        json!({"type": ["object", "null"], "properties": properties}),
        json!({"anyOf": [{"type": "object", "properties": properties}]}),
        json!({"properties": properties}),
        json!({"type": "object", "additionalProperties": {}}),
    ] {
        assert_eq!(kept(json!({"a": 1, "b": 2}), against), r#"{"a":1,"b":2}"#);
    }
    // Members are in the schema's order.
    assert_eq!(
        kept(
            json!({"a": 1, "b": 2}),
            json!({"type": "object", "properties": {"b": {}, "a": {}}})
        ),
        r#"{"b":2,"a":1}"#
    );
}

#[test]
fn examples() {
    let by = |value: serde_json::Value, example: serde_json::Value| {
        let schema = Schema::parse(&from_example(&example.into()));
        match filter(&value.into(), &schema) {
            Ok(value) => value.to_json_string(),
            Err(error) => error.to_string(),
        }
    };
    for (value, example, expected) in [
        (
            json!({"name": "A", "age": 3, "extra": 1}),
            json!({"name": "s", "age": 0}),
            r#"{"name":"A","age":3}"#,
        ),
        (
            json!([{"id": 1, "x": 2}, {"id": 2}]),
            json!([{"id": 0}]),
            r#"[{"id":1},{"id":2}]"#,
        ),
        (json!(5.5), json!(0.5), "5.5"),
        (json!([1, 2]), json!([]), "[1,2]"),
        (json!({"a": null}), json!({"a": null}), r#"{"a":null}"#),
        (
            json!({"a": null}),
            json!({"a": "string"}),
            "a: Expected value, got null",
        ),
        (
            json!({"type": "cat", "age": 3}),
            json!({"type": "string", "age": 0}),
            "root: Expected string",
        ),
        (
            json!({"a": 1, "b": 2}),
            json!({"schema": {"type": "object", "properties": {"a": {}}}}),
            r#"{"a":1}"#,
        ),
        (json!(1.5), json!(0), "root: Expected integer"),
    ] {
        assert_eq!(by(value, example), expected);
    }
    assert_eq!(from_example(&Value::Undefined).to_json_string(), "{}");
    assert_eq!(
        infer(&Value::from(json!({"type": "x"}))).to_json_string(),
        r#"{"type":"object","properties":{"type":{"type":"string"}},"required":["type"],"additionalProperties":false}"#
    );
}

#[test]
fn patterns_are_the_callers() {
    let is = |pattern: &str| {
        let schema = schema(json!({"type": "string", "pattern": pattern}));
        let value = Value::from("text");
        let Ok(checked) = super::check(&value, &schema, &mut Count::default(), false) else {
            panic!("stopped")
        };
        checked.map_err(|error| error.message)
    };
    assert_eq!(is("^t"), Ok(()));
    assert_eq!(is("^x"), Err("Pattern mismatch".into()));
    assert_eq!(is("("), Err("Unsupported pattern".into()));
    assert!(check(json!("text"), json!({"pattern": "^x"})).is_ok());
}

#[test]
fn long_arrays_are_sampled() {
    let numbers = schema(json!({"type": "array", "items": {"type": "number"}}));
    let with_bad = |count: usize, bad: usize| {
        let mut list = vec![Value::from(1); count];
        list[bad] = "x".into();
        Value::from(list)
    };
    let fails = |count, bad, strict| {
        let Ok(checked) = super::check(&with_bad(count, bad), &numbers, &mut Unmetered, strict);
        checked.is_err()
    };
    assert!((0..97).all(|bad| fails(97, bad, false)));
    assert!((0..100).all(|bad| fails(100, bad, false)));
    assert!(fails(1000, 999, false) && fails(1000, 0, false) && fails(1000, 10, false));
    assert!(!fails(1000, 1, false) && fails(1000, 1, true));
}

#[test]
fn deep_schemas_and_values() {
    let mut deep = json!({"type": "number"});
    let mut value = Value::Null;
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
        value = vec![value].into();
    }
    let error = validate(&value, &schema(deep.clone())).unwrap_err();
    assert!(error.message.contains("got null"), "{error}");
    let mut deep = Value::from(deep);
    for _ in 0..5000 {
        let mut map = Map::new();
        map.insert("type", "array");
        map.insert("items", deep);
        deep = map.into();
        value = vec![value].into();
    }
    let error = validate(&value, &Schema::parse(&deep)).unwrap_err();
    assert_eq!(error.message, "Schema too deep");
    assert!(from_example(&value).is_container());
    value.dispose();
}

/// Lookups in an `enum` of any length are bounded, and the check stops when its gauge says so.
#[test]
fn a3_checks_are_counted() {
    let names: Vec<String> = (0..50_000).map(|n| format!("name {n}")).collect();
    let mixed: Vec<serde_json::Value> = (0..50_000)
        .map(|n| {
            if n % 2 == 0 {
                json!(n)
            } else {
                json!(format!("{n}"))
            }
        })
        .collect();
    let of_names =
        schema(json!({"items": {"items": {"enum": names}, "type": "array"}, "type": "array"}));
    let of_mixed = schema(json!({"enum": mixed}));
    let leaves = |leaf: &str| Value::from(vec![Value::from(vec![Value::from(leaf); 97]); 97]);
    let mut count = Count::default();
    let good = leaves("name 49999");
    assert_eq!(conforms(&good, &of_names, &mut count), Ok(true));
    assert_eq!((count.nodes, count.units), (1 + 97 + 97 * 97, 97 * 97 * 10));
    // A lookup passes over the text twice, not fifty thousand times.
    assert!(count.nanos < 97 * 97 * 100, "{}", count.nanos);
    assert_eq!(
        conforms(&leaves("name"), &of_names, &mut Count::default()),
        Ok(false)
    );
    for (value, fits) in [
        (json!(48_888), true),
        (json!("48889"), true),
        (json!(48_889), false),
        (json!(-0.0), true),
        (json!([0]), false),
    ] {
        let value = Value::from(value);
        assert_eq!(
            conforms(&value, &of_mixed, &mut Count::default()),
            Ok(fits),
            "{value:?}"
        );
    }
    let mut count = Count {
        most: Some(500),
        ..Count::default()
    };
    assert_eq!(conforms(&good, &of_names, &mut count), Err(()));
    assert_eq!(count.nodes, 501);
}

/// Memory of a schema is counted while it is read, not after.
#[test]
fn a3_reading_is_counted() {
    let part = json!({"type": "string", "minLength": 1, "enum": ["a", "b"]});
    let value = Value::from(json!({"anyOf": vec![part; 1000]}));
    let mut count = Count::default();
    let schema = Schema::read(&value, &mut count).unwrap();
    assert_eq!(count.nodes, 1001);
    assert!(
        count.bytes >= schema.bytes(),
        "{} {}",
        count.bytes,
        schema.bytes()
    );
    let mut count = Count {
        most: Some(10),
        ..Count::default()
    };
    assert!(Schema::read(&value, &mut count).is_err());
    assert!(count.bytes < 100_000);
}
