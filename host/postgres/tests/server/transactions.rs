//! Transactions of other crates in the schema: atomicity, errors and retries.

use crate::{block_on, store};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_postgres::{Component, PostgresCode, PostgresError, PostgresStore};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

static NOTES: Component = Component {
    name: "notes",
    migrations: &[
        "CREATE TABLE note (n bigint NOT NULL)",
        "ALTER TABLE note ADD COLUMN text text NOT NULL DEFAULT 'none'",
    ],
};

const ADD: &str = "INSERT INTO note (n) VALUES ($1)";

fn notes(store: &PostgresStore) -> Vec<i64> {
    let found = store.read(|tx| {
        let mut found = Vec::new();
        tx.query("SELECT n FROM note ORDER BY n", Vec::new(), |row| {
            found.push(row.get(0));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    });
    found.wait().unwrap()
}

#[test]
fn migrations_are_applied_once_and_later_ones_refused() {
    let (database, store) = store();
    for _ in 0..2 {
        store.migrate(&NOTES).wait().unwrap();
    }
    store
        .write(|tx| tx.execute(ADD, vec![Box::new(1i64)]))
        .wait()
        .unwrap();
    assert_eq!(notes(&store), [1]);
    static EARLIER: Component = Component {
        name: "notes",
        migrations: &["CREATE TABLE note (n bigint NOT NULL)"],
    };
    let error = store.migrate(&EARLIER).wait().unwrap_err();
    assert_eq!(error.code(), PostgresCode::Newer);
    assert!(
        error.to_string().contains("its notes have version 2"),
        "{error}"
    );
    // The tables of keys are unchanged.
    assert_eq!(
        database.sql("SELECT version FROM agent99.a99_component WHERE name = 'entries'"),
        "1"
    );
}

#[test]
fn work_is_kept_whole_or_not_at_all() {
    let (_database, store) = store();
    store.migrate(&NOTES).wait().unwrap();
    let add = |n: i64| vec![Box::new(n) as _];
    let failed = store.write(move |tx| {
        tx.execute(ADD, add(1))?;
        tx.execute("INSERT INTO nowhere VALUES (1)", Vec::new())
    });
    assert_eq!(failed.wait().unwrap_err().code(), PostgresCode::Foreign);
    let fault = store.write(move |tx| -> Result<(), _> {
        tx.execute(ADD, add(2))?;
        panic!("a fault of the host's")
    });
    assert_eq!(fault.wait().unwrap_err().code(), PostgresCode::Failed);
    let writes = store.read(move |tx| tx.execute(ADD, add(3)));
    assert_eq!(writes.wait().unwrap_err().code(), PostgresCode::ReadOnly);
    assert_eq!(notes(&store), [0i64; 0]);
    let counted = store.write(move |tx| {
        tx.execute(ADD, add(4))?;
        tx.execute(ADD, add(5))?;
        tx.execute("UPDATE note SET n = n + 10", Vec::new())
    });
    assert_eq!(counted.wait().unwrap(), 2);
    assert_eq!(notes(&store), [14, 15]);
}

#[test]
fn what_reads_sees_one_moment() {
    let (_database, store) = store();
    store.migrate(&NOTES).wait().unwrap();
    let other = store.clone();
    let counts = store.read(move |tx| {
        let count = || {
            let mut count = 0i64;
            tx.query("SELECT count(*) FROM note", Vec::new(), |row| {
                count = row.get(0);
                Ok(ControlFlow::Break(()))
            })?;
            Ok::<_, PostgresError>(count)
        };
        let before = count()?;
        other
            .write(|tx| tx.execute(ADD, vec![Box::new(1i64)]))
            .wait()?;
        Ok((before, count()?))
    });
    assert_eq!(counts.wait().unwrap(), (0, 0));
    assert_eq!(notes(&store), [1]);
}

#[test]
fn many_rows_come_in_order_and_some_are_enough() {
    let (_database, store) = store();
    let read = store.read(|tx| {
        let sql = "SELECT n, repeat('x', 1000) FROM generate_series(1::bigint, 20000) AS n";
        let mut sum = 0i64;
        tx.query(sql, Vec::new(), |row| {
            assert_eq!(row.get::<_, i64>(0), sum + 1);
            sum += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        let mut some = 0;
        tx.query(sql, Vec::new(), |_| {
            some += 1;
            Ok(if some == 300 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        Ok((sum, some))
    });
    assert_eq!(read.wait().unwrap(), (20_000, 300));
}

#[test]
fn work_that_is_given_up_stops_and_leaves_nothing() {
    let (_database, store) = store();
    store.migrate(&NOTES).wait().unwrap();
    let rounds = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rounds);
    let work = store.write(move |tx| -> Result<(), _> {
        tx.execute(ADD, vec![Box::new(1i64)])?;
        loop {
            tx.go_on()?;
            counted.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1));
        }
    });
    while rounds.load(Ordering::Relaxed) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    drop(work);
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let before = rounds.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(50));
        if rounds.load(Ordering::Relaxed) == before {
            break;
        }
        assert!(Instant::now() < until, "it goes on");
    }
    assert_eq!(notes(&store), [0i64; 0]);
    assert_eq!(block_on(store.get("k".into())).unwrap(), Value::Undefined);
}
