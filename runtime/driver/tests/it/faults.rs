//! Faults of an earlier runtime that must not come back, each under its number.

use crate::script::{Call, Script, closed, is, text, until};
use crate::support::{Counter, Files, LONG, ann, builder, counted, key, say, says, store, texts};
use a99_runtime::{Body, CallOptions, HostOptions, Method, Methods, Publish};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Keeps what it hears; `wait` may hold a hook.
fn hears() -> Script {
    Script::new(|turn, call| {
        Box::pin(async move {
            match &call {
                Call::Event(event) => {
                    let text = text(event).unwrap_or("other").to_owned();
                    turn.state_mut().seen.push(text);
                }
                Call::Wake => tokio::time::sleep(Duration::from_millis(60)).await,
                _ => {}
            }
            Ok(())
        })
    })
}

#[tokio::test]
async fn fault_9_2_1_events_during_on_wake_are_delivered() {
    let files = Files::new();
    let script = hears();
    let calls = script.clone();
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    until("it wakes", async || {
        calls.called().contains(&"wake".to_owned())
    })
    .await;
    say(&host, "c", "meanwhile").await;
    assert!(calls.called().iter().all(|call| !call.starts_with("event")));
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.seen, ["meanwhile"]);
}

#[tokio::test]
async fn fault_9_2_1_events_while_it_sleeps_are_delivered_as_themselves() {
    let files = Files::new();
    let script = hears();
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    is(&host, &a, "asleep").await;
    for text in ["one", "two"] {
        say(&host, "c", text).await;
    }
    assert!(host.settled(LONG).await);
    until("both", async || {
        counted(&host, &a).await.seen == ["one", "two"]
    })
    .await;
}

#[tokio::test]
async fn fault_9_2_1_events_in_the_gap_of_a_listener_are_read() {
    let files = Files::new();
    let host = builder().start(store(&files.path())).await.expect("a host");
    say(&host, "c", "one").await;
    let mut events = host.subscribe("c", Some(0), false).await.expect("a log");
    events.next().await.expect("an event");
    let cursor = events.cursor();
    drop(events);
    say(&host, "c", "two").await;
    let mut events = host
        .subscribe("c", Some(cursor), false)
        .await
        .expect("a log");
    let event = events.next().await.expect("an event");
    assert_eq!(text(&event), Some("two"));
}

#[tokio::test]
async fn fault_9_2_1_events_of_handlers_that_failed_are_tried_again() {
    let files = Files::new();
    let counter = Counter {
        on_message: Arc::new(|_, attempt| match attempt {
            1 => Err("once".into()),
            _ => Ok(()),
        }),
        ..Counter::default()
    };
    let host = builder().agent("a", move |_| counter.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.seen, ["x"]);
}

#[tokio::test]
async fn fault_9_2_2_what_was_handled_does_not_come_again_after_a_crash() {
    // Past the lock, so that the first host may live on as if it had been killed.
    let files = Files::new();
    let open = || {
        let opened = SqliteRuntime::open_past_lock(files.path(), StoreOptions::default());
        Arc::new(opened.expect("a store"))
    };
    let a = key("a/c/a");
    let one = builder().agent("a", |_| Counter::default());
    let one = one.start(open()).await.expect("a host");
    one.invite(&a, json!({})).await.expect("invited");
    for n in 0..20 {
        one.publish("c", says(&n.to_string()))
            .await
            .expect("published");
    }
    assert!(one.settled(LONG).await);
    let counter = Counter::default();
    let calls = Arc::clone(&counter.calls);
    let two = builder().agent("a", move |_| counter.clone());
    let two = two.start(open()).await.expect("a host");
    assert!(two.settled(LONG).await);
    assert_eq!(counted(&two, &a).await.count, 20);
    assert!(calls.lock().expect("calls").is_empty());
}

