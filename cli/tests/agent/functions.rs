//! Agents that sleep between requests: the receiver, a process for each request, and the commands
//! that register them.

use crate::channels::{channels, said, serve_with, token};
use crate::harness::{Done, Sandbox, a99};
use crate::hosted::{Hosted, lines};
use a99_push::signature::Secret;
use serde_json::{Value as Json, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const KEY: &str = "counter/general/counter";
const INIT: &str = "/v1/push/init";
const EVENTS: &str = "/v1/push/events";

/// The example's agents, a channel server, a token and a secret.
struct Place {
    folder: Sandbox,
    server: Option<Hosted>,
    address: String,
    admin: String,
    secret: String,
}

impl Place {
    fn new(name: &str, more: &[&str]) -> Place {
        let folder = Sandbox::new(name);
        for file in ["agents.toml", "counter.ajs"] {
            let example = env!("CARGO_MANIFEST_DIR");
            let path = format!("{example}/../examples/agents/function/{file}");
            folder.file(file, &std::fs::read_to_string(path).expect("a text"));
        }
        let admin = token(&folder, "admin", "admin");
        token(&folder, "reader", "read:*");
        let secret = Secret::new().expect("randomness").text();
        folder.file("secret", &secret);
        let (server, address) = serve_with(&folder, "127.0.0.1:0", more);
        Place {
            folder,
            server: Some(server),
            address,
            admin,
            secret,
        }
    }

    /// Options of a receiver.
    fn receiver(&self) -> Vec<String> {
        let (config, secret) = (self.folder.path("agents.toml"), self.folder.path("secret"));
        [
            ["--config", config.as_str()],
            ["--channels", &self.address],
            ["--token-file", &self.admin],
            ["--secret-file", &secret],
        ]
        .concat()
        .iter()
        .map(|word| (*word).to_owned())
        .collect()
    }

    fn handle(&self, event: &Json, more: &[&str]) -> Done {
        let options = self.receiver();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let words = [&["agent", "handle"], &options[..], more].concat();
        a99(&words, event.to_string().as_bytes())
    }

    /// An event of a function, signed by this secret at this time.
    fn event(path: &str, body: &str, secret: &str, at: u64) -> Json {
        let id = format!("msg_{}", now().1);
        let secret = Secret::parse(secret).expect("a secret");
        let signature = secret.sign(&id, at, body.as_bytes());
        json!({"rawPath": path, "body": body, "headers": {"webhook-id": id,
            "webhook-timestamp": at.to_string(), "webhook-signature": signature}})
    }

    /// Sends a signed request; gives status, headers and body of the answer.
    fn ask(&self, path: &str, body: &Json) -> (u64, Json, Json) {
        let event = Place::event(path, &body.to_string(), &self.secret, now().0);
        let done = self.handle(&event, &[]);
        let answer = done.json();
        let status = answer["statusCode"].as_u64().expect("a status");
        assert_eq!(done.code, i32::from(status >= 400), "{done:?}");
        let body = answer["body"].as_str().expect("a body");
        let body: Json = serde_json::from_str(body).expect(body);
        if status >= 400 {
            let code = body["error"]["code"].as_str().expect("a code");
            assert!(done.err.contains(&format!("error[{code}]")), "{done:?}");
            assert!(done.err.contains("= help: "), "{done:?}");
        }
        (status, answer["headers"].clone(), body)
    }

    /// The log as a request of a pusher has it.
    fn events(&self) -> Json {
        let logs = channels("logs", &self.address, &[], &self.admin);
        let events = lines(&logs.out);
        json!({"agent": KEY, "head": events.len(), "events": events})
    }

    fn push(&self, what: &str, rest: &[&str]) -> Done {
        let words = ["channels", "push", what, &self.address];
        let token = ["--token-file", &self.admin, "--json"];
        a99(&[&words[..], rest, &token].concat(), b"")
    }
}

/// Seconds and nanoseconds since 1970.
fn now() -> (u64, u128) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.expect("a time");
    (since.as_secs(), since.as_nanos())
}

fn code(done: &Done) -> String {
    let code = done.json()["error"]["code"].as_str().map(str::to_owned);
    assert_ne!(done.code, 0, "{done:?}");
    code.unwrap_or_default()
}

