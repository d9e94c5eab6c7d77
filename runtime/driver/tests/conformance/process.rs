//! Agents in another process, which is killed with its host.

use a99_runtime::suite::{self, AGENTS, Hosts};
use a99_runtime::{HostBuilder, PROCESS, Process};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The process of agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "started by the other"]
async fn agents() {
    if let Some(file) = std::env::var_os("A99_TEST_PID") {
        std::fs::write(file, std::process::id().to_string()).expect("a file");
        drop(suite::process().serve().await);
    }
}

fn there(builder: HostBuilder, folder: &Path) -> HostBuilder {
    let program = std::env::current_exe().expect("this program");
    let process = Process::command(program)
        .args(["process::agents", "--exact", "--ignored"])
        .env("A99_TEST_PID", folder.join("pid"))
        .pauses(Duration::from_millis(5), Duration::from_millis(50));
    builder.process(process, AGENTS)
}

/// Kills the process of agents.
fn kill(folder: &Path) {
    let pid = std::fs::read_to_string(folder.join("pid")).unwrap_or_default();
    if !pid.is_empty() {
        // It may have ended.
        drop(Command::new("kill").args(["-9", &pid]).output());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let cannot = suite::declared(crate::PAGE, "another process").expect("a table");
    let run = suite::run(folder.path(), &cannot, |folder| {
        Box::new(Hosts::embedded(PROCESS, folder, there).on_kill(kill))
    });
    run.await.unwrap_or_else(|finding| panic!("{finding}"));
}