#[tokio::test]
async fn fault_9_2_3_a_change_during_a_write_is_kept() {
    let files = Files::new();
    let counter = Counter {
        policy: a99_runtime::Policy {
            concurrency: NonZeroU32::new(8).expect("eight"),
            ..crate::support::quick(a99_runtime::Delivery::default())
        },
        ..Counter::default()
    };
    let host = builder().agent("a", move |_| counter.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    for n in 0..300 {
        say(&host, "c", &n.to_string()).await;
    }
    assert!(host.settled(LONG).await);
    let info = host.inspect(&a).await.expect("there");
    assert_eq!(info.dead_letters, []);
    assert_eq!(counted(&host, &a).await.count, 300);
}

#[tokio::test]
async fn fault_9_2_4_a_state_that_cannot_be_read_is_not_wiped() {
    let files = Files::new();
    let first = store(&files.path());
    let host = builder().agent("a", |_| Counter::default());
    let host = host.start(Arc::clone(&first)).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    closed(host, first).await;
    let change = |sql: &str| {
        let file = a99_sqlite::rusqlite::Connection::open(files.path()).expect("a file");
        file.execute(sql, []).expect("changed");
    };
    change("UPDATE agent_state SET version = 7");
    let second = store(&files.path());
    let host = builder().agent("a", |_| Counter::default());
    let host = host.start(Arc::clone(&second)).await.expect("a host");
    say(&host, "c", "y").await;
    is(&host, &a, "failed").await;
    closed(host, second).await;
    change("UPDATE agent_state SET version = 1");
    let host = builder().agent("a", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.seen, ["x", "y"]);
}

#[tokio::test]
async fn fault_9_2_5_the_checkpoint_never_goes_back() {
    let files = Files::new();
    let counter = Counter {
        policy: a99_runtime::Policy {
            concurrency: NonZeroU32::new(4).expect("four"),
            ..crate::support::quick(a99_runtime::Delivery::default())
        },
        pause: Duration::from_micros(300),
        ..Counter::default()
    };
    let host = builder().agent("a", move |_| counter.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    let mut last = 0;
    for n in 0..60 {
        say(&host, "c", &n.to_string()).await;
        let now = host.inspect(&a).await.expect("there").checkpoint;
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    assert!(host.settled(LONG).await);
}

#[tokio::test]
async fn fault_9_2_6_a_commit_that_failed_is_made_again() {
    let files = Files::new();
    let opened = SqliteRuntime::open_past_lock(files.path(), StoreOptions::default());
    let host = builder().agent("a", |_| Counter::default());
    let host = host
        .start(Arc::new(opened.expect("a store")))
        .await
        .expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    is(&host, &a, "asleep").await;
    say(&host, "c", "x").await;
    // Somebody else has the file for a while.
    let path = files.path();
    let other = tokio::task::spawn_blocking(move || {
        let file = a99_sqlite::rusqlite::Connection::open(path).expect("a file");
        file.busy_timeout(Duration::from_secs(5)).expect("a wait");
        file.execute_batch("BEGIN IMMEDIATE").expect("the lock");
        std::thread::sleep(Duration::from_millis(300));
        file.execute_batch("ROLLBACK").expect("given back");
    });
    other.await.expect("ended");
    until("it is kept", async || counted(&host, &a).await.count == 1).await;
}

#[tokio::test]
async fn fault_9_2_7_errors_of_handlers_are_told_and_end_no_agent() {
    let files = Files::new();
    let told = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&told);
    let counter = Counter {
        on_message: Arc::new(|text, _| match text {
            "panic" => panic!("at once"),
            "bad" => Err("bad".into()),
            _ => Ok(()),
        }),
        ..Counter::default()
    };
    let host = builder()
        .logger(move |entry: &a99_runtime::LogEntry<'_>| {
            let is_fault = entry.code == "turn.panic" || entry.code == "turn.failed";
            count.fetch_add(u32::from(is_fault), Ordering::SeqCst);
        })
        .agent("a", move |_| counter.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    for text in ["panic", "bad", "fine"] {
        say(&host, "c", text).await;
    }
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.seen, ["fine"]);
    assert_eq!(told.load(Ordering::SeqCst), 6);
    assert_eq!(host.inspect(&a).await.expect("there").dead_letters.len(), 2);
}

#[tokio::test]
async fn fault_9_2_8_on_sleep_waits_for_handlers() {
    let files = Files::new();
    let is_running = Arc::new(AtomicBool::new(false));
    let inner = Arc::clone(&is_running);
    let script = Script::new(move |_, call| {
        let is_running = Arc::clone(&inner);
        Box::pin(async move {
            match call {
                Call::Event(_) => {
                    is_running.store(true, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(150)).await;
                    is_running.store(false, Ordering::SeqCst);
                }
                Call::Sleep => assert!(!is_running.load(Ordering::SeqCst)),
                _ => {}
            }
            Ok(())
        })
    });
    let calls = script.clone();
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    say(&host, "c", "x").await;
    until("it runs", async || is_running.load(Ordering::SeqCst)).await;
    assert!(host.drain(LONG).await.expect("drained").is_empty());
    assert_eq!(calls.called(), ["init", "wake", "event x", "sleep"]);
}

#[tokio::test]
async fn fault_9_3_9_who_goes_wakes_nobody() {
    let files = Files::new();
    let script = Script::idle();
    let calls = script.clone();
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    is(&host, &a, "asleep").await;
    let body = Body::Presence {
        action: a99_runtime::PresenceAction::Leave,
        leave_reason: None,
        metadata: serde_json::Map::new(),
    };
    let publish = Publish {
        body,
        sender: ann(),
        key: None,
        attachments: Vec::new(),
    };
    host.publish("c", publish).await.expect("published");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(calls.called(), ["init", "wake", "sleep"]);
}

#[tokio::test]
async fn fault_9_3_11_an_idle_agent_sleeps() {
    let files = Files::new();
    let host = builder()
        .options(HostOptions {
            idle_debounce: Duration::from_millis(20),
            ..HostOptions::default()
        })
        .agent("a", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    is(&host, &a, "asleep").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn fault_9_3_12_an_agent_that_is_woken_from_all_sides_lives_once() {
    let files = Files::new();
    let lives = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&lives);
    let host = builder().agent("a", move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        // It takes long to make one.
        std::thread::sleep(Duration::from_millis(30));
        Counter::default()
    });
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    let woken = (0..8).map(|_| {
        let (host, a) = (host.clone(), a.clone());
        tokio::spawn(async move {
            host.invite(&a, json!({})).await.expect("invited");
            host.wake(&a).expect("there");
        })
    });
    for one in woken.collect::<Vec<_>>() {
        one.await.expect("woken");
    }
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(lives.load(Ordering::SeqCst), 1);
    assert_eq!(counted(&host, &a).await.count, 1);
}

#[tokio::test]
async fn fault_9_3_13_an_agent_lives_under_each_of_its_handles() {
    let files = Files::new();
    let host = builder().agent("a", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    let (one, two) = (key("a/c/one"), key("a/c/two"));
    for key in [&one, &two] {
        host.invite(key, json!({})).await.expect("invited");
    }
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    for key in [&one, &two] {
        assert!(
            counted(&host, key).await.seen.contains(&"x".to_owned()),
            "{key}"
        );
    }
}

#[tokio::test]
async fn fault_9_4_16_an_event_without_content_harms_no_reader() {
    let files = Files::new();
    let script = hears();
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    let empty = Publish {
        body: Body::Custom {
            name: String::new(),
            payload: serde_json::Value::Null,
        },
        ..says("")
    };
    host.publish("c", empty).await.expect("published");
    say(&host, "c", "").await;
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.seen, ["other", ""]);
    assert_eq!(texts(&host, "c").await, [""]);
}

#[tokio::test]
async fn fault_9_4_19_agents_that_nobody_granted_cannot_be_invited() {
    let files = Files::new();
    let host = builder().agent("a", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    let refused = host.invite(&key("other/c/a"), json!({})).await;
    assert_eq!(refused.expect_err("unknown").code(), "agent.unknown");
    assert_eq!(host.agents(), []);
}

#[tokio::test]
async fn fault_9_4_20_the_host_decides_whose_a_handle_is() {
    let files = Files::new();
    let host = builder()
        .agent("a", |_| Counter::default())
        .agent("b", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    let (a, b) = (key("a/c/same"), key("b/c/same"));
    let (one, two) = tokio::join!(host.invite(&a, json!({})), host.invite(&b, json!({})));
    assert!(one.is_ok() != two.is_ok());
    assert_eq!(host.agents().len(), 1);
}

#[tokio::test]
async fn fault_9_5_21_events_of_types_of_ones_own_reach_agents() {
    let files = Files::new();
    let sends = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call
                && text(event).is_some()
            {
                turn.publish("mine", json!({"n": 1}), true).await?;
            }
            Ok(())
        })
    });
    let host = builder()
        .agent("a", move |_| sends.clone())
        .agent("b", |_| hears());
    let host = host.start(store(&files.path())).await.expect("a host");
    for text in ["a/c/a", "b/c/b"] {
        host.invite(&key(text), json!({})).await.expect("invited");
    }
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    // First that `a` joined.
    let seen = counted(&host, &key("b/c/b")).await.seen;
    assert_eq!(seen, ["other", "x", "other"]);
}

