//! Network grants, tested with servers on the loopback.

mod harness;

use harness::Done;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A server that answers each request with a function of its head.
struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(answer: impl Fn(&str) -> String + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                if let Some(head) = read_head(&stream) {
                    let answer = answer(&head);
                    log.lock().expect("not poisoned").push(head);
                    let _ = (&stream).write_all(answer.as_bytes());
                }
            }
        });
        Server { port, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn rule(&self) -> String {
        format!("net:127.0.0.1:{}", self.port)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("not poisoned").clone()
    }
}

fn read_head(stream: &TcpStream) -> Option<String> {
    let mut head = String::new();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let start = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[start..].to_ascii_lowercase();
        if let Some(n) = line.strip_prefix("content-length: ") {
            length = n.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(head)
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// A program that fetches this URL.
fn fetches(url: &str) -> String {
    serde_json::json!({"op": "seq", "steps": [
        {"op": "httpFetch", "url": url, "result": "page"},
        {"op": "return", "schema": {"type": "object", "properties": {"page": {}}}}
    ]})
    .to_string()
}

fn run(folder: &Path, program: &str, args: &[&str]) -> Done {
    fs::write(folder.join("agent.json"), program).expect("written");
    let args: Vec<&str> = ["run", "agent.json"]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    harness::a99_in(folder, &args)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn a_program_reaches_what_it_was_granted() {
    let server = Server::start(|_| ok("Hello!"));
    let (folder, url) = (folder(), server.url("/a"));
    let done = run(
        folder.path(),
        &fetches(&url),
        &["--allow", &server.rule(), "--json"],
    );
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["result"], serde_json::json!({"page": "Hello!"}));
    // The same grant from a file.
    let file = format!("allow = [\"{}\"]\n", server.rule());
    fs::write(folder.path().join("agent99.toml"), file).expect("written");
    assert_eq!(run(folder.path(), &fetches(&url), &[]).code, 0);
    // No grant without the file.
    let done = run(folder.path(), &fetches(&url), &["--no-config", "--json"]);
    let error = &done.json()["error"];
    assert_eq!(
        (done.code, &error["code"]),
        (1, &"capability.missing".into())
    );
    let help = error["help"].as_str().expect("help");
    let host = format!("127.0.0.1:{}", server.port);
    assert!(help.contains(&format!("--allow net:{host}")), "{help}");
    assert!(
        help.contains(&format!("allow = [\"net:{host}\"]")),
        "{help}"
    );
    assert_eq!(server.seen().len(), 2);
    // A refusal of the policy names the rule.
    let done = run(
        folder.path(),
        &fetches(&url),
        &["--allow", "net:example.com", "--json"],
    );
    let error = done.json()["error"].to_string();
    assert!(
        error.contains("Fetch denied") && error.contains(&format!("--allow net:{host}")),
        "{error}"
    );
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn a_grant_beside_a_script_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("script.json"), r#"{"fetch": {}}"#).expect("written");
    let args = ["--allow", "net:example.com", "--script", "script.json"];
    let done = run(folder.path(), &fetches("https://example.com"), &args);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("exclude each other"), "{done:?}");
    let done = run(
        folder.path(),
        &fetches("https://example.com"),
        &["--allow", "net:example.com", "--ca", "none.pem"],
    );
    assert_eq!(done.code, 2);
    assert!(
        done.err.contains("--ca") && done.err.contains("none.pem"),
        "{done:?}"
    );
}

/// A run that waits for the network gets ten minutes; this fuel alone would give 100 ms.
#[test]
fn a_network_takes_its_time() {
    let server = Server::start(|_| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        ok("late")
    });
    let folder = folder();
    let allow = server.rule();
    let args = ["--allow", &allow, "--fuel", "10"];
    assert_eq!(
        run(folder.path(), &fetches(&server.url("/")), &args).code,
        0
    );
    let args = ["--allow", &allow, "--fuel", "10", "--timeout", "50ms"];
    assert_eq!(
        run(folder.path(), &fetches(&server.url("/")), &args).code,
        5
    );
}

