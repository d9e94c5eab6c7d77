//! Replay and what comes: each event once, in order, whenever somebody begins to listen.

use crate::script::{Call, Script, closed, text, until};
use crate::support::{Files, builder, counted, key, says, store};
use a99_runtime::Host;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Publishes from several tasks at full speed.
fn publish(host: &Host, tasks: u64, each: u64) -> Vec<tokio::task::JoinHandle<()>> {
    let one = |task: u64| {
        let host = host.clone();
        tokio::spawn(async move {
            for n in 0..each {
                let text = format!("{task}:{n}");
                host.publish("c", says(&text)).await.expect("published");
            }
        })
    };
    (0..tasks).map(one).collect()
}

/// Reads up to a place: each once, ascending.
async fn follow(host: Host, after: Option<u64>, end: u64) {
    let mut events = host.subscribe("c", after, true).await.expect("a channel");
    let mut last = events.cursor();
    assert!(after.is_none_or(|after| after == last));
    while last < end {
        let event = events.next().await.expect("an event");
        assert_eq!(event.seq, Some(last + 1));
        last += 1;
    }
}

async fn splice(tasks: u64, each: u64, starts: Vec<(u64, Option<u64>)>, cancels: Vec<u64>) {
    let files = Files::new();
    let host = builder().start(store(&files.path())).await.expect("a host");
    let end = tasks * each;
    let publishers = publish(&host, tasks, each);
    let mut followers = Vec::new();
    for (later, after) in starts {
        let host = host.clone();
        followers.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_micros(later)).await;
            // Nobody begins after the end of the log.
            let head = host.inspect(&key("x/c/x")).await.expect("a channel").lag;
            follow(host, after.map(|after| after.min(head)), end).await;
        }));
    }
    // Some publish and do not wait for the answer: what they said may stand there, and is told.
    for (n, cancel) in cancels.iter().enumerate() {
        let text = format!("cancelled {n}");
        let waited = host.publish("c", says(&text));
        drop(tokio::time::timeout(Duration::from_micros(*cancel), waited).await);
    }
    for publisher in publishers {
        publisher.await.expect("published");
    }
    for follower in followers {
        let followed = tokio::time::timeout(Duration::from_secs(20), follower).await;
        followed.expect("it reads to the end").expect("in order");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn each_event_is_read_once_in_order(
        tasks in 1_u64..4,
        each in 1_u64..60,
        starts in proptest::collection::vec((0_u64..20_000, proptest::option::of(0_u64..40)), 1..6),
        cancels in proptest::collection::vec(0_u64..800, 0..6),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(3)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(splice(tasks, each, starts, cancels));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_sleeps_and_restarts_sees_each_event_once() {
    let files = Files::new();
    let a = key("a/c/a");
    let seen = || {
        Script::new(|turn, call| {
            Box::pin(async move {
                match &call {
                    Call::Event(event) => {
                        let text = text(event).unwrap_or_default().to_owned();
                        turn.state_mut().seen.push(text);
                    }
                    // What is published meanwhile waits.
                    Call::Wake => tokio::time::sleep(Duration::from_millis(3)).await,
                    _ => {}
                }
                Ok(())
            })
        })
    };
    let mut expected = Vec::new();
    for round in 0..3 {
        let store = store(&files.path());
        let host = builder()
            .options(a99_runtime::HostOptions {
                idle_debounce: Duration::from_millis(1),
                ..a99_runtime::HostOptions::default()
            })
            .agent("a", move |_| seen());
        let host = host.start(Arc::clone(&store)).await.expect("a host");
        host.invite(&a, json!({})).await.expect("invited");
        for n in 0..60_u64 {
            let text = format!("{round}:{n}");
            host.publish("c", says(&text)).await.expect("published");
            expected.push(text);
            if n % 9 == 0 {
                tokio::time::sleep(Duration::from_millis(n % 7)).await;
            }
        }
        let all = expected.clone();
        if round == 2 {
            until("all came", async || {
                counted(&host, &a).await.count == 0
                    && counted(&host, &a).await.seen.len() == all.len()
            })
            .await;
            assert_eq!(counted(&host, &a).await.seen, all);
        }
        closed(host, store).await;
    }
}

#[tokio::test]
async fn what_is_in_no_log_keeps_its_place_among_what_is() {
    let files = Files::new();
    let script = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call
                && let Some(text) = text(event)
            {
                turn.send_ephemeral(format!("about {text}"), Default::default())
                    .await?;
                turn.send(format!("done {text}")).await?;
            }
            Ok(())
        })
    });
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    let mut events = host.subscribe("c", None, true).await.expect("a channel");
    // Nothing is read before all is there.
    for text in ["one", "two", "three"] {
        host.publish("c", says(text)).await.expect("published");
        assert!(host.settled(Duration::from_secs(20)).await);
    }
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "done three") {
        let event = events.next().await.expect("an event");
        seen.extend(text(&event).map(str::to_owned));
    }
    let order = ["one", "two", "three"].map(|text| {
        let about = format!("about {text}");
        [text.to_owned(), about, format!("done {text}")]
    });
    assert_eq!(seen, order.concat());
}
