//! Keys stay where they are: sent to their service, and shown nowhere.

use crate::{config, provider, server};
use a99_capabilities::Capabilities;
use a99_capabilities::ai::{AiProvider, ModelTurn, TextRequest};
use a99_models::{ModelCode, ModelConfig, ModelProvider, Secret, ServiceConfig, Wire};
use agent99::{Engine, Next, RunOptions, json};
use std::time::Duration;

const KEY: &str = "sk-proj-0123456789abcdef";

fn with_key(wire: Wire, url: &str) -> ModelConfig {
    let mut config = config(wire, url);
    config.services.get_mut("local").unwrap().key = Some(Secret::new(KEY));
    config
}

#[tokio::test]
async fn keys_are_sent_in_the_services_header() {
    for (wire, own, name, value) in [
        (Wire::OpenAi, None, "authorization", format!("Bearer {KEY}")),
        (Wire::Anthropic, None, "x-api-key", KEY.to_owned()),
        (Wire::OpenAi, Some("api-key"), "api-key", KEY.to_owned()),
        (Wire::Gemini, None, "x-goog-api-key", KEY.to_owned()),
        (
            Wire::Responses,
            None,
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (
            Wire::Anthropic,
            Some("Authorization"),
            "authorization",
            format!("Bearer {KEY}"),
        ),
    ] {
        let server = server(vec![ModelTurn::text("good")]).await;
        let mut config = with_key(wire, &server.url());
        config.services.get_mut("local").unwrap().key_header = own.map(str::to_owned);
        provider(config)
            .generate_text(TextRequest::new("x"))
            .await
            .unwrap();
        let request = server.requests().remove(0);
        assert_eq!(request.header(name), Some(&*value), "{wire:?}");
        let version = request.header("anthropic-version");
        assert_eq!(version.is_some(), wire == Wire::Anthropic);
    }
}

#[tokio::test]
async fn n20_no_error_and_no_printed_value_has_a_key() {
    for wire in Wire::ALL {
        let told = |message: String| ModelTurn {
            status: Some(401),
            message: Some(message),
            ..ModelTurn::default()
        };
        let server = server(vec![
            told(format!("Incorrect API key provided: {KEY}.")),
            told("the key sk-proj-0123**** is not one".to_owned()),
            told(format!("{}{KEY}", "x".repeat(290))),
        ])
        .await;
        let config = with_key(*wire, &server.url());
        let mut shown = format!("{config:?} {:?}", ModelProvider::builder(config.clone()));
        let models = provider(config);
        shown.push_str(&format!("{models:?}"));
        for _ in 0..3 {
            let error = models
                .generate_text(TextRequest::new("x"))
                .await
                .unwrap_err();
            shown.push_str(&format!(" {error} {error:?}"));
        }
        for piece in [KEY, "sk-proj-", "0123456", "abcdef"] {
            assert!(!shown.contains(piece), "{piece}: {shown}");
        }
        assert!(
            shown.contains("Incorrect API key provided: ......"),
            "{shown}"
        );
    }
}

/// All that a host may keep of a run: snapshots at each call, inputs of calls, events of the
/// trace, usage, the outcome.
async fn kept(program: &str, models: ModelProvider) -> Vec<Vec<u8>> {
    let engine = Engine::new();
    let agent = engine.compile(program).unwrap();
    let granted = Capabilities::none().with_ai(models);
    let (sink, events) = std::sync::mpsc::sync_channel(100);
    let options = RunOptions::new().trace(true).trace_to(sink);
    let mut run = engine.start(&agent, json!({}), options, granted);
    let mut kept = Vec::new();
    loop {
        match run.next(Duration::ZERO) {
            Next::Call(call) => {
                kept.push(run.snapshot().unwrap());
                kept.push(format!("{call:?} {:?}", call.args()).into_bytes());
                let id = call.id.clone();
                let answer = call.start(None).await;
                kept.push(format!("{answer:?}").into_bytes());
                run.answer(&id, answer).unwrap();
                kept.push(run.snapshot().unwrap());
            }
            Next::Done(outcome) => {
                kept.push(format!("{outcome:?}").into_bytes());
                kept.push(serde_json::to_vec(&*outcome).unwrap());
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    drop(run);
    kept.extend(events.iter().map(|event| format!("{event:?}").into_bytes()));
    kept
}

#[tokio::test]
async fn n20_nothing_that_is_kept_of_a_run_has_a_key() {
    const PROGRAM: &str = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "llmPredict", "prompt": "Hello?", "result": "a"},
        {"op": "consoleLog", "message": "a"},
        {"op": "try", "try": [
            {"op": "llmPredictBattery", "user": "And now?", "result": "b"}
        ], "catch": [{"op": "varSet", "key": "b", "value": "error"}]},
        {"op": "llmPredict", "prompt": "Once more?", "result": "c"},
        {"op": "return", "value": {"a": "a", "b": "b", "c": "c"}}
    ]}"#;
    for wire in Wire::ALL {
        let refused = || ModelTurn {
            status: Some(401),
            message: Some(format!("Incorrect API key provided: {KEY}.")),
            ..ModelTurn::default()
        };
        let server = server(vec![ModelTurn::text("good"), refused(), refused()]).await;
        let kept = kept(PROGRAM, provider(with_key(*wire, &server.url()))).await;
        assert_eq!(server.requests().len(), 3);
        let sent = format!("{:?}", server.requests()[0].headers);
        assert!(sent.contains(KEY), "{sent}");
        let all = kept.iter().map(|bytes| String::from_utf8_lossy(bytes));
        let all: Vec<_> = all.collect();
        let mentions = |piece: &str| all.iter().filter(|text| text.contains(piece)).count();
        assert!(mentions("good") >= 5, "what is kept is looked through");
        assert!(mentions("Incorrect API key") >= 4);
        for piece in [KEY, "sk-proj-", "0123456789abcdef"] {
            assert_eq!(mentions(piece), 0, "{piece}");
        }
    }
}

#[test]
fn mistakes_of_configurations_have_a_place() {
    let of = |text: &str| -> ModelConfig { toml::from_str(text).unwrap() };
    let one = "[services.a]\nurl = 'http://localhost:1'\n[roles]\ndefault = 'a/m'\n";
    assert!(ModelProvider::new(of(one)).is_ok());
    for (text, code, message) in [
        ("", ModelCode::Service, "there is no service"),
        (
            "[services.a]\nurl = 'http://localhost:1'",
            ModelCode::Role,
            "roles.default",
        ),
        (
            "[services.local]\nurl = 'http://localhost:1'\n[roles]\ndefault = 'locl/m'",
            ModelCode::Role,
            "roles.default: no service is called `locl`; did you mean `local`?",
        ),
        (
            "[services.a]\nurl = 'http://localhost:1'\n[roles]\ndefault = ['m']",
            ModelCode::Role,
            "roles.default: `m` is not SERVICE/MODEL",
        ),
        (
            "[services.a]\nurl = 'http://localhost:1'\n[roles]\ndefault = []",
            ModelCode::Role,
            "roles.default: a role has a name",
        ),
        (
            "[services.a]\nurl = 'ftp://localhost:1'\n[roles]\ndefault = 'a/m'",
            ModelCode::Url,
            "services.a.url: ",
        ),
        (
            "[services.'a/b']\nurl = 'http://localhost:1'\n[roles]\ndefault = 'a/m'",
            ModelCode::Service,
            "services.a/b: the name of a service",
        ),
        (
            "[services.a]\nurl = 'http://localhost:1'\n[roles]\ndefault = 'a/m'\n\
             [timeouts]\nidle = 0",
            ModelCode::Limit,
            "timeouts.idle: 0 is not",
        ),
        (
            "[services.a]\nurl = 'http://localhost:1'\n[roles]\ndefault = 'a/m'\n\
             [prices.'a/m']\nprompt = -1",
            ModelCode::Price,
            "prices.\"a/m\".prompt: -1",
        ),
    ] {
        let error = ModelProvider::new(of(text)).unwrap_err();
        assert_eq!(error.code(), code, "{text}: {error}");
        assert!(
            error.to_string().starts_with(message) || error.to_string().contains(message),
            "{error}"
        );
    }
    assert!(toml::from_str::<ModelConfig>("[services.a]\nurl = ''\nurk = 1").is_err());
}

#[test]
fn keys_go_out_encrypted_or_not_at_all() {
    let mut config = with_key(Wire::OpenAi, "http://models.example/v1");
    let error = ModelProvider::new(config.clone()).unwrap_err();
    assert_eq!(error.code(), ModelCode::Key);
    assert!(!error.to_string().contains(KEY), "{error}");
    let secure = ServiceConfig {
        key: Some(Secret::new(KEY)),
        ..ServiceConfig::new(Wire::OpenAi, "https://models.example/v1")
    };
    config.services.insert("local".to_owned(), secure);
    assert!(ModelProvider::new(config).is_ok());
}

#[test]
fn keys_come_from_variables() {
    let text =
        "[services.a]\nurl = 'https://models.example'\nkey-env = 'A_KEY'\n[roles]\ndefault = 'a/m'";
    let mut config: ModelConfig = toml::from_str(text).unwrap();
    config
        .read_keys(|name| (name == "A_KEY").then(|| format!("{KEY}\n")))
        .unwrap();
    assert_eq!(config.services["a"].key.as_ref().unwrap().expose(), KEY);
    let error = config.read_keys(|_| Some(String::new())).unwrap_err();
    assert_eq!(error.code(), ModelCode::Key);
    assert!(error.to_string().contains("services.a: ") && error.to_string().contains("A_KEY"));
}
