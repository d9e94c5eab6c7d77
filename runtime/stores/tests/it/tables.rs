//! Tables of agents: what a turn keeps, what statements may do, and two files that agree.

use crate::{block_on, fence, key, open, turn};
use a99_runtime_engine::{
    AgentKey, AgentStore, Row, RunResult, Statement, StoreCode, StoreError, TableTurn,
};
use a99_runtime_stores::SqliteRuntime;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn says(sql: &str, params: Value) -> Statement {
    Statement {
        sql: sql.to_owned(),
        params: params.as_array().cloned().unwrap_or_default(),
        steps: None,
        is_repeatable: false,
    }
}

pub(crate) fn begin(store: &SqliteRuntime, key: &AgentKey) -> Arc<dyn TableTurn> {
    block_on(store.tables(fence(store, key))).unwrap()
}

pub(crate) fn exec(tables: &dyn TableTurn, sql: &str) -> Result<(), StoreError> {
    block_on(tables.exec(says(sql, json!([]))))
}

pub(crate) fn run(
    tables: &dyn TableTurn,
    sql: &str,
    params: Value,
) -> Result<RunResult, StoreError> {
    block_on(tables.run(says(sql, params)))
}

pub(crate) fn query(
    tables: &dyn TableTurn,
    sql: &str,
    params: Value,
) -> Result<Vec<Row>, StoreError> {
    block_on(tables.query(says(sql, params), false))
}

/// The first value of a query.
pub(crate) fn value(tables: &dyn TableTurn, sql: &str) -> Value {
    let rows = query(tables, sql, json!([])).unwrap();
    rows[0].values().next().cloned().unwrap()
}

/// The `n`th turn of an agent with what it did in its tables.
pub(crate) fn commit(
    store: &SqliteRuntime,
    key: &AgentKey,
    n: u64,
    tables: &dyn TableTurn,
) -> Result<(), StoreError> {
    let mut commit = turn(fence(store, key), n);
    commit.tables = Some(tables.id());
    block_on(store.commit(commit)).map(drop)
}

#[test]
fn a_turn_keeps_its_tables_with_its_state_or_neither() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path);
    let a = key("echo/general/a");
    let first = begin(&store, &a);
    exec(
        &*first,
        "CREATE TABLE t (n INTEGER PRIMARY KEY, s); CREATE INDEX i ON t (s)",
    )
    .unwrap();
    let done = run(
        &*first,
        "INSERT INTO t (s) VALUES (?), (?)",
        json!(["x", 1.5]),
    )
    .unwrap();
    assert_eq!((done.changes, done.last_insert_rowid), (2, 2));
    // It sees what it changed; nothing of it lasts until its commit.
    let rows = query(&*first, "SELECT n, s FROM t ORDER BY n", json!([])).unwrap();
    assert_eq!(json!(rows), json!([{"n": 1, "s": "x"}, {"n": 2, "s": 1.5}]));
    commit(&store, &a, 1, &*first).unwrap();
    let late = exec(&*first, "DELETE FROM t").unwrap_err();
    assert_eq!(late.code(), StoreCode::Interrupted);

    // Given up: the next turn sees nothing of it.
    let second = begin(&store, &a);
    run(&*second, "DELETE FROM t", json!([])).unwrap();
    second.abandon();
    let third = begin(&store, &a);
    assert_eq!(value(&*third, "SELECT count(*) FROM t"), 2);
    // Left open without a word: the same.
    run(&*third, "DELETE FROM t", json!([])).unwrap();
    let fourth = begin(&store, &a);
    assert_eq!(value(&*fourth, "SELECT count(*) FROM t"), 2);
    // A turn that another one took the transaction from cannot be committed.
    let lost = commit(&store, &a, 2, &*third).unwrap_err();
    assert_eq!(lost.code(), StoreCode::Interrupted);
    assert_eq!(crate::counted(&store, &a), 1);
    // One that only reads is a commit of the state alone.
    let fifth = begin(&store, &a);
    assert_eq!(value(&*fifth, "SELECT count(*) FROM t"), 2);
    commit(&store, &a, 2, &*fifth).unwrap();
    store.close().unwrap();

    let store = open(&path);
    assert_eq!(crate::counted(&store, &a), 2);
    let again = begin(&store, &a);
    assert_eq!(value(&*again, "SELECT group_concat(s) FROM t"), "x,1.5");
}

