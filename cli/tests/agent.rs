//! Long-lived agents: created, hosted, sent messages, killed and restarted.

#[cfg(feature = "server")]
#[path = "agent/channels.rs"]
mod channels;
#[path = "agent/doors.rs"]
mod doors;
#[cfg(feature = "server")]
#[path = "agent/examples.rs"]
mod examples;
#[cfg(feature = "server")]
#[path = "agent/functions.rs"]
mod functions;
mod harness;
#[path = "agent/hosted.rs"]
mod hosted;
#[cfg(feature = "http")]
#[path = "agent/programs.rs"]
mod programs;
#[path = "agent/raw.rs"]
mod raw;
#[path = "agent/reloads.rs"]
mod reloads;
#[cfg(feature = "http")]
#[path = "agent/replays.rs"]
mod replays;
#[path = "agent/sizes.rs"]
mod sizes;
#[path = "agent/sleeps.rs"]
mod sleeps;
#[path = "agent/tables.rs"]
mod tables;
#[path = "agent/waits.rs"]
mod waits;

use harness::{Sandbox, a99};
use hosted::{Hosted, lines};
use raw::{PROTOCOL, Raw};
use serde_json::{Value as Json, json};

/// Texts of a channel's messages from one handle.
fn said(place: &[&str], channel: &str, handle: &str) -> Vec<String> {
    let done = a99(
        &[&["agent", "logs", channel, "--json"], place].concat(),
        b"",
    );
    assert_eq!(done.code, 0, "{done:?}");
    let events = lines(&done.out);
    let of = |event: &&Json| event["type"] == "message" && event["sender"]["handle"] == handle;
    let texts = events
        .iter()
        .filter(of)
        .map(|event| event["content"].as_str());
    texts
        .map(|text| text.unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn an_agent_answers_is_killed_and_nothing_is_lost_or_doubled() {
    let folder = Sandbox::new("agent-killed");
    let made = a99(&["agent", "new", "echo", "--in", &folder.path("")], b"");
    assert_eq!(made.code, 0, "{made:?}");
    let config = folder.path("echo/agents.toml");
    let place = ["--config", &config];
    // No host runs yet: the message waits.
    let queued = a99(
        &[&["agent", "send", "general", "zero"], &place[..]].concat(),
        b"",
    );
    assert_eq!(queued.code, 0, "{queued:?}");
    assert!(queued.err.contains("no host runs"), "{queued:?}");

    let host = Hosted::start(&place);
    let sent = a99(
        &[&["agent", "send", "general", "one", "--wait"], &place[..]].concat(),
        b"",
    );
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(sent.out.contains("@echo: Message #2: one"), "{sent:?}");
    host.kill();

    // A stale socket exists.
    let again = a99(
        &[
            &["agent", "send", "general", "two", "--key", "k"],
            &place[..],
        ]
        .concat(),
        b"",
    );
    assert!(
        again.code == 0 && again.err.contains("no host runs"),
        "{again:?}"
    );
    let host = Hosted::start(&place);
    let same = a99(
        &[
            &["agent", "send", "general", "two", "--key", "k", "--wait"],
            &place[..],
        ]
        .concat(),
        b"",
    );
    assert_eq!(same.code, 0, "{same:?}");
    assert!(same.err.contains("there already"), "{same:?}");
    let expected = ["Message #1: zero", "Message #2: one", "Message #3: two"];
    assert_eq!(said(&place, "general", "echo"), expected);
    let shown = a99(
        &[&["agent", "inspect", "echo", "--json"], &place[..]].concat(),
        b"",
    )
    .json();
    assert_eq!(
        (&shown["state"]["count"], &shown["lag"]),
        (&3.into(), &0.into()),
        "{shown}"
    );
    let told = host.end();
    assert!(
        told.iter().any(|line| line["event"] == "stopped"),
        "{told:?}"
    );
    // The same from the store's file.
    assert_eq!(said(&place, "general", "echo"), expected);
}

#[test]
fn a_host_ends_turns_before_it_ends() {
    let folder = Sandbox::new("agent-drained");
    let config = folder.file("agents.toml", "[[agent]]\nname = \"slow\"\nprogram = \"slow.ajs\"\nchannel = \"c\"\nfuel = 2000000\ntimeout = \"60s\"\n");
    folder.file(
        "slow.ajs",
        "async function agent({ event }) {
  let n = 0
  while (n < 60000) {
    n = n + 1
  }
  await agentSend({ content: `done ${n}` })
}
",
    );
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let sent = a99(&[&["agent", "send", "c", "go"], &place[..]].concat(), b"");
    assert_eq!(sent.code, 0, "{sent:?}");
    let told = host.end();
    let stopped = told.iter().find(|line| line["event"] == "stopped");
    assert_eq!(
        stopped.map(|line| &line["cutOff"]),
        Some(&Json::Array(vec![])),
        "{told:?}"
    );
    // The turn either completed uncut, or starts again with the next host.
    let host = Hosted::start(&place);
    let waited = a99(
        &[
            &["agent", "send", "c", "go", "--wait", "--timeout", "60s"],
            &place[..],
        ]
        .concat(),
        b"",
    );
    assert_eq!(waited.code, 0, "{waited:?}");
    host.end();
    assert_eq!(said(&place, "c", "slow"), ["done 60000", "done 60000"]);
}

#[test]
fn a_file_is_read_again() {
    let folder = Sandbox::new("agent-reloaded");
    let agent = |name: &str, greeting: &str| {
        format!(
            "[[agent]]\nname = \"{name}\"\nprogram = \"echo.ajs\"\nchannel = \"c\"\nconfig = {{ greeting = \"{greeting}\" }}\n"
        )
    };
    folder.file("echo.ajs", include_str!("../src/templates/live/agent.ajs"));
    let config = folder.file("agents.toml", &agent("a", "Hi"));
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let say = |text: &str| {
        let done = a99(
            &[
                &["agent", "send", "c", text, "--at", "a,b", "--wait"],
                &place[..],
            ]
            .concat(),
            b"",
        );
        (done.code, done.out, done.err)
    };
    let missing = say("one");
    assert!(
        missing.0 == 2 && missing.2.contains("no agent has the handle @b"),
        "{missing:?}"
    );
    folder.file(
        "agents.toml",
        &format!("{}{}", agent("a", "Hello"), agent("b", "Ahoy")),
    );
    let done = a99(&[&["agent", "reload", "--json"], &place[..]].concat(), b"");
    assert_eq!(done.code, 0, "{done:?}");
    let (code, out, err) = say("two");
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("@a: Hello #1: two") && out.contains("@b: Ahoy"),
        "{out}"
    );
    // A mistake in the file is reported, and changes nothing.
    folder.file("agents.toml", &agent("a", "Hi").replace("name", "nam"));
    let wrong = a99(
        &["agent", "reload", "--store", &folder.path("agents.db")],
        b"",
    );
    assert!(
        wrong.code == 2 && wrong.err.contains("did you mean `name`?"),
        "{wrong:?}"
    );
    folder.file("agents.toml", &agent("b", "Ahoy"));
    let done = a99(&[&["agent", "reload", "--json"], &place[..]].concat(), b"").json();
    assert_eq!(done["left"], serde_json::json!(["a/c/a"]), "{done}");
    host.end();
}

