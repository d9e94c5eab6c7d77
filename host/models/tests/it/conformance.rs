//! The suite of providers, on all wires, streamed and whole.

use crate::{config, provider};
use a99_capabilities::suite::AiCase;
use a99_models::Wire;
use a99_models::server::ModelServer;

async fn conforms(wire: Wire, stream: bool) {
    let cases = AiCase::all();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut failed = Vec::new();
    for case in cases {
        // Nothing of an answer comes before all of it, if no events are asked for.
        if !stream && case.name.starts_with("cancelled while it stalls after") {
            continue;
        }
        // These wires do not tell a text that stopped the answer from its end.
        let untold = matches!(wire, Wire::Gemini | Wire::Responses);
        if untold && case.name == "it ends by stop_sequence" {
            continue;
        }
        let server = ModelServer::start(case.script()).await.unwrap();
        let mut config = config(wire, &server.url());
        config.services.get_mut("local").unwrap().stream = stream;
        if let Err(law) = case.run(&provider(config)).await {
            failed.push(format!("{}: {law}", case.name));
        }
    }
    assert!(failed.is_empty(), "{wire:?}: {failed:#?}");
}

#[tokio::test]
async fn openai_conforms() {
    conforms(Wire::OpenAi, true).await;
}

#[tokio::test]
async fn anthropic_conforms() {
    conforms(Wire::Anthropic, true).await;
}

#[tokio::test]
async fn openai_conforms_without_events() {
    conforms(Wire::OpenAi, false).await;
}

#[tokio::test]
async fn anthropic_conforms_without_events() {
    conforms(Wire::Anthropic, false).await;
}

#[tokio::test]
async fn gemini_conforms() {
    conforms(Wire::Gemini, true).await;
}

#[tokio::test]
async fn gemini_conforms_without_events() {
    conforms(Wire::Gemini, false).await;
}

#[tokio::test]
async fn responses_conform() {
    conforms(Wire::Responses, true).await;
}

#[tokio::test]
async fn responses_conform_without_events() {
    conforms(Wire::Responses, false).await;
}
