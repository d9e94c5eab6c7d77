//! The names of the context, one test each: docs/runtime.md lists them.

use crate::stage::{Stage, a};
use crate::support::{Files, LONG, builder, key, say, store};
use a99_runtime::{
    Agent, ContextParts, EMBEDDED, Event, Identity, LogEntry, LogLevel, RuntimeContext, Turn,
    TurnOutcome,
};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};

/// What a test asks of the context of a turn.
async fn told<T: Send + 'static>(
    stage: &Stage,
    ask: impl FnOnce(RuntimeContext) -> T + Send + 'static,
) -> T {
    stage.turn(async move |turn| ask(turn.context())).await
}

#[tokio::test]
async fn storage() {
    let stage = Stage::new().await;
    assert!(told(&stage, |context| context.storage.is_some()).await);
}

#[tokio::test]
async fn event_bus() {
    let stage = Stage::new().await;
    let id = told(&stage, |context| context.event_bus.client_id());
    assert_eq!(id.await, a().participant());
}

#[tokio::test]
async fn ai() {
    let stage = Stage::new().await;
    assert!(told(&stage, |context| context.ai.is_some()).await);
}

#[tokio::test]
async fn agent_id() {
    let stage = Stage::new().await;
    let name = told(&stage, |context| context.agent_id().to_owned());
    assert_eq!(name.await, "a");
}

#[tokio::test]
async fn channel() {
    let stage = Stage::new().await;
    let name = told(&stage, |context| context.channel().to_owned());
    assert_eq!(name.await, "c");
}

#[tokio::test]
async fn handle() {
    let stage = Stage::new().await;
    let name = told(&stage, |context| context.handle().to_owned());
    assert_eq!(name.await, "a");
}

#[tokio::test]
async fn config() {
    let stage = Stage::new().await;
    let tone = json!({"tone": "wet"});
    stage
        .host
        .invite(&a(), tone.clone())
        .await
        .expect("changed");
    crate::script::is(&stage.host, &a(), "asleep").await;
    assert_eq!(told(&stage, |context| context.config().clone()).await, tone);
}

#[tokio::test]
async fn mode() {
    let stage = Stage::new().await;
    assert_eq!(told(&stage, |context| context.mode).await, EMBEDDED);
}

#[tokio::test]
async fn checkpoint() {
    let stage = Stage::new().await;
    let head = stage.log().await.len() as u64;
    // That of before the turn.
    assert_eq!(told(&stage, |context| context.checkpoint()).await, head);
}

/// Writes to the log by its context.
struct Speaks;

impl Agent for Speaks {
    type State = Map<String, Value>;
    type Settings = Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, _: Event) -> TurnOutcome {
        let context = turn.context();
        let log = context.log.as_ref().expect("a log");
        log.log(&LogEntry {
            level: LogLevel::Info,
            agent: Some(&context.identity.key),
            code: "said",
            message: "hello",
        });
        Ok(())
    }
}

#[tokio::test]
async fn log() {
    let (files, heard) = (Files::new(), Arc::new(Mutex::new(Vec::new())));
    let entries = Arc::clone(&heard);
    let logger = move |entry: &LogEntry<'_>| {
        entries.lock().expect("entries").push(entry.to_string());
    };
    let host = builder().logger(logger).agent("a", |_| Speaks);
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    let heard = heard.lock().expect("entries");
    assert!(
        heard.contains(&"[a/c/a] said: hello".to_owned()),
        "{heard:?}"
    );
}

/// A context of another target, which notes advances of its checkpoint.
async fn other_target(seen: &Arc<Mutex<Vec<u64>>>) -> RuntimeContext {
    let stage = Stage::new().await;
    let context = told(&stage, |context| context).await;
    let told = Arc::clone(seen);
    let identity = Identity {
        key: a(),
        config: Arc::default(),
    };
    a99_runtime::create_runtime_context(ContextParts {
        identity: Arc::new(identity),
        mode: "other",
        storage: None,
        event_bus: context.event_bus,
        ai: None,
        log: None,
        initial_checkpoint: 4,
        on_checkpoint_advance: Some(Box::new(move |seq| told.lock().expect("seen").push(seq))),
    })
}

#[tokio::test]
async fn create_runtime_context() {
    let context = other_target(&Arc::default()).await;
    assert_eq!((context.mode, context.checkpoint()), ("other", 4));
    assert_eq!((context.agent_id(), context.handle()), ("a", "a"));
    assert!(context.storage.is_none() && context.ai.is_none() && context.log.is_none());
}

#[tokio::test]
async fn advance_checkpoint() {
    let seen = Arc::default();
    let context = other_target(&seen).await;
    for seq in [5, 3, 5, 9] {
        context.advance_checkpoint(seq);
    }
    assert_eq!(context.checkpoint(), 9);
    assert_eq!(*seen.lock().expect("seen"), [5, 9], "it never goes back");
}