#[test]
fn two_hosts_do_not_share_a_store() {
    let folder = Sandbox::new("agent-twice");
    a99(&["agent", "new", "echo", "--in", &folder.path("")], b"");
    let config = folder.path("echo/agents.toml");
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let second = a99(&[&["agent", "host", "--json"], &place[..]].concat(), b"");
    assert_eq!(second.code, 2, "{second:?}");
    let error = &second.json()["error"];
    assert_eq!(error["code"], "store.locked");
    let text = error["message"].as_str().unwrap_or_default();
    assert!(text.contains(&format!("process {}", host.pid())), "{text}");
    host.end();
}

#[test]
fn turns_that_were_given_up_are_tried_again() {
    let folder = Sandbox::new("agent-dead");
    let config = folder.file(
        "agents.toml",
        "[[agent]]\nname = \"a\"\nprogram = \"a.ajs\"\nchannel = \"c\"\nretry = { attempts = 1 }\n",
    );
    let program = |text: &str| {
        folder.file(
            "a.ajs",
            &format!("async function agent({{ event }}) {{\n  {text}\n}}\n"),
        );
    };
    program("throw new Error('no')");
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let sent = a99(
        &[&["agent", "send", "c", "one", "--wait"], &place[..]].concat(),
        b"",
    );
    assert_eq!(sent.code, 1, "{sent:?}");
    assert!(sent.err.contains("error[cli.given_up]"), "{sent:?}");
    program("await agentSend({ content: `now ${event.content}` })");
    assert_eq!(
        a99(&[&["agent", "reload"], &place[..]].concat(), b"").code,
        0
    );
    let again = a99(
        &[
            &["agent", "checkpoint", "a", "--retry-dead", "--json"],
            &place[..],
        ]
        .concat(),
        b"",
    );
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(again.json()["again"], serde_json::json!([2]));
    let sent = a99(
        &[&["agent", "send", "c", "two", "--wait"], &place[..]].concat(),
        b"",
    );
    assert_eq!(sent.code, 0, "{sent:?}");
    host.end();
    assert_eq!(said(&place, "c", "a"), ["now one", "now two"]);
    let shown = a99(
        &[&["agent", "checkpoint", "a", "--json"], &place[..]].concat(),
        b"",
    )
    .json();
    assert_eq!(shown["givenUp"], 0, "{shown}");
    // A checkpoint can be set back, but not beyond the log.
    let beyond = a99(
        &[&["agent", "checkpoint", "a", "--set", "99"], &place[..]].concat(),
        b"",
    );
    assert!(
        beyond.code == 2 && beyond.err.contains("cli.bad_checkpoint"),
        "{beyond:?}"
    );
    let back = a99(
        &[&["agent", "checkpoint", "a", "--set", "0"], &place[..]].concat(),
        b"",
    );
    assert_eq!(back.code, 0, "{back:?}");
}

