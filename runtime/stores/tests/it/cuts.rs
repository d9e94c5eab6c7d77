//! Power cuts: what the disk holds when the power goes between two writes.
//!
//! A process commits turns with [`Durability::Power`] under strace, which notes its writes and
//! syncs. At each of them the files are put together as a disk could have them then: what was
//! synced, and of the rest nothing, all, or any part by sectors. Each must open, agree, and
//! have every turn that was acknowledged.

#![allow(clippy::print_stdout, reason = "what the process tells the test")]

use crate::tables::{begin, commit, exec, run, value};
use crate::{Dice, block_on, counted, event, fence, key, turn};
use a99_runtime_engine::AgentStore;
use a99_runtime_stores::{Durability, SqliteRuntime, StoreOptions};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILE: &str = "A99_CUTS_FILE";
const TURNS: &str = "A99_CUTS_TURNS";

/// Bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// Bytes of an event that belongs to nobody: so the log is copied into the file now and then.
const BALLAST: usize = 200_000;

fn open(path: &Path) -> SqliteRuntime {
    let options = StoreOptions {
        durability: Durability::Power,
        ..StoreOptions::default()
    };
    SqliteRuntime::open(path, options).unwrap()
}

/// A turn of each of two agents, one of which has tables.
fn turns(store: &SqliteRuntime, n: u64) {
    let (plain, tabled) = (key("echo/plain/a"), key("echo/tabled/a"));
    let mut done = turn(fence(store, &plain), n);
    let id = format!("ballast {n}");
    done.outbox
        .push(event(&key("echo/ballast/a"), &id, &"x".repeat(BALLAST)));
    block_on(store.commit(done)).unwrap();
    let tables = begin(store, &tabled);
    if n == 1 {
        exec(&*tables, "CREATE TABLE t (n INTEGER PRIMARY KEY, s)").unwrap();
    }
    let text = "y".repeat(3_000);
    run(
        &*tables,
        "INSERT INTO t (n, s) VALUES (?, ?)",
        json!([n, text]),
    )
    .unwrap();
    commit(store, &tabled, n, &*tables).unwrap();
}

#[test]
#[ignore = "what the long test starts as a process"]
fn child() {
    let (Some(file), Ok(count)) = (std::env::var_os(FILE), std::env::var(TURNS)) else {
        return;
    };
    let store = open(file.as_ref());
    for n in 2..=count.parse().unwrap() {
        turns(&store, n);
        println!("\nacknowledged {n}");
    }
    // No file is closed in order.
    std::process::abort();
}

/// What a process did to the disk, or told.
enum Act {
    Write(PathBuf, usize, Vec<u8>),
    Truncate(PathBuf, usize),
    Sync(PathBuf),
    Told(u64),
}

/// The bytes of a text of strace in which all are written by their numbers.
fn bytes(text: &str) -> Vec<u8> {
    let numbers = text.split("\\x").skip(1);
    numbers
        .map(|hex| u8::from_str_radix(&hex[..2], 16).unwrap())
        .collect()
}

/// Acts on files below a folder, from what strace wrote.
fn acts(trace: &str, folder: &Path) -> Vec<Act> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut acts = Vec::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        let call = if let Some(call) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, call);
            continue;
        } else if rest.starts_with("<... ") {
            assert!(!rest.contains(" = -1 "), "{line:.200}");
            match begun.remove(thread) {
                Some(call) => call,
                None => continue,
            }
        } else {
            assert!(
                !rest.contains(") = -1 ") || !rest.starts_with("pwrite"),
                "{line:.200}"
            );
            rest
        };
        acts.extend(act(call, folder));
    }
    acts
}

/// `pwrite64(5<\x2f...>, "\x37...", 32, 0)` and its like: paths are written by their numbers
/// too.
fn act(call: &str, folder: &Path) -> Option<Act> {
    let (name, arguments) = call.split_once('(')?;
    let (_, rest) = arguments.split_once('<')?;
    let (path, rest) = rest.split_once('>')?;
    let path = PathBuf::from(String::from_utf8(bytes(path)).ok()?);
    let text = || rest.split('"').nth(1).map(bytes);
    if name == "write" {
        let told = String::from_utf8(text()?).ok()?;
        let n = told.trim().strip_prefix("acknowledged ")?;
        return n.parse().ok().map(Act::Told);
    }
    // Shared memory is made anew from the log, and all files are there from the beginning.
    if !path.starts_with(folder)
        || path.is_dir()
        || path.extension().is_some_and(|end| end == "db-shm")
    {
        return None;
    }
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    match name {
        "pwrite64" => {
            let end = rest.rsplit('"').next()?;
            let offset = end.trim_start_matches(", ").split_once(", ")?.1;
            Some(Act::Write(path, number(offset), text()?))
        }
        "ftruncate" => Some(Act::Truncate(path, number(rest.trim_start_matches(", ")))),
        "fsync" | "fdatasync" => Some(Act::Sync(path)),
        _ => None,
    }
}

/// What of the writes that were not synced is there.
#[derive(Copy, Clone, Debug)]
enum Rest {
    Nothing,
    All,
    Some,
}

/// A file as it was synced, and what was written since.
#[derive(Clone, Default)]
struct Disk {
    synced: Vec<u8>,
    since: Vec<(usize, Option<Vec<u8>>)>,
}

