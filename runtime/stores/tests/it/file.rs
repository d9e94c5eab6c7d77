//! File of a store: opened, closed, and opened again.

use crate::{block_on, event, fence, key, open, turn};
use a99_runtime_engine::{
    AgentStore, Body, ChannelStore, KeptTurn, NewState, StoreCode, TRACEPARENT, Trigger,
};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};

#[test]
fn a_turn_is_kept_whole_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path);
    assert!(store.was_cut_off().is_empty());
    let a = key("echo/general/a");
    assert_eq!(block_on(store.load(&a)), Ok(None));
    for n in 1..=3 {
        let receipt = block_on(store.commit(turn(fence(&store, &a), n))).unwrap();
        assert_eq!(receipt.revision, n);
        assert_eq!(receipt.appended[0].event.seq, Some(n));
    }
    store.close().unwrap();
    let store = open(&path);
    assert!(store.was_cut_off().is_empty());
    let row = block_on(store.load(&a)).unwrap().unwrap();
    assert_eq!(
        (row.state.as_str(), row.progress.checkpoint),
        ("{\"n\":3}", 3)
    );
    let events = block_on(ChannelStore::read(&store, "general", 0, 100)).unwrap();
    assert_eq!(events.len(), 3);
    block_on(store.check()).unwrap();
    drop(store);
    assert!(!open(&path).was_cut_off().is_empty());
}

#[test]
fn one_process_has_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path);
    let error = SqliteRuntime::open(&path, StoreOptions::default()).unwrap_err();
    assert_eq!(error.code(), StoreCode::Locked);
    let pid = format!("process {} has it open", std::process::id());
    assert!(error.to_string().contains(&pid), "{error}");
    store.close().unwrap();
    open(&path);
}

#[test]
fn events_for_channels_elsewhere_wait_in_the_outbox() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        has_channels: false,
        ..StoreOptions::default()
    };
    let store = SqliteRuntime::open(folder.path().join("a.db"), options).unwrap();
    let a = key("echo/general/a");
    for n in 1..=2 {
        let receipt = block_on(store.commit(turn(fence(&store, &a), n))).unwrap();
        assert_eq!((receipt.revision, receipt.appended.len()), (n, 0));
    }
    // Its log is not here to be compared with.
    assert!(block_on(store.load(&a)).unwrap().is_some());
    block_on(store.check()).unwrap();
    let waiting = block_on(store.outbox(10)).unwrap();
    let sent = |n: u64| turn(fence(&store, &a), n).outbox.remove(0);
    assert_eq!(waiting, [(a.clone(), sent(1)), (a.clone(), sent(2))]);
    assert_eq!(block_on(store.outbox(1)).unwrap().len(), 1);
    let mut other = turn(fence(&store, &a), 3);
    other.outbox = vec![event(&a, "echo/general/a 1", "other")];
    let other = block_on(store.commit(other)).unwrap_err();
    assert_eq!(other.code(), StoreCode::ChangedBody);
    let mut traced = turn(fence(&store, &a), 3);
    let mut again = sent(1);
    if let Body::Message(message) = &mut again.event.body {
        message.metadata = Some(serde_json::json!({TRACEPARENT: "another"}));
    }
    traced.outbox = vec![again];
    block_on(store.commit(traced)).unwrap();
    assert_eq!(block_on(store.outbox(10)).unwrap(), waiting);
    block_on(store.outbox_done(vec![sent(1).event.id])).unwrap();
    assert_eq!(block_on(store.outbox(10)).unwrap(), [(a.clone(), sent(2))]);
    let here = block_on(store.append(vec![sent(1)], None, 1)).unwrap_err();
    assert_eq!(here.code(), StoreCode::Input);
}

#[test]
fn migrations_keep_backups() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    block_on(store.commit(turn(fence(&store, &a), 1))).unwrap();
    let state = |base| NewState {
        json: "{}".to_owned(),
        version: 3,
        base,
    };
    let before = vec![(1, "{\"n\":1}".to_owned()), (2, "{\"m\":1}".to_owned())];
    let stale = store.migrate_state(fence(&store, &a), state(0), before.clone(), 5);
    assert_eq!(block_on(stale).unwrap_err().code(), StoreCode::Conflict);
    assert_eq!(block_on(store.backups(&a)), Ok(Vec::new()));
    let migrated = store.migrate_state(fence(&store, &a), state(1), before.clone(), 5);
    assert_eq!(block_on(migrated), Ok(2));
    assert_eq!(block_on(store.backups(&a)), Ok(before));
}

