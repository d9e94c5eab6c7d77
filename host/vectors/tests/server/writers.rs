//! Many who write and search at once, over connections of their own.

use crate::{counted, create, document, ids, open, shared, vector};
use a99_capabilities::{Store, block_on};
use a99_core::value::Value;
use std::thread;

/// Documents that each writer adds.
const EACH: usize = 40;

#[test]
fn copies_keep_up_with_all_who_write() {
    let database = shared().database();
    let watcher = open(&database);
    create(&watcher, "c");
    thread::scope(|scope| {
        for writer in 0..4 {
            let store = open(&database);
            scope.spawn(move || {
                for n in 0..EACH {
                    let id = format!("{writer}/{n}");
                    let numbers = [1.0 + n as f64, writer as f64];
                    block_on(store.vector_upsert("c".into(), document(&id, &numbers))).unwrap();
                    // One's own write is found by the next search.
                    let found = ids(&store, "c", &numbers, 1_000);
                    assert!(found.contains(&id), "{id}");
                    if n % 4 == 0 {
                        let gone = store.vector_delete("c".into(), id.as_str().into());
                        assert_eq!(block_on(gone).unwrap(), Value::Bool(true));
                        assert!(!ids(&store, "c", &numbers, 1_000).contains(&id));
                    }
                }
            });
        }
        let watcher = &watcher;
        scope.spawn(move || {
            for _ in 0..EACH {
                let found = ids(watcher, "c", &[1.0, 1.0], 1_000);
                let mut once = found.clone();
                once.sort();
                once.dedup();
                assert_eq!(once.len(), found.len());
            }
        });
    });
    let left = ids(&watcher, "c", &[1.0, 1.0], 1_000);
    assert_eq!(left.len(), 4 * EACH * 3 / 4);
    assert!(watcher.cache_usage().refreshes > 0);
    counted(&database);
}

#[test]
fn a_collection_larger_than_a_message_is_read_whole() {
    let database = shared().database();
    let store = open(&database);
    create(&store, "c");
    let add = |n: usize| {
        let numbers: Vec<f64> = (0..64).map(|i| ((n * 31 + i * 7) % 101) as f64).collect();
        block_on(store.vector_add("c".into(), document(&n.to_string(), &numbers))).unwrap();
    };
    (0..700).for_each(add);
    let query: Vec<f64> = (0..64).map(|i| f64::from(i % 5)).collect();
    let wanted = ids(&store, "c", &query, 1_000);
    assert_eq!(wanted.len(), 700);
    let usage = store.cache_usage();
    assert_eq!((usage.loads, usage.scans), (1, 0));
    // In pieces, by another one.
    let other = open(&database);
    other.set_cache_limit(0);
    assert_eq!(ids(&other, "c", &query, 1_000), wanted);
    assert_eq!(other.cache_usage().scans, 1);
    // Whoever gives a search up leaves nothing that is in the way.
    for _ in 0..20 {
        drop(other.vector_search("c".into(), vector(&query), 5.0.into(), Value::Null));
    }
    assert_eq!(ids(&other, "c", &query, 3), wanted[..3]);
}
