//! Conformance vectors over the wire: a server plays the script of each vector
//! that fetches, and the program that got its answers by HTTP ends as the vector
//! says.
//!
//! A call's answer is JSON or plain text, unless its member `http` says more:
//! `status`, `contentType`, `headers`, `body`. What HTTP cannot carry is listed in
//! `tests/vectors-left-out.jsonl`, with the reason.

use crate::network::{PUBLIC, TestNet, value};
use crate::server::serve;
use crate::tls::{self, Authority};
use a99_capabilities::{Capabilities, MemoryStore};
use a99_core::value::Value;
use agent99::{CostModel, Engine, Outcome, RunOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const FILES: [&str; 3] = ["io.jsonl", "agents.jsonl", "own-http.jsonl"];

fn lines(path: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(value).collect()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The calls of a vector's script that fetch.
fn fetches(vector: &Value) -> Vec<Value> {
    let calls = vector.pointer("/capabilities/calls");
    let calls = calls.and_then(Value::as_array).unwrap_or_default();
    let fetch = |call: &&Value| text(call, "method") == "fetch";
    calls.iter().filter(fetch).cloned().collect()
}

/// What stands in the way of playing a call.
fn obstacle(call: &Value) -> Option<&'static str> {
    if call.get("error").is_some() && call.get("http").is_none() {
        return Some("the text of an error");
    }
    None
}

/// The answer to a call, as bytes of HTTP.
fn play(call: &Value) -> Vec<u8> {
    let http = call.get("http");
    let result = call.get("result").unwrap_or(&Value::Undefined);
    let part = |key: &str| http.and_then(|http| http.get(key));
    let status = part("status").and_then(Value::as_f64).unwrap_or(200.0);
    let (kind, body) = match (http, result) {
        (Some(http), _) => (text(http, "contentType"), text(http, "body").to_owned()),
        (None, Value::String(plain)) => ("text/plain", plain.to_string_lossy().into_owned()),
        (None, other) => ("application/json", other.to_json_string()),
    };
    let mut head = format!("HTTP/1.1 {status} Whatever\r\n");
    if !kind.is_empty() {
        head += &format!("Content-Type: {kind}\r\n");
    }
    for (name, value) in part("headers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        head += &format!("{name}: {}\r\n", value.as_str().unwrap());
    }
    head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    head.into_bytes()
}

/// Whether a request is the one that the script expects.
fn check(request: &str, call: &Value) -> Result<(), String> {
    let args = call
        .get("args")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let (url, options) = (args[0].as_str().unwrap(), &args[1]);
    let (host, path) = url
        .strip_prefix("https://")
        .unwrap()
        .split_once('/')
        .unwrap_or((&url[8..], ""));
    let method = match text(options, "method") {
        "" => "GET",
        method => method,
    };
    let mut expected = vec![
        format!("{method} /{path} HTTP/1.1\r\n"),
        format!("\r\nhost: {host}\r\n"),
    ];
    for (name, value) in options
        .get("headers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let name = name.to_string_lossy().to_lowercase();
        expected.push(format!("\r\n{name}: {}\r\n", value.as_str().unwrap()));
    }
    expected.push(match options.get("body") {
        Some(body) => format!("\r\n\r\n{}", body.to_json_string()),
        None => "\r\n\r\n".to_owned(),
    });
    let missing = expected.iter().find(|part| !request.contains(*part));
    missing.map_or(Ok(()), |part| {
        Err(format!("{part:?} is not in {request:?}"))
    })
}

/// What a server noticed while it played.
#[derive(Default)]
struct Played {
    next: usize,
    wrong: Vec<String>,
}

async fn run(vector: &Value, calls: Vec<Value>) -> (Outcome, Played) {
    let hosts: Vec<String> = calls
        .iter()
        .filter_map(|call| call.pointer("/args/0").and_then(Value::as_str))
        .map(|url| url[8..].split('/').next().unwrap().to_owned())
        .collect();
    let authority = Authority::new();
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let identity = authority.sign(&names, |_| {});
    let played: Arc<Mutex<Played>> = Arc::default();
    let (state, script) = (Arc::clone(&played), Arc::new(calls));
    let server = tls::server(&identity, "http/1.1", move |stream| {
        let (state, script) = (Arc::clone(&state), Arc::clone(&script));
        serve(stream, Arc::default(), move |request| {
            let mut state = state.lock().unwrap();
            let Some(call) = script.get(state.next) else {
                state.wrong.push(format!("one more request: {request:?}"));
                return Vec::new();
            };
            state.next += 1;
            state.wrong.extend(check(request, call).err());
            let delay = call.get("delayMs").and_then(Value::as_f64).unwrap_or(0.0);
            std::thread::sleep(Duration::from_secs_f64(delay / 1000.0));
            play(call)
        })
    })
    .await;
    let net = TestNet::default()
        .otherwise(PUBLIC)
        .at(PUBLIC, 443, server.port);
    let fetch = net
        .builder("full")
        .ca_pem(&authority.pem())
        .build()
        .unwrap();
    let granted = Capabilities::none()
        .with_fetch(fetch)
        .with_store(MemoryStore::new());
    let engine = Engine::builder().build();
    let agent = engine
        .compile(vector.get("ast").unwrap().to_json_string())
        .unwrap();
    let args = vector.get("args").cloned().unwrap_or(Value::Undefined);
    let mut options = RunOptions::new().timeout_ms(30_000);
    options.cost_model = CostModel::Flat;
    let outcome = engine.run(&agent, args, options, granted).await;
    let played = std::mem::take(&mut *played.lock().unwrap());
    (outcome, played)
}

/// How an outcome differs from what the vector says.
fn difference(vector: &Value, outcome: &Outcome) -> Option<String> {
    let expect = vector.get("expect").unwrap();
    let wanted = expect.get("result").unwrap();
    if *wanted != outcome.result {
        let got = outcome.result.to_json_string();
        return Some(format!("expected {}, got {got}", wanted.to_json_string()));
    }
    let error = expect.pointer("/error/message").and_then(Value::as_str);
    let got = outcome
        .error
        .as_ref()
        .map(|error| error.message.to_string_lossy().into_owned());
    if error != got.as_deref() {
        return Some(format!("expected the error {error:?}, got {got:?}"));
    }
    let fuel = expect
        .get("fuelUsed")
        .and_then(Value::as_f64)
        .unwrap_or(-1.0);
    let got = outcome.fuel_used.to_f64();
    ((fuel - got).abs() > 1e-9).then(|| format!("expected fuel {fuel}, got {got}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_hold_over_the_wire() {
    let listed = lines("tests/vectors-left-out.jsonl");
    let mut left_out: BTreeMap<&str, &str> = listed
        .iter()
        .map(|row| (text(row, "id"), text(row, "reason")))
        .collect();
    assert!(left_out.values().all(|reason| reason.len() > 20));
    let (mut wrong, mut held) = (Vec::new(), 0);
    for file in FILES {
        for vector in lines(&format!("../../tests/vectors/{file}")) {
            let (id, calls) = (text(&vector, "id"), fetches(&vector));
            if calls.is_empty() {
                continue;
            }
            let obstacle = calls.iter().find_map(obstacle);
            if left_out.remove(id).is_some() {
                if obstacle.is_none() {
                    wrong.push(format!("{id}: is left out and could be played"));
                }
                continue;
            }
            if let Some(obstacle) = obstacle {
                wrong.push(format!("{id}: HTTP does not carry {obstacle}"));
                continue;
            }
            let count = calls.len();
            let (outcome, played) = run(&vector, calls).await;
            wrong.extend(played.wrong.into_iter().map(|what| format!("{id}: {what}")));
            wrong.extend(difference(&vector, &outcome).map(|what| format!("{id}: {what}")));
            if played.next != count {
                wrong.push(format!("{id}: {} of {count} requests came", played.next));
            }
            held += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(left_out.is_empty(), "listed and no vector: {left_out:?}");
    assert!(held >= 25, "{held}");
}
