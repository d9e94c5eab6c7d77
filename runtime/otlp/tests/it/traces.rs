//! Agents on two hosts, whose channels a server has: one trace from the first message to the last.

use crate::collector::{Collector, Mode};
use a99_capabilities::ai::{Cost, StopReason, StreamEvent, StreamHandle, TextRequest, Usage};
use a99_capabilities::{AiError, AiProvider, BoxFuture};
use a99_channels::client::{ChannelTransport, Client, ClientOptions};
use a99_channels::server::{ChannelServer, Limits};
use a99_channels::wire::Publish;
use a99_runtime::{
    Agent, AgentError, Body, Delivery, Event, Host, Message, Policy, Turn, TurnOutcome,
};
use a99_runtime_otlp::{Exporter, Options, TraceContext};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use a99_server::{Authority, ListenOptions, Listener, NewToken, Scopes};
use agent99::Fuel;
use agent99::account::Money;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A model whose tokens cost a millionth each.
struct Priced;

impl AiProvider for Priced {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    fn stream_text(&self, _: TextRequest) -> StreamHandle {
        let (sink, handle) = StreamHandle::new("s");
        sink.send(StreamEvent::Usage(Usage {
            prompt_tokens: 7,
            completion_tokens: 3,
            ..Usage::default()
        }));
        sink.finish(StopReason::EndTurn);
        handle
    }

    fn price(&self, model: Option<&str>, usage: Usage) -> Option<Cost> {
        (model == Some("dear")).then(|| Cost {
            money: Money::from_micro(usage.total()),
            fuel: Fuel::ZERO,
        })
    }
}

/// Passes `start` on.
struct First;

impl Agent for First {
    type State = BTreeMap<String, u64>;
    type Settings = Json;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        match &event.body {
            Body::Message(message) if message.content == "start" => {
                turn.send("go on").await.map(drop)
            }
            _ => Ok(()),
        }
    }
}

/// Answers `go on`, and fails once after it has sent.
struct Second;

impl Agent for Second {
    type State = BTreeMap<String, u64>;
    type Settings = Json;

    fn policy(&self) -> Policy {
        Policy {
            delivery: Delivery::AtLeastOnce,
            ..Policy::default()
        }
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        match &event.body {
            Body::Message(message) if message.content == "go on" => {}
            _ => return Ok(()),
        }
        let client = turn.client();
        let asked = async {
            for model in ["dear", "free"] {
                let request = TextRequest {
                    model: Some(model.to_owned()),
                    ..TextRequest::default()
                };
                let answer = client.ai()?.generate_text(request).await;
                answer.map_err(|error| AgentError::new("ai", error.to_string()))?;
            }
            Ok(())
        };
        turn.step("ask", asked).await?;
        turn.send("the end").await?;
        match turn.attempt() {
            1 => Err(AgentError::new("test.once", "the first attempt fails")),
            _ => turn.send("done").await.map(drop),
        }
    }
}

async fn client(address: &str, authority: &Authority, scopes: &[&str]) -> Client {
    let new = NewToken {
        name: scopes.join(" "),
        scopes: Scopes::parse(scopes).expect("scopes"),
        lifetime: None,
    };
    let token = authority.issue(&new).expect("a token").0;
    let client = Client::connect(address, ClientOptions::new(token));
    client.await.expect("a connection")
}

