//! Stores on a server that the tests start: the suite, owners, and lost connections.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![cfg(unix)]

#[path = "../../../../host/postgres/tests/server/cluster.rs"]
#[allow(dead_code, reason = "tests of the server need more of it")]
mod cluster;

use a99_capabilities::block_on;
use a99_postgres::PostgresOptions;
use a99_runtime_engine::{
    AgentKey, AgentStore, Body, ChannelStore, Fence, Message, NewEvent, NewState, Progress, Sender,
    StoreCode, StoreError, Trigger, TurnCommit, derived,
};
use a99_runtime_stores::suite::{Fixture, checks};
use a99_runtime_stores::{ConnectError, RuntimeStore, StoreLimits, StoreOptions};
use cluster::{Cluster, Database};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

fn database() -> Database {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER
        .get_or_init(|| Cluster::start(|_| String::new()))
        .database()
}

fn options(database: &Database) -> PostgresOptions {
    PostgresOptions::of_url(&database.url()).unwrap()
}

fn open(database: &Database) -> Result<RuntimeStore, ConnectError> {
    block_on(RuntimeStore::connect(
        options(database),
        StoreOptions::default(),
    ))
}

fn past_lock(database: &Database, limits: StoreLimits) -> RuntimeStore {
    let options_of_store = StoreOptions {
        limits,
        ..StoreOptions::default()
    };
    block_on(RuntimeStore::connect_past_lock(
        options(database),
        options_of_store,
    ))
    .unwrap()
}

fn event(channel: &str, id: &str) -> NewEvent {
    let body = Body::Message(Message::text(id));
    NewEvent::new(
        channel,
        derived(&[id]),
        Arc::new(Sender::default()),
        0,
        body,
    )
}

/// The `n`th turn of an agent, from 1: it counts and says so.
fn turn(store: &RuntimeStore, key: &AgentKey, n: u64) -> TurnCommit {
    let epoch = store.epoch(key);
    let fence = Fence {
        key: key.clone(),
        epoch,
    };
    let mut commit = TurnCommit::new(fence, n);
    commit.trigger = Some(Trigger::Event(n));
    commit.progress = Some(Progress {
        checkpoint: n,
        ..Progress::default()
    });
    commit.state = Some(NewState {
        json: format!("{{\"n\":{n}}}"),
        version: 1,
        base: n - 1,
    });
    commit
        .outbox
        .push(event(key.channel(), &format!("{key} {n}")));
    commit
}

struct Server(Database);

impl Fixture for Server {
    type Store = RuntimeStore;

    fn open(&self) -> Result<RuntimeStore, StoreError> {
        Ok(past_lock(&self.0, StoreLimits::SMALL))
    }
}

#[test]
fn the_suite_holds() {
    let mut findings = Vec::new();
    for (name, check) in checks::<Server>() {
        let server = Server(database());
        let outcome = block_on(check(&server));
        let whole = block_on(server.open().unwrap().check());
        findings.extend(outcome.err().map(|finding| format!("{name}: {finding}")));
        findings.extend(whole.err().map(|error| format!("{name}: {error}")));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn a_store_has_one_owner() {
    let database = database();
    let first = open(&database).unwrap();
    assert!(!first.was_cut_off());
    let Err(ConnectError::Store(error)) = open(&database) else {
        panic!("a second owner");
    };
    assert_eq!(error.code(), StoreCode::Locked);
    let owner = format!("process {}", std::process::id());
    assert!(error.to_string().contains(&owner), "{error}");
    assert!(!error.to_string().contains("swordfish"), "{error}");
    block_on(first.append(vec![event("c", "1")], None, 1)).unwrap();
    first.close().unwrap();
    // The server notices a closed connection a moment later.
    let second = loop {
        match open(&database) {
            Ok(store) => break store,
            Err(ConnectError::Store(_)) => thread::sleep(Duration::from_millis(20)),
            Err(error) => panic!("{error}"),
        }
    };
    assert!(!second.was_cut_off());
    assert_eq!(block_on(second.head("c")), Ok(1));
}

#[test]
fn an_earlier_owner_changes_nothing() {
    let database = database();
    let earlier = past_lock(&database, StoreLimits::default());
    let later = past_lock(&database, StoreLimits::default());
    assert!(later.was_cut_off());
    let fenced = |error: StoreError| assert_eq!(error.code(), StoreCode::Fenced, "{error}");
    let key: AgentKey = "a/c/a".parse().unwrap();
    fenced(block_on(earlier.append(vec![event("c", "1")], None, 1)).unwrap_err());
    fenced(block_on(earlier.commit(turn(&earlier, &key, 1))).unwrap_err());
    fenced(block_on(earlier.check_owned()).unwrap_err());
    block_on(later.check_owned()).unwrap();
    assert_eq!(block_on(later.head("c")), Ok(0));
    block_on(later.commit(turn(&later, &key, 1))).unwrap();
    assert_eq!(block_on(later.head("c")), Ok(1));
}

#[test]
fn owners_of_one_store_take_turns_in_writing() {
    let database = database();
    let stop = AtomicBool::new(false);
    let store = past_lock(&database, StoreLimits::default());
    let acknowledged = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut said = 0;
            while !stop.load(Ordering::Relaxed) {
                let one = event("c", &format!("first {said}"));
                match block_on(store.append(vec![one], None, 1)) {
                    Ok(_) => said += 1,
                    Err(error) => {
                        assert_eq!(error.code(), StoreCode::Fenced, "{error}");
                        break;
                    }
                }
            }
            said
        });
        thread::sleep(Duration::from_millis(300));
        let later = past_lock(&database, StoreLimits::default());
        let head = block_on(later.head("c")).unwrap();
        thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
        let said = writer.join().unwrap();
        assert_eq!(block_on(later.head("c")), Ok(head), "it wrote afterwards");
        assert_eq!(said, head);
        said
    });
    assert!(acknowledged > 0);
}