#[tokio::test]
async fn fault_9_5_22_an_answer_that_is_whole_ends_its_parts() {
    let files = Files::new();
    let asks = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call
                && text(event) == Some("go")
            {
                let options = CallOptions::default();
                let mut good = turn.call_method("b", "good", json!({}), options).await?;
                let first = good.next().await?.expect("an answer");
                let (after, is_complete) = (good.next().await?, good.is_complete());
                let options = CallOptions::default();
                let mut bad = turn.call_method("b", "bad", json!({}), options).await?;
                let error = bad.next().await.expect_err("an error");
                let after_error = bad.next().await?;
                // One that nobody waits for harms nobody.
                let options = CallOptions::default();
                drop(turn.call_method("b", "bad", json!({}), options).await?);
                let told = format!(
                    "{} {after:?} {is_complete} {} {after_error:?}",
                    first.complete,
                    error.code()
                );
                turn.send(told).await?;
            }
            Ok(())
        })
    });
    let mut answers = Script::idle();
    answers.methods = Methods::none()
        .with(
            "good",
            Method::new("", |_, _, _| Box::pin(async { Ok(json!(1)) })),
        )
        .with(
            "bad",
            Method::new("", |_, _, _| Box::pin(async { Err("bad".into()) })),
        );
    let host = builder()
        .agent("a", move |_| asks.clone())
        .agent("b", move |_| answers.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    for text in ["a/c/a", "b/c/b"] {
        host.invite(&key(text), json!({})).await.expect("invited");
    }
    say(&host, "c", "go").await;
    assert!(host.settled(LONG).await);
    let said = texts(&host, "c").await;
    assert_eq!(said[1], "true None true execution-error None");
}

#[tokio::test]
async fn fault_9_5_24_an_agent_does_not_answer_itself() {
    let files = Files::new();
    let host = builder().agent("a", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(texts(&host, "c").await, ["x", "#1 x"]);
}

#[tokio::test]
async fn fault_9_5_26_what_a_user_changed_outlives_the_configuration() {
    let files = Files::new();
    let first = store(&files.path());
    let tells = || {
        Script::new(|turn, call| {
            Box::pin(async move {
                if let Call::Event(_) = call {
                    let tone = turn.settings()["tone"].to_string();
                    turn.state_mut().seen.push(tone);
                }
                Ok(())
            })
        })
    };
    let a = key("a/c/a");
    let host = builder().agent("a", move |_| tells());
    let host = host.start(Arc::clone(&first)).await.expect("a host");
    host.invite(&a, json!({"tone": "dry"}))
        .await
        .expect("invited");
    let changed = host.update_settings(&a, &json!({"tone": "warm"})).await;
    changed.expect("kept");
    closed(host, first).await;
    let host = builder().agent("a", move |_| tells());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&a, json!({"tone": "dry"}))
        .await
        .expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.seen, ["\"warm\""]);
}
