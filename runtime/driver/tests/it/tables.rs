//! Tables of agents as handlers have them: part of the turn, in every way that it ends.

use crate::script::{Call, Script, closed, is, text, until};
use crate::support::{Counter, Files, LONG, builder, counted, key, quick, say, store, texts};
use a99_runtime::{
    AgentKey, CallOptions, Delivery, Host, Method, Methods, StorageApi, Tables, Turn,
};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NOTES: &str = "CREATE TABLE notes (n INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)";

/// An agent with a table of notes.
fn notes(script: Script) -> Script {
    let mut script = script;
    script.tables = Some(Tables::new().migration(NOTES));
    script
}

async fn note(turn: &Turn<'_, Script>, text: &str) -> Result<i64, a99_runtime::AgentError> {
    let storage = turn.storage()?;
    let sql = "INSERT INTO notes (text) VALUES (?)";
    let done = storage.run(sql, vec![json!(text)]).await?;
    assert_eq!(done.changes, 1);
    Ok(done.last_insert_rowid)
}

/// Notes each message, counts it, and says how many there are; some words do more.
fn noting() -> Script {
    notes(Script::new(|turn, call| {
        Box::pin(async move {
            let Call::Event(event) = call else {
                return Ok(());
            };
            let Some(text) = text(&event) else {
                return Ok(());
            };
            let id = note(turn, text).await?;
            turn.state_mut().count += 1;
            turn.state_mut().seen.push(text.to_owned());
            let storage = turn.storage()?;
            let rows = storage.query("SELECT count(*) AS n FROM notes", vec![]);
            let n = rows.await?[0]["n"].clone();
            turn.send(format!("{id} of {n}")).await?;
            match text {
                "fails once" if turn.attempt() == 1 => Err("not yet".into()),
                "fails" => Err("never".into()),
                "panics" if turn.attempt() == 1 => panic!("of the handler"),
                _ => Ok(()),
            }
        })
    }))
}

async fn hosted(files: &Files, script: Script) -> (Host, Arc<a99_runtime_stores::SqliteRuntime>) {
    let store = store(&files.path());
    let host = builder()
        .agent("a", move |_| script.clone())
        .start(Arc::clone(&store))
        .await
        .expect("a host");
    (host, store)
}

/// What stands in the table of notes, by another connection.
fn noted(files: &Files, store: &a99_runtime_stores::SqliteRuntime, key: &AgentKey) -> Vec<String> {
    assert!(files.path().exists());
    let file = a99_sqlite::rusqlite::Connection::open(store.tables_path(key)).expect("a file");
    let mut find = file
        .prepare("SELECT text FROM notes ORDER BY n")
        .expect("SQL");
    let rows = find.query_map([], |row| row.get(0)).expect("rows");
    rows.map(|row| row.expect("a text")).collect()
}

#[tokio::test]
async fn a_turn_keeps_its_tables_and_its_state() {
    let files = Files::new();
    let a = key("a/c/a");
    let (host, kept) = hosted(&files, noting()).await;
    host.invite(&a, json!({})).await.expect("invited");
    for said in ["x", "fails once", "panics", "y"] {
        say(&host, "c", said).await;
    }
    assert!(host.settled(LONG).await);
    let seen = ["x", "fails once", "panics", "y"];
    assert_eq!(counted(&host, &a).await.seen, seen);
    assert_eq!(noted(&files, &kept, &a), seen);
    let said = texts(&host, "c").await;
    let answers: Vec<_> = said.iter().filter(|text| text.contains(" of ")).collect();
    assert_eq!(answers, ["1 of 1", "2 of 2", "3 of 3", "4 of 4"]);
    // One that fails for good leaves nothing, and the next goes on.
    say(&host, "c", "fails").await;
    say(&host, "c", "x").await;
    say(&host, "c", "z").await;
    assert!(host.settled(LONG).await);
    assert_eq!(
        noted(&files, &kept, &a),
        ["x", "fails once", "panics", "y", "z"]
    );
    let info = host.inspect(&a).await.expect("there");
    let dead: Vec<_> = info
        .dead_letters
        .iter()
        .map(|dead| dead.code.as_str())
        .collect();
    assert_eq!(dead, ["turn.failed", "store.constraint"]);
    closed(host, kept).await;

    let (host, kept) = hosted(&files, noting()).await;
    say(&host, "c", "again").await;
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.count, 6);
    assert_eq!(noted(&files, &kept, &a).len(), 6);
    closed(host, kept).await;
}

