//! Several processes on one file: killed at random moments, writing concurrently, out of disk
//! space, or without permissions.
//!
//! The processes are this program, started for the one test [`child`]. The long forms:
//! `cargo test -p a99-sqlite --test it -- --ignored long_`.

#![allow(clippy::print_stdout, reason = "what processes tell the test")]

use crate::block_on;
use crate::laws::processes::{
    ARGS, all_at_once, left, lines, pattern, play, prepared, start, told,
};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_sqlite::{SqliteCode, SqliteStore};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

/// Reads the lines of a child, which is killed at the first line that fits.
fn lines_until(child: &mut Child, mut fits: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let (mut lines, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 0 {
        // A line cut off by the kill has no line end.
        if let Some(whole) = line.strip_suffix('\n') {
            if fits(whole) {
                child.kill().unwrap();
            }
            lines.push(whole.to_owned());
        }
        line.clear();
    }
    lines
}

#[test]
#[ignore = "what other tests start as processes"]
fn child() {
    play(|role, file| match role {
        "fill" => fill(file.as_ref()),
        "read-only" => open_read_only(file.as_ref()),
        _ => panic!("no role {role}"),
    });
}

/// Kills a writing process repeatedly and checks the file after each kill.
fn kill(times: usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let mut acknowledged = 0;
    for round in 0..times {
        // In every second round this process keeps the file open.
        let witness = (round % 2 == 1).then(|| SqliteStore::open(&file).unwrap());
        let mut child = start("write", file.to_str().unwrap(), Duration::ZERO);
        let random = (round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let lines = match round % 4 {
            // A kill at any time, even before the file is open.
            0 => {
                thread::sleep(Duration::from_micros(random % 30_000));
                child.kill().unwrap();
                lines(&mut child)
            }
            _ => {
                let mut more = 1 + random % 150;
                lines_until(&mut child, |line| {
                    more = more.saturating_sub(line.starts_with("ack").into());
                    let is_time = more == 0;
                    if is_time {
                        more = u64::MAX;
                        thread::sleep(Duration::from_micros(random % 3_000));
                    }
                    is_time
                })
            }
        };
        child.wait().unwrap();
        let store = witness.unwrap_or_else(|| SqliteStore::open(&file).unwrap());
        acknowledged += left(&store, &lines);
        store.database().check().wait().unwrap();
        store.clear().wait().unwrap();
        assert_eq!(store.usage().wait().unwrap().bytes, 0);
        store.database().clone().close();
    }
    println!("{times} kills, {acknowledged} writes acknowledged");
    assert!(acknowledged >= times, "{acknowledged}");
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    kill(20);
}

#[test]
#[ignore = "takes a minute"]
fn long_a_killed_process_loses_nothing_acknowledged() {
    kill(300);
}

/// Several processes count in one file.
fn count_in_a_file(time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let store = all_at_once(file.to_str().unwrap(), time);
    store.database().check().wait().unwrap();
}

#[test]
fn processes_count_exactly() {
    count_in_a_file(Duration::from_secs(2));
}

#[test]
#[ignore = "takes a minute"]
fn long_processes_count_exactly() {
    count_in_a_file(Duration::from_secs(60));
}

fn fill(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let mut kept = 0;
    let error = loop {
        match block_on(store.set(kept.into(), pattern(kept))) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    println!("kept {kept}");
    println!("error {error}");
    for n in 0..kept {
        assert_eq!(block_on(store.get(n.into())).unwrap(), pattern(n));
    }
    println!("read {kept}");
}

#[cfg(unix)]
#[test]
fn a_disk_without_room_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    SqliteStore::open(&file).unwrap().database().clone().close();
    // The file-size limit simulates a full disk: writing beyond it fails.
    let mut command = Command::new("sh");
    let script = "ulimit -f 1000; trap '' XFSZ; exec \"$0\" \"$@\"";
    command
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(ARGS);
    let mut child = prepared(command, "fill", file.to_str().unwrap(), Duration::ZERO)
        .spawn()
        .unwrap();
    let lines = lines(&mut child);
    assert!(child.wait().unwrap().success(), "{lines:?}");
    assert_eq!(told(&lines, "error "), ["The store does not work."]);
    let kept: usize = told(&lines, "kept ")[0].parse().unwrap();
    assert!(kept > 20, "{kept}");
    assert_eq!(told(&lines, "read "), [kept.to_string()]);
    // With room again, all data is present and writes succeed.
    let store = SqliteStore::open(&file).unwrap();
    store.database().check().wait().unwrap();
    assert_eq!(store.usage().wait().unwrap().keys, kept as u64);
    for n in 0..=kept {
        if n == kept {
            block_on(store.set(n.into(), pattern(n))).unwrap();
        }
        assert_eq!(block_on(store.get(n.into())).unwrap(), pattern(n));
    }
}

fn open_read_only(file: &Path) {
    match SqliteStore::open(file) {
        Ok(_) => println!("opened"),
        Err(error) => println!("refused {}", error.code().name()),
    }
}

/// Runs as another user if this one has all permissions.
#[cfg(unix)]
#[test]
fn a_file_that_may_only_be_read_is_refused() {
    use std::fs::{self, OpenOptions, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let store = SqliteStore::open(&file).unwrap();
    block_on(store.set("k".into(), Value::Null)).unwrap();
    store.database().clone().close();
    let program = folder.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
    let before = fs::read(&file).unwrap();

    let mut command = Command::new(&program);
    command.args(ARGS).current_dir("/");
    if OpenOptions::new().append(true).open(&file).is_ok() {
        command.uid(65_534).gid(65_534);
    }
    let mut child = prepared(command, "read-only", file.to_str().unwrap(), Duration::ZERO)
        .spawn()
        .unwrap();
    let lines = lines(&mut child);
    assert!(child.wait().unwrap().success(), "{lines:?}");
    assert_eq!(told(&lines, "refused "), [SqliteCode::ReadOnly.name()]);
    assert_eq!(fs::read(&file).unwrap(), before);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
}