impl Disk {
    fn apply(file: &mut Vec<u8>, at: usize, data: Option<&[u8]>) {
        match data {
            Some(data) => {
                file.resize(file.len().max(at + data.len()), 0);
                file[at..at + data.len()].copy_from_slice(data);
            }
            None => file.resize(at, 0),
        }
    }

    fn sync(&mut self) {
        for (at, data) in self.since.drain(..) {
            Disk::apply(&mut self.synced, at, data.as_deref());
        }
    }

    fn after(&self, rest: Rest, dice: &mut Dice) -> Vec<u8> {
        let mut file = self.synced.clone();
        for (at, data) in &self.since {
            match (rest, data) {
                (Rest::Nothing, _) => {}
                (Rest::All, data) => Disk::apply(&mut file, *at, data.as_deref()),
                (Rest::Some, None) => {
                    if dice.below(2) == 0 {
                        Disk::apply(&mut file, *at, None);
                    }
                }
                (Rest::Some, Some(data)) => {
                    let mut place = *at;
                    let mut left = data.as_slice();
                    while !left.is_empty() {
                        let end = (SECTOR - place % SECTOR).min(left.len());
                        let (sector, later) = left.split_at(end);
                        if dice.below(2) == 0 {
                            Disk::apply(&mut file, place, Some(sector));
                        }
                        (place, left) = (place + end, later);
                    }
                }
            }
        }
        file
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Turns of both agents that a state of the disk has.
fn turns_of(folder: &Path) -> [u64; 2] {
    let store = open(&folder.join("a.db"));
    block_on(store.check()).unwrap();
    let tabled = key("echo/tabled/a");
    let tables = begin(&store, &tabled);
    let rows = value(&*tables, "SELECT count(*) FROM t").as_u64().unwrap();
    tables.abandon();
    let found = [
        counted(&store, &key("echo/plain/a")),
        counted(&store, &tabled),
    ];
    assert_eq!(found[1], rows, "tables and state");
    found
}

/// `cargo xtask power` says how many turns, and at each of how many acts the power is cut.
#[test]
#[ignore = "long, and needs strace: cargo xtask power"]
fn long_power_cuts() {
    let number =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (count, each) = (number("A99_POWER_TURNS", 60), number("A99_POWER_EACH", 1));
    let made = tempfile::tempdir().unwrap();
    let folder = made.path().canonicalize().unwrap();
    let store = open(&folder.join("a.db"));
    turns(&store, 1);
    store.close().unwrap();
    let mut disk: BTreeMap<PathBuf, Disk> = BTreeMap::new();
    for path in files(&folder) {
        let synced = fs::read(&path).unwrap();
        let since = Vec::new();
        disk.insert(path, Disk { synced, since });
    }

    let trace = tempfile::NamedTempFile::new().unwrap();
    let calls = "trace=write,pwrite64,ftruncate,fsync,fdatasync";
    let mut traced = Command::new("strace");
    traced.args(["-f", "-y", "-xx", "-s", "1000000", "-e", calls, "-o"]);
    traced
        .arg(trace.path())
        .arg(std::env::current_exe().unwrap());
    traced.args([
        "--exact",
        "cuts::child",
        "--ignored",
        "--nocapture",
        "--quiet",
    ]);
    traced
        .env(FILE, folder.join("a.db"))
        .env(TURNS, count.to_string());
    let traced = traced.stdin(Stdio::null()).stdout(Stdio::null());
    let status = traced.stderr(Stdio::null()).status();
    assert!(!status.unwrap().success(), "it aborts");
    let trace = fs::read_to_string(trace.path()).unwrap();
    let acts = acts(&trace, &folder);

    let mut dice = Dice::of(1);
    let (mut told, mut states, mut syncs, mut copied) = (1, 0, 0, 0);
    for (at, act) in (0_u64..).zip(acts) {
        let is_sync = matches!(act, Act::Sync(_));
        match act {
            Act::Write(path, offset, data) => {
                copied += u64::from(path.ends_with("a.db"));
                disk.entry(path)
                    .or_default()
                    .since
                    .push((offset, Some(data)));
            }
            Act::Truncate(path, len) => disk.entry(path).or_default().since.push((len, None)),
            Act::Sync(path) => {
                syncs += 1;
                disk.entry(path).or_default().sync();
            }
            Act::Told(n) => told = n,
        }
        if at % each != 0 && !(is_sync && at % 2 == 0) {
            continue;
        }
        let rest = [Rest::Nothing, Rest::All, Rest::Some][usize::try_from(at / each % 3).unwrap()];
        let cut = tempfile::tempdir().unwrap();
        for (path, file) in &disk {
            let place = cut.path().join(path.strip_prefix(&folder).unwrap());
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, file.after(rest, &mut dice)).unwrap();
        }
        let found = turns_of(cut.path());
        states += 1;
        assert!(
            found[0] >= told && found[1] >= told && found[0] <= told + 1 && found[1] <= found[0],
            "after act {at} with {rest:?} {found:?}, acknowledged {told}"
        );
    }
    assert_eq!(told, count, "all turns were acknowledged");
    println!("{states} states of {count} turns, {syncs} syncs, {copied} writes to the file");
    assert!(
        syncs >= 2 * count && copied > 0,
        "{syncs} syncs, {copied} copied"
    );
}
