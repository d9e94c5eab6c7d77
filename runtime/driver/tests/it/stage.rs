//! A host with an agent whose turns do what a test says.

use crate::support::{Counter, Files, LONG, ann, builder, key, quick, say, store};
use a99_capabilities::AiProvider;
use a99_capabilities::ai::{AiError, ScriptedAi, StreamHandle, StreamSink, TextRequest};
use a99_runtime::{
    Agent, AgentKey, Attachment, Body, ConnectOptions, Delivery, Event, EventBus, Host,
    HostBuilder, Identity, Method, MethodResult, Methods, Participant, Policy, Publish, Sender,
    Tables, Turn, TurnClient, TurnOutcome, Uuid,
};
use a99_runtime_engine::BoxFuture;
use a99_runtime_stores::SqliteRuntime;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce(TurnClient) -> BoxFuture<'static, ()> + Send>;

/// Does the next job at each message `act`. Its method `echo` gives its arguments.
#[derive(Clone, Default)]
struct Actor(Arc<Mutex<VecDeque<Job>>>);

impl Agent for Actor {
    type State = Map<String, Value>;
    type Settings = Map<String, Value>;

    fn default_settings(&self) -> Self::Settings {
        Map::from_iter([("tone".to_owned(), json!("dry"))])
    }

    fn policy(&self) -> Policy {
        quick(Delivery::default())
    }

    fn connect_options(&self, _: &Identity, _: u64) -> ConnectOptions {
        ConnectOptions {
            extra_metadata: Map::from_iter([("first".to_owned(), json!(1))]),
            ..ConnectOptions::default()
        }
    }

    fn methods(&self) -> Methods<Actor> {
        let echo = Method::new("Gives its arguments.", |_, _, call| {
            Box::pin(async move { Ok(call.args) })
        });
        let draw = Method::new("Draws, and fails if it is told to.", |_, turn, call| {
            Box::pin(async move {
                let part = MethodResult {
                    content: Some(json!("sketch")),
                    progress: Some(50.0),
                    attachments: vec![picture("sketch")],
                    ..MethodResult::default()
                };
                turn.context()
                    .event_bus
                    .send_method_result(call.call_id, part)
                    .await?;
                let result = turn.result_with_attachments(json!("whole"), vec![picture("whole")]);
                match call.args["fails"] == true {
                    true => Err("out of ink".into()),
                    false => result,
                }
            })
        });
        let hang = Method::new("Never ends.", |_, _, _| Box::pin(std::future::pending()));
        let methods = Methods::none().with("echo", echo);
        methods.with("draw", draw).with("hang", hang)
    }

    fn tables(&self) -> Option<Tables> {
        Some(Tables::new().migration("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)"))
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let is_act = matches!(&event.body, Body::Message(message) if message.content == "act");
        let job = match is_act {
            true => self.0.lock().expect("jobs").pop_front(),
            false => None,
        };
        if let Some(job) = job {
            job(turn.client()).await;
        }
        Ok(())
    }
}

/// Answers `Blue.`, except `stall`, which it never answers.
#[derive(Default)]
struct Model(Mutex<Vec<StreamSink>>);

impl AiProvider for Model {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        let roles = BTreeMap::from([("default".to_owned(), "painter".to_owned())]);
        Box::pin(std::future::ready(Ok(roles)))
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        if !format!("{request:?}").contains("stall") {
            return ScriptedAi::replies(["Blue."]).stream_text(request);
        }
        let (sink, stream) = StreamHandle::new("stalled");
        self.0.lock().expect("sinks").push(sink);
        stream
    }
}

/// A host with the agents `a/c/a`, which acts, and `b/c/b`, which has the method `echo`; `counter`
/// may be invited.
pub(crate) struct Stage {
    pub(crate) host: Host,
    pub(crate) store: Arc<SqliteRuntime>,
    a: Actor,
    files: Files,
}

impl Stage {
    pub(crate) async fn new() -> Stage {
        Stage::on(Files::new()).await
    }

    async fn on(files: Files) -> Stage {
        let a = Actor::default();
        let made = a.clone();
        Stage::with(files, a, |host, _| host.agent("a", move |_| made.clone())).await
    }

