//! `/metrics`: who may read it, its form, and what it counts.

use crate::harness::{Server, WAIT};
use a99_channels::client::{ChannelTransport, Client, ClientOptions};
use a99_channels::server::ChannelServer;
use a99_channels::wire::Publish;
use a99_runtime::metrics::{Family, Kind};
use a99_runtime::{Agent, Body, Event, Host, Message, Turn, TurnOutcome};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use a99_server::{ListenOptions, Listener};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn families() -> impl Iterator<Item = Family> {
    let of_host = a99_runtime::metrics::FAMILIES.into_iter();
    of_host.chain(a99_channels::server::FAMILIES)
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Reads `name="value",...}`, and gives the labels and the rest of the line.
fn labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut found = Vec::new();
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name), "{name}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("the end of a value") {
                (at, '"') => break at + 1,
                (_, '\\') => match chars.next().expect("an escape").1 {
                    'n' => value.push('\n'),
                    c @ ('"' | '\\') => value.push(c),
                    c => panic!("the escape \\{c}"),
                },
                (_, c) => value.push(c),
            }
        };
        found.push((name.to_owned(), value));
        rest = after.get(end..).expect("a rest");
        match rest.split_at(1) {
            (",", more) => rest = more,
            ("}", more) => return (found, more),
            (other, _) => panic!("{other} after a label"),
        }
    }
}

type Series = BTreeMap<(String, Vec<(String, String)>), f64>;

/// Parses an exposition: each metric has its `HELP` and `TYPE` once, before its samples, and no
/// series is there twice.
fn parse(text: &str) -> Series {
    assert!(text.ends_with('\n'));
    let known: BTreeMap<_, _> = families().map(|family| (family.name, family)).collect();
    let (mut series, mut types) = (Series::new(), BTreeMap::new());
    let mut current = None;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a help");
            assert_eq!(known[name].help, help);
            current = Some(name.to_owned());
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert_eq!(current.as_deref(), Some(name));
            assert_eq!(known[name].kind.name(), kind);
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none());
            continue;
        }
        let end = line.find(['{', ' ']).expect("a value");
        let (name, rest) = line.split_at(end);
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest),
            None => (Vec::new(), rest),
        };
        let value: f64 = value
            .strip_prefix(' ')
            .expect("a space")
            .parse()
            .expect(line);
        let family = current.as_deref().expect("a type before samples");
        let suffix = name.strip_prefix(family).expect("samples of the metric");
        let is_histogram = known[family].kind == Kind::Histogram;
        let is_part = ["_bucket", "_sum", "_count"].contains(&suffix);
        assert_eq!(
            (is_histogram, suffix.is_empty()),
            (is_part, !is_part),
            "{line}"
        );
        let names = labels.iter().map(|(name, _)| name.as_str());
        let names: Vec<_> = names.filter(|name| *name != "le").collect();
        assert_eq!(names, known[family].labels, "{line}");
        assert!(
            series.insert((name.to_owned(), labels), value).is_none(),
            "{line}"
        );
    }
    assert_eq!(types.len(), known.len(), "all metrics are there");
    series
}

