//! Waits of commands for a host: how they end with many events, with failing agents, and with a
//! hanging host or client.

use crate::harness::{Done, Sandbox, a99};
use crate::hosted::{Hosted, spawn, until};
use crate::raw::{PROTOCOL, Raw};
use serde_json::json;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

fn agent(words: &[&str], config: &str) -> Done {
    let place = ["--config", config];
    a99(&[&["agent"], words, &place].concat(), b"")
}

/// Creates the agent of `agent new`. Returns its path.
fn new(folder: &Sandbox) -> String {
    let made = a99(&["agent", "new", "echo", "--in", &folder.path("")], b"");
    assert_eq!(made.code, 0, "{made:?}");
    folder.path("echo/agents.toml")
}

/// Sends messages over one connection.
fn flood(host: &Hosted, channel: &str, text: &str, count: usize) {
    let mut raw = Raw::to(host);
    let params = json!({"channel": channel, "sender": "ann"});
    for _ in 0..count {
        raw.ask(Some(PROTOCOL), "send", &params, text);
        let (_, answer) = raw.answer();
        assert!(answer.is_ok(), "{answer:?}");
    }
}

#[test]
fn t6_a_wait_ends_however_much_there_is_to_look_at() {
    let folder = Sandbox::new("agent-long-log");
    let config = new(&folder);
    let host = Hosted::start(&["--config", &config, "--durability", "relaxed"]);
    let sent = agent(&["send", "quiet", "first", "--key", "k"], &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    flood(&host, "quiet", "x", 4_000);
    // One read returns all events since the last.
    let words = [
        "send",
        "quiet",
        "first",
        "--key",
        "k",
        "--wait",
        "--timeout",
        "60s",
    ];
    let sent = agent(&words, &config);
    assert_eq!(sent.code, 0, "{} {}", sent.code, sent.err);
    assert!(sent.err.contains("there already"), "{}", sent.err);
    host.end();
}

#[test]
fn t6_send_reports_only_what_was_given_up_of_its_message() {
    let folder = Sandbox::new("agent-others-dead");
    folder.file(
        "bad.ajs",
        "async function agent() {\n  throw new Error('no luck')\n}\n",
    );
    folder.file(
        "good.ajs",
        include_str!("../../src/templates/live/agent.ajs"),
    );
    // Both agents receive all messages.
    let config = folder.file(
        "agents.toml",
        "[[agent]]\nname = \"good\"\nprogram = \"good.ajs\"\nchannel = \"c\"\n\
         config = { greeting = \"Hi\" }\n\
         [[agent]]\nname = \"bad\"\nprogram = \"bad.ajs\"\nchannel = \"c\"\n\
         retry = { attempts = 1 }\n",
    );
    let host = Hosted::start(&["--config", &config]);
    let first = [
        "send", "c", "one", "--at", "good", "--key", "k", "--wait", "--json",
    ];
    let sent = agent(&first, &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    // Another sender's message, later on the same channel.
    let other = [
        "send",
        "c",
        "two",
        "--at",
        "bad",
        "--wait",
        "--timeout",
        "60s",
    ];
    let other = agent(&other, &config);
    assert!(
        other.code == 1 && other.err.contains("no luck"),
        "{other:?}"
    );
    let sent = agent(&first, &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    // A message to both: the result names the agent whose turn became a dead letter.
    let both = ["send", "c", "three", "--wait", "--timeout", "60s"];
    let both = agent(&both, &config);
    assert!(
        both.code == 1 && both.err.contains("bad/c/bad gave"),
        "{both:?}"
    );
    host.end();
}

/// Sends a signal to a host.
fn signal(host: &Hosted, name: &str) {
    let sent = Command::new("kill")
        .args([name, &host.pid().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn t11_commands_outlast_no_host_that_stands_still() {
    let folder = Sandbox::new("agent-stopped");
    let config = new(&folder);
    let host = Hosted::start(&["--config", &config]);
    // A command that follows waits as long as the host answers others.
    let follow = ["agent", "logs", "general", "--follow", "--json"];
    let mut follower = spawn(&[&follow[..], &["--config", &config]].concat());
    std::thread::sleep(Duration::from_secs(7));
    let sent = agent(&["send", "general", "Hello", "--wait"], &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    until(&mut follower, |event| {
        event["content"] == "Message #1: Hello"
    });
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");

    signal(&host, "-STOP");
    let wait = ["send", "general", "x", "--wait", "--timeout", "1s"];
    let call = ["call", "echo", "nothing", "--timeout", "1s"];
    let commands: [(&[&str], u64); 6] = [
        (&wait, 15),
        (&call, 15),
        (&["send", "general", "x"], 60),
        (&["inspect"], 60),
        (&["checkpoint", "echo", "--set", "0"], 60),
        (&["logs", "general", "--follow"], 60),
    ];
    std::thread::scope(|scope| {
        for (words, most) in commands {
            let config = &config;
            scope.spawn(move || {
                let began = Instant::now();
                let done = agent(words, config);
                assert_eq!(done.code, 2, "{words:?}: {done:?}");
                let is_told = done.err.contains("error[cli.no_answer]");
                assert!(is_told && done.err.contains("stands still"), "{done:?}");
                let took = began.elapsed();
                assert!(took < Duration::from_secs(most), "{words:?}: {took:?}");
            });
        }
    });
    signal(&host, "-CONT");
    let sent = agent(&["send", "general", "again", "--wait"], &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    host.end();
}

#[test]
fn t6_the_limit_of_a_wait_cuts_no_frame() {
    let folder = Sandbox::new("agent-slow-reader");
    let config = new(&folder);
    let host = Hosted::start(&["--config", &config, "--durability", "relaxed"]);
    let sent = agent(&["send", "quiet", "first", "--key", "k"], &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    flood(&host, "quiet", &"x".repeat(20_000), 100);
    // More than a socket buffer holds; nothing is read until the timeout.
    let mut raw = Raw::to(&host);
    let params = json!({"channel": "quiet", "sender": "user", "key": "k", "waitMs": 300});
    raw.ask(Some(PROTOCOL), "send", &params, "first");
    std::thread::sleep(Duration::from_secs(1));
    let (events, answer) = raw.answer();
    assert!(answer.is_ok_and(|result| result.is_object()));
    assert_eq!(events.len(), 100);
    host.end();
}

#[test]
fn t11_clients_that_take_no_answer_make_room() {
    let folder = Sandbox::new("agent-stalled");
    let config = new(&folder);
    let host = Hosted::start(&["--config", &config, "--durability", "relaxed"]);
    flood(&host, "quiet", &"x".repeat(20_000), 100);
    let mut early = UnixStream::connect(host.socket()).expect("a host");
    // All places are taken by clients that request much and read nothing.
    let stalls = |_| {
        let mut raw = Raw::to(&host);
        raw.ask(Some(PROTOCOL), "logs", &json!({"channel": "quiet"}), "");
        // The host is answering it.
        raw.next();
        raw
    };
    let stalled: Vec<_> = (0..63).map(stalls).collect();
    // One more replaces the idle client.
    let last = stalls(63);
    let began = Instant::now();
    let refused = agent(&["inspect"], &config);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("error[cli.busy]"), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(15));
    let mut rest = String::new();
    let read = std::io::Read::read_to_string(&mut early, &mut rest);
    assert!(read.is_ok() && rest.is_empty(), "{rest}");
    // After a while they are evicted.
    let done = loop {
        let done = agent(&["inspect", "--json"], &config);
        if done.code == 0 {
            break done;
        }
        assert!(done.out.contains("cli.busy"), "{done:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{done:?}");
        std::thread::sleep(Duration::from_millis(500));
    };
    assert_eq!(done.json()["agents"][0]["key"], "echo/general/echo");
    drop((stalled, last));
    host.end();
}
