//! What the tests share: an agent that is one function, hosts on files, people.

use a99_runtime::{
    Agent, AgentKey, Body, Delivery, Event, EventOptions, Host, HostBuilder, HostOptions, Message,
    Methods, Participant, Policy, Publish, Retry, Sender, Turn, TurnOutcome, Uuid,
};
#[cfg(unix)]
use a99_runtime::{AgentError, AgentProcess, Process};
use a99_runtime_patterns::{Approvals, ContextUsage, MissedContext, SettingsManager};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
#[cfg(unix)]
use tokio::task::JoinHandle;

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A folder with the file of a store in it.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Files {
        Files(tempfile::tempdir().expect("a folder"))
    }

    /// The store, when an earlier host has released it.
    pub(crate) async fn store(&self) -> Arc<SqliteRuntime> {
        let path: PathBuf = self.0.path().join("agents.db");
        let began = Instant::now();
        loop {
            match SqliteRuntime::open(&path, StoreOptions::default()) {
                Ok(store) => return Arc::new(store),
                Err(error) => assert!(began.elapsed() < LONG, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Parts that a state keeps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) settings: SettingsManager<Map<String, Value>>,
    pub(crate) missed: MissedContext,
    pub(crate) usage: ContextUsage,
    pub(crate) approvals: Approvals,
    pub(crate) notes: Vec<String>,
}

pub(crate) type Act = Arc<
    dyn for<'t> Fn(&'t mut Turn<'_, Script>, Event) -> BoxFuture<'t, TurnOutcome> + Send + Sync,
>;

/// Handles each event by a function.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) act: Act,
    pub(crate) delivery: Delivery,
    pub(crate) methods: Methods<Script>,
}

impl Script {
    pub(crate) fn new(
        act: impl for<'t> Fn(&'t mut Turn<'_, Script>, Event) -> BoxFuture<'t, TurnOutcome>
        + Send
        + Sync
        + 'static,
    ) -> Script {
        Script {
            act: Arc::new(act),
            delivery: Delivery::default(),
            methods: Methods::none(),
        }
    }

    /// One that only has methods.
    pub(crate) fn offering(methods: Methods<Script>) -> Script {
        Script {
            methods,
            ..Script::new(|_, _| Box::pin(async { Ok(()) }))
        }
    }
}

impl Agent for Script {
    type State = Kept;
    type Settings = Value;

    fn policy(&self) -> Policy {
        Policy {
            delivery: self.delivery,
            retry: Retry {
                max_attempts: 3,
                first: 5,
                most: 20,
            },
            ..Policy::default()
        }
    }

    fn event_options(&self) -> EventOptions {
        EventOptions::default()
    }

    fn methods(&self) -> Methods<Script> {
        self.methods.clone()
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        (self.act)(turn, event).await
    }
}

pub(crate) fn builder() -> HostBuilder {
    Host::builder().options(HostOptions {
        idle_debounce: Duration::from_millis(50),
        ..HostOptions::default()
    })
}

/// A host with the agent `bot/c/bot` that a script is.
pub(crate) async fn host(files: &Files, builder: HostBuilder, script: &Script) -> Host {
    let script = script.clone();
    let builder = builder.agent("bot", move |_| script.clone());
    let host = builder.start(files.store().await).await.expect("a host");
    invite(&host, "bot").await;
    host
}

/// The agent `bot` in another process, for which a task stands.
#[cfg(unix)]
pub(crate) fn remote(files: &Files, bot: Script) -> (Process, JoinHandle<Result<(), AgentError>>) {
    let sockets = files.0.path().join("agents");
    let process = Process::attached(&sockets);
    let agents = tokio::spawn(async move {
        while !sockets.join("token").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let agents = AgentProcess::new().agent("bot", move |_| bot.clone());
        agents.attach(sockets).await
    });
    (process, agents)
}

pub(crate) async fn invite(host: &Host, name: &str) {
    let invited = host.invite(&key(name), serde_json::json!({})).await;
    invited.expect("invited");
}

/// Ends a host.
pub(crate) async fn closed(host: Host) {
    host.drain(LONG).await.expect("drained");
}

pub(crate) fn key(name: &str) -> AgentKey {
    format!("{name}/c/{name}").parse().expect("a key")
}

/// A person.
pub(crate) fn person(handle: &str) -> Sender {
    Sender {
        id: Uuid::from_u128(handle.bytes().map(u128::from).sum()),
        name: Some(handle.to_owned()),
        kind: Some("panel".to_owned()),
        handle: Some(handle.to_owned()),
    }
}

pub(crate) fn participant(handle: &str, methods: Value) -> Participant {
    Participant {
        id: person(handle).id,
        handle: handle.to_owned(),
        name: handle.to_owned(),
        kind: "panel".to_owned(),
        methods,
        agent: None,
        metadata: Map::new(),
    }
}

/// Lets a person join the channel, with methods.
pub(crate) async fn join(host: &Host, handle: &str, methods: Value) {
    let joined = host.join("c", participant(handle, methods)).await;
    joined.expect("joined");
}

pub(crate) async fn publish(host: &Host, handle: &str, body: Body) {
    let publish = Publish {
        body,
        sender: person(handle),
        key: None,
        attachments: Vec::new(),
    };
    host.publish("c", publish).await.expect("published");
}

pub(crate) async fn say(host: &Host, handle: &str, text: &str) {
    publish(host, handle, Body::Message(Message::text(text))).await;
}

/// Says something and waits until the agents are done.
pub(crate) async fn settle(host: &Host, handle: &str, text: &str) {
    say(host, handle, text).await;
    assert!(host.settled(LONG).await, "the agents are not done");
}

/// The events of the log that an agent sent.
pub(crate) async fn sent_by(host: &Host, name: &str) -> Vec<Event> {
    let info = host.inspect(&key("bot")).await.expect("an agent");
    let head = info.checkpoint + info.lag;
    let mut events = host.subscribe("c", Some(0), false).await.expect("a log");
    let mut found = Vec::new();
    while events.cursor() < head {
        let event = events.next().await.expect("an event");
        let is_own = event.sender.id == key(name).participant();
        if is_own && !matches!(event.body, Body::Presence { .. }) {
            found.push(Event::clone(&event));
        }
    }
    found
}

/// Events in a line each: `TYPE CONTENT`, with `!` for a complete message.
pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    let line = |event: &Event| match &event.body {
        Body::Message(message) => {
            let kind = message.content_type.as_deref().unwrap_or("text");
            format!("{kind} {}", message.content)
        }
        Body::UpdateMessage {
            content, complete, ..
        } => {
            let end = if *complete { "!" } else { "" };
            format!("update {}{end}", content.as_deref().unwrap_or_default())
        }
        Body::Error { error, code, .. } => {
            format!("error {} {error}", code.as_deref().unwrap_or_default())
        }
        other => other.type_name().to_owned(),
    };
    events.iter().map(line).collect()
}

/// The text of a person's message.
pub(crate) fn text(event: &Event) -> Option<&str> {
    match &event.body {
        Body::Message(message) if event.sender.kind.as_deref() == Some("panel") => {
            Some(&message.content)
        }
        _ => None,
    }
}

/// The state that an agent committed.
pub(crate) async fn kept(host: &Host) -> Kept {
    let info = host.inspect(&key("bot")).await.expect("an agent");
    serde_json::from_value(info.state.unwrap_or_default()).unwrap_or_default()
}
