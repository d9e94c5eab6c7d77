//! The names of the language model, one test each: docs/runtime.md lists them.

use crate::stage::Stage;
use a99_capabilities::AiProvider;
use a99_capabilities::ai::{StopReason, StreamEvent, TextRequest};
use a99_runtime::TurnClient;
use std::sync::Arc;

fn ai(client: &TurnClient) -> Arc<dyn AiProvider> {
    client.context().ai.expect("a model")
}

#[tokio::test]
async fn list_roles() {
    let stage = Stage::new().await;
    let roles = stage.turn(async |turn| ai(&turn).list_roles().await).await;
    assert!(roles.expect("roles").contains_key("default"));
}

#[tokio::test]
async fn stream_text() {
    let stage = Stage::new().await;
    let events = stage.turn(async |turn| {
        let mut stream = ai(&turn).stream_text(TextRequest::new("Which colour?"));
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        events
    });
    let events = events.await;
    let texts = events.iter().filter_map(|event| match event {
        StreamEvent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(texts.collect::<String>(), "Blue.");
    assert!(
        matches!(events.last(), Some(StreamEvent::Done { .. })),
        "{events:?}"
    );
}

#[tokio::test]
async fn generate_text() {
    let stage = Stage::new().await;
    let whole = stage.turn(async |turn| {
        let request = TextRequest::new("Which colour?");
        ai(&turn).generate_text(request).await
    });
    let whole = whole.await.expect("an answer");
    assert_eq!(
        (&*whole.text, whole.stop_reason),
        ("Blue.", Some(StopReason::EndTurn))
    );
}

#[tokio::test]
async fn stream_id() {
    let stage = Stage::new().await;
    let id = stage.turn(async |turn| {
        let stream = ai(&turn).stream_text(TextRequest::new("x"));
        stream.stream_id().to_owned()
    });
    assert!(!id.await.is_empty());
}

#[tokio::test]
async fn cancel() {
    let stage = Stage::new().await;
    let whole = stage.turn(async |turn| {
        let stream = ai(&turn).stream_text(TextRequest::new("stall"));
        stream.cancel();
        // It settles at once, though the model is silent and the stream is not read.
        stream.done().await
    });
    assert!(whole.await.expect("an answer").cancelled);
}

#[tokio::test]
async fn done() {
    let stage = Stage::new().await;
    let whole = stage.turn(async |turn| {
        // It settles although the stream is not read.
        ai(&turn).stream_text(TextRequest::new("x")).done().await
    });
    assert_eq!(whole.await.expect("an answer").text, "Blue.");
}

#[tokio::test]
async fn next() {
    let stage = Stage::new().await;
    let last = stage.turn(async |turn| {
        let mut stream = ai(&turn).stream_text(TextRequest::new("x"));
        while stream.next().await.is_some() {}
        stream.next().await.is_none()
    });
    assert!(last.await, "after its end there is nothing");
}
