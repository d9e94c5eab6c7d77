//! Several processes on one store: their roles, and the checks of their results.
//!
//! The processes are the test program, started for its test `processes::child`.

#![allow(clippy::print_stdout, reason = "what processes tell the test")]

use crate::{Tested, block_on, object, open_at};
use a99_capabilities::Store;
use a99_core::value::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Variables with the role of a child, the place of its store, and its time in milliseconds.
const ROLE: &str = "A99_STORE_ROLE";
const PLACE: &str = "A99_STORE_PLACE";
const TIME: &str = "A99_STORE_TIME";

/// Arguments that start a child.
pub(crate) const ARGS: [&str; 5] = [
    "--exact",
    "processes::child",
    "--include-ignored",
    "--nocapture",
    "--quiet",
];

/// Threads of a child that writes until it is killed.
pub(crate) const WRITERS: usize = 4;

/// Tasks of a child that counts.
const COUNTERS: usize = 16;

pub(crate) fn prepared(mut command: Command, role: &str, place: &str, time: Duration) -> Command {
    command
        .env(ROLE, role)
        .env(PLACE, place)
        .env(TIME, time.as_millis().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

pub(crate) fn start(role: &str, place: &str, time: Duration) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS);
    prepared(command, role, place, time).spawn().unwrap()
}

/// Plays the role in the environment, if any; `others` knows roles of one kind of store.
pub(crate) fn play(others: impl FnOnce(&str, &str)) {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let place = std::env::var(PLACE).unwrap();
    let time = Duration::from_millis(std::env::var(TIME).unwrap().parse().unwrap());
    println!();
    match role.as_str() {
        "write" => write(&place),
        "count" => count(&place, time),
        role => others(role, &place),
    }
}

/// The lines of a child that begin with a word, without it.
pub(crate) fn told(lines: &[String], word: &str) -> Vec<String> {
    let parts = lines.iter().filter_map(|line| line.strip_prefix(word));
    parts.map(|rest| rest.trim().to_owned()).collect()
}

/// The next whole line of a child, or `None` once it has ended.
pub(crate) fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.strip_suffix('\n').map(str::to_owned)
}

pub(crate) fn lines(child: &mut Child) -> Vec<String> {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    std::iter::from_fn(|| line(&mut reader)).collect()
}

/// A value whose damage is detectable.
pub(crate) fn pattern(n: usize) -> Value {
    let text = format!("{n} ").repeat(50 + n % 7 * 300);
    object(&[("n", n.into()), ("text", text.into())])
}

fn write(place: &str) {
    let store = open_at(place);
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

/// Checks the store after a writing process that printed these lines; returns the number of
/// acknowledged writes.
pub(crate) fn left(store: &Tested, lines: &[String]) -> usize {
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    let acknowledged = told(lines, "ack ");
    for ack in &acknowledged {
        let (writer, n) = ack.split_once(' ').unwrap();
        last.insert(writer.parse().unwrap(), n.parse().unwrap());
    }
    let mut keys = 0;
    for writer in 0..WRITERS {
        keys += left_by(store, writer, last.get(&writer).copied().unwrap_or(0));
    }
    assert_eq!(store.usage().wait().unwrap().keys, keys);
    acknowledged.len()
}

/// Checks the ten keys of a writer: each acknowledged write is present, at most one more, and
/// each is whole. Returns the number of keys.
pub(crate) fn left_by(store: &Tested, writer: usize, last: usize) -> u64 {
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

fn count(place: &str, time: Duration) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let store = open_at(place);
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

/// Counts until the time is over and at least one task has won.
async fn count_up(store: Tested, task: usize, until: Instant, won: Arc<AtomicBool>) {
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

/// Runs four processes with sixteen tasks each; returns the store afterwards.
pub(crate) fn all_at_once(place: &str, time: Duration) -> Tested {
    let children: Vec<Child> = (0..4).map(|_| start("count", place, time)).collect();
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
    // Every number once: no step was lost or taken twice.
    assert_eq!(won, (1..=won.len() as u64).collect::<Vec<_>>());
    let store = open_at(place);
    let counter = block_on(store.get("counter".into())).unwrap();
    assert_eq!(counter, won.len().into());
    assert_eq!(store.usage().wait().unwrap().keys, 4 * COUNTERS as u64 + 1);
    println!("counted to {} in {time:?}", won.len());
    store
}
