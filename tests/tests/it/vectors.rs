//! Each engine meets every vector, up to the listed deviations: the machine, the
//! machine through artifacts, the oracle.

use a99_sqlite::{Database, Durability, SqliteOptions, SqliteStore};
use a99_testkit::vectors::{
    ArtifactEngine, Deviations, Engine, OracleEngine, StoreEngine, VmEngine, read_deviations,
    read_file, replay,
};
use agent99::capabilities::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Vectors that reach an atom of a host: shells, models, turns of agents, procedures. The
/// oracle judges the language; what was recorded judges those, on the machine.
const OF_HOSTS: usize = 150;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

pub(crate) fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("the folder of vectors");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = paths
        .filter(|p| p.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    files
}

pub(crate) fn list() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deviations.jsonl")
}

/// How many vectors an engine may leave to the others at most.
fn meets_but(engine: &dyn Engine, most: usize) {
    let (files, listed) = (files(), read_deviations(&list()).expect("the list"));
    assert!(!files.is_empty(), "no vectors");
    let all = files
        .iter()
        .map(|file| read_file(file).expect("vectors").len());
    let all: usize = all.sum();
    let report = replay(engine, &files, &listed).expect("a replay");
    assert!(report.failed.is_empty(), "{}", report.render());
    assert_eq!(report.passed + report.skipped, all, "{}", report.render());
    assert!(report.skipped <= most, "{} are skipped", report.skipped);
}

fn meets_the_vectors(engine: &dyn Engine) {
    meets_but(engine, 0);
}

#[test]
fn machine_meets_the_vectors() {
    meets_the_vectors(&VmEngine);
}

#[test]
fn machine_meets_the_vectors_through_artifacts() {
    meets_the_vectors(&ArtifactEngine);
}

/// What a vector's store answers comes out of a file on the way.
#[test]
fn machine_meets_the_vectors_with_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SqliteOptions {
        durability: Durability::Process,
        ..SqliteOptions::default()
    };
    let database = Database::open(folder.path().join("a.db"), options).expect("a file");
    let store = SqliteStore::on(database).expect("a store");
    let made = AtomicUsize::new(0);
    meets_the_vectors(&StoreEngine(|| {
        let n = made.fetch_add(1, Ordering::Relaxed);
        Arc::new(store.namespace(format!("vector {n}"))) as Arc<dyn Store>
    }));
    assert!(made.into_inner() > 50, "vectors with a store");
}

#[test]
fn oracle_meets_the_vectors() {
    meets_but(&OracleEngine, OF_HOSTS);
}

#[test]
fn every_listed_deviation_is_a_vector() {
    let listed = read_deviations(&list()).expect("the list");
    let ids: std::collections::BTreeSet<String> = files()
        .iter()
        .flat_map(|f| read_file(f).expect("vectors"))
        .map(|v| v.id)
        .collect();
    for id in listed.keys() {
        assert!(ids.contains(id), "{id} is listed but is no vector");
    }
}

#[test]
fn unlisted_and_stale_deviations_fail() {
    let file = folder().join("flow.jsonl");
    let report = replay(
        &OracleEngine,
        std::slice::from_ref(&file),
        &Deviations::new(),
    )
    .expect("a replay");
    let ids: Vec<&str> = report.failed.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["flow-return-result-key-v1"]);
    assert!(
        report
            .render()
            .ends_with("51 passed, 1 failed, 0 skipped\n")
    );

    let mut listed = read_deviations(&list()).expect("the list");
    let stale = listed["flow-return-result-key-v1"].clone();
    listed.insert("flow-if-empty-branches".into(), stale);
    let report = replay(&OracleEngine, &[file], &listed).expect("a replay");
    assert_eq!(report.failed.len(), 1);
    assert!(report.failed[0].1.contains("no longer deviates"));
}
