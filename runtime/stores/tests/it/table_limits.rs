//! Limits of agents' tables: time, steps, memory, sizes, files.

use crate::tables::{begin, commit, exec, query, run, says, value};
use crate::{block_on, fence, key, open, turn};
use a99_runtime_engine::{AgentKey, AgentStore, StepCount, StoreCode, TableTurn};
use a99_runtime_stores::{SqliteRuntime, StoreOptions, TableLimits};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn with(path: &Path, limits: TableLimits) -> SqliteRuntime {
    let options = StoreOptions {
        tables: limits,
        ..StoreOptions::default()
    };
    SqliteRuntime::open(path, options).unwrap()
}

const ENDLESS: &str =
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";

#[test]
fn h03_what_runs_without_end_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    let tables = begin(&store, &a);
    // By the end of its turn.
    let ends = Arc::clone(&tables);
    let ender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        ends.end();
        Instant::now()
    });
    let error = query(&*tables, ENDLESS, json!([])).unwrap_err();
    let took = Instant::now().duration_since(ender.join().unwrap());
    assert_eq!(error.code(), StoreCode::Interrupted);
    assert!(took < Duration::from_millis(500), "{took:?}");
    // By nobody waiting any more: the next statement does not wait for it.
    let tables = begin(&store, &a);
    let mut left = tables.query(says(ENDLESS, json!([])), false);
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(left.as_mut().poll(cx)));
    assert!(block_on(polled).is_pending());
    std::thread::sleep(Duration::from_millis(20));
    drop(left);
    let began = Instant::now();
    assert_eq!(value(&*tables, "SELECT 7"), 7);
    assert!(
        began.elapsed() < Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
    // By its steps, which are counted.
    let steps = Arc::new(StepCount::up_to(1_000_000));
    let mut paid = says(ENDLESS, json!([]));
    paid.steps = Some(Arc::clone(&steps));
    let error = block_on(tables.query(paid, false)).unwrap_err();
    assert_eq!(error.code(), StoreCode::Interrupted);
    assert!(error.to_string().contains("steps"), "{error}");
    assert!(
        (900_000..1_100_000).contains(&steps.taken()),
        "{}",
        steps.taken()
    );
}

#[test]
fn h03_what_takes_too_much_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let limits = TableLimits {
        max_file_bytes: 1 << 20,
        max_rows: 100,
        max_result_bytes: 64 << 10,
        max_memory_bytes: 32 << 20,
        ..TableLimits::default()
    };
    let store = with(&folder.path().join("a.db"), limits);
    let a = key("echo/general/a");
    let tables = begin(&store, &a);
    let refused = |sql: &str, code: StoreCode| {
        let error = query(&*tables, sql, json!([])).unwrap_err();
        assert_eq!(error.code(), code, "{sql}: {error}");
    };
    let hundred = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 100)";
    refused("SELECT zeroblob(1000000000)", StoreCode::TooLarge);
    refused("SELECT hex(zeroblob(1000000))", StoreCode::TooLarge);
    refused("SELECT printf('%.*c', 100000000, 'x')", StoreCode::TooLarge);
    refused("SELECT zeroblob(60000)", StoreCode::TooLarge);
    let hundreds = format!("{hundred} SELECT a.x FROM n AS a, n AS b");
    refused(&hundreds, StoreCode::TooLarge);
    let memory = "WITH RECURSIVE n(x, b) AS
                  (SELECT 1, zeroblob(500000) UNION SELECT x + 1, zeroblob(500000) FROM n)
                  SELECT count(*) FROM n";
    refused(memory, StoreCode::Interrupted);
    let long = format!("SELECT '{}'", "x".repeat(128 << 10));
    refused(&long, StoreCode::TooLarge);
    let deep = format!("SELECT {}1", "NOT ".repeat(2_000));
    refused(&deep, StoreCode::Input);
    let many = format!("SELECT 1 {}", "UNION ALL SELECT 1 ".repeat(1_000));
    refused(&many, StoreCode::Input);
    let parameters = format!("SELECT {}", vec!["?"; 2_000].join(","));
    refused(&parameters, StoreCode::Input);
    refused("SELECT ?2000000000", StoreCode::Input);
    // The file: the turn that fills it is undone.
    exec(&*tables, "CREATE TABLE t (b)").unwrap();
    let insert =
        |tables: &dyn TableTurn| run(tables, "INSERT INTO t VALUES (zeroblob(100000))", json!([]));
    let mut kept = 0;
    let full = loop {
        match insert(&*tables) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full.code(), StoreCode::TooLarge, "{full}");
    assert!((7..11).contains(&kept), "{kept}");
    assert!(commit(&store, &a, 1, &*tables).is_err());
    // The record of a turn has room all the same, and there is some when rows are deleted.
    let tables = begin(&store, &a);
    exec(&*tables, "CREATE TABLE t (b)").unwrap();
    for _ in 0..kept {
        insert(&*tables).unwrap();
    }
    let mut large = turn(fence(&store, &a), 1);
    large.state.as_mut().unwrap().json = format!(r#"{{"n":1,"s":"{}"}}"#, "x".repeat(500_000));
    large.tables = Some(tables.id());
    block_on(store.commit(large)).unwrap();
    let tables = begin(&store, &a);
    assert_eq!(value(&*tables, "SELECT count(*) FROM t"), kept);
    run(&*tables, "DELETE FROM t WHERE rowid < 4", json!([])).unwrap();
    let mut second = turn(fence(&store, &a), 2);
    second.tables = Some(tables.id());
    block_on(store.commit(second)).unwrap();
}

#[test]
fn few_files_are_open_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let limits = TableLimits {
        max_open: 4,
        ..TableLimits::default()
    };
    let store = with(&folder.path().join("a.db"), limits);
    let agents: Vec<AgentKey> = (0..20)
        .map(|n| key(&format!("echo/general/a{n}")))
        .collect();
    for n in 1..4 {
        for agent in &agents {
            let tables = begin(&store, agent);
            exec(
                &*tables,
                "CREATE TABLE IF NOT EXISTS t (n); INSERT INTO t VALUES (1)",
            )
            .unwrap();
            assert_eq!(value(&*tables, "SELECT count(*) FROM t"), n);
            commit(&store, agent, n, &*tables).unwrap();
        }
    }
    // A log stands beside each file that is open; those that close take a moment.
    let logs = || {
        let files = folder.path().join("a.db.tables").read_dir().unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with("-wal")).count()
    };
    for _ in 0..200 {
        if logs() <= 4 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(logs() <= 4, "{}", logs());
    store.close().unwrap();
    assert_eq!(logs(), 0);
}
