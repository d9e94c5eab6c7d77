//! Several processes: one that has the store, and one that is killed at any moment.
//!
//! The processes are this program, started for the one test [`child`].

#![allow(clippy::print_stdout, reason = "what processes tell the test")]

use crate::{block_on, counted, fence, key, open, turn};
use a99_runtime_engine::{AgentKey, AgentStore, StoreCode};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// What a child does, and its file.
const ROLE: &str = "A99_STORES_ROLE";
const FILE: &str = "A99_STORES_FILE";

/// Agents of a child, each with a channel of its own.
const AGENTS: usize = 4;

const KILLS: u64 = 30;

fn start(role: &str, file: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "processes::child",
            "--include-ignored",
            "--nocapture",
            "--quiet",
        ])
        .env(ROLE, role)
        .env(FILE, file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// The whole lines of a child, which is killed when one of them fits.
fn lines_until(child: &mut Child, mut fits: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let (mut lines, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 0 {
        if let Some(whole) = line.strip_suffix('\n') {
            if fits(whole) {
                child.kill().unwrap();
            }
            lines.push(whole.to_owned());
        }
        line.clear();
    }
    child.wait().unwrap();
    lines
}

#[test]
#[ignore = "what other tests start as processes"]
fn child() {
    let (Ok(role), Some(file)) = (std::env::var(ROLE), std::env::var_os(FILE)) else {
        return;
    };
    println!();
    match role.as_str() {
        "hold" => {
            let _store = open(file.as_ref());
            println!("open");
            thread::sleep(Duration::from_secs(60));
        }
        "turns" => turns(file.as_ref()),
        _ => panic!("no role {role}"),
    }
}

fn agent(n: usize) -> AgentKey {
    key(&format!("echo/channel-{n}/a"))
}

/// Turns without an end, of some agents at the same time.
fn turns(file: &Path) {
    let store = open(file);
    println!("open");
    thread::scope(|scope| {
        for n in 0..AGENTS {
            let store = &store;
            scope.spawn(move || {
                let first = counted(store, &agent(n)) + 1;
                for turn_of in first.. {
                    let commit = turn(fence(store, &agent(n)), turn_of);
                    block_on(store.commit(commit)).unwrap();
                    println!("ack {n} {turn_of}");
                }
            });
        }
    });
}

#[test]
fn killed_processes_lose_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let mut acknowledged = [0_u64; AGENTS];
    let mut cut_off = 0;
    for round in 0..KILLS {
        let mut child = start("turns", &file);
        // From before the first commit on.
        let mut left = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        let lines = lines_until(&mut child, |line| {
            left = left.saturating_sub(1);
            left == 0 || (round == 0 && line == "open")
        });
        for ack in lines.iter().filter_map(|line| line.strip_prefix("ack ")) {
            let (n, turn) = ack.split_once(' ').unwrap();
            acknowledged[n.parse::<usize>().unwrap()] = turn.parse().unwrap();
        }
        let store = open(&file);
        cut_off += u64::from(!store.was_cut_off().is_empty());
        block_on(store.check()).unwrap();
        for (n, acknowledged) in acknowledged.iter_mut().enumerate() {
            // One more may be kept than was told; the next process goes on after it.
            let counted = counted(&store, &agent(n));
            let is_one = counted.wrapping_sub(*acknowledged) <= 1;
            assert!(is_one, "{round}: {counted} of {acknowledged}");
            *acknowledged = counted;
        }
        store.close().unwrap();
    }
    assert!(acknowledged.iter().sum::<u64>() > KILLS, "{acknowledged:?}");
    assert!(cut_off > KILLS / 2, "{cut_off}");
}

#[test]
fn the_lock_ends_with_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let mut child = start("hold", &file);
    let holder = child.id();
    lines_until(&mut child, |line| {
        if line == "open" {
            let error = SqliteRuntime::open(&file, StoreOptions::default()).unwrap_err();
            assert_eq!(error.code(), StoreCode::Locked);
            let named = error.to_string().contains(&format!("process {holder} "));
            assert!(named, "{error}");
        }
        line == "open"
    });
    assert!(!open(&file).was_cut_off().is_empty());
}
