//! Conformance of the embedded target, and of agents in another process, with the suite for all.

#[cfg(unix)]
mod process;

use a99_runtime::EMBEDDED;
use a99_runtime::suite::{self, Hosts};

const PAGE: &str = include_str!("../../../../docs/targets.md");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_holds_embedded() {
    let folder = tempfile::tempdir().expect("a folder");
    let cannot = suite::declared(PAGE, "embedded").expect("a table");
    let run = suite::run(folder.path(), &cannot, |folder| {
        Box::new(Hosts::embedded(EMBEDDED, folder, |builder, _| {
            suite::agents(builder)
        }))
    });
    run.await.unwrap_or_else(|finding| panic!("{finding}"));
}