#[test]
fn requests_are_bounded_and_the_socket_is_its_owners() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Sandbox::new("agent-socket");
    a99(&["agent", "new", "echo", "--in", &folder.path("")], b"");
    let config = folder.path("echo/agents.toml");
    let host = Hosted::start(&["--config", &config]);
    let socket = folder.path("echo/agents.db.sock");
    let mode = std::fs::metadata(&socket).expect("a socket").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let protocol = Some(PROTOCOL);
    for (protocol, method, params, told) in [
        (protocol, "sned", json!({}), "unknown variant"),
        (protocol, "inspect", json!({"agnt": 1}), "unknown field"),
        (protocol, "inspect", json!({"agent": "ecko"}), "ecko"),
        (protocol, "send", json!("no call"), "no request"),
        (Some(3), "inspect", json!({}), "another version"),
        (None, "inspect", json!({}), "another version"),
    ] {
        let mut raw = Raw::to(&host);
        raw.ask(protocol, method, &params, "");
        let (_, answer) = raw.answer();
        let (code, text) = answer.expect_err("it is refused");
        assert!(text.contains(told), "{method}: {code}: {text}");
    }
    // A length beyond the limit, no header, and a request of the time before frames.
    let bytes: [&[u8]; 3] = [
        &[1, 0, 0, 1],
        &[0, 0, 0, 0],
        b"{\"id\": 3, \"method\": \"reload\"}\n",
    ];
    for bytes in bytes {
        let mut raw = Raw::to(&host);
        raw.write(bytes);
        let (code, text) = raw.answer().1.expect_err("it is refused");
        assert_eq!(code, "cli.bad_request", "{text}");
    }
    host.end();
    assert!(!std::path::Path::new(&socket).exists());
}

