//! Handlers that hang, panic, die or come too late, and what of the host a process can see.

use super::{answer, invited, process, started, there};
use crate::support::{Files, LONG, builder, key, store};
use a99_runtime::{PROCESS, Process};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_hangs_dies_or_blocks_is_no_end() {
    let files = Files::new();
    let process = process().call_timeout(Duration::from_millis(500));
    let host = builder()
        .process(process, ["worker"])
        .start(store(&files.path()));
    let host = host.await.expect("a host");
    invited(&host, json!({"timeout": 300})).await;
    let first = answer(&host, "pid").await;
    assert_eq!(answer(&host, "hang").await, "hung until attempt 2");
    // Its handler was given up where it waited.
    assert_eq!(answer(&host, "pid 2").await, first);
    assert_eq!(answer(&host, "die").await, "died before attempt 2");
    let second = answer(&host, "pid 3").await;
    assert_ne!(second, first);
    // One that does not give up is replaced.
    assert_eq!(answer(&host, "block").await, "blocked until attempt 2");
    assert_eq!(answer(&host, "late").await, "gone");
    assert_eq!(answer(&host, "late?").await, "turn.over");
    let info = host
        .inspect(&key("worker/general/worker"))
        .await
        .expect("an agent");
    assert_eq!(info.dead_letters, []);
    host.drain(LONG).await.expect("drained");
    let began = Instant::now();
    while std::path::Path::new(&format!("/proc/{second}/stat")).exists() {
        assert!(began.elapsed() < LONG, "the process outlived its host");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_sees_nothing_of_the_hosts_environment() {
    let files = Files::new();
    assert!(std::env::var_os("PATH").is_some());
    let host = started(&files.path(), there).await;
    invited(&host, json!({})).await;
    let names = answer(&host, "env").await;
    assert_eq!(names, "A99_PROCESS_SOCKET A99_PROCESS_TOKEN");
    assert_eq!(answer(&host, "mode").await, PROCESS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_does_not_start_is_an_error() {
    for (program, said) in [
        ("/nowhere/agents", "No such file"),
        ("/bin/false", "exit status: 1"),
    ] {
        let files = Files::new();
        let host = builder().process(Process::command(program), ["worker"]);
        let host = host.start(store(&files.path())).await.expect("a host");
        invited(&host, json!({})).await;
        let worker = key("worker/general/worker");
        let began = Instant::now();
        let (code, text) = loop {
            let info = host.inspect(&worker).await.expect("an agent");
            if let Some(error) = info.last_error {
                break error;
            }
            assert!(began.elapsed() < LONG);
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(code, "process.not_started");
        assert!(text.contains(said), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_may_connect_by_itself() {
    let (files, folder) = (Files::new(), tempfile::tempdir().expect("a folder"));
    let folder = folder.path().join("agents");
    let attached = Process::attached(&folder);
    let host = builder()
        .process(attached, ["worker"])
        .start(store(&files.path()));
    let host = host.await.expect("a host");
    let mut inviting = Some(tokio::spawn({
        let host = host.clone();
        async move { invited(&host, json!({})).await }
    }));
    while !folder.join("token").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for round in 0..2 {
        let program = std::env::current_exe().expect("this program");
        let child = std::process::Command::new(program)
            .args(super::ARGS)
            .env("A99_TEST_ATTACH", &folder)
            .spawn();
        let mut child = child.expect("a process");
        // The invitation ends when the first process has connected.
        if let Some(inviting) = inviting.take() {
            inviting.await.expect("invited");
        }
        let pid = answer(&host, &format!("pid {round}")).await;
        assert_eq!(pid, child.id().to_string());
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
}
