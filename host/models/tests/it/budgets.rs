//! Budgets over real HTTP: what services report badly or not at all, requests that break,
//! retries and fallbacks, each paid at the price of the model that is asked.

use crate::{config, short};
use a99_capabilities::ai::{AiCode, AiProvider, MeteredAi, TextRequest, TextResult, TokenEstimate};
use a99_core::json::{Document, Limits};
use a99_core::value::Value;
use a99_models::{ModelConfig, ModelProvider, Price, Retries, ServiceConfig, Wire};
use a99_run::account::{Account, AccountLimits, Money};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An answer of 14 words.
const TEXT: &str = "an answer of some words that each tokenizer cuts in as many or more";

/// Reads a request and gives its body.
async fn body_of(socket: &mut TcpStream) -> Option<Value> {
    let mut read = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let n = socket.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        read.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.parse().ok())?
        });
        if body.len() >= length.unwrap_or(0_usize) {
            let document = Document::parse(body, &Limits::default()).ok()?;
            return Some(document.to_value(document.root()));
        }
    }
}

/// A server that answers each request with these bytes, and closes. Gives its address and the
/// bodies that it was sent.
pub(crate) async fn raw(answer: String) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&bodies);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (noted, answer) = (Arc::clone(&noted), answer.clone());
            tokio::spawn(async move {
                if let Some(body) = body_of(&mut socket).await {
                    noted.lock().unwrap().push(body);
                    let _ = socket.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    (url, bodies)
}

fn http(media: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// An answer of [`TEXT`] with this usage; empty: without a member for it.
pub(crate) fn answer(wire: Wire, streamed: bool, usage: &str) -> String {
    let name = match wire {
        Wire::Gemini => "usageMetadata",
        _ => "usage",
    };
    let with = |before: &str| match usage.is_empty() {
        true => String::new(),
        false => format!("{before}\"{name}\": {usage}"),
    };
    match (wire, streamed) {
        (Wire::OpenAi, false) => http(
            "application/json",
            &format!(
                r#"{{"choices": [{{"index": 0, "message": {{"role": "assistant", "content": "{TEXT}"}}, "finish_reason": "stop"}}]{}}}"#,
                with(", ")
            ),
        ),
        (Wire::OpenAi, true) => {
            let last = match usage.is_empty() {
                true => String::new(),
                false => format!("data: {{\"choices\": [], {}}}\n\n", with("")),
            };
            let events = format!(
                "data: {{\"choices\": [{{\"index\": 0, \"delta\": {{\"content\": \"{TEXT}\"}}}}]}}\n\n\
                 data: {{\"choices\": [{{\"index\": 0, \"delta\": {{}}, \"finish_reason\": \"stop\"}}]}}\n\n\
                 {last}data: [DONE]\n\n"
            );
            http("text/event-stream", &events)
        }
        (Wire::Anthropic, false) => http(
            "application/json",
            &format!(
                r#"{{"type": "message", "content": [{{"type": "text", "text": "{TEXT}"}}], "stop_reason": "end_turn"{}}}"#,
                with(", ")
            ),
        ),
        (Wire::Anthropic, true) => {
            let events = format!(
                "data: {{\"type\": \"message_start\", \"message\": {{\"content\": []{}}}}}\n\n\
                 data: {{\"type\": \"content_block_start\", \"index\": 0, \"content_block\": {{\"type\": \"text\", \"text\": \"\"}}}}\n\n\
                 data: {{\"type\": \"content_block_delta\", \"index\": 0, \"delta\": {{\"type\": \"text_delta\", \"text\": \"{TEXT}\"}}}}\n\n\
                 data: {{\"type\": \"content_block_stop\", \"index\": 0}}\n\n\
                 data: {{\"type\": \"message_delta\", \"delta\": {{\"stop_reason\": \"end_turn\"}}{}}}\n\n\
                 data: {{\"type\": \"message_stop\"}}\n\n",
                with(", "),
                with(", ")
            );
            http("text/event-stream", &events)
        }
        (Wire::Gemini, _) => {
            let chunk = format!(
                r#"{{"candidates": [{{"index": 0, "content": {{"role": "model", "parts": [{{"text": "{TEXT}"}}]}}, "finishReason": "STOP"}}]{}}}"#,
                with(", ")
            );
            match streamed {
                false => http("application/json", &chunk),
                true => http("text/event-stream", &format!("data: {chunk}\n\n")),
            }
        }
        (Wire::Responses, _) => {
            let response = format!(
                r#"{{"object": "response", "status": "completed", "output": [{{"type": "message", "role": "assistant", "content": [{{"type": "output_text", "text": "{TEXT}"}}]}}]{}}}"#,
                with(", ")
            );
            match streamed {
                false => http("application/json", &response),
                true => {
                    let delta = format!(
                        r#"{{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "{TEXT}"}}"#
                    );
                    let last =
                        format!(r#"{{"type": "response.completed", "response": {response}}}"#);
                    http(
                        "text/event-stream",
                        &format!("data: {delta}\n\ndata: {last}\n\n"),
                    )
                }
            }
        }
    }
}

pub(crate) fn limited(tokens: Option<u64>, money: Option<f64>) -> Account {
    Account::new(
        "a",
        AccountLimits {
            tokens,
            money: money.and_then(Money::from_units),
            ..AccountLimits::default()
        },
    )
}

pub(crate) fn metered(config: ModelConfig, account: &Account) -> MeteredAi {
    MeteredAi::new(
        Arc::new(ModelProvider::new(config).unwrap()),
        account.clone(),
    )
}

/// A prompt of 100 words.
pub(crate) fn prompt() -> TextRequest {
    TextRequest::new("word ".repeat(100))
}

#[tokio::test]
async fn d1_odd_usage_is_settled_at_the_estimate_on_every_wire() {
    let said = TextResult {
        text: TEXT.to_owned(),
        ..TextResult::default()
    };
    let sent = TokenEstimate::of_request(&prompt()).likely;
    let came = TokenEstimate::of_answer(&said).likely;
    let count = |wire: Wire, prompt: &str, completion: &str| match wire {
        Wire::OpenAi => {
            format!("{{\"prompt_tokens\": {prompt}, \"completion_tokens\": {completion}}}")
        }
        Wire::Gemini => {
            format!("{{\"promptTokenCount\": {prompt}, \"candidatesTokenCount\": {completion}}}")
        }
        _ => format!("{{\"input_tokens\": {prompt}, \"output_tokens\": {completion}}}"),
    };
    for wire in Wire::ALL {
        for streamed in [false, true] {
            let odd = [
                "null",
                "-1",
                "0.5",
                "\"7\"",
                "{}",
                "[]",
                "1e300",
                "9007199254740994",
                "0",
            ];
            let odd = odd.map(|n| count(*wire, n, n));
            let whole = ["", "null", "\"x\"", "[]", "{}", "7"].map(str::to_owned);
            for usage in odd.into_iter().chain(whole) {
                let (url, _) = raw(answer(*wire, streamed, &usage)).await;
                let mut config = config(*wire, &url);
                let service = config.services.get_mut("local").unwrap();
                service.stream = streamed;
                let account = limited(Some(100_000), None);
                let got = metered(config, &account).generate_text(prompt()).await;
                let got = got.unwrap_or_else(|error| panic!("{wire:?} {usage}: {error}"));
                assert_eq!(got.text, TEXT);
                let spent = account.usage().spent.tokens;
                assert_eq!(spent, sent + came, "{wire:?} streamed {streamed}: {usage}");
                assert_eq!(got.usage.total(), spent);
            }
            // What may be true is believed.
            let usage = count(*wire, "120", "15");
            let (url, _) = raw(answer(*wire, streamed, &usage)).await;
            let account = limited(Some(100_000), None);
            let mut config = config(*wire, &url);
            config.services.get_mut("local").unwrap().stream = streamed;
            metered(config, &account)
                .generate_text(prompt())
                .await
                .unwrap();
            assert_eq!(account.usage().spent.tokens, 135);
        }
    }
}

#[tokio::test]
async fn d1_requests_that_break_before_their_first_token_are_paid() {
    for wire in Wire::ALL {
        let (url, bodies) = raw(String::new()).await;
        let account = limited(Some(1_000), None);
        let models = metered(config(*wire, &url), &account);
        for _ in 0..70 {
            assert!(models.generate_text(prompt()).await.is_err());
        }
        let sent = bodies.lock().unwrap().len();
        assert!((2..=10).contains(&sent), "{wire:?}: {sent}");
    }
}

#[tokio::test]
async fn d1_each_try_and_each_fallback_is_paid_and_seen() {
    let (broken, tried) = raw(String::new()).await;
    let (url, _) = raw(answer(Wire::OpenAi, false, "")).await;
    let mut config = config(Wire::OpenAi, &broken);
    config.retries = Retries {
        most: 2,
        first_wait: 0.001,
        ..Retries::default()
    };
    config
        .services
        .insert("other".to_owned(), ServiceConfig::new(Wire::OpenAi, url));
    let models = vec!["local/m".to_owned(), "other/m".to_owned()];
    config.roles.insert("default".to_owned(), models);
    let account = limited(Some(100_000), None);
    let got = metered(config, &account)
        .generate_text(prompt())
        .await
        .unwrap();
    assert_eq!(tried.lock().unwrap().len(), 3);
    let sent = TokenEstimate::of_request(&prompt()).likely;
    assert_eq!(
        got.usage.prompt_tokens,
        4 * sent,
        "as `llmToolLoop.budget` counts"
    );
    assert_eq!(account.usage().spent.tokens, got.usage.total());
}

#[tokio::test]
async fn d1_a_cancelled_request_is_paid() {
    // Nothing comes, and the connection stays.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let account = limited(Some(10_000), None);
    let models = metered(config(Wire::OpenAi, &url), &account);
    let stream = models.stream_text(prompt());
    let (mut socket, _) = listener.accept().await.unwrap();
    body_of(&mut socket).await.unwrap();
    drop(stream);
    let sent = TokenEstimate::of_request(&prompt()).likely;
    assert_eq!(account.usage().spent.tokens, sent);
    assert_eq!(account.left().tokens, 10_000 - sent);
}

#[tokio::test]
async fn d1_pieces_of_a_tool_that_is_cut_off_are_paid() {
    let piece = |text: &str| {
        format!(
            "data: {{\"choices\": [{{\"index\": 0, \"delta\": {{\"tool_calls\": [{{\"index\": 0, {text}}}]}}}}]}}\n\n"
        )
    };
    let first = piece(r#""id": "c", "function": {"name": "f", "arguments": "{\"a\": \""}"#);
    let more = piece(r#""function": {"arguments": "more"}"#).repeat(50);
    let (url, _) = raw(http("text/event-stream", &(first + &more))).await;
    let account = limited(Some(10_000), None);
    let models = metered(config(Wire::OpenAi, &url), &account);
    assert!(models.generate_text(prompt()).await.is_err());
    let sent = TokenEstimate::of_request(&prompt()).likely;
    assert!(account.usage().spent.tokens >= sent + 50);
}

#[tokio::test]
async fn d2_money_is_reserved_at_the_price_of_the_model_that_is_asked() {
    let usage = r#"{"prompt_tokens": 120, "completion_tokens": 100000}"#;
    let (url, bodies) = raw(answer(Wire::OpenAi, false, usage)).await;
    let mut config = config(Wire::OpenAi, &url);
    config
        .services
        .insert("dear".to_owned(), ServiceConfig::new(Wire::OpenAi, &url));
    config
        .roles
        .insert("smart".to_owned(), vec!["dear/x".to_owned()]);
    let price = |units: f64| Price {
        prompt: units,
        completion: units,
        ..Price::default()
    };
    config.prices.insert("dear/x".to_owned(), price(1_000.0));
    let account = limited(None, Some(1.0));
    let models = metered(config.clone(), &account);
    let _ = models.generate_text(prompt().role("smart")).await;
    let sent = TokenEstimate::of_request(&prompt()).likely;
    // A million tokens cost 1,000: 1 pays 1,000 of them, the prompt's among them.
    let asked = bodies.lock().unwrap()[0]
        .get("max_tokens")
        .and_then(Value::as_f64);
    assert_eq!(asked, Some(1_000.0 - sent as f64));
    let error = models
        .generate_text(prompt().role("smart"))
        .await
        .unwrap_err();
    assert_eq!(error.code, AiCode::Budget);
    // The other role has no price, and money is limited.
    let error = models.generate_text(prompt()).await.unwrap_err();
    assert!(error.message.contains("has no price"), "{error}");
    assert_eq!(bodies.lock().unwrap().len(), 1);
    assert_eq!(ModelProvider::new(config).unwrap().unpriced().len(), 1);
}

#[tokio::test]
async fn d4_the_limit_of_the_answer_is_sent_under_the_name_of_the_service() {
    for wire in Wire::ALL {
        let (url, bodies) = raw(answer(*wire, false, "")).await;
        let mut config = config(*wire, &url);
        config.timeouts = short();
        let service = config.services.get_mut("local").unwrap();
        service.stream = false;
        service.max_tokens = Some(50_000);
        let account = limited(Some(2_000), None);
        metered(config, &account)
            .generate_text(prompt())
            .await
            .unwrap();
        let sent = TokenEstimate::of_request(&prompt()).likely;
        let body = bodies.lock().unwrap()[0].clone();
        let asked = match wire {
            Wire::Gemini => body
                .get("generationConfig")
                .and_then(|of| of.get("maxOutputTokens")),
            Wire::Responses => body.get("max_output_tokens"),
            Wire::OpenAi | Wire::Anthropic => body.get("max_tokens"),
        };
        let asked = asked.and_then(Value::as_f64);
        assert_eq!(asked, Some(2_000.0 - sent as f64), "{wire:?}");
    }
}

#[tokio::test]
async fn d12_calls_side_by_side_wait_for_each_other() {
    let usage = r#"{"prompt_tokens": 60, "completion_tokens": 14}"#;
    let (url, bodies) = raw(answer(Wire::OpenAi, false, usage)).await;
    let account = limited(Some(10_000), None);
    let models = metered(config(Wire::OpenAi, &url), &account);
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let models = models.clone();
            tokio::spawn(async move { models.generate_text(TextRequest::new("hi")).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(bodies.lock().unwrap().len(), 8);
    assert_eq!(account.usage().spent.tokens, 8 * 74);
}

#[tokio::test]
async fn t6_a_cap_that_the_service_refuses_is_not_sent() {
    let usage = r#"{"input_tokens": 10, "output_tokens": 5}"#;
    let sent = TokenEstimate::of_request(&TextRequest::new("hi")).likely;
    for (left, cap, expected) in [
        (10_000, Some(5), Ok(16.0)),
        (sent + 40, None, Ok(40.0)),
        (sent + 15, None, Err(AiCode::Budget)),
        (sent + 15, Some(5), Err(AiCode::Budget)),
    ] {
        let (url, bodies) = raw(answer(Wire::Responses, false, usage)).await;
        let mut config = config(Wire::Responses, &url);
        config.services.get_mut("local").unwrap().stream = false;
        let account = limited(Some(left), None);
        let request = TextRequest {
            max_tokens: cap,
            ..TextRequest::new("hi")
        };
        let result = metered(config, &account).generate_text(request).await;
        let bodies = bodies.lock().unwrap();
        let asked = bodies
            .first()
            .and_then(|body| body.get("max_output_tokens"));
        assert_eq!(
            asked.and_then(Value::as_f64),
            expected.ok(),
            "{left} {cap:?}"
        );
        assert_eq!(result.err().map(|error| error.code), expected.err());
        if expected.is_err() {
            assert_eq!(account.usage().spent.tokens, 0);
        }
    }
}