#[test]
fn what_the_store_refuses_is_undone_in_the_tables_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    let first = begin(&store, &a);
    exec(&*first, "CREATE TABLE t (n)").unwrap();
    commit(&store, &a, 1, &*first).unwrap();
    let second = begin(&store, &a);
    run(&*second, "INSERT INTO t VALUES (1)", json!([])).unwrap();
    let mut wrong = turn(fence(&store, &a), 2);
    wrong.state.as_mut().unwrap().base = 7;
    wrong.tables = Some(second.id());
    let refused = block_on(store.commit(wrong)).unwrap_err();
    assert_eq!(refused.code(), StoreCode::Conflict);
    let third = begin(&store, &a);
    assert_eq!(value(&*third, "SELECT count(*) FROM t"), 0);
    // A constraint that is looked at when a transaction ends refuses all of it.
    exec(
        &*third,
        "CREATE TABLE p (n PRIMARY KEY);
         CREATE TABLE c (n REFERENCES p DEFERRABLE INITIALLY DEFERRED);
         INSERT INTO c VALUES (1)",
    )
    .unwrap();
    let refused = commit(&store, &a, 2, &*third).unwrap_err();
    assert_eq!(refused.code(), StoreCode::Constraint, "{refused}");
    assert_eq!(crate::counted(&store, &a), 1);
    let fourth = begin(&store, &a);
    exec(&*fourth, "CREATE TABLE c (n)").unwrap();
    commit(&store, &a, 2, &*fourth).unwrap();
    assert_eq!(crate::counted(&store, &a), 2);
}

#[test]
fn h03_two_agents_do_not_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let (a, b) = (key("echo/general/a"), key("echo/general/b"));
    let one = begin(&store, &a);
    let other = begin(&store, &b);
    assert_ne!(store.tables_path(&a), store.tables_path(&b));
    exec(
        &*one,
        "CREATE TABLE secrets (s); INSERT INTO secrets VALUES ('a')",
    )
    .unwrap();
    exec(
        &*other,
        "CREATE TABLE secrets (s); INSERT INTO secrets VALUES ('b')",
    )
    .unwrap();
    assert_eq!(value(&*one, "SELECT s FROM secrets"), "a");
    assert_eq!(value(&*other, "SELECT s FROM secrets"), "b");
    one.abandon();
    assert_eq!(value(&*other, "SELECT s FROM secrets"), "b");
}

#[test]
fn values_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = begin(&store, &key("echo/general/a"));
    let values = json!([null, true, 7, i64::MIN, 0.5, "é\"", {"$blob": "AP8="}, 3.0]);
    let sql = "SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e, ? AS f, ? AS g, typeof(?) AS h";
    let rows = query(&*a, sql, values).unwrap();
    assert_eq!(
        json!(rows),
        json!([{"a": null, "b": 1, "c": 7, "d": i64::MIN, "e": 0.5, "f": "é\"",
                "g": {"$blob": "AP8="}, "h": "integer"}])
    );
    let first = block_on(a.query(says("SELECT 1 AS n UNION SELECT 2", json!([])), true)).unwrap();
    assert_eq!(json!(first), json!([{"n": 1}]));
    for (sql, params, text) in [
        ("SELECT ?", json!([]), "1 parameters, and 0"),
        ("SELECT 1", json!([1]), "0 parameters, and 1"),
        ("SELECT ?", json!([[1]]), "a list"),
        ("SELECT ?", json!([{"a": 1}]), "an object"),
        ("SELECT 1; SELECT 2", json!([]), "several statements"),
        (" -- nothing", json!([]), "no statement"),
        ("SELECT 9e999", json!([]), "CAST"),
        ("SELECT x FROM t", json!([]), "no such table: t"),
        ("SELEC 1", json!([]), "syntax error, at byte 0"),
        ("SELECT 1\0", json!([]), "code 0"),
    ] {
        let error = query(&*a, sql, params).unwrap_err();
        assert_eq!(error.code(), StoreCode::Input, "{sql}: {error}");
        assert!(error.to_string().contains(text), "{sql}: {error}");
    }
    let error = exec(&*a, "SELECT ?").unwrap_err();
    assert!(error.to_string().contains("no parameters"), "{error}");
}

