//! The laws of stores, and the errors of the store in memory.

use crate::common::conforms;
use crate::{add, block_on, create, document, ids, object, store, text, vector};
use a99_capabilities::{MAX_KEY_BYTES, MemoryStore, Store, StoreMethod, suite};
use a99_core::value::Value;
use a99_sqlite::SqliteStore;
use a99_vectors::{MAX_DIMENSION, VectorStore};

#[test]
fn vector_store_conforms() {
    let (_folder, store) = store();
    conforms(&store);
    conforms(&store.namespace("tenant"));
    store.set_cache_limit(0);
    block_on(suite::vectors(&store)).unwrap();
    block_on(suite::vector_changes(&store)).unwrap();
    assert!(store.supports(StoreMethod::QueryPredicate));
    store.keys().database().check().wait().unwrap();
}

#[test]
fn what_is_added_is_there_in_the_next_process() {
    let (folder, store) = store();
    let tenant = store.namespace("tenant");
    create(&tenant, "c");
    add(&tenant, "c", document("a", &[1.0, 2.0]));
    let usage = tenant.vector_usage().wait().unwrap();
    store.keys().database().clone().close();
    let gone = tenant.vector_add("c".into(), document("b", &[1.0, 2.0]));
    assert_eq!(text(&block_on(gone).unwrap_err()), "The store was closed.");
    // On a file that had keys alone, too.
    let keys = SqliteStore::open(folder.path().join("a.db")).unwrap();
    let tenant = VectorStore::on(keys.namespace("tenant")).unwrap();
    assert_eq!(ids(&tenant, "c", &[1.0, 0.0], 5), ["a"]);
    assert_eq!(tenant.vector_usage().wait().unwrap(), usage);
    assert_eq!(tenant.cache_usage().collections, 1);
}

/// The error of a reply.
fn error(reply: a99_capabilities::Reply<'_>) -> String {
    text(&block_on(reply).unwrap_err())
}

#[test]
fn n16_errors_are_those_of_the_store_in_memory() {
    let (_folder, kept) = store();
    let memory = MemoryStore::new();
    let stores: [&dyn Store; 2] = [&kept, &memory];
    let long = "x".repeat(MAX_KEY_BYTES + 1);
    let names: [Value; 4] = ["none".into(), 7.0.into(), long.as_str().into(), Value::Null];
    let errors = stores.map(|store| {
        create(store, "c");
        add(store, "c", document("a", &[1.0, 0.0]));
        let mut errors = Vec::new();
        for name in &names {
            let name = || name.clone();
            let ask = |k: Value| store.vector_search(name(), vector(&[1.0]), k, Value::Null);
            errors.push(error(ask(Value::Null)));
            errors.push(error(ask("k".into())));
            errors.push(error(store.vector_add(name(), document("a", &[1.0]))));
            errors.push(error(store.vector_upsert(name(), Value::Null)));
            errors.push(error(store.vector_delete(name(), "a".into())));
        }
        for bad in [
            Value::Null,
            vector(&[1.0]),
            object(&[]),
            object(&[("embedding", Value::Null)]),
            object(&[("embedding", vector(&[]))]),
            object(&[("embedding", vector(&[1.0, f64::NAN]))]),
            object(&[("embedding", vector(&[1.0, 0.0, 0.0]))]),
            object(&[("embedding", vector(&vec![0.0; MAX_DIMENSION + 1]))]),
        ] {
            errors.push(error(store.vector_add("c".into(), bad)));
        }
        for id in [Value::Undefined, 7.0.into()] {
            let unnamed = object(&[("id", id.clone()), ("embedding", vector(&[1.0, 0.0]))]);
            errors.push(error(store.vector_upsert("c".into(), unnamed)));
            errors.push(error(store.vector_delete("c".into(), id)));
        }
        for dimension in [0.0, 1.5, f64::NAN, MAX_DIMENSION as f64 + 1.0] {
            let made = store.create_collection("d".into(), Value::Null, dimension.into());
            errors.push(error(made));
        }
        let ask = |vector, k, filter| store.vector_search("c".into(), vector, k, filter);
        let two = || vector(&[1.0, 0.0]);
        errors.push(error(ask("1, 0".into(), Value::Null, Value::Null)));
        errors.push(error(ask(vector(&[1.0]), Value::Null, Value::Null)));
        errors.push(error(ask(two(), f64::NAN.into(), Value::Null)));
        errors.push(error(ask(two(), "3".into(), Value::Null)));
        errors.push(error(ask(two(), Value::Null, "id".into())));
        assert_eq!(ids(store, "c", &[1.0, 0.0], 5), ["a"]);
        errors
    });
    assert_eq!(errors[0], errors[1]);
}

#[test]
fn d14_making_a_collection_again_keeps_what_it_has() {
    let (folder, kept) = store();
    let memory = MemoryStore::new();
    let stores: [&dyn Store; 2] = [&kept, &memory];
    let make = |store: &dyn Store, dimension: Value| {
        let made = store.create_collection("c".into(), Value::Null, dimension);
        block_on(made).map_err(|error| error.to_string())
    };
    for store in stores {
        make(store, Value::Null).unwrap();
        make(store, 2.0.into()).unwrap();
        // The dimension was open, and is now that.
        assert!(make(store, 3.0.into()).is_err());
        add(store, "c", document("a", &[1.0, 0.0]));
        for dimension in [Value::Null, 2.0.into()] {
            make(store, dimension).unwrap();
            assert_eq!(ids(store, "c", &[1.0, 0.0], 5), ["a"]);
        }
        let other = make(store, 3.0.into()).unwrap_err();
        assert!(other.contains("of 2 numbers, not of 3"), "{other}");
        assert_eq!(ids(store, "c", &[1.0, 0.0], 5), ["a"]);
    }
    drop(kept);
    let again = VectorStore::open(folder.path().join("a.db")).unwrap();
    make(&again, 2.0.into()).unwrap();
    assert_eq!(ids(&again, "c", &[1.0, 0.0], 5), ["a"]);
}

#[test]
fn n16_clamps_are_those_of_the_store_in_memory() {
    let (_folder, kept) = store();
    let memory = MemoryStore::new();
    let stores: [&dyn Store; 2] = [&kept, &memory];
    let counts = stores.map(|store| {
        create(store, "c");
        for n in 0..1_003 {
            add(store, "c", document(&n.to_string(), &[1.0, f64::from(n)]));
        }
        [
            Value::Null,
            1e9.into(),
            7.9.into(),
            f64::INFINITY.into(),
            (-3.0).into(),
        ]
        .map(|k| {
            let search = store.vector_search("c".into(), vector(&[0.0, 1.0]), k, Value::Null);
            block_on(search).unwrap().as_array().unwrap().len()
        })
    });
    assert_eq!(counts, [[5, 1_000, 7, 1_000, 0]; 2]);
}

#[test]
fn huge_and_tiny_vectors_have_directions() {
    let (_folder, store) = store();
    create(&store, "c");
    add(&store, "c", document("huge", &[1e300, 1e300]));
    add(&store, "c", document("tiny", &[5e-324, 0.0]));
    add(&store, "c", document("zero", &[0.0, -0.0]));
    add(&store, "c", document("back", &[-1e-300, 0.0]));
    let order = ["tiny", "huge", "zero", "back"];
    for scale in [1.0, 1e300, 5e-324] {
        assert_eq!(ids(&store, "c", &[scale, 0.0], 5), order);
    }
}
