//! Programs as agents: what they keep, give and answer, and which of them goes on.

use crate::script::{closed, until};
use crate::support::{Files, LONG, ann, builder, key, quick, say, store, texts};
use a99_capabilities::ai::{AiError, StopReason, StreamEvent, StreamHandle, TextRequest};
use a99_capabilities::{AiProvider, Capabilities};
use a99_runtime::program::{PARTIAL, ProgramAgent, ProgramAgentBuilder, ProgramMethod};
use a99_runtime::{AgentInfo, Body, Delivery, EventKind, Host, Retry};
use a99_runtime_engine::BoxFuture;
use agent99::{
    AtomBody, AtomDef, AtomError, AtomSig, AtomTimeout, Effect, Engine, Fuel, HostCall, HostReply,
    Params, Value, all_atoms,
};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn built(text: &str) -> ProgramAgentBuilder {
    let engine = Engine::new();
    let program = engine.compile(text).expect("a program");
    ProgramAgent::builder(&engine, program).policy(quick(Delivery::default()))
}

fn object(json: Json) -> Map<String, Json> {
    json.as_object().cloned().expect("an object")
}

/// A host with one agent, which was said all this to.
async fn told(path: &Path, agent: ProgramAgent, said: &[&str]) -> (Host, AgentInfo) {
    let host = builder().agent("p", move |_| agent.clone());
    let host = host.start(store(path)).await.expect("a host");
    let p = key("p/c/p");
    host.invite(&p, json!({})).await.expect("invited");
    for text in said {
        say(&host, "c", text).await;
        assert!(host.settled(LONG).await);
    }
    let info = host.inspect(&p).await.expect("there");
    (host, info)
}

const COUNT: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "agentSetState", "state": {"n": {"=": "(state.n ?? 0) + 1"}}},
    {"op": "agentSetSettings", "settings": {"seen": {"=": "event.content"}}},
    {"op": "agentSend", "content": {"=": "`${settings.greeting} ${identity.handle}: ${event.content}`"}}
]}"#;

#[tokio::test]
async fn a_program_has_state_settings_and_an_identity() {
    let files = Files::new();
    let agent = built(COUNT)
        .settings(object(json!({"greeting": "Hi", "seen": ""})))
        .initial_state(object(json!({"n": 40, "kept": true})))
        .build()
        .expect("an agent");
    let (host, info) = told(&files.path(), agent, &["one", "two"]).await;
    assert_eq!(info.state, Some(json!({"n": 42, "kept": true})));
    assert_eq!(info.settings, Some(json!({"seen": "two"})));
    let said = texts(&host, "c").await;
    assert_eq!(said, ["one", "Hi p: one", "two", "Hi p: two"]);
}

#[tokio::test]
async fn the_result_is_the_state_where_that_is_said() {
    let files = Files::new();
    let text = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "if", "condition": "event.content == 'none'", "then": [{"op": "return", "value": null}]},
        {"op": "if", "condition": "event.content == 'wrong'", "then": [{"op": "return", "value": 7}]},
        {"op": "return", "value": {"=": "{ last: event.content }"}}
    ]}"#;
    let agent = built(text).state_of_result().build().expect("an agent");
    let (_host, info) = told(&files.path(), agent, &["a", "none", "wrong"]).await;
    assert_eq!(info.state, Some(json!({"last": "a"})));
    let dead: Vec<_> = info.dead_letters.iter().map(|one| &*one.code).collect();
    assert_eq!(dead, ["turn.bad_value"]);
}

#[tokio::test]
async fn runs_are_told_of_with_their_fuel_and_limits_hold() {
    let files = Files::new();
    let runs: Arc<Mutex<Vec<(u32, f64)>>> = Arc::default();
    let seen = Arc::clone(&runs);
    let agent = built(COUNT)
        .fuel(Fuel::from_decimal(0.5).expect("fuel"))
        .on_end(move |run| {
            let end = run.end.as_ref().expect("an end");
            let used = end.outcome.fuel_used.to_f64();
            seen.lock().expect("runs").push((run.attempt, used));
        })
        .build()
        .expect("an agent");
    let (_host, info) = told(&files.path(), agent, &["one"]).await;
    // It would be out of fuel again: it is not tried again.
    assert_eq!(info.dead_letters[0].code, "fuel.exhausted");
    let runs = runs.lock().expect("runs");
    assert_eq!(runs.len(), 1);
    assert!(runs[0].0 == 1 && runs[0].1 > 0.5, "{runs:?}");
}

