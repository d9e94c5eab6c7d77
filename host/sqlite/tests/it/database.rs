//! `Database` as other crates use it.

use crate::block_on;
use a99_sqlite::{
    Component, Database, Durability, SqliteCode, SqliteError, SqliteOptions, Task, Tx,
};
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::Duration;

static NOTES: Component = Component {
    name: "notes",
    migrations: &["CREATE TABLE note (n INTEGER PRIMARY KEY) STRICT"],
};

static NOTES_2: Component = Component {
    name: "notes",
    migrations: &[
        "CREATE TABLE note (n INTEGER PRIMARY KEY) STRICT",
        "ALTER TABLE note ADD COLUMN text TEXT; UPDATE note SET text = 'old'",
    ],
};

static BROKEN: Component = Component {
    name: "broken",
    migrations: &["CREATE TABLE half (n INTEGER) STRICT; CREATE TABLE nonsense"],
};

fn open(path: &Path) -> Database {
    Database::open(path, SqliteOptions::default()).unwrap()
}

fn database() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&folder.path().join("a.db"));
    database.migrate(&NOTES).wait().unwrap();
    (folder, database)
}

fn add(database: &Database, n: i64) -> Task<()> {
    database.write(move |tx| {
        tx.execute("INSERT INTO note (n) VALUES (?1)", [n])?;
        NOTES.changed(tx)
    })
}

fn count(database: &Database) -> i64 {
    let read = database.read(|tx| Ok(tx.query_row("SELECT count(*) FROM note", [], |r| r.get(0))?));
    read.wait().unwrap()
}

fn code<T>(result: Result<T, SqliteError>) -> SqliteCode {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error.code(),
    }
}

#[test]
fn a_failed_write_leaves_nothing() {
    let (_folder, database) = database();
    let held = database.write(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Ok(())
    });
    // These writes share a transaction.
    let first = add(&database, 1);
    let fails = database.write(|tx| {
        tx.execute("INSERT INTO note (n) VALUES (2)", [])?;
        Err::<(), _>(SqliteError::new(SqliteCode::Input, "no"))
    });
    let panics = database.write(|tx| -> Result<(), SqliteError> {
        tx.execute("INSERT INTO note (n) VALUES (3)", [])?;
        panic!("on purpose");
    });
    let twice = add(&database, 1);
    let last = add(&database, 4);
    held.wait().unwrap();
    first.wait().unwrap();
    assert_eq!(code(fails.wait()), SqliteCode::Input);
    assert_eq!(code(panics.wait()), SqliteCode::Failed);
    assert_eq!(code(twice.wait()), SqliteCode::Failed);
    last.wait().unwrap();
    let read = database.read(|tx| {
        let sql = "SELECT group_concat(n) FROM (SELECT n FROM note ORDER BY n)";
        Ok(tx.query_row(sql, [], |row| row.get::<_, String>(0))?)
    });
    assert_eq!(read.wait().unwrap(), "1,4");
}

#[test]
fn work_that_ends_the_transaction_fails() {
    let (_folder, database) = database();
    let bad =
        database.write(|tx| Ok(tx.execute_batch("INSERT INTO note (n) VALUES (1); ROLLBACK")?));
    assert_eq!(code(bad.wait()), SqliteCode::Failed);
    add(&database, 2).wait().unwrap();
    assert_eq!(count(&database), 1);
}

#[test]
fn reading_changes_nothing_and_sees_one_state() {
    let (_folder, database) = database();
    let written = database.read(|tx| Ok(tx.execute("INSERT INTO note (n) VALUES (1)", [])?));
    assert_eq!(code(written.wait()), SqliteCode::ReadOnly);
    let (go, wait) = mpsc::channel::<()>();
    let (begun, began) = mpsc::channel::<()>();
    let read = database.read(move |tx| {
        begun.send(()).unwrap();
        wait.recv().unwrap();
        Ok(tx.query_row("SELECT count(*) FROM note", [], |row| row.get::<_, i64>(0))?)
    });
    began.recv().unwrap();
    add(&database, 1).wait().unwrap();
    go.send(()).unwrap();
    assert_eq!(read.wait().unwrap(), 0);
    assert_eq!(count(&database), 1);
}

