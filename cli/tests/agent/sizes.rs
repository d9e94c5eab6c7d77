//! Large requests and answers (finding T8), and clients that keep them waiting.

use crate::harness::{Done, Sandbox, a99};
use crate::hosted::{Hosted, lines};
use crate::raw::{PROTOCOL, Raw};
use a99_runtime::AgentKey;
use a99_runtime_engine::{AgentStore as _, Fence, NewState, TurnCommit};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::json;
use std::time::{Duration, Instant};

fn agent(words: &[&str], config: &str, stdin: &[u8]) -> Done {
    let place = ["--config", config];
    a99(&[&["agent"], words, &place].concat(), stdin)
}

/// Asserts an exit code without printing megabytes.
fn ended(done: &Done, code: i32) {
    let said: String = done.err.chars().take(1_000).collect();
    assert_eq!(done.code, code, "{said}");
}

/// The echo agent on two channels. Returns the file's path.
fn new(folder: &Sandbox) -> String {
    folder.file("a.ajs", include_str!("../../src/templates/live/agent.ajs"));
    folder.file(
        "agents.toml",
        "[[agent]]\nname = \"a\"\nprogram = \"a.ajs\"\nchannels = [\"c\", \"d\"]\n\
         config = { greeting = \"Hi\" }\n",
    )
}

/// Gives an agent a state of this many bytes while no host runs: programs keep less, agents in
/// Rust up to the limit of the store.
fn put_state(folder: &Sandbox, key: &str, bytes: usize) {
    let store = SqliteRuntime::open(folder.path("agents.db"), StoreOptions::default());
    let store = store.expect("a store");
    let key: AgentKey = key.parse().expect("a key");
    let fence = Fence {
        key: key.clone(),
        epoch: store.epoch(&key),
    };
    let mut commit = TurnCommit::new(fence, 1);
    commit.state = Some(NewState {
        json: format!("{{\"text\":\"{}\"}}", "x".repeat(bytes - 11)),
        version: 1,
        base: 0,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let committed = runtime.expect("a runtime").block_on(store.commit(commit));
    committed.expect("committed");
    store.close().expect("closed");
}

#[test]
fn t8_texts_of_4_mb_are_sent_and_those_beyond_a_frame_are_refused() {
    let folder = Sandbox::new("agent-long-text");
    let config = new(&folder);
    let host = Hosted::start(&["--config", &config]);
    let text = "\"quoted\"\t\u{1}\nü ".repeat(4_000_000 / 15);
    let sent = agent(&["send", "quiet", "-"], &config, text.as_bytes());
    ended(&sent, 0);
    let read = agent(&["logs", "quiet", "--json"], &config, b"");
    ended(&read, 0);
    assert!(lines(&read.out)[0]["content"] == text.as_str());
    let long = "x".repeat(17 << 20);
    let refused = agent(&["send", "quiet", "-"], &config, long.as_bytes());
    ended(&refused, 2);
    assert!(
        refused.err.contains("error[cli.bad_request]"),
        "{}",
        refused.err
    );
    host.end();
}

#[test]
fn t8_a_state_of_8_mb_is_shown_and_nobody_waits_for_who_does_not_read_it() {
    let folder = Sandbox::new("agent-long-state");
    let config = new(&folder);
    Hosted::start(&["--config", &config]).end();
    put_state(&folder, "a/c/a", 8_000_000);
    // It fits the store, and no frame together with the rest of the status.
    put_state(&folder, "a/d/a", (16 << 20) - 20);
    let host = Hosted::start(&["--config", &config]);
    let shown = agent(&["inspect", "a/c/a", "--json"], &config, b"");
    ended(&shown, 0);
    let state = shown.json();
    let text = state["state"]["text"].as_str().map(str::len);
    assert_eq!(text, Some(8_000_000 - 11));
    let text = agent(&["inspect", "a/c/a"], &config, b"");
    ended(&text, 0);
    assert!(text.out.len() > 8_000_000);
    let shown = agent(&["inspect", "a/d/a"], &config, b"");
    ended(&shown, 2);
    assert!(
        shown.err.contains("error[store.too_large]"),
        "{}",
        shown.err
    );
    // The others are listed all the same.
    let all = agent(&["inspect", "--json"], &config, b"");
    ended(&all, 0);
    let all = all.json();
    assert!(all["agents"][0] == state);
    assert_eq!(all["agents"][1]["lastError"][0], "store.too_large");

    // Clients that do not read the answer, and those that do not end their request.
    let began = Instant::now();
    let stalled: Vec<Raw> = (0..30)
        .map(|n| {
            let mut raw = Raw::to(&host);
            match n % 2 {
                0 => raw.ask(Some(PROTOCOL), "inspect", &json!({"agent": "a/c/a"}), ""),
                _ => raw.write(&[1, 0, 0, 0, b'{']),
            }
            raw
        })
        .collect();
    let listed = agent(&["inspect"], &config, b"");
    ended(&listed, 0);
    assert!(began.elapsed() < Duration::from_secs(30));
    drop(stalled);
    host.end();
}

#[test]
fn t8_ten_thousand_agents_are_listed() {
    const AGENTS: usize = 10_000;
    let folder = Sandbox::new("agent-many");
    folder.file("a.ajs", include_str!("../../src/templates/live/agent.ajs"));
    let channels: Vec<String> = (0..AGENTS).map(|n| format!("\"channel-{n}\"")).collect();
    let config = folder.file(
        "agents.toml",
        &format!(
            "[[agent]]\nname = \"a\"\nprogram = \"a.ajs\"\nchannels = [{}]\n\
             config = {{ greeting = \"Hi\" }}\n",
            channels.join(", "),
        ),
    );
    let host = Hosted::start(&["--config", &config, "--durability", "relaxed"]);
    let all = agent(&["inspect", "--json"], &config, b"");
    ended(&all, 0);
    assert!(all.out.len() > 1 << 20, "{}", all.out.len());
    let all = all.json();
    assert_eq!(all["agents"].as_array().map(Vec::len), Some(AGENTS));
    assert_eq!(all["host"]["pid"], host.pid());
    let listed = agent(&["inspect"], &config, b"");
    ended(&listed, 0);
    assert_eq!(listed.out.lines().count(), AGENTS + 1);
    host.end();
}
