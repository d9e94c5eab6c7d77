//! Stores in files: what comes back, what others see of it, and what is left of it when
//! processes are killed, disks are full, or files are damaged.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod backups;
mod conformance;
mod damaged;
mod database;
mod hostile;
mod limits;
mod namespaces;
mod processes;
mod values;

use a99_capabilities::{CapabilityError, block_on};
use a99_core::value::Value;
use a99_sqlite::SqliteStore;

/// A store in a folder of the test.
fn store() -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
    (folder, store)
}

fn text(error: &CapabilityError) -> String {
    error.message.to_string()
}

fn object(members: &[(&'static str, Value)]) -> Value {
    Value::Object(members.iter().cloned().collect())
}
