//! The two files of an agent with tables: they agree, whatever happens between their commits.

use crate::tables::{begin, commit, exec, value};
use crate::{block_on, counted, fence, key, open, turn};
use a99_runtime_engine::{AgentStore, ChannelStore, StoreCode};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use std::fs;
use std::path::Path;

fn run(store: &SqliteRuntime, sql: &'static str) {
    let write = store
        .database()
        .expect("a file")
        .write(move |tx| Ok(tx.execute_batch(sql)?));
    write.wait().unwrap();
}

/// The shared file refuses to note turns of other files: their own files are committed by then.
const DEAF: &str = "CREATE TRIGGER deaf BEFORE UPDATE ON agent_tables
                    BEGIN SELECT RAISE(ABORT, 'the second commit fails'); END";

fn past_lock(path: &Path) -> SqliteRuntime {
    SqliteRuntime::open_past_lock(path, StoreOptions::default()).unwrap()
}

/// A store with an agent whose first turn made a table, and whose second is between the
/// commits.
fn between(path: &Path) -> (SqliteRuntime, u64) {
    let store = past_lock(path);
    let a = key("echo/general/a");
    let first = begin(&store, &a);
    exec(&*first, "CREATE TABLE t (n); INSERT INTO t VALUES (1)").unwrap();
    commit(&store, &a, 1, &*first).unwrap();
    run(&store, DEAF);
    let second = begin(&store, &a);
    exec(&*second, "INSERT INTO t VALUES (2)").unwrap();
    let failed = commit(&store, &a, 2, &*second).unwrap_err();
    assert_eq!(failed.code(), StoreCode::Unavailable, "{failed}");
    assert_eq!(block_on(store.head("general")).unwrap(), 1);
    // Nothing is read of the agent before the rest is done.
    assert!(block_on(store.load(&a)).is_err());
    assert!(block_on(store.timers(&a)).is_err());
    assert!(block_on(store.commit(turn(fence(&store, &a), 3))).is_err());
    (store, second.id())
}

#[test]
fn a_second_commit_that_failed_is_made_when_it_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, id) = between(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    run(&store, "DROP TRIGGER deaf");
    for _ in 0..2 {
        let mut again = turn(fence(&store, &a), 2);
        again.tables = Some(id);
        let receipt = block_on(store.commit(again)).unwrap();
        assert_eq!(receipt.revision, 2);
        assert_eq!(receipt.appended.len(), 1);
        assert_eq!(counted(&store, &a), 2);
    }
    let third = begin(&store, &a);
    assert_eq!(value(&*third, "SELECT group_concat(n) FROM t"), "1,2");
    exec(&*third, "INSERT INTO t VALUES (3)").unwrap();
    commit(&store, &a, 3, &*third).unwrap();
    assert_eq!(counted(&store, &a), 3);
    store.close().unwrap();
}

#[test]
fn whoever_reads_the_agent_first_does_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (store, id) = between(&path);
    let a = key("echo/general/a");
    run(&store, "DROP TRIGGER deaf");
    assert_eq!(counted(&store, &a), 2);
    // The one who asked for it finds it done.
    let mut again = turn(fence(&store, &a), 2);
    again.tables = Some(id);
    assert_eq!(block_on(store.commit(again)).unwrap().revision, 2);
    assert_eq!(counted(&store, &a), 2);
}

#[test]
fn the_next_owner_does_what_is_missing() {
    for closes in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let (store, _) = between(&path);
        let a = key("echo/general/a");
        run(&store, "DROP TRIGGER deaf");
        // Nobody reads it any more.
        match closes {
            true => store.close().unwrap(),
            false => std::mem::forget(store),
        }
        let store = past_lock(&path);
        if !closes {
            // Of what was not closed well it is done at once.
            assert_eq!(block_on(store.head("general")).unwrap(), 2);
        }
        assert_eq!(counted(&store, &a), 2);
        let tables = begin(&store, &a);
        assert_eq!(value(&*tables, "SELECT group_concat(n) FROM t"), "1,2");
        drop(tables);
        store.close().unwrap();
    }
}

