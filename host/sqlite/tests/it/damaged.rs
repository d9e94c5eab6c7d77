//! Damaged, foreign, full, locked and read-only files.

use crate::{block_on, store, text};
use a99_capabilities::{CapabilityError, Store, suite};
use a99_core::value::Value;
use a99_sqlite::rusqlite::Connection;
use a99_sqlite::{Database, SqliteCode, SqliteError, SqliteOptions, SqliteStore};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn open(path: &Path) -> Result<SqliteStore, SqliteError> {
    SqliteStore::open(path)
}

fn refused(path: &Path) -> SqliteError {
    let error = open(path).map(|_| ()).unwrap_err();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(error.to_string().contains(name), "{error}");
    assert!(error.help().is_some(), "{error}");
    assert!(!text(&error.for_program()).contains(name), "{error}");
    error
}

/// A closed file with some hundred entries.
fn filled(path: &Path) -> SqliteStore {
    let store = open(path).unwrap();
    for n in 0..300 {
        let key = format!("key/{n}");
        block_on(store.set(key.into(), format!("{n}").repeat(300).into())).unwrap();
    }
    store
}

#[test]
fn what_is_no_store_is_told_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), "not a database at all, ".repeat(100)).unwrap();
    assert_eq!(refused(&at("text")).code(), SqliteCode::NotDatabase);
    assert_eq!(fs::read(at("text")).unwrap().len(), 2_300);

    let other = Connection::open(at("other")).unwrap();
    other
        .execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (5)")
        .unwrap();
    drop(other);
    let before = fs::read(at("other")).unwrap();
    assert_eq!(refused(&at("other")).code(), SqliteCode::Foreign);
    assert_eq!(fs::read(at("other")).unwrap(), before);

    assert_eq!(refused(folder.path()).code(), SqliteCode::NotFound);
    assert_eq!(refused(&at("no/folder")).code(), SqliteCode::NotFound);
    // An empty file is a new store.
    fs::write(at("empty"), "").unwrap();
    block_on(open(&at("empty")).unwrap().set("k".into(), Value::Null)).unwrap();
}

