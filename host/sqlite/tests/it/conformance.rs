//! The laws of stores.

use crate::{block_on, store};
use a99_capabilities::{FixedClock, Store, StoreMethod, suite};
use a99_sqlite::SqliteStore;
use std::sync::Arc;

fn conforms(store: &SqliteStore) {
    block_on(suite::key_value(store)).unwrap();
    block_on(suite::keys(store)).unwrap();
    block_on(suite::documents(store)).unwrap();
    let clock = Arc::new(FixedClock::new(1_000.0));
    let store = store.with_clock(clock.clone());
    block_on(suite::expiry(&store, &|now| clock.set(now))).unwrap();
}

#[test]
fn sqlite_store_conforms() {
    let (_folder, store) = store();
    conforms(&store);
    conforms(&store.namespace("tenant"));
    assert!(store.supports(StoreMethod::QueryPredicate));
    assert!(!store.supports(StoreMethod::VectorSearch));
    store.database().check().wait().unwrap();
}

#[test]
fn what_is_stored_is_there_in_the_next_process() {
    let (folder, store) = store();
    block_on(store.set("k".into(), 5.0.into())).unwrap();
    let usage = store.usage().wait().unwrap();
    store.database().clone().close();
    let error = block_on(store.get("k".into())).unwrap_err();
    assert_eq!(crate::text(&error), "The store was closed.");
    drop(store);
    // All is in the one file.
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.db"]);
    let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 5.0.into());
    assert_eq!(store.usage().wait().unwrap(), usage);
}

#[test]
fn closing_leaves_one_file() {
    for _ in 0..30 {
        let (folder, store) = store();
        block_on(store.set("k".into(), 5.0.into())).unwrap();
        store.database().clone().close();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_of_a_runtime_use_it_at_once() {
    let (_folder, store) = store();
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                for round in 0..10 {
                    let key = format!("{n}/{round}");
                    store.set(key.as_str().into(), n.into()).await.unwrap();
                    assert_eq!(store.get(key.as_str().into()).await.unwrap(), n.into());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.usage().await.unwrap().keys, 640);
}
