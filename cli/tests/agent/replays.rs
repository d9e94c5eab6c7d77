//! `a99 agent replay`: turns run again without the world.

use crate::harness::{Sandbox, a99};
use crate::hosted::Hosted;
use serde_json::{Value as Json, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const PROGRAM: &str = "async function agent({ event, state }) {
  const n = (state.n ?? 0) + 1
  const page = await httpFetch({ url: `URL/${n}` })
  await agentSetState({ state: { n, at: Date.now() } })
  await agentSend({ content: `${n}: ${page}` })
}
";

/// A server that answers each request with its number.
fn server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked: Arc<AtomicUsize> = Arc::default();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let body = format!("page {}", seen.fetch_add(1, Ordering::SeqCst) + 1);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            drop((&stream).write_all(format!("{head}{body}").as_bytes()));
        }
    });
    (port, asked)
}

/// Whether the store's files have these bytes.
fn has(folder: &Sandbox, what: &str) -> bool {
    ["agents.db", "agents.db-wal"].iter().any(|name| {
        let bytes = std::fs::read(folder.path(name)).unwrap_or_default();
        bytes
            .windows(what.len())
            .any(|bytes| bytes == what.as_bytes())
    })
}

#[test]
fn a_turn_is_replayed_beside_its_host_and_compared() {
    let (port, asked) = server();
    let url = format!("http://127.0.0.1:{port}");
    let folder = Sandbox::new("agent-replays");
    use std::os::unix::fs::PermissionsExt as _;
    let key = folder.file("key.txt", "hunter2");
    let own = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&key, own).expect("a mode");
    let config = format!(
        "[store]\nkeep-turns = 3\n[[agent]]\nname = \"a\"\nprogram = \"a.ajs\"\nchannel = \"c\"\n\
         fuel = 1000\nallow = [\"net:127.0.0.1:{port}\"]\nheader = [\"{url} x-key={{file:{}}}\"]\n",
        key
    );
    let config = folder.file("agents.toml", &config);
    let program = PROGRAM.replace("URL", &url);
    folder.file("a.ajs", &program);
    let place = ["--config", config.as_str()];
    let replay = |event: u64, more: &[&str]| {
        let event = event.to_string();
        let args = ["agent", "replay", "a", "--event", event.as_str()];
        a99(&[&args[..], more, &place[..]].concat(), b"")
    };
    let host = Hosted::start(&place);
    for text in ["one", "two", "three", "four"] {
        let sent = a99(
            &[&["agent", "send", "c", text, "--wait"], &place[..]].concat(),
            b"",
        );
        assert_eq!(sent.code, 0, "{sent:?}");
    }
    // It joins at 1, and its answers are events too: its turns are those of 2, 4, 6 and 8.
    let same = replay(8, &["--json"]);
    assert_eq!(same.code, 0, "{same:?}");
    let json = same.json();
    assert_eq!(
        (&json["same"], &json["differences"]),
        (&json!(true), &json!({}))
    );
    assert_eq!(json["replayed"], json["committed"]);
    assert_eq!(
        json["replayed"]["messages"][0]["body"]["content"],
        "4: page 4"
    );
    assert_eq!(json["replayed"]["state"]["n"], 4);

    let old = replay(2, &["--json"]);
    assert_eq!(
        (old.code, &old.json()["error"]["code"]),
        (2, &json!("cli.turn_not_kept"))
    );
    assert!(
        old.out.contains("the oldest kept turn is that of event 4"),
        "{}",
        old.out
    );

    let new = program.replace("${n}: ${page}", "page: ${page}");
    let new = folder.file("new.ajs", &new);
    let other = replay(6, &["--program", &new]);
    assert_eq!(other.code, 0, "{other:?}");
    let shown = "messages  differs\n  /0/body/content\n    committed  \"3: page 3\"\n    \
                 replayed   \"page: page 3\"\n";
    assert!(other.out.contains(shown), "{}", other.out);
    assert!(other.out.contains("state     same\n"), "{}", other.out);

    folder.file("new.ajs", &program.replace("/${n}`", "/other`"));
    let departs = replay(6, &["--program", &new]);
    assert_eq!(
        (departs.code, departs.out.lines().count()),
        (1, 1),
        "{departs:?}"
    );
    let said = format!(
        "error[replay.departed]: The run departs from its recording at call 0.0: it calls httpFetch \
         {{\"url\":\"{url}/other\"}}, and the recording has httpFetch with other inputs"
    );
    assert!(departs.err.contains(&said), "{}", departs.err);
    let departs = replay(6, &["--program", &new, "--json"]).json();
    assert_eq!(
        (&departs["replayed"], &departs["same"]),
        (&Json::Null, &json!(false))
    );
    assert_eq!(departs["departure"]["code"], "replay.departed");
    host.kill();

    // Without a host, too; nothing was asked again, and no credential is kept.
    assert_eq!(replay(8, &["--json"]).json()["same"], true);
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    assert!(has(&folder, "page 4") && !has(&folder, "hunter2"));
    let mode = std::fs::metadata(folder.path("agents.db"))
        .expect("the store")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}