#[test]
fn h03_statements_reach_nothing_but_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    let tables = begin(&store, &a);
    exec(&*tables, "CREATE TABLE t (n); INSERT INTO t VALUES (1)").unwrap();
    let outside = folder.path().join("outside.db");
    let attach = format!("ATTACH '{}' AS o", outside.display());
    let vacuum = format!("VACUUM INTO '{}'", outside.display());
    for sql in [
        attach.as_str(),
        vacuum.as_str(),
        "VACUUM",
        "DETACH main",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode",
        "PRAGMA table_info(t)",
        "PRAGMA max_page_count = 1000000000",
        "SELECT * FROM pragma_table_info('a99_turn')",
        "SELECT * FROM pragma_max_page_count",
        "BEGIN",
        "COMMIT",
        "END",
        "ROLLBACK",
        "SAVEPOINT s",
        "RELEASE s",
        "ROLLBACK TO s",
        "SELECT load_extension('x')",
        "SELECT * FROM a99_turn",
        "SELECT record FROM A99_Turn",
        "SELECT count(*) FROM a99_turn",
        "SELECT count(*) FROM main.a99_component",
        "UPDATE a99_turn SET n = 7",
        "DELETE FROM a99_turn",
        "INSERT INTO a99_turn (id, key, epoch, n, version) VALUES (1, '', 0, 0, 0)",
        "REPLACE INTO a99_turn (id, key, epoch, n, version) VALUES (1, '', 0, 0, 0)",
        "DROP TABLE a99_turn",
        "ALTER TABLE a99_turn RENAME TO mine",
        "ALTER TABLE a99_turn ADD COLUMN x",
        "CREATE INDEX i ON a99_turn (n)",
        "CREATE TRIGGER g AFTER UPDATE ON a99_turn BEGIN DELETE FROM t; END",
        "CREATE TABLE a99_mine (n)",
        "CREATE VIEW A99_v AS SELECT 1",
        "CREATE TABLE copy AS SELECT * FROM a99_turn",
        "CREATE TABLE copy AS SELECT * FROM sqlite_master",
        "SELECT * FROM sqlite_master",
        "SELECT count(*) FROM sqlite_schema",
        "SELECT * FROM main.sqlite_master",
        "UPDATE sqlite_master SET sql = ''",
        "DELETE FROM sqlite_schema",
        "SELECT * FROM sqlite_temp_master",
        "SELECT * FROM dbstat",
        "SELECT count(*) FROM dbstat",
        "CREATE TEMP TABLE x (n)",
        "CREATE TEMP VIEW x AS SELECT 1",
        "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "CREATE VIRTUAL TABLE f USING rtree(a, b, c)",
        "ANALYZE",
        "ANALYZE t",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN QUERY PLAN SELECT * FROM a99_turn",
        "SELECT fts3_tokenizer('simple')",
        "WITH x AS (SELECT * FROM a99_turn) SELECT * FROM x",
        "SELECT (SELECT record FROM a99_turn)",
        "INSERT INTO t SELECT n FROM a99_turn",
    ] {
        let error = exec(&*tables, sql).expect_err(sql);
        assert_eq!(error.code(), StoreCode::Input, "{sql}: {error}");
    }
    assert!(!outside.exists());
    // By ways round about.
    exec(&*tables, "CREATE VIEW v AS SELECT * FROM a99_turn").unwrap();
    assert!(query(&*tables, "SELECT * FROM v", json!([])).is_err());
    exec(&*tables, "CREATE VIEW w AS SELECT * FROM sqlite_master").unwrap();
    assert!(query(&*tables, "SELECT * FROM w", json!([])).is_err());
    exec(
        &*tables,
        "CREATE TABLE u (n);
         CREATE TRIGGER g AFTER INSERT ON u BEGIN UPDATE a99_turn SET n = 9; END",
    )
    .unwrap();
    let error = exec(&*tables, "INSERT INTO u VALUES (1)").unwrap_err();
    assert_eq!(error.code(), StoreCode::Input, "{error}");
    // What is allowed still works, and can be committed.
    exec(
        &*tables,
        "DROP VIEW v; DROP TRIGGER g; ALTER TABLE u RENAME TO w2;
         ALTER TABLE w2 ADD COLUMN m DEFAULT 3; ALTER TABLE w2 RENAME COLUMN m TO k;
         ALTER TABLE w2 DROP COLUMN k; CREATE UNIQUE INDEX i ON t (n); REINDEX i; DROP INDEX i;
         CREATE TABLE auto (n INTEGER PRIMARY KEY AUTOINCREMENT);
         INSERT INTO auto DEFAULT VALUES; DROP TABLE auto;
         CREATE TABLE copied AS SELECT n FROM t;
         CREATE TRIGGER h AFTER INSERT ON t BEGIN INSERT INTO copied VALUES (new.n); END;
         INSERT INTO t SELECT value FROM json_each('[2, 3]')",
    )
    .unwrap();
    assert_eq!(value(&*tables, "SELECT count(*) FROM copied"), 3);
    commit(&store, &a, 1, &*tables).unwrap();
    // A name of the runtime's by renaming: the whole turn is undone.
    let tables = begin(&store, &a);
    exec(&*tables, "INSERT INTO t VALUES (4)").unwrap();
    let error = exec(&*tables, "ALTER TABLE w2 RENAME TO a99_later").unwrap_err();
    assert!(error.to_string().contains("a99_later"), "{error}");
    assert!(exec(&*tables, "INSERT INTO t VALUES (5)").is_err());
    assert!(commit(&store, &a, 2, &*tables).is_err());
    let tables = begin(&store, &a);
    assert_eq!(value(&*tables, "SELECT count(*) FROM t"), 3);
}

