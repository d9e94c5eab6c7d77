//! Conformance of the store in a file with the suite for all stores.

use crate::block_on;
use a99_runtime_engine::StoreError;
use a99_runtime_stores::suite::{Fixture, checks};
use a99_runtime_stores::{SqliteRuntime, StoreLimits, StoreOptions};

struct File(tempfile::TempDir);

impl File {
    fn with(&self, is_shared: bool) -> Result<SqliteRuntime, StoreError> {
        let options = StoreOptions {
            limits: StoreLimits::SMALL,
            is_shared,
            ..StoreOptions::default()
        };
        SqliteRuntime::open_past_lock(self.0.path().join("a.db"), options)
    }
}

impl Fixture for File {
    type Store = SqliteRuntime;

    fn open(&self) -> Result<SqliteRuntime, StoreError> {
        self.with(false)
    }

    fn share(&self) -> Result<SqliteRuntime, StoreError> {
        self.with(true)
    }
}

#[test]
fn the_suite_holds() {
    let mut findings = Vec::new();
    for (name, check) in checks::<File>() {
        let file = File(tempfile::tempdir().unwrap());
        let outcome = block_on(check(&file));
        // Whatever was done, the file is whole.
        let whole = block_on(file.open().unwrap().check());
        findings.extend(outcome.err().map(|finding| format!("{name}: {finding}")));
        findings.extend(whole.err().map(|error| format!("{name}: {error}")));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
