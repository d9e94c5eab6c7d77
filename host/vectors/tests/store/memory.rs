//! Copies in memory: brought up to date, read anew, dropped, done without. However they
//! came there, what is found is the same.

use crate::{add, block_on, create, document, found, ids, store, vector};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_sqlite::{Database, Durability, SqliteOptions, SqliteStore};
use a99_vectors::{CacheUsage, VectorStore};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

fn delete(store: &VectorStore, id: &str) {
    let gone = block_on(store.vector_delete("c".into(), id.into())).unwrap();
    assert_eq!(gone, Value::Bool(true));
}

fn upsert(store: &VectorStore, id: &str, numbers: &[f64]) {
    block_on(store.vector_upsert("c".into(), document(id, numbers))).unwrap();
}

/// What a store finds, after what others did, is what one finds that knows nothing yet.
fn agrees(store: &VectorStore) -> Vec<Value> {
    let new = VectorStore::open(store.keys().database().path()).unwrap();
    let mine = found(store, "c", &[1.0, 0.1], 1_000);
    assert_eq!(mine, found(&new, "c", &[1.0, 0.1], 1_000));
    assert_eq!(new.cache_usage().loads, 1);
    mine
}

/// One of a thousand directions of a half circle.
fn direction(n: u32) -> [f64; 2] {
    let angle = f64::from(n) * std::f64::consts::PI / 1_000.0;
    [angle.cos(), angle.sin()]
}

fn loads_and_refreshes(store: &VectorStore) -> (u64, u64) {
    let CacheUsage {
        loads, refreshes, ..
    } = store.cache_usage();
    (loads, refreshes)
}

#[test]
fn changes_of_another_process_are_seen_at_once() {
    let (folder, mine) = store();
    let other = VectorStore::open(folder.path().join("a.db")).unwrap();
    create(&mine, "c");
    for n in 0..200 {
        add(&mine, "c", document(&n.to_string(), &[1.0, f64::from(n)]));
    }
    assert_eq!(agrees(&mine).len(), 200);
    assert_eq!(loads_and_refreshes(&mine), (1, 0));
    // Little has changed: only that is read.
    upsert(&other, "7", &[1.0, 0.1]);
    assert_eq!(ids(&mine, "c", &[1.0, 0.1], 1), ["7"]);
    delete(&other, "7");
    add(&other, "c", document("new", &[1.0, 0.11]));
    assert_eq!(ids(&mine, "c", &[1.0, 0.1], 1), ["new"]);
    assert_eq!(agrees(&mine).len(), 200);
    assert_eq!(loads_and_refreshes(&mine), (1, 2));
    // Added and deleted in between: nothing is left of it.
    add(&other, "c", document("brief", &[1.0, 0.1]));
    delete(&other, "brief");
    assert_eq!(agrees(&mine).len(), 200);
    assert_eq!(loads_and_refreshes(&mine), (1, 3));
    // More than the log keeps: all is read.
    for n in 0..150 {
        upsert(&other, &(n % 5).to_string(), &[1.0, f64::from(n) / 7.0]);
    }
    assert_eq!(agrees(&mine).len(), 200);
    assert_eq!(loads_and_refreshes(&mine), (2, 3));
    // A change of many rows at once is not noted row by row.
    for _ in 0..100 {
        add(&other, "c", document("many", &[1.0, 0.1]));
    }
    assert_eq!(agrees(&mine).len(), 300);
    delete(&other, "many");
    assert_eq!(agrees(&mine).len(), 200);
    assert_eq!(loads_and_refreshes(&mine).0, 4);
    // Another one of that name, with vectors of another kind.
    other.clear_vectors().wait().unwrap();
    create(&other, "c");
    assert!(found(&mine, "c", &[1.0, 0.1], 5).is_empty());
    add(&other, "c", document("three", &[1.0, 2.0, 3.0]));
    assert_eq!(ids(&mine, "c", &[1.0, 0.0, 0.0], 5), ["three"]);
    let two = mine.vector_search("c".into(), vector(&[1.0, 0.0]), Value::Null, Value::Null);
    assert!(block_on(two).is_err());
    // Nothing has changed: nothing is read.
    let before = mine.cache_usage();
    assert_eq!(ids(&mine, "c", &[1.0, 0.0, 0.0], 5), ["three"]);
    assert_eq!(mine.cache_usage(), before);
}