#[test]
fn an_older_owner_commits_nothing_in_either_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let a = key("echo/general/a");
    let older = past_lock(&path);
    let first = begin(&older, &a);
    exec(&*first, "CREATE TABLE t (n)").unwrap();
    commit(&older, &a, 1, &*first).unwrap();
    // It has a turn open when the other one comes.
    let second = begin(&older, &a);
    exec(&*second, "INSERT INTO t VALUES (666)").unwrap();
    let newer = past_lock(&path);
    let fenced = commit(&older, &a, 2, &*second).unwrap_err();
    assert_eq!(fenced.code(), StoreCode::Fenced, "{fenced}");
    second.abandon();
    let tables = begin(&newer, &a);
    exec(&*tables, "INSERT INTO t VALUES (1)").unwrap();
    // It may still look, not begin.
    let late = begin(&older, &a);
    assert_eq!(
        exec(&*late, "SELECT 1").unwrap_err().code(),
        StoreCode::Fenced
    );
    commit(&newer, &a, 2, &*tables).unwrap();
    assert_eq!(counted(&newer, &a), 2);
    let tables = begin(&newer, &a);
    assert_eq!(value(&*tables, "SELECT group_concat(n) FROM t"), "1");
}

#[test]
fn an_older_owner_that_is_between_the_commits_changes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (older, id) = between(&path);
    let a = key("echo/general/a");
    run(&older, "DROP TRIGGER deaf");
    let newer = past_lock(&path);
    let tables = begin(&newer, &a);
    exec(&*tables, "INSERT INTO t VALUES (3)").unwrap();
    commit(&newer, &a, 3, &*tables).unwrap();
    let mut again = turn(fence(&older, &a), 2);
    again.tables = Some(id);
    let fenced = block_on(older.commit(again)).unwrap_err();
    assert_eq!(fenced.code(), StoreCode::Fenced, "{fenced}");
    assert_eq!(counted(&newer, &a), 3);
}

#[test]
fn files_of_two_times_are_told_and_can_be_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let a = key("echo/general/a");
    let store = open(&path);
    let first = begin(&store, &a);
    exec(&*first, "CREATE TABLE t (n); INSERT INTO t VALUES (1)").unwrap();
    commit(&store, &a, 1, &*first).unwrap();
    drop(first);
    let own = store.tables_path(&a);
    store.close().unwrap();
    let before = fs::read(&own).unwrap();

    let store = open(&path);
    let second = begin(&store, &a);
    exec(&*second, "INSERT INTO t VALUES (2)").unwrap();
    commit(&store, &a, 2, &*second).unwrap();
    drop(second);
    store.close().unwrap();
    fs::write(&own, before).unwrap();

    let store = open(&path);
    let told = block_on(store.load(&a)).unwrap_err();
    assert_eq!(told.code(), StoreCode::Unreadable);
    assert!(
        told.to_string().contains("have 1 turns and the store 2"),
        "{told}"
    );
    // Others do not notice.
    let b = key("echo/other/b");
    assert!(block_on(store.load(&b)).unwrap().is_none());
    assert_eq!(block_on(store.accept_tables(&a)).unwrap(), 1);
    assert_eq!(counted(&store, &a), 2);
    let tables = begin(&store, &a);
    assert_eq!(value(&*tables, "SELECT group_concat(n) FROM t"), "1");
    exec(&*tables, "INSERT INTO t VALUES (3)").unwrap();
    commit(&store, &a, 3, &*tables).unwrap();
    drop(tables);
    assert_eq!(
        block_on(store.accept_tables(&b)).unwrap_err().code(),
        StoreCode::NotFound
    );
    store.close().unwrap();

    // Gone, damaged, another's.
    fs::remove_file(&own).unwrap();
    let store = open(&path);
    let gone = block_on(store.load(&a)).unwrap_err();
    assert!(gone.to_string().contains("are gone"), "{gone}");
    assert!(!own.exists());
    fs::write(
        &own,
        "this is no database at all, but long enough to look at",
    )
    .unwrap();
    let damaged = block_on(store.load(&a)).unwrap_err();
    assert_eq!(damaged.code(), StoreCode::Unreadable, "{damaged}");
    fs::remove_file(&own).unwrap();
    let tables = begin(&store, &b);
    exec(&*tables, "CREATE TABLE t (n)").unwrap();
    commit(&store, &b, 1, &*tables).unwrap();
    drop(tables);
    let others = store.tables_path(&b);
    store.close().unwrap();
    fs::copy(others, &own).unwrap();
    let store = open(&path);
    let others = block_on(store.load(&a)).unwrap_err();
    assert!(
        others.to_string().contains("tables of echo/other/b"),
        "{others}"
    );
}
