//! The inspector's page, its link, and the routes that only it needs.

use crate::harness::Server;
use crate::rest::{answered, ask};
use a99_channels::server::{DeadLetters, Operator};
use a99_frame::WireError;
use a99_runtime::{AgentKey, Trigger};
use a99_runtime_engine::BoxFuture;
use a99_server::{NewToken, Scopes, ServerCode};
use serde_json::{Value, json};
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const AGENT: &str = "/v1/agents/echo/general/echo";

/// Keeps one turn, and notes what becomes of dead letters.
#[derive(Default)]
struct Noted(Mutex<Vec<DeadLetters>>);

impl Operator for Noted {
    fn outbox(&self) -> BoxFuture<'_, Result<usize, WireError>> {
        Box::pin(ready(Ok(2)))
    }

    fn turns<'a>(&'a self, _: &'a AgentKey) -> BoxFuture<'a, Result<Vec<Trigger>, WireError>> {
        Box::pin(ready(Ok(vec![Trigger::Event(7)])))
    }

    fn turn<'a>(
        &'a self,
        agent: &'a AgentKey,
        trigger: &'a Trigger,
    ) -> BoxFuture<'a, Result<Option<Value>, WireError>> {
        let found = (*trigger == Trigger::Event(7)).then(|| json!({"of": agent}));
        Box::pin(ready(Ok(found)))
    }

    fn dead_letters<'a>(
        &'a self,
        agent: &'a AgentKey,
        action: DeadLetters,
    ) -> BoxFuture<'a, Result<Value, WireError>> {
        self.0.lock().expect("no panic").push(action);
        Box::pin(ready(Ok(json!({"key": agent}))))
    }
}

