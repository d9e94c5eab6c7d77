//! Collections of vectors in a file: adding, opening, searching.
//!
//! `cargo bench -p a99-benches --features sqlite --bench vector_store` fills a file of a temporary folder with
//! 100,000 documents of 384 numbers and a text of 300 bytes, 64 additions at a time, as a
//! host with many agents would; then it prints what the file takes, what the first search
//! takes, which reads the vectors, and what later ones take.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark ends at what it does not expect"
)]

use a99_core::value::{Map, Value};
use a99_vectors::VectorStore;
use agent99::capabilities::Store;
use std::time::{Duration, Instant};

const DOCUMENTS: usize = 100_000;
const DIMENSION: usize = 384;
const AT_ONCE: usize = 64;

/// Searches of which the median counts.
const TURNS: usize = 101;

struct Source(u64);

impl Source {
    fn number(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        f64::from((self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0)
    }

    fn vector(&mut self) -> Value {
        let numbers = (0..DIMENSION).map(|_| Value::Number(self.number()));
        Value::Array(numbers.collect())
    }

    fn document(&mut self, n: usize) -> Value {
        let mut members = Map::new();
        members.insert("id", n.to_string());
        members.insert("odd", Value::Bool(n % 2 == 1));
        members.insert("embedding", self.vector());
        members.insert("text", "a note of some words ".repeat(15));
        Value::Object(members)
    }
}

async fn fill(store: &VectorStore, source: &mut Source) {
    let name = || Value::from("notes");
    let made = store.create_collection(name(), Value::Null, Value::Null);
    made.await.unwrap();
    for first in (0..DOCUMENTS).step_by(AT_ONCE) {
        let last = DOCUMENTS.min(first + AT_ONCE);
        let adds: Vec<_> = (first..last)
            .map(|n| {
                let (store, document) = (store.clone(), source.document(n));
                tokio::spawn(async move { store.vector_add("notes".into(), document).await })
            })
            .collect();
        for add in adds {
            add.await.unwrap().unwrap();
        }
    }
}

async fn search(store: &VectorStore, source: &mut Source, filter: Value) -> Duration {
    let query = source.vector();
    let start = Instant::now();
    let found = store.vector_search("notes".into(), query, 10.0.into(), filter);
    assert_eq!(found.await.unwrap().as_array().unwrap().len(), 10);
    start.elapsed()
}

async fn median(store: &VectorStore, source: &mut Source, filter: &Value) -> Duration {
    let mut times = Vec::new();
    for _ in 0..TURNS {
        times.push(search(store, source, filter.clone()).await);
    }
    times.sort_unstable();
    times[TURNS / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut source = Source(88_172_645_463_325_252);
    let store = VectorStore::open(&path).unwrap();
    let start = Instant::now();
    fill(&store, &mut source).await;
    let rate = DOCUMENTS as f64 / start.elapsed().as_secs_f64();
    println!("adding: {rate:.0} documents a second, {AT_ONCE} at a time");
    store.keys().database().clone().close();
    let mib = std::fs::metadata(&path).unwrap().len() >> 20;
    println!("file: {mib} MiB");

    let start = Instant::now();
    let store = VectorStore::open(&path).unwrap();
    println!("opening: {:?}", start.elapsed());
    let first = search(&store, &mut source, Value::Null).await;
    let held = store.cache_usage().bytes >> 20;
    println!("first search: {first:?}, after which {held} MiB are held");
    println!(
        "search: {:?}",
        median(&store, &mut source, &Value::Null).await
    );
    let odd: Map = [("odd", Value::Bool(true))].into_iter().collect();
    let odd = Value::Object(odd);
    println!(
        "search of every other: {:?}",
        median(&store, &mut source, &odd).await
    );

    let start = Instant::now();
    for n in 0..200 {
        let document = source.document(n);
        let set = store.vector_upsert("notes".into(), document);
        set.await.unwrap();
    }
    println!(
        "one upsert after the other: {:?} each",
        start.elapsed() / 200
    );
    let refreshed = search(&store, &mut source, Value::Null).await;
    println!("search after those: {refreshed:?}");
    store.set_cache_limit(0);
    let scan = search(&store, &mut source, Value::Null).await;
    println!("search in pieces: {scan:?}");
}