#[test]
fn files_that_are_no_stores_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let code = |name: &str| {
        let path = folder.path().join(name);
        let error = SqliteRuntime::open(path, StoreOptions::default()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        error.code()
    };
    std::fs::write(folder.path().join("text"), "no database ".repeat(100)).unwrap();
    assert_eq!(code("text"), StoreCode::Unreadable);
    assert_eq!(code("no/folder"), StoreCode::NotFound);
    let path = folder.path().join("newer");
    let newer = open(&path);
    let raise = newer.database().expect("a file").write(|tx| {
        let sql = "UPDATE a99_component SET version = 99 WHERE name = 'runtime'";
        Ok(tx.execute(sql, [])?)
    });
    raise.wait().unwrap();
    newer.close().unwrap();
    assert_eq!(code("newer"), StoreCode::Unreadable);
}

#[test]
fn a_store_from_before_turns_were_kept_is_read_and_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let a = key("echo/general/a");
    let store = open(&path);
    block_on(store.commit(turn(fence(&store, &a), 1))).unwrap();
    let lower = store.database().expect("a file").write(|tx| {
        tx.execute("DROP TABLE agent_turn", [])?;
        tx.execute_batch(META)?;
        tx.execute("ALTER TABLE channel_agent DROP COLUMN metadata", [])?;
        let sql = "UPDATE a99_component SET version = 7 WHERE name = 'runtime'";
        Ok(tx.execute(sql, [])?)
    });
    assert_eq!(lower.wait(), Ok(1));
    store.close().unwrap();
    let reader = SqliteRuntime::open_reader(&path, StoreOptions::default());
    assert_eq!(reader.unwrap_err().code(), StoreCode::Unreadable);
    let store = open(&path);
    let mut commit = turn(fence(&store, &a), 2);
    commit.kept = Some(KeptTurn {
        trigger: Trigger::Event(2),
        base: 1,
        state: "{\"n\":1}".into(),
        record: String::new(),
        keep: 1,
    });
    block_on(store.commit(commit)).unwrap();
    let kept = block_on(store.kept_turn(&a, &Trigger::Event(2))).unwrap();
    assert_eq!(kept.unwrap().1.as_deref(), Some("{\"n\":2}"));
    store.close().unwrap();
}

#[test]
fn owners_share_a_file_or_have_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let sharing = StoreOptions {
        is_shared: true,
        ..StoreOptions::default()
    };
    let share = || SqliteRuntime::open(&path, sharing.clone());
    let alone = || SqliteRuntime::open(&path, StoreOptions::default());
    let (one, two) = (share().unwrap(), share().unwrap());
    assert_eq!(alone().unwrap_err().code(), StoreCode::Locked);
    drop(one);
    let refused = alone().unwrap_err();
    assert!(refused.to_string().contains("which shares it"), "{refused}");
    // The first one gave no lock of SQLite up that the second one needs.
    block_on(two.append(vec![event(&key("a/c/a"), "x", "x")], None, 1)).unwrap();
    two.close().unwrap();
    let whole = alone().unwrap();
    let refused = share().unwrap_err();
    assert_eq!(refused.code(), StoreCode::Locked);
    let named = format!("process {} ", std::process::id());
    assert!(refused.to_string().contains(&named), "{refused}");
    whole.close().unwrap();
    // What one left behind that had it alone is free.
    drop(share().unwrap());
    drop(alone().unwrap());
}

/// A table of versions that noted whether the owner closed the store, and not for each shard.
const META: &str = "CREATE TABLE agent_meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO agent_meta VALUES ('is_closed', 1)";

