//! Vectors in files: what comes back and is found, what others see of it, and what is left
//! of it when processes are killed or files are damaged.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod conformance;
mod damaged;
mod documents;
mod limits;
mod memory;
mod model;
mod namespaces;
mod processes;

use a99_capabilities::{CapabilityError, Store, block_on};
use a99_core::value::Value;
use a99_vectors::VectorStore;

/// A store in a folder of the test.
fn store() -> (tempfile::TempDir, VectorStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = VectorStore::open(folder.path().join("a.db")).unwrap();
    (folder, store)
}

fn text(error: &CapabilityError) -> String {
    error.message.to_string()
}

fn object(members: &[(&'static str, Value)]) -> Value {
    Value::Object(members.iter().cloned().collect())
}

fn vector(numbers: &[f64]) -> Value {
    Value::Array(numbers.iter().copied().map(Value::Number).collect())
}

fn document(id: &str, numbers: &[f64]) -> Value {
    object(&[("id", id.into()), ("embedding", vector(numbers))])
}

fn create(store: &dyn Store, collection: &str) {
    let made = store.create_collection(collection.into(), Value::Null, Value::Null);
    block_on(made).unwrap();
}

fn add(store: &dyn Store, collection: &str, document: Value) {
    block_on(store.vector_add(collection.into(), document)).unwrap();
}

fn found(store: &dyn Store, collection: &str, query: &[f64], k: usize) -> Vec<Value> {
    let search = store.vector_search(collection.into(), vector(query), k.into(), Value::Null);
    block_on(search).unwrap().as_array().unwrap().to_vec()
}

fn ids(store: &dyn Store, collection: &str, query: &[f64], k: usize) -> Vec<String> {
    let found = found(store, collection, query, k).into_iter();
    let ids = found.map(|document| document.get("id").unwrap().as_str().unwrap().to_owned());
    ids.collect()
}