#[test]
fn each_request_is_a_process_and_the_state_persists() {
    let mut place = Place::new("function-handle", &[]);
    let (status, _, body) = place.ask(EVENTS, &json!({"agent": KEY}));
    assert_eq!(
        (status, &body["error"]["code"]),
        (404, &"push.unknown_agent".into())
    );
    let other = json!({"agent": "counter/other/counter"});
    let (status, _, body) = place.ask(INIT, &other);
    assert_eq!(
        (status, &body["error"]["code"]),
        (404, &"agent.unknown".into())
    );
    let (status, _, body) = place.ask(INIT, &json!({"agent": KEY}));
    assert_eq!(
        (status, &body["participant"]["handle"]),
        (200, &"counter".into())
    );
    // The second request has the answer of the first, which wakes no agent.
    for (text, new) in [("one", 1), ("two", 2)] {
        let sent = channels("send", &place.address, &[text], &place.admin);
        assert_eq!(sent.code, 0, "{sent:?}");
        let (status, _, body) = place.ask(EVENTS, &place.events());
        assert_eq!((status, &body["accepted"]), (200, &new.into()), "{body}");
    }
    let wanted = ["\"#1: one\"", "\"#2: two\""];
    assert_eq!(said(&place.address, &place.admin, "counter", 2), wanted);
    let (status, _, body) = place.ask(EVENTS, &place.events());
    assert_eq!((status, &body["duplicate"]), (200, &3.into()), "{body}");
    assert_eq!(said(&place.address, &place.admin, "counter", 2), wanted);
    // Another process has the agents.
    let options = place.receiver();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let owner = Hosted::start(&options[..6]);
    let (status, headers, body) = place.ask(EVENTS, &place.events());
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &"push.not_owner".into())
    );
    assert_eq!(headers["retry-after"], "1");
    owner.end();
    // Without the channel server the pusher asks again.
    place.server.take().expect("it runs").kill();
    let (status, headers, body) = place.ask(INIT, &json!({"agent": KEY}));
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &"store.unavailable".into())
    );
    assert_eq!(headers["retry-after"], "1");
}

#[test]
fn unsigned_and_wrong_requests_are_refused() {
    let place = Place::new("function-refused", &[]);
    let body = json!({"agent": KEY}).to_string();
    let other = Secret::new().expect("randomness").text();
    let at = now().0;
    let large = format!("{{\"agent\": \"{}\"}}", "x".repeat(8 << 20));
    for (event, status, code) in [
        (
            Place::event(INIT, &body, &other, at),
            401,
            "push.bad_signature",
        ),
        (
            Place::event(INIT, &body, &place.secret, at - 600),
            401,
            "push.old_timestamp",
        ),
        (
            Place::event(INIT, &large, &place.secret, at),
            413,
            "push.body_too_large",
        ),
        (
            Place::event(INIT, "{}", &place.secret, at),
            400,
            "push.bad_request",
        ),
        (
            Place::event("/x", &body, &place.secret, at),
            404,
            "push.bad_request",
        ),
        (
            json!({"path": INIT, "body": body}),
            401,
            "push.bad_signature",
        ),
    ] {
        let done = place.handle(&event, &[]);
        assert_eq!(done.code, 1, "{code}: {}", done.err);
        assert_eq!(done.json()["statusCode"], status, "{}", done.err);
        let shown = format!("error[{code}]");
        assert!(
            done.err.contains(&shown) && done.err.contains("= help: "),
            "{}",
            done.err
        );
    }
    // What no platform sends has no answer.
    let done = place.handle(&json!([1]), &[]);
    assert!(done.code == 2 && done.out.is_empty(), "{done:?}");
    assert!(done.err.contains("error[push.bad_request]"), "{done:?}");
    // The store was not made.
    assert!(!std::path::Path::new(&place.folder.path("agents.db")).exists());
    // A body that is larger than its limit is not read.
    let options = place.receiver();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let words = [&["agent", "handle", "--cgi"], &options[..]].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
    let command = command.args(words).env("CONTENT_LENGTH", "99999999999");
    let done = command.stdin(Stdio::null()).output().expect("it runs");
    let answer = String::from_utf8_lossy(&done.stdout);
    assert!(answer.starts_with("Status: 413 "), "{answer}");
    assert_eq!(done.status.code(), Some(1));
}