#[test]
fn work_that_nobody_waits_for_is_not_begun() {
    let (_folder, database) = database();
    let (go, wait) = mpsc::channel::<()>();
    let held = database.write(move |_| {
        wait.recv().unwrap();
        Ok(())
    });
    let mut dropped = Box::pin(add(&database, 1));
    assert!(
        pin!(&mut dropped)
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    drop(dropped);
    let kept = add(&database, 2);
    go.send(()).unwrap();
    held.wait().unwrap();
    kept.wait().unwrap();
    assert_eq!(count(&database), 1);
}

#[test]
fn long_work_hears_that_nobody_waits() {
    let (_folder, database) = database();
    let (begun, began) = mpsc::channel();
    let (told, tell) = mpsc::channel();
    let read = database.read(move |tx| {
        begun.send(()).unwrap();
        while tx.go_on().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        told.send(()).unwrap();
        Ok(())
    });
    began.recv().unwrap();
    drop(read);
    tell.recv_timeout(Duration::from_secs(30)).unwrap();
}

#[test]
fn changes_are_counted_for_all_who_have_it_open() {
    let (folder, database) = database();
    let other = open(&folder.path().join("a.db"));
    let changes = || database.read(|tx| NOTES.changes(tx)).wait().unwrap();
    assert_eq!(changes(), 0);
    add(&other, 1).wait().unwrap();
    assert_eq!(changes(), 1);
    add(&database, 2).wait().unwrap();
    assert_eq!(other.read(|tx| NOTES.changes(tx)).wait().unwrap(), 2);
    // A rolled-back write does not count as a change.
    add(&database, 2).wait().unwrap_err();
    assert_eq!(changes(), 2);
}

#[test]
fn components_have_versions() {
    let (folder, database) = database();
    add(&database, 1).wait().unwrap();
    database.migrate(&NOTES).wait().unwrap();
    database.migrate(&NOTES_2).wait().unwrap();
    let text = database.read(|tx| Ok(tx.query_row("SELECT text FROM note", [], |row| row.get(0))?));
    assert_eq!(text.wait(), Ok("old".to_owned()));
    let newer = database.migrate(&NOTES).wait().unwrap_err();
    assert_eq!(newer.code(), SqliteCode::Newer);
    assert!(
        newer
            .to_string()
            .contains("its notes have version 2; this one knows 1")
    );
    // The counter continues.
    assert_eq!(database.read(|tx| NOTES.changes(tx)).wait().unwrap(), 1);

    assert_eq!(code(database.migrate(&BROKEN).wait()), SqliteCode::Failed);
    let half = database.read(|tx| Ok(tx.table_exists(None, "half")?));
    assert_eq!(half.wait(), Ok(false));
    drop(folder);
}

#[test]
fn opening_at_once_makes_one_database() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        std::thread::scope(|scope| {
            for n in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let database = open(path);
                    database.migrate(&NOTES).wait().unwrap();
                    add(&database, n).wait().unwrap();
                });
            }
        });
        assert_eq!(count(&open(&path)), 8);
    }
}

#[test]
fn futures_need_no_runtime() {
    let (_folder, database) = database();
    block_on(add(&database, 1)).unwrap();
    assert_eq!(block_on(database.read(|tx| NOTES.changes(tx))).unwrap(), 1);
    database.clone().close();
    assert_eq!(code(block_on(add(&database, 2))), SqliteCode::Stopped);
}

#[test]
fn settings_are_as_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for (durability, number) in [
        (Durability::Power, 2),
        (Durability::Process, 1),
        (Durability::Relaxed, 0),
    ] {
        let options = SqliteOptions {
            durability,
            readers: 0,
            ..SqliteOptions::default()
        };
        let database = Database::open(folder.path().join("a.db"), options).unwrap();
        let synchronous = || {
            let pragma = |tx: &Tx<'_>| Ok(tx.query_row("PRAGMA synchronous", [], |r| r.get(0))?);
            database.write(pragma).wait()
        };
        assert_eq!(synchronous(), Ok(number));
        // A checkpoint moves earlier writes into the file, which is then complete without its
        // log.
        database.migrate(&NOTES).wait().unwrap();
        let first = add(&database, number);
        database.checkpoint().wait().unwrap();
        first.wait().unwrap();
        let copy = folder.path().join(format!("copy-{number}.db"));
        std::fs::copy(folder.path().join("a.db"), &copy).unwrap();
        assert_eq!(count(&open(&copy)), count(&database));
        assert_eq!(synchronous(), Ok(number));
        let mode = database.read(|tx| Ok(tx.query_row("PRAGMA journal_mode", [], |r| r.get(0))?));
        assert_eq!(mode.wait(), Ok("wal".to_owned()));
    }
}

#[test]
fn names_of_files_are_only_names() {
    let folder = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:a?mode=memory", "a b%20c", "\u{e9}'\""] {
        let path = folder.path().join(name);
        let database = open(&path);
        database.migrate(&NOTES).wait().unwrap();
        add(&database, 1).wait().unwrap();
        database.close();
        assert!(path.is_file(), "{name}");
        assert_eq!(count(&open(&path)), 1);
    }
}