/// A secret is sent to its origin, and appears in no output.
#[test]
fn n18_a_secret_is_nowhere_to_be_seen() {
    const SECRET: &str = "hunter2-of-the-test";
    let server = Server::start(|head| match head.split(' ').nth(1) {
        Some("/fails") => {
            "HTTP/1.1 500 Oh no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
        }
        Some("/breaks") => "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1".to_owned(),
        _ => ok("Hello!"),
    });
    let folder = folder();
    let file = folder.path().join("token.txt");
    fs::write(&file, format!("{SECRET}\n")).expect("written");
    let origin = server.url("");
    let config = format!(
        "allow = \"{}\"\nheader = [\"{origin} authorization=Bearer {{file:token.txt}}\"]\n",
        server.rule()
    );
    fs::write(folder.path().join("agent99.toml"), config).expect("written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode));
        mode(0o644).expect("changed");
        let done = run(
            folder.path(),
            &fetches(&server.url("/")),
            &["--config", "agent99.toml"],
        );
        assert_eq!(done.code, 2);
        assert!(
            done.err.contains("chmod 600") && !done.err.contains(SECRET),
            "{done:?}"
        );
        mode(0o600).expect("changed");
    }
    let mut told = String::new();
    for path in ["/", "/fails", "/breaks"] {
        let program = fetches(&server.url(path));
        for args in [
            &[
                "--config",
                "agent99.toml",
                "--trace",
                "trace.jsonl",
                "--progress",
            ][..],
            &[
                "--config",
                "agent99.toml",
                "--json",
                "--trace",
                "trace.jsonl",
            ],
        ] {
            let done = run(folder.path(), &program, args);
            assert_eq!(done.code, i32::from(path != "/"), "{done:?}");
            told += &format!("{done:?}");
            told += &fs::read_to_string(folder.path().join("trace.jsonl")).expect("a trace");
        }
    }
    for args in [
        &["config", "--config", "agent99.toml"][..],
        &["config", "--config", "agent99.toml", "--json"],
    ] {
        told += &format!("{:?}", harness::a99_in(folder.path(), args));
    }
    assert!(told.contains("token.txt") && told.contains("Hello!"));
    assert!(!told.contains(SECRET), "{told}");
    let seen = server.seen();
    assert_eq!(seen.len(), 6);
    assert!(
        seen.iter()
            .all(|head| head.contains(&format!("authorization: Bearer {SECRET}"))),
        "{seen:?}"
    );
    // A run without the file does not send its secret either.
    let done = run(
        folder.path(),
        &fetches(&server.url("/")),
        &["--no-config", "--allow", &server.rule()],
    );
    assert_eq!(done.code, 0);
    assert!(!server.seen()[6].contains(SECRET));
}

#[test]
fn progress_and_trace_tell_of_calls() {
    let server = Server::start(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1200));
        ok("Hello!")
    });
    let folder = folder();
    let allow = server.rule();
    let args = [
        "--allow",
        &allow,
        "--progress",
        "--json",
        "--trace",
        "trace.jsonl",
    ];
    let done = run(folder.path(), &fetches(&server.url("/a")), &args);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["result"]["page"], "Hello!");
    let lines: Vec<&str> = done.err.lines().collect();
    assert!(lines[0].starts_with("progress: 1 calls, fuel "), "{done:?}");
    assert!(
        lines[0].contains("waits for httpFetch (call 0.0, "),
        "{done:?}"
    );
    assert!(
        lines[lines.len() - 1].starts_with("progress: 1 calls, fuel 5."),
        "{done:?}"
    );
    let trace = fs::read_to_string(folder.path().join("trace.jsonl")).expect("a trace");
    let event: serde_json::Value =
        serde_json::from_str(trace.lines().next().expect("an event")).expect("JSON");
    let call = &event["calls"][0];
    assert_eq!(
        (&call["id"], &call["op"], &call["failed"]),
        (&"0.0".into(), &"httpFetch".into(), &false.into())
    );
    assert!(
        call["durationMs"].as_f64().is_some_and(|ms| ms >= 1200.0),
        "{call}"
    );
    assert!(
        call["bytesIn"]
            .as_f64()
            .is_some_and(|bytes| (6.0..200.0).contains(&bytes)),
        "{call}"
    );
    assert!(
        call["bytesOut"].as_f64().is_some_and(|bytes| bytes > 20.0),
        "{call}"
    );
}

