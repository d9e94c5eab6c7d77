//! Several processes on one server: killed at any moment, all writing at once, and the
//! server killed meanwhile.
//!
//! The processes are this program, started for the one test [`child`]. The long forms:
//! `cargo test -p a99-postgres --features cluster --test server -- --ignored long_`.

#![allow(clippy::print_stdout, reason = "what processes tell the test")]

use crate::certificates::shared;
use crate::cluster::Cluster;
use crate::{block_on, object, open, text};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_postgres::PostgresStore;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a child does, the URL of its server, and for how many milliseconds.
const ROLE: &str = "A99_POSTGRES_ROLE";
const URL: &str = "A99_POSTGRES_URL";
const TIME: &str = "A99_POSTGRES_TIME";

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

fn prepared(mut command: Command, role: &str, url: &str, time: Duration) -> Command {
    command
        .env(ROLE, role)
        .env(URL, url)
        .env(TIME, time.as_millis().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

fn start(role: &str, url: &str, time: Duration) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS);
    prepared(command, role, url, time).spawn().unwrap()
}

/// The lines of a child that begin with a word, without it.
fn told(lines: &[String], word: &str) -> Vec<String> {
    let parts = lines.iter().filter_map(|line| line.strip_prefix(word));
    parts.map(|rest| rest.trim().to_owned()).collect()
}

/// The next line of a child, unless it has ended or was killed in the middle of it.
fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.strip_suffix('\n').map(str::to_owned)
}

fn lines(child: &mut Child) -> Vec<String> {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    std::iter::from_fn(|| line(&mut reader)).collect()
}

#[test]
#[ignore = "what other tests start as processes"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let url = std::env::var(URL).unwrap();
    let time = Duration::from_millis(std::env::var(TIME).unwrap().parse().unwrap());
    println!();
    match role.as_str() {
        "write" => write(&url),
        "count" => count(&url, time),
        "enter" => enter(&url),
        _ => panic!("no role {role}"),
    }
}

fn enter(url: &str) {
    match open(url) {
        Ok(_) => println!("let in"),
        Err(error) => println!("refused {}", error.code().name()),
    }
}

#[test]
fn the_environment_may_have_the_password() {
    let url = shared().database().url();
    let bare = url.replace(":swordfish@", "@");
    for (url, password, said) in [
        (&bare, "swordfish", "let in"),
        (&bare, "hunter2", "refused postgres.login"),
        // That of the URL counts.
        (&url, "hunter2", "let in"),
    ] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(ARGS).env("PGPASSWORD", password);
        let mut child = prepared(command, "enter", url, Duration::ZERO)
            .spawn()
            .unwrap();
        assert_eq!(told(&lines(&mut child), said), [""]);
        assert!(child.wait().unwrap().success());
    }
}

/// A value that shows whether it is whole.
fn pattern(n: usize) -> Value {
    let text = format!("{n} ").repeat(50 + n % 7 * 300);
    object(&[("n", n.into()), ("text", text.into())])
}

