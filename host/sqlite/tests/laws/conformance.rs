//! Conformance suite of all stores, and concurrent tasks.

use crate::{Tested, block_on, store};
use a99_capabilities::{FixedClock, Store, StoreMethod, suite};
use std::sync::Arc;

pub(crate) fn conforms(store: &Tested) {
    block_on(suite::key_value(store)).unwrap();
    block_on(suite::keys(store)).unwrap();
    block_on(suite::documents(store)).unwrap();
    let clock = Arc::new(FixedClock::new(1_000.0));
    let store = store.with_clock(clock.clone());
    block_on(suite::expiry(&store, &|now| clock.set(now))).unwrap();
}

#[test]
fn store_conforms() {
    let (_kept, store) = store();
    conforms(&store);
    conforms(&store.namespace("tenant"));
    assert!(store.supports(StoreMethod::QueryPredicate));
    assert!(!store.supports(StoreMethod::VectorSearch));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_of_a_runtime_use_it_at_once() {
    let (_kept, store) = tokio::task::spawn_blocking(store).await.unwrap();
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