#[test]
fn statements_of_programs_give_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let tables = begin(&store, &key("echo/general/a"));
    let ask = |sql: &str, is_repeatable: bool| {
        let mut statement = says(sql, json!([]));
        statement.is_repeatable = is_repeatable;
        block_on(tables.query(statement, false)).map_err(|error| error.to_string())
    };
    let table = "CREATE TABLE d (n INTEGER PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP);
                 CREATE TABLE t (n INTEGER PRIMARY KEY, at TEXT); INSERT INTO t (n) VALUES (1)";
    exec(&*tables, table).unwrap();
    exec(&*tables, "CREATE VIEW now AS SELECT unixepoch() AS n").unwrap();
    for sql in [
        "SELECT random()",
        "SELECT RANDOMBLOB(4)",
        "SELECT date('now')",
        "SELECT strftime('%s', 'now')",
        "SELECT current_timestamp",
        "SELECT total_changes()",
        "SELECT last_insert_rowid()",
        "INSERT INTO d (n) VALUES (1)",
        "SELECT n FROM now",
        "SELECT 1 ORDER BY random()",
    ] {
        let refused = ask(sql, true).expect_err(sql);
        assert!(refused.contains("runs again"), "{sql}: {refused}");
        ask(sql, false).expect(sql);
    }
    ask("INSERT INTO t VALUES (2, 'then')", true).unwrap();
    commit(&store, &key("echo/general/a"), 1, &*tables).unwrap();
    // The row that an earlier turn inserted is none of this one's.
    let tables = begin(&store, &key("echo/general/a"));
    let done = run(&*tables, "UPDATE t SET at = 'then'", json!([])).unwrap();
    assert_eq!((done.changes, done.last_insert_rowid), (2, 0));
    let ask = |sql: &str, is_repeatable: bool| {
        let mut statement = says(sql, json!([]));
        statement.is_repeatable = is_repeatable;
        block_on(tables.query(statement, false)).map_err(|error| error.to_string())
    };
    let found = ask(
        "SELECT upper(at) AS at, abs(-n) AS n FROM t WHERE n = 2",
        true,
    )
    .unwrap();
    assert_eq!(json!(found), json!([{"at": "THEN", "n": 2}]));
}

