//! Attacks on agents that live: events that come again, are huge or go in circles, senders
//! who are not who they say, addressees who are not meant.

use crate::script::{Call, Script, text, until};
use crate::support::{Counter, Files, LONG, ann, builder, counted, key, say, says, store, texts};
use a99_runtime::{Body, EventOptions, HostOptions, Message, Publish};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn h01_an_event_that_is_published_again_is_there_once() {
    let files = Files::new();
    let first = store(&files.path());
    let host = builder().agent("a", |_| Counter::default());
    let host = host.start(Arc::clone(&first)).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    let again = |text: &str, key: &str| Publish {
        key: Some(key.to_owned()),
        ..says(text)
    };
    // In any order, as often as one likes.
    for (text, key, is_new) in [
        ("two", "2", true),
        ("one", "1", true),
        ("two", "2", false),
        ("one", "1", false),
    ] {
        let published = host
            .publish("c", again(text, key))
            .await
            .expect("published");
        assert_eq!(published.is_new, is_new);
    }
    let other = host.publish("c", again("three", "2")).await;
    assert_eq!(other.expect_err("another").code(), "step.changed_body");
    // Another sender's key is another key.
    let mut bob = again("two", "2");
    bob.sender.id = a99_runtime::Uuid::from_u128(8);
    assert!(host.publish("c", bob).await.expect("published").is_new);
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.seen, ["two", "one", "two"]);
    crate::script::closed(host, first).await;
    let host = builder().agent("a", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    assert!(
        !host
            .publish("c", again("one", "1"))
            .await
            .expect("there")
            .is_new
    );
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.count, 3);
}

#[tokio::test]
async fn h01_a_huge_event_is_borne_or_refused() {
    let files = Files::new();
    let script = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call {
                turn.state_mut().count += text(event).map_or(0, |text| text.len() as u64);
            }
            Ok(())
        })
    });
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", &"x".repeat(10 << 20)).await;
    let refused = host.publish("c", says(&"x".repeat(65 << 20))).await;
    assert_eq!(refused.expect_err("too large").code(), "store.too_large");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.count, (10 << 20) + 1);
}

#[tokio::test]
async fn h01_agents_that_answer_each_other_come_to_an_end() {
    let files = Files::new();
    let host = builder()
        .agent("a", |_| Counter::default())
        .agent("b", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    for text in ["a/c/a", "b/c/b"] {
        host.invite(&key(text), json!({})).await.expect("invited");
    }
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    // One, then two at each of four hops, and what the last ones said is heard by nobody.
    let said = texts(&host, "c").await;
    assert_eq!(said.len(), 1 + 2 * 5, "{said:?}");
}

#[tokio::test]
async fn h01_agents_that_answer_each_other_by_timers_come_to_an_end() {
    let files = Files::new();
    let script = Script::new(|turn, call| {
        Box::pin(async move {
            match &call {
                Call::Event(event) if text(event).is_some() => {
                    let due = turn.now();
                    turn.set_timer(format!("t{}", event.seq.unwrap_or(0)), due, json!(0))?;
                }
                Call::Alarm(_) => drop(turn.send("alarm").await?),
                _ => {}
            }
            Ok(())
        })
    });
    let (a, b) = (script.clone(), script);
    let host = builder()
        .agent("a", move |_| a.clone())
        .agent("b", move |_| b.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    for text in ["a/c/a", "b/c/b"] {
        host.invite(&key(text), json!({})).await.expect("invited");
    }
    say(&host, "c", "x").await;
    // As many as without timers, and none after them.
    until("all alarms", async || texts(&host, "c").await.len() == 11).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(host.settled(LONG).await);
    assert_eq!(texts(&host, "c").await.len(), 11);
}

#[tokio::test]
async fn h01_an_agent_that_hears_itself_comes_to_an_end() {
    let files = Files::new();
    let mut script = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call
                && text(event).is_some()
            {
                turn.send("again").await?;
            }
            Ok(())
        })
    });
    script.filter = EventOptions {
        skip_own_messages: false,
        ..EventOptions::default()
    };
    let host = builder()
        .options(HostOptions {
            max_hops: 7,
            ..HostOptions::default()
        })
        .agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(texts(&host, "c").await.len(), 9);
}

#[tokio::test]
async fn h01_a_flood_of_what_is_in_no_log_takes_no_memory_and_no_turn_of_a_timer() {
    let files = Files::new();
    let mut slow = Script::new(|turn, call| {
        Box::pin(async move {
            match &call {
                Call::Event(event) if event.seq.is_none() => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Call::Event(_) => {
                    let due = turn.now() + 100;
                    turn.set_timer("soon", due, json!(0))?;
                }
                Call::Alarm(_) => turn.state_mut().count += 1,
                _ => {}
            }
            Ok(())
        })
    });
    slow.filter.include_ephemeral = true;
    slow.policy.max_queued = 8;
    let flood = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call
                && text(event) == Some("go")
            {
                for _ in 0..2_000 {
                    turn.send_ephemeral("x", Default::default()).await?;
                }
            }
            Ok(())
        })
    });
    let host = builder()
        .agent("a", move |_| slow.clone())
        .agent("b", move |_| flood.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    host.invite(&key("b/c/b"), json!({}))
        .await
        .expect("invited");
    say(&host, "c", "go").await;
    until("the timer came", async || {
        counted(&host, &a).await.count == 1
    })
    .await;
}

#[tokio::test]
async fn h07_what_a_text_says_addresses_nobody() {
    let files = Files::new();
    let mut script = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(_) = &call {
                turn.state_mut().seen.push(call.name());
            }
            Ok(())
        })
    });
    script.filter.targeted_only = true;
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    let bob = a99_runtime::Uuid::from_u128(8);
    for (text, at) in [
        ("@a for the other one", vec![bob]),
        ("for you", vec![a.participant()]),
        ("for all", vec![]),
    ] {
        let mut sender = ann();
        // Whoever calls itself so is not the agent: what counts is the identity.
        sender.handle = Some("a".to_owned());
        let message = Message {
            at,
            metadata: Some(json!({"at": [a.participant()], "senderId": a.participant()})),
            ..Message::text(text)
        };
        let publish = Publish {
            body: Body::Message(message),
            sender,
            key: None,
            attachments: Vec::new(),
        };
        host.publish("c", publish).await.expect("published");
    }
    assert!(host.settled(LONG).await);
    assert_eq!(
        counted(&host, &a).await.seen,
        ["event for you", "event for all"]
    );
}
