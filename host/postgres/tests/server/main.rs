//! Stores on a server that the tests start: stored values, isolation, and recovery from killed
//! processes and servers.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![cfg(unix)]

mod certificates;
mod cluster;
mod conformance;
mod connections;
mod contention;
mod full;
#[path = "../../../sqlite/tests/laws/mod.rs"]
mod laws;
mod processes;
mod schemas;
mod transactions;
mod values;
mod vectors;

use a99_capabilities::{CapabilityError, block_on};
use a99_core::value::Value;
use a99_postgres::{PostgresError, PostgresOptions, PostgresStore};
use cluster::Database;

/// Random cases of the laws: fewer than for a file, which is faster.
const VALUES: u32 = 150;
const NAMESPACES: u32 = 12;
const LIMITS: u32 = 16;

/// Store type under test.
type Tested = PostgresStore;

/// A store for the whole test process.
fn lasting() -> PostgresStore {
    store().1
}

/// The store at a URL.
fn open_at(url: &str) -> PostgresStore {
    open(url).unwrap()
}

fn open(url: &str) -> Result<PostgresStore, PostgresError> {
    PostgresStore::open(PostgresOptions::of_url(url)?)
}

/// A store in a database of the test.
fn store() -> (Database, PostgresStore) {
    let database = certificates::shared().database();
    let store = open(&database.url()).unwrap();
    (database, store)
}

fn text(error: &CapabilityError) -> String {
    error.message.to_string()
}

fn object(members: &[(&'static str, Value)]) -> Value {
    Value::Object(members.iter().cloned().collect())
}