#[test]
fn receivers_and_registrations_name_what_is_wrong_with_them() {
    let place = Place::new("function-mistakes", &["--push", "push.json"]);
    let options = place.receiver();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let receive = |words: &[&str]| {
        let words = [&["agent", "receive", "--json"], words].concat();
        let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
        let command = command.args(words).env_remove("A99_TOKEN");
        let done = command.env_remove("A99_PUSH_SECRET").output();
        let done = done.expect("it ends");
        let out = String::from_utf8(done.stdout).expect("a text");
        let error = lines(&out).pop().expect("an error")["error"].clone();
        assert!(!error["help"].as_str().expect("help").is_empty(), "{error}");
        assert_eq!(done.status.code(), Some(2), "{out}");
        error["code"].as_str().expect("a code").to_owned()
    };
    assert_eq!(receive(&options[..6]), "push.bad_registration");
    assert_eq!(receive(&options[..4]), "push.bad_registration");
    let mut no_token = options.clone();
    no_token.drain(4..6);
    assert_eq!(receive(&no_token), "server.unauthorized");
    let mut far = options.clone();
    far[3] = "http://192.0.2.1";
    assert_eq!(receive(&far), "channels.bad_server");
    let open = ["--listen", "0.0.0.0:0"];
    assert_eq!(
        receive(&[&options[..], &open].concat()),
        "server.unsafe_address"
    );
    let mut wrong = options.clone();
    wrong[7] = &place.admin;
    assert_eq!(receive(&wrong), "push.bad_registration");

    let url = "https://192.0.2.1";
    assert_eq!(code(&place.push("add", &["counter", url])), "agent.bad_key");
    let plain = place.push("add", &[KEY, "http://192.0.2.1"]);
    assert_eq!(code(&plain), "push.bad_registration");
    let settings = place.push("add", &[KEY, url, "--settings", "[1]"]);
    assert_eq!(code(&settings), "cli.usage");
    for what in ["remove", "retry"] {
        assert_eq!(code(&place.push(what, &[KEY])), "push.unknown_agent");
    }
    let down = ["channels", "push", "list", "ws://127.0.0.1:1", "--json"];
    let down = a99(&[&down[..], &["--token-file", &place.admin]].concat(), b"");
    assert_eq!(code(&down), "channels.lost");
    let mut place = place;
    place.admin = place.folder.path("reader");
    assert_eq!(code(&place.push("add", &[KEY, url])), "server.forbidden");
    place.admin = place.folder.file("bad", "a99t_0_0");
    assert_eq!(code(&place.push("list", &[])), "server.unauthorized");
    // A server without a pusher.
    let place = Place::new("function-no-pusher", &[]);
    assert_eq!(code(&place.push("add", &[KEY, url])), "push.bad_answer");
}

#[test]
fn a_receiver_sleeps_is_killed_and_counts_each_message_once() {
    let folder = Sandbox::new("function-file");
    let (file, policy) = (folder.path("push.json"), "127.0.0.1:1-65535");
    let place = Place::new("function-receive", &["--push", &file, "--push-to", policy]);
    let options = place.receiver();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let receive = |listen: &str| {
        let words = [
            "agent", "receive", "--json", "--listen", listen, "--idle", "1s",
        ];
        let mut receiver = Hosted::run(&[&words[..], &options].concat());
        let address = receiver.wait_for("listening")["address"].clone();
        (receiver, address.as_str().expect("one").to_owned())
    };
    let (receiver, url) = receive("127.0.0.1:0");
    let secret = place.folder.path("secret");
    let added = place.push("add", &[KEY, &url, "--secret-file", &secret]);
    assert_eq!(added.json(), json!({"ok": true, "agent": KEY}), "{added:?}");
    let say = |text: &str| {
        let sent = channels("send", &place.address, &[text], &place.admin);
        assert_eq!(sent.code, 0, "{sent:?}");
    };
    say("one");
    let first = said(&place.address, &place.admin, "counter", 1);
    assert_eq!(first, ["\"#1: one\""]);
    receiver.kill();
    say("two");
    let (receiver, _) = receive(url.trim_start_matches("http://"));
    let both = said(&place.address, &place.admin, "counter", 2);
    assert_eq!(both, ["\"#1: one\"", "\"#2: two\""]);
    let until = Instant::now() + Duration::from_secs(60);
    let mut listed = place.push("list", &[]).json();
    while listed["agents"][0]["lag"] != 0 && Instant::now() < until {
        listed = place.push("list", &[]).json();
    }
    let agent = &listed["agents"][0];
    assert_eq!(
        (&agent["agent"], &agent["isReady"], &agent["lag"]),
        (&KEY.into(), &true.into(), &0.into()),
        "{listed}"
    );
    receiver.end();
    assert_eq!(place.push("retry", &[KEY]).code, 0);
    assert_eq!(place.push("remove", &[KEY]).code, 0);
    assert_eq!(place.push("list", &[]).json(), json!({"agents": []}));
}

