//! Metrics of a host: its counters move as its agents do; and the trace context of messages.

use crate::support::{Counter, Files, LONG, builder, key, say, says, store};
use a99_capabilities::ai::{StopReason, StreamEvent, StreamHandle, TextRequest, Usage};
use a99_capabilities::{AiError, AiProvider};
use a99_runtime::metrics::{Exposition, FAMILIES, Kind};
use a99_runtime::{Agent, AgentError, Body, Event, Host, Message, SendOptions, Turn, TurnOutcome};
use a99_runtime_engine::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

async fn text(host: &Host) -> String {
    let mut exposition = Exposition::default();
    host.metrics(&mut exposition).await.expect("metrics");
    exposition.finish()
}

/// The value of a series, as its line begins.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    let line = line.unwrap_or_else(|| panic!("{series} is not in\n{text}"));
    line.trim().parse().expect("a number")
}

#[tokio::test]
async fn failures_and_their_end_are_counted() {
    let files = Files::new();
    let counter = Counter {
        on_message: Arc::new(|text, attempt| match (text, attempt) {
            ("flaky", 1 | 2) => Err("not yet".into()),
            ("bad", _) => Err(AgentError::new("mine", "never").fatal()),
            _ => Ok(()),
        }),
        ..Counter::default()
    };
    let host = builder().agent("a", move |_| counter.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    say(&host, "c", "flaky").await;
    say(&host, "c", "bad").await;
    for _ in 0..2 {
        let mut again = says("good");
        again.key = Some("once".to_owned());
        host.publish("c", again).await.expect("published");
    }
    assert!(host.settled(LONG).await);
    let text = text(&host).await;
    let turns = |outcome| {
        let series =
            format!("a99_turn_duration_seconds_count{{agent=\"a\",outcome=\"{outcome}\"}}");
        value(&text, &series)
    };
    assert_eq!((turns("done"), turns("failed")), (2.0, 3.0), "{text}");
    assert_eq!(
        value(&text, "a99_turn_redeliveries_total{agent=\"a\"}"),
        2.0
    );
    assert_eq!(value(&text, "a99_dead_letters_total{agent=\"a\"}"), 1.0);
    assert_eq!(value(&text, "a99_duplicate_events_total"), 1.0);
    assert_eq!(value(&text, "a99_fenced_commits_total"), 0.0);
    for family in FAMILIES {
        let type_line = format!("# TYPE {} {}\n", family.name, family.kind.name());
        assert_eq!(text.matches(&type_line).count(), 1, "{}", family.name);
    }
    assert!(FAMILIES.iter().any(|family| family.kind == Kind::Histogram));
}

#[tokio::test]
async fn a_fenced_commit_is_counted() {
    let files = Files::new();
    let open = || {
        use a99_runtime_stores::{SqliteRuntime, StoreOptions};
        let opened = SqliteRuntime::open_past_lock(files.path(), StoreOptions::default());
        Arc::new(opened.expect("a store"))
    };
    let a = key("a/c/a");
    let counter = Counter {
        pause: Duration::from_millis(500),
        ..Counter::default()
    };
    let calls = Arc::clone(&counter.calls);
    let host = builder().agent("a", move |_| counter.clone());
    let host = host.start(open()).await.expect("a host");
    host.invite(&a, json!({})).await.expect("invited");
    say(&host, "c", "x").await;
    let is_running = async || !calls.lock().expect("calls").is_empty();
    crate::script::until("the turn runs", is_running).await;
    // Another owner takes the store before the turn commits.
    let _second = open();
    crate::script::is(&host, &a, "stopped").await;
    let text = text(&host).await;
    assert_eq!(value(&text, "a99_fenced_commits_total"), 1.0);
    assert_eq!(value(&text, "a99_agents{state=\"stopped\"}"), 1.0);
}

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
}

/// Asks the model, and passes each message on to a handle until the hops end.
struct Relay;

impl Agent for Relay {
    type State = BTreeMap<String, Value>;
    type Settings = Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let Body::Message(message) = &event.body else {
            return Ok(());
        };
        let me = turn.key().handle().to_owned();
        let (mine, next) = match (me.as_str(), message.content.as_str()) {
            ("one", "start") => (None, "from one"),
            ("two", "from one") => (None, "from two"),
            ("one", "from two") => (Some(json!({"traceparent": "its own", "n": 1})), "end"),
            _ => return Ok(()),
        };
        if let Ok(ai) = turn.client().ai() {
            let answer = ai.generate_text(TextRequest::default()).await;
            answer.map_err(|error| AgentError::new("ai", error.to_string()))?;
        }
        let options = SendOptions {
            metadata: mine,
            ..SendOptions::default()
        };
        turn.send_with(next, options).await.map(drop)
    }
}

#[tokio::test]
async fn a_chain_of_agents_is_one_trace_and_its_tokens_are_counted() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let files = Files::new();
    let host = builder().ai(Priced).agent("relay", |_| Relay);
    let host = host.start(store(&files.path())).await.expect("a host");
    for agent in ["relay/c/one", "relay/c/two"] {
        host.invite(&key(agent), json!({})).await.expect("invited");
    }
    let mut start = says("start");
    let mut message = Message::text("start");
    message.metadata = Some(json!({"traceparent": PARENT}));
    start.body = Body::Message(message);
    host.publish("c", start).await.expect("published");
    assert!(host.settled(LONG).await);
    let mut events = host.subscribe("c", Some(0), false).await.expect("a log");
    let mut found = BTreeMap::new();
    while !found.contains_key("end") {
        let event = events.next().await.expect("an event");
        if let Body::Message(message) = &event.body {
            found.insert(message.content.clone(), message.metadata.clone());
        }
    }
    let traced = Some(json!({"traceparent": PARENT}));
    assert_eq!(found["from one"], traced);
    assert_eq!(found["from two"], traced);
    let own = Some(json!({"traceparent": "its own", "n": 1}));
    assert_eq!(found["end"], own, "the agent's context stays");
    let text = text(&host).await;
    assert_eq!(value(&text, "a99_ai_calls_total{outcome=\"done\"}"), 3.0);
    assert_eq!(value(&text, "a99_ai_tokens_total{direction=\"in\"}"), 21.0);
    assert_eq!(value(&text, "a99_ai_tokens_total{direction=\"out\"}"), 9.0);
}
