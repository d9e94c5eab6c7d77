//! A store in a file on the disk: `set`, `get`, `list`, `compareAndSet` and `query` among
//! ten thousand keys, in both durabilities where it matters. What waits for the disk tells
//! of the disk.

use a99_sqlite::{Durability, SqliteOptions, SqliteStore};
use agent99::Value;
use agent99::capabilities::Store;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::cell::Cell;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use tokio::runtime::Runtime;

const KEYS: usize = 10_000;

/// Writes that are asked for at once.
const AT_ONCE: usize = 64;

fn document(n: usize) -> Value {
    let text = "x".repeat(80);
    // Never what is there already, which would be no write.
    let members = [
        ("total", Value::from(n % 100)),
        ("n", n.into()),
        ("text", text.into()),
    ];
    Value::Object(members.into_iter().collect())
}

fn key(n: usize) -> Value {
    format!("docs/{:05}", n % KEYS).into()
}

/// Sets many keys at once.
async fn set_all(store: &SqliteStore, from: usize, to: usize) {
    let tasks: Vec<_> = (from..to)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.set(key(n), document(n)).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic").expect("it is set");
    }
}

fn filled(runtime: &Runtime, durability: Durability) -> SqliteStore {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("bench-{durability:?}.db"));
    for end in ["", "-wal", "-shm"] {
        let mut name = path.clone().into_os_string();
        name.push(end);
        // Of a run before.
        drop(fs::remove_file(name));
    }
    let options = SqliteOptions {
        durability,
        ..SqliteOptions::default()
    };
    let database = a99_sqlite::Database::open(&path, options).expect("a database");
    let store = SqliteStore::on(database).expect("a store");
    runtime.block_on(set_all(&store, 0, KEYS));
    store
}

fn sqlite(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let next = Cell::new(KEYS);
    let more = |by: usize| next.replace(next.get() + by);
    for durability in [Durability::Power, Durability::Process] {
        let store = filled(&runtime, durability);
        let mut group = c.benchmark_group(format!("sqlite/{durability:?}"));
        group.bench_function("set", |b| {
            b.iter(|| {
                let n = more(1);
                runtime
                    .block_on(store.set(key(n), document(n)))
                    .expect("it is set")
            });
        });
        group.bench_function("compare_and_set", |b| {
            let mut last = Value::Undefined;
            runtime
                .block_on(store.delete("swap".into()))
                .expect("it is deleted");
            b.iter(|| {
                let new = Value::from(more(1));
                let old = std::mem::replace(&mut last, new.clone());
                let swap = store.compare_and_set("swap".into(), old, new, None);
                assert_eq!(runtime.block_on(swap), Ok(true.into()));
            });
        });
        group.throughput(Throughput::Elements(AT_ONCE as u64));
        group.bench_function("set_64_at_once", |b| {
            b.iter(|| {
                let n = more(AT_ONCE);
                runtime.block_on(set_all(&store, n, n + AT_ONCE));
            });
        });
    }

    let store = filled(&runtime, Durability::Power);
    let mut group = c.benchmark_group("sqlite");
    group.bench_function("get", |b| {
        b.iter(|| black_box(runtime.block_on(store.get(key(more(7_919))))));
    });
    group.bench_function("list_100", |b| {
        let after = || key(more(7_919));
        b.iter(|| black_box(runtime.block_on(store.list("docs/".into(), after(), 100.into()))));
    });
    group.bench_function("query_100_of_10000", |b| {
        let members = [
            ("collection", Value::from("docs")),
            (
                "where",
                Value::Object([("total", Value::from(7))].into_iter().collect()),
            ),
        ];
        let query = Value::Object(members.into_iter().collect());
        b.iter(|| black_box(runtime.block_on(store.query(query.clone()))));
    });
}

criterion_group!(benches, sqlite);
criterion_main!(benches);
