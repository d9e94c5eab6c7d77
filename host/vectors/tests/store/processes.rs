//! Processes that are killed while they add, replace and delete documents.
//!
//! The processes are this program, started for the one test [`child`]. The long form:
//! `cargo test -p a99-vectors --features sqlite --test store -- --ignored long_`.

use crate::{block_on, create, ids, object, vector};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_vectors::VectorStore;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The file of a child.
const FILE: &str = "A99_VECTORS_FILE";

/// Threads of a child, each with a collection.
const WRITERS: usize = 3;

/// Ids that a writer uses in turn.
const IDS: usize = 6;

#[test]
#[ignore = "what other tests start as a process"]
fn child() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let store = VectorStore::open(file).unwrap();
    say("open");
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for n in 1.. {
                    change(store, writer, n);
                    say(&format!("ack {writer} {n}"));
                }
            });
        }
    });
}

fn say(line: &str) {
    let mut out = stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// The document of a number, which shows whether it is whole.
fn pattern(n: usize) -> Value {
    let numbers: Vec<f64> = (0..64).map(|i| ((n * 7 + i) % 97) as f64 + 1.0).collect();
    let text = format!("{n} ").repeat(20 + n % 5 * 100);
    let id = (n % IDS).to_string();
    object(&[
        ("id", id.into()),
        ("n", n.into()),
        ("embedding", vector(&numbers)),
        ("text", text.into()),
    ])
}

/// The change of a number: each fourth deletes, the others set.
fn change(store: &VectorStore, writer: usize, n: usize) {
    let collection = Value::from(writer.to_string());
    let changed = match n % 4 {
        3 => store.vector_delete(collection, (n % IDS).to_string().into()),
        _ => store.vector_upsert(collection, pattern(n)),
    };
    block_on(changed).unwrap();
}

/// What there is after so many changes, by id.
fn after(last: usize) -> BTreeMap<String, usize> {
    let mut there = BTreeMap::new();
    for n in 1..=last {
        let id = (n % IDS).to_string();
        match n % 4 {
            3 => there.remove(&id),
            _ => there.insert(id, n),
        };
    }
    there
}

fn start(file: &Path) -> Child {
    let args = [
        "--exact",
        "processes::child",
        "--include-ignored",
        "--nocapture",
        "--quiet",
    ];
    Command::new(std::env::current_exe().unwrap())
        .args(args)
        .env(FILE, file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// The last number that each writer was told is kept. A line that was cut has no end.
fn acknowledged(child: &mut Child) -> BTreeMap<usize, usize> {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let (mut last, mut line) = (BTreeMap::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 0 {
        if let Some(ack) = line
            .strip_suffix('\n')
            .and_then(|line| line.strip_prefix("ack "))
        {
            let (writer, n) = ack.split_once(' ').unwrap();
            last.insert(writer.parse().unwrap(), n.parse().unwrap());
        }
        line.clear();
    }
    last
}

/// Kills a writing process many times, and looks at what it left.
fn kill(times: usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let mut total = 0;
    for round in 0..times {
        let witness = VectorStore::open(&file).unwrap();
        witness.clear_vectors().wait().unwrap();
        for writer in 0..WRITERS {
            create(&witness, &writer.to_string());
            assert!(left_by(&witness, writer).is_empty());
        }
        let mut child = start(&file);
        let wait = (round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        thread::sleep(Duration::from_micros(20_000 + wait % 200_000));
        child.kill().unwrap();
        let last = acknowledged(&mut child);
        child.wait().unwrap();
        // Every other time nobody has had the file open.
        let store = match round % 2 {
            0 => VectorStore::open(&file).unwrap(),
            _ => witness.clone(),
        };
        let mut documents = 0;
        for writer in 0..WRITERS {
            let last = last.get(&writer).copied().unwrap_or(0);
            total += last;
            let there = left_by(&store, writer);
            documents += there.len();
            assert!(
                there == after(last) || there == after(last + 1),
                "{there:?} after {last}: {:?}",
                after(last)
            );
            assert_eq!(left_by(&witness, writer), there);
        }
        store.keys().database().check().wait().unwrap();
        let usage = store.vector_usage().wait().unwrap();
        assert_eq!(usage.documents, documents as u64);
        witness.keys().database().clone().close();
        store.keys().database().clone().close();
    }
    say(&format!("{times} kills, {total} changes acknowledged"));
    assert!(total >= 5 * times, "{total}");
}

/// The documents of a writer, each of which is whole.
fn left_by(store: &VectorStore, writer: usize) -> BTreeMap<String, usize> {
    let collection = writer.to_string();
    let found = crate::found(store, &collection, &[1.0; 64], 1_000);
    let there: BTreeMap<String, usize> = found
        .iter()
        .map(|document| {
            let n = document.get("n").and_then(Value::as_f64).unwrap() as usize;
            assert!(*document == pattern(n), "{n} is half");
            ((n % IDS).to_string(), n)
        })
        .collect();
    assert_eq!(there.len(), found.len());
    // By id, too.
    for (id, n) in &there {
        let filter = object(&[("id", id.as_str().into())]);
        let search = store.vector_search(
            collection.as_str().into(),
            vector(&[1.0; 64]),
            9.0.into(),
            filter,
        );
        let by_id = block_on(search).unwrap();
        assert_eq!(by_id, vec![pattern(*n)].into());
    }
    assert_eq!(
        ids(store, &collection, &[1.0; 64], 1_000).len(),
        there.len()
    );
    there
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    kill(10);
}

#[test]
#[ignore = "takes minutes"]
fn long_a_killed_process_loses_nothing_acknowledged() {
    kill(300);
}