#[test]
fn h03_a_statement_that_ends_the_transaction_ends_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    let first = begin(&store, &a);
    exec(
        &*first,
        "CREATE TABLE t (n UNIQUE); INSERT INTO t VALUES (1)",
    )
    .unwrap();
    commit(&store, &a, 1, &*first).unwrap();
    for sql in [
        "INSERT OR ROLLBACK INTO t VALUES (1)",
        "CREATE TRIGGER g BEFORE INSERT ON t BEGIN SELECT RAISE(ROLLBACK, 'x'); END;
         INSERT INTO t VALUES (9)",
    ] {
        let tables = begin(&store, &a);
        exec(&*tables, "INSERT INTO t VALUES (2)").unwrap();
        assert_eq!(
            exec(&*tables, sql).unwrap_err().code(),
            StoreCode::Constraint
        );
        // Without a transaction each statement would be kept at once.
        assert!(exec(&*tables, "INSERT INTO t VALUES (3)").is_err());
        assert!(tables.check().is_err());
        let error = commit(&store, &a, 2, &*tables).unwrap_err();
        assert_eq!(error.code(), StoreCode::Interrupted);
    }
    let tables = begin(&store, &a);
    assert_eq!(
        value(&*tables, "SELECT group_concat(n) FROM t"),
        1.to_string()
    );
    // Other errors undo their statement alone.
    exec(&*tables, "INSERT INTO t VALUES (2)").unwrap();
    let error = exec(&*tables, "INSERT INTO t VALUES (3), (2)").unwrap_err();
    assert_eq!(error.code(), StoreCode::Constraint);
    assert!(error.to_string().contains("UNIQUE"), "{error}");
    commit(&store, &a, 2, &*tables).unwrap();
    let tables = begin(&store, &a);
    assert_eq!(value(&*tables, "SELECT count(*) FROM t"), 2);
}

#[test]
fn migrations_are_made_once_and_never_led_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    let made = |migrations: &[&str]| {
        let migrations = migrations.iter().map(|&sql| sql.to_owned()).collect();
        block_on(store.migrate_tables(fence(&store, &a), migrations))
    };
    let one = "CREATE TABLE t (n); INSERT INTO t VALUES (1)";
    made(&[one]).unwrap();
    made(&[one]).unwrap();
    let failing = made(&[one, "CREATE TABLE u (n); INSERT INTO missing VALUES (1)"]).unwrap_err();
    let text = failing.to_string();
    assert!(
        text.starts_with("migration 2 of echo/general/a: no such table"),
        "{text}"
    );
    made(&[
        one,
        "ALTER TABLE t ADD COLUMN m DEFAULT 5",
        "INSERT INTO t VALUES (2, 6)",
    ])
    .unwrap();
    let tables = begin(&store, &a);
    assert_eq!(value(&*tables, "SELECT group_concat(m) FROM t"), "5,6");
    let newer = made(&[one]).unwrap_err();
    assert_eq!(newer.code(), StoreCode::Unreadable, "{newer}");
    let hidden = made(&[one, "", "", "DROP TABLE a99_turn"]).unwrap_err();
    assert_eq!(hidden.code(), StoreCode::Input);
    let ends = made(&[one, "", "", "COMMIT"]).unwrap_err();
    assert_eq!(ends.code(), StoreCode::Input);
}
