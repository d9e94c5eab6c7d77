//! Power cuts and full disks: logs that end anywhere, and files that may not grow.

use crate::{block_on, counted, event, fence, key, open, turn};
use a99_runtime_engine::{AgentStore, ChannelStore, StoreCode};
use a99_runtime_stores::{Durability, SqliteRuntime, StoreOptions};
use std::fs;

/// Bytes of a frame of SQLite's log, after those of its head.
const FRAME: usize = 24 + 4096;

/// Turns whose frames are all in the log.
const TURNS: u64 = 6;

/// Frames at the end of the log that are cut: more than a turn has.
const CUT: usize = 10;

#[test]
fn torn_logs_end_at_a_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    // An owner begins its log anew after the tables are made.
    open(&path).close().unwrap();
    let store = open(&path);
    let a = key("echo/general/a");
    for n in 1..=TURNS {
        block_on(store.commit(turn(fence(&store, &a), n))).unwrap();
    }
    let file = fs::read(&path).unwrap();
    let log = fs::read(folder.path().join("a.db-wal")).unwrap();
    store.close().unwrap();
    assert!(log.len() > (CUT + 1) * FRAME, "{}", log.len());

    let copy = folder.path().join("copy.db");
    let open_cut = |log: &[u8]| {
        for end in ["-shm", "-wal"] {
            drop(fs::remove_file(folder.path().join(format!("copy.db{end}"))));
        }
        fs::write(&copy, &file).unwrap();
        fs::write(folder.path().join("copy.db-wal"), log).unwrap();
        let store = open(&copy);
        block_on(store.check()).unwrap();
        counted(&store, &a)
    };
    assert_eq!(open_cut(&log), TURNS);
    let first = log.len() - CUT * FRAME;
    // Every byte of a frame's head, and some of its page.
    let is_cut = |at: &usize| (at - first) % FRAME < 26 || (at - first).is_multiple_of(509);
    let mut last = 0;
    for at in (first..log.len()).filter(is_cut) {
        let counted = open_cut(&log[..at]);
        assert!(counted >= last && counted < TURNS, "{counted} at {at}");
        last = counted;
    }
    assert_eq!(last, TURNS - 1);
    // What the disk wrote in another order: a page of the last turn is not there yet.
    for frame in 1..=2 {
        let mut damaged = log.clone();
        let at = log.len() - frame * FRAME + 100;
        damaged[at..at + 512].fill(0xA5);
        assert_eq!(open_cut(&damaged), TURNS - 1);
    }
}

#[test]
fn a_full_disk_takes_no_more_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let options = StoreOptions {
        max_file_bytes: Some(2 << 20),
        ..StoreOptions::default()
    };
    let store = SqliteRuntime::open(&path, options).unwrap();
    let a = key("echo/general/a");
    let large = |store: &SqliteRuntime, n: u64| {
        let mut commit = turn(fence(store, &a), n);
        commit.outbox = vec![event(&a, &n.to_string(), &"x".repeat(50_000))];
        block_on(store.commit(commit))
    };
    let mut kept = 0;
    let error = loop {
        match large(&store, kept + 1) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), StoreCode::Unavailable, "{error}");
    assert!(error.to_string().contains("room"), "{error}");
    assert!(kept > 10, "{kept}");
    // Again and again, and at the same time.
    for _ in 0..3 {
        let both = [large(&store, kept + 1), large(&store, kept + 1)];
        both.into_iter()
            .for_each(|refused| assert_eq!(refused.unwrap_err().code(), StoreCode::Unavailable));
    }
    assert_eq!(counted(&store, &a), kept);
    block_on(store.check()).unwrap();
    drop(store);
    // With room it goes on.
    let store = open(&path);
    assert_eq!(counted(&store, &a), kept);
    large(&store, kept + 1).unwrap();
    assert_eq!(counted(&store, &a), kept + 1);
    store.close().unwrap();
}

#[test]
fn a_flush_is_on_the_disk_in_any_durability() {
    for durability in [Durability::Relaxed, Durability::Process, Durability::Power] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let options = StoreOptions {
            durability,
            ..StoreOptions::default()
        };
        let store = SqliteRuntime::open(&path, options).unwrap();
        let a = key("echo/general/a");
        // Not waited for: what was asked for before it is part of it.
        let commit = store.commit(turn(fence(&store, &a), 1));
        block_on(store.flush()).unwrap();
        if durability == Durability::Relaxed {
            // The file alone has it, without the log.
            let copy = folder.path().join("copy.db");
            fs::copy(&path, &copy).unwrap();
            assert_eq!(counted(&open(&copy), &a), 1);
        }
        block_on(commit).unwrap();
        assert_eq!(counted(&store, &a), 1);
    }
}

#[test]
fn an_agent_beyond_its_log_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let (a, b) = (key("echo/general/a"), key("echo/other/b"));
    for n in 1..=3 {
        block_on(store.commit(turn(fence(&store, &a), n))).unwrap();
    }
    block_on(store.commit(turn(fence(&store, &b), 1))).unwrap();
    let lose = store.database().expect("a file").write(|tx| {
        Ok(tx.execute_batch(
            "DELETE FROM channel_log WHERE seq > 1;
             UPDATE channel SET head = 1, hash = (SELECT hash FROM channel_log WHERE seq = 1
                 AND channel = channel.id)",
        )?)
    });
    lose.wait().unwrap();
    let error = block_on(store.load(&a)).unwrap_err();
    assert_eq!(error.code(), StoreCode::Unreadable);
    assert!(error.to_string().contains("call `set_back`"), "{error}");
    assert_eq!(block_on(store.check()).unwrap_err(), error);
    assert_eq!(counted(&store, &b), 1);
    assert_eq!(block_on(store.set_back(&a)), Ok(1));
    let row = block_on(store.load(&a)).unwrap().unwrap();
    assert_eq!((row.progress.checkpoint, row.revision), (1, 3));
    block_on(store.check()).unwrap();
    let nobody = block_on(store.set_back(&key("echo/general/nobody")));
    assert_eq!(nobody.unwrap_err().code(), StoreCode::NotFound);

    // A log that was changed is told.
    let change = |sql: &'static str| {
        store
            .database()
            .expect("a file")
            .write(|tx| Ok(tx.execute(sql, [])?))
    };
    let bodies = "UPDATE channel_log SET body = replace(body, '1', '2')";
    change(bodies).wait().unwrap();
    let error = block_on(store.check()).unwrap_err();
    assert_eq!(error.code(), StoreCode::Unreadable, "{error}");
    assert_eq!(block_on(store.head("general")), Ok(1));
}
