//! Conformance vectors of the language, with store answers that pass through a server.

use crate::store;
use a99_capabilities::Store;
use a99_testkit::vectors::{StoreEngine, read_deviations, read_file, replay};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn the_machine_meets_the_vectors() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let entries = std::fs::read_dir(tests.join("vectors")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|name| name == "jsonl"));
    files.sort();
    let all: usize = files
        .iter()
        .map(|file| read_file(file).unwrap().len())
        .sum();
    let listed = read_deviations(&tests.join("deviations.jsonl")).unwrap();
    let (_database, store) = store();
    let made = AtomicUsize::new(0);
    let engine = StoreEngine(|| {
        let n = made.fetch_add(1, Ordering::Relaxed);
        Arc::new(store.namespace(format!("vector {n}"))) as Arc<dyn Store>
    });
    let report = replay(&engine, &files, &listed).unwrap();
    assert!(report.failed.is_empty(), "{}", report.render());
    assert_eq!(
        (report.passed, report.skipped),
        (all, 0),
        "{}",
        report.render()
    );
    assert!(made.into_inner() > 50, "vectors with a store");
}
