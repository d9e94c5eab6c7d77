//! Stores in files: stored values, isolation, and recovery from killed processes, full disks
//! and damaged files.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod backups;
mod conformance;
mod damaged;
mod database;
mod hostile;
#[path = "../laws/mod.rs"]
mod laws;
mod processes;

use a99_capabilities::{CapabilityError, block_on};
use a99_core::value::Value;
use a99_sqlite::SqliteStore;
use std::sync::Mutex;

/// Random cases of the suite of laws.
const VALUES: u32 = 400;
const NAMESPACES: u32 = 60;
const LIMITS: u32 = 40;

/// Store type under test.
type Tested = SqliteStore;

/// A store for the whole test process.
fn lasting() -> SqliteStore {
    static FOLDERS: Mutex<Vec<tempfile::TempDir>> = Mutex::new(Vec::new());
    let (folder, store) = store();
    FOLDERS.lock().unwrap().push(folder);
    store
}

/// The store at a path.
fn open_at(path: &str) -> SqliteStore {
    SqliteStore::open(path).unwrap()
}

/// A store in a temporary folder.
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
