//! What the tests of vectors in files and on a server share.

use a99_capabilities::{FixedClock, Store, block_on, suite};
use a99_core::value::Value;
use a99_vectors::{Backend, WithVectors};
use std::sync::Arc;

pub fn object(members: &[(&'static str, Value)]) -> Value {
    Value::Object(members.iter().cloned().collect())
}

pub fn vector(numbers: &[f64]) -> Value {
    Value::Array(numbers.iter().copied().map(Value::Number).collect())
}

pub fn document(id: &str, numbers: &[f64]) -> Value {
    object(&[("id", id.into()), ("embedding", vector(numbers))])
}

pub fn create(store: &dyn Store, collection: &str) {
    let made = store.create_collection(collection.into(), Value::Null, Value::Null);
    block_on(made).unwrap();
}

pub fn found(store: &dyn Store, collection: &str, query: &[f64], k: usize) -> Vec<Value> {
    let search = store.vector_search(collection.into(), vector(query), k.into(), Value::Null);
    block_on(search).unwrap().as_array().unwrap().to_vec()
}

pub fn ids(store: &dyn Store, collection: &str, query: &[f64], k: usize) -> Vec<String> {
    let found = found(store, collection, query, k).into_iter();
    let ids = found.map(|document| document.get("id").unwrap().as_str().unwrap().to_owned());
    ids.collect()
}

/// One of 256 directions of a half circle: two of them have clearly different scores with
/// a query at its end, and those that are the same have exactly the same.
pub fn direction(at: u8) -> [f64; 2] {
    let angle = f64::from(at) * std::f64::consts::PI / 256.0;
    [angle.cos(), angle.sin()]
}

/// The laws of stores.
pub fn conforms<B: Backend>(store: &WithVectors<B>) {
    block_on(suite::key_value(store)).unwrap();
    block_on(suite::keys(store)).unwrap();
    block_on(suite::documents(store)).unwrap();
    // Again in collections that there are.
    for _ in 0..2 {
        block_on(suite::vectors(store)).unwrap();
        block_on(suite::vector_changes(store)).unwrap();
    }
    let clock = Arc::new(FixedClock::new(1_000.0));
    let store = store.with_clock(clock.clone());
    block_on(suite::expiry(&store, &|now| clock.set(now))).unwrap();
}
