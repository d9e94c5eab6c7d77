//! State and settings: versions, what is damaged or too large, and who wins.

use crate::script::{closed, is, text, until};
use crate::support::{Counter, Files, LONG, builder, counted, key, quick, say, store};
use a99_runtime::{Agent, Delivery, Event, Migration, Policy, Turn, TurnOutcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Any state, at any version.
struct Versioned<const VERSION: u32>;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Anything(serde_json::Map<String, Value>);

fn renamed(state: Value) -> Result<Value, String> {
    let n = state["n"].as_u64().ok_or("n is no number")?;
    Ok(json!({"count": n}))
}

fn doubled(state: Value) -> Result<Value, String> {
    let n = state["count"].as_u64().ok_or("count is no number")?;
    Ok(json!({"count": 2 * n}))
}

impl<const VERSION: u32> Agent for Versioned<VERSION> {
    type State = Anything;
    type Settings = Value;
    const STATE_VERSION: u32 = VERSION;

    fn migrations(&self) -> &[Migration] {
        &[
            Migration {
                from: 1,
                step: renamed,
            },
            Migration {
                from: 2,
                step: doubled,
            },
        ]
    }

    fn policy(&self) -> Policy {
        quick(Delivery::default())
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        match text(&event).map(serde_json::from_str::<Value>) {
            Some(Ok(partial)) => turn.update_state(&partial),
            _ => Ok(()),
        }
    }
}

/// Runs an agent of a version over a text, and gives its state and version.
async fn run<const VERSION: u32>(path: &Path, says: &str) -> (Option<Value>, u32) {
    let store = store(path);
    let host = builder().agent("v", |_| Versioned::<VERSION>);
    let host = host.start(Arc::clone(&store)).await.expect("a host");
    let v = key("v/c/v");
    host.invite(&v, json!({})).await.expect("invited");
    say(&host, "c", says).await;
    assert!(host.settled(LONG).await);
    let info = host.inspect(&v).await.expect("there");
    closed(host, store).await;
    (info.state, info.version)
}

fn rows(path: &Path, sql: &str) -> Vec<(i64, String)> {
    let file = a99_sqlite::rusqlite::Connection::open(path).expect("a file");
    let mut find = file.prepare(sql).expect("SQL");
    let rows = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

const BACKUPS: &str = "SELECT version, state FROM agent_state_backup ORDER BY version";
const STATES: &str = "SELECT version, state FROM agent_state";

#[tokio::test]
async fn states_are_led_from_version_to_version_and_kept() {
    let files = Files::new();
    assert_eq!(
        run::<1>(&files.path(), r#"{"n":4}"#).await,
        (Some(json!({"n": 4})), 1)
    );
    let led = run::<3>(&files.path(), "nothing").await;
    assert_eq!(led, (Some(json!({"count": 8})), 3));
    let kept = rows(&files.path(), BACKUPS);
    assert_eq!(
        kept,
        [
            (1, r#"{"n":4}"#.to_owned()),
            (2, r#"{"count":4}"#.to_owned())
        ]
    );
}

/// An agent of version 3 refuses what is there; the row stays, others live.
async fn refused(files: &Files, code: &str) {
    let before = rows(&files.path(), STATES);
    let store = store(&files.path());
    let host = builder()
        .agent("v", |_| Versioned::<3>)
        .agent("b", |_| Counter::default());
    let host = host.start(Arc::clone(&store)).await.expect("a host");
    let (v, b) = (key("v/c/v"), key("b/d/b"));
    host.invite(&b, json!({})).await.expect("invited");
    say(&host, "d", "x").await;
    say(&host, "c", "for the other one").await;
    host.wake(&v).expect("there");
    is(&host, &v, "failed").await;
    until("the other one lives", async || {
        counted(&host, &b).await.count == 1
    })
    .await;
    // What it is is shown as far as it can be read.
    if let Ok(info) = host.inspect(&v).await {
        assert_eq!(info.last_error.map(|(code, _)| code).as_deref(), Some(code));
    }
    closed(host, store).await;
    let after = rows(&files.path(), STATES);
    assert!(before.iter().all(|row| after.contains(row)), "{after:?}");
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_state_as_it_was() {
    let files = Files::new();
    run::<1>(&files.path(), r#"{"n":"x"}"#).await;
    refused(&files, "state.migration_failed").await;
    assert_eq!(rows(&files.path(), BACKUPS), []);
}

#[tokio::test]
async fn a_state_of_a_later_version_is_refused() {
    let files = Files::new();
    run::<3>(&files.path(), r#"{"count":1}"#).await;
    let file = a99_sqlite::rusqlite::Connection::open(files.path()).expect("a file");
    file.execute("UPDATE agent_state SET version = 9", [])
        .expect("changed");
    drop(file);
    refused(&files, "state.newer").await;
}

#[tokio::test]
async fn a_state_that_is_damaged_is_refused() {
    for damaged in ["{\"count\":", "[1]"] {
        let files = Files::new();
        run::<3>(&files.path(), r#"{"count":1}"#).await;
        let file = a99_sqlite::rusqlite::Connection::open(files.path()).expect("a file");
        file.execute("UPDATE agent_state SET state = ?1", [damaged])
            .expect("changed");
        drop(file);
        refused(&files, "state.unreadable").await;
    }
}

#[tokio::test]
async fn set_state_merges_deep_and_update_state_does_not() {
    let files = Files::new();
    struct Both;
    impl Agent for Both {
        type State = Anything;
        type Settings = Value;
        async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
            match text(&event) {
                Some("deep") => turn.set_state(&json!({"a": {"y": 2}})),
                Some("shallow") => turn.update_state(&json!({"a": {"z": 3}})),
                _ => turn.set_state(&json!({"a": {"x": 1}, "b": 1})),
            }
        }
    }
    let host = builder().agent("a", |_| Both);
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    for (says, expected) in [
        ("first", json!({"a": {"x": 1}, "b": 1})),
        ("deep", json!({"a": {"x": 1, "y": 2}, "b": 1})),
        ("shallow", json!({"a": {"z": 3}, "b": 1})),
    ] {
        say(&host, "c", says).await;
        assert!(host.settled(LONG).await);
        let info = host.inspect(&a).await.expect("there");
        assert_eq!(info.state, Some(expected), "{says}");
    }
}
