//! The JSON Schema of the protocol beside what client and server say.

use crate::harness::{Server, WAIT};
use a99_channels::wire::methods;
use futures_util::{SinkExt, StreamExt};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const SCHEMA: &str = include_str!("../../../../docs/channels.schema.json");

fn validator(name: &str) -> Validator {
    let mut schema: Value = serde_json::from_str(SCHEMA).expect("a schema");
    assert!(schema["$defs"][name].is_object(), "{name} has a schema");
    schema["$ref"] = format!("#/$defs/{name}").into();
    jsonschema::validator_for(&schema).expect("a schema")
}

fn check(name: &str, value: &Value) {
    let errors: Vec<String> = validator(name)
        .iter_errors(value)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{name}: {value}: {errors:?}");
}

struct Socket(
    tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>,
    u64,
);

impl Socket {
    async fn open(server: &Server) -> Socket {
        let stream = tokio::net::TcpStream::connect(server.address)
            .await
            .expect("connected");
        let request = format!("ws://{}/v1/socket", server.address);
        let request = request.into_client_request().expect("a request");
        let opened = tokio_tungstenite::client_async(request, stream).await;
        Socket(opened.expect("a socket").0, 0)
    }

    /// The next message: its line and its content.
    async fn next(&mut self) -> (Value, Value) {
        loop {
            let message = timeout(WAIT, self.0.next()).await.expect("in time");
            if let Message::Text(text) = message.expect("open").expect("a message") {
                let (line, content) = text.split_once('\n').expect("a line");
                let line: Value = serde_json::from_str(line).expect("JSON");
                check("line", &line);
                let content = match content {
                    "" => Value::Null,
                    content => serde_json::from_str(content).expect("JSON"),
                };
                return (line, content);
            }
        }
    }

    /// Sends a request and gives its result; notifications on the way are checked.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.1 += 1;
        let text = format!("{}\n{params}", json!({"id": self.1, "method": method}));
        self.0.send(Message::Text(text.into())).await.expect("sent");
        loop {
            let (line, content) = self.next().await;
            match line["method"].as_str() {
                Some("roster") => check("roster.notice", &content),
                Some(name) => check(name, &content),
                None if line["id"] == self.1 => {
                    return match line.get("error") {
                        Some(error) => Err(error.clone()),
                        None => Ok(content),
                    };
                }
                None => panic!("{line}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_and_answer_is_of_its_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(&["admin"]);
    let mut socket = Socket::open(&server).await;
    let id = "00000000-0000-4000-8000-000000000001";
    let mut joined = String::new();
    let requests = [
        ("hello", json!({"protocol": 1, "token": token})),
        (
            "join",
            json!({"channel": "c", "handle": "ann", "name": "Ann", "type": "panel", "methods": [{"name": "m"}], "metadata": {"x": 1}}),
        ),
        (
            "subscribe",
            json!({"subscription": 1, "channel": "c", "after": 0, "ephemeral": true, "roster": true, "credit": 100}),
        ),
        ("invite", json!({"agent": "echo/c/echo", "config": {}})),
        (
            "publish",
            json!({"channel": "c", "body": {"type": "message", "content": "x"}, "key": "k", "persist": true}),
        ),
        (
            "append",
            json!({"agent": "other/c/o", "epoch": 1, "events": [{"channel": "c", "id": id, "hops": 0, "body": {"type": "custom", "name": "n", "payload": 1}}]}),
        ),
        (
            "update-metadata",
            json!({"channel": "c", "participant": "ANN", "metadata": {"y": 2}}),
        ),
        ("read", json!({"channel": "c", "at": 0, "limit": 2})),
        ("history", json!({"channel": "c", "limit": 2})),
        ("find", json!({"channel": "c", "id": id})),
        ("head", json!({"channel": "c"})),
        ("channels", json!({})),
        ("roster", json!({"channel": "c"})),
        ("agents", json!({"channel": "c"})),
        (
            "configure",
            json!({"channel": "c", "changes": {"title": "T"}}),
        ),
        ("config", json!({"channel": "c"})),
        (
            "call",
            json!({"channel": "c", "provider": "echo", "method": "double", "args": {"n": 2}, "timeoutMs": 9000}),
        ),
        ("remove", json!({"agent": "echo/c/echo"})),
        ("unsubscribe", json!({"subscription": 1})),
        ("leave", json!({"channel": "c", "participant": "ANN"})),
    ];
    let mut asked = BTreeSet::new();
    for (method, mut params) in requests {
        if params["participant"] == "ANN" {
            params["participant"] = joined.as_str().into();
        }
        check(method, &params);
        let result = socket.ask(method, &params).await;
        let result = result.unwrap_or_else(|error| panic!("{method}: {error}"));
        check(&format!("{method}.result"), &result);
        if method == methods::JOIN {
            joined = result["participant"]
                .as_str()
                .expect("an identity")
                .to_owned();
        }
        asked.insert(method);
        // What the schema refuses, the server refuses.
        if !matches!(
            method,
            "hello" | "channels" | "unsubscribe" | "call" | "leave"
        ) {
            params["unknown"] = true.into();
            assert!(!validator(method).is_valid(&params), "{method}");
            let refused = socket.ask(method, &params).await.expect_err("refused");
            assert_eq!(refused["code"], "channels.bad_request", "{method}");
        }
    }
    let schema: Value = serde_json::from_str(SCHEMA).expect("a schema");
    let results = schema["$defs"].as_object().expect("definitions").keys();
    let named: BTreeSet<&str> = results
        .filter_map(|name| name.strip_suffix(".result"))
        .collect();
    assert_eq!(named, asked, "each request has a schema and a case here");
}
