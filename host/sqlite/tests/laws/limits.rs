//! Quotas of a namespace, and expiry.

use crate::{LIMITS, Tested, block_on, lasting, object, store, text};
use a99_capabilities::{FixedClock, Store, StoreLimits, StoreUsage};
use a99_core::value::Value;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

fn limited(store: &Tested, max_bytes: u64, max_keys: u64) -> Tested {
    store.with_limits(StoreLimits {
        max_bytes,
        max_keys,
        ..StoreLimits::default()
    })
}

fn usage(store: &Tested) -> StoreUsage {
    store.usage().wait().unwrap()
}

#[test]
fn n19_bytes_are_counted_exactly() {
    let (_kept, store) = store();
    // One byte of key, two quotes of JSON, and 64.
    let store = limited(&store, 1_000, 100);
    let set = |bytes: usize| block_on(store.set("k".into(), "x".repeat(bytes).into()));
    set(1_000 - 67).unwrap();
    assert_eq!(
        usage(&store),
        StoreUsage {
            keys: 1,
            bytes: 1_000
        }
    );
    let full = set(1_000 - 66).unwrap_err();
    assert_eq!(text(&full), "Store is full: the limit is 1000 bytes");
    assert_eq!(
        usage(&store),
        StoreUsage {
            keys: 1,
            bytes: 1_000
        }
    );
    let swap = store.compare_and_set("l".into(), Value::Undefined, Value::Null, None);
    assert_eq!(text(&block_on(swap).unwrap_err()), text(&full));
    // Writes that shrink the usage succeed even under a lower limit.
    let lower = limited(&store, 100, 100);
    block_on(lower.set("k".into(), "x".repeat(500).into())).unwrap();
    block_on(lower.set("k".into(), "x".repeat(501).into())).unwrap_err();
    block_on(lower.delete("k".into())).unwrap();
    assert_eq!(usage(&store), StoreUsage::default());
}

#[test]
fn n19_keys_are_counted_exactly() {
    let (_kept, store) = store();
    let store = limited(&store, 1 << 20, 3);
    for key in ["a", "b", "c", "a"] {
        block_on(store.set(key.into(), Value::Null)).unwrap();
    }
    let full = block_on(store.set("d".into(), Value::Null)).unwrap_err();
    assert_eq!(text(&full), "Store is full: the limit is 3 keys");
    assert_eq!(block_on(store.get("d".into())).unwrap(), Value::Undefined);
    block_on(store.delete("a".into())).unwrap();
    block_on(store.set("d".into(), Value::Null)).unwrap();
}

#[test]
fn what_expired_makes_room() {
    let (_kept, store) = store();
    let clock = Arc::new(FixedClock::new(1.0));
    let store = limited(&store, 500, 10).with_clock(clock.clone());
    let big = || Value::from("x".repeat(300));
    block_on(store.set_until("a".into(), big(), 5.0)).unwrap();
    clock.set(4.0);
    block_on(store.set("b".into(), big())).unwrap_err();
    clock.set(5.0);
    block_on(store.set("b".into(), big())).unwrap();
    assert_eq!(usage(&store).keys, 1);
}

#[test]
fn what_expired_is_swept_by_the_writes_of_others() {
    let (_kept, store) = store();
    let clock = Arc::new(FixedClock::new(1.0));
    let store = store.with_clock(clock.clone());
    let ann = store.namespace("ann");
    for n in 0..100 {
        block_on(ann.set_until(Value::from(n), Value::Null, 5.0)).unwrap();
    }
    block_on(ann.set_until("stays".into(), Value::Null, 1e300)).unwrap();
    block_on(ann.set_until("forever".into(), Value::Null, f64::INFINITY)).unwrap();
    block_on(ann.set_until("never".into(), Value::Null, f64::NAN)).unwrap();
    assert_eq!(block_on(ann.get("never".into())).unwrap(), Value::Undefined);
    clock.set(6.0);
    for _ in 0..4 {
        block_on(store.set("x".into(), Value::Null)).unwrap();
    }
    assert_eq!(usage(&ann).keys, 2);
}

#[test]
fn undefined_is_a_value_too() {
    let (_kept, store) = store();
    block_on(store.set("k".into(), Value::Undefined)).unwrap();
    assert_eq!(usage(&store).keys, 1);
    assert_eq!(
        block_on(store.delete("k".into())).unwrap(),
        Value::Bool(true)
    );
}