#[test]
fn the_log_is_followed() {
    let folder = Sandbox::new("agent-followed");
    a99(&["agent", "new", "echo", "--in", &folder.path("")], b"");
    let config = folder.path("echo/agents.toml");
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let mut follower = hosted::spawn(
        &[
            &["agent", "logs", "general", "--follow", "--json"],
            &place[..],
        ]
        .concat(),
    );
    let sent = a99(
        &[&["agent", "send", "general", "Hello", "--wait"], &place[..]].concat(),
        b"",
    );
    assert_eq!(sent.code, 0, "{sent:?}");
    let seen = hosted::until(&mut follower, |line| line["content"] == "Message #1: Hello");
    assert!(
        seen.iter().any(|line| line["content"] == "Hello"),
        "{seen:?}"
    );
    // It continues when another host replaces this one.
    assert_eq!(
        a99(&[&["agent", "reload"], &place[..]].concat(), b"").code,
        0
    );
    a99(
        &[&["agent", "send", "general", "Again", "--wait"], &place[..]].concat(),
        b"",
    );
    hosted::until(&mut follower, |line| line["content"] == "Message #2: Again");
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
    host.end();
}

/// A copy of an example's folder, with another address of the model.
#[cfg(feature = "models")]
fn example(name: &str, folder: &Sandbox, url: &str) -> String {
    let root = format!("{}/../examples/agents/{name}", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(root).expect("an example") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        folder.file(&file, &text.replace("http://localhost:8089/v1", url));
    }
    folder.path("agents.toml")
}

#[cfg(feature = "models")]
#[test]
fn the_examples_answer() {
    let say = |place: &[&str], channel: &str, text: &str| {
        let args = ["agent", "send", channel, text, "--wait", "--timeout", "60s"];
        let done = a99(&[&args, place].concat(), b"");
        assert_eq!(done.code, 0, "{done:?}");
        done.out
    };
    let folder = Sandbox::new("agent-echo");
    let config = example("echo", &folder, "");
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let both = say(&place, "general", "Hello");
    assert!(both.contains("@echo: Message #1: Hello"), "{both}");
    assert!(
        both.contains("@shout: HELLO!") && both.lines().count() == 2,
        "{both}"
    );
    host.end();

    let folder = Sandbox::new("agent-scheduled");
    let config = example("scheduled", &folder, "");
    let place = ["--config", config.as_str()];
    let mut host = Hosted::start(&place);
    let reminded = say(&place, "general", "remind 50 of tea");
    assert!(
        reminded.contains("@clock: I remind you of tea"),
        "{reminded}"
    );
    while host.wait_for("channel")["said"]["content"] != "Time for tea" {}
    host.end();
    let shown = a99(
        &[&["agent", "inspect", "clock", "--json"], &place[..]].concat(),
        b"",
    )
    .json();
    assert_eq!(shown["timers"][0]["name"], "second", "{shown}");

    let folder = Sandbox::new("agent-chat");
    let turns = format!(
        "{}/../examples/agents/chat/turns.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut model = hosted::spawn(&["dev", "model-server", &turns, "--json"]);
    let told = hosted::until(&mut model, |line| line["url"].is_string());
    let config = example(
        "chat",
        &folder,
        told[0]["url"].as_str().expect("an address"),
    );
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let noted = say(&place, "shop", "I need a lamp");
    assert!(noted.contains("@shop: Noted: you want a lamp."), "{noted}");
    let known = say(&place, "shop", "What did I want?");
    assert!(known.contains("as you said before."), "{known}");
    host.end();
    model.kill().expect("it runs");
    model.wait().expect("it ends");
}
