//! Vectors on a server that the tests start: the laws of stores, and what is the same as in
//! files.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![cfg(unix)]

#[path = "../../../postgres/tests/server/cluster.rs"]
#[allow(dead_code, reason = "the tests of the server need more of it")]
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod twins;
mod writers;

use a99_capabilities::{Store, StoreMethod, block_on, suite};
use a99_core::value::Value;
use a99_postgres::{PostgresCode, PostgresOptions};
use a99_vectors::{PostgresVectorStore, VectorLimits, VectorUsage};
use cluster::{Cluster, Database};
use common::{conforms, create, document, ids, object, vector};
use std::sync::OnceLock;

fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(|_| String::new()))
}

fn open(database: &Database) -> PostgresVectorStore {
    let options = PostgresOptions::of_url(&database.url()).unwrap();
    PostgresVectorStore::connect(options).unwrap()
}

/// A store in a database of the test.
fn store() -> (Database, PostgresVectorStore) {
    let database = shared().database();
    let store = open(&database);
    (database, store)
}

/// What triggers have counted is what there is.
fn counted(database: &Database) {
    let sum = database.sql(
        "SET search_path TO agent99;
         SELECT (SELECT count(*) FROM vector_document)
             = (SELECT sum(documents) FROM vector_namespace)
         AND (SELECT coalesce(sum(length(embedding) + octet_length(value)
             + coalesce(length(id), 0) + 128), 0) FROM vector_document)
             + (SELECT coalesce(sum(length(name) + 1024), 0) FROM vector_collection)
             = (SELECT sum(bytes) FROM vector_namespace)
         AND NOT EXISTS (SELECT 1 FROM vector_collection AS c WHERE documents <>
             (SELECT count(*) FROM vector_document WHERE collection = c.id))",
    );
    assert_eq!(sum, "t");
}

#[test]
fn vector_store_on_a_server_conforms() {
    let (database, store) = store();
    conforms(&store);
    conforms(&store.namespace("tenant"));
    store.set_cache_limit(0);
    block_on(suite::vectors(&store)).unwrap();
    block_on(suite::vector_changes(&store)).unwrap();
    assert!(store.supports(StoreMethod::VectorSearch));
    counted(&database);
}

#[test]
fn what_is_added_is_there_for_the_next_who_connects() {
    let (database, store) = store();
    let tenant = store.namespace("tenant");
    create(&tenant, "c");
    block_on(tenant.vector_add("c".into(), document("a", &[1.0, 2.0]))).unwrap();
    let usage = tenant.vector_usage().wait().unwrap();
    store.keys().clone().close();
    let gone = tenant.vector_add("c".into(), document("b", &[1.0, 2.0]));
    let error = block_on(gone).unwrap_err();
    assert_eq!(error.message.to_string(), "The store was closed.");
    let tenant = open(&database).namespace("tenant");
    assert_eq!(ids(&tenant, "c", &[1.0, 0.0], 5), ["a"]);
    assert_eq!(tenant.vector_usage().wait().unwrap(), usage);
    tenant.clear_vectors().wait().unwrap();
    assert_eq!(
        tenant.vector_usage().wait().unwrap(),
        VectorUsage::default()
    );
    counted(&database);
}

#[test]
fn tables_of_a_later_version_are_refused() {
    let (database, store) = store();
    drop(store);
    database.sql("UPDATE agent99.a99_component SET version = 2 WHERE name = 'vectors'");
    let options = PostgresOptions::of_url(&database.url()).unwrap();
    let error = PostgresVectorStore::connect(options).unwrap_err();
    assert_eq!(error.code(), PostgresCode::Newer);
    assert!(
        error.to_string().contains("vectors have version 2"),
        "{error}"
    );
    assert!(error.to_string().contains(&database.name), "{error}");
}

#[test]
fn rows_that_are_no_vectors_are_told() {
    let (database, store) = store();
    create(&store, "c");
    block_on(store.vector_add("c".into(), document("a", &[1.0, 2.0]))).unwrap();
    for damage in [
        "UPDATE agent99.vector_document SET embedding = 'abc'",
        "UPDATE agent99.vector_document SET value = '{'",
        "UPDATE agent99.vector_document SET embedding = '\\x000080ff00000000'",
        "UPDATE agent99.vector_collection SET dimension = 0",
    ] {
        database.sql(damage);
        let fresh = open(&database);
        let search = fresh.vector_search("c".into(), vector(&[1.0, 0.0]), 5.0.into(), Value::Null);
        let error = block_on(search).unwrap_err().message.to_string();
        assert_eq!(error, "The store is damaged.", "{damage}");
    }
}

#[test]
fn names_and_ids_are_longer_than_an_index_takes() {
    let (database, store) = store();
    let long = |end: &str| format!("{}{end}", "n".repeat(60_000));
    for end in ["a", "b"] {
        let tenant = store.namespace(long(end).as_str());
        for collection in ["c", "d"] {
            let name = long(collection);
            create(&tenant, &name);
            for id in ["1", "2"] {
                let document = document(&long(id), &[1.0, 2.0]);
                for _ in 0..2 {
                    let set = tenant.vector_upsert(name.as_str().into(), document.clone());
                    block_on(set).unwrap();
                }
            }
            let gone = tenant.vector_delete(name.as_str().into(), long("1").into());
            assert_eq!(block_on(gone).unwrap(), Value::Bool(true));
            assert_eq!(ids(&tenant, &name, &[1.0, 0.0], 5), [long("2")]);
        }
        assert_eq!(tenant.vector_usage().wait().unwrap().documents, 2);
    }
    counted(&database);
}

#[test]
fn n19_a_namespace_holds_no_more_than_its_quota() {
    let (database, store) = store();
    let mine = store.namespace("a").with_vector_limits(VectorLimits {
        max_bytes: 3_000,
        max_documents: 3,
        ..VectorLimits::default()
    });
    create(&mine, "c");
    let note = |id: &str, length: usize| {
        object(&[
            ("id", id.into()),
            ("embedding", vector(&[1.0])),
            ("text", "x".repeat(length).into()),
        ])
    };
    let large = block_on(mine.vector_add("c".into(), note("a", 2_000))).unwrap_err();
    assert_eq!(
        large.message.to_string(),
        "Store is full: the limit is 3000 bytes"
    );
    for id in ["a", "b", "c"] {
        block_on(mine.vector_add("c".into(), note(id, 10))).unwrap();
    }
    let many = block_on(mine.vector_add("c".into(), note("d", 10))).unwrap_err();
    assert_eq!(
        many.message.to_string(),
        "Store is full: the limit is 3 documents"
    );
    block_on(mine.vector_upsert("c".into(), note("a", 20))).unwrap();
    assert_eq!(mine.vector_usage().wait().unwrap().documents, 3);
    counted(&database);
}
