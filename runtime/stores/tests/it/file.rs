//! File of a store: opened, closed, and opened again.

use crate::{block_on, event, fence, key, open, turn};
use a99_runtime_engine::{AgentStore, ChannelStore, NewState, StoreCode};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};

#[test]
fn a_turn_is_kept_whole_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path);
    assert!(!store.was_cut_off());
    let a = key("echo/general/a");
    assert_eq!(block_on(store.load(&a)), Ok(None));
    for n in 1..=3 {
        let receipt = block_on(store.commit(turn(fence(&store, &a), n))).unwrap();
        assert_eq!(receipt.revision, n);
        assert_eq!(receipt.appended[0].event.seq, Some(n));
    }
    store.close().unwrap();
    let store = open(&path);
    assert!(!store.was_cut_off());
    let row = block_on(store.load(&a)).unwrap().unwrap();
    assert_eq!(
        (row.state.as_str(), row.progress.checkpoint),
        ("{\"n\":3}", 3)
    );
    let events = block_on(ChannelStore::read(&store, "general", 0, 100)).unwrap();
    assert_eq!(events.len(), 3);
    block_on(store.check()).unwrap();
    drop(store);
    assert!(open(&path).was_cut_off());
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
    let raise = newer.database().write(|tx| {
        let sql = "UPDATE a99_component SET version = 99 WHERE name = 'runtime'";
        Ok(tx.execute(sql, [])?)
    });
    raise.wait().unwrap();
    newer.close().unwrap();
    assert_eq!(code("newer"), StoreCode::Unreadable);
}
