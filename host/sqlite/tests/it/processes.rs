//! Several processes on one file: killed at any moment, all writing at once, without room,
//! without rights.
//!
//! The processes are this program, started for the one test [`child`]. The long forms:
//! `cargo test -p a99-sqlite --test it -- --ignored long_`.

#![allow(clippy::print_stdout, reason = "what processes tell the test")]

use crate::{block_on, object};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_sqlite::{SqliteCode, SqliteStore};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What a child does, its file, and for how many milliseconds.
const ROLE: &str = "A99_SQLITE_ROLE";
const FILE: &str = "A99_SQLITE_FILE";
const TIME: &str = "A99_SQLITE_TIME";

/// How a child is asked for.
const ARGS: [&str; 5] = [
    "--exact",
    "processes::child",
    "--include-ignored",
    "--nocapture",
    "--quiet",
];

/// Threads of a child that writes until it is killed.
const WRITERS: usize = 4;

/// Tasks of a child that counts.
const COUNTERS: usize = 16;

fn prepared(mut command: Command, role: &str, file: &Path, time: Duration) -> Command {
    command
        .env(ROLE, role)
        .env(FILE, file)
        .env(TIME, time.as_millis().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

fn start(role: &str, file: &Path, time: Duration) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS);
    prepared(command, role, file, time).spawn().unwrap()
}

/// The lines of a child that begin with a word, without it.
fn told(lines: &[String], word: &str) -> Vec<String> {
    let parts = lines.iter().filter_map(|line| line.strip_prefix(word));
    parts.map(|rest| rest.trim().to_owned()).collect()
}

fn lines(child: &mut Child) -> Vec<String> {
    lines_until(child, |_| false)
}

/// The lines of a child, which is killed when one of them fits.
fn lines_until(child: &mut Child, mut fits: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let (mut lines, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 0 {
        // A line that was cut has no end.
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
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let file = std::env::var_os(FILE).unwrap();
    let time = Duration::from_millis(std::env::var(TIME).unwrap().parse().unwrap());
    println!();
    match role.as_str() {
        "write" => write(file.as_ref()),
        "count" => count(file.as_ref(), time),
        "fill" => fill(file.as_ref()),
        "read-only" => open_read_only(file.as_ref()),
        _ => panic!("no role {role}"),
    }
}

/// A value that shows whether it is whole.
fn pattern(n: usize) -> Value {
    let text = format!("{n} ").repeat(50 + n % 7 * 300);
    object(&[("n", n.into()), ("text", text.into())])
}

fn write(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    println!("open");
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for n in 1.. {
                    let key = format!("{writer}/{}", n % 10);
                    block_on(store.set(key.into(), pattern(n))).unwrap();
                    println!("ack {writer} {n}");
                }
            });
        }
    });
}

