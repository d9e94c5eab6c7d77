//! Namespaces: nobody finds, changes or counts what is another's.

use crate::{add, block_on, create, document, ids, store};
use a99_capabilities::Store;
use a99_core::text::Text;
use a99_core::value::Value;
use a99_vectors::{VectorStore, VectorUsage};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Names that are easily taken for each other: separators, case, other forms of the same
/// letter, what looks like SQL, nothing, half of a pair.
fn names() -> impl Strategy<Value = Text> {
    let parts = [
        "",
        "a",
        "A",
        "/",
        "\0",
        ":",
        "%",
        "_",
        "*",
        "'",
        "\"",
        "\\",
        " ",
        "0",
        "null",
        "\u{e9}",
        "e\u{301}",
        "\u{200b}",
        "\u{10ffff}",
    ];
    let part = prop_oneof![
        8 => prop::sample::select(parts.to_vec()).prop_map(|part| part.as_bytes().to_vec()),
        1 => Just(vec![0xed, 0xa0, 0x80]),
        1 => any::<String>().prop_map(String::into_bytes),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| Text::from_wtf8(parts.concat()))
}

/// A place: a namespace, of which `None` is the store itself, and a collection.
type Place = (Option<Text>, Text);

fn open(store: &VectorStore, name: Option<&Text>) -> VectorStore {
    match name {
        Some(name) => store.namespace(name.clone()),
        None => store.clone(),
    }
}

fn found(store: &VectorStore, collection: &Text) -> Option<Vec<Value>> {
    let query = crate::vector(&[1.0, 0.0]);
    let k = 100.0.into();
    let found = store.vector_search(collection.clone().into(), query, k, Value::Null);
    Some(block_on(found).ok()?.as_array().unwrap().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn n19_collections_of_namespaces_are_apart(
        places in prop::collection::vec((prop::option::of(names()), names()), 1..10),
        gone in 0..10usize,
        elsewhere in names(),
    ) {
        let (_folder, store) = store();
        let mut wanted: BTreeMap<Place, Vec<Value>> = BTreeMap::new();
        for (n, (name, collection)) in places.iter().enumerate() {
            let tenant = open(&store, name.as_ref());
            let name_of = || Value::from(collection.clone());
            let known = wanted.entry((name.clone(), collection.clone())).or_default();
            if known.is_empty() {
                prop_assert_eq!(found(&tenant, collection), None);
                block_on(tenant.create_collection(name_of(), Value::Null, Value::Null)).unwrap();
            }
            // The same ids everywhere.
            let document = document(&known.len().to_string(), &[1.0, n as f64]);
            block_on(tenant.vector_add(name_of(), document.clone())).unwrap();
            known.push(document);
        }
        let removed = places[gone % places.len()].clone();
        let tenant = open(&store, removed.0.as_ref());
        let deleted = tenant.vector_delete(removed.1.clone().into(), "0".into());
        prop_assert_eq!(block_on(deleted).unwrap(), Value::Bool(true));
        wanted.entry(removed).or_default().remove(0);
        for ((name, collection), documents) in &wanted {
            let tenant = open(&store, name.as_ref());
            let mut found = found(&tenant, collection).unwrap();
            // By id, of which there are few.
            found.sort_by_key(|document| document.get("id").unwrap().as_str().map(str::to_owned));
            prop_assert_eq!(&found, documents);
            let all = wanted.iter().filter(|((other, _), _)| other == name);
            let count: usize = all.map(|(_, documents)| documents.len()).sum();
            let usage = tenant.vector_usage().wait().unwrap();
            prop_assert_eq!(usage.documents, count as u64);
        }
        if wanted.keys().all(|(name, _)| name.as_ref() != Some(&elsewhere)) {
            let empty = store.namespace(elsewhere);
            prop_assert_eq!(empty.vector_usage().wait().unwrap(), VectorUsage::default());
            prop_assert_eq!(found(&empty, &places[0].1), None);
        }
    }
}

#[test]
fn n19_what_is_cleared_is_ones_own() {
    let (_folder, store) = store();
    let (mine, other) = (store.namespace("a"), store.namespace("b"));
    for tenant in [&mine, &other] {
        for collection in ["c", "d"] {
            create(tenant, collection);
            add(tenant, collection, document("1", &[1.0, 0.0]));
        }
        block_on(tenant.set("c".into(), 7.0.into())).unwrap();
        assert_eq!(ids(tenant, "c", &[1.0, 0.0], 5), ["1"]);
    }
    mine.clear_vectors().wait().unwrap();
    assert_eq!(found(&mine, &"c".into()), None);
    assert_eq!(ids(&other, "c", &[1.0, 0.0], 5), ["1"]);
    // Keys are not collections.
    assert_eq!(block_on(mine.get("c".into())).unwrap(), 7.0.into());
    // What is made again has nothing of before.
    create(&mine, "c");
    assert_eq!(found(&mine, &"c".into()), Some(Vec::new()));
}
