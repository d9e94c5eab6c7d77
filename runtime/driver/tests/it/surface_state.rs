//! The names of the state, one test each: docs/runtime.md lists them.

use crate::script::{Call, Script, is, text, until};
use crate::support::{
    Counted, Counter, Files, LONG, ann, builder, counted, key, quick, say, store,
};
use a99_runtime::{
    Body, Delivery, Event, EventOptions, Host, Message, Policy, Publish, StateChange, Uuid,
};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

/// A host with a counter under a policy.
async fn counter(files: &Files, policy: Policy) -> Host {
    let counter = Counter {
        policy,
        ..Counter::default()
    };
    let host = builder().agent("a", move |_| counter.clone());
    host.start(store(&files.path())).await.expect("a host")
}

#[tokio::test]
async fn subscribe_state() {
    let files = Files::new();
    let host = counter(&files, quick(Delivery::default())).await;
    let a = key("a/c/a");
    let seen = Arc::<Mutex<Vec<StateChange>>>::default();
    let panics = host.subscribe_state(&a, |_| panic!("a listener"));
    let list = Arc::clone(&seen);
    let listens = host.subscribe_state(&a, move |change| {
        list.lock().expect("seen").push(change.clone());
    });
    let other = host.subscribe_state(&key("a/c/b"), |_| panic!("of another one"));
    host.invite(&a, json!({})).await.expect("invited");
    for text in ["one", "two"] {
        say(&host, "c", text).await;
        assert!(host.settled(LONG).await);
    }
    // A panic of a listener ends no turn, and the listener after it hears all the same.
    assert_eq!(host.inspect(&a).await.expect("a").failed, 0);
    let changes = std::mem::take(&mut *seen.lock().expect("seen"));
    assert_eq!(changes.len(), 2);
    assert_eq!(changes[0].prev, json!({"count": 0, "seen": []}));
    assert_eq!(changes[0].next, json!({"count": 1, "seen": ["one"]}));
    assert_eq!(changes[1].prev, changes[0].next);
    assert_eq!(changes[1].changed_keys, ["count", "seen"]);
    drop((panics, listens, other));
    say(&host, "c", "three").await;
    assert!(host.settled(LONG).await);
    assert!(seen.lock().expect("seen").is_empty(), "it ended");
}

#[tokio::test]
async fn listeners_hear_a_group_commit_once() {
    let files = Files::new();
    let policy = Policy {
        turns_per_commit: NonZeroU32::new(16).expect("sixteen"),
        ..quick(Delivery::default())
    };
    let host = counter(&files, policy).await;
    for n in 0..48 {
        say(&host, "c", &n.to_string()).await;
    }
    let a = key("a/c/a");
    let seen = Arc::<Mutex<Vec<StateChange>>>::default();
    let list = Arc::clone(&seen);
    let _listens = host.subscribe_state(&a, move |change| {
        list.lock().expect("seen").push(change.clone());
    });
    host.invite(&a, json!({})).await.expect("invited");
    assert!(host.settled(LONG).await);
    let seen = seen.lock().expect("seen");
    assert!((3..24).contains(&seen.len()), "{} commits", seen.len());
    for two in seen.windows(2) {
        assert_eq!(two[0].next, two[1].prev, "no commit is left out");
    }
    assert_eq!(seen.last().expect("one").next["count"], 48);
}

#[tokio::test]
async fn is_dirty() {
    let files = Files::new();
    let seen = Arc::<Mutex<Vec<bool>>>::default();
    let list = Arc::clone(&seen);
    let script = Script::new(move |turn, call| {
        let list = Arc::clone(&list);
        Box::pin(async move {
            if let Call::Event(_) = call {
                let before = turn.is_dirty()?;
                turn.state_mut().count += 1;
                let changed = turn.is_dirty()?;
                turn.state_mut().count -= 1;
                let back = turn.is_dirty()?;
                list.lock().expect("seen").extend([before, changed, back]);
                turn.state_mut().count += 1;
            }
            Ok(())
        })
    });
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    for text in ["one", "two"] {
        say(&host, "c", text).await;
    }
    assert!(host.settled(LONG).await);
    let one = [false, true, false];
    assert_eq!(
        *seen.lock().expect("seen"),
        [one, one].concat(),
        "a commit cleans"
    );
}

#[tokio::test]
async fn reset_state() {
    let files = Files::new();
    let script = Script::new(|turn, call| {
        Box::pin(async move {
            match &call {
                Call::Event(event) if text(event) == Some("reset") => turn.reset_state(),
                Call::Event(_) => turn.state_mut().count += 1,
                _ => {}
            }
            Ok(())
        })
    });
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    for text in ["one", "two", "reset", "three"] {
        say(&host, "c", text).await;
    }
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.count, 1);
}