fn write(url: &str) {
    let store = open(url).unwrap();
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
    let database = shared().database();
    let url = database.url();
    let mut acknowledged = 0;
    for round in 0..times {
        // Every other time somebody has a store open all along.
        let witness = (round % 2 == 1).then(|| open(&url).unwrap());
        let named = format!("{url}&application_name=child");
        let mut child = start("write", &named, Duration::ZERO);
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut lines: Vec<String> = Vec::new();
        while !lines.last().is_some_and(|line| line.starts_with("ack ")) {
            lines.push(line(&mut reader).unwrap());
        }
        let wait = (round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        thread::sleep(Duration::from_micros(wait % 150_000));
        child.kill().unwrap();
        lines.extend(std::iter::from_fn(|| line(&mut reader)));
        child.wait().unwrap();
        // The server still does what it was asked last.
        let there = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'child'";
        while database.sql(there) != "0" {}
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        for ack in told(&lines, "ack ") {
            let (writer, n) = ack.split_once(' ').unwrap();
            last.insert(writer.parse().unwrap(), n.parse().unwrap());
            acknowledged += 1;
        }
        let store = witness.unwrap_or_else(|| open(&url).unwrap());
        let mut keys = 0;
        for writer in 0..WRITERS {
            let last = last.get(&writer).copied().unwrap_or(0);
            keys += left_by(&store, writer, last);
        }
        assert_eq!(store.usage().wait().unwrap().keys, keys);
        store.clear().wait().unwrap();
        assert_eq!(store.usage().wait().unwrap().bytes, 0);
        store.close();
    }
    println!("{times} kills, {acknowledged} writes acknowledged");
    assert!(acknowledged >= times, "{acknowledged}");
}

/// Looks at the ten keys of a writer: all that was acknowledged is there, at most one
/// write more, and each is whole. How many keys there are.
fn left_by(store: &PostgresStore, writer: usize, last: usize) -> u64 {
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

fn count(url: &str, time: Duration) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let store = open(url).unwrap();
    let until = Instant::now() + time;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..COUNTERS)
            .map(|task| tokio::spawn(count_up(store.clone(), task, until)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    println!("done");
}

async fn count_up(store: PostgresStore, task: usize, until: Instant) {
    let own = || Value::from(format!("own/{}/{task}", std::process::id()));
    let mut round = 0;
    while Instant::now() < until {
        let old = store.get("counter".into()).await.unwrap();
        let next = old.as_f64().unwrap_or(0.0) + 1.0;
        let swapped = store.compare_and_set("counter".into(), old, next.into(), None);
        if swapped.await.unwrap() == Value::Bool(true) {
            println!("won {next}");
        }
        round += 1;
        store.set(own(), round.into()).await.unwrap();
        assert_eq!(store.get(own()).await.unwrap(), round.into());
    }
}

/// Four processes with sixteen tasks each.
fn all_at_once(time: Duration) {
    let url = shared().database().url();
    let children: Vec<Child> = (0..4).map(|_| start("count", &url, time)).collect();
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
        assert!(!mine.is_empty(), "a process never came to count");
        won.extend(mine.iter().map(|n| n.parse::<u64>().unwrap()));
    }
    won.sort_unstable();
    // Every number once: no step was lost, and none taken twice.
    assert_eq!(won, (1..=won.len() as u64).collect::<Vec<_>>());
    let store = open(&url).unwrap();
    let counter = block_on(store.get("counter".into())).unwrap();
    assert_eq!(counter, won.len().into());
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

/// Kills servers, each so many times, while a process writes and goes on when they are there
/// again. What was acknowledged is there; what nobody knows of is there or not.
fn kill_servers(servers: usize, times: usize) {
    let began = Instant::now();
    let acknowledged: usize = thread::scope(|scope| {
        let killed: Vec<_> = (0..servers)
            .map(|server| scope.spawn(move || kill_server(server, times)))
            .collect();
        killed
            .into_iter()
            .map(|server| server.join().unwrap())
            .sum()
    });
    let (all, took) = (servers * times, began.elapsed());
    println!("{all} kills of the server, {acknowledged} writes acknowledged, in {took:?}");
    assert!(acknowledged >= all, "{acknowledged}");
}

/// The same for one of its own.
fn kill_server(server: usize, times: usize) -> usize {
    // It lives as long as the tests.
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start(|_| {
        // After a crash a server writes each of its files to the disk again; here, all at
        // once (PostgreSQL 14 and later). Otherwise that is most of what a kill takes.
        "recovery_init_sync_method = syncfs\n".to_owned()
    })));
    let database = cluster.database();
    let store = open(&database.url()).unwrap();
    let mut acknowledged = 0;
    for round in 0..times {
        let wait = ((server * times + round) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let wait = Duration::from_micros(100_000 + wait % 300_000);
        acknowledged += write_through(cluster, &store, wait);
        store.clear().wait().unwrap();
        assert_eq!(store.usage().wait().unwrap().bytes, 0);
    }
    acknowledged
}

/// Writes until the server is killed; how many writes were acknowledged, all of which are
/// looked at.
fn write_through(cluster: &Cluster, store: &PostgresStore, wait: Duration) -> usize {
    let written: Vec<usize> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for n in 1.. {
                        let key = format!("{writer}/{}", n % 10);
                        if let Err(error) = block_on(store.set(key.into(), pattern(n))) {
                            let seen = text(&error);
                            let known = seen.contains("reached") || seen.contains("broke off");
                            assert!(known, "{seen}");
                            return n - 1;
                        }
                    }
                    0
                })
            })
            .collect();
        thread::sleep(wait);
        cluster.kill();
        cluster.run();
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let mut keys = 0;
    for (writer, last) in written.iter().enumerate() {
        keys += left_by(store, writer, *last);
    }
    assert_eq!(store.usage().wait().unwrap().keys, keys);
    written.iter().sum()
}

#[test]
fn a_killed_server_loses_nothing_acknowledged() {
    kill_servers(1, 3);
}

#[test]
#[ignore = "takes minutes"]
fn long_a_killed_server_loses_nothing_acknowledged() {
    kill_servers(3, 100);
}