/// The example, and one with twenty calls in flight at once: the server answers none before the
/// last has arrived.
#[test]
fn the_examples_fetch() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let example = |name: &str, args: String, allow: &str| {
        let program = fs::read_to_string(root.join(name).join("agent.json")).expect("a program");
        let done = run(
            folder().path(),
            &program,
            &["--args", &args, "--allow", allow, "--json"],
        );
        assert_eq!(done.code, 0, "{done:?}");
        done.json()["result"].clone()
    };
    let server = Server::start(|_| ok(r#"{"name": "Widget", "version": "3.0"}"#));
    let args = serde_json::json!({"url": server.url("/latest")}).to_string();
    let result = example("fetch", args, &server.rule());
    assert_eq!(result["news"], "Widget 3.0 is out.");

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let streams: Vec<TcpStream> = listener.incoming().take(20).flatten().collect();
        let heads: Vec<_> = streams
            .iter()
            .map(|stream| (stream, read_head(stream)))
            .collect();
        for (mut stream, head) in heads {
            let path = head.and_then(|head| Some(head.split(' ').nth(1)?.to_owned()));
            let id = path.and_then(|path| path.rsplit('/').next()?.parse::<f64>().ok());
            let answer = match id {
                Some(13.0) | None => {
                    "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()
                }
                Some(id) => ok(&format!("{{\"price\": {id}}}")),
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let ids: Vec<u32> = (1..=20).collect();
    let base = format!("http://127.0.0.1:{port}/items/");
    let args = serde_json::json!({"base": base, "ids": ids}).to_string();
    let result = example("fanout", args, &format!("net:127.0.0.1:{port}"));
    assert_eq!(
        result,
        serde_json::json!({"total": 210 - 13, "answered": 19, "failed": 1})
    );
}

#[test]
fn documents_are_parsed() {
    let program = r#"{"op":"seq","steps":[{"op":"xmlParse","str":"<a b='1'>x</a>","result":"doc"},
        {"op":"return","schema":{"type":"object","properties":{"doc":{}}}}]}"#;
    let done = run(folder().path(), program, &["--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["result"]["doc"]["attributes"]["b"], "1");
}

/// An invalid secret, one that cannot be sent, and one that would block the run are refused before
/// the program starts; so is a file of authorities.
#[test]
#[cfg(unix)]
fn secrets_and_authorities_that_are_none_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
    };
    file("good", "s3cret\n", 0o600);
    file("empty", "", 0o600);
    file("blank", " \n", 0o600);
    file("two", "s3cret\ns3cret\n", 0o600);
    file("long", &"s3cret".repeat(11_000), 0o600);
    file("open", "s3cret", 0o644);
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    fs::set_permissions(&fifo, fs::Permissions::from_mode(0o600)).expect("changed");
    let header = |file: &str| format!("https://a.example x={{file:{file}}}");
    let same = [header("good"), header("good").replace(" x=", " X=")];
    let cases: Vec<(&str, Vec<String>, &str, &str)> = vec![
        (
            "header",
            vec![header("empty")],
            "is empty",
            "leave the header out",
        ),
        (
            "header",
            vec![header("blank")],
            "is empty",
            "leave the header out",
        ),
        ("header", vec![header("two")], "several lines", "one line"),
        (
            "header",
            vec![header("long")],
            "more than 64 KiB",
            "chmod 600",
        ),
        (
            "header",
            vec![header("open")],
            "others may read",
            "chmod 600 ",
        ),
        (
            "header",
            vec![header("fifo")],
            "no regular file",
            "regular file",
        ),
        (
            "header",
            vec![header("none")],
            "No such file",
            "regular file",
        ),
        (
            "header",
            vec!["https://a.example x={env:A99_NO_SUCH}".into()],
            "no variable",
            "set it",
        ),
        (
            "header",
            same.to_vec(),
            "two credentials named x",
            "one header of each name",
        ),
        (
            "header",
            vec![header("good").replace("https", "http")],
            "in the clear",
            "https:",
        ),
        ("ca", vec!["fifo".into()], "no regular file", "PEM"),
        ("ca", vec!["none.pem".into()], "No such file", "PEM"),
        ("ca", vec!["good".into()], "has no certificate", "PEM"),
    ];
    for (key, values, told, help) in cases {
        // By options; in a file, the last value is to blame.
        let mut args = vec!["--no-config", "--allow", "net:a.example", "--json"];
        let option = format!("--{key}");
        for value in &values {
            args.extend([option.as_str(), value]);
        }
        let by_option = run(folder.path(), &fetches("https://a.example/"), &args);
        let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        let text = format!(
            "allow = \"net:a.example\"\n{key} = [\n{}]\n",
            quoted.join(",\n")
        );
        fs::write(folder.path().join("a.toml"), text).expect("written");
        let args = ["--config", "a.toml", "--json"];
        let by_file = run(folder.path(), &fetches("https://a.example/"), &args);
        let place = format!("a.toml:{}:1: `{key}`: ", 2 + values.len());
        for (done, place) in [(by_option, format!("--{key}: ")), (by_file, place)] {
            assert_eq!(done.code, 2, "{values:?}: {done:?}");
            let error = &done.json()["error"];
            let (message, helps) = (error["message"].to_string(), error["help"].to_string());
            assert!(message.contains(&place), "{place}: {error}");
            assert!(message.contains(told), "{told}: {error}");
            assert!(helps.contains(help), "{help}: {error}");
            assert!(!done.out.contains("s3cret"), "{done:?}");
        }
    }
}

/// Only the command reaches the service: a program that fetches it is refused.
#[test]
#[cfg(feature = "embed")]
fn texts_are_embedded_by_a_service() {
    let server = Server::start(|_| {
        let body = r#"{"data": [{"embedding": [0.5, -0.25]}]}"#;
        ok(body).replace("text/plain", "application/json")
    });
    let port = server.port;
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let program = format!(
        r#"{{"op": "seq", "steps": [
            {{"op": "storeVectorize", "text": "red fox", "result": "v"}},
            {{"op": "try", "try": [{{"op": "httpFetch", "url": "http://127.0.0.1:{port}/"}}],
              "catch": [{{"op": "varSet", "key": "refused", "value": true}}]}},
            {{"op": "return", "schema": {{"type": "object", "properties": {{"v": {{}}, "refused": {{}}}}}}}}
        ]}}"#
    );
    fs::write(folder.path().join("agent.json"), program).expect("a file");
    fs::write(folder.path().join("key"), "k3y").expect("a file");
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.path().join("key"), mode).expect("a mode");
    let url = format!("http://127.0.0.1:{port}/v1/");
    let header = format!("http://127.0.0.1:{port} authorization=Bearer {{file:key}}");
    let run = ["run", "agent.json", "--embed", &url, "--header", &header];
    let unnamed = harness::a99_in(folder.path(), &run);
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    assert!(unnamed.err.contains("--embed-model NAME"), "{unnamed:?}");
    let done = harness::a99_in(
        folder.path(),
        &[&run[..], &["--embed-model", "mini"]].concat(),
    );
    assert_eq!(done.code, 0, "{done:?}");
    let wanted = serde_json::json!({"v": [0.5, -0.25], "refused": true});
    assert_eq!(done.json(), wanted);
    let [request] = &server.seen()[..] else {
        panic!("one request: {:?}", server.seen());
    };
    let head = request.to_ascii_lowercase();
    assert!(
        head.starts_with("post /v1/embeddings http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("authorization: bearer k3y\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n"),
        "{head}"
    );
}

/// A header for an unreachable server gets a warning: its name is most likely misspelt.
#[test]
fn a_header_that_is_never_sent_is_told() {
    let folder = folder();
    let program = r#"{"op": "seq", "steps": [{"op": "return", "value": {"ok": true}}]}"#;
    let header = |origin: &str| format!("{origin} authorization=Bearer {{env:PATH}}");
    let told = |options: &[&str]| {
        let done = run(folder.path(), program, options);
        assert_eq!(done.code, 0, "{done:?}");
        done.err.contains("warning[cli.unused_header]")
    };
    let other = header("https://api.exmaple.com");
    let args = ["--allow", "net:api.example.com", "--header", &other];
    assert!(told(&args));
    for (rule, origin) in [
        ("net:api.example.com", "https://api.example.com"),
        ("net:*.example.com:8443", "https://api.example.com:8443"),
        ("net:127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("net:*", "https://api.example.com"),
    ] {
        let header = header(origin);
        assert!(!told(&["--allow", rule, "--header", &header]), "{rule}");
    }
}