/// Serves `/metrics` beside the server, and gives status and body for a token.
async fn get(channels: &ChannelServer, is_open: bool, token: Option<&str>) -> (u16, String) {
    let listener = Listener::bind(ListenOptions::default())
        .await
        .expect("a listener");
    let address = listener.address();
    let serving =
        tokio::spawn(listener.serve(channels.metrics_router(is_open), std::future::pending()));
    let token = token.map_or(String::new(), |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\n\r\n");
    let mut stream = tokio::net::TcpStream::connect(address)
        .await
        .expect("connected");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(WAIT, stream.read_to_end(&mut answer)).await;
    read.expect("in time").expect("an answer");
    serving.abort();
    let answer = String::from_utf8(answer).expect("text");
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    if status == Some(200) {
        assert!(
            head.contains("content-type: text/plain; version=0.0.4"),
            "{head}"
        );
        assert!(!head.to_ascii_lowercase().contains("chunked"), "{head}");
    }
    (status.expect("a status"), body.to_owned())
}

fn message(channel: &str, content: &str, metadata: Option<Value>) -> Publish {
    let mut message = Message::text(content);
    message.metadata = metadata;
    Publish {
        channel: channel.to_owned(),
        body: Body::Message(message),
        participant: None,
        key: None,
        persist: true,
        attachments: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_need_a_token_and_parse() {
    // Names that programs and clients choose.
    const CHANNEL: &str = "x\"} 1 \\n{";
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let key = format!("echo/{CHANNEL}/ec\\\"ho").parse().expect("a key");
    server.host.invite(&key, json!({})).await.expect("invited");
    let client = server.client(&["read:*", "write:*"]).await;
    let mut events = client
        .subscribe(CHANNEL, Some(0), false)
        .await
        .expect("subscribed");
    client
        .publish(message(CHANNEL, "echo 1", None), Vec::new())
        .await
        .expect("published");
    loop {
        let event = events.next().await.expect("an event");
        if matches!(&event.body, Body::Message(message) if message.content.starts_with('#')) {
            break;
        }
    }
    let refused = client.publish(message("a/b", "x", None), Vec::new()).await;
    assert!(refused.is_err());
    let unknown = client.request::<Value>("made up \"}", &json!({})).await;
    assert!(unknown.is_err());

    for scopes in [&["read:x*"][..], &["write:*"], &["admin:*", "read:y"][..1]] {
        let (status, body) = get(&server.channels, false, Some(&server.token(scopes))).await;
        // `admin:*` allows all on all channels.
        match scopes {
            ["admin:*"] => assert_eq!(status, 200),
            _ => {
                assert_eq!(status, 403, "{scopes:?}");
                assert!(body.contains("server.forbidden"), "{body}");
            }
        }
    }
    assert_eq!(get(&server.channels, false, None).await.0, 401);
    assert_eq!(get(&server.channels, false, Some("a99t_x_y")).await.0, 401);
    assert_eq!(get(&server.channels, true, None).await.0, 200);
    assert_eq!(
        get(&server.channels, false, Some(&server.token(&["admin"])))
            .await
            .0,
        200
    );
    let (status, text) = get(&server.channels, false, Some(&server.token(&["read:*"]))).await;
    assert_eq!(status, 200);

    let series = parse(&text);
    let value = |name: &str, labels: &[(&str, &str)]| {
        let labels = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let key = (name.to_owned(), labels.collect());
        *series
            .get(&key)
            .unwrap_or_else(|| panic!("{key:?} in\n{text}"))
    };
    assert_eq!(value("a99_connections", &[]), 1.0);
    assert_eq!(value("a99_connections_opened_total", &[]), 1.0);
    assert_eq!(value("a99_subscriptions", &[]), 1.0);
    assert_eq!(value("a99_events_published_total", &[]), 1.0);
    assert!(value("a99_events_delivered_total", &[]) >= 2.0);
    assert!(value("a99_socket_bytes_total", &[("direction", "in")]) > 100.0);
    assert!(value("a99_socket_bytes_total", &[("direction", "out")]) > 100.0);
    let requests = |request| {
        let labels = [("transport", "socket"), ("request", request)];
        value("a99_request_duration_seconds_count", &labels)
    };
    assert_eq!((requests("publish"), requests("other")), (2.0, 1.0));
    let refused = |code| value("a99_requests_refused_total", &[("code", code)]);
    assert_eq!(refused("channels.bad_request"), 1.0, "the unknown request");
    let lags = series.keys().filter(|(name, _)| name == "a99_agent_lag");
    let lags: Vec<_> = lags.map(|(_, labels)| labels[0].1.clone()).collect();
    assert_eq!(lags, [key.to_string()]);
    let done = [("agent", "echo"), ("outcome", "done")];
    assert!(value("a99_turn_duration_seconds_count", &done) >= 1.0);
    server.stop().await;
}

/// Answers `start`.
struct Answers;

impl Agent for Answers {
    type State = BTreeMap<String, Value>;
    type Settings = Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        match event.body {
            Body::Message(message) if message.content == "start" => {
                turn.send("echo this").await.map(drop)
            }
            _ => Ok(()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_on_over_the_server() {
    let parent = json!({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"});
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let echo = "echo/general/echo".parse().expect("a key");
    server.host.invite(&echo, json!({})).await.expect("invited");
    // The first agent is on another host, whose channels are the server's.
    let options = StoreOptions {
        has_channels: false,
        ..StoreOptions::default()
    };
    let store = SqliteRuntime::open(folder.path().join("far.db"), options).expect("a store");
    let token = server.token(&["read:*", "host:*"]);
    let address = format!("ws://{}", server.address);
    let far = Client::connect(&address, ClientOptions::new(token))
        .await
        .expect("connected");
    let far = Host::builder()
        .agent("answers", |_| Answers)
        .start_over(Arc::new(store), Arc::new(ChannelTransport::new(far)));
    let far = far.await.expect("a host");
    let answers = "answers/general/answers".parse().expect("a key");
    far.invite(&answers, json!({})).await.expect("invited");

    let client = server.client(&["read:*", "write:*"]).await;
    let mut events = client
        .subscribe("general", Some(0), false)
        .await
        .expect("subscribed");
    let start = message("general", "start", Some(parent.clone()));
    client.publish(start, Vec::new()).await.expect("published");
    let mut found = BTreeMap::new();
    while found.len() < 3 {
        if let Body::Message(message) = events.next().await.expect("an event").body.clone() {
            found.insert(message.content, message.metadata);
        }
    }
    for text in ["start", "echo this", "#1: echo this"] {
        assert_eq!(found[text], Some(parent.clone()), "{text}");
    }
    let empty = async {
        loop {
            let mut text = a99_runtime::metrics::Exposition::default();
            far.metrics(&mut text).await.expect("metrics");
            if text.finish().contains("a99_outbox_events 0\n") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WAIT, empty)
        .await
        .expect("an empty outbox");
    server.stop().await;
}

#[test]
fn the_page_and_the_dashboard_know_the_metrics() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let page = std::fs::read_to_string(format!("{docs}/observability.md")).expect("the page");
    let rows: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("| `a99_"))
        .collect();
    let expected = families().map(|family| {
        let labels: Vec<_> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let (name, kind) = (family.name, family.kind.name());
        format!(
            "| `{name}` | {kind} | {} | {} |",
            labels.join(", "),
            family.help
        )
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());

    let dashboard = std::fs::read_to_string(format!("{docs}/grafana.json")).expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let mut unseen: Vec<_> = families().map(|family| family.name).collect();
    for target in targets {
        let expr = target["expr"].as_str().expect("an expression");
        let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.starts_with("a99_")) {
            let parts = ["_bucket", "_count", "_sum"].iter();
            let base = parts.filter_map(|part| word.strip_suffix(part)).next();
            let known = families().find(|family| match family.kind {
                Kind::Histogram => base == Some(family.name),
                _ => word == family.name,
            });
            let known = known.unwrap_or_else(|| panic!("{word} in {expr}"));
            unseen.retain(|name| *name != known.name);
        }
    }
    assert_eq!(unseen, Vec::<&str>::new(), "metrics without a panel");
}
