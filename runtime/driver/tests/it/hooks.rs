//! Hooks: their order, what waits for them, and what becomes of those that fail.

use crate::script::{Call, Script, closed, is, until};
use crate::support::{Counter, Files, LONG, builder, counted, key, quick, say, store};
use a99_runtime::{Delivery, HostOptions, Participant, Uuid};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn hasty() -> HostOptions {
    HostOptions {
        idle_debounce: Duration::from_millis(30),
        hook_timeout: Duration::from_millis(80),
        ..HostOptions::default()
    }
}

#[tokio::test]
async fn hooks_come_in_their_order() {
    let files = Files::new();
    let script = Script::new(|turn, call| {
        Box::pin(async move {
            if matches!(call, Call::Event(_)) {
                let now = turn.now();
                turn.set_timer("soon", now, json!(0))?;
            }
            Ok(())
        })
    });
    let made = script.clone();
    let host = builder().agent("a", move |_| made.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    say(&host, "c", "x").await;
    host.invite(&a, json!({})).await.expect("invited");
    until("the alarm came", async || script.called().len() == 4).await;
    is(&host, &a, "asleep").await;
    assert_eq!(
        script.called(),
        ["init", "wake", "event x", "alarm soon", "sleep"]
    );
    assert_eq!(host.update_settings(&a, &json!({"x": 1})).await, Ok(()));
    // Settings do not wake it; it has them when it wakes.
    assert_eq!(host.inspect(&a).await.expect("there").status, "asleep");
}

#[tokio::test]
async fn h04_hooks_that_fail_hang_or_panic_harm_nobody_else() {
    for fault in ["error", "panic", "hang"] {
        for hook in ["wake", "sleep", "settings"] {
            let files = Files::new();
            let script = Script::new(move |turn, call| {
                Box::pin(async move {
                    if call.name() == hook {
                        match fault {
                            "error" => return Err("a fault".into()),
                            "panic" => panic!("a fault"),
                            _ => std::future::pending::<()>().await,
                        }
                    }
                    turn.state_mut().count += u64::from(call.name() == "event x");
                    Ok(())
                })
            });
            let mut script = script;
            script.timeout = Duration::from_millis(60);
            let host = builder()
                .options(hasty())
                .agent("a", move |_| script.clone())
                .agent("b", |_| Counter::default());
            let host = host.start(store(&files.path())).await.expect("a host");
            let (a, b) = (key("a/c/a"), key("b/c/b"));
            host.invite(&a, json!({})).await.expect("invited");
            host.invite(&b, json!({})).await.expect("invited");
            say(&host, "c", "x").await;
            if hook == "settings" {
                let changed = host.update_settings(&a, &json!({"x": 1})).await;
                changed.expect("kept");
            }
            until("the other one works", async || {
                counted(&host, &b).await.count == 1
            })
            .await;
            match hook {
                // It is tried again later.
                "wake" => is(&host, &a, "failed").await,
                _ => is(&host, &a, "asleep").await,
            }
            let expected = u64::from(hook != "wake");
            assert_eq!(counted(&host, &a).await.count, expected, "{hook} {fault}");
        }
    }
}

#[tokio::test]
async fn h04_values_that_cannot_be_made_harm_nobody_else() {
    let files = Files::new();
    let host = builder()
        .agent("a", |_| -> Counter { panic!("it cannot be made") })
        .agent("b", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    let (a, b) = (key("a/c/a"), key("b/c/b"));
    host.invite(&a, json!({})).await.expect("invited");
    host.invite(&b, json!({})).await.expect("invited");
    is(&host, &a, "failed").await;
    say(&host, "c", "x").await;
    until("the other one works", async || {
        counted(&host, &b).await.count == 1
    })
    .await;
    assert_eq!(host.roster("c").len(), 2);
}

#[tokio::test]
async fn presence_wakes_nobody_and_idle_agents_do_not_flap() {
    let files = Files::new();
    let script = Script::idle();
    let made = script.clone();
    let host = builder().options(hasty()).agent("a", move |_| made.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    is(&host, &a, "asleep").await;
    for n in 0..5 {
        let ann = Participant {
            id: Uuid::from_u128(n),
            handle: format!("ann{n}"),
            name: "Ann".to_owned(),
            kind: "panel".to_owned(),
            methods: Value::Null,
            agent: None,
            metadata: serde_json::Map::new(),
        };
        host.join("c", ann).await.expect("joined");
        assert!(host.leave("c", Uuid::from_u128(n)).await.expect("left"));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(script.called(), ["init", "wake", "sleep"]);
}

#[tokio::test]
async fn a_drain_cancels_what_does_not_end_and_says_whose() {
    for (mode, expected) in [
        (Delivery::ExactlyOnceState, 1),
        (Delivery::AtLeastOnce, 1),
        (Delivery::AtMostOnce, 0),
    ] {
        let files = Files::new();
        let first = store(&files.path());
        let mut hangs = Script::new(|_, call| {
            Box::pin(async move {
                match call {
                    Call::Event(_) => std::future::pending().await,
                    _ => Ok(()),
                }
            })
        });
        hangs.policy = quick(mode);
        let calls = hangs.clone();
        let host = builder().agent("a", move |_| hangs.clone());
        let host = host.start(Arc::clone(&first)).await.expect("a host");
        let a = key("a/c/a");
        host.invite(&a, json!({})).await.expect("invited");
        say(&host, "c", "x").await;
        until("it runs", async || {
            calls.called().contains(&"event x".to_owned())
        })
        .await;
        let cut = host
            .drain(Duration::from_millis(50))
            .await
            .expect("drained");
        assert_eq!(cut, std::slice::from_ref(&a));
        assert_eq!(calls.called().last().map(String::as_str), Some("sleep"));
        let refused = host.invite(&a, json!({})).await.expect_err("it stops");
        assert_eq!(refused.code(), "host.stopping");
        closed(host, first).await;
        // What was cut off is delivered again, but where once is all.
        let mut next = Script::new(|turn, call| {
            Box::pin(async move {
                turn.state_mut().count += u64::from(matches!(call, Call::Event(_)));
                Ok(())
            })
        });
        next.policy = quick(mode);
        let host = builder().agent("a", move |_| next.clone());
        let host = host.start(store(&files.path())).await.expect("a host");
        assert!(host.settled(LONG).await);
        assert_eq!(counted(&host, &a).await.count, expected, "{mode:?}");
    }
}

#[tokio::test]
async fn an_agent_that_is_invited_again_while_it_ends_lives_once() {
    let files = Files::new();
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (in_now, in_most) = (Arc::clone(&now), Arc::clone(&most));
    let script = Script::new(move |turn, call| {
        let (now, most) = (Arc::clone(&in_now), Arc::clone(&in_most));
        Box::pin(async move {
            if let Call::Event(_) = call {
                let together = now.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(together, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(60)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                turn.state_mut().count += 1;
            }
            Ok(())
        })
    });
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    for _ in 0..4 {
        say(&host, "c", "x").await;
        until("it runs", async || now.load(Ordering::SeqCst) > 0).await;
        assert!(host.remove(&a).await.expect("removed"));
        host.invite(&a, json!({})).await.expect("invited");
    }
    until("all is done", async || counted(&host, &a).await.count == 4).await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
