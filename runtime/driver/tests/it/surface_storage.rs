//! The names of storage, one test each: docs/runtime.md lists them.

use crate::stage::Stage;
use a99_runtime::{AgentError, StorageApi, TurnClient};
use serde_json::{Value, json};
use std::sync::Arc;

fn storage(client: &TurnClient) -> Arc<dyn StorageApi> {
    client.context().storage.expect("tables")
}

/// The texts of the notes.
async fn notes(stage: &Stage) -> Vec<Value> {
    let rows = stage.turn(async |turn| {
        let all = "SELECT text FROM note ORDER BY id";
        storage(&turn).query(all, Vec::new()).await
    });
    let rows = rows.await.expect("rows").into_iter();
    rows.map(|row| row["text"].clone()).collect()
}

#[tokio::test]
async fn exec() {
    let stage = Stage::new().await;
    let done = stage.turn(async |turn| {
        let both = "CREATE TABLE more (n); INSERT INTO more VALUES (7)";
        storage(&turn).exec(both).await?;
        storage(&turn).get("SELECT n FROM more", Vec::new()).await
    });
    assert_eq!(done.await.expect("done").expect("a row")["n"], 7);
    let refused = stage.turn(async |turn| storage(&turn).exec("PRAGMA user_version").await);
    assert_eq!(refused.await.expect_err("refused").code(), "store.input");
}

#[tokio::test]
async fn run() {
    let stage = Stage::new().await;
    let done = stage.turn(async |turn| {
        let insert = "INSERT INTO note (text) VALUES (?), (?)";
        storage(&turn)
            .run(insert, vec![json!("a"), json!("b")])
            .await
    });
    let done = done.await.expect("done");
    assert_eq!((done.changes, done.last_insert_rowid), (2, 2));
    assert_eq!(notes(&stage).await, ["a", "b"], "it was committed");
}

#[tokio::test]
async fn get() {
    let stage = Stage::new().await;
    let found = stage.turn(async |turn| {
        let storage = storage(&turn);
        let none = storage.get("SELECT text FROM note", Vec::new()).await?;
        storage
            .exec("INSERT INTO note (text) VALUES ('a'), ('b')")
            .await?;
        let one = "SELECT text FROM note WHERE id > ? ORDER BY id";
        Ok::<_, AgentError>((none, storage.get(one, vec![json!(1)]).await?))
    });
    let (none, one) = found.await.expect("found");
    assert_eq!(none, None);
    assert_eq!(one.expect("a row")["text"], "b");
}

#[tokio::test]
async fn query() {
    let stage = Stage::new().await;
    assert!(notes(&stage).await.is_empty());
    let insert = stage.turn(async |turn| {
        let insert = "INSERT INTO note (text) VALUES ('a'), ('b')";
        storage(&turn).exec(insert).await
    });
    insert.await.expect("done");
    assert_eq!(notes(&stage).await, ["a", "b"]);
}

#[tokio::test]
async fn flush() {
    let stage = Stage::new().await;
    let (during, over) = stage
        .turn(async |turn| {
            let storage = storage(&turn);
            (storage.flush().await, storage)
        })
        .await;
    during.expect("nothing to wait for in a turn");
    let late = over.flush().await.expect_err("the turn is over");
    assert_eq!(late.code(), "turn.over");
}

#[tokio::test]
async fn synchronous() {
    let stage = Stage::new().await;
    let done = stage.turn(async |turn| {
        let now = storage(&turn).synchronous().expect("threads of its own");
        // No await: plain code uses the tables of the turn.
        let work = || {
            now.exec("CREATE TABLE more (n)")?;
            let insert = "INSERT INTO note (text) VALUES (?)";
            let changes = now.run(insert, vec![json!("now")])?.changes;
            let one = now.get("SELECT text FROM note", Vec::new())?;
            let all = now.query("SELECT n FROM more", Vec::new())?;
            let wrong = now.run("INSERT INTO none VALUES (1)", Vec::new());
            Ok::<_, AgentError>((changes, one, all.len(), wrong.is_err()))
        };
        // It sees what the turn wrote, and the turn what it wrote.
        let done = work()?;
        let seen = storage(&turn)
            .query("SELECT 1 FROM note", Vec::new())
            .await?;
        Ok::<_, AgentError>((done, seen.len()))
    });
    let ((changes, one, more, is_wrong), seen) = done.await.expect("done");
    assert_eq!((changes, more, is_wrong, seen), (1, 0, true, 1));
    assert_eq!(one.expect("a row")["text"], "now");
    assert_eq!(
        notes(&stage).await,
        ["now"],
        "it was committed with the turn"
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_behind_a_connection_is_not_synchronous() {
    let stage = Stage::there().await;
    let now = stage.turn(async |turn| storage(&turn).synchronous().is_some());
    assert!(!now.await);
}
