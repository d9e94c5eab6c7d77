//! Representation of values in the tables.

use crate::{block_on, object, store, text};
use a99_capabilities::{Store, StoreLimits};
use a99_core::text::Text;
use a99_core::value::Value;

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
    // PostgreSQL's text cannot hold half of a surrogate pair.
    let half = r"ann x\355\240\200\000 01";
    assert!(
        shown.starts_with("ann order/1 {\"b\":1.5,\"1\":[null]}"),
        "{shown}"
    );
    assert!(shown.contains(half), "{shown}");
}

/// Keys around the length at which the tables split them sort correctly.
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

/// A query over more documents than one fetch returns all of them.
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

    // Large answers end early, and their cursors continue.
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
