//! The laws of stores.

use crate::{block_on, open, store};
use a99_capabilities::{FixedClock, Store, StoreMethod, suite};
use a99_postgres::PostgresStore;
use std::sync::Arc;

fn conforms(store: &PostgresStore) {
    block_on(suite::key_value(store)).unwrap();
    block_on(suite::keys(store)).unwrap();
    block_on(suite::documents(store)).unwrap();
    let clock = Arc::new(FixedClock::new(1_000.0));
    let store = store.with_clock(clock.clone());
    block_on(suite::expiry(&store, &|now| clock.set(now))).unwrap();
}

#[test]
fn postgres_store_conforms() {
    let (_database, store) = store();
    conforms(&store);
    conforms(&store.namespace("tenant"));
    assert!(store.supports(StoreMethod::QueryPredicate));
    assert!(!store.supports(StoreMethod::VectorSearch));
}

#[test]
fn postgres_store_conforms_by_a_socket() {
    let database = crate::certificates::shared().database();
    conforms(&open(&database.url_of_socket()).unwrap());
}

#[test]
fn what_is_stored_is_there_in_the_next_process() {
    let (database, store) = store();
    block_on(store.set("k".into(), 5.0.into())).unwrap();
    let usage = store.usage().wait().unwrap();
    store.clone().close();
    let error = block_on(store.get("k".into())).unwrap_err();
    assert_eq!(crate::text(&error), "The store was closed.");
    drop(store);
    let store = open(&database.url()).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 5.0.into());
    assert_eq!(store.usage().wait().unwrap(), usage);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_of_a_runtime_use_it_at_once() {
    let (_database, store) = tokio::task::spawn_blocking(store).await.unwrap();
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                for round in 0..5 {
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
    assert_eq!(store.usage().await.unwrap().keys, 320);
}
