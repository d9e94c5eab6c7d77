//! Options of services and of requests: prompt caches, limits for each minute, and what a wire
//! does not have.

use crate::budgets::{answer, limited, metered, prompt, raw};
use crate::{config, provider, server};
use a99_capabilities::ai::{
    AiCode, AiProvider, Effort, MeteredAi, ModelTurn, Payer, TextRequest, TokenEstimate, Tool,
};
use a99_core::value::{Map, Value};
use a99_models::{ModelConfig, Price, Retries, ServiceConfig, Wire};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A service of Anthropic's that is asked to cache, of which a token costs 10 millionths.
fn caching(url: &str) -> ModelConfig {
    let mut config = config(Wire::Anthropic, url);
    config.services.get_mut("local").unwrap().prompt_cache = true;
    let price = Price {
        prompt: 10.0,
        cached: Some(1.0),
        completion: 10.0,
        ..Price::default()
    };
    config.prices.insert("local/*".to_owned(), price);
    config
}

#[tokio::test]
async fn d14_prompt_caches_are_marked_and_paid_at_their_dearest() {
    let sent = TokenEstimate::of_request(&prompt());
    // What is reported is paid part by part: 20 fresh, 80 written at 1.25, 20 read at 0.1.
    let usage = r#"{"input_tokens": 20, "cache_creation_input_tokens": 80, "cache_read_input_tokens": 20, "output_tokens": 15}"#;
    for streamed in [false, true] {
        for (usage, micro) in [
            (usage, 200 + 1_000 + 20 + 150),
            // Nobody knows what was written: all of it.
            ("", (sent.likely * 25).div_ceil(2) + 140),
        ] {
            let (url, bodies) = raw(answer(Wire::Anthropic, streamed, usage)).await;
            let mut config = caching(&url);
            config.services.get_mut("local").unwrap().stream = streamed;
            let account = limited(None, Some(1.0));
            let asked = metered(config, &account).generate_text(prompt()).await;
            let came = asked.unwrap();
            let spent = account.usage().spent.money.micro();
            assert!(spent.abs_diff(micro) <= 60, "{usage}: {spent}, not {micro}");
            if !usage.is_empty() {
                assert_eq!((spent, came.usage.written_tokens), (micro, 80));
            }
            let body = bodies.lock().unwrap()[0].to_json_string();
            assert!(
                body.contains(r#""cache_control":{"type":"ephemeral"}"#),
                "{body}"
            );
        }
    }
    // A prompt that could be sent if nothing of it were written is not.
    let (url, bodies) = raw(answer(Wire::Anthropic, false, "")).await;
    let money = (sent.likely * 11) as f64 / 1e6;
    for (cache, asked) in [(true, 0), (false, 1)] {
        let mut config = caching(&url);
        config.services.get_mut("local").unwrap().prompt_cache = cache;
        let account = limited(None, Some(money));
        let result = metered(config, &account).generate_text(prompt()).await;
        assert_eq!(bodies.lock().unwrap().len(), asked, "{result:?}");
    }
    // Many requests of one budget end at it.
    let account = limited(None, Some(0.02));
    let models = metered(caching(&url), &account);
    for _ in 0..40 {
        let _ = models.generate_text(prompt()).await;
    }
    let spent = account.usage().spent.money.micro();
    assert!((10_000..=20_000).contains(&spent), "{spent}");
}

#[tokio::test]
async fn d14_tools_system_and_the_last_message_are_marked() {
    let (url, bodies) = raw(answer(Wire::Anthropic, false, "")).await;
    let models = provider(caching(&url));
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        description: None,
        input_schema: Value::Object(
            [("type", Value::from("object"))]
                .into_iter()
                .collect::<Map>(),
        ),
    };
    let request = TextRequest::new("Hi")
        .system("Be brief.")
        .tool(tool("a"))
        .tool(tool("b"));
    models.generate_text(request).await.unwrap();
    let body = bodies.lock().unwrap()[0].clone();
    let marked = |value: &Value| value.get("cache_control").is_some();
    let list = |key: &str| body.get(key).unwrap().as_array().unwrap().to_vec();
    assert_eq!(
        list("tools").iter().map(marked).collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(
        list("system").iter().map(marked).collect::<Vec<_>>(),
        [true]
    );
    let message = list("messages").pop().unwrap();
    let content = message.get("content").unwrap().as_array().unwrap();
    assert!(content.len() == 1 && marked(&content[0]), "{message:?}");
    assert_eq!(body.to_json_string().matches("ephemeral").count(), 3);
}

#[tokio::test]
async fn d14_wires_without_a_cache_to_ask_for_refuse_the_option() {
    for wire in [Wire::OpenAi, Wire::Gemini, Wire::Responses] {
        let mut config = config(wire, "http://127.0.0.1:1");
        config.services.get_mut("local").unwrap().prompt_cache = true;
        let error = a99_models::ModelProvider::new(config).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("services.local.prompt-cache"), "{text}");
    }
    for (requests, tokens) in [(Some(0), None), (None, Some(0))] {
        let mut config = config(Wire::OpenAi, "http://127.0.0.1:1");
        let service = config.services.get_mut("local").unwrap();
        service.requests_per_minute = requests;
        service.tokens_per_minute = tokens;
        let error = a99_models::ModelProvider::new(config).unwrap_err();
        assert_eq!(error.code().name(), "models.limit");
    }
}

