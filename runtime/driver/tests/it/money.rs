//! Money of kept turns: known where the prices of models are, and never 0 where they are not.

use crate::support::{Files, LONG, builder, key, quick, say, store};
use a99_capabilities::ai::{
    AiCode, Cost, Part, StopReason, StreamEvent, StreamHandle, TextRequest, Usage,
};
use a99_capabilities::{AiError, AiProvider, Capabilities};
use a99_runtime::program::{ProgramAgent, TurnTimeline, timeline};
use a99_runtime::{Delivery, HostOptions, Trigger};
use a99_runtime_engine::{AgentStore, BoxFuture};
use agent99::account::Money;
use agent99::{Engine, Fuel};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A service with a model that costs a millionth for each token, one without a price, one that
/// reports no tokens, and one that refuses the second request.
#[derive(Clone, Default)]
struct Service(Arc<AtomicU32>);

impl AiProvider for Service {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        let (sink, handle) = StreamHandle::new("s");
        let prompt = request
            .messages
            .first()
            .and_then(|said| said.content.first());
        let Some(Part::Text(model)) = prompt else {
            panic!("no prompt: {request:?}")
        };
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        if model == "busy" && n == 1 {
            sink.fail(AiError::new(AiCode::RateLimited, "busy"));
            return handle;
        }
        sink.answered_by(model.as_str());
        sink.send(StreamEvent::Text("said".to_owned()));
        if model != "silent" {
            sink.send(StreamEvent::Usage(Usage {
                prompt_tokens: 7,
                completion_tokens: 3,
                ..Usage::default()
            }));
        }
        sink.finish(StopReason::EndTurn);
        handle
    }

    fn price(&self, model: Option<&str>, usage: Usage) -> Option<Cost> {
        (model != Some("free")).then(|| Cost {
            money: Money::from_micro(usage.total()),
            fuel: Fuel::ZERO,
        })
    }
}

/// The time line of a turn that asks these models one after the other.
async fn turn(models: &[&str]) -> (TurnTimeline, u32) {
    let files = Files::new();
    let engine = Engine::new();
    let calls = models.iter().map(|model| {
        format!("await llmChat({{ messages: [{{ role: 'user', content: '{model}' }}] }})\n")
    });
    let source = format!(
        "async function agent({{ event }}) {{\n{}}}",
        calls.collect::<String>()
    );
    let program = engine.compile_source(source.as_str()).expect("a program");
    let service = Service::default();
    let mut granted = Capabilities::none();
    granted.ai = Some(Arc::new(service.clone()));
    let agent = ProgramAgent::builder(&engine, program)
        .granted(granted)
        .policy(quick(Delivery::default()))
        .build()
        .expect("an agent");
    let store = store(&files.path());
    let options = HostOptions {
        keep_turns: 10,
        ..HostOptions::default()
    };
    let host = builder()
        .options(options)
        .agent("p", move |_| agent.clone());
    let host = host.start(Arc::clone(&store)).await.expect("a host");
    let p = key("p/c/p");
    host.invite(&p, json!({})).await.expect("invited");
    say(&host, "c", "go").await;
    assert!(host.settled(LONG).await);
    host.drain(LONG).await.expect("drained");
    let found = store.kept_turn(&p, &Trigger::Event(2)).await.expect("read");
    let (turn, _) = found.expect("kept");
    let shown = timeline(&turn).expect("readable");
    assert_eq!(shown.error, None);
    (shown, service.0.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_time_line_has_the_money_of_each_call() {
    let (shown, _) = turn(&["dear", "dear"]).await;
    let json = serde_json::to_value(&shown).expect("JSON");
    assert_eq!(
        (shown.count, shown.input_tokens, shown.output_tokens),
        (2, Some(14), Some(6))
    );
    assert_eq!(shown.money, Some(0.00002));
    assert_eq!(
        (&json["calls"][0]["money"], &json["calls"][0]["inputTokens"]),
        (&json!(0.00001), &json!(7))
    );
}

#[tokio::test]
async fn what_is_unknown_is_not_0() {
    let (shown, _) = turn(&["dear", "free"]).await;
    let json = serde_json::to_value(&shown).expect("JSON");
    assert_eq!((shown.input_tokens, shown.money), (Some(14), None));
    assert_eq!(
        (&json["calls"][0]["money"], &json["calls"][1]["money"]),
        (&json!(0.00001), &json!(null))
    );
    let (shown, _) = turn(&["silent"]).await;
    let json = serde_json::to_value(&shown).expect("JSON");
    // What a service does not report is estimated, as for budgets.
    assert!(json["calls"][0]["inputTokens"].as_u64() > Some(0), "{json}");
    assert!(shown.money > Some(0.0), "{json}");
}

#[tokio::test]
async fn the_money_of_an_answer_is_kept_for_the_next_attempt() {
    let (shown, asked) = turn(&["dear", "busy"]).await;
    assert_eq!(asked, 3, "the first answer is not asked for again");
    assert_eq!((shown.count, shown.money), (2, Some(0.00002)));
}

#[tokio::test]
async fn a_turn_without_models_costs_nothing() {
    let (shown, _) = turn(&[]).await;
    assert_eq!((shown.input_tokens, shown.money), (Some(0), Some(0.0)));
}
