//! Hostile events and queries: each is kept exactly or refused, and the server goes on.

use crate::harness::{Server, WAIT, say};
use crate::rest::{answered, ask};
use a99_channels::server::Limits;
use a99_channels::wire::Join;
use a99_runtime::{Participant, Uuid};
use a99_server::ListenOptions;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Sends a body as it is written, and gives status and code of the answer.
async fn post(server: &Server, token: &str, path: &str, body: &[u8]) -> (u16, String) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    let mut stream = TcpStream::connect(server.address).await.expect("a server");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body).await.expect("sent");
    let mut answer = String::new();
    let read = timeout(WAIT, stream.read_to_string(&mut answer)).await;
    read.expect("in time").expect("an answer");
    let status = answer.split(' ').nth(1).expect("a status");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let code = body["error"]["code"].as_str().unwrap_or_default();
    (status.parse().expect("a status"), code.to_owned())
}

fn nested(depth: usize) -> String {
    format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_kept_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(&["read:*", "write:*"]);
    let long = "x".repeat(1 << 20);
    let payloads = [
        json!({"__proto__": {"admin": true}, "constructor": {"prototype": 1}, "": 0}),
        json!("NaN"),
        json!([
            null,
            -0.0,
            1e-300,
            9_007_199_254_740_993_u64,
            u64::MAX,
            i64::MIN
        ]),
        json!("\u{0}\u{202e}\u{feff}\u{10ffff}\r\n\r\ndata: x\n\nid: 7\n"),
        json!("</script><img src=x onerror=alert(1)>"),
        json!(long),
        serde_json::from_str(&nested(100)).expect("JSON"),
    ];
    for payload in &payloads {
        let body = json!({"type": "custom", "name": "__proto__", "payload": payload});
        let sent = json!({"channel": "c", "body": body});
        let (status, answer) = ask(&server, &token, "POST", "/v1/publish", &sent).await;
        assert_eq!(status, 200, "{answer:.200}");
    }
    let message = json!({"channel": "c", "content": long, "metadata": {"__proto__": 1}});
    let (status, sent) = ask(&server, &token, "POST", "/v1/send", &message).await;
    assert_eq!(status, 200, "{sent:.200}");
    let path = "/v1/history?channel=c&after=0";
    let (_, page) = ask(&server, &token, "GET", path, &Value::Null).await;
    let events = page["events"].as_array().expect("events");
    assert_eq!(events.len(), payloads.len() + 1);
    for (event, payload) in events.iter().zip(&payloads) {
        assert_eq!(&event["payload"], payload);
    }
    let last = events.last().expect("one");
    assert_eq!(last["metadata"], json!({"__proto__": 1}));
    assert_eq!(last["content"].as_str().map(str::len), Some(1 << 20));
    // As a stream each event is one block: no text of it begins another one.
    let request = format!(
        "GET /v1/events?channel=c&after=3 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
        server.address
    );
    let mut stream = TcpStream::connect(server.address).await.expect("a server");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains("onerror") {
        let mut bytes = [0; 4096];
        let read = timeout(WAIT, stream.read(&mut bytes)).await;
        let count = read.expect("in time").expect("read");
        assert!(count > 0);
        text.extend_from_slice(&bytes[..count]);
    }
    let text = String::from_utf8_lossy(&text);
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    assert_eq!(ids.collect::<Vec<_>>(), ["4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_event_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(&["read:*", "write:*", "call:*"]);
    let id = "00000000-0000-4000-8000-000000000001";
    let custom = |payload: &str| {
        format!(r#"{{"channel":"c","body":{{"type":"custom","name":"n","payload":{payload}}}}}"#)
    };
    let result = |rest: &str| {
        format!(r#"{{"channel":"c","body":{{"type":"method-result","callId":"{id}",{rest}}}}}"#)
    };
    let call = |name: &str| {
        format!(
            r#"{{"channel":"c","body":{{"type":"method-call","callId":"{id}","methodName":{name},"providerId":"{id}"}}}}"#
        )
    };
    let cases: Vec<Vec<u8>> = [
        custom("NaN"),
        custom("1e999"),
        custom("-Infinity"),
        custom(r#""\ud800""#),
        custom(&nested(1_000)),
        custom(&nested(1_000_000)),
        custom(&"{\"a\":".repeat(10_000)),
        custom("1").replace("custom", "fly"),
        custom("1").replace("\"c\"", "\"\""),
        custom("1").replace("\"c\"", "\"a/b\""),
        custom("1").replace("\"c\"", "\"..\\u0000\""),
        custom("1").replace("\"c\"", &format!("\"{}\"", "x".repeat(129))),
        custom("1").replace("{\"channel\":\"c\"", "{\"channel\":\"c\",\"channel\":\"d\""),
        custom("1").replace("{\"channel\":\"c\"", "{\"channel\":\"c\",\"seq\":-1"),
        format!("{} trailing", custom("1")),
        result(r#""progress":150"#),
        result(r#""progress":-0.5"#),
        result(r#""progress":"NaN""#),
        result(r#""complete":"yes""#),
        call("\"\""),
        call("5"),
        r#"{"channel":"c","body":{"type":"update-message","id":7,"content":"x"}}"#.to_owned(),
        format!(r#"{{"channel":"c","body":{{"type":"error","id":"{id}"}}}}"#),
        r#"{"channel":"c","body":{"type":"presence","action":"join","metadata":{}}}"#.to_owned(),
        r#"{"channel":"c","body":{"type":"agent-debug","payload":{}}}"#.to_owned(),
        format!(r#"{{"channel":"c","participant":"{id}","body":{{"type":"message","content":"x"}}}}"#),
        r#"{"channel":"c","body":{"type":"message","content":"x"},"attachments":[{"mimeType":"a/b","size":3}]}ab"#.to_owned(),
        r#"{"channel":"c","body":{"type":"message","content":"x"},"attachments":[{"mimeType":"a/b","size":1}]}ab"#.to_owned(),
        r#"{"channel":"c","body":{"type":"message","content":"x"},"attachments":[{"mimeType":"a/b","size":-1}]}"#.to_owned(),
        r#"{"channel":"c","body":{"type":"message","content":"x"},"persist":false,"key":"k"}"#.to_owned(),
        String::new(),
        "null".to_owned(),
    ]
    .into_iter()
    .map(String::into_bytes)
    .chain([b"{\"channel\":\"\xff\"}".to_vec()])
    .collect();
    for case in cases {
        let (status, code) = post(&server, &token, "/v1/publish", &case).await;
        let shown = String::from_utf8_lossy(&case[..case.len().min(200)]).into_owned();
        assert_eq!(status, 400, "{code}: {shown}");
        assert!(!code.is_empty(), "{shown}");
    }
    let head = server.host.channel_store().head("c").await;
    assert_eq!(head.expect("a head"), 0, "none is in the log");
    // Ephemeral ones are checked, too.
    let passing =
        result(r#""progress":150"#).replace("\"channel\"", "\"persist\":false,\"channel\"");
    let (status, _) = post(&server, &token, "/v1/publish", passing.as_bytes()).await;
    assert_eq!(status, 400);
}

/// Without a limit one writer makes the roster of a channel too large for any answer.
#[tokio::test(flavor = "multi_thread")]
async fn rosters_stay_readable() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let client = server.client(&["read:*", "write:*"]).await;
    let join = |handle: String, bytes: usize| Join {
        channel: "c".to_owned(),
        handle,
        methods: json!(["x".repeat(bytes)]),
        ..Join::default()
    };
    let large = client.join(join("large".to_owned(), 300 << 10)).await;
    assert_eq!(large.expect_err("refused").code(), "channels.bad_request");
    let small = client.join(join("small".to_owned(), 1)).await;
    let id = small.expect("joined").participant;
    let update =
        json!({"channel": "c", "participant": id, "metadata": {"x": "x".repeat(300 << 10)}});
    let updated = client.request::<Value>("update-metadata", &update).await;
    assert_eq!(updated.expect_err("refused").code(), "channels.bad_request");
    // Together they may still be too many: here one that joined in the server's process.
    let huge = Participant {
        id: Uuid::from_u128(1),
        handle: "huge".to_owned(),
        name: String::new(),
        kind: "panel".to_owned(),
        methods: json!("x".repeat(16 << 20)),
        agent: None,
        metadata: Map::new(),
    };
    server.host.join("c", huge).await.expect("joined");
    let late = client.join(join("late".to_owned(), 1)).await;
    assert_eq!(
        late.expect_err("refused").code(),
        "channels.event_too_large"
    );
    let handles: Vec<_> = server
        .host
        .roster("c")
        .into_iter()
        .map(|who| who.handle)
        .collect();
    assert_eq!(handles, ["small", "huge"], "who was refused is not there");
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_follow_the_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(&["write:*"]);
    let mut body = json!({"channel": "c", "body": {"type": "message", "content": "two"},
        "attachments": [{"mimeType": "a/b", "size": 3}, {"mimeType": "c/d", "name": "n", "size": 2}]})
    .to_string()
    .into_bytes();
    body.extend_from_slice(&[0, 255, b'{', b'}', 10]);
    assert_eq!(post(&server, &token, "/v1/publish", &body).await.0, 200);
    let read = server.host.channel_store().read("c", 0, 9).await;
    let read = read.expect("events");
    let found: Vec<_> = read[0].attachments.iter().map(|one| &*one.data).collect();
    assert_eq!(found, [&[0, 255, b'{'][..], b"}\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_name_no_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(&["read:*", "write:*"]);
    for n in 0..3 {
        let send = json!({"channel": "c", "content": n.to_string()});
        assert_eq!(ask(&server, &token, "POST", "/v1/send", &send).await.0, 200);
    }
    let max = u64::MAX;
    let history: Vec<(String, u16, usize)> = vec![
        ("before=0".into(), 200, 0),
        ("before=4".into(), 200, 3),
        ("before=1000000".into(), 200, 3),
        (format!("before={max}"), 200, 3),
        ("after=3".into(), 200, 0),
        ("after=1000000".into(), 200, 0),
        (format!("after={max}"), 200, 0),
        (format!("after=0&limit={max}"), 200, 3),
        ("after=0&limit=0".into(), 200, 1),
        ("after=%30".into(), 200, 3),
        ("before=-1".into(), 400, 0),
        ("before=1.5".into(), 400, 0),
        ("before=NaN".into(), 400, 0),
        ("before=1e3".into(), 400, 0),
        ("before=0x1".into(), 400, 0),
        ("before=".into(), 400, 0),
        ("before=+%201".into(), 400, 0),
        (format!("after={max}0"), 400, 0),
        ("after=0&after=1".into(), 400, 0),
        ("limit=-1".into(), 400, 0),
        ("limit=2.0".into(), 400, 0),
        ("token=x".into(), 400, 0),
        ("channel=d".into(), 400, 0),
    ];
    for (query, expected, count) in history {
        let path = format!("/v1/history?channel=c&{query}");
        let (status, page) = ask(&server, &token, "GET", &path, &Value::Null).await;
        assert_eq!(status, expected, "{query}: {page}");
        let events = page["events"].as_array().map_or(0, Vec::len);
        assert_eq!(events, count, "{query}: {page}");
    }
    // A stream from a place that does not exist would stay silent.
    for query in [
        "after=4".to_owned(),
        format!("after={max}"),
        "after=-1".to_owned(),
    ] {
        let path = format!("/v1/events?channel=c&{query}");
        let (status, page) = ask(&server, &token, "GET", &path, &Value::Null).await;
        assert_eq!(status, 400, "{query}: {page}");
    }
    for (path, expected) in [
        ("/v1/head?channel=%63", 200),
        // Decoded as forms are: what is no code stands for itself.
        ("/v1/head?channel=%zz", 200),
        ("/v1/head?channel=c%2f..%2fd", 400),
        ("/v1/head?channel=c%00", 400),
        ("/v1/head?channel=%ff", 200),
        ("/v1/head?channel=..", 200),
        ("/v1/head?channel=%E2%80%AEc", 200),
        ("/v1/agents/%2e%2e%2fx", 400),
        ("/v1/agents/a/b/c/d", 400),
        ("/v1/agents/a%2fb/c", 403),
        ("/v1/none", 404),
    ] {
        let (status, answer) = ask(&server, &token, "GET", path, &Value::Null).await;
        assert_eq!(status, expected, "{path}: {answer}");
    }
}

/// Names that are alike: each is a channel of its own, for its own token only.
#[tokio::test(flavor = "multi_thread")]
async fn channels_with_like_names_do_not_cross() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let names = [
        "acme",
        "Acme",
        "acme.",
        "acme..",
        ".acme",
        "acme%2e",
        "acme%",
        "acme?",
        "acme&x=1",
        "acme#",
        "acme:b",
        "acme\\b",
        "acme b",
        "acme+b",
        "e\u{301}",
        "\u{e9}",
        "ａcme",
        "\u{430}cme",
        "\u{202e}acme",
        "acme\u{200b}",
        "..",
        "'; DROP TABLE channel; --",
        "_cme",
        "a%me",
    ];
    let encoded = |name: &str| -> String { name.bytes().map(|b| format!("%{b:02x}")).collect() };
    let mut tokens = Vec::new();
    for name in names {
        let token = server.token(&[&format!("read:{name}"), &format!("write:{name}")]);
        let send = json!({"channel": name, "content": name});
        let (status, answer) = ask(&server, &token, "POST", "/v1/send", &send).await;
        assert_eq!(
            (status, &answer["seq"]),
            (200, &json!(1)),
            "{name}: {answer}"
        );
        tokens.push(token);
    }
    for (at, token) in tokens.iter().enumerate() {
        let (_, channels) = ask(&server, token, "GET", "/v1/channels", &Value::Null).await;
        assert_eq!(channels, json!([[names[at], 1]]));
        for (other, name) in names.iter().enumerate() {
            let path = format!("/v1/history?channel={}", encoded(name));
            let (status, page) = ask(&server, token, "GET", &path, &Value::Null).await;
            if at == other {
                assert_eq!(page["events"][0]["content"], *name);
                assert_eq!(page["events"].as_array().map(Vec::len), Some(1));
            } else {
                assert_eq!(status, 403, "{} reads {name}: {page}", names[at]);
            }
        }
    }
    // Nor does a host's token speak for an agent of another channel.
    let host = server.token(&["host:acme"]);
    let append = json!({"agent": "echo/Acme/echo", "epoch": 9, "events": [{
        "channel": "acme", "id": "00000000-0000-0000-0000-000000000001", "hops": 0,
        "body": {"type": "message", "content": "forged"}}]});
    let (status, answer) = ask(&server, &host, "POST", "/v1/append", &append).await;
    assert_eq!(status, 403, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_idle_and_foreign_clients_beside_one_that_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = ListenOptions {
        hosts: vec!["127.0.0.1".to_owned()],
        ..ListenOptions::default()
    };
    options.limits.header_timeout = Duration::from_secs(1);
    options.limits.body_timeout = Duration::from_secs(1);
    let limits = Limits {
        hello: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = Server::start_with(folder.path(), options, limits).await;
    let token = server.token(&["write:*"]);
    let address = server.address;
    let upgrade = format!(
        "GET /v1/socket HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    );
    let body = format!(
        "POST /v1/send HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: 50\r\n\r\n{{\"channel\":"
    );
    let beginnings = [
        // Nothing; half of a head; half of a body; a socket that stays silent.
        String::new(),
        upgrade[..40].to_owned(),
        body,
        format!("{upgrade}\r\n"),
    ];
    let mut held = Vec::new();
    for n in 0..64 {
        let mut stream = TcpStream::connect(address).await.expect("a server");
        let text = &beginnings[n % beginnings.len()];
        stream.write_all(text.as_bytes()).await.expect("sent");
        held.push(stream);
    }
    let began = Instant::now();
    let client = server.client(&["write:*"]).await;
    let done = client.publish(say("c", "beside them"), Vec::new()).await;
    done.expect("published");
    assert!(began.elapsed() < Duration::from_secs(10), "nobody waits");
    // Each gets its end.
    let mut answers = Vec::new();
    for mut stream in held {
        let mut answer = Vec::new();
        let read = timeout(WAIT, stream.read_to_end(&mut answer)).await;
        drop(read.expect("the server ends it"));
        answers.push(answer);
    }
    let has = |n: usize, part: &[u8]| answers[n].windows(part.len()).any(|found| found == part);
    assert!(has(2, b"408"), "{}", String::from_utf8_lossy(&answers[2]));
    assert!(has(3, b"101 ") && has(3, &4008_u16.to_be_bytes()));
    // Foreign pages, tokens in addresses and wrong ones get no socket.
    for (lines, expected) in [
        ("Origin: https://evil.example\r\n".to_owned(), 403),
        ("Origin: null\r\n".to_owned(), 403),
        ("Authorization: Bearer a99t_x_y\r\n".to_owned(), 401),
        ("Authorization: Basic eDp5\r\n".to_owned(), 101),
    ] {
        let mut stream = TcpStream::connect(address).await.expect("a server");
        let request = format!("{upgrade}{lines}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut status = [0; 12];
        let read = timeout(WAIT, stream.read_exact(&mut status)).await;
        read.expect("in time").expect("an answer");
        let status = String::from_utf8_lossy(&status).into_owned();
        assert_eq!(status, format!("HTTP/1.1 {expected}"), "{lines}");
    }
    let path = format!("/v1/roster?channel=c&token={token}");
    let (status, _, _) = answered(&server, "", "GET", &path, &Value::Null).await;
    assert_eq!(status, 400);
    client
        .publish(say("c", "still"), Vec::new())
        .await
        .expect("published");
}
