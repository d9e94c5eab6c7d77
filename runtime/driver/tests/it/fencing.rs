//! Two owners of one store: the later one has it, the earlier one changes nothing more.

use crate::script::{Call, Script, closed, is, text, until};
use crate::support::{
    Counter, Files, LONG, ann, builder, counted, key, messages, quick, say, says, store,
};
use a99_runtime::{Delivery, LogEntry, SendOptions};
use a99_runtime_engine::{AgentStore, StoreCode, Trigger};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

fn past_lock(files: &Files) -> Arc<SqliteRuntime> {
    let opened = SqliteRuntime::open_past_lock(files.path(), StoreOptions::default());
    Arc::new(opened.expect("a store"))
}

#[tokio::test]
async fn h05_the_earlier_of_two_owners_stops_and_changes_nothing() {
    let files = Files::new();
    let a = key("a/c/a");
    let codes = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&codes);
    let gate = Arc::new(tokio::sync::Notify::new());
    let open = Arc::clone(&gate);
    let earlier = Script::new(move |turn, call| {
        let (told, open) = (Arc::clone(&told), Arc::clone(&open));
        Box::pin(async move {
            if let Call::Event(_) = call {
                turn.state_mut().count += 100;
                turn.send("of the earlier one").await?;
                open.notified().await;
                let sent = turn.send_now("at once", SendOptions::default()).await;
                told.lock()
                    .expect("codes")
                    .push(sent.map_err(|e| e.code().to_owned()));
            }
            Ok(())
        })
    });
    let first = past_lock(&files);
    let calls = earlier.clone();
    let one = builder().agent("a", move |_| earlier.clone());
    let one = one.start(first).await.expect("a host");
    one.invite(&a, json!({})).await.expect("invited");
    one.publish("c", says("x")).await.expect("published");
    until("it runs", async || {
        calls.called().contains(&"event x".to_owned())
    })
    .await;

    // Its own join is kept first: a later attempt to keep it would stop the agent, too.
    until("the join is kept", async || {
        let row = one.agent_store().load(&a).await;
        row.is_ok_and(|row| row.is_some_and(|row| row.progress.checkpoint >= 1))
    })
    .await;

    // The other one takes the store over and does the same event.
    let second = past_lock(&files);
    let two = builder().agent("a", |_| Counter::default());
    let two = two.start(second).await.expect("a host");
    assert!(two.settled(LONG).await);
    assert_eq!(counted(&two, &a).await.count, 1);

    gate.notify_one();
    is(&one, &a, "stopped").await;
    let (code, _) = one
        .inspect(&a)
        .await
        .expect("there")
        .last_error
        .expect("one");
    assert_eq!(code, "store.fenced");
    let codes = codes.lock().expect("codes").clone();
    assert_eq!(codes, [Err("store.fenced".to_owned())]);
    assert_eq!(counted(&two, &a).await.count, 1);
    let said = messages(&two, "c").await;
    assert!(
        said.iter()
            .all(|(_, text)| !text.contains("once") && !text.contains("earlier"))
    );
    assert!(
        said.iter()
            .any(|(who, _)| Some(who) == ann().handle.as_ref())
    );
}

#[tokio::test]
async fn h05_a_hook_of_the_earlier_owner_stops_it_too() {
    let files = Files::new();
    let a = key("a/c/a");
    let wakes = || {
        Script::new(|turn, call| {
            Box::pin(async move {
                turn.state_mut().count += u64::from(matches!(call, Call::Wake));
                Ok(())
            })
        })
    };
    let one = builder().agent("a", move |_| wakes());
    let one = one.start(past_lock(&files)).await.expect("a host");
    one.invite(&a, json!({})).await.expect("invited");
    is(&one, &a, "asleep").await;
    let _two = past_lock(&files);
    one.wake(&a).expect("there");
    is(&one, &a, "stopped").await;
    let (code, _) = one
        .inspect(&a)
        .await
        .expect("there")
        .last_error
        .expect("one");
    assert_eq!(code, "store.fenced");
    assert_eq!(counted(&one, &a).await.count, 1);
}