async fn host(file: &Path, client: Client) -> Host {
    let options = StoreOptions {
        has_channels: false,
        ..StoreOptions::default()
    };
    let store = SqliteRuntime::open(file, options).expect("a store");
    let host = Host::builder()
        .propagation(TraceContext)
        .ai(Priced)
        .agent("first", |_| First)
        .agent("second", |_| Second)
        .start_over(Arc::new(store), Arc::new(ChannelTransport::new(client)));
    host.await.expect("a host")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute(span: &Span, name: &str) -> Option<Value> {
    let found = span.attributes.iter().find(|one| one.key == name)?;
    found.value.clone()?.value
}

fn text(span: &Span, name: &str) -> String {
    match attribute(span, name) {
        Some(Value::StringValue(text)) => text,
        _ => String::new(),
    }
}

/// The `traceparent` of a message in the log of the server.
async fn context(server: &Host, content: &str) -> String {
    let events = server.channel_store().read("general", 0, 500).await;
    let found = events.expect("events").into_iter().find_map(|event| {
        let Body::Message(message) = &event.body else {
            return None;
        };
        let metadata = (message.content == content).then_some(message.metadata.as_ref()?)?;
        Some(metadata["traceparent"].as_str()?.to_owned())
    });
    found.expect("a context")
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_on_two_hosts_make_one_trace() {
    let collector = Collector::start(Mode::Takes);
    let options = Options::new("agents", |warning| panic!("{warning}"));
    let options = options.endpoint(collector.url.as_str());
    let exporter = Exporter::start(options).expect("an exporter");
    exporter.install().expect("the only subscriber");

    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let store = SqliteRuntime::open(file("channels.db"), StoreOptions::default());
    let server = Host::builder()
        .propagation(TraceContext)
        .start(Arc::new(store.expect("a store")));
    let server = server.await.expect("a host");
    let authority = Authority::open(file("tokens.json")).expect("tokens");
    let listener = Listener::bind(ListenOptions::default()).await;
    let listener = listener.expect("a listener");
    let address = format!("ws://{}", listener.address());
    let channels = ChannelServer::new(server.clone(), authority.clone(), Limits::default());
    let serving = tokio::spawn(listener.serve(channels.router(), std::future::pending()));
    let mut hosts = Vec::new();
    for name in ["first", "second"] {
        let scopes = ["read:*", "host:*"];
        let host = host(&file(name), client(&address, &authority, &scopes).await).await;
        let key = format!("{name}/general/{name}").parse().expect("a key");
        host.invite(&key, json!({})).await.expect("invited");
        hosts.push(host);
    }

    let ann = client(&address, &authority, &["read:*", "write:*"]).await;
    let mut events = ann
        .subscribe("general", Some(0), false)
        .await
        .expect("a log");
    let mut start = Message::text("start");
    start.metadata = Some(json!({"traceparent": format!("00-{TRACE}-{PARENT}-01")}));
    let publish = Publish {
        channel: "general".to_owned(),
        body: Body::Message(start),
        participant: None,
        key: None,
        persist: true,
        attachments: Vec::new(),
    };
    ann.publish(publish, Vec::new()).await.expect("published");
    let last = async {
        loop {
            match &events.next().await.expect("an event").body {
                Body::Message(message) if message.content == "done" => return,
                _ => {}
            }
        }
    };
    timeout(Duration::from_secs(30), last)
        .await
        .expect("the end");
    for host in &hosts {
        host.drain(Duration::from_secs(10)).await.expect("drained");
    }
    serving.abort();
    exporter.stop().await;

    let all = collector.spans();
    assert!(collector.services().iter().all(|name| name == "agents"));
    let spans: Vec<&Span> = all
        .iter()
        .filter(|span| hex(&span.trace_id) == TRACE)
        .collect();
    let by_id: HashMap<String, &Span> = spans
        .iter()
        .map(|span| (hex(&span.span_id), *span))
        .collect();
    assert_eq!(by_id.len(), spans.len(), "identities are unique");
    let named = |name: &str| -> Vec<&Span> {
        spans
            .iter()
            .copied()
            .filter(|span| span.name == name)
            .collect()
    };
    let parent = |span: &Span| hex(&span.parent_span_id);
    let turns = |agent: &str, content: &str, outcome: &str| -> Vec<&Span> {
        let of_content = |span: &&Span| match content {
            "" => true,
            id => parent(span) == id,
        };
        let turns = named("turn").into_iter().filter(of_content);
        let agent = format!("{agent}/general/{agent}");
        turns
            .filter(|span| text(span, "a99.agent") == agent && text(span, "a99.outcome") == outcome)
            .collect()
    };

    // The first message belongs to a caller that is not here.
    let first = turns("first", PARENT, "done");
    let [first] = first[..] else {
        panic!("one turn: {first:?}")
    };
    assert_eq!(text(first, "a99.channel"), "general");
    assert_eq!(attribute(first, "a99.attempt"), Some(Value::IntValue(1)));
    let Some(Value::IntValue(event)) = attribute(first, "a99.event") else {
        panic!("its event")
    };
    let read = server
        .channel_store()
        .read("general", event as u64 - 1, 1)
        .await;
    let read = read.expect("the event");
    assert!(matches!(&read[0].body, Body::Message(message) if message.content == "start"));
    let first = hex(&first.span_id);
    assert_eq!(
        context(&server, "go on").await,
        format!("00-{TRACE}-{first}-01")
    );

    let outbox = named("outbox");
    let [outbox] = outbox[..] else {
        panic!("one sending: {outbox:?}")
    };
    assert_eq!(parent(outbox), first);
    assert_eq!(attribute(outbox, "a99.events"), Some(Value::IntValue(1)));

    // Both attempts follow the message, and what the first sent stays where it was.
    let failed = turns("second", &first, "failed");
    let [failed] = failed[..] else {
        panic!("one attempt failed: {failed:?}")
    };
    assert_eq!(text(failed, "error.type"), "test.once");
    let done = turns("second", &first, "done");
    let [done] = done[..] else {
        panic!("one attempt: {done:?}")
    };
    assert_eq!(attribute(done, "a99.attempt"), Some(Value::IntValue(2)));
    let context_of_last = format!("00-{TRACE}-{}-01", hex(&done.span_id));
    assert_eq!(context(&server, "done").await, context_of_last);
    let failed = hex(&failed.span_id);
    assert_eq!(
        context(&server, "the end").await,
        format!("00-{TRACE}-{failed}-01")
    );

    // The answer of a step is kept for the second attempt.
    let step = named("step");
    let [step] = step[..] else {
        panic!("one step: {step:?}")
    };
    assert_eq!(
        (parent(step), text(step, "a99.step")),
        (failed, "ask".to_owned())
    );
    let asked = named("ai");
    assert!(asked.iter().all(|span| parent(span) == hex(&step.span_id)));
    let of = |model: &str| {
        let found = asked
            .iter()
            .find(|span| text(span, "gen_ai.request.model") == model);
        *found.expect("a request")
    };
    assert_eq!(
        attribute(of("dear"), "gen_ai.usage.input_tokens"),
        Some(Value::IntValue(7))
    );
    assert_eq!(
        attribute(of("dear"), "gen_ai.usage.output_tokens"),
        Some(Value::IntValue(3))
    );
    assert_eq!(
        attribute(of("dear"), "a99.ai.cost"),
        Some(Value::DoubleValue(0.00001))
    );
    assert_eq!(
        attribute(of("free"), "a99.ai.cost"),
        None,
        "what is unknown is not 0"
    );

    // Each message was appended once or found, and every span hangs on another of the trace.
    assert!(named("append").iter().any(|span| parent(span) == PARENT));
    assert!(named("append").iter().any(|span| parent(span) == first));
    for span in &spans {
        assert!(
            parent(span) == PARENT || by_id.contains_key(&parent(span)),
            "{span:?}"
        );
    }
}