    /// The same with an actor in another process, here a task.
    #[cfg(unix)]
    pub(crate) async fn there() -> Stage {
        let (files, a) = (Files::new(), Actor::default());
        let made = a.clone();
        let there = |host: HostBuilder, files: &Files| {
            let sockets = files.path().with_file_name("agents");
            let host = host.process(a99_runtime::Process::attached(&sockets), ["a"]);
            tokio::spawn(async move {
                while !sockets.join("token").exists() {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                let agents = a99_runtime::AgentProcess::new().agent("a", move |_| made.clone());
                agents.attach(sockets).await
            });
            host
        };
        Stage::with(files, a, there).await
    }

    async fn with(
        files: Files,
        a: Actor,
        define: impl FnOnce(HostBuilder, &Files) -> HostBuilder,
    ) -> Stage {
        let b = Actor::default();
        let host = define(builder().ai(Model::default()), &files)
            .agent("b", move |_| b.clone())
            .agent("counter", |_| Counter::default());
        let store = store(&files.path());
        let host = host.start(Arc::clone(&store)).await.expect("a host");
        for text in ["a/c/a", "b/c/b"] {
            host.invite(&key(text), json!({})).await.expect("invited");
        }
        assert!(host.settled(LONG).await);
        Stage {
            host,
            store,
            a,
            files,
        }
    }

    /// The same after a restart of the host.
    pub(crate) async fn again(self) -> Stage {
        crate::script::closed(self.host, self.store).await;
        Stage::on(self.files).await
    }

    /// Begins a turn of the actor.
    pub(crate) async fn begin<T, F>(
        &self,
        job: impl FnOnce(TurnClient) -> F + Send + 'static,
    ) -> oneshot::Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move |client| {
            Box::pin(async move {
                let _ = done.send(job(client).await);
            })
        });
        self.a.0.lock().expect("jobs").push_back(job);
        say(&self.host, "c", "act").await;
        result
    }

    /// A turn of the actor, and its commit.
    pub(crate) async fn turn<T, F>(&self, job: impl FnOnce(TurnClient) -> F + Send + 'static) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let result = self.begin(job).await.await;
        assert!(self.host.settled(LONG).await);
        result.expect("the turn ends without a panic")
    }

    /// All events of the channel.
    pub(crate) async fn log(&self) -> Vec<Arc<Event>> {
        let mut events = self.host.subscribe("c", Some(0), false).await.expect("c");
        let mut log = Vec::new();
        while let Ok(event) =
            tokio::time::timeout(std::time::Duration::from_millis(50), events.next()).await
        {
            log.push(event.expect("an event"));
        }
        log
    }

    /// The last event of the channel that the actor sent.
    pub(crate) async fn last(&self) -> Arc<Event> {
        let me = a().participant();
        let log = self.log().await.into_iter();
        log.rev().find(|event| event.sender.id == me).expect("one")
    }

    /// Lets a person join.
    pub(crate) async fn joins(&self, who: &Participant) {
        self.host.join("c", who.clone()).await.expect("joined");
    }

    /// A person says something by their participant.
    pub(crate) async fn describes(&self, who: &Participant, metadata: Value) {
        let Value::Object(metadata) = metadata else {
            panic!("metadata are an object");
        };
        let body = Body::Presence {
            action: a99_runtime::PresenceAction::Update,
            leave_reason: None,
            metadata,
        };
        let sender = Sender {
            id: who.id,
            ..ann()
        };
        let publish = Publish {
            body,
            sender,
            key: None,
            attachments: Vec::new(),
        };
        self.host.publish("c", publish).await.expect("published");
    }
}

pub(crate) fn a() -> AgentKey {
    key("a/c/a")
}

pub(crate) fn b() -> AgentKey {
    key("b/c/b")
}

/// An attachment with its name as bytes.
pub(crate) fn picture(name: &str) -> Attachment {
    Attachment {
        id: name.to_owned(),
        mime_type: "image/png".to_owned(),
        name: None,
        data: name.as_bytes().to_vec(),
    }
}

/// A person.
pub(crate) fn person(handle: &str, id: u128) -> Participant {
    Participant {
        id: Uuid::from_u128(id),
        handle: handle.to_owned(),
        name: handle.to_owned(),
        kind: "panel".to_owned(),
        methods: Value::Null,
        agent: None,
        metadata: Map::new(),
    }
}

pub(crate) fn bus(client: &TurnClient) -> Arc<dyn EventBus> {
    client.context().event_bus
}

/// Metadata of one who provides `file-ops`.
pub(crate) fn provides(priority: Option<f64>) -> Value {
    let mut role = json!({"providing": true});
    if let Some(priority) = priority {
        role["priority"] = json!(priority);
    }
    json!({"toolRoles": {"file-ops": role}})
}
