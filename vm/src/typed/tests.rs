use super::*;
use a99_core::text::Text;
use a99_core::value::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

#[derive(Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Shape {
    Point,
    Circle(f64),
    Pair(i8, String),
    Box { width: u32, height: Option<u32> },
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Inner {
    id: u64,
    tags: Vec<String>,
    by_size: BTreeMap<u32, char>,
    shape: Shape,
}

fn read<T: serde::de::DeserializeOwned + Debug>(json: Json) -> Result<T, String> {
    from_value(&Value::from(json)).map_err(|e| e.to_string())
}

#[test]
fn values_round_trip() {
    let inner = |shape| Inner {
        id: (1 << 53) - 1,
        tags: vec!["a".to_owned()],
        by_size: BTreeMap::from([(7, 'x')]),
        shape,
    };
    for shape in [
        Shape::Point,
        Shape::Circle(-0.5),
        Shape::Pair(-128, String::new()),
        Shape::Box {
            width: u32::MAX,
            height: None,
        },
    ] {
        let inner = inner(shape);
        let value = to_value(&inner).unwrap();
        assert_eq!(value.to_json(), serde_json::to_value(&inner).unwrap());
        assert_eq!(from_value::<Inner>(&value).unwrap(), inner);
    }
}

#[test]
fn whole_numbers_are_integers_within_bounds() {
    assert_eq!(read::<u8>(json!(255.0)), Ok(255));
    assert_eq!(
        read::<i64>(json!(-9_223_372_036_854_775_808.0)),
        Ok(i64::MIN)
    );
    assert_eq!(read::<u64>(json!(1e19)), Ok(10_000_000_000_000_000_000));
    assert_eq!(read::<i32>(json!(-0.0)), Ok(0));
    assert_eq!(read::<f64>(json!(1e300)), Ok(1e300));
    assert_eq!(read::<f64>(json!(3)), Ok(3.0));
    assert_eq!(read::<Json>(json!(3.0)), Ok(json!(3)));
    for (error, expected) in [
        (
            read::<u8>(json!(256)).unwrap_err(),
            "u8, found the number 256",
        ),
        (
            read::<u8>(json!(-1)).unwrap_err(),
            "u8, found the number -1",
        ),
        (
            read::<u32>(json!(1.5)).unwrap_err(),
            "u32, found the number 1.5",
        ),
        (
            read::<i64>(json!(9_223_372_036_854_775_808.0)).unwrap_err(),
            "i64, found the number 9223372036854776000",
        ),
        (
            read::<u64>(json!(1e20)).unwrap_err(),
            "u64, found the number 100000000000000000000",
        ),
        (
            read::<f32>(json!(1e39)).unwrap_err(),
            "f32, found the number 1e+39",
        ),
        (
            read::<i32>(json!("5")).unwrap_err(),
            "i32, found the string \"5\"",
        ),
    ] {
        assert_eq!(error, format!("expected {expected}"));
    }
    let nan = from_value::<i32>(&Value::Number(f64::NAN)).unwrap_err();
    assert_eq!(nan.to_string(), "expected i32, found the number NaN");
}

#[test]
fn errors_name_the_place() {
    type Lists = HashMap<String, Vec<Inner>>;
    let good = json!({"id": 1, "tags": [], "by_size": {}, "shape": "point"});
    let bad = |key: &str, value: Json| {
        let mut inner = good.clone();
        inner[key] = value;
        read::<Lists>(json!({"a/b": [good, inner]})).unwrap_err()
    };
    assert_eq!(
        bad("tags", json!(["x", 5])),
        "/a~1b/1/tags/1: expected a string, found the number 5"
    );
    assert_eq!(
        bad("id", json!(null)),
        "/a~1b/1/id: expected u64, found null"
    );
    assert_eq!(
        bad("tags", json!({})),
        "/a~1b/1/tags: expected a sequence, found an object"
    );
    assert_eq!(
        bad("shape", json!("ring")),
        "/a~1b/1/shape: expected one of \"point\", \"circle\", \"pair\", \"box\", found the string \"ring\""
    );
    assert_eq!(
        bad("shape", json!({"box": {"width": "w"}})),
        "/a~1b/1/shape/box/width: expected u32, found the string \"w\""
    );
    assert_eq!(
        bad("shape", json!({"pair": [1]})),
        "/a~1b/1/shape/pair: expected tuple variant Shape::Pair with 2 elements, found an array of 1 element"
    );
    assert_eq!(
        read::<(i32, i32)>(json!([1, 2, 3])).unwrap_err(),
        "expected 2 elements, found an array of 3 elements"
    );
    assert_eq!(
        read::<Inner>(json!({})).unwrap_err(),
        "/id: expected a value, found undefined"
    );
}

#[test]
fn undefined_is_absent() {
    let mut map = a99_core::value::Map::new();
    map.insert("width", 3);
    map.insert("height", Value::Undefined);
    let shape = Value::Object([("box", Value::Object(map))].into_iter().collect());
    assert_eq!(
        from_value::<Shape>(&shape).unwrap(),
        Shape::Box {
            width: 3,
            height: None
        }
    );
    assert_eq!(from_value::<Option<u8>>(&Value::Undefined), Ok(None));
    assert!(from_value::<Json>(&Value::Undefined).is_err());
    let list = Value::Array(vec![Value::Undefined]);
    assert_eq!(from_value::<Vec<Json>>(&list), Ok(vec![Json::Null]));
}

#[test]
fn lone_surrogates_are_refused() {
    let lone = Text::from_wtf8(vec![b'a', 0xED, 0xA0, 0x80]);
    let list = Value::Array(vec![Value::String(lone.clone())]);
    let error = from_value::<Vec<String>>(&list).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/0: expected well-formed text, found the ill-formed string \"a\u{fffd}\""
    );
    let map = Value::Object([(lone, Value::Null)].into_iter().collect());
    assert!(from_value::<HashMap<String, Json>>(&map).is_err());
}

#[test]
fn depth_is_limited_both_ways() {
    let mut json = json!(0);
    for _ in 0..MAX_TYPED_DEPTH {
        json = json!([json]);
    }
    let value = Value::from(&json);
    assert_eq!(from_value::<Json>(&value).unwrap(), json);
    assert_eq!(to_value(&json).unwrap(), value);
    let deeper = json!([json]);
    let error = from_value::<Json>(&Value::from(&deeper)).unwrap_err();
    assert!(error.to_string().ends_with("nested deeper than 128 levels"));
    assert!(to_value(&deeper).is_err());
}

#[test]
fn outputs_keep_what_the_language_has() {
    assert_eq!(to_value(&()).unwrap(), Value::Null);
    assert_eq!(to_value(&None::<u8>).unwrap(), Value::Null);
    assert_eq!(
        to_value(&f64::INFINITY).unwrap(),
        Value::Number(f64::INFINITY)
    );
    let error = to_value(&[u64::MAX]).unwrap_err();
    assert_eq!(error.pointer(), "/0");
    assert_eq!(error.found(), Some("18446744073709551615"));
    let keyed = HashMap::from([((1, 2), 3)]);
    assert!(
        to_value(&keyed)
            .unwrap_err()
            .to_string()
            .contains("key of a map")
    );
}
