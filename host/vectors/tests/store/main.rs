//! Vectors in files: what comes back and is found, what others see of it, and what is left
//! of it when processes are killed or files are damaged.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../common/mod.rs"]
mod common;
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
use common::{create, document, found, ids, object, vector};

/// A store in a folder of the test.
fn store() -> (tempfile::TempDir, VectorStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = VectorStore::open(folder.path().join("a.db")).unwrap();
    (folder, store)
}

fn text(error: &CapabilityError) -> String {
    error.message.to_string()
}

fn add(store: &dyn Store, collection: &str, document: Value) {
    block_on(store.vector_add(collection.into(), document)).unwrap();
}