#[tokio::test]
async fn a_host_takes_up_only_what_others_left() {
    // A start that this process records is no turn that was cut off, whenever agents wake.
    let files = Files::new();
    let a = key("a/c/a");
    let mut script = Script::new(|_, call| {
        Box::pin(async move {
            if let Call::Event(_) = call {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        })
    });
    script.policy = quick(Delivery::AtMostOnce);
    let store = store(&files.path());
    let calls = script.clone();
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(Arc::clone(&store)).await.expect("a host");
    host.invite(&a, json!({})).await.expect("invited");
    for _ in 0..5 {
        host.publish("c", says("x")).await.expect("published");
        is(&host, &a, "asleep").await;
    }
    let lost = calls.called().iter().any(|call| call.starts_with("lost"));
    assert!(!lost, "{:?}", calls.called());
    let row = store.load(&a).await.expect("readable").expect("a row");
    assert_eq!(row.started, Vec::<(Trigger, u32)>::new());
}

/// Tells when it begins a message; ends one after a while if it ever does.
fn under_way(began: &Arc<Semaphore>, ends: bool) -> Script {
    let began = Arc::clone(began);
    Script::new(move |turn, call| {
        let began = Arc::clone(&began);
        Box::pin(async move {
            if let Call::Event(event) = &call
                && let Some(text) = text(event)
            {
                began.add_permits(1);
                if !ends {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_millis(400)).await;
                turn.state_mut().seen.push(text.to_owned());
            }
            Ok(())
        })
    })
}

#[tokio::test]
async fn a_turn_that_kills_the_process_takes_no_other_with_it() {
    let files = Files::new();
    let (killer, other) = (key("killer/c/killer"), key("other/d/other"));
    let mut abandoned = Vec::new();
    // Each host is left as a process that dies soon after the killer began leaves it.
    for deaths in 0.. {
        assert!(deaths < 20, "the killer is never given up");
        let (kills, began) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (script, innocent) = (under_way(&kills, false), under_way(&began, true));
        let host = builder()
            .agent("killer", move |_| script.clone())
            .agent("other", move |_| innocent.clone());
        let host = host.start(past_lock(&files)).await.expect("a host");
        if deaths == 0 {
            for one in [&killer, &other] {
                host.invite(one, json!({})).await.expect("invited");
                say(&host, one.channel(), "x").await;
            }
            // Both are under way.
            drop(began.acquire().await.expect("it began"));
        }
        let dies = tokio::time::timeout(Duration::from_secs(5), kills.acquire()).await;
        if dies.is_err() {
            let dead = host.inspect(&killer).await.expect("there").dead_letters;
            assert_eq!(dead.len(), 1, "after {deaths} deaths");
            assert!(host.settled(LONG).await);
            assert_eq!(host.inspect(&other).await.expect("there").dead_letters, []);
            assert_eq!(counted(&host, &other).await.seen, ["x"]);
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        abandoned.push(host);
    }
}

#[tokio::test]
async fn t9_a_copied_store_is_noticed() {
    let files = Files::new();
    let first = store(&files.path());
    let host = builder().start(Arc::clone(&first)).await.expect("a host");
    say(&host, "c", "one").await;
    closed(host, first).await;
    let copy = files.path().with_extension("copy");
    std::fs::copy(files.path(), &copy).expect("copied");
    let strict = StoreOptions {
        refuses_copies: true,
        ..StoreOptions::default()
    };
    let refused = SqliteRuntime::open(&copy, strict.clone()).expect_err("a copy");
    assert_eq!(refused.code(), StoreCode::Copied);
    SqliteRuntime::open_reader(&copy, strict.clone()).expect("readable");
    // Where it is taken, that is said, once.
    let said = async |options: StoreOptions| {
        let told = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&told);
        let store = Arc::new(SqliteRuntime::open(&copy, options).expect("a store"));
        let host = builder().logger(move |entry: &LogEntry<'_>| {
            log.lock().expect("a log").push(entry.code.to_owned());
        });
        let host = host.start(Arc::clone(&store)).await.expect("a host");
        closed(host, store).await;
        told.lock()
            .expect("a log")
            .contains(&"store.copied".to_owned())
    };
    assert!(said(StoreOptions::default()).await);
    assert!(!said(strict.clone()).await);
    // The original is as it was.
    SqliteRuntime::open(files.path(), strict).expect("the original");
}
