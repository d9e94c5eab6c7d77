//! Values come back as they were.

use crate::{block_on, object, store, text};
use a99_capabilities::Store;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_postgres::{PostgresStore, StoreLimits};
use proptest::prelude::*;
use std::sync::OnceLock;

/// Whether two values are the same, the order of members and the sign of zero too.
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
            // Between them a character, so that no two make a pair.
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
        // One NaN, as the language has.
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

fn shared() -> &'static PostgresStore {
    static STORE: OnceLock<PostgresStore> = OnceLock::new();
    STORE.get_or_init(|| store().1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

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
fn people_can_read_the_tables() {
    let (database, store) = store();
    let store = store.namespace("ann");
    let value = object(&[("b", 1.5.into()), ("1", vec![Value::Null].into())]);
    block_on(store.set("order/1".into(), value)).unwrap();
    let half = Text::from_wtf8(vec![b'x', 0xed, 0xa0, 0x80, 0]);
    block_on(store.set(Value::String(half), f64::NAN.into())).unwrap();
    let shown = database
        .sql("SELECT namespace || ' ' || key || ' ' || value FROM agent99.entries ORDER BY key");
    // A half of a pair is in no text of PostgreSQL.
    let half = r"ann x\355\240\200\000 01";
    assert!(
        shown.starts_with("ann order/1 {\"b\":1.5,\"1\":[null]}"),
        "{shown}"
    );
    assert!(shown.contains(half), "{shown}");
}

#[test]
fn values_too_large_or_deep_are_refused() {
    let (_database, store) = store();
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
    let (_database, store) = store();
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
    // One zero.
    assert_eq!(block_on(store.get((-0.0).into())).unwrap(), 3.0.into());
    let long = vec![Value::from("x".repeat(64 << 10))];
    let error = block_on(store.get(long.into())).unwrap_err();
    assert_eq!(text(&error), "Store key too long: the limit is 65536 bytes");
}

/// Keys around the length at which the tables split them.
#[test]
fn long_keys_stand_in_order_too() {
    let (_database, store) = store();
    let mut keys: Vec<String> = Vec::new();
    for same in [998, 999, 1_000, 1_001, 3_000, 65_000] {
        for end in ["", "a", "b", "ab", "\u{e9}"] {
            keys.push("x".repeat(same) + end);
        }
    }
    keys.sort();
    keys.dedup();
    for (n, key) in keys.iter().enumerate().rev() {
        block_on(store.set(key.as_str().into(), n.into())).unwrap();
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(block_on(store.get(key.as_str().into())).unwrap(), n.into());
    }
    for prefix in [0, 998, 1_000, 1_001, 2_000] {
        let prefix = "x".repeat(prefix);
        let (mut found, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let list = store.list(prefix.as_str().into(), cursor, 4.0.into());
            let page = block_on(list).unwrap();
            let keys = page.get("keys").and_then(Value::as_array).unwrap();
            found.extend(keys.iter().map(|key| key.as_str().unwrap().to_owned()));
            match page.get("cursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        let wanted: Vec<&String> = keys.iter().filter(|k| k.starts_with(&prefix)).collect();
        assert!(found.iter().eq(wanted), "{}", prefix.len());
    }
    for key in &keys {
        let gone = block_on(store.delete(key.as_str().into())).unwrap();
        assert_eq!(gone, Value::Bool(true));
    }
    assert_eq!(store.usage().wait().unwrap().bytes, 0);
}

#[test]
fn a_damaged_value_is_told() {
    let (database, store) = store();
    block_on(store.set("k".into(), "fine".into())).unwrap();
    for value in ["07ffffffff0f", "", "0106ff", "5b31", "01070500"] {
        database.sql(&format!(
            "UPDATE agent99.a99_entry SET value = decode('{value}', 'hex')"
        ));
        let error = block_on(store.get("k".into())).unwrap_err();
        assert_eq!(text(&error), "The store is damaged.", "{value}");
        let error = block_on(store.query(object(&[]))).unwrap_err();
        assert_eq!(text(&error), "The store is damaged.", "{value}");
    }
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
}

/// More documents than the server sends at once.
#[test]
fn queries_read_on_until_they_have_enough() {
    let (_database, store) = store();
    for n in 0..600 {
        let key = format!("d/{n:03}");
        block_on(store.set(key.into(), object(&[("n", n.into())]))).unwrap();
    }
    let ask = |members: &[(&'static str, Value)]| {
        let answer = block_on(store.query(object(members))).unwrap();
        let rows = answer.get("rows").and_then(Value::as_array).unwrap();
        rows.iter()
            .map(|row| row.get("key").unwrap().as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let all = ask(&[("limit", 1_000.0.into())]);
    assert!(all.is_sorted() && all.len() == 600);
    let order = object(&[("field", "n".into()), ("direction", "desc".into())]);
    let last = ask(&[
        ("collection", "d".into()),
        ("orderBy", order),
        ("limit", 2.0.into()),
    ]);
    assert_eq!(last, ["d/599", "d/598"]);
    let one: Value = vec!["n".into(), "==".into(), Value::from(511)].into();
    assert_eq!(ask(&[("where", one)]), ["d/511"]);
    assert_eq!(ask(&[("limit", 300.0.into())]).len(), 300);

    // Large answers end early, and their cursors lead on.
    let store = store.namespace("large").with_limits(StoreLimits {
        max_page_bytes: 5_000,
        ..StoreLimits::default()
    });
    for n in 0..9 {
        let document = object(&[("n", n.into()), ("text", "x".repeat(1_900).into())]);
        block_on(store.set(n.to_string().into(), document)).unwrap();
    }
    for order in [Value::Null, "n".into()] {
        let (mut sizes, mut cursor) = (Vec::new(), Value::Null);
        while sizes.len() < 9 {
            let query = object(&[("orderBy", order.clone()), ("cursor", cursor)]);
            let answer = block_on(store.query(query)).unwrap();
            sizes.push(answer.get("rows").and_then(Value::as_array).unwrap().len());
            match answer.get("cursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        assert_eq!(sizes, [2, 2, 2, 2, 1], "{order}");
    }
}
