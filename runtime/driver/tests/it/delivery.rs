//! Delivery: handlers that fail, panic, hang or linger, and what of them is kept.

use crate::script::{Call, Script, closed, is, text, until};
use crate::support::{
    Counter, Files, LONG, builder, counted, key, messages, quick, say, store, texts,
};
use a99_runtime::{Delivery, OnDead, Policy, SendOptions, codes};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MODES: [Delivery; 3] = [
    Delivery::AtMostOnce,
    Delivery::AtLeastOnce,
    Delivery::ExactlyOnceState,
];

#[tokio::test]
async fn an_agent_may_stop_in_front_of_what_it_gave_up() {
    let files = Files::new();
    let is_mended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_mended);
    let counter = Counter {
        policy: Policy {
            on_dead: OnDead::Stop,
            ..quick(Delivery::ExactlyOnceState)
        },
        on_message: Arc::new(move |text, _| match (text, seen.load(Ordering::SeqCst)) {
            ("bad", false) => Err("bad".into()),
            _ => Ok(()),
        }),
        ..Counter::default()
    };
    let host = builder().agent("a", move |_| counter.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    for text in ["one", "bad", "two"] {
        say(&host, "c", text).await;
    }
    is(&host, &a, "stopped").await;
    assert_eq!(counted(&host, &a).await.seen, ["one"]);
    // Nothing wakes it but who says so.
    say(&host, "c", "three").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(host.inspect(&a).await.expect("there").status, "stopped");
    is_mended.store(true, Ordering::SeqCst);
    host.wake(&a).expect("there");
    until("all is done", async || {
        counted(&host, &a).await.seen == ["one", "bad", "two", "three"]
    })
    .await;
}

#[tokio::test]
async fn h04_panics_and_endless_handlers_end_their_turn_only() {
    for mode in MODES {
        let files = Files::new();
        let mut script = Script::new(|turn, call| {
            Box::pin(async move {
                let Call::Event(event) = call else {
                    return Ok(());
                };
                turn.state_mut().count += 1;
                match text(&event) {
                    Some("panic") => panic!("a fault"),
                    Some("hang") => std::future::pending().await,
                    _ => Ok(()),
                }
            })
        });
        script.policy = quick(mode);
        script.timeout = Duration::from_millis(30);
        let host = builder()
            .agent("a", move |_| script.clone())
            .agent("b", |_| Counter::default())
            .start(store(&files.path()))
            .await
            .expect("a host");
        let (a, b) = (key("a/c/a"), key("b/c/b"));
        host.invite(&a, json!({})).await.expect("invited");
        for text in ["panic", "hang", "fine"] {
            say(&host, "c", text).await;
        }
        assert!(host.settled(LONG).await);
        let info = host.inspect(&a).await.expect("there");
        let codes: Vec<_> = info.dead_letters.iter().map(|d| d.code.as_str()).collect();
        assert_eq!(codes, [codes::PANIC, codes::TIMEOUT], "{mode:?}");
        assert_eq!(counted(&host, &a).await.count, 1);
        host.invite(&b, json!({})).await.expect("invited");
        assert!(host.settled(LONG).await);
        assert_eq!(counted(&host, &b).await.seen, ["panic", "hang", "fine"]);
    }
}

#[tokio::test]
async fn h04_what_a_handler_left_behind_cannot_act_for_its_turn() {
    let files = Files::new();
    let late = Arc::new(Mutex::new(Vec::<String>::new()));
    let told = Arc::clone(&late);
    let mut script = Script::new(move |turn, call| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            let Call::Event(_) = call else { return Ok(()) };
            let client = turn.client();
            let task = async move {
                let slow = client
                    .step("slow", async {
                        tokio::time::sleep(Duration::from_millis(150)).await;
                        Ok(1)
                    })
                    .await;
                let now = client.send_now("late", SendOptions::default()).await;
                let with = client.send("late").await;
                let timer = client.set_timer("late", 1, json!(0));
                let mut told = told.lock().expect("told");
                for code in [slow.map(drop), now.map(drop), with.map(drop), timer] {
                    told.push(code.expect_err("too late").code().to_owned());
                }
            };
            tokio::spawn(task);
            match turn.attempt() {
                // One attempt ends by its time, one well.
                1 => std::future::pending().await,
                _ => Ok(()),
            }
        })
    });
    script.timeout = Duration::from_millis(50);
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    until("both tried", async || late.lock().expect("told").len() == 8).await;
    assert!(
        late.lock()
            .expect("told")
            .iter()
            .all(|code| code == codes::OVER)
    );
    assert_eq!(texts(&host, "c").await, ["x"]);
    assert!(host.inspect(&a).await.expect("there").timers.is_empty());
}