#[test]
fn copies_are_dropped_and_done_without() {
    let (_folder, store) = store();
    for collection in ["a", "b", "c"] {
        create(&store, collection);
        for n in 0..40 {
            add(
                &store,
                collection,
                document(&n.to_string(), &[1.0, f64::from(n)]),
            );
        }
    }
    let search = |collection| ids(&store, collection, &[1.0, 9.4], 7);
    let wanted = search("a");
    assert_eq!(wanted[0], "9");
    let one = store.cache_usage().bytes;
    assert!(one > 40 * 2 * 5, "{one}");
    for _ in 0..2 {
        assert_eq!([search("b"), search("c")], [wanted.clone(), wanted.clone()]);
    }
    assert_eq!(store.cache_usage().loads, 3);
    // Room for two.
    store.set_cache_limit(2 * one);
    assert_eq!(store.cache_usage().collections, 2);
    for collection in ["a", "b", "a", "c"] {
        assert_eq!(search(collection), wanted);
        assert!(store.cache_usage().bytes <= 2 * one);
    }
    assert_eq!(store.cache_usage().loads, 6);
    assert_eq!(store.cache_usage().scans, 0);
    // Room for none: each search reads all.
    for limit in [one / 2, 0] {
        store.set_cache_limit(limit);
        assert_eq!(search("a"), wanted);
        assert!(store.cache_usage().bytes <= limit);
    }
    assert_eq!(store.cache_usage().scans, 2);
}

#[test]
fn a_copy_that_outgrows_the_limit_is_done_without() {
    let (_folder, store) = store();
    create(&store, "c");
    add(&store, "c", document("0", &[1.0, 0.0]));
    store.set_cache_limit(12_000);
    for n in 1..300 {
        add(&store, "c", document(&n.to_string(), &direction(n)));
        assert_eq!(ids(&store, "c", &direction(n), 1), [n.to_string()]);
        assert!(store.cache_usage().bytes <= 12_000);
    }
    let usage = store.cache_usage();
    assert!(usage.refreshes > 10 && usage.scans > 10, "{usage:?}");
}

#[test]
fn pieces_find_what_a_copy_finds() {
    // Rows of 40 KiB: a piece has about two hundred.
    let numbers = |n: usize| {
        let mut numbers = vec![0.0; 1 << 13];
        numbers[n % 7] = 1.0;
        numbers[7] = (n * 37 % 101) as f64 / 50.0;
        numbers
    };
    let (_folder, store) = store();
    create(&store, "c");
    for n in 0..450 {
        add(&store, "c", document(&n.to_string(), &numbers(n)));
    }
    let query = numbers(3);
    let by_copy = ids(&store, "c", &query, 30);
    assert_eq!((by_copy.len(), store.cache_usage().scans), (30, 0));
    store.set_cache_limit(1 << 20);
    assert_eq!(ids(&store, "c", &query, 30), by_copy);
    assert_eq!(store.cache_usage().scans, 1);
}

#[test]
fn a_search_that_is_given_up_leaves_a_store_that_works() {
    let (_folder, store) = store();
    create(&store, "c");
    for n in 0..500 {
        add(&store, "c", document(&n.to_string(), &[1.0, f64::from(n)]));
    }
    for _ in 0..50 {
        let search = store.vector_search("c".into(), vector(&[1.0, 3.0]), 1.0.into(), Value::Null);
        let mut search = pin!(search);
        let mut cx = Context::from_waker(Waker::noop());
        drop(search.as_mut().poll(&mut cx));
    }
    assert_eq!(ids(&store, "c", &[1.0, 3.0], 1), ["3"]);
}

#[test]
fn searches_and_changes_at_once_agree() {
    let folder = tempfile::tempdir().unwrap();
    // A disk that is slow to sync would leave one of the writers no turn for a minute.
    let options = SqliteOptions {
        durability: Durability::Process,
        ..SqliteOptions::default()
    };
    let [mine, other] = [0, 1].map(|_| {
        let database = Database::open(folder.path().join("a.db"), options.clone()).unwrap();
        VectorStore::on(SqliteStore::on(database).unwrap()).unwrap()
    });
    create(&mine, "c");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers = [(&mine, 0), (&other, 1)].map(|(store, part)| {
            scope.spawn(move || {
                for n in 0..150 {
                    let n = 2 * n + part;
                    add(store, "c", document(&n.to_string(), &direction(n)));
                    // What was acknowledged is found.
                    assert_eq!(ids(store, "c", &direction(n), 1), [n.to_string()]);
                }
            })
        });
        for store in [&mine, &other, &mine] {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut seen = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let now = found(store, "c", &[1.0, 0.1], 1_000).len();
                    assert!(now >= seen, "{now} after {seen}");
                    seen = now;
                }
            });
        }
        let ends = writers.map(|writer| writer.join());
        is_over.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(Result::is_ok));
    });
    assert_eq!(agrees(&mine).len(), 300);
}
