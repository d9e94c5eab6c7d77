//! What the tests share: hosts on files, people, and agents that count.

use a99_runtime::{
    Agent, AgentError, AgentKey, Body, Delivery, Event, Host, HostBuilder, HostOptions, Message,
    Policy, Publish, Published, Retry, Sender, Turn, TurnOutcome, Uuid,
};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A folder with the file of a store in it.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Files {
        Files(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("agents.db")
    }
}

pub(crate) fn store(path: &Path) -> Arc<SqliteRuntime> {
    Arc::new(SqliteRuntime::open(path, StoreOptions::default()).expect("a store"))
}

pub(crate) fn builder() -> HostBuilder {
    Host::builder().options(HostOptions {
        idle_debounce: Duration::from_millis(50),
        ..HostOptions::default()
    })
}

pub(crate) fn key(text: &str) -> AgentKey {
    text.parse().expect("a key")
}

pub(crate) fn ann() -> Sender {
    Sender {
        id: Uuid::from_u128(7),
        name: Some("Ann".to_owned()),
        kind: Some("panel".to_owned()),
        handle: Some("ann".to_owned()),
    }
}

pub(crate) fn says(content: &str) -> Publish {
    Publish {
        body: Body::Message(Message::text(content)),
        sender: ann(),
        key: None,
        attachments: Vec::new(),
    }
}

pub(crate) async fn say(host: &Host, channel: &str, content: &str) -> Published {
    host.publish(channel, says(content))
        .await
        .expect("published")
}

/// All messages of a channel: who, and what.
pub(crate) async fn messages(host: &Host, channel: &str) -> Vec<(String, String)> {
    let mut events = host
        .subscribe(channel, Some(0), false)
        .await
        .expect("a channel");
    let mut found = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(100), events.next()).await {
        let event = event.expect("an event");
        if let Body::Message(message) = &event.body {
            let handle = event.sender.handle.clone().unwrap_or_default();
            found.push((handle, message.content.clone()));
        }
    }
    found
}

pub(crate) async fn texts(host: &Host, channel: &str) -> Vec<String> {
    messages(host, channel)
        .await
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

/// The state that counting agents keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) count: u64,
    pub(crate) seen: Vec<String>,
}

type OnMessage = Arc<dyn Fn(&str, u32) -> Result<(), AgentError> + Send + Sync>;

/// Counts messages and answers each; a function says which fail.
#[derive(Clone)]
pub(crate) struct Counter {
    pub(crate) policy: Policy,
    pub(crate) on_message: OnMessage,
    /// What its handlers were called with, over all attempts.
    pub(crate) calls: Arc<Mutex<Vec<String>>>,
    pub(crate) pause: Duration,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter {
            policy: quick(Delivery::default()),
            on_message: Arc::new(|_, _| Ok(())),
            calls: Arc::default(),
            pause: Duration::ZERO,
        }
    }
}

/// A policy with short pauses.
pub(crate) fn quick(delivery: Delivery) -> Policy {
    Policy {
        delivery,
        retry: Retry {
            max_attempts: 3,
            first: 5,
            most: 20,
        },
        lazy: 20,
        ..Policy::default()
    }
}

impl Agent for Counter {
    type State = Counted;
    type Settings = serde_json::Value;

    fn policy(&self) -> Policy {
        self.policy
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let Body::Message(message) = event.body else {
            return Ok(());
        };
        self.calls
            .lock()
            .expect("calls")
            .push(message.content.clone());
        turn.state_mut().count += 1;
        turn.state_mut().seen.push(message.content.clone());
        let n = turn.state().count;
        turn.send(format!("#{n} {}", message.content)).await?;
        if !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        (self.on_message)(&message.content, turn.attempt())
    }
}

pub(crate) async fn counted(host: &Host, agent: &AgentKey) -> Counted {
    let info = host.inspect(agent).await.expect("an agent");
    let state = info.state.unwrap_or_default();
    serde_json::from_value(state).unwrap_or_default()
}
