//! Spans of the runtime in a subscriber, and contexts of turns that run again.

use crate::support::{Files, LONG, builder, key, quick, says, store};
use a99_capabilities::ai::{AiCode, StopReason, StreamEvent, StreamHandle, TextRequest, Usage};
use a99_capabilities::{AiError, AiProvider, Capabilities};
use a99_runtime::program::{ProgramAgent, TurnReplay};
use a99_runtime::{Body, Delivery, HostOptions, Message, Propagation, Trigger};
use a99_runtime_engine::{AgentStore, BoxFuture, ChannelStore};
use agent99::Engine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Span, Subscriber};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A span: its name, and its fields with their last values.
type Seen = (&'static str, Value);

/// Keeps all spans; the identity of one is its place, from 1.
#[derive(Clone, Default)]
struct Keeps(Arc<Mutex<Vec<Seen>>>);

struct Fields<'a>(&'a mut Value);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0[field.name()] = json!(format!("{value:?}").trim_matches('"'));
    }
}

impl Subscriber for Keeps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("a99_runtime")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = json!({});
        span.record(&mut Fields(&mut fields));
        let mut all = self.0.lock().expect("spans");
        all.push((span.metadata().name(), fields));
        Id::from_u64(all.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut all = self.0.lock().expect("spans");
        let at = usize::try_from(span.into_u64()).expect("a place") - 1;
        values.record(&mut Fields(&mut all[at].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Keeps {
    fn named(&self, name: &str) -> Vec<Value> {
        let all = self.0.lock().expect("spans");
        let found = all.iter().filter(|(seen, _)| *seen == name);
        found.map(|(_, fields)| fields.clone()).collect()
    }
}

/// Gives each span that is asked for another context.
#[derive(Default)]
struct Numbers(AtomicU64);

impl Propagation for Numbers {
    fn set_parent(&self, _: &Span, traceparent: &str) {
        assert_eq!(traceparent[..36], PARENT[..36], "one trace");
    }

    fn context(&self, _: &Span) -> Option<String> {
        let n = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        Some(format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{n:016x}-01"))
    }
}

/// A model that is busy at the first request.
#[derive(Default)]
struct Busy(AtomicU64);

impl AiProvider for Busy {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    fn stream_text(&self, _: TextRequest) -> StreamHandle {
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            return StreamHandle::failed("s", AiError::new(AiCode::RateLimited, "busy"));
        }
        let (sink, handle) = StreamHandle::new("s");
        sink.answered_by("m".repeat(10_000));
        sink.send(StreamEvent::Usage(Usage {
            prompt_tokens: 7,
            completion_tokens: 3,
            ..Usage::default()
        }));
        sink.finish(StopReason::EndTurn);
        handle
    }
}

/// A program that sends, and asks a model afterwards.
const SENDS: &str = "async function agent({ event }) {
  await agentSend({ content: `answer to ${event.content}` })
  await llmChat({ messages: [{ role: 'user', content: 'x' }] })
}";

async fn traced(delivery: Delivery) -> (Keeps, Vec<String>, TurnReplay) {
    let seen = Keeps::default();
    // The runtime of the test has one thread.
    let _guard = tracing::subscriber::set_default(seen.clone());
    let files = Files::new();
    let engine = Engine::new();
    let program = engine.compile_source(SENDS).expect("a program");
    let mut granted = Capabilities::none();
    granted.ai = Some(Arc::new(Busy::default()));
    let agent = ProgramAgent::builder(&engine, program)
        .granted(granted)
        .policy(quick(delivery))
        .build()
        .expect("an agent");
    let again = agent.clone();
    let store = store(&files.path());
    let options = HostOptions {
        keep_turns: 10,
        ..HostOptions::default()
    };
    let host = builder()
        .options(options)
        .propagation(Numbers::default())
        .agent("p", move |_| agent.clone());
    let host = host.start(Arc::clone(&store)).await.expect("a host");
    let p = key("p/c/p");
    host.invite(&p, json!({})).await.expect("invited");
    let mut start = says("start");
    let mut message = Message::text("start");
    message.metadata = Some(json!({"traceparent": PARENT}));
    start.body = Body::Message(message);
    host.publish("c", start).await.expect("published");
    assert!(host.settled(LONG).await);
    let events = store.read("c", 0, 100).await.expect("events");
    let contexts = events.iter().filter_map(|event| match &event.body {
        Body::Message(message) if message.content.starts_with("answer") => Some(
            message.metadata.as_ref()?["traceparent"]
                .as_str()?
                .to_owned(),
        ),
        _ => None,
    });
    let contexts = contexts.collect();
    let found = store.kept_turn(&p, &Trigger::Event(2)).await.expect("read");
    let (turn, after) = found.expect("kept");
    let replay = again.replay(&store, &p, &turn, after.as_deref());
    let replay = replay.await.expect("a replay");
    host.drain(LONG).await.expect("drained");
    (seen, contexts, replay)
}

#[tokio::test]
async fn a_failed_attempt_and_the_next_are_spans_and_send_the_same_message_once() {
    let (seen, contexts, _) = traced(Delivery::AtLeastOnce).await;
    let turns = seen.named("turn");
    assert_eq!(turns.len(), 2, "{turns:?}");
    for (at, turn) in turns.iter().enumerate() {
        assert_eq!(turn["a99.attempt"], json!((at + 1).to_string()));
        assert_eq!(
            (&turn["a99.agent"], &turn["a99.channel"]),
            (&json!("p/c/p"), &json!("c"))
        );
        assert_eq!(
            (&turn["a99.event"], &turn["traceparent"]),
            (&json!("2"), &json!(PARENT))
        );
    }
    assert_eq!(
        (&turns[0]["a99.outcome"], &turns[1]["a99.outcome"]),
        (&json!("failed"), &json!("done"))
    );
    assert_eq!(
        (&turns[0]["error.type"], &turns[1]["error.type"]),
        (&json!("ai.rate_limited"), &json!(null))
    );
    // The second attempt sends it again, in another context: it is the same.
    assert_eq!(
        contexts,
        ["00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000001-01"]
    );
    let steps = seen.named("step");
    let atoms: Vec<_> = steps.iter().map(|step| &step["a99.atom"]).collect();
    assert_eq!(atoms, ["agentSend", "llmChat", "agentSend", "llmChat"]);
    assert_eq!(steps[1]["otel.status_code"], "ERROR");
    let asked = seen.named("ai");
    assert_eq!(
        (asked.len(), &asked[0]["error.type"]),
        (2, &json!("ai.rate_limited"))
    );
    assert_eq!(asked[1]["gen_ai.usage.input_tokens"], "7");
    let model = asked[1]["gen_ai.response.model"].as_str().expect("a model");
    assert!(model.len() < 1_000, "names are bounded");
    assert_eq!(asked[1]["a99.ai.cost"], Value::Null, "it has no price");
    assert!(
        seen.named("append")
            .iter()
            .any(|span| span["a99.channel"] == "c")
    );
}

#[tokio::test]
async fn a_replay_of_a_traced_turn_is_the_same() {
    let (_, _, replay) = traced(Delivery::AtLeastOnce).await;
    assert_eq!(replay.departure, None);
    assert_eq!(replay.replayed, replay.committed);
}