#[test]
fn channels_grow_without_gaps_under_concurrent_writers() {
    let database = database();
    let store = past_lock(&database, StoreLimits::default());
    thread::scope(|scope| {
        for writer in 0..12_u32 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..20 {
                    // In different orders: the server ends the deadlocks.
                    let mut channels = ["a", "b", "c"];
                    channels.rotate_left((writer % 3) as usize);
                    let events = channels
                        .iter()
                        .map(|c| event(c, &format!("{c} {writer} {n}")));
                    let appended = block_on(store.append(events.collect(), None, 1)).unwrap();
                    assert!(appended.iter().all(|one| one.is_new));
                }
            });
        }
    });
    for channel in ["a", "b", "c"] {
        assert_eq!(block_on(store.head(channel)), Ok(240));
    }
    block_on(store.check()).unwrap();
}

/// Turns of four agents and events of a channel, while `harm` goes on.
fn counted_under(database: &Database, store: &RuntimeStore, harm: impl Fn() + Sync) -> u64 {
    let stop = AtomicBool::new(false);
    let done: Vec<u64> = thread::scope(|scope| {
        let agents: Vec<_> = (0..4)
            .map(|agent| {
                let stop = &stop;
                scope.spawn(move || {
                    let key: AgentKey = format!("a/c{agent}/a").parse().unwrap();
                    let mut n = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let receipt = block_on(store.commit(turn(store, &key, n + 1)));
                        n += 1;
                        assert_eq!(receipt.unwrap().revision, n);
                        let one = event("shared", &format!("{agent} {n}"));
                        let appended = block_on(store.append(vec![one], None, n)).unwrap();
                        assert!(appended[0].is_new, "an event was there before");
                    }
                    n
                })
            })
            .collect();
        harm();
        stop.store(true, Ordering::Relaxed);
        agents.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (agent, n) in done.iter().enumerate() {
        let key: AgentKey = format!("a/c{agent}/a").parse().unwrap();
        let row = block_on(store.load(&key)).unwrap().unwrap();
        assert_eq!((row.revision, row.progress.checkpoint), (*n, *n));
        assert_eq!(block_on(store.head(key.channel())), Ok(*n));
    }
    let all = done.iter().sum();
    assert_eq!(block_on(store.head("shared")), Ok(all));
    block_on(store.check()).unwrap();
    let used = database.sql("SELECT count(*) FROM agent99.agent_writer WHERE last > 0");
    assert_ne!(used, "0");
    all
}

#[test]
fn broken_connections_leave_no_doubt() {
    let database = database();
    let store = open(&database).unwrap();
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE application_name = 'agent99' AND datname = current_database()";
    let all = counted_under(&database, &store, || {
        for _ in 0..60 {
            thread::sleep(Duration::from_millis(30));
            database.sql(cut);
        }
    });
    assert!(all > 50, "{all} turns");
    // The lock is held again.
    thread::sleep(Duration::from_secs(4));
    assert!(matches!(open(&database), Err(ConnectError::Store(_))));
}

#[test]
fn a_killed_server_loses_and_doubles_nothing() {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| Cluster::start(|_| String::new()));
    let database = cluster.database();
    let store = open(&database).unwrap();
    let all = counted_under(&database, &store, || {
        for _ in 0..4 {
            thread::sleep(Duration::from_millis(700));
            cluster.kill();
            cluster.run();
        }
        thread::sleep(Duration::from_millis(500));
    });
    assert!(all > 50, "{all} turns");
}

#[test]
fn texts_that_no_server_takes_are_refused() {
    let store = past_lock(&database(), StoreLimits::default());
    let key: AgentKey = "a/c/a".parse().unwrap();
    let mut commit = turn(&store, &key, 1);
    let mut attached = event("c", "1");
    attached
        .event
        .attachments
        .push(a99_runtime_engine::Attachment {
            id: "1".to_owned(),
            mime_type: "text/\0".to_owned(),
            name: None,
            data: Vec::new(),
        });
    commit.outbox.push(attached);
    let error = block_on(store.commit(commit)).unwrap_err();
    assert_eq!(error.code(), StoreCode::Input, "{error}");
    assert_eq!(block_on(store.load(&key)), Ok(None));
    // In JSON it is escaped.
    let appended = block_on(store.append(vec![event("c", "\0")], None, 1));
    assert_eq!(appended.unwrap()[0].event.seq, Some(1));
    let found = block_on(store.read("c", 0, 9)).unwrap();
    assert!(matches!(&found[0].body, Body::Message(message) if message.content == "\0"));
    assert!(
        block_on(store.tables(Fence {
            epoch: store.epoch(&key),
            key
        }))
        .is_err()
    );
}
