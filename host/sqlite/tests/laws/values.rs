//! Lossless storage of values.

use crate::{Tested, VALUES, block_on, lasting, object, store, text};
use a99_capabilities::{Store, StoreLimits};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use proptest::prelude::*;
use std::sync::OnceLock;

/// Strict equality, including the order of members and the sign of zero.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.to_bits() == b.to_bits(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((k, a), (l, b))| k == l && is_same(a, b))
        }
        (a, b) => a == b,
    }
}

fn texts() -> impl Strategy<Value = Text> {
    let surrogates = prop::collection::vec(0xd800u16..0xe000, 0..3);
    (any::<String>(), surrogates, any::<String>()).prop_map(|(a, units, b)| {
        let mut bytes = a.into_bytes();
        for unit in units {
            // A character between halves keeps them from forming a pair.
            let unit = u32::from(unit);
            bytes.extend([
                0xed,
                0x80 | (unit >> 6 & 0x3f) as u8,
                0x80 | (unit & 0x3f) as u8,
            ]);
            bytes.push(b'-');
        }
        bytes.extend(b.into_bytes());
        Text::from_wtf8(bytes)
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        // One NaN, as in the language.
        any::<f64>().prop_map(|n| Value::Number(if n.is_nan() { f64::NAN } else { n })),
        (-5i32..300).prop_map(Value::from),
        prop::sample::select(vec![
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE,
            f64::MAX,
            5e-324,
            127.0,
            128.0,
            9_007_199_254_740_993.0,
            1e21,
            0.1,
        ])
        .prop_map(Value::Number),
        texts().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((keys(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map>())),
        ]
    })
}

fn keys() -> impl Strategy<Value = Text> {
    prop_oneof![
        texts(),
        (0..20u8).prop_map(|n| n.to_string().into()),
        Just("__proto__".into()),
    ]
}

fn shared() -> &'static Tested {
    static STORE: OnceLock<Tested> = OnceLock::new();
    STORE.get_or_init(lasting)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(VALUES))]

    #[test]
    fn e19_every_value_comes_back(value in values()) {
        let store = shared();
        block_on(store.set("value".into(), value.clone())).unwrap();
        let back = block_on(store.get("value".into())).unwrap();
        prop_assert!(is_same(&back, &value), "{:?} became {:?}", value, back);
        let swapped = store.compare_and_set("value".into(), value, Value::Null, None);
        prop_assert_eq!(block_on(swapped).unwrap(), Value::Bool(true));
    }

    #[test]
    fn e19_every_text_is_a_key(key in texts(), other in texts()) {
        let store = shared().namespace("keys");
        store.clear().wait().unwrap();
        block_on(store.set(Value::String(key.clone()), 1.0.into())).unwrap();
        block_on(store.set(Value::String(other.clone()), 2.0.into())).unwrap();
        let mut both = vec![key.clone(), other];
        both.sort();
        both.dedup();
        let page = block_on(store.list(Value::Null, Value::Null, Value::Null)).unwrap();
        let both = both.into_iter().map(Value::String).collect();
        prop_assert_eq!(page.get("keys"), Some(&Value::Array(both)));
    }
}

#[test]
fn values_too_large_or_deep_are_refused() {
    let (_kept, store) = store();
    let small = StoreLimits {
        max_value_bytes: 100,
        ..StoreLimits::default()
    };
    let store = store.with_limits(small);
    let set = |value: Value| block_on(store.set("k".into(), value));
    set("x".repeat(98).into()).unwrap();
    let too_large = "Store value too large: the limit is 100 bytes";
    assert_eq!(text(&set("x".repeat(99).into()).unwrap_err()), too_large);
    let lists = vec![Value::Undefined; 99];
    assert_eq!(text(&set(lists.into()).unwrap_err()), too_large);

    let store = store.with_limits(StoreLimits::default());
    let nest = |levels: usize, inner: Value| (0..levels).fold(inner, |v, _| vec![v].into());
    for inner in [Value::Null, Value::Undefined] {
        let deepest = nest(2_048, inner.clone());
        block_on(store.set("deep".into(), deepest.clone())).unwrap();
        let back = block_on(store.get("deep".into())).unwrap();
        assert!(back == deepest);
        let set = store.set("deep".into(), nest(2_049, inner.clone()));
        assert!(text(&block_on(set).unwrap_err()).starts_with("Store value too deep"));
        block_on(store.set("deep".into(), nest(20_000, inner))).unwrap_err();
        assert!(block_on(store.get("deep".into())).unwrap() == deepest);
    }
}

#[test]
fn n13_keys_are_data() {
    let (_kept, store) = store();
    let keys = [
        Value::Undefined,
        Value::Null,
        Value::Bool(false),
        0.0.into(),
        f64::NAN.into(),
        "0".into(),
        "".into(),
        "null".into(),
        "[]".into(),
        Value::Array(Vec::new()),
        object(&[("a", 1.0.into())]),
        "__proto__".into(),
        "'; DROP TABLE a99_entry; --".into(),
    ];
    for (n, key) in keys.iter().enumerate() {
        block_on(store.set(key.clone(), n.into())).unwrap();
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(block_on(store.get(key.clone())).unwrap(), n.into(), "{key}");
    }
    // Positive and negative zero are the same key.
    assert_eq!(block_on(store.get((-0.0).into())).unwrap(), 3.0.into());
    let long = vec![Value::from("x".repeat(64 << 10))];
    let error = block_on(store.get(long.into())).unwrap_err();
    assert_eq!(text(&error), "Store key too long: the limit is 65536 bytes");
}
