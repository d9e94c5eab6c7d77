//! File of a store: opened, closed, and opened again.

use crate::{block_on, event, fence, id, key, open, turn};
use a99_runtime_engine::{AgentStore, ChannelStore, StoreCode};
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
fn events_are_appended_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    let append = |text| block_on(store.append(vec![event(&a, "x", text)], None, 5));
    assert!(append("one").unwrap()[0].is_new);
    let again = append("one").unwrap();
    assert!(!again[0].is_new);
    assert_eq!(append("two").unwrap_err().code(), StoreCode::ChangedBody);
    let found = block_on(store.find("general", id("x"))).unwrap().unwrap();
    assert_eq!(*found, *again[0].event);
}
