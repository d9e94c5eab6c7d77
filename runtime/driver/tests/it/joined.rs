//! Turns that are kept in one commit.

use crate::script::until;
use crate::support::{
    Counted, Counter, Files, LONG, builder, counted, key, quick, say, says, store, texts,
};
use a99_runtime::{Agent, Body, Delivery, Event, Policy, SendOptions, Turn, TurnOutcome};
use a99_runtime_engine::{AgentStore, Seq};
use a99_runtime_stores::{SqliteRuntime, StoreLimits, StoreOptions};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

fn joined() -> Policy {
    Policy {
        turns_per_commit: NonZeroU32::new(16).expect("sixteen"),
        ..quick(Delivery::default())
    }
}

/// Commits that the store made of an agent's state.
async fn revision(store: &SqliteRuntime) -> u64 {
    let row = store.load(&key("a/c/a")).await.expect("readable");
    row.expect("a row").revision
}

#[tokio::test]
async fn turns_that_wait_are_kept_in_one_commit_and_in_order() {
    let files = Files::new();
    let kept = store(&files.path());
    let counter = Counter {
        policy: joined(),
        ..Counter::default()
    };
    let host = builder().agent("a", move |_| counter.clone());
    let host = host.start(Arc::clone(&kept)).await.expect("a host");
    // They wait before it is there.
    let numbers: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    for n in &numbers {
        say(&host, "c", n).await;
    }
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    assert!(host.settled(LONG).await);
    let state = counted(&host, &a).await;
    assert_eq!((state.count, &state.seen), (200, &numbers));
    let said = texts(&host, "c").await;
    let replies = numbers
        .iter()
        .zip(1..)
        .map(|(n, count)| format!("#{count} {n}"));
    assert_eq!(said[200..], replies.collect::<Vec<_>>());
    let commits = revision(&kept).await;
    assert!((200 / 16..100).contains(&commits), "{commits} commits");
}

/// What was seen: the number of the turn, how it acted, and the checkpoint that was kept then.
type Look = (u64, &'static str, Seq);

/// Looks at what is kept when it acts.
struct Looks {
    store: Arc<SqliteRuntime>,
    seen: Arc<Mutex<Vec<Look>>>,
}

impl Looks {
    async fn look(&self, n: u64, how: &'static str) {
        let row = self.store.load(&key("a/c/a")).await.expect("readable");
        let checkpoint = row.map_or(0, |row| row.progress.checkpoint);
        self.seen.lock().expect("a list").push((n, how, checkpoint));
    }
}

impl Agent for Looks {
    type State = Counted;
    type Settings = serde_json::Value;

    fn policy(&self) -> Policy {
        joined()
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let Body::Message(message) = event.body else {
            return Ok(());
        };
        let Ok(n) = message.content.parse::<u64>() else {
            return Ok(());
        };
        turn.state_mut().count += 1;
        match n % 5 {
            1 => {
                let step = turn.step("look", async {
                    self.look(n, "step").await;
                    Ok(())
                });
                step.await?;
            }
            2 => {
                turn.send_now(format!("now {n}"), SendOptions::default())
                    .await?;
                self.look(n, "now").await;
            }
            3 => {
                turn.settled().await?;
                self.look(n, "settled").await;
            }
            4 => {
                turn.send_ephemeral("typing", SendOptions::default())
                    .await?;
                self.look(n, "ephemeral").await;
            }
            _ => {}
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_turn_acts_when_those_before_it_are_kept() {
    let files = Files::new();
    let kept = store(&files.path());
    let seen = Arc::<Mutex<Vec<Look>>>::default();
    let (own, list) = (Arc::clone(&kept), Arc::clone(&seen));
    let host = builder().agent("a", move |_| Looks {
        store: Arc::clone(&own),
        seen: Arc::clone(&list),
    });
    let host = host.start(kept).await.expect("a host");
    for n in 1..=60 {
        say(&host, "c", &n.to_string()).await;
    }
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.count, 60);
    let seen = std::mem::take(&mut *seen.lock().expect("a list"));
    assert_eq!(seen.len(), 48);
    for (n, how, checkpoint) in seen {
        assert!(checkpoint >= n - 1, "{how} of {n} at {checkpoint}");
    }
}

#[tokio::test]
async fn a_turn_that_cannot_be_kept_takes_none_of_the_others_with_it() {
    let files = Files::new();
    let options = StoreOptions {
        limits: StoreLimits {
            max_blob_bytes: 4_096,
            ..StoreLimits::default()
        },
        ..StoreOptions::default()
    };
    let kept = Arc::new(SqliteRuntime::open(files.path(), options).expect("a store"));
    let counter = Counter {
        policy: joined(),
        ..Counter::default()
    };
    let large = counter.clone();
    let host = builder().agent("a", move |_| Answers(large.clone()));
    let host = host.start(kept).await.expect("a host");
    for n in 0..40 {
        // The answer to one is more than an event may have.
        let text = if n == 17 {
            "large".to_owned()
        } else {
            n.to_string()
        };
        say(&host, "c", &text).await;
    }
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    until("all but one", async || counted(&host, &a).await.count == 39).await;
    assert!(host.settled(LONG).await);
    let info = host.inspect(&a).await.expect("there");
    assert_eq!(info.dead_letters.len(), 1, "{:?}", info.dead_letters);
    assert_eq!(info.dead_letters[0].attempts, 3);
    let seen = counted(&host, &a).await.seen;
    assert!(!seen.contains(&"large".to_owned()));
    // Awake as before, it goes on.
    host.publish("c", says("more")).await.expect("published");
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.count, 40);
}

/// A counter whose answer to `large` is large.
struct Answers(Counter);

impl Agent for Answers {
    type State = Counted;
    type Settings = serde_json::Value;

    fn policy(&self) -> Policy {
        self.0.policy
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let Body::Message(message) = event.body else {
            return Ok(());
        };
        let is_large = message.content == "large";
        turn.send("x".repeat(if is_large { 8_000 } else { 10 }))
            .await?;
        turn.state_mut().count += 1;
        turn.state_mut().seen.push(message.content);
        Ok(())
    }
}