#[tokio::test]
async fn turns_at_the_same_time_lose_no_state() {
    let files = Files::new();
    let counter = Counter {
        policy: Policy {
            concurrency: NonZeroU32::new(4).expect("four"),
            ..quick(Delivery::ExactlyOnceState)
        },
        pause: Duration::from_millis(1),
        ..Counter::default()
    };
    let first = store(&files.path());
    let host = builder().agent("a", move |_| counter.clone());
    let host = host.start(Arc::clone(&first)).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    for n in 0..60 {
        say(&host, "c", &format!("m{n}")).await;
    }
    assert!(host.settled(LONG).await);
    let state = counted(&host, &a).await;
    assert_eq!(state.count, 60);
    let mut seen = state.seen.clone();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 60);
    let info = host.inspect(&a).await.expect("there");
    assert!(info.dead_letters.is_empty(), "{:?}", info.dead_letters);
    closed(host, first).await;
}

#[tokio::test]
async fn equal_changes_of_turns_at_the_same_time_are_two_changes() {
    // Both make 1 of 0: the second must see that of the first.
    let files = Files::new();
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let mut script = Script::new(move |turn, call| {
        let barrier = Arc::clone(&barrier);
        Box::pin(async move {
            if let Call::Event(_) = call {
                turn.state_mut().count += 1;
                if turn.attempt() == 1 {
                    barrier.wait().await;
                }
            }
            Ok(())
        })
    });
    script.policy.concurrency = NonZeroU32::new(2).expect("two");
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "one").await;
    say(&host, "c", "two").await;
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.count, 2);
}

#[tokio::test]
async fn an_event_that_ends_first_does_not_pass_those_before_it() {
    let files = Files::new();
    let mut script = Script::new(|turn, call| {
        Box::pin(async move {
            let Call::Event(event) = call else {
                return Ok(());
            };
            if text(&event) == Some("slow") {
                tokio::time::sleep(Duration::from_millis(1_500)).await;
            }
            turn.send(format!("re {}", text(&event).unwrap_or_default()))
                .await?;
            Ok(())
        })
    });
    script.policy.concurrency = NonZeroU32::new(4).expect("four");
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "slow").await;
    say(&host, "c", "quick").await;
    until("the quick one is answered", async || {
        messages(&host, "c")
            .await
            .iter()
            .any(|(_, text)| text == "re quick")
    })
    .await;
    // After its own joining.
    assert_eq!(host.inspect(&a).await.expect("there").checkpoint, 1);
    assert!(host.settled(LONG).await);
    let said = texts(&host, "c").await;
    assert_eq!(said, ["slow", "quick", "re quick", "re slow"]);
    assert_eq!(host.inspect(&a).await.expect("there").dead_letters.len(), 0);
}

#[tokio::test]
async fn what_was_filtered_is_done_before_it_is_kept() {
    let files = Files::new();
    let mut script = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(_) = &call {
                // Its own message is filtered, and stands at the end of the log.
                turn.send("heard").await?;
            }
            Ok(())
        })
    });
    script.policy.lazy = 3_600_000;
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(texts(&host, "c").await, ["x", "heard"]);
    let info = host.inspect(&a).await.expect("there");
    // After its joining and two messages.
    assert_eq!((info.checkpoint, info.lag), (3, 0));
}