#[tokio::test]
async fn d14_what_a_wire_has_not_is_asked_of_the_roles_next_model() {
    for wire in [Wire::Anthropic, Wire::Responses] {
        let served = server(vec![ModelTurn::text("a"), ModelTurn::text("b")]).await;
        let effort = match wire {
            Wire::Anthropic => Effort::None,
            _ => Effort::Max,
        };
        let wanted = || TextRequest {
            effort: Some(effort),
            ..TextRequest::new("x")
        };
        let alone = provider(config(wire, &served.url()));
        let error = alone.generate_text(wanted()).await.unwrap_err();
        assert_eq!(error.code, AiCode::Invalid);
        assert!(
            error.message.contains("the wire `") && error.message.contains("`local`"),
            "{error}"
        );
        assert!(served.requests().is_empty());
        let mut both = config(wire, &served.url());
        let next = if effort == Effort::None {
            Wire::OpenAi
        } else {
            Wire::Anthropic
        };
        let other = ServiceConfig::new(next, served.url());
        both.services.insert("other".to_owned(), other);
        both.roles
            .get_mut("default")
            .unwrap()
            .push("other/m".to_owned());
        let came = provider(both).generate_text(wanted()).await.unwrap();
        assert_eq!((&*came.text, came.model.as_deref()), ("a", Some("other/m")));
    }
}

/// A service that is sent so many requests a minute.
fn slowly(url: &str, requests: u32) -> ModelConfig {
    let mut config = config(Wire::OpenAi, url);
    config
        .services
        .get_mut("local")
        .unwrap()
        .requests_per_minute = Some(requests);
    config
}

#[tokio::test]
async fn d14_a_request_beyond_the_minutes_limit_waits_or_is_told_why_not() {
    let served = server(vec![ModelTurn::text("a"); 4]).await;
    let models = provider(slowly(&served.url(), 2));
    for _ in 0..2 {
        models.generate_text(TextRequest::new("x")).await.unwrap();
    }
    // Whoever shares the service and its key shares the limit.
    let others = provider(slowly(&served.url(), 2));
    let waits = tokio::time::timeout(
        Duration::from_millis(300),
        others.generate_text(TextRequest::new("x")),
    );
    assert!(waits.await.is_err(), "it waits for its turn");
    assert_eq!(served.requests().len(), 2);
    // A caller whose time ends before is told at once, and pays nothing.
    let account = limited(Some(10_000), None);
    let soon = Instant::now() + Duration::from_secs(20);
    let payer = Payer::new(account.clone()).with_deadline(Some(soon));
    let started = Instant::now();
    let hasty = MeteredAi::new(Arc::new(models), payer);
    let error = hasty
        .generate_text(TextRequest::new("x"))
        .await
        .unwrap_err();
    assert_eq!(error.code, AiCode::Throttled);
    assert!(error.message.contains("2 requests a minute"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(
        (account.usage().spent.tokens, account.left().tokens),
        (0, 10_000)
    );
    assert_eq!(served.requests().len(), 2);
    // Another service of the role answers meanwhile.
    let mut both = slowly(&served.url(), 2);
    both.timeouts.total = 10.0;
    let other = ServiceConfig::new(Wire::OpenAi, served.url());
    both.services.insert("other".to_owned(), other);
    both.roles
        .get_mut("default")
        .unwrap()
        .push("other/m".to_owned());
    let came = provider(both).generate_text(TextRequest::new("x")).await;
    assert_eq!(came.unwrap().model.as_deref(), Some("other/m"));
}

#[tokio::test]
async fn d14_the_time_that_a_service_asks_for_holds_for_all_of_it() {
    let busy = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n";
    let (url, bodies) = raw(busy.to_owned()).await;
    let mut config = slowly(&url, 100);
    config.retries = Retries::none();
    config.timeouts.total = 10.0;
    let models = provider(config);
    let first = models
        .generate_text(TextRequest::new("x"))
        .await
        .unwrap_err();
    assert_eq!(first.code, AiCode::RateLimited);
    let next = models
        .generate_text(TextRequest::new("x"))
        .await
        .unwrap_err();
    assert_eq!(next.code, AiCode::Throttled);
    assert!(
        next.retry_after
            .is_some_and(|wait| wait > Duration::from_secs(20))
    );
    assert_eq!(bodies.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn d14_tokens_of_a_minute_count_as_they_are_reported() {
    let served = server(vec![ModelTurn::text("a"); 20]).await;
    let mut config = config(Wire::OpenAi, &served.url());
    config.services.get_mut("local").unwrap().tokens_per_minute = Some(2_000);
    config.timeouts.total = 5.0;
    let models = provider(config);
    // Each keeps room for an answer of a thousand tokens, and uses a few.
    let all = (0..10).map(|_| {
        let models = models.clone();
        tokio::spawn(async move { models.generate_text(TextRequest::new("x")).await })
    });
    for asked in all.collect::<Vec<_>>() {
        asked.await.unwrap().unwrap();
    }
    let long = TextRequest::new("word ".repeat(5_000));
    let error = models.generate_text(long).await.unwrap_err();
    assert_eq!(error.code, AiCode::Throttled);
    assert!(error.message.contains("2000 tokens a minute"), "{error}");
    assert_eq!(served.requests().len(), 10);
}
