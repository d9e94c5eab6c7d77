//! Backups while the store is in use.

use crate::{block_on, store};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_sqlite::{SqliteCode, SqliteStore};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("a.db"))
        .collect();
    names.sort();
    names
}

fn fill(store: &SqliteStore, count: usize) {
    let tasks: Vec<_> = (0..count)
        .map(|n| store.set(n.into(), "x".repeat(20_000).into()))
        .collect();
    tasks
        .into_iter()
        .for_each(|task| drop(block_on(task).unwrap()));
}

#[test]
fn a_backup_is_one_state_of_a_store_in_use() {
    let (folder, store) = store();
    fill(&store, 300);
    // Two keys that change together; every backup must have them equal.
    let both = store.clone();
    let set = move |n: usize| {
        let write = both.database().write(move |tx| {
            for key in ["a", "b"] {
                tx.execute(
                    "INSERT INTO a99_entry (namespace, kind, key, value) VALUES (0, 4, CAST(?1 AS BLOB), ?2)
                     ON CONFLICT DO UPDATE SET value = excluded.value",
                    a99_sqlite::rusqlite::params![key, n.to_string()],
                )?;
            }
            Ok(())
        });
        write.wait().unwrap();
    };
    set(0);
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            let mut n = 1;
            while !done.load(Ordering::Relaxed) {
                set(n);
                n += 1;
            }
            n
        })
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let copy = folder.path().join("copy");
    for _ in 0..3 {
        let seen = Arc::clone(&seen);
        let backup = store
            .database()
            .backup_to(&copy, move |progress| seen.lock().unwrap().push(progress));
        block_on(backup).unwrap();
        assert_eq!(names(folder.path()), ["copy"]);
        let copy = SqliteStore::open(&copy).unwrap();
        copy.database().check().wait().unwrap();
        let [a, b] = ["a", "b"].map(|key| block_on(copy.get(key.into())).unwrap());
        assert_eq!(a, b);
        assert_eq!(copy.usage().wait().unwrap().keys, 302);
        copy.database().clone().close();
    }
    done.store(true, Ordering::Relaxed);
    assert!(writer.join().unwrap() > 1);
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 6 && seen.iter().all(|p| p.copied <= p.of));
    let last = seen.last().unwrap();
    assert_eq!(last.copied, last.of);
}

#[test]
fn a_backup_appears_whole_or_not_at_all() {
    let (folder, store) = store();
    fill(&store, 300);
    let copy = folder.path().join("copy");
    fs::write(&copy, "an earlier file").unwrap();
    let failed = store
        .database()
        .backup_to(&copy, |_| panic!("on purpose"))
        .wait()
        .unwrap_err();
    assert_eq!(failed.code(), SqliteCode::Failed);
    assert_eq!(fs::read(&copy).unwrap(), b"an earlier file");
    assert_eq!(names(folder.path()), ["copy"]);

    // The backup is abandoned after the first step.
    let (begun, began) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let backup = store.database().backup_to(&copy, move |_| {
        // Dropped with the closure.
        let _ = &ended;
        begun.send(()).unwrap();
        wait.recv().unwrap_err();
    });
    began.recv().unwrap();
    drop(backup);
    drop(go);
    assert!(end.recv().is_err());
    store.database().clone().close();
    assert_eq!(fs::read(&copy).unwrap(), b"an earlier file");
    assert_eq!(names(folder.path()), ["copy"]);
}

#[test]
fn a_backup_replaces_no_database_in_use() {
    let (folder, store) = store();
    block_on(store.set("k".into(), Value::Null)).unwrap();
    let other = folder.path().join("other");
    let in_use = SqliteStore::open(&other).unwrap();
    block_on(in_use.set("mine".into(), 1.0.into())).unwrap();
    for target in [&other, &folder.path().join("a.db")] {
        let error = store
            .database()
            .backup_to(target, |_| ())
            .wait()
            .unwrap_err();
        assert_eq!(error.code(), SqliteCode::Occupied);
    }
    assert_eq!(block_on(in_use.get("mine".into())).unwrap(), 1.0.into());
    let nowhere = folder.path().join("no/folder");
    let error = store
        .database()
        .backup_to(nowhere, |_| ())
        .wait()
        .unwrap_err();
    assert_eq!(error.code(), SqliteCode::NotFound);
}
