//! Whoever speaks the protocol by hand: with another token, for a turn that is over, or what
//! is no frame at all.

use crate::support::{Files, LONG, builder, key, quick, say, store, texts};
use a99_runtime::{
    ConnectOptions, Delivery, EventOptions, Host, MAX_FRAME_BYTES, Policy, Process, Uuid,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// One end of a connection.
struct Raw(UnixStream);

impl Raw {
    async fn write(&mut self, head: &Value, body: &str) {
        let frame = format!("{head}\n{body}");
        let length = u32::try_from(frame.len()).expect("a length");
        self.0
            .write_all(&length.to_be_bytes())
            .await
            .expect("written");
        self.0.write_all(frame.as_bytes()).await.expect("written");
    }

    /// The next frame: its head and its body; none at the end.
    async fn read(&mut self) -> Option<(Value, Value)> {
        let reading = async {
            let mut length = [0; 4];
            self.0.read_exact(&mut length).await.ok()?;
            let length = usize::try_from(u32::from_be_bytes(length)).expect("a length");
            let mut bytes = vec![0; length];
            self.0.read_exact(&mut bytes).await.ok()?;
            let text = String::from_utf8(bytes).expect("text");
            let (head, body) = text.split_once('\n').expect("a line");
            let head = serde_json::from_str(head).expect("JSON");
            Some((head, serde_json::from_str(body).unwrap_or_default()))
        };
        tokio::time::timeout(LONG, reading).await.expect("in time")
    }

    /// Says hello, and how that was answered.
    async fn hello(socket: &Path, hello: Value) -> (Raw, Value) {
        let mut raw = Raw(UnixStream::connect(socket).await.expect("a socket"));
        raw.write(&json!({"id": 7, "method": "hello"}), &hello.to_string())
            .await;
        let (head, _) = raw.read().await.expect("an answer");
        (raw, head)
    }

    /// Answers what the host asks, until it asks for this.
    async fn until(&mut self, wanted: &str) -> (Value, Value) {
        loop {
            let (head, body) = self.read().await.expect("a frame");
            if head["method"] == wanted {
                return (head, body);
            }
            let answer = match head["method"].as_str() {
                Some("agent.make") => declared(),
                Some("agent.connect") => json!(ConnectOptions::default()),
                _ => Value::Null,
            };
            if !head["id"].is_null() {
                self.write(&json!({"id": head["id"]}), &answer.to_string())
                    .await;
            }
        }
    }

    /// Asks the host, and gives its answer or the code of its error.
    async fn ask(&mut self, method: &str, params: &str) -> Result<Value, String> {
        self.write(&json!({"id": 99, "method": method}), params)
            .await;
        loop {
            let (head, body) = self.read().await.expect("a frame");
            if head["id"] == 99 && head["method"].is_null() {
                return match head["error"]["code"].as_str() {
                    Some(code) => Err(code.to_owned()),
                    None => Ok(body),
                };
            }
            assert!(
                head["id"].is_null() || head["method"] == "turn.cancel",
                "{head}"
            );
            if !head["id"].is_null() {
                self.write(&json!({"id": head["id"]}), "null").await;
            }
        }
    }
}

fn declared() -> Value {
    let policy = Policy {
        lazy: 20,
        ..quick(Delivery::ExactlyOnceState)
    };
    json!({
        "policy": policy,
        "turn_timeout": 1_000,
        "events": EventOptions::default(),
        "version": 1,
        "methods": [],
        "tables": null,
        "settings": {},
        "connect": ConnectOptions::default(),
        "initial": "{}",
    })
}

struct Scene {
    host: Host,
    socket: PathBuf,
    token: String,
    _kept: (Files, TempDir),
}

/// A host that waits for a process.
async fn scene() -> Scene {
    let (files, kept) = (Files::new(), tempfile::tempdir().expect("a folder"));
    let folder = kept.path().join("agents");
    let process = Process::attached(&folder);
    let host = builder()
        .process(process, ["worker"])
        .start(store(&files.path()));
    let host = host.await.expect("a host");
    let inviting = host.clone();
    tokio::spawn(async move {
        let worker = key("worker/general/worker");
        inviting.invite(&worker, json!({})).await.expect("invited");
    });
    while !folder.join("token").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Scene {
        host,
        socket: folder.join("socket"),
        token: std::fs::read_to_string(folder.join("token")).expect("a token"),
        _kept: (files, kept),
    }
}

impl Scene {
    async fn connected(&self) -> Raw {
        let hello = json!({"protocol": 1, "token": self.token, "agents": ["worker"]});
        let (raw, head) = Raw::hello(&self.socket, hello).await;
        assert_eq!(head, json!({"id": 7}));
        raw
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_not_the_token_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let scene = scene().await;
    for (hello, said) in [
        (
            json!({"protocol": 1, "token": "0", "agents": ["worker"]}),
            "token",
        ),
        (
            json!({"protocol": 2, "token": scene.token, "agents": ["worker"]}),
            "protocol 2",
        ),
        (
            json!({"protocol": 1, "token": scene.token, "agents": []}),
            "'worker'",
        ),
    ] {
        let (mut raw, head) = Raw::hello(&scene.socket, hello).await;
        assert_eq!(head["error"]["code"], "process.refused", "{head}");
        let text = head["error"]["message"].as_str().expect("a text");
        assert!(text.contains(said), "{text}");
        assert!(raw.read().await.is_none());
    }
    let folder = scene.socket.parent().expect("a folder");
    for (path, mode) in [
        (folder, 0o700),
        (&scene.socket, 0o600),
        (&folder.join("token"), 0o600),
    ] {
        let found = std::fs::metadata(path).expect("it").permissions().mode();
        assert_eq!(found & 0o777, mode, "{}", path.display());
    }
    scene.connected().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_handler_of_an_earlier_attempt_is_refused() {
    let scene = scene().await;
    let mut raw = scene.connected().await;
    // Its hooks end at once.
    let (wake, run) = raw.until("turn.run").await;
    assert_eq!(run["work"], "Wake");
    let end = json!({"state": "{}", "settings": null, "answer": null, "outbox": [], "timers": []});
    raw.write(&json!({"id": wake["id"]}), &end.to_string())
        .await;
    say(&scene.host, "general", "hello").await;
    let (_, first) = raw.until("turn.run").await;
    let call = |run: &Value, epoch: &Value, content: &str| {
        let id = Uuid::from_u128(content.len() as u128);
        let body = json!({"type": "message", "id": id, "content": content});
        let sending = json!({"id": id, "body": body, "attachments": []});
        json!({"turn": run["turn"], "epoch": epoch, "params": sending}).to_string()
    };
    let epoch = first["epoch"].clone();
    assert_eq!(
        raw.ask("channel.append", &call(&first, &epoch, "one"))
            .await,
        Ok(json!(3))
    );
    assert_eq!(
        raw.ask("no.such", "{}").await,
        Err("process.unknown_method".to_owned())
    );
    assert_eq!(
        raw.ask("channel.append", "{}").await,
        Err("process.bad_message".to_owned())
    );
    // It takes longer than it may.
    let (second, run) = raw.until("turn.run").await;
    assert_eq!((&first["attempt"], &run["attempt"]), (&json!(1), &json!(2)));
    let over = Err("turn.over".to_owned());
    assert_eq!(
        raw.ask("channel.append", &call(&first, &epoch, "late"))
            .await,
        over
    );
    assert_eq!(
        raw.ask("channel.append", &call(&run, &json!(9_999), "epoch"))
            .await,
        over
    );
    let end = json!({
        "state": "{\"n\":1}", "settings": null, "answer": null, "outbox": [], "timers": [],
    });
    raw.write(&json!({"id": second["id"]}), &end.to_string())
        .await;
    assert!(scene.host.settled(LONG).await);
    assert_eq!(
        raw.ask("channel.append", &call(&run, &epoch, "after"))
            .await,
        over
    );
    assert_eq!(texts(&scene.host, "general").await, ["hello", "one"]);
    let info = scene.host.inspect(&key("worker/general/worker")).await;
    assert_eq!(info.expect("an agent").state, Some(json!({"n": 1})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_frame_ends_the_connection() {
    let scene = scene().await;
    let long = u32::try_from(MAX_FRAME_BYTES + 1).expect("a length");
    let frames: [&[u8]; 5] = [
        &long.to_be_bytes(),
        &[0, 0, 0, 0],
        &[0, 0, 0, 3, b'{', b'}', b'\n'],
        &[0, 0, 0, 2, 0xff, b'\n'],
        &[0xff; 64],
    ];
    for frame in frames {
        let mut raw = scene.connected().await;
        let (_, asked) = raw.until("agent.make").await;
        assert_eq!(asked["identity"]["key"], "worker/general/worker");
        raw.0.write_all(frame).await.expect("written");
        assert!(raw.read().await.is_none(), "{frame:?}");
    }
    // The next one is welcome.
    let mut raw = scene.connected().await;
    raw.until("turn.run").await;
}
