//! Turns of tables against a model: whatever is begun, given up, cut off between the commits
//! or left open, the tables are those of a plain database that ran what was committed.

use crate::tables::{begin, exec, says};
use crate::{Dice, block_on, counted, fence, key, turn};
use a99_runtime_engine::{AgentStore, Row, StoreCode, TableTurn};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use a99_sqlite::rusqlite::Connection;
use serde_json::json;
use std::path::Path;

/// A statement of some kind: changes of rows and of the schema, of which some are refused.
fn statement(dice: &mut Dice) -> String {
    let (k, v) = (dice.below(12), dice.below(1_000));
    match dice.below(14) {
        0..=3 => format!("INSERT INTO t VALUES ({k}, {v})"),
        4 => format!("REPLACE INTO t VALUES ({k}, {v}), ({}, {v})", k + 1),
        5 => format!("UPDATE t SET v = v + {v} WHERE k >= {k}"),
        6 => format!("DELETE FROM t WHERE k = {k}"),
        7 => format!("UPDATE t SET k = k + 1 WHERE k > {k}"),
        8 => "INSERT INTO log SELECT count(*), sum(v) FROM t".to_owned(),
        9 => format!("CREATE TABLE more{k} AS SELECT k, v FROM t"),
        10 => format!("DROP TABLE IF EXISTS more{k}"),
        11 => format!("INSERT OR IGNORE INTO t SELECT k + {k}, v FROM t"),
        12 => format!("CREATE INDEX IF NOT EXISTS i{k} ON t (v)"),
        _ => format!("INSERT INTO more{k} VALUES ({k}, {v})"),
    }
}

const SCHEMA: &str = "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER NOT NULL);
                      CREATE TABLE log (n, v)";
const DEAF: &str = "CREATE TRIGGER deaf BEFORE UPDATE ON agent_tables
                    BEGIN SELECT RAISE(ABORT, 'the second commit fails'); END";

fn past_lock(path: &Path) -> SqliteRuntime {
    SqliteRuntime::open_past_lock(path, StoreOptions::default()).unwrap()
}

fn run(store: &SqliteRuntime, sql: &'static str) {
    let write = store
        .database()
        .expect("a file")
        .write(move |tx| Ok(tx.execute_batch(sql)?));
    write.wait().unwrap();
}

/// All rows of the two tables that every run has, as text.
const ALL: &str = "SELECT group_concat(x, ' ') AS all_rows FROM (
                       SELECT 't' || k || '=' || v AS x FROM t UNION ALL
                       SELECT 'l' || n || '=' || ifnull(v, '-') FROM log ORDER BY 1)";

fn rows(tables: &dyn TableTurn) -> Option<String> {
    let rows: Vec<Row> = block_on(tables.query(says(ALL, json!([])), true)).unwrap();
    rows[0]["all_rows"].as_str().map(str::to_owned)
}

fn agree(store: &SqliteRuntime, model: &Connection, n: u64) {
    let a = key("echo/general/a");
    assert_eq!(counted(store, &a), n);
    let tables = begin(store, &a);
    let wanted: Option<String> = model.query_row(ALL, [], |row| row.get(0)).unwrap();
    assert_eq!(rows(&*tables), wanted);
}

/// Runs turns until so many were committed.
fn turns(seed: u64, most: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut dice = Dice::of(seed);
    let mut store = past_lock(&path);
    let a = key("echo/general/a");
    let model = Connection::open_in_memory().unwrap();
    model.execute_batch(SCHEMA).unwrap();
    let made = vec![SCHEMA.to_owned()];
    block_on(store.migrate_tables(fence(&store, &a), made)).unwrap();
    let mut n = 0;
    while n < most {
        let tables = begin(&store, &a);
        model.execute_batch("BEGIN").unwrap();
        for _ in 0..dice.below(6) {
            let sql = statement(&mut dice);
            let (here, there) = (exec(&*tables, &sql), model.execute_batch(&sql));
            assert_eq!(
                here.is_ok(),
                there.is_ok(),
                "seed {seed}: {sql}: {here:?} {there:?}"
            );
        }
        let mut commit = turn(fence(&store, &a), n + 1);
        commit.tables = Some(tables.id());
        match dice.below(8) {
            // Given up, or left open.
            0 => {
                tables.abandon();
                model.execute_batch("ROLLBACK").unwrap();
            }
            1 => model.execute_batch("ROLLBACK").unwrap(),
            // Refused.
            2 => {
                commit.state.as_mut().unwrap().base += 5;
                let refused = block_on(store.commit(commit)).unwrap_err();
                assert_eq!(refused.code(), StoreCode::Conflict);
                model.execute_batch("ROLLBACK").unwrap();
            }
            // The process ends in the middle of the turn.
            3 => {
                store = reopened(store, &path, &mut dice);
                model.execute_batch("ROLLBACK").unwrap();
            }
            // The second commit fails: it is tried again, or done by whoever comes next. A turn
            // that changed nothing in its tables has none.
            4 | 5 => {
                run(&store, DEAF);
                let failed = block_on(store.commit(commit.clone())).is_err();
                run(&store, "DROP TRIGGER deaf");
                match dice.below(3) {
                    0 if failed => drop(block_on(store.commit(commit)).unwrap()),
                    1 => store = reopened(store, &path, &mut dice),
                    _ => {}
                }
                model.execute_batch("COMMIT").unwrap();
                n += 1;
            }
            _ => {
                block_on(store.commit(commit)).unwrap();
                model.execute_batch("COMMIT").unwrap();
                n += 1;
            }
        }
        drop(tables);
        agree(&store, &model, n);
    }
}

/// The next owner, after the one before was closed or left as a killed process leaves it.
fn reopened(store: SqliteRuntime, path: &Path, dice: &mut Dice) -> SqliteRuntime {
    match dice.below(2) {
        0 => store.close().unwrap(),
        _ => {
            // Its transaction would be held for as long as this process lives.
            let last = begin(&store, &key("echo/general/a"));
            exec(&*last, "SELECT 1").unwrap();
            last.abandon();
            std::mem::forget(store);
        }
    }
    past_lock(path)
}

#[test]
fn turns_of_tables_are_those_of_a_plain_database() {
    for seed in 1..=12 {
        turns(seed, 20);
    }
}