/// A database with constant work, as on a slow disk, leaves other processes their turn.
#[test]
fn writers_take_turns() {
    let (folder, database) = database();
    let options = SqliteOptions {
        busy_timeout: Duration::from_secs(3),
        durability: Durability::Process,
        ..SqliteOptions::default()
    };
    let other = Database::open(folder.path().join("a.db"), options).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let slow = || {
                database.write(|_| {
                    std::thread::sleep(Duration::from_millis(60));
                    Ok(())
                })
            };
            let mut next = slow();
            while !stop.load(Ordering::Relaxed) {
                let done = std::mem::replace(&mut next, slow());
                done.wait().unwrap();
            }
        });
        let turns: Result<Vec<()>, SqliteError> = (0..5).map(|n| add(&other, n).wait()).collect();
        stop.store(true, Ordering::Relaxed);
        turns.expect("each write has its turn");
    });
}

fn exclusive(path: &Path, durability: Durability) -> Database {
    let options = SqliteOptions {
        durability,
        is_exclusive: true,
        ..SqliteOptions::default()
    };
    let database = Database::open(path, options).unwrap();
    database.migrate(&NOTES).wait().unwrap();
    database
}

/// Adds a note as small work; returns the thread that ran it.
fn add_here(database: &Database, n: i64) -> Task<std::thread::ThreadId> {
    database.write_here(move |tx| {
        tx.execute("INSERT INTO note (n) VALUES (?1)", [n])?;
        Ok(std::thread::current().id())
    })
}

#[test]
fn small_work_is_done_on_the_thread_that_asks() {
    let folder = tempfile::tempdir().unwrap();
    let here = std::thread::current().id();
    let database = exclusive(&folder.path().join("a.db"), Durability::Process);
    // The writer thread may still be busy with earlier work.
    let at_once = (0..1_000).find(|n| {
        let thread = add_here(&database, *n).wait().unwrap();
        std::thread::yield_now();
        thread == here
    });
    assert!(at_once.is_some(), "it is never done here");
    let before = count(&database);
    assert_eq!(code(add_here(&database, 0).wait()), SqliteCode::Failed);
    let panics = database.write_here(|tx| -> Result<(), SqliteError> {
        tx.execute("INSERT INTO note (n) VALUES (5000)", [])?;
        panic!("on purpose");
    });
    assert_eq!(code(panics.wait()), SqliteCode::Failed);
    assert_eq!(count(&database), before, "what fails leaves nothing");
    add_here(&database, 5_000).wait().unwrap();
    database.clone().close();
    assert_eq!(code(add_here(&database, 5_001).wait()), SqliteCode::Stopped);
}

#[test]
fn small_work_waits_for_a_disk_or_another_process_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let here = std::thread::current().id();
    let power = exclusive(&folder.path().join("power.db"), Durability::Power);
    let shared = open(&folder.path().join("shared.db"));
    shared.migrate(&NOTES).wait().unwrap();
    for n in 0..50 {
        assert_ne!(add_here(&power, n).wait().unwrap(), here);
        assert_ne!(add_here(&shared, n).wait().unwrap(), here);
    }
}

#[test]
fn small_work_keeps_its_place_among_other_work() {
    let folder = tempfile::tempdir().unwrap();
    let database = exclusive(&folder.path().join("a.db"), Durability::Process);
    let slow = database.write(|tx| {
        std::thread::sleep(Duration::from_millis(20));
        Ok(tx.execute("INSERT INTO note (n) VALUES (1)", [])?)
    });
    // The first task was not awaited: this work starts after it.
    let small = database.write_here(|tx| {
        Ok(tx.query_row("SELECT count(*) FROM note", [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(small.wait().unwrap(), 1);
    slow.wait().unwrap();
}

#[test]
fn the_log_stays_short_under_small_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let database = exclusive(&path, Durability::Relaxed);
    let make = |tx: &Tx<'_>| Ok(tx.execute_batch("CREATE TABLE row (text BLOB) STRICT")?);
    database.write(make).wait().unwrap();
    let log = folder.path().join("a.db-wal");
    let mut longest = 0;
    for n in 0..8_000 {
        let add = database.write_here(|tx| {
            let sql = "INSERT INTO row (text) VALUES (zeroblob(4096))";
            Ok(tx.prepare_cached(sql)?.execute([])?)
        });
        add.wait().unwrap();
        if n % 100 == 0 {
            longest = longest.max(std::fs::metadata(&log).unwrap().len());
        }
    }
    // Checkpoints start at 4 MiB; all rows have 32 MiB.
    assert!(longest < 16 * 1024 * 1024, "the log has {longest} bytes");
}
