//! What goes wrong on the way: times, retries, fallbacks, cancelling, endless streams.

use crate::{config, provider, server, short};
use a99_capabilities::SeededRandom;
use a99_capabilities::ai::{
    AiCode, AiProvider, ModelFault, ModelTurn, StreamEvent, TextRequest, ToolUse,
};
use a99_core::value::{Map, Value};
use a99_http::{FetchLimits, HttpFetch, rule_for};
use a99_models::server::{MODEL, ModelServer};
use a99_models::{ModelConfig, ModelProvider, Retries, ServiceConfig, Timeouts, Wire};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn ask() -> TextRequest {
    TextRequest::new("x")
}

fn status(status: u16) -> ModelTurn {
    ModelTurn {
        status: Some(status),
        ..ModelTurn::default()
    }
}

fn stalls(after: usize) -> ModelTurn {
    ModelTurn {
        text: vec!["a".to_owned(), "b".to_owned()],
        fault: Some(ModelFault::Stall(after)),
        ..ModelTurn::default()
    }
}

/// Retries that wait for no time to speak of.
fn retries() -> Retries {
    Retries {
        first_wait: 0.001,
        ..Retries::default()
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..4_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: not within 20 s");
}

#[tokio::test]
async fn n20_times_are_kept() {
    for wire in Wire::ALL {
        let slow = ModelTurn {
            text: (0..200).map(|n| n.to_string()).collect(),
            delay: Duration::from_millis(50),
            ..ModelTurn::default()
        };
        for (turn, total, code, partial) in [
            (stalls(0), 20.0, AiCode::FirstTokenTimeout, None),
            (stalls(1), 20.0, AiCode::IdleTimeout, Some("a")),
            (slow, 1.8, AiCode::TotalTimeout, Some("0")),
            (stalls(0), 0.1, AiCode::TotalTimeout, None),
        ] {
            let server = server(vec![turn]).await;
            let mut config = config(*wire, &server.url());
            config.timeouts = Timeouts { total, ..short() };
            let models = provider(config);
            let error = models.generate_text(ask()).await.unwrap_err();
            assert_eq!(error.code, code, "{wire:?}: {error}");
            let text = error.partial.map(|partial| partial.text);
            match (text, partial) {
                (None, None) => {}
                (Some(text), Some(begins)) => assert!(text.starts_with(begins), "{text}"),
                other => panic!("{code:?}: {other:?}"),
            }
            until("the connection is closed", || server.open_answers() == 0).await;
        }
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for wire in Wire::ALL {
        let cut = ModelTurn {
            fault: Some(ModelFault::Cut(0)),
            ..ModelTurn::text("never")
        };
        for wrong in [status(429), status(503), status(529), status(408), cut] {
            let server = server(vec![wrong.clone(), wrong, ModelTurn::text("good")]).await;
            let mut config = config(*wire, &server.url());
            config.retries = retries();
            let models = provider(config);
            assert_eq!(models.generate_text(ask()).await.unwrap().text, "good");
            assert_eq!(server.requests().len(), 3);
        }
        for wrong in [status(400), status(401), status(404)] {
            let server = server(vec![wrong, ModelTurn::text("never")]).await;
            let mut config = config(*wire, &server.url());
            config.retries = retries();
            assert!(provider(config).generate_text(ask()).await.is_err());
            assert_eq!(server.requests().len(), 1, "nobody asks again");
        }
    }
}

#[tokio::test]
async fn nothing_is_tried_again_after_something_came() {
    for fault in [
        ModelFault::Cut(1_000),
        ModelFault::Stall(3),
        ModelFault::Malformed(3),
    ] {
        let half = ModelTurn {
            text: (0..20).map(|n| format!("{n} ")).collect(),
            fault: Some(fault),
            ..ModelTurn::default()
        };
        let server = server(vec![half, ModelTurn::text("again")]).await;
        let mut config = config(Wire::OpenAi, &server.url());
        config.retries = retries();
        config.timeouts = short();
        let models = config.roles.get_mut("default").unwrap();
        models.push(models[0].clone());
        let error = provider(config).generate_text(ask()).await.unwrap_err();
        assert!(error.partial.unwrap().text.starts_with("0 "));
        assert_eq!(server.requests().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_service_says_how_long_to_wait() {
    let later = |seconds| ModelTurn {
        retry_after: Some(Duration::from_secs(seconds)),
        ..status(429)
    };
    let server = server(vec![later(1), ModelTurn::text("good"), later(3600)]).await;
    let mut config = config(Wire::OpenAi, &server.url());
    config.retries = retries();
    let models = provider(config);
    let begun = Instant::now();
    assert_eq!(models.generate_text(ask()).await.unwrap().text, "good");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    // Nobody waits for an hour.
    let begun = Instant::now();
    let error = models.generate_text(ask()).await.unwrap_err();
    assert_eq!(error.code, AiCode::RateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn retries_have_a_budget() {
    let server = server(vec![status(503); 100]).await;
    let mut config = config(Wire::OpenAi, &server.url());
    config.retries = Retries {
        most: 3,
        budget: 4,
        ..retries()
    };
    let models = ModelProvider::builder(config).random(SeededRandom::new(1));
    let models = models.build().unwrap();
    for _ in 0..5 {
        assert!(models.generate_text(ask()).await.is_err());
    }
    assert_eq!(server.requests().len(), 5 + 4);
}

/// Two services, of which the second one is asked when the first one fails.
async fn two(first: Vec<ModelTurn>) -> (ModelServer, ModelServer, ModelConfig) {
    let (first, second) = (
        server(first).await,
        server(vec![ModelTurn::text("second")]).await,
    );
    let mut config = config(Wire::OpenAi, &first.url());
    let other = ServiceConfig::new(Wire::Anthropic, second.url());
    config.services.insert("other".to_owned(), other);
    config.timeouts = short();
    let models = config.roles.get_mut("default").unwrap();
    models.push(format!("other/{MODEL}"));
    (first, second, config)
}

#[tokio::test]
async fn another_model_answers_when_one_does_not() {
    for wrong in [status(429), status(500), status(404), stalls(0)] {
        let (_first, second, config) = two(vec![wrong.clone()]).await;
        let answer = provider(config).generate_text(ask()).await.unwrap();
        assert_eq!(answer.text, "second", "{wrong:?}");
        assert_eq!(answer.model.as_deref(), Some("other/scripted"));
        assert_eq!(second.requests().len(), 1);
    }
    for wrong in [status(400), status(401)] {
        let (_first, second, config) = two(vec![wrong]).await;
        assert!(provider(config).generate_text(ask()).await.is_err());
        assert!(second.requests().is_empty());
    }
    // A service that is not there.
    let (first, _second, config) = two(Vec::new()).await;
    drop(first);
    assert_eq!(
        provider(config).generate_text(ask()).await.unwrap().text,
        "second"
    );
}

#[tokio::test]
async fn roles_without_models_are_answered_by_others() {
    let server = server(vec![ModelTurn::text("a"); 9]).await;
    let mut config = config(Wire::OpenAi, &server.url());
    let own = config.roles.remove("default").unwrap();
    config.roles.insert("fast".to_owned(), own);
    config
        .roles
        .insert("judge".to_owned(), vec!["local/strict".to_owned()]);
    config
        .services
        .get_mut("local")
        .unwrap()
        .models
        .push("tiny".to_owned());
    let models = provider(config);
    let roles = models.list_roles().await.unwrap();
    let roles: Vec<String> = roles.into_iter().map(|(a, b)| format!("{a}={b}")).collect();
    let expected = [
        "code=local/scripted",
        "default=local/scripted",
        "fast=local/scripted",
        "judge=local/strict",
        "smart=local/scripted",
    ];
    assert_eq!(roles, expected);
    models.generate_text(ask().role("code")).await.unwrap();
    models.generate_text(ask().role("judge")).await.unwrap();
    models
        .generate_text(ask().model("local/tiny"))
        .await
        .unwrap();
    models.generate_text(ask().model("tiny")).await.unwrap();
    let asked: Vec<Value> = server
        .requests()
        .iter()
        .map(|r| r.body.get("model").unwrap().clone())
        .collect();
    assert_eq!(
        asked,
        [
            "scripted".into(),
            "strict".into(),
            "tiny".into(),
            Value::from("tiny")
        ]
    );
    for (request, code, hint) in [
        (
            ask().role("juge"),
            AiCode::UnknownRole,
            "did you mean `judge`?",
        ),
        (
            ask().model("gpt-9"),
            AiCode::UnknownModel,
            "known are local/scripted",
        ),
        (
            ask().model("local/gpt-9"),
            AiCode::UnknownModel,
            "known are local/scripted",
        ),
        (
            ask().model("local/"),
            AiCode::UnknownModel,
            "known are local/scripted",
        ),
    ] {
        let error = models.generate_text(request).await.unwrap_err();
        assert_eq!(error.code, code);
        assert!(error.message.contains(hint), "{error}");
    }
    assert_eq!(server.requests().len(), 4, "what is refused is not sent");
}

#[tokio::test]
async fn n20_cancelling_closes_the_connection() {
    let tool = ToolUse {
        id: "call_1".to_owned(),
        name: "t".to_owned(),
        input: Value::Object(Map::new()),
    };
    let in_tools = ModelTurn {
        tools: vec![tool.clone(), tool],
        ..stalls(3)
    };
    for wire in Wire::ALL {
        for turn in [stalls(0), stalls(1), in_tools.clone()] {
            let server = server(vec![turn.clone(), turn]).await;
            let models = provider(config(*wire, &server.url()));
            let mut stream = models.stream_text(ask());
            until("the answer begins", || server.open_answers() == 1).await;
            if server.requests().len() > 1 {
                stream.next().await;
            }
            let begun = Instant::now();
            stream.cancel();
            assert!(stream.done().await.unwrap().cancelled);
            assert!(begun.elapsed() < Duration::from_secs(1), "at once");
            until("the server notices", || server.open_answers() == 0).await;
            // So it does when nobody reads any more.
            tokio::select! {
                answer = models.generate_text(ask()) => panic!("{answer:?}"),
                () = until("the server is asked", || server.open_answers() == 1) => {}
            }
            until("the server notices", || server.open_answers() == 0).await;
            assert_eq!(server.requests().len(), 2);
        }
    }
}

/// A server that sends a head and then the same bytes without end, until the other side
/// closes; the number of bytes that it could send.
async fn endless(head: &'static str, bytes: Vec<u8>) -> (String, tokio::task::JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let sending = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut sent = 0;
        while stream.write_all(&bytes).await.is_ok() {
            sent += bytes.len();
        }
        sent
    });
    (url, sending)
}

#[tokio::test]
async fn n20_streams_without_end_are_bounded() {
    const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
    const FAILS: &str = "HTTP/1.1 500 No\r\nContent-Type: application/json\r\n\r\n";
    let line = vec![b'x'; 64 << 10];
    let data = format!("data: {}\n", "y".repeat(1000)).into_bytes();
    let pings = ": ping\n\n".repeat(1000).into_bytes();
    let chunk = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "z".repeat(60_000)
    );
    let call = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":\
         {{\"name\":\"f\",\"arguments\":\"{}\"}}}}]}}}}]}}\n\n",
        "1".repeat(60_000)
    );
    for (head, bytes, codes) in [
        (EVENTS, line.clone(), &[AiCode::Malformed][..]),
        (EVENTS, data, &[AiCode::Malformed]),
        (
            EVENTS,
            pings,
            &[AiCode::TooLarge, AiCode::FirstTokenTimeout],
        ),
        (EVENTS, chunk.into_bytes(), &[AiCode::TooLarge]),
        (EVENTS, call.into_bytes(), &[AiCode::TooLarge]),
        (JSON, line.clone(), &[AiCode::TooLarge]),
        (FAILS, line, &[AiCode::Unavailable]),
    ] {
        let (url, sending) = endless(head, bytes).await;
        let mut config = config(Wire::OpenAi, &url);
        config.timeouts.first_token = 20.0;
        let error = provider(config).generate_text(ask()).await.unwrap_err();
        assert!(
            codes.contains(&error.code),
            "{codes:?}: {:?} {error}",
            error.code
        );
        // The connection is closed, and what was in flight is all that came.
        let sent = sending.await.unwrap();
        assert!(sent < 96 << 20, "{codes:?}: {sent} bytes");
    }
}

#[tokio::test]
async fn prompts_are_bounded_and_refused_before_they_are_sent() {
    let server = server(vec![ModelTurn::text("never")]).await;
    let mut config = config(Wire::OpenAi, &server.url());
    config.max_prompt_bytes = 100;
    let models = provider(config);
    let error = models
        .generate_text(TextRequest::new("x".repeat(101)))
        .await
        .unwrap_err();
    assert_eq!(error.code, AiCode::Invalid);
    assert!(error.message.contains("101 bytes"), "{error}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_service_is_reached_under_a_policy() {
    let server = server(vec![ModelTurn::text("good"); 2]).await;
    let config = config(Wire::OpenAi, &server.url());
    let with = |policy: String| {
        let limits = FetchLimits::default();
        let fetch = HttpFetch::builder()
            .policy(policy.parse().unwrap())
            .limits(limits);
        let fetch = Arc::new(fetch.build().unwrap());
        let built = ModelProvider::builder(config.clone()).fetch(Arc::clone(&fetch));
        (built.build().unwrap(), fetch)
    };
    let (models, _) = with("allow:example.com:443".to_owned());
    let error = models.generate_text(ask()).await.unwrap_err();
    assert_eq!(error.code, AiCode::Denied);
    assert!(server.requests().is_empty());
    let (models, fetch) = with(format!("allow:{}", rule_for(&server.url()).unwrap()));
    assert_eq!(models.generate_text(ask()).await.unwrap().text, "good");
    fetch.set_policy(a99_http::Policy::off());
    let error = models.generate_text(ask()).await.unwrap_err();
    assert_eq!(error.code, AiCode::Denied);
}

#[test]
fn without_a_runtime_there_is_an_error_and_one_may_be_given() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(server(vec![ModelTurn::text("good")]));
    let config = config(Wire::OpenAi, &server.url());
    let models = provider(config.clone());
    let error = a99_capabilities::block_on(models.generate_text(ask())).unwrap_err();
    assert_eq!(error.code, AiCode::Unavailable);
    let models = ModelProvider::builder(config).runtime(runtime.handle().clone());
    let models = models.build().unwrap();
    let mut stream = models.stream_text(ask());
    let first = a99_capabilities::block_on(stream.next());
    assert_eq!(first, Some(StreamEvent::Text("good".to_owned())));
}

#[tokio::test]
async fn services_are_probed() {
    let server = server(Vec::new()).await;
    let mut config = config(Wire::OpenAi, &server.url());
    let gone = ServiceConfig::new(Wire::Anthropic, "http://127.0.0.1:1");
    config.services.insert("gone".to_owned(), gone);
    let roles = vec![format!("local/{MODEL}"), "local/b".to_owned()];
    config.roles.insert("smart".to_owned(), roles);
    let reports = provider(config).probe(Duration::from_secs(10)).await;
    let [gone, local] = &reports[..] else {
        panic!("{reports:?}")
    };
    let error = gone.models.as_ref().unwrap_err();
    assert_eq!(error.code, AiCode::Unreachable, "{error:?}");
    assert_eq!(local.models.as_ref().unwrap(), &[MODEL]);
    assert_eq!(local.wanted, ["b", MODEL]);
    assert_eq!(local.missing().collect::<Vec<_>>(), ["b"]);
}