const TILL: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "if", "condition": "event.type != 'method-call'", "then": [{"op": "return", "value": null}]},
    {"op": "agentSetState", "state": {"cash": {"=": "(state.cash ?? 0) + event.args.amount"}}},
    {"op": "if", "condition": "event.args.amount < 0", "then": [{"op": "Error", "args": ["no refunds"]}]},
    {"op": "return", "value": {"=": "{ method: event.methodName, by: event.sender.handle, cash: (state.cash ?? 0) + event.args.amount }"}}
]}"#;

#[tokio::test]
async fn methods_are_answered_by_the_result_and_errors_change_nothing() {
    let files = Files::new();
    let pay = ProgramMethod::new("Adds to an account.").parameters(json!({
        "type": "object",
        "properties": {"amount": {"type": "number"}},
        "required": ["amount"],
    }));
    let agent = built(TILL).method("pay", pay).build().expect("an agent");
    let (host, _) = told(&files.path(), agent, &[]).await;
    let p = key("p/c/p");
    let ask = async |method: &str, args: Json| {
        let call = host.call_method(ann(), &p, method, args, None).await?;
        call.result().await
    };
    let paid = ask("pay", json!({"amount": 5})).await.expect("an answer");
    assert_eq!(paid, json!({"method": "pay", "by": "ann", "cash": 5}));
    let refused = ask("pay", json!({"amount": -1}))
        .await
        .expect_err("an error");
    assert!(refused.to_string().contains("no refunds"), "{refused}");
    let wrong = ask("pay", json!({"amount": "x"}))
        .await
        .expect_err("an error");
    assert_eq!(wrong.code(), "validation-error");
    let none = ask("fly", json!({})).await.expect_err("an error");
    assert_eq!(none.code(), "method-not-found");
    assert!(none.to_string().contains("pay"), "{none}");
    let paid = ask("pay", json!({"amount": 2})).await.expect("an answer");
    assert_eq!(paid["cash"], 7);
    let nobody = key("p/c/q");
    let nobody = host.call_method(ann(), &nobody, "pay", json!({}), None);
    let nobody = nobody.await.expect_err("nobody is there");
    assert_eq!(nobody.code(), "agent.not_registered");
    let info = host.inspect(&p).await.expect("there");
    assert_eq!(info.state, Some(json!({"cash": 7})));
    assert!(info.dead_letters.is_empty());
}

/// An atom that gives how often it was asked, and fails the second time.
fn ask(asked: Arc<AtomicU32>) -> AtomDef {
    let body = move |call: HostCall| -> BoxFuture<'static, Result<HostReply, AtomError>> {
        let factor = call.options.host.get::<u32>().map_or(1, |factor| *factor);
        let n = asked.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = match n {
            2 => Err(AtomError::new("the world is down")),
            n => Ok(HostReply::from(Value::from(f64::from(n * factor)))),
        };
        Box::pin(std::future::ready(answer))
    };
    AtomDef {
        sig: AtomSig {
            name: Cow::Borrowed("ask"),
            params: Params::Raw,
            timeout: AtomTimeout::Ms(10_000),
            effect: Effect::Unsafe,
            ..AtomSig::new("", "Asks the world.", 300_000)
        },
        body: AtomBody::AsyncDyn(Arc::new(body)),
        dynamic_cost: None,
    }
}

const ASKS: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "ask", "result": "a"},
    {"op": "ask", "result": "b"},
    {"op": "agentSend", "content": {"=": "`old ${a} ${b}`"}}
]}"#;

/// An agent that asks, and waits so long before it tries again.
fn asks(text: &str, asked: &Arc<AtomicU32>, pause: u64) -> ProgramAgent {
    let atoms = all_atoms().with(ask(Arc::clone(asked)));
    let engine = Engine::builder().atoms(atoms).build();
    let program = engine.compile(text).expect("a program");
    let retry = Retry {
        max_attempts: 3,
        first: pause,
        most: pause,
    };
    ProgramAgent::builder(&engine, program)
        .retry(retry)
        .host(Arc::new(10_u32))
        .deadline(Duration::from_secs(20))
        .build()
        .expect("an agent")
}