#[tokio::test]
async fn each_mode_of_delivery_undoes_what_fails() {
    for delivery in [Delivery::AtMostOnce, Delivery::AtLeastOnce] {
        let files = Files::new();
        let a = key("a/c/a");
        let mut script = noting();
        script.policy = quick(delivery);
        let (host, kept) = hosted(&files, script).await;
        host.invite(&a, json!({})).await.expect("invited");
        for said in ["x", "fails once", "y"] {
            say(&host, "c", said).await;
        }
        assert!(host.settled(LONG).await);
        let seen = counted(&host, &a).await.seen;
        assert_eq!(noted(&files, &kept, &a), seen);
        let tries = if delivery == Delivery::AtMostOnce {
            2
        } else {
            3
        };
        assert_eq!(seen.len(), tries);
        closed(host, kept).await;
    }
}

#[tokio::test]
async fn what_sqlite_undid_is_no_half_of_a_turn() {
    let files = Files::new();
    let a = key("a/c/a");
    let (host, kept) = hosted(
        &files,
        notes(Script::new(|turn, call| {
            Box::pin(async move {
                let Call::Event(_) = call else { return Ok(()) };
                turn.state_mut().count += 1;
                let n = turn.attempt();
                note(turn, &format!("try {n}")).await?;
                if n == 1 {
                    // Its error is passed over; the transaction is gone with it.
                    let storage = turn.storage()?;
                    let sql = "INSERT OR ROLLBACK INTO notes (text) VALUES ('try 1')";
                    let error = storage.run(sql, vec![]).await.expect_err("there is one");
                    assert_eq!(error.code(), "store.constraint");
                }
                Ok(())
            })
        })),
    )
    .await;
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(noted(&files, &kept, &a), ["try 2"]);
    assert_eq!(counted(&host, &a).await.count, 1);
    closed(host, kept).await;
}

#[tokio::test]
async fn a_method_that_fails_answers_and_undoes() {
    let files = Files::new();
    let (a, b) = (key("a/c/a"), key("b/c/b"));
    let method = Method::new("Notes a text.", |_: &Script, turn, call| {
        Box::pin(async move {
            let text = call.args["text"].as_str().unwrap_or_default().to_owned();
            let id = note(turn, &text).await?;
            match text.as_str() {
                "bad" => Err("it does not like that".into()),
                _ => Ok(json!(id)),
            }
        })
    });
    let mut script = notes(Script::idle());
    script.methods = Methods::none().with("note", method);
    let answers = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&answers);
    let asks = Script::new(move |turn, call| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            let Call::Event(event) = call else {
                return Ok(());
            };
            let Some(said) = text(&event) else {
                return Ok(());
            };
            let args = json!({"text": said});
            let options = CallOptions::default();
            let call = turn
                .client()
                .call_method("a", "note", args, options)
                .await?;
            let answer = call.result().await.map_err(|error| error.to_string());
            told.lock().expect("answers").push(answer);
            Ok(())
        })
    });
    let kept = store(&files.path());
    let host = builder()
        .agent("a", move |_| script.clone())
        .agent("b", move |_| asks.clone());
    let host = host.start(Arc::clone(&kept)).await.expect("a host");
    for agent in [&a, &b] {
        host.invite(agent, json!({})).await.expect("invited");
    }
    for said in ["good", "bad", "better"] {
        say(&host, "c", said).await;
    }
    assert!(host.settled(LONG).await);
    let answers = answers.lock().expect("answers").clone();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0], Ok(json!(1)));
    assert!(answers[1].is_err(), "{answers:?}");
    assert_eq!(answers[2], Ok(json!(2)));
    assert_eq!(noted(&files, &kept, &a), ["good", "better"]);
    closed(host, kept).await;
}

#[tokio::test]
async fn hooks_are_turns_of_their_own() {
    let files = Files::new();
    let a = key("a/c/a");
    let script = notes(Script::new(|turn, call| {
        Box::pin(async move {
            let n = turn.state().count;
            turn.state_mut().count += 1;
            note(turn, &format!("{} {n}", call.name())).await?;
            match call {
                Call::Sleep => Err("it fails at the end".into()),
                _ => Ok(()),
            }
        })
    }));
    let (host, kept) = hosted(&files, script).await;
    host.invite(&a, json!({})).await.expect("invited");
    is(&host, &a, "asleep").await;
    host.update_settings(&a, &json!({"x": 1}))
        .await
        .expect("kept");
    host.wake(&a).expect("there");
    until("it woke twice", async || {
        counted(&host, &a).await.count == 2
    })
    .await;
    is(&host, &a, "asleep").await;
    assert_eq!(noted(&files, &kept, &a), ["wake 0", "wake 1"]);
    closed(host, kept).await;
}