#[tokio::test]
async fn reset() {
    let files = Files::new();
    let host = counter(&files, quick(Delivery::default())).await;
    let a = key("a/c/a");
    host.invite(&a, json!({})).await.expect("invited");
    for text in ["one", "two"] {
        say(&host, "c", text).await;
    }
    assert!(host.settled(LONG).await);
    let last = Arc::<Mutex<Option<StateChange>>>::default();
    let kept = Arc::clone(&last);
    let listens = host.subscribe_state(&a, move |change| {
        *kept.lock().expect("last") = Some(change.clone());
    });
    let held = host.hold(&a, LONG).await.expect("held");
    held.reset().await.expect("reset");
    let info = host.inspect(&a).await.expect("a");
    assert_eq!(
        (info.state, info.checkpoint),
        (Some(json!({"count": 0, "seen": []})), 0)
    );
    let told = last.lock().expect("last").take().expect("a change");
    assert_eq!(told.prev["count"], 2);
    drop((held, listens));
    // It handles the log again, and its answers are new ones.
    until("it starts again", async || {
        counted(&host, &a).await.count == 2
    })
    .await;
    assert!(host.settled(LONG).await);
    let seen = counted(&host, &a).await;
    assert_eq!(
        seen,
        Counted {
            count: 2,
            seen: vec!["one".to_owned(), "two".to_owned()]
        }
    );
    let said = crate::support::texts(&host, "c").await;
    assert_eq!(
        said.iter().filter(|text| *text == "#1 one").count(),
        2,
        "{said:?}"
    );
}

/// A message to somebody.
async fn to(host: &Host, at: u128, content: &str) {
    let message = Message {
        at: vec![Uuid::from_u128(at)],
        ..Message::text(content)
    };
    let publish = Publish {
        body: Body::Message(message),
        sender: ann(),
        key: None,
        attachments: Vec::new(),
    };
    host.publish("c", publish).await.expect("published");
}

/// Notes what it got, and what was kept from it.
#[derive(Clone, Default)]
struct Picky(Arc<Mutex<Vec<String>>>);

impl Picky {
    fn note(&self, how: &str, event: &Event) {
        let what = text(event).unwrap_or("other").to_owned();
        self.0.lock().expect("notes").push(format!("{how} {what}"));
    }
}

impl a99_runtime::Agent for Picky {
    type State = Counted;
    type Settings = serde_json::Value;

    fn event_options(&self) -> EventOptions {
        EventOptions {
            targeted_only: true,
            ..EventOptions::default()
        }
    }

    fn on_filtered(&self, event: &Event) {
        self.note("filtered", event);
        assert_ne!(text(event), Some("panic"), "a panic has no effect");
    }

    async fn on_event(
        &self,
        turn: &mut a99_runtime::Turn<'_, Self>,
        event: Event,
    ) -> a99_runtime::TurnOutcome {
        if text(&event).is_some() {
            self.note("got", &event);
            turn.send("an answer").await?;
        }
        Ok(())
    }
}

async fn filters(host: &Host, picky: &Picky) {
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    let me = key("a/c/a").participant().as_u128();
    to(host, 5, "theirs").await;
    to(host, 5, "panic").await;
    to(host, me, "mine").await;
    say(host, "c", "all").await;
    // Neither a message of its own nor an event of another kind is filtered for its addressees.
    host.join("c", crate::stage::person("bob", 8))
        .await
        .expect("joined");
    assert!(host.settled(LONG).await);
    until("it got all", async || {
        picky.0.lock().expect("notes").len() == 4
    })
    .await;
    let mut notes = std::mem::take(&mut *picky.0.lock().expect("notes"));
    notes.sort();
    assert_eq!(
        notes,
        ["filtered panic", "filtered theirs", "got all", "got mine"]
    );
    let info = host.inspect(&key("a/c/a")).await.expect("a");
    assert_eq!((info.lag, info.failed, info.dead_letters.len()), (0, 0, 0));
    is(host, &key("a/c/a"), "asleep").await;
}

#[tokio::test]
async fn on_filtered() {
    let (files, picky) = (Files::new(), Picky::default());
    let made = picky.clone();
    let host = builder().agent("a", move |_| made.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    filters(&host, &picky).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_in_another_process_hears_what_is_filtered() {
    let (files, picky) = (Files::new(), Picky::default());
    let sockets = files.path().with_file_name("agents");
    let host = builder().process(a99_runtime::Process::attached(&sockets), ["a"]);
    let host = host.start(store(&files.path())).await.expect("a host");
    let made = picky.clone();
    tokio::spawn(async move {
        while !sockets.join("token").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let agents = a99_runtime::AgentProcess::new().agent("a", move |_| made.clone());
        agents.attach(sockets).await
    });
    filters(&host, &picky).await;
}