/// Kills a writing process many times, and looks at what it left.
fn kill(times: usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let mut acknowledged = 0;
    for round in 0..times {
        // Every other time somebody has the file open all along.
        let witness = (round % 2 == 1).then(|| SqliteStore::open(&file).unwrap());
        let mut child = start("write", &file, Duration::ZERO);
        let random = (round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let lines = match round % 4 {
            // At any time, also before the file is open.
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
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        for ack in told(&lines, "ack ") {
            let (writer, n) = ack.split_once(' ').unwrap();
            last.insert(writer.parse().unwrap(), n.parse().unwrap());
            acknowledged += 1;
        }
        let store = witness.unwrap_or_else(|| SqliteStore::open(&file).unwrap());
        let mut keys = 0;
        for writer in 0..WRITERS {
            let last = last.get(&writer).copied().unwrap_or(0);
            keys += left_by(&store, writer, last);
        }
        store.database().check().wait().unwrap();
        assert_eq!(store.usage().wait().unwrap().keys, keys);
        store.clear().wait().unwrap();
        assert_eq!(store.usage().wait().unwrap().bytes, 0);
        store.database().clone().close();
    }
    println!("{times} kills, {acknowledged} writes acknowledged");
    assert!(acknowledged >= times, "{acknowledged}");
}

/// Looks at the ten keys of a writer: all that was acknowledged is there, at most one
/// write more, and each is whole. How many keys there are.
fn left_by(store: &SqliteStore, writer: usize, last: usize) -> u64 {
    let mut keys = 0;
    for slot in 0..10 {
        let key = format!("{writer}/{slot}");
        let value = block_on(store.get(key.into())).unwrap();
        let found = value.get("n").and_then(Value::as_f64).map(|n| n as usize);
        let wanted = (1..=last).rev().find(|n| n % 10 == slot);
        let one_more = Some(last + 1).filter(|n| n % 10 == slot);
        assert!(
            found == wanted || found.is_some() && found == one_more,
            "{writer}/{slot}: {found:?}, not {wanted:?}; acknowledged up to {last}"
        );
        if let Some(n) = found {
            keys += 1;
            assert!(value == pattern(n), "{writer}/{slot} is half {n}");
        }
    }
    keys
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

fn count(file: &Path, time: Duration) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let store = SqliteStore::open(file).unwrap();
    let until = Instant::now() + time;
    let won = Arc::new(AtomicBool::new(false));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..COUNTERS)
            .map(|task| tokio::spawn(count_up(store.clone(), task, until, Arc::clone(&won))))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    println!("done");
}

/// Counts until the time is over and one of the tasks has come to count.
async fn count_up(store: SqliteStore, task: usize, until: Instant, won: Arc<AtomicBool>) {
    let own = || Value::from(format!("own/{}/{task}", std::process::id()));
    let mut round = 0;
    while Instant::now() < until || !won.load(Ordering::Relaxed) {
        let old = store.get("counter".into()).await.unwrap();
        let next = old.as_f64().unwrap_or(0.0) + 1.0;
        let swapped = store.compare_and_set("counter".into(), old, next.into(), None);
        if swapped.await.unwrap() == Value::Bool(true) {
            println!("won {next}");
            won.store(true, Ordering::Relaxed);
        }
        round += 1;
        store.set(own(), round.into()).await.unwrap();
        assert_eq!(store.get(own()).await.unwrap(), round.into());
    }
}

/// Four processes with sixteen tasks each.
fn all_at_once(time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let children: Vec<Child> = (0..4).map(|_| start("count", &file, time)).collect();
    let readers: Vec<_> = children
        .into_iter()
        .map(|mut child| {
            thread::spawn(move || {
                let lines = lines(&mut child);
                assert!(child.wait().unwrap().success());
                lines
            })
        })
        .collect();
    let mut won: Vec<u64> = Vec::new();
    for reader in readers {
        let lines = reader.join().unwrap();
        assert_eq!(told(&lines, "done"), [""]);
        let mine = told(&lines, "won ");
        won.extend(mine.iter().map(|n| n.parse::<u64>().unwrap()));
    }
    won.sort_unstable();
    // Every number once: no step was lost, and none taken twice.
    assert_eq!(won, (1..=won.len() as u64).collect::<Vec<_>>());
    let store = SqliteStore::open(&file).unwrap();
    let counter = block_on(store.get("counter".into())).unwrap();
    assert_eq!(counter, won.len().into());
    store.database().check().wait().unwrap();
    assert_eq!(store.usage().wait().unwrap().keys, 4 * COUNTERS as u64 + 1);
    println!("counted to {} in {time:?}", won.len());
}

#[test]
fn processes_count_exactly() {
    all_at_once(Duration::from_secs(2));
}

#[test]
#[ignore = "takes a minute"]
fn long_processes_count_exactly() {
    all_at_once(Duration::from_secs(60));
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
    // The limit of a file's size stands for the disk's: writing beyond it fails.
    let mut command = Command::new("sh");
    let script = "ulimit -f 1000; trap '' XFSZ; exec \"$0\" \"$@\"";
    command
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(ARGS);
    let mut child = prepared(command, "fill", &file, Duration::ZERO)
        .spawn()
        .unwrap();
    let lines = lines(&mut child);
    assert!(child.wait().unwrap().success(), "{lines:?}");
    assert_eq!(told(&lines, "error "), ["The store does not work."]);
    let kept: usize = told(&lines, "kept ")[0].parse().unwrap();
    assert!(kept > 20, "{kept}");
    assert_eq!(told(&lines, "read "), [kept.to_string()]);
    // With room again, all is there and goes on.
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

/// Runs as another user where this one may write everything.
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
    let mut child = prepared(command, "read-only", &file, Duration::ZERO)
        .spawn()
        .unwrap();
    let lines = lines(&mut child);
    assert!(child.wait().unwrap().success(), "{lines:?}");
    assert_eq!(told(&lines, "refused "), [SqliteCode::ReadOnly.name()]);
    assert_eq!(fs::read(&file).unwrap(), before);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
}
