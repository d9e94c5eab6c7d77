//! `a99 dev model-server`: scripted models over HTTP.

mod harness;

use harness::a99_in;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use tempfile::tempdir;

/// A server that ends with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that plays this script, and what it says of itself.
fn serve(script: &str) -> (Server, Value) {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("turns.json");
    fs::write(&file, script).expect("a script");
    let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
    command.args(["dev", "model-server", "--json"]).arg(&file);
    let child = command.stdout(Stdio::piped()).spawn();
    let mut server = Server(child.expect("it starts"));
    let mut line = String::new();
    let out = server.0.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    (server, serde_json::from_str(&line).expect("JSON"))
}

fn ask(port: u16, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_script_is_played_on_both_wires() {
    let (_server, said) = serve(r#"["one", {"text": ["t", "wo"]}]"#);
    assert_eq!(said["ok"], true);
    let port = u16::try_from(said["port"].as_u64().unwrap()).unwrap();
    assert_eq!(said["url"], format!("http://127.0.0.1:{port}/v1"));
    let answer = ask(port, "/v1/chat/completions", r#"{"model": "m"}"#);
    assert!(answer.contains(r#""content":"one""#), "{answer}");
    let answer = ask(port, "/v1/messages", r#"{"model": "m", "stream": true}"#);
    assert!(answer.contains("event: message_stop"), "{answer}");
    let answer = ask(port, "/v1/messages", "{}");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
}

#[test]
fn mistakes_of_scripts_have_a_place() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("turns.json"), r#"[{"txt": "a"}]"#).unwrap();
    let done = a99_in(folder.path(), &["dev", "model-server", "turns.json"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err.contains("turns.json: /0: unknown member `txt`"),
        "{done:?}"
    );
    let done = a99_in(
        folder.path(),
        &["dev", "model-server", "none.json", "--json"],
    );
    assert_eq!(done.code, 2, "{done:?}");
}

/// What `a99 run` prints with these options, of a program that asks a model.
fn asked(options: &[&str]) -> (bool, Value) {
    let folder = tempdir().expect("it works");
    let program = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "llmPredict", "prompt": "Say something that is short.", "result": "said"},
        {"op": "return", "value": "said"}]}"#;
    fs::write(folder.path().join("ask.json"), program).expect("it works");
    let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
    command
        .current_dir(folder.path())
        .args(["run", "ask.json", "--json"]);
    let done = command.args(options).output().expect("it works");
    let text = String::from_utf8(done.stdout).expect("it works");
    let printed = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    (done.status.success(), printed)
}

#[test]
fn a_run_asks_the_model_of_a_service() {
    let turn = r#"[{"text": ["Hel", "lo"], "usage": {"promptTokens": 7, "completionTokens": 2}}]"#;
    let (_server, said) = serve(turn);
    let url = said["url"].as_str().unwrap().to_owned();
    // A budget that is too small for the prompt asks nobody.
    let (ok, printed) = asked(&["--llm", &url, "--model", "m", "--max-tokens", "10"]);
    assert!(!ok, "{printed}");
    let message = printed["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the budget of tokens is used up"),
        "{message}"
    );
    let (ok, printed) = asked(&["--llm", &url, "--model", "m", "--max-tokens", "1000"]);
    assert!(ok, "{printed}");
    assert_eq!(printed["result"], "Hello");
    assert_eq!(printed["usage"]["tokens"], 9);
    for (options, wanted) in [
        (
            &["--llm", "localhost:1", "--model", "m"][..],
            "must begin with",
        ),
        (
            &[
                "--llm",
                &url,
                "--model",
                "m",
                "--llm-key-env",
                "A99_NO_SUCH_KEY",
            ],
            "not set",
        ),
    ] {
        let (ok, printed) = asked(options);
        assert!(!ok && printed.to_string().contains(wanted), "{printed}");
    }
}
