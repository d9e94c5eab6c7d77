//! The routes for clients without a socket.

use crate::harness::{Server, WAIT};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Sends a request on a connection of its own, and gives status and body.
pub(crate) async fn ask(
    server: &Server,
    token: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let (status, _, body) = answered(server, token, method, path, body).await;
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// Sends a request, and gives status, head and body.
pub(crate) async fn answered(
    server: &Server,
    token: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, String, String) {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connected");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let read = timeout(WAIT, stream.read_to_string(&mut answer)).await;
    read.expect("in time").expect("an answer");
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    let head = head.to_ascii_lowercase();
    (status.expect("a status"), head, body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn send_update_publish_call_and_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let key = "echo/general/echo".parse().expect("a key");
    server.host.invite(&key, json!({})).await.expect("invited");
    let token = server.token(&["read:*", "write:*", "call:*"]);
    let post = async |path: &str, body: Value| ask(&server, &token, "POST", path, &body).await;
    let get = async |path: &str| ask(&server, &token, "GET", path, &Value::Null).await;
    let base = server
        .host
        .channel_store()
        .head("general")
        .await
        .expect("a head");

    let sent = json!({"channel": "general", "content": "one", "key": "k"});
    let (status, first) = post("/v1/send", sent.clone()).await;
    assert_eq!(
        (status, &first["seq"], &first["isNew"]),
        (200, &json!(base + 1), &json!(true))
    );
    let (_, again) = post("/v1/send", sent).await;
    assert_eq!(
        (&again["seq"], &again["isNew"], &again["id"]),
        (&first["seq"], &json!(false), &first["id"])
    );
    let (status, _) = post(
        "/v1/send",
        json!({"channel": "general", "content": "two", "key": "k"}),
    )
    .await;
    assert_eq!(status, 409);
    let update =
        json!({"channel": "general", "id": first["id"], "content": " more", "complete": true});
    assert_eq!(post("/v1/update", update).await.1["seq"], json!(base + 2));
    let custom =
        json!({"channel": "general", "body": {"type": "custom", "name": "n", "payload": 1}});
    assert_eq!(post("/v1/publish", custom).await.1["seq"], json!(base + 3));
    let at = json!({"channel": "general", "content": "to echo", "at": ["@Echo"]});
    assert_eq!(post("/v1/send", at).await.1["seq"], json!(base + 4));
    let (status, unknown) = post(
        "/v1/send",
        json!({"channel": "general", "content": "x", "at": ["@bob"]}),
    )
    .await;
    assert_eq!(
        (status, &unknown["error"]["code"]),
        (404, &json!("provider-not-found"))
    );
    assert!(
        unknown["error"]["message"]
            .as_str()
            .expect("a message")
            .contains("@echo")
    );

    let call =
        json!({"channel": "general", "provider": "echo", "method": "double", "args": {"n": 4}});
    assert_eq!(post("/v1/call", call).await, (200, json!({"answer": 8.0})));

    let (_, page) = get(&format!("/v1/history?channel=general&after={base}&limit=2")).await;
    let seqs: Vec<_> = page["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|e| e["seq"].clone())
        .collect();
    assert_eq!(
        (seqs, &page["hasMore"]),
        (vec![json!(base + 1), json!(base + 2)], &json!(true))
    );
    let (_, roster) = get("/v1/roster?channel=general").await;
    assert_eq!(roster[0]["handle"], "echo");
    let (_, agents) = get("/v1/agents?channel=general").await;
    assert_eq!(
        agents,
        json!({"known": ["echo"], "agents": ["echo/general/echo"]})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(&["read:mine"]);
    let cases = [
        (
            "GET",
            "/v1/history?channel=other",
            Value::Null,
            403,
            "server.forbidden",
        ),
        (
            "POST",
            "/v1/send",
            json!({"channel": "mine", "content": "x"}),
            403,
            "server.forbidden",
        ),
        (
            "GET",
            "/v1/history",
            Value::Null,
            400,
            "channels.bad_request",
        ),
        (
            "GET",
            "/v1/history?channel=mine&fast=1",
            Value::Null,
            400,
            "channels.bad_request",
        ),
        (
            "POST",
            "/v1/send",
            json!({"channel": "mine"}),
            400,
            "channels.bad_request",
        ),
        ("POST", "/v1/send", json!([1]), 400, "channels.bad_request"),
    ];
    for (method, path, body, status, code) in cases {
        let (found, answer) = ask(&server, &token, method, path, &body).await;
        assert_eq!(
            (found, &answer["error"]["code"]),
            (status, &json!(code)),
            "{path} {answer}"
        );
    }
    let (status, answer) = ask(
        &server,
        "wrong",
        "GET",
        "/v1/roster?channel=mine",
        &Value::Null,
    )
    .await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (401, &json!("server.unauthorized"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_events_goes_on_after_the_last_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(&["read:*", "write:*"]);
    for n in 0..3 {
        let send = json!({"channel": "c", "content": n.to_string()});
        assert_eq!(ask(&server, &token, "POST", "/v1/send", &send).await.0, 200);
    }
    let request = format!(
        "GET /v1/events?channel=c HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
         Last-Event-ID: 1\r\n\r\n",
        server.address
    );
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connected");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let send = json!({"channel": "c", "content": "live"});
    ask(&server, &token, "POST", "/v1/send", &send).await;
    let mut text = String::new();
    while !text.contains("live") {
        let mut bytes = [0; 4096];
        let count = timeout(WAIT, stream.read(&mut bytes))
            .await
            .expect("in time")
            .expect("read");
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let ids: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    assert_eq!(ids, ["2", "3", "4"]);
}
