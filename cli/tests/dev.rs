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
    let folder = tempdir().unwrap();
    let script = folder.path().join("turns.json");
    fs::write(&script, r#"["one", {"text": ["t", "wo"]}]"#).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
    command.args(["dev", "model-server", "--json"]).arg(&script);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut server = Server(child);
    let mut line = String::new();
    let out = server.0.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
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