#[test]
fn long_pages_end_early() {
    let (_kept, store) = store();
    let store = store.with_limits(StoreLimits {
        max_page_bytes: 5_000,
        ..StoreLimits::default()
    });
    for n in 0..9 {
        let key = format!("{n}{}", "x".repeat(1_999));
        block_on(store.set(key.into(), Value::Null)).unwrap();
    }
    let huge = "y".repeat(20_000);
    block_on(store.set(huge.into(), Value::Null)).unwrap();
    let (mut sizes, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = block_on(store.list(Value::Null, cursor, Value::Null)).unwrap();
        sizes.push(page.get("keys").and_then(Value::as_array).unwrap().len());
        match page.get("cursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    assert_eq!(sizes, [2, 2, 2, 2, 1, 1]);
}

#[test]
fn large_answers_end_early() {
    let (_kept, store) = store();
    let large = |n: usize| object(&[("n", n.into()), ("text", "x".repeat(900_000).into())]);
    for n in 0..10 {
        block_on(store.set(format!("docs/{n}").into(), large(n))).unwrap();
    }
    let descending = object(&[("field", "n".into()), ("direction", "desc".into())]);
    for (order, wanted) in [(Value::Null, "0123456789"), (descending, "9876543210")] {
        let (mut found, mut pages, mut cursor) = (String::new(), 0, Value::Null);
        loop {
            let query = object(&[
                ("collection", "docs".into()),
                ("orderBy", order.clone()),
                ("cursor", cursor),
            ]);
            let answer = block_on(store.query(query)).unwrap();
            assert!(answer.to_json_string().len() < 4 << 20);
            for row in answer.get("rows").and_then(Value::as_array).unwrap() {
                let n = row.get("value").and_then(|value| value.get("n")).unwrap();
                found += &n.to_string();
            }
            pages += 1;
            match answer.get("cursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        assert_eq!((found.as_str(), pages), (wanted, 3));
    }
}

#[test]
fn queries_look_at_one_collection() {
    let (_kept, store) = store();
    for (key, total) in [
        ("orders/1", 5),
        ("orders/2", 7),
        ("orders", 9),
        ("orders0", 9),
    ] {
        let document = object(&[("total", total.into())]);
        block_on(store.set(key.into(), document)).unwrap();
    }
    block_on(store.set(7.0.into(), object(&[("total", 5.into())]))).unwrap();
    let query = object(&[
        ("collection", "orders".into()),
        ("where", object(&[("total", 7.into())])),
    ]);
    let answer = block_on(store.query(query)).unwrap();
    assert_eq!(
        answer.to_json_string(),
        r#"{"rows":[{"key":"orders/2","value":{"total":7}}]}"#
    );
    let error = block_on(store.query(object(&[("colection", Value::Null)]))).unwrap_err();
    assert!(text(&error).contains("did you mean `collection`?"));
}

/// An operation of a random program.
#[derive(Clone, Debug)]
enum Step {
    Set(u8, u16, Option<u8>),
    Delete(u8),
    Swap(u8, u16, u16),
    Wait(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..6u8;
    let step = prop_oneof![
        (key.clone(), 0..400u16, prop::option::of(1..9u8)).prop_map(|(k, v, t)| Step::Set(k, v, t)),
        key.clone().prop_map(Step::Delete),
        (key, 0..400u16, 0..400u16).prop_map(|(k, old, v)| Step::Swap(k, old, v)),
        (1..5u8).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(LIMITS))]

    /// A store gives the answers of a map, and its bytes never exceed the limit.
    #[test]
    fn a_store_is_a_map_with_a_limit(steps in steps()) {
        const LIMIT: u64 = 1_000;
        static STORE: OnceLock<Tested> = OnceLock::new();
        static CASE: AtomicU32 = AtomicU32::new(0);
        let case = CASE.fetch_add(1, Ordering::Relaxed);
        let store = STORE.get_or_init(lasting).namespace(case.to_string());
        let clock = Arc::new(FixedClock::new(0.0));
        let store = limited(&store, LIMIT, 100).with_clock(clock.clone());
        let value = |n: u16| Value::from("x".repeat(n.into()));
        let held = |n: u16| 1 + u64::from(n) + 2 + 64;
        let mut map: BTreeMap<u8, (u16, f64)> = BTreeMap::new();
        let mut now = 0.0;
        for step in steps {
            map.retain(|_, (_, expires)| now < *expires);
            let used = |map: &BTreeMap<u8, (u16, f64)>, but: u8| -> u64 {
                map.iter().filter(|(k, _)| **k != but).map(|(_, (n, _))| held(*n)).sum()
            };
            let key = |k: u8| Value::from(k.to_string());
            match step {
                Step::Set(k, n, ttl) => {
                    let expires = ttl.map(|ttl| now + f64::from(ttl));
                    let done = match expires {
                        None => block_on(store.set(key(k), value(n))),
                        Some(at) => block_on(store.set_until(key(k), value(n), at)),
                    };
                    prop_assert_eq!(done.is_ok(), used(&map, k) + held(n) <= LIMIT);
                    if done.is_ok() {
                        map.insert(k, (n, expires.unwrap_or(f64::INFINITY)));
                    }
                }
                Step::Delete(k) => {
                    let done = block_on(store.delete(key(k))).unwrap();
                    prop_assert_eq!(done, Value::Bool(map.remove(&k).is_some()));
                }
                Step::Swap(k, old, n) => {
                    let expected = match map.get(&k) {
                        Some((held, _)) if old % 2 == 0 => value(*held),
                        None => Value::Undefined,
                        Some(_) => value(old),
                    };
                    let is_expected = match map.get(&k) {
                        Some((held, _)) => old % 2 == 0 || old == *held,
                        None => true,
                    };
                    let done = block_on(store.compare_and_set(key(k), expected, value(n), None));
                    let fits = used(&map, k) + held(n) <= LIMIT;
                    match done {
                        Ok(done) => prop_assert_eq!(done, Value::Bool(is_expected)),
                        Err(_) => prop_assert!(is_expected && !fits),
                    }
                    if is_expected && fits {
                        map.insert(k, (n, f64::INFINITY));
                    }
                }
                Step::Wait(ms) => {
                    now += f64::from(ms);
                    clock.set(now);
                }
            }
            map.retain(|_, (_, expires)| now < *expires);
            for k in 0..6 {
                let want = map.get(&k).map_or(Value::Undefined, |(n, _)| value(*n));
                prop_assert_eq!(block_on(store.get(key(k))).unwrap(), want);
            }
            prop_assert!(usage(&store).bytes <= LIMIT);
        }
    }
}