#[test]
fn files_of_later_versions_are_refused_as_they_are() {
    for change in [
        "PRAGMA user_version = 2",
        "UPDATE a99_component SET version = 2 WHERE name = 'entries'",
    ] {
        let (folder, store) = store();
        block_on(store.set("k".into(), 1.0.into())).unwrap();
        store.database().clone().close();
        let path = folder.path().join("a.db");
        Connection::open(&path)
            .unwrap()
            .execute_batch(change)
            .unwrap();
        let before = fs::read(&path).unwrap();
        assert_eq!(refused(&path).code(), SqliteCode::Newer);
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_file_that_becomes_a_later_version_is_not_written_to() {
    let (folder, store) = store();
    let other = Connection::open(folder.path().join("a.db")).unwrap();
    other.execute_batch("PRAGMA user_version = 2").unwrap();
    let error = block_on(store.set("k".into(), Value::Null)).unwrap_err();
    assert_eq!(text(&error), "The store does not work.");
    let error = store.usage().wait().unwrap_err();
    assert_eq!(error.code(), SqliteCode::Newer);
}

/// Accepts a value, or an error without details of the host.
fn answers(reply: Result<Value, CapabilityError>) {
    let texts = ["The store is damaged.", "The store does not work."];
    if let Err(error) = reply {
        assert!(texts.contains(&text(&error).as_str()), "{error}");
    }
}

/// Every operation on a possibly damaged file: each returns a result or a typed error.
fn exercise(path: &Path) -> Vec<SqliteCode> {
    let store = match open(path) {
        Ok(store) => store,
        Err(error) => return vec![error.code()],
    };
    let mut found: Vec<SqliteCode> = Vec::new();
    found.extend(store.database().check().wait().err().map(|e| e.code()));
    found.extend(store.usage().wait().err().map(|e| e.code()));
    for n in (0..300).step_by(7) {
        let key = || Value::from(format!("key/{n}"));
        answers(block_on(store.get(key())));
        answers(block_on(store.set(key(), Value::Undefined)));
        answers(block_on(store.delete(key())));
    }
    answers(block_on(store.list(
        "key".into(),
        Value::Null,
        1_000.0.into(),
    )));
    answers(block_on(store.query(crate::object(&[]))));
    store.database().clone().close();
    found
}

#[test]
fn n19_damage_is_told_without_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    filled(&whole).database().clone().close();
    let bytes = fs::read(&whole).unwrap();
    assert!(exercise(&whole).is_empty());
    fs::write(&whole, &bytes).unwrap();

    let path = folder.path().join("damaged");
    let mut told = 0;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for round in 0..60 {
        let mut damaged = bytes.clone();
        match round % 3 {
            0 => damaged.truncate(next(bytes.len())),
            1 => {
                let at = next(bytes.len() - 4_096);
                damaged[at..at + 4_096].fill(next(256) as u8);
            }
            _ => (0..200).for_each(|_| damaged[next(bytes.len())] ^= 1 << next(8)),
        }
        fs::write(&path, &damaged).unwrap();
        let found = exercise(&path);
        told += usize::from(!found.is_empty());
        let known = [
            SqliteCode::Corrupt,
            SqliteCode::NotDatabase,
            SqliteCode::Foreign,
            SqliteCode::Newer,
            SqliteCode::Failed,
            SqliteCode::Io,
        ];
        assert!(found.iter().all(|code| known.contains(code)), "{found:?}");
        for end in ["", "-wal", "-shm"] {
            drop(fs::remove_file(folder.path().join(format!("damaged{end}"))));
        }
    }
    assert!(told >= 50, "{told}");
}

#[test]
fn a_damaged_value_is_told() {
    let (_folder, store) = store();
    block_on(store.set("k".into(), "fine".into())).unwrap();
    for value in [
        "X'07FFFFFFFF0F'",
        "X''",
        "X'0106FF'",
        "'[1'",
        "5",
        "X'01070500'",
    ] {
        let damage = store
            .database()
            .write(move |tx| Ok(tx.execute(&format!("UPDATE a99_entry SET value = {value}"), [])?));
        damage.wait().unwrap();
        let error = block_on(store.get("k".into())).unwrap_err();
        assert_eq!(text(&error), "The store is damaged.", "{value}");
    }
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
}

#[test]
fn a_full_file_takes_no_more_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        max_file_bytes: Some(1 << 20),
        ..SqliteOptions::default()
    };
    let database = Database::open(folder.path().join("a.db"), options).unwrap();
    let store = SqliteStore::on(database).unwrap();
    let mut kept = 0;
    let error = loop {
        match block_on(store.set(kept.into(), "x".repeat(50_000).into())) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(text(&error), "Store is full");
    assert!((15..=20).contains(&kept), "{kept}");
    let write = store.database().write(|tx| {
        Ok(tx.execute_batch(
            "CREATE TABLE big AS
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000)
        SELECT x FROM n",
        )?)
    });
    assert_eq!(write.wait().unwrap_err().code(), SqliteCode::Full);
    for n in 0..kept {
        let value = block_on(store.get(n.into())).unwrap();
        assert_eq!(value.as_str().map(str::len), Some(50_000));
    }
    // Deleting frees space.
    block_on(store.delete(0.into())).unwrap();
    block_on(store.set("last".into(), "x".repeat(40_000).into())).unwrap();
    store.database().check().wait().unwrap();
}

#[test]
fn a_locked_file_is_waited_for_and_then_told() {
    let (folder, store) = store();
    let path = folder.path().join("a.db");
    let locker = Connection::open(&path).unwrap();
    locker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let options = SqliteOptions {
        busy_timeout: Duration::from_millis(50),
        ..SqliteOptions::default()
    };
    let impatient = SqliteStore::on(Database::open(&path, options).unwrap()).unwrap();
    let error = block_on(impatient.set("k".into(), 1.0.into())).unwrap_err();
    assert_eq!(text(&error), "The store is busy: try again later.");
    // Reads still work.
    assert_eq!(
        block_on(impatient.get("k".into())).unwrap(),
        Value::Undefined
    );
    let patient = std::thread::spawn(move || block_on(store.set("k".into(), 2.0.into())));
    std::thread::sleep(Duration::from_millis(100));
    locker.execute_batch("ROLLBACK").unwrap();
    patient.join().unwrap().unwrap();
    assert_eq!(block_on(impatient.get("k".into())).unwrap(), 2.0.into());
}

#[test]
fn n19_errors_tell_programs_nothing_of_the_host() {
    let (folder, store) = store();
    fs::remove_file(folder.path().join("a.db-shm")).unwrap();
    let drop_it = store
        .database()
        .write(|tx| Ok(tx.execute_batch("DROP TABLE a99_entry")?));
    drop_it.wait().unwrap();
    let error = block_on(store.get("k".into())).unwrap_err();
    assert_eq!(text(&error), "The store does not work.");
    let error = store.clear().wait().unwrap_err();
    assert!(error.to_string().contains("a.db"), "{error}");
    block_on(suite::key_value(&store)).unwrap_err();
}
