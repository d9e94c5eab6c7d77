//! Hostile files, whose schema acts when they are opened, read or written.

use crate::{block_on, store};
use a99_capabilities::Store;
use a99_sqlite::rusqlite::Connection;
use a99_sqlite::{Database, Session, SqliteCode, SqliteOptions, SqliteStore};
use std::path::Path;
use std::time::{Duration, Instant};

/// SQL that counts forever.
const ENDLESS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) \
                       SELECT count(*) FROM n";

/// A closed store with some keys, changed afterwards by this SQL.
fn changed(change: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let (folder, store) = store();
    for n in 0..20 {
        block_on(store.set(format!("key/{n}").into(), "value".into())).unwrap();
    }
    store.database().clone().close();
    let path = folder.path().join("a.db");
    let file = Connection::open(&path).unwrap();
    file.execute_batch(change)
        .unwrap_or_else(|error| panic!("{error}: {change}"));
    (folder, path)
}

fn remade(table: &str) -> String {
    format!("DROP TABLE a99_entry; CREATE TABLE a99_entry ({table})")
}

#[test]
fn d9_a_schema_that_is_not_ours_is_refused() {
    let entry = "namespace INTEGER NOT NULL, kind INTEGER NOT NULL, key BLOB NOT NULL,
        expires REAL, value ANY NOT NULL, PRIMARY KEY (namespace, kind, key)";
    let forged = |sql: &str| {
        format!(
            "PRAGMA writable_schema = ON;
             INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, '{sql}');"
        )
    };
    let endless = format!("BEGIN {ENDLESS}; END");
    for change in [
        format!("CREATE TRIGGER t AFTER INSERT ON a99_entry {endless}"),
        format!("CREATE TRIGGER t BEFORE DELETE ON A99_Entry {endless}"),
        format!("CREATE TRIGGER t AFTER UPDATE ON a99_namespace {endless}"),
        format!("CREATE TRIGGER t AFTER UPDATE ON a99_component {endless}"),
        format!(
            "DROP TRIGGER a99_entry_added; CREATE TRIGGER a99_entry_added AFTER INSERT ON a99_entry {endless}"
        ),
        "DROP TRIGGER a99_entry_added".to_owned(),
        format!("DROP TABLE a99_entry; CREATE VIEW a99_entry AS {ENDLESS}"),
        format!("DROP TABLE a99_component; CREATE VIEW a99_component AS {ENDLESS}"),
        format!("DROP VIEW entries; CREATE VIEW entries AS {ENDLESS}"),
        remade(entry),
        remade(&entry.replace(
            "expires REAL",
            "expires REAL DEFAULT (length(hex(zeroblob(300000000))))",
        )),
        remade(&entry.replace(
            "expires REAL",
            "expires REAL AS (length(hex(zeroblob(300000000))))",
        )),
        remade(&entry.replace(
            "expires REAL",
            "expires REAL CHECK (length(hex(zeroblob(300000000))) > 0)",
        )),
        "CREATE INDEX i ON a99_entry (length(hex(value)))".to_owned(),
        "CREATE INDEX i ON a99_entry (key) WHERE length(hex(value)) > 9".to_owned(),
        "CREATE VIRTUAL TABLE v USING fts5(x)".to_owned(),
        // Schema rows whose columns contradict their SQL text.
        forged(&format!(
            "CREATE TRIGGER t AFTER INSERT ON a99_entry {endless}"
        )),
        forged(&format!(
            "CREATE TRIGGER x /* ON x */ AFTER INSERT ON a99_entry {endless}"
        )),
        forged("CREATE INDEX x ON a99_entry(length(hex(value)))"),
    ] {
        let (_folder, path) = changed(&change);
        let before = std::fs::read(&path).unwrap();
        let begun = Instant::now();
        let error = SqliteStore::open(&path).map(drop).unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(5), "{change}");
        let codes = [SqliteCode::Foreign, SqliteCode::Corrupt];
        assert!(codes.contains(&error.code()), "{change}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{change}");
    }
}

#[test]
fn d9_files_of_ours_are_opened_as_before() {
    let also = "CREATE TABLE other_notes (x TEXT DEFAULT (1 + 1));
         CREATE INDEX other_index ON other_notes (x);
         CREATE TRIGGER other AFTER INSERT ON other_notes BEGIN DELETE FROM other_notes; END;
         ANALYZE; VACUUM;";
    for change in ["", also] {
        let (_folder, path) = changed(change);
        for _ in 0..2 {
            let store = SqliteStore::open(&path).unwrap();
            assert_eq!(block_on(store.get("key/3".into())).unwrap(), "value".into());
            block_on(store.set("key/3".into(), "value".into())).unwrap();
            store.database().clone().close();
        }
    }
}

fn held(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other
        .execute_batch("BEGIN IMMEDIATE; UPDATE a99_namespace SET keys = keys")
        .unwrap();
    other
}

#[test]
fn d9_work_that_is_given_up_ends() {
    let (folder, store) = store();
    let database = store.database().clone();
    let work = [
        database.read(|tx| Ok(tx.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?)),
        database.write(|tx| Ok(tx.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?)),
    ];
    std::thread::sleep(Duration::from_millis(100));
    drop(work);
    let begun = Instant::now();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
    // Waiting for another process's lock is interrupted too, although the busy timeout is a
    // minute.
    let other = held(&folder.path().join("a.db"));
    let waits = database.write(|_| Ok(()));
    std::thread::sleep(Duration::from_millis(100));
    drop(waits);
    let begun = Instant::now();
    drop(store);
    database.close();
    assert!(begun.elapsed() < Duration::from_secs(5));
    drop(other);
}

#[test]
fn d9_work_that_takes_gigabytes_ends() {
    let (_folder, store) = store();
    let work = store.database().read(|tx| {
        let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 100000)
            SELECT count(*) FROM (SELECT DISTINCT hex(zeroblob(50000)) || x FROM n)";
        Ok(tx.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(work.wait().unwrap_err().code(), SqliteCode::Stopped);
    let text = store.database().read(|tx| {
        let sql = "SELECT length(zeroblob(300000000))";
        Ok(tx.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(text.wait().unwrap_err().code(), SqliteCode::Input);
}

#[test]
fn d9_opening_ends_at_its_deadline() {
    let (folder, store) = store();
    store.database().clone().close();
    let path = folder.path().join("a.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE a99_namespace SET keys = keys").unwrap();
    let options = SqliteOptions {
        busy_timeout: Duration::from_millis(300),
        ..SqliteOptions::default()
    };
    let begun = Instant::now();
    let error = Database::open(&path, options.clone())
        .map(drop)
        .unwrap_err();
    assert_eq!(error.code(), SqliteCode::Locked, "{error}");
    static NOTES: a99_sqlite::Component = a99_sqlite::Component {
        name: "notes",
        migrations: &["CREATE TABLE note (n INTEGER) STRICT"],
    };
    let session = Session::open(&path, options, &NOTES).unwrap();
    let error = session.run(|_| Ok(())).wait().unwrap_err();
    assert_eq!(error.code(), SqliteCode::Locked, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}