#[tokio::test]
async fn a_turn_whose_call_failed_is_tried_again() {
    let files = Files::new();
    let asked = Arc::new(AtomicU32::new(0));
    let agent = asks(ASKS, &asked, 5);
    let (host, info) = told(&files.path(), agent, &["go"]).await;
    assert!(info.dead_letters.is_empty(), "{info:?}");
    assert_eq!(texts(&host, "c").await, ["go", "old 10 30"]);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_turn_goes_on_with_the_program_that_it_began_with() {
    let files = Files::new();
    let asked = Arc::new(AtomicU32::new(0));
    let (old, p) = (asks(ASKS, &asked, 60_000), key("p/c/p"));
    let kept = store(&files.path());
    let host = builder().agent("p", move |_| old.clone());
    let host = host.start(kept.clone()).await.expect("a host");
    host.invite(&p, json!({})).await.expect("invited");
    say(&host, "c", "go").await;
    until("the first attempt failed", async || {
        host.inspect(&p).await.expect("there").failed == 1
    })
    .await;
    closed(host, kept).await;
    let agent = asks(&ASKS.replace("old", "new"), &asked, 5);
    let (host, _) = told(&files.path(), agent, &["again"]).await;
    let said = texts(&host, "c").await;
    assert_eq!(said, ["go", "again", "old 10 30", "new 40 50"]);
}

/// Writes an answer in three pieces, each when it is told to.
#[derive(Clone, Default)]
struct Writer(Arc<tokio::sync::Notify>);

impl AiProvider for Writer {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    fn stream_text(&self, _: TextRequest) -> StreamHandle {
        let (sink, handle) = StreamHandle::new("answer");
        let told = Arc::clone(&self.0);
        tokio::spawn(async move {
            for piece in ["One ", "two ", "three."] {
                told.notified().await;
                sink.send(StreamEvent::Text(piece.to_owned()));
            }
            sink.finish(StopReason::EndTurn);
        });
        handle
    }
}

#[tokio::test]
async fn what_a_model_writes_is_seen_while_it_writes() {
    let files = Files::new();
    let writer = Writer::default();
    let text = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "streamChunk", "data": {"at": "start"}},
        {"op": "llmChat", "messages": [{"role": "user", "content": "Count."}], "result": "said"},
        {"op": "agentSend", "content": {"=": "said.text"}}
    ]}"#;
    let mut granted = Capabilities::none();
    granted.ai = Some(Arc::new(writer.clone()));
    let agent = built(text).granted(granted).streaming(true);
    let agent = agent.build().expect("an agent");
    let host = builder().agent("p", move |_| agent.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("p/c/p"), json!({}))
        .await
        .expect("invited");
    let mut events = host.subscribe("c", None, true).await.expect("a channel");
    say(&host, "c", "go").await;
    let mut seen = Vec::new();
    loop {
        let event = tokio::time::timeout(LONG, events.next()).await;
        let event = event.expect("in time").expect("an event");
        let is_passing = event.kind == EventKind::Ephemeral;
        match &event.body {
            Body::Custom { name, payload } => {
                seen.push(format!("{name} {payload}"));
                writer.0.notify_one();
            }
            Body::Message(message) if is_passing => {
                assert_eq!(message.content_type.as_deref(), Some(PARTIAL));
                seen.push(message.content.clone());
                writer.0.notify_one();
            }
            Body::UpdateMessage { content, .. } if is_passing => {
                seen.extend(content.clone());
                writer.0.notify_one();
            }
            Body::Message(message) if event.sender.handle.as_deref() == Some("p") => {
                seen.push(format!("whole: {}", message.content));
                break;
            }
            _ => {}
        }
    }
    assert_eq!(
        seen,
        [
            "stream-chunk {\"at\":\"start\"}",
            "One ",
            "two ",
            "three.",
            "whole: One two three."
        ]
    );
    assert!(host.settled(LONG).await);
    host.drain(LONG).await.expect("drained");
}
