//! Documents: as they were added, and in the places of their predecessors.

use crate::{add, block_on, create, document, found, ids, object, store, vector};
use a99_capabilities::{MemoryStore, Store};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use proptest::prelude::*;

/// Whether two values are the same, the order of members and the sign of zero too.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.to_bits() == b.to_bits(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut pairs = a.iter().zip(b);
            a.len() == b.len() && pairs.all(|((k, a), (l, b))| k == l && is_same(a, b))
        }
        (a, b) => a == b,
    }
}

fn texts() -> impl Strategy<Value = Text> {
    let half = Just(Text::from_wtf8(vec![0xed, 0xa0, 0x80]));
    prop_oneof![4 => any::<String>().prop_map(Text::from), 1 => half]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>().prop_map(|n| Value::Number(if n.is_nan() { f64::NAN } else { n })),
        Just(Value::Number(-0.0)),
        texts().prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((texts(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map>())),
        ]
    })
}

/// Numbers of vectors: some that 32 bits hold, some that they do not.
fn vectors() -> impl Strategy<Value = Vec<f64>> {
    let short = any::<f32>().prop_map(f64::from);
    let odd = prop::sample::select(vec![0.0, -0.0, 5e-324, -1e300, 1e-45, 0.1, f64::MAX]);
    let number = prop_oneof![short.clone(), any::<f64>(), odd];
    let finite = |x: &f64| x.is_finite();
    prop_oneof![
        prop::collection::vec(short.prop_filter("finite", finite), 3),
        prop::collection::vec(number.prop_filter("finite", finite), 3),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_document_comes_back_as_it_was(
        before in prop::collection::vec((texts(), values()), 0..4),
        numbers in vectors(),
        after in prop::collection::vec((texts(), values()), 0..4),
        id in prop_oneof![Just(None), values().prop_map(Some), texts().prop_map(|t| Some(t.into()))],
    ) {
        let mut map: Map = before.into_iter().collect();
        map.insert("embedding", vector(&numbers));
        for (key, value) in after {
            if key.as_bytes() != b"embedding" {
                map.insert(key, value);
            }
        }
        if let Some(id) = id {
            map.insert("id", id);
        }
        let wanted = Value::Object(map);
        let (_folder, store) = store();
        create(&store, "c");
        add(&store, "c", wanted.clone());
        let mut back = found(&store, "c", &[1.0, 0.0, 0.0], 5);
        prop_assert_eq!(back.len(), 1);
        let back = back.remove(0);
        prop_assert!(is_same(&back, &wanted), "{:?} became {:?}", wanted, back);
        let usage = store.vector_usage().wait().unwrap();
        prop_assert_eq!(usage.documents, 1);
        store.clear_vectors().wait().unwrap();
        create(&store, "c");
        let usage = store.vector_usage().wait().unwrap();
        prop_assert_eq!((usage.documents, usage.bytes), (0, 1_025));
    }
}

#[test]
fn a_successor_stands_in_the_first_place_of_its_id() {
    let (_folder, kept) = store();
    let memory = MemoryStore::new();
    let stores: [&dyn Store; 2] = [&kept, &memory];
    for store in stores {
        create(store, "c");
        for id in ["a", "b", "c", "b", "d", "b"] {
            add(store, "c", document(id, &[1.0, 0.0]));
        }
        let order = || ids(store, "c", &[1.0, 0.0], 9);
        assert_eq!(order(), ["a", "b", "c", "b", "d", "b"]);
        let upsert = |id| block_on(store.vector_upsert("c".into(), document(id, &[3.0, 0.0])));
        upsert("b").unwrap();
        assert_eq!(order(), ["a", "b", "c", "d"]);
        upsert("e").unwrap();
        let deleted = block_on(store.vector_delete("c".into(), "a".into())).unwrap();
        assert_eq!(deleted, Value::Bool(true));
        add(store, "c", document("a", &[1.0, 0.0]));
        assert_eq!(order(), ["b", "c", "d", "e", "a"]);
    }
    assert_eq!(kept.vector_usage().wait().unwrap().documents, 5);
}

fn filtered(store: &dyn Store, filter: Value) -> Vec<Value> {
    let search = store.vector_search("c".into(), vector(&[1.0, 0.0]), 3.0.into(), filter);
    let found = block_on(search).unwrap();
    let found = found.as_array().unwrap().iter();
    found
        .map(|document| document.get("n").unwrap().clone())
        .collect()
}

#[test]
fn a_filter_keeps_out_others() {
    let (_folder, kept) = store();
    let memory = MemoryStore::new();
    let stores: [&dyn Store; 2] = [&kept, &memory];
    let tag = |n: usize| object(&[("odd", Value::Bool(n % 2 == 1)), ("none", Value::Undefined)]);
    for store in stores {
        create(store, "c");
        for n in 0..300 {
            let embedding = vector(&[1.0, n as f64 / 1_000.0]);
            let members = [("n", n.into()), ("embedding", embedding), ("tag", tag(n))];
            add(store, "c", object(&members));
        }
    }
    let filters = [
        object(&[]),
        Value::Null,
        object(&[("tag", tag(1))]),
        object(&[("n", 250.0.into())]),
        object(&[("n", "250".into())]),
        object(&[("missing", Value::Undefined)]),
        object(&[("embedding", Value::Null)]),
        object(&[("embedding", vector(&[1.0, 0.2])), ("n", 200.0.into())]),
        object(&[("__proto__", object(&[]))]),
    ];
    for filter in filters {
        let [kept, memory] = stores.map(|store| filtered(store, filter.clone()));
        assert_eq!(kept, memory, "{filter:?}");
    }
    assert_eq!(
        filtered(&kept, object(&[("tag", tag(1))])),
        [1, 3, 5].map(Value::from)
    );
    assert_eq!(
        filtered(&kept, object(&[("n", 250.0.into())])),
        [250].map(Value::from)
    );
}
