//! Backups that are put back in place: what notices them, and what raises no false alarm.

use crate::{block_on, fence, key, open, turn};
use a99_runtime_engine::{AgentStore, StoreCode};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use a99_sqlite::Durability;
use std::path::{Path, PathBuf};

/// Opens a store that must be the one that was left.
fn strictly(path: &Path) -> Result<SqliteRuntime, StoreCode> {
    let options = StoreOptions {
        refuses_copies: true,
        ..StoreOptions::default()
    };
    SqliteRuntime::open(path, options).map_err(|error| {
        let text = error.to_string();
        assert!(text.contains("copied over it"), "{text}");
        error.code()
    })
}

fn lock_of(path: &Path) -> PathBuf {
    path.with_extension("db.lock")
}

/// A store with some turns more, closed. Gives its bytes.
fn grown(path: &Path, revision: u64) -> Vec<u8> {
    let store = strictly(path).unwrap();
    let a = key("echo/general/a");
    block_on(store.commit(turn(fence(&store, &a), revision))).unwrap();
    store.close().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn t9_a_backup_that_is_put_back_in_place_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let first = grown(&path, 1);
    let second = grown(&path, 2);
    // The same inode has what it had before.
    std::fs::write(&path, &first).unwrap();
    assert_eq!(strictly(&path).unwrap_err(), StoreCode::Copied);
    assert_eq!(strictly(&path).unwrap_err(), StoreCode::Copied);
    // What it had last is no other.
    std::fs::write(&path, &second).unwrap();
    strictly(&path).unwrap().close().unwrap();
    // Where it is meant, it is taken, and is the store from then on.
    std::fs::write(&path, &first).unwrap();
    let store = open(&path);
    assert!(store.moved().is_some());
    store.close().unwrap();
    let store = open(&path);
    assert_eq!(store.moved(), None);
    // Also after a process was cut off.
    drop(store);
    std::fs::write(&path, &second).unwrap();
    drop(std::fs::remove_file(path.with_extension("db-wal")));
    assert_eq!(strictly(&path).unwrap_err(), StoreCode::Copied);
}

#[test]
fn t9_no_cut_makes_a_store_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let before = grown(&path, 1);
    let noted = std::fs::read_to_string(lock_of(&path)).unwrap();
    let [_, old] = noted.lines().collect::<Vec<_>>()[..] else {
        panic!("a process and a token: {noted}");
    };
    let after = grown(&path, 2);
    let noted = std::fs::read_to_string(lock_of(&path)).unwrap();
    let [pid, new] = noted.lines().collect::<Vec<_>>()[..] else {
        panic!("a process and a token: {noted}");
    };
    assert_ne!(old, new);
    // Cut off between the two writes: the lock file knows both, whole or in part.
    let both = format!("{pid}\n{old}\n{new}\n");
    for length in 0..=both.len() {
        std::fs::write(&path, &before).unwrap();
        std::fs::write(lock_of(&path), &both[..length]).unwrap();
        drop(strictly(&path).unwrap_or_else(|code| panic!("{length}: {code:?}")));
    }
    // The file that is new is found with both, with the new token alone, and without any.
    for known in [&both[..], &noted, "12\n", ""] {
        std::fs::write(&path, &after).unwrap();
        drop(std::fs::remove_file(path.with_extension("db-wal")));
        std::fs::write(lock_of(&path), known).unwrap();
        drop(strictly(&path).unwrap_or_else(|code| panic!("{known}: {code:?}")));
    }
    std::fs::remove_file(lock_of(&path)).unwrap();
    drop(strictly(&path).unwrap());
}

#[test]
fn t9_a_store_whose_disk_is_never_waited_for_keeps_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    grown(&path, 1);
    let noted = std::fs::read(lock_of(&path)).unwrap();
    let options = StoreOptions {
        durability: Durability::Relaxed,
        ..StoreOptions::default()
    };
    SqliteRuntime::open(&path, options)
        .unwrap()
        .close()
        .unwrap();
    assert_eq!(std::fs::read(lock_of(&path)).unwrap(), noted);
    grown(&path, 2);
}