#[test]
fn an_older_version_closed_all_shards_or_none() {
    for is_closed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = open(&path);
        let lower = store.database().expect("a file").write(move |tx| {
            tx.execute_batch(META)?;
            tx.execute("UPDATE agent_meta SET value = ?1", [is_closed])?;
            let sql = "UPDATE a99_component SET version = 9 WHERE name = 'runtime'";
            Ok(tx.execute(sql, [])?)
        });
        assert_eq!(lower.wait(), Ok(1));
        // Its owner stays noted, as that version left it.
        drop(store);
        let cut_off = open(&path).was_cut_off();
        assert_eq!(cut_off.is_empty(), is_closed);
    }
}

#[test]
fn t4_readers_take_no_lock_and_raise_no_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let a = key("echo/general/a");
    let reader = || SqliteRuntime::open_reader(&path, StoreOptions::default());
    assert_eq!(reader().unwrap_err().code(), StoreCode::NotFound);
    let store = open(&path);
    block_on(store.commit(turn(fence(&store, &a), 1))).unwrap();
    let seen = reader().unwrap();
    let row = block_on(seen.load(&a)).unwrap().unwrap();
    assert_eq!(row.state, "{\"n\":1}");
    // What asks to write is refused, and the owner goes on.
    assert!(block_on(seen.append(vec![event(&a, "x", "x")], None, 1)).is_err());
    block_on(store.commit(turn(fence(&store, &a), 2))).unwrap();
    let row = block_on(seen.load(&a)).unwrap().unwrap();
    assert_eq!(row.state, "{\"n\":2}");
    seen.close().unwrap();
    block_on(store.check_owned()).unwrap();
    store.close().unwrap();
    // Without an owner nothing of the file changes, after a crash neither.
    drop(open(&path));
    let before = std::fs::read(&path).unwrap();
    let seen = reader().unwrap();
    assert_eq!(block_on(seen.registrations()), Ok(Vec::new()));
    seen.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(!open(&path).was_cut_off().is_empty());
}

#[cfg(unix)]
#[test]
fn t7_links_lead_to_the_same_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let code = |path: &std::path::Path| {
        let opened = SqliteRuntime::open(path, StoreOptions::default());
        opened.unwrap_err().code()
    };
    let store = open(&path);
    let soft = folder.path().join("soft.db");
    std::os::unix::fs::symlink(&path, &soft).unwrap();
    assert_eq!(code(&soft), StoreCode::Locked);
    let hard = folder.path().join("hard.db");
    std::fs::hard_link(&path, &hard).unwrap();
    let is_refused = [StoreCode::Locked, StoreCode::Unavailable].contains(&code(&hard));
    assert!(is_refused);
    let read = SqliteRuntime::open_reader(&hard, StoreOptions::default()).unwrap_err();
    assert!(read.to_string().contains("2 names"), "{read}");
    std::fs::remove_file(&hard).unwrap();
    if cfg!(target_os = "linux") {
        std::fs::remove_file(folder.path().join("a.db.lock")).unwrap();
        assert_eq!(code(&path), StoreCode::Locked);
    }
    block_on(store.check_owned()).unwrap();
    store.close().unwrap();
    // A link that leads to nothing yet is followed, too.
    let new = folder.path().join("new.db");
    std::os::unix::fs::symlink(folder.path().join("b.db"), &new).unwrap();
    let store = open(&new);
    assert_eq!(code(&folder.path().join("b.db")), StoreCode::Locked);
    store.close().unwrap();
}

#[cfg(unix)]
#[test]
fn t7_an_owner_notices_that_its_files_are_gone() {
    for name in ["a.db", "a.db-wal", "a.db-shm"] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("a.db"));
        block_on(store.check_owned()).unwrap();
        let file = folder.path().join(name);
        std::fs::rename(&file, folder.path().join("moved")).unwrap();
        let error = block_on(store.check_owned()).unwrap_err();
        assert_eq!(error.code(), StoreCode::NotFound, "{name}: {error}");
        std::fs::write(&file, "").unwrap();
        let error = store.check_place().unwrap_err();
        assert_eq!(error.code(), StoreCode::NotFound, "{name}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let first = open(&path);
    let second = SqliteRuntime::open_past_lock(&path, StoreOptions::default()).unwrap();
    let error = block_on(first.check_owned()).unwrap_err();
    assert_eq!(error.code(), StoreCode::Fenced);
    block_on(second.check_owned()).unwrap();
}
