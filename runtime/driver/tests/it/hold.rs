//! Agents that are held, changed and let go, while the others of their host go on.

use crate::script::{Call, Script, is, text, until};
use crate::support::{
    Counter, Files, LONG, builder, counted, key, messages, quick, say, store, texts,
};
use a99_runtime::{Delivery, Host, LogEntry, codes};
use a99_runtime_engine::Progress;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// Handles each event when it is let.
fn slow(begins: &Arc<Notify>, goes_on: &Arc<Notify>) -> Script {
    let (begins, goes_on) = (Arc::clone(begins), Arc::clone(goes_on));
    Script::new(move |turn, call| {
        let (begins, goes_on) = (Arc::clone(&begins), Arc::clone(&goes_on));
        Box::pin(async move {
            if let Call::Event(event) = &call {
                begins.notify_one();
                goes_on.notified().await;
                let text = text(event).unwrap_or("other").to_owned();
                turn.state_mut().seen.push(text);
            }
            Ok(())
        })
    })
}

#[tokio::test]
async fn t11_a_held_agent_waits_while_others_go_on() {
    let files = Files::new();
    let (begins, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = slow(&begins, &goes_on);
    let calls = script.clone();
    let counter = Counter::default();
    let host = builder().agent("slow", move |_| script.clone());
    let host = host.agent("a", move |_| counter.clone());
    let kept = store(&files.path());
    let host = host.start(Arc::clone(&kept)).await.expect("a host");
    let (a, b) = (key("a/c/a"), key("slow/d/slow"));
    host.invite(&a, json!({})).await.expect("invited");
    host.invite(&b, json!({})).await.expect("invited");
    say(&host, "d", "long").await;
    begins.notified().await;
    say(&host, "c", "one").await;
    until("one", async || counted(&host, &a).await.count == 1).await;

    // The turn that runs elsewhere is not waited for.
    let held = host.hold(&a, Duration::from_secs(60)).await.expect("held");
    assert!(!held.was_cut());
    let two = say(&host, "c", "two").await;
    let seq = two.event.seq.expect("a place");
    let handled = host.handled("c", seq, Duration::from_millis(200)).await;
    assert_eq!(handled.expect("readable"), None);
    assert_eq!(host.inspect(&a).await.expect("an agent").status, "asleep");
    // Another one that wants to change it waits.
    let second = host.hold(&a, LONG);
    let is_late = tokio::time::timeout(Duration::from_millis(50), second).await;
    assert!(is_late.is_err());
    // All of it is handled again.
    kept.set_progress(&a, Progress::default())
        .await
        .expect("set");
    drop(held);
    until("again", async || counted(&host, &a).await.count == 3).await;
    assert_eq!(texts(&host, "c").await.len(), 5);

    // The long turn ran once, and to its end.
    assert_eq!(counted(&host, &b).await.count, 0);
    goes_on.notify_one();
    until("long", async || counted(&host, &b).await.seen == ["long"]).await;
    let events = calls.called().into_iter();
    assert_eq!(events.filter(|call| call == "event long").count(), 1);
}

#[tokio::test]
async fn t11_a_turn_that_runs_too_long_is_cut_and_comes_again() {
    let files = Files::new();
    let (begins, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = slow(&begins, &goes_on);
    let host = builder().agent("slow", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let b = key("slow/d/slow");
    host.invite(&b, json!({})).await.expect("invited");
    say(&host, "d", "long").await;
    begins.notified().await;
    let held = host.hold(&b, Duration::from_millis(20)).await;
    let held = held.expect("held");
    assert!(held.was_cut());
    drop(held);
    begins.notified().await;
    goes_on.notify_one();
    until("long", async || counted(&host, &b).await.seen == ["long"]).await;
}

#[tokio::test]
async fn t11_a_definition_is_replaced_while_the_host_runs() {
    let files = Files::new();
    let host = builder().start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    let unknown = host.invite(&a, json!({})).await.expect_err("unknown");
    assert_eq!(unknown.code(), codes::UNKNOWN_AGENT);
    let counter = Counter::default();
    host.define("a", move |_| counter.clone());
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "one").await;
    until("one", async || counted(&host, &a).await.count == 1).await;
    let held = host.hold(&a, LONG).await.expect("held");
    let other = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call {
                turn.send(format!("new: {}", text(event).unwrap_or("other")))
                    .await?;
            }
            Ok(())
        })
    });
    host.define("a", move |_| other.clone());
    drop(held);
    say(&host, "c", "two").await;
    until("two", async || {
        let found = messages(&host, "c").await;
        found.contains(&("a".to_owned(), "new: two".to_owned()))
    })
    .await;
    // What it knew is there.
    assert_eq!(counted(&host, &a).await.count, 1);

    // One that failed for good has another try.
    let held = host.hold(&a, LONG).await.expect("held");
    assert!(host.undefine("a") && !host.undefine("a"));
    drop(held);
    say(&host, "c", "three").await;
    is(&host, &a, "failed").await;
    let counter = Counter::default();
    let held = host.hold(&a, LONG).await.expect("held");
    host.define("a", move |_| counter.clone());
    drop(held);
    until("three", async || counted(&host, &a).await.count == 2).await;
    let missing = host.hold(&key("b/c/b"), LONG).await.expect_err("no agent");
    assert_eq!(missing.code(), codes::NOT_REGISTERED);
}

#[tokio::test]
async fn t11_a_start_that_is_refused_says_why() {
    let files = Files::new();
    let kept = store(&files.path());
    let counter = Counter {
        policy: quick(Delivery::AtMostOnce),
        ..Counter::default()
    };
    let told = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&told);
    // It stays awake.
    let host = Host::builder().agent("a", move |_| counter.clone());
    let host = host.logger(move |entry: &LogEntry<'_>| {
        log.lock().expect("a log").push(entry.to_string());
    });
    let host = host.start(Arc::clone(&kept)).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "one").await;
    until("one", async || counted(&host, &a).await.count == 1).await;
    let done = |text: Option<&'static str>| {
        let sql = "UPDATE agent_state SET done = ?1 WHERE key = 'a/c/a'";
        let changed = kept
            .database()
            .expect("a file")
            .write(move |tx| tx.execute(sql, [text]).map_err(Into::into));
        assert_eq!(changed.wait().expect("written"), 1);
    };
    done(Some("no list"));
    say(&host, "c", "two").await;
    let reason = "what is kept cannot be read";
    until("it is said", async || {
        let told = told.lock().expect("a log");
        told.iter().any(|entry| {
            entry.contains("store.unreadable: the start of a turn") && entry.contains(reason)
        })
    })
    .await;
    done(None);
    until("a dead letter", async || {
        let info = host.inspect(&a).await.expect("an agent");
        info.dead_letters.iter().any(|dead| {
            dead.code == "turn.refused"
                && dead.error.contains("the turn's start")
                && dead.error.contains(reason)
        })
    })
    .await;
}
