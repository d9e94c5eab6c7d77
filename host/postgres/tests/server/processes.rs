//! Several processes on one server: killed at random moments, writing concurrently, and with a
//! killed server.
//!
//! The processes are this program, started for the one test [`child`]. The long forms:
//! `cargo test -p a99-postgres --features cluster --test server -- --ignored long_`.

#![allow(clippy::print_stdout, reason = "what processes tell the test")]

use crate::certificates::shared;
use crate::cluster::Cluster;
use crate::laws::processes::{
    ARGS, WRITERS, all_at_once, left, left_by, line, lines, pattern, play, prepared, start, told,
};
use crate::{block_on, open, text};
use a99_capabilities::Store;
use a99_postgres::PostgresStore;
use std::io::BufReader;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

#[test]
#[ignore = "what other tests start as processes"]
fn child() {
    play(|role, url| match role {
        "enter" => enter(url),
        _ => panic!("no role {role}"),
    });
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
        // The URL's password takes precedence.
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

/// Kills a writing process repeatedly and checks the data after each kill.
fn kill(times: usize) {
    let database = shared().database();
    let url = database.url();
    let mut acknowledged = 0;
    for round in 0..times {
        // In every second round this process has a store open.
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
        // The server may still run the child's last statement.
        let there = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'child'";
        while database.sql(there) != "0" {}
        let store = witness.unwrap_or_else(|| open(&url).unwrap());
        acknowledged += left(&store, &lines);
        store.clear().wait().unwrap();
        assert_eq!(store.usage().wait().unwrap().bytes, 0);
        store.close();
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

#[test]
fn processes_count_exactly() {
    all_at_once(&shared().database().url(), Duration::from_secs(2));
}

#[test]
#[ignore = "takes a minute"]
fn long_processes_count_exactly() {
    all_at_once(&shared().database().url(), Duration::from_secs(60));
}

/// Kills `servers` servers `times` times each, while a process writes and continues after each
/// restart. Every acknowledged write must be present; a write in doubt may be.
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

/// The same for one separate server.
fn kill_server(server: usize, times: usize) -> usize {
    // Leaked, so that it exists until the tests end.
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start(|_| {
        // After a crash a server syncs each of its files to disk; `syncfs` does so at once
        // (PostgreSQL 14 and later). Otherwise this is most of the recovery time.
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

/// Writes until the server is killed; checks all acknowledged writes and returns their number.
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