#[tokio::test]
async fn an_endless_statement_ends_with_its_turn_and_others_go_on() {
    let files = Files::new();
    let (a, b) = (key("a/c/a"), key("b/d/b"));
    let mut endless = notes(Script::new(|turn, call| {
        Box::pin(async move {
            let Call::Event(_) = call else { return Ok(()) };
            note(turn, "before").await?;
            let storage = turn.storage()?;
            if turn.attempt() == 1 {
                let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
                           INSERT INTO notes (text) SELECT 't' || max(x) FROM n";
                storage.exec(sql).await?;
            }
            Ok(())
        })
    }));
    endless.timeout = Duration::from_millis(300);
    let kept = store(&files.path());
    let host = builder()
        .agent("a", move |_| endless.clone())
        .agent("b", |_| Counter::default());
    let host = host.start(Arc::clone(&kept)).await.expect("a host");
    for agent in [&a, &b] {
        host.invite(agent, json!({})).await.expect("invited");
    }
    let began = Instant::now();
    say(&host, "c", "x").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    say(&host, "d", "y").await;
    until("the other one went on", async || {
        counted(&host, &b).await.count == 1
    })
    .await;
    assert!(
        began.elapsed() < Duration::from_millis(280),
        "{:?}",
        began.elapsed()
    );
    assert!(host.settled(LONG).await);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(noted(&files, &kept, &a), ["before"]);
    let info = host.inspect(&a).await.expect("there");
    assert_eq!(info.last_error.expect("one").0, "turn.timeout");
    closed(host, kept).await;
}

#[tokio::test]
async fn what_a_handler_left_behind_has_no_tables() {
    let files = Files::new();
    let a = key("a/c/a");
    let codes = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&codes);
    let script = notes(Script::new(move |turn, call| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            let Call::Event(_) = call else { return Ok(()) };
            note(turn, "in time").await?;
            let storage = turn.storage()?;
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let late = storage
                    .exec("INSERT INTO notes (text) VALUES ('late')")
                    .await;
                let code = late.map_err(|error| error.code().to_owned());
                told.lock().expect("codes").push(code);
            });
            Ok(())
        })
    }));
    let (host, kept) = hosted(&files, script).await;
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    until("it comes too late", async || {
        codes.lock().expect("codes").len() == 1
    })
    .await;
    assert_eq!(*codes.lock().expect("codes"), [Err("turn.over".to_owned())]);
    assert_eq!(noted(&files, &kept, &a), ["in time"]);
    closed(host, kept).await;
}

#[tokio::test]
async fn tables_are_for_agents_that_have_some_and_for_one_turn_at_a_time() {
    let files = Files::new();
    let (a, b) = (key("a/c/a"), key("b/c/b"));
    let said = Arc::new(Mutex::new(None::<Value>));
    let told = Arc::clone(&said);
    let without = Script::new(move |turn, call| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            if let Call::Event(_) = call {
                let error = turn.storage().err().expect("it has none");
                let context = turn.client().context();
                assert!(context.storage.is_none() && !turn.has_storage());
                assert!(!context.event_bus.handle().is_empty());
                *told.lock().expect("said") = Some(json!([error.code(), error.is_final()]));
            }
            Ok(())
        })
    });
    let mut several = notes(Script::idle());
    several.policy.concurrency = NonZeroU32::new(4).expect("4");
    let kept = store(&files.path());
    let host = builder()
        .agent("a", move |_| without.clone())
        .agent("b", move |_| several.clone());
    let host = host.start(Arc::clone(&kept)).await.expect("a host");
    host.invite(&a, json!({})).await.expect("invited");
    let refused = host.invite(&b, json!({})).await.expect_err("it is refused");
    assert_eq!(refused.code(), "agent.bad_policy");
    assert!(refused.to_string().contains("concurrency"), "{refused}");
    assert_eq!(host.agents(), std::slice::from_ref(&a));
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(
        *said.lock().expect("said"),
        Some(json!(["storage.missing", true]))
    );
    closed(host, kept).await;
}

#[tokio::test]
async fn any_target_has_the_same_interface() {
    let files = Files::new();
    let a = key("a/c/a");
    let found = Arc::new(Mutex::new(Value::Null));
    let told = Arc::clone(&found);
    let script = notes(Script::new(move |turn, call| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            let Call::Event(_) = call else { return Ok(()) };
            let storage: Arc<dyn StorageApi> = turn.client().context().storage.expect("some");
            storage.exec("CREATE TABLE more (b)").await?;
            let blob = json!({"$blob": "AQI="});
            let sql = "INSERT INTO more VALUES (?), (NULL)";
            let done = storage.run(sql, vec![blob]).await?;
            let one = storage
                .get("SELECT b FROM more ORDER BY rowid", vec![])
                .await?;
            let none = storage
                .get("SELECT b FROM more WHERE b = 7", vec![])
                .await?;
            let all = storage
                .query("SELECT b FROM more ORDER BY rowid", vec![])
                .await?;
            storage.flush().await?;
            *told.lock().expect("found") = json!([done.changes, one, none, all]);
            Ok(())
        })
    }));
    let (host, kept) = hosted(&files, script).await;
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    let blob = json!({"$blob": "AQI="});
    let wanted = json!([2, {"b": blob}, null, [{"b": blob}, {"b": null}]]);
    assert_eq!(*found.lock().expect("found"), wanted);
    closed(host, kept).await;
}
