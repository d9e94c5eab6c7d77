//! Responses: answers of a model as messages, also when turns and models fail.

use crate::support::{Files, Script, builder, host, kept, lines, say, sent_by, settle, text};
use a99_capabilities::ai::{
    AiError, ModelFault, ModelScript, ModelTurn, StreamHandle, TextRequest,
};
use a99_capabilities::{AiProvider, BoxFuture, ScriptedAi};
use a99_core::value::Value as AiValue;
use a99_runtime::{AgentError, Body, EventKind};
use a99_runtime_patterns::{ResponseManager, TrackerManager};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Answers each message of a person; fails after the answer in its first attempts.
fn answering(fails: u32) -> Script {
    Script::new(move |turn, event| {
        Box::pin(async move {
            let Some(words) = text(&event) else {
                return Ok(());
            };
            let client = turn.client();
            let ai = Arc::clone(client.ai()?);
            let trackers = TrackerManager::new(&client);
            let typing = trackers.typing().await?;
            let response = ResponseManager::new(&client, "reply", Some(event.id));
            let mut response = response.stopping(typing);
            let answer = response.answer(&*ai, TextRequest::new(words)).await;
            if turn.attempt() <= fails {
                return Err(AgentError::from("again"));
            }
            let note = match answer {
                // A failed message cannot go on.
                Err(_) if response.message_id().is_some() => {
                    let refused = response.append("more").await.expect_err("it failed");
                    refused.code().to_owned()
                }
                Ok(answer) => {
                    let usage = answer.usage();
                    turn.state_mut().usage.record(usage, None);
                    let began = response.message_id().is_some();
                    let tools: Vec<_> = answer.tool_uses();
                    format!("{} {began} {}", answer.stop_reason, tools.len())
                }
                Err(error) => error.code().to_owned(),
            };
            turn.state_mut().notes.push(note);
            response.complete().await
        })
    })
}

/// A model that the test also looks at.
struct Model(Arc<ScriptedAi>);

impl AiProvider for Model {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        self.0.list_roles()
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        self.0.stream_text(request)
    }
}

fn model(turns: Vec<ModelTurn>) -> Arc<ScriptedAi> {
    Arc::new(ScriptedAi::new(ModelScript { turns }))
}

fn pieces(of: &[&str]) -> ModelTurn {
    ModelTurn {
        text: of.iter().map(|piece| (*piece).to_owned()).collect(),
        ..ModelTurn::default()
    }
}

#[tokio::test]
async fn an_answer_is_shown_while_it_is_written_and_kept_once() {
    let files = Files::new();
    let ai = model(vec![pieces(&["Hel", "lo"])]);
    let builder = builder().ai(Model(Arc::clone(&ai)));
    let host = host(&files, builder, &answering(0)).await;
    let mut events = host.subscribe("c", None, true).await.expect("a channel");
    say(&host, "ann", "hi").await;
    assert!(host.settled(Duration::from_secs(10)).await);
    let mut live = Vec::new();
    let wait = Duration::from_millis(200);
    while let Ok(event) = tokio::time::timeout(wait, events.next()).await {
        let event = event.expect("an event");
        if event.kind == EventKind::Ephemeral {
            live.push((*event).clone());
        }
    }
    assert_eq!(
        lines(&live),
        [
            "typing ",
            "update !",
            "partial Hel",
            "update lo",
            "update !"
        ]
    );
    let log = sent_by(&host, "bot").await;
    assert_eq!(lines(&log), ["text ", "update Hello", "update !"]);
    let Body::Message(partial) = &live[2].body else {
        panic!("no message");
    };
    let named = partial
        .metadata
        .as_ref()
        .map(|data| data["messageId"].clone());
    assert_eq!(named, Some(serde_json::json!(log[0].id)));
    let kept = kept(&host).await;
    assert_eq!(kept.notes, ["end_turn true 0"]);
    assert!(kept.usage.report().context_tokens > 0);
}

#[tokio::test]
async fn a_retry_does_not_ask_the_model_again() {
    let files = Files::new();
    // Another call would get another answer.
    let ai = model(vec![pieces(&["one"]), pieces(&["two"])]);
    let builder = builder().ai(Model(Arc::clone(&ai)));
    let host = host(&files, builder, &answering(2)).await;
    settle(&host, "ann", "hi").await;
    assert_eq!(ai.requests().len(), 1);
    let log = lines(&sent_by(&host, "bot").await);
    assert_eq!(log, ["text ", "update one", "update !"]);
}

#[tokio::test]
async fn an_error_of_the_model_marks_the_message() {
    let files = Files::new();
    let cut = ModelTurn {
        fault: Some(ModelFault::Malformed(1)),
        ..pieces(&["par", "tial"])
    };
    let none = ModelTurn {
        fault: Some(ModelFault::Malformed(0)),
        ..pieces(&["never"])
    };
    let builder = builder().ai(Model(model(vec![cut, none])));
    let host = host(&files, builder, &answering(0)).await;
    settle(&host, "ann", "hi").await;
    settle(&host, "ann", "hi again").await;
    let log = lines(&sent_by(&host, "bot").await);
    // What had arrived stays; a message that had not begun does not begin.
    assert_eq!(log.len(), 3, "{log:?}");
    assert_eq!(log[..2], ["text ", "update par"]);
    assert!(log[2].starts_with("error ai."), "{log:?}");
    let notes = kept(&host).await.notes;
    assert_eq!(notes, ["turn.message_ended", "ai.malformed"]);
}

#[tokio::test]
async fn calls_of_tools_alone_begin_no_message() {
    let files = Files::new();
    let tool = ModelTurn::tool("u1", "pay", AiValue::Null);
    let builder = builder().ai(Model(model(vec![tool])));
    let host = host(&files, builder, &answering(0)).await;
    settle(&host, "ann", "pay").await;
    assert_eq!(kept(&host).await.notes, ["tool_use false 1"]);
    assert!(sent_by(&host, "bot").await.is_empty());
}