/// A platform of functions: hands requests to processes, in turn as events and as CGI.
fn platform(listener: &TcpListener, options: &[String]) {
    for (count, stream) in listener.incoming().enumerate() {
        let stream = stream.expect("a connection");
        let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            match line.trim() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let Some(first) = head.first() else { continue };
        let path = first.split(' ').nth(1).expect("a path").to_owned();
        let headers = head.iter().filter_map(|line| line.split_once(": "));
        let headers: Vec<(String, &str)> = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, length)| length.parse().ok());
        let mut body = vec![0; length.expect("a length")];
        reader.read_exact(&mut body).expect("a body");
        answer(stream, &path, &headers, &body, options, count % 2 == 0);
    }
}

fn answer(
    mut stream: TcpStream,
    path: &str,
    headers: &[(String, &str)],
    body: &[u8],
    options: &[String],
    is_cgi: bool,
) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
    command.args(["agent", "handle"]).args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut input = body.to_vec();
    if is_cgi {
        command.arg("--cgi").env("PATH_INFO", path);
        command.env("CONTENT_LENGTH", body.len().to_string());
        for (name, value) in headers {
            let name = name.to_ascii_uppercase().replace('-', "_");
            command.env(format!("HTTP_{name}"), value);
        }
    } else {
        let headers: serde_json::Map<String, Json> = headers
            .iter()
            .map(|(name, value)| (name.clone(), (*value).into()))
            .collect();
        let body = String::from_utf8_lossy(body);
        input = json!({"path": path, "headers": headers, "body": body})
            .to_string()
            .into_bytes();
    }
    let mut process = command.spawn().expect("a process");
    let mut pipe = process.stdin.take().expect("a pipe");
    pipe.write_all(&input).expect("it reads");
    // CGI servers may leave it open.
    let done = match is_cgi {
        true => process.wait_with_output(),
        false => {
            drop(pipe);
            process.wait_with_output()
        }
    };
    let out = String::from_utf8(done.expect("it ends").stdout).expect("a text");
    let (status, body) = match is_cgi {
        true => {
            let (head, body) = out.split_once("\r\n\r\n").expect(&out);
            (head["Status: ".len()..][..3].to_owned(), body.to_owned())
        }
        false => {
            let answer: Json = serde_json::from_str(&out).expect(&out);
            let body = answer["body"].as_str().expect("a body");
            (answer["statusCode"].to_string(), body.to_owned())
        }
    };
    let length = body.len();
    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n\r\n{body}");
    // A pusher that waits no longer asks again.
    drop(stream.write_all(answer.as_bytes()));
}

#[test]
fn a_pusher_and_processes_count_each_message_once() {
    let folder = Sandbox::new("function-processes-file");
    let (file, policy) = (folder.path("push.json"), "127.0.0.1:1-65535");
    let place = Place::new(
        "function-processes",
        &["--push", &file, "--push-to", policy],
    );
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    // The server makes the secret.
    let added = place.push("add", &[KEY, &url, "--type", "message"]).json();
    let secret = added["secret"].as_str().expect("a secret");
    place.folder.file("secret", secret);
    let options = place.receiver();
    std::thread::spawn(move || platform(&listener, &options));
    let mut wanted = Vec::new();
    for n in 1..=5 {
        let text = if n == 5 {
            "remind".to_owned()
        } else {
            format!("m{n}")
        };
        let sent = channels("send", &place.address, &[&text], &place.admin);
        assert_eq!(sent.code, 0, "{sent:?}");
        wanted.push(format!("\"#{n}: {text}\""));
        assert_eq!(said(&place.address, &place.admin, "counter", n), wanted);
    }
    // The timer's request comes without an event.
    wanted.push("\"I remind you\"".to_owned());
    assert_eq!(said(&place.address, &place.admin, "counter", 6), wanted);
}