async fn started(folder: &std::path::Path) -> Server {
    let server = Server::start(folder).await;
    let key = "echo/general/echo".parse().expect("a key");
    server.host.invite(&key, json!({})).await.expect("invited");
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_served_when_it_is_on_and_nothing_foreign_may_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = started(folder.path()).await;
    let files = [
        "/inspect",
        "/inspect/page.css",
        "/inspect/page.js",
        "/inspect/agents.js",
    ];
    for path in files {
        let (status, ..) = answered(&server, "", "GET", path, &Value::Null).await;
        assert_eq!(status, 404, "{path}");
    }
    server.channels.inspector().turn_on();
    for path in files {
        let (status, head, body) = answered(&server, "", "GET", path, &Value::Null).await;
        assert_eq!(status, 200, "{path}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(header), "{path}: {head}");
        }
        // Neither resources of others nor ways by which a text becomes HTML.
        for never in [
            "http:",
            "https:",
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
        ] {
            assert!(!body.contains(never), "{path} has {never}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_works_once_and_allows_what_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = started(folder.path()).await;
    let post =
        async |token: &str, path: &str, body: Value| ask(&server, token, "POST", path, &body).await;
    let code = |may_write: bool| {
        let path = server.channels.inspector().link(may_write).expect("a link");
        let code = path.strip_prefix("/inspect#code=").expect("a code");
        code.to_owned()
    };
    let (first, second) = (code(true), code(false));
    assert_ne!(first, second);
    for wrong in [
        "",
        &first,
        &second[1..],
        &second.to_uppercase().replace('0', "1"),
    ] {
        let (status, answer) = post("", "/inspect/session", json!({"code": wrong})).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (401, &json!("server.unauthorized"))
        );
    }
    let (status, answer) = post("", "/inspect/session", json!({"code": second})).await;
    assert_eq!(status, 200, "{answer}");
    let token = answer["token"].as_str().expect("a token").to_owned();
    let (status, _) = post("", "/inspect/session", json!({"code": second})).await;
    assert_eq!(status, 401);

    let said = json!({"channel": "general", "content": "hello"});
    let change = json!({"agent": "echo/general/echo", "action": "retry"});
    let get =
        async |token: &str, path: &str| ask(&server, token, "GET", path, &Value::Null).await.0;
    assert_eq!(get(&token, "/v1/history?channel=general").await, 200);
    assert_eq!(get(&token, AGENT).await, 200);
    assert_eq!(post(&token, "/v1/send", said.clone()).await.0, 403);
    assert_eq!(
        post(&token, "/v1/dead-letters", change.clone()).await.0,
        403
    );
    // It is in no file, and stays although the file changes.
    assert!(server.authority.list().expect("tokens").is_empty());
    server.token(&["read:*"]);
    assert_eq!(get(&token, AGENT).await, 200);

    let (_, answer) = post("", "/inspect/session", json!({"code": code(true)})).await;
    let writing = answer["token"].as_str().expect("a token");
    assert_eq!(post(writing, "/v1/send", said).await.0, 200);
    assert_eq!(post(writing, "/v1/dead-letters", change).await.0, 403);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_shown_to_readers_and_changed_by_operators() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = started(folder.path()).await;
    let get = async |token: &str, path: &str| ask(&server, token, "GET", path, &Value::Null).await;
    let reader = server.token(&["read:general", "inspect:general"]);
    // Who reads a channel does not see what its agents keep.
    let other = server.token(&["read:general", "inspect:other"]);
    let admin = server.token(&["admin"]);
    let turns = "/v1/turns?agent=echo/general/echo";
    let (status, info) = get(&reader, AGENT).await;
    assert_eq!(
        (status, &info["key"], &info["lag"]),
        (200, &json!("echo/general/echo"), &json!(0))
    );
    assert_eq!(info.get("outbox"), None);
    for path in [AGENT, turns] {
        assert_eq!(get(&other, path).await.0, 403, "{path}");
        assert_eq!(get("", path).await.0, 401, "{path}");
    }
    assert_eq!(get(&admin, "/v1/agents/none/general/none").await.0, 404);
    for token in [&admin, &reader] {
        let (status, all) = get(token, "/v1/agents").await;
        assert_eq!(
            (status, &all["agents"]),
            (200, &json!(["echo/general/echo"]))
        );
    }
    assert_eq!(get(&other, "/v1/agents").await.0, 403);
    assert_eq!(get(&admin, "/v1/agents/none").await.0, 400);
    // A server without agents has no operator.
    let change = async |token: &str, action: &str| {
        let body = json!({"agent": "echo/general/echo", "action": action});
        ask(&server, token, "POST", "/v1/dead-letters", &body)
            .await
            .0
    };
    assert_eq!(
        (get(&reader, turns).await.0, change(&admin, "drop").await),
        (404, 404)
    );

    let noted = Arc::new(Noted::default());
    let operator = Arc::clone(&noted) as Arc<dyn Operator>;
    server.channels.inspector().operate(operator);
    assert_eq!(get(&reader, AGENT).await.1["outbox"], 2);
    assert_eq!(get(&reader, turns).await.1, json!({"turns": ["event:7"]}));
    let turn = async |turn: &str| get(&reader, &format!("{turns}&turn={turn}")).await;
    assert_eq!(
        turn("event:7").await,
        (200, json!({"of": "echo/general/echo"}))
    );
    assert_eq!((turn("event:8").await.0, turn("x").await.0), (404, 400));
    assert_eq!(change(&reader, "drop").await, 403);
    assert_eq!(change(&admin, "forget").await, 400);
    assert!(noted.0.lock().expect("no panic").is_empty());
    assert_eq!(
        (change(&admin, "retry").await, change(&admin, "drop").await),
        (200, 200)
    );
    let done = std::mem::take(&mut *noted.0.lock().expect("no panic"));
    assert_eq!(done, [DeadLetters::Retry, DeadLetters::Drop]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_in_memory_expire_and_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = started(folder.path()).await;
    let issue = |lifetime: Duration| {
        let new = NewToken {
            name: "tab".to_owned(),
            scopes: Scopes::parse(&["read:*"]).expect("scopes"),
            lifetime: Some(lifetime),
        };
        server.authority.issue_in_memory(&new).expect("a token")
    };
    let code = |token: &str| {
        server
            .authority
            .check(token)
            .err()
            .map(|error| error.code())
    };
    let short = issue(Duration::ZERO);
    assert_eq!(code(&short), Some(ServerCode::TokenExpired));
    let first = issue(Duration::from_secs(60));
    let grant = server.authority.check(&first).expect("valid");
    assert!(server.authority.is_valid(&grant));
    for _ in 0..63 {
        issue(Duration::from_secs(60));
    }
    assert_eq!(code(&first), None);
    issue(Duration::from_secs(60));
    assert_eq!(code(&first), Some(ServerCode::Unauthorized));
    assert!(!server.authority.is_valid(&grant));
    server.stop().await;
}
