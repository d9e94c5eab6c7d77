//! Channels over the network: the server, hosts of agents that use it, and the commands that reach
//! it.

use crate::harness::{Done, Sandbox, a99};
use crate::hosted::{Hosted, lines};
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// Issues a token, and gives the file that has it.
pub(crate) fn token(folder: &Sandbox, name: &str, scope: &str) -> String {
    let tokens = folder.path("tokens.json");
    let args = [
        "token", "new", "--name", name, "--scope", scope, "--tokens", &tokens,
    ];
    let made = a99(&args, b"");
    assert_eq!(made.code, 0, "{made:?}");
    folder.file(name, made.out.trim())
}

/// Starts a server, and gives its address.
fn serve(folder: &Sandbox, listen: &str) -> (Hosted, String) {
    serve_with(folder, listen, &[])
}

/// Starts a server with more options.
pub(crate) fn serve_with(folder: &Sandbox, listen: &str, more: &[&str]) -> (Hosted, String) {
    let (store, tokens) = (folder.path("channels.db"), folder.path("tokens.json"));
    let args = [
        "channels", "serve", "--json", "--store", &store, "--listen", listen,
    ];
    let mut server = Hosted::run(&[&args[..], &["--tokens", &tokens], more].concat());
    let listening = server.wait_for("listening");
    let address = listening["address"]
        .as_str()
        .expect("an address")
        .to_owned();
    (server, address)
}

pub(crate) fn channels(what: &str, server: &str, rest: &[&str], token: &str) -> Done {
    let place = ["channels", what, server, "general"];
    a99(
        &[&place[..], rest, &["--token-file", token, "--json"]].concat(),
        b"",
    )
}

/// Texts that a handle said, once there are as many.
pub(crate) fn said(server: &str, token: &str, handle: &str, count: usize) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let done = channels("logs", server, &[], token);
        assert_eq!(done.code, 0, "{done:?}");
        let events = lines(&done.out);
        let of = |event: &&Json| event["type"] == "message" && event["sender"]["handle"] == handle;
        let texts = events
            .iter()
            .filter(of)
            .map(|event| event["content"].to_string());
        let texts: Vec<String> = texts.collect();
        if texts.len() >= count || Instant::now() > until {
            return texts;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn two_hosts_share_a_channel_and_are_killed_in_turn() {
    let folder = Sandbox::new("channels-hosts");
    let (admin, host) = (
        token(&folder, "admin", "admin"),
        token(&folder, "host", "admin"),
    );
    let (server, address) = serve(&folder, "127.0.0.1:0");
    let listen = address.trim_start_matches("http://").to_owned();
    let mut places = Vec::new();
    for name in ["one", "two"] {
        let made = a99(&["agent", "new", name, "--in", &folder.path("")], b"");
        assert_eq!(made.code, 0, "{made:?}");
        places.push(folder.path(&format!("{name}/agents.toml")));
    }
    let start = |config: &str| {
        Hosted::start(&[
            "--config",
            config,
            "--channels",
            &address,
            "--token-file",
            &host,
        ])
    };
    let (one, two) = (start(&places[0]), start(&places[1]));
    let send = |text: &str| {
        let sent = channels("send", &address, &[text, "--key", text], &admin);
        assert_eq!(sent.code, 0, "{sent:?}");
        sent.json()
    };
    assert_eq!(send("first")["isNew"], true);
    assert_eq!(send("first")["isNew"], false);
    assert_eq!(said(&address, &admin, "one", 1), ["\"Message #1: first\""]);
    assert_eq!(said(&address, &admin, "two", 1), ["\"Message #1: first\""]);
    // A host is killed; its agent answers what came meanwhile.
    one.kill();
    send("second");
    assert_eq!(said(&address, &admin, "two", 2).len(), 2);
    let one = start(&places[0]);
    assert_eq!(
        said(&address, &admin, "one", 2)[1],
        "\"Message #2: second\""
    );
    // The server is killed; both hosts find the next one.
    server.kill();
    let (server, _) = serve(&folder, &listen);
    send("third");
    for name in ["one", "two"] {
        let texts = said(&address, &admin, name, 3);
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert_eq!(texts[2], "\"Message #3: third\"", "{name}");
    }
    // The socket of a host reaches the channels of the server.
    let inspected = a99(
        &["agent", "inspect", "one", "--json", "--config", &places[0]],
        b"",
    );
    assert_eq!(inspected.json()["lag"], 0, "{inspected:?}");
    drop((one, two, server));
}

#[test]
fn a_host_of_agents_serves_its_channels() {
    let folder = Sandbox::new("channels-listen");
    let made = a99(&["agent", "new", "echo", "--in", &folder.path("")], b"");
    assert_eq!(made.code, 0, "{made:?}");
    let (config, tokens) = (folder.path("echo/agents.toml"), folder.path("tokens.json"));
    let talk = token(&folder, "talk", "admin");
    let read = token(&folder, "read", "read:general");
    let place = [
        "--config",
        &config,
        "--listen",
        "127.0.0.1:0",
        "--tokens",
        &tokens,
    ];
    let mut host = Hosted::begin(&place);
    let address = host.wait_for("listening")["address"]
        .as_str()
        .expect("one")
        .to_owned();
    let sent = channels("send", &address, &["hello"], &talk);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert_eq!(said(&address, &read, "echo", 1), ["\"Message #1: hello\""]);
    let refused = channels("send", &address, &["hello"], &read);
    assert_eq!(
        (refused.code, &refused.json()["error"]["code"]),
        (2, &"server.forbidden".into())
    );
    let missing = channels("call", &address, &["echo", "fly"], &talk);
    assert_eq!(
        missing.json()["error"]["code"],
        "method-not-found",
        "{missing:?}"
    );
    let wrong = channels("logs", "ws://127.0.0.1:1", &[], &talk);
    assert_eq!(wrong.json()["error"]["code"], "channels.lost", "{wrong:?}");
    let far = channels("logs", "ws://192.0.2.1:7420", &[], &talk);
    assert_eq!(
        far.json()["error"]["code"],
        "channels.bad_server",
        "{far:?}"
    );
}

#[test]
fn an_address_beyond_this_machine_needs_encryption() {
    let folder = Sandbox::new("channels-unsafe");
    let (store, tokens) = (folder.path("channels.db"), folder.path("tokens.json"));
    let args = [
        "channels", "serve", "--json", "--store", &store, "--tokens", &tokens,
    ];
    let refused = a99(&[&args[..], &["--listen", "0.0.0.0:0"]].concat(), b"");
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.code, &error["code"]),
        (2, &"server.unsafe_address".into()),
        "{refused:?}"
    );
    assert!(
        error["help"].as_str().expect("help").contains("--tls-cert"),
        "{error}"
    );
    assert!(
        !std::path::Path::new(&store).exists(),
        "the store is not touched"
    );
}

#[test]
fn registrations_outlast_the_server() {
    let folder = Sandbox::new("channels-push");
    let admin = token(&folder, "admin", "admin");
    let file = folder.path("push.json");
    let (store, tokens) = (folder.path("channels.db"), folder.path("tokens.json"));
    let more = ["--push", file.as_str()];
    let (server, address) = serve_with(&folder, "127.0.0.1:0", &more);
    let words = ["channels", "push", "add", &address, "echo/general/echo"];
    let rest = [
        "https://192.0.2.1",
        "--type",
        "message",
        "--token-file",
        &admin,
    ];
    let added = a99(&[&words[..], &rest].concat(), b"");
    assert!(
        added.code == 0 && added.out.starts_with("whsec_"),
        "{added:?}"
    );
    server.end();
    let (server, address) = serve_with(&folder, "127.0.0.1:0", &more);
    let words = ["channels", "push", "list", &address, "--token-file", &admin];
    let listed = a99(&words, b"");
    assert!(listed.out.contains("echo/general/echo"), "{listed:?}");
    drop(server);
    std::fs::write(&file, "{").expect("written");
    let args = [
        "channels",
        "serve",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--store",
        &store,
    ];
    let refused = a99(
        &[&args[..], &["--tokens", &tokens, "--push", &file]].concat(),
        b"",
    );
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn a_host_is_inspected_from_afar() {
    let folder = Sandbox::new("channels-inspect");
    let made = a99(&["agent", "new", "echo", "--in", &folder.path("")], b"");
    assert_eq!(made.code, 0, "{made:?}");
    let (config, tokens) = (folder.path("echo/agents.toml"), folder.path("tokens.json"));
    let admin = token(&folder, "admin", "admin");
    let inspector = token(&folder, "inspector", "inspect:general");
    let reader = token(&folder, "reader", "read:*");
    let place = ["--config", &config, "--listen", "127.0.0.1:0"];
    let mut host = Hosted::begin(&[&place[..], &["--tokens", &tokens]].concat());
    let address = host.wait_for("listening")["address"].clone();
    let address = address.as_str().expect("one");
    let sent = channels("send", address, &["hello"], &admin);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert_eq!(said(address, &admin, "echo", 1).len(), 1);
    let inspect = |rest: &[&str], token: &str| {
        let words = ["channels", "inspect", address, "--token-file", token];
        a99(&[&words[..], rest].concat(), b"")
    };
    let key = "echo/general/echo";
    for rest in [&["--json"][..], &["general", "--json"]] {
        let all = inspect(rest, &inspector).json();
        assert_eq!(all["agents"][0]["key"], key, "{all}");
        assert_eq!(all["agents"][0]["outbox"], 0, "{all}");
    }
    assert_eq!(
        inspect(&["other", "--json"], &inspector).json(),
        serde_json::json!({"agents": []})
    );
    let one = inspect(&[key, "--json"], &inspector).json();
    assert_eq!(
        (&one["state"]["count"], &one["lag"]),
        (&1.into(), &0.into()),
        "{one}"
    );
    let turns = one["keptTurns"].as_array().expect("turns");
    assert!(
        turns
            .iter()
            .any(|turn| turn["sent"] == 1 && turn["fuel"].as_f64() > Some(0.0))
    );
    let last = inspect(&[key, "--json", "--turns", "1"], &inspector).json();
    assert_eq!(
        last["keptTurns"],
        Json::Array(turns[turns.len() - 1..].to_vec())
    );
    let shown = inspect(&[key], &inspector);
    assert!(shown.out.contains("\nturn        event:"), "{shown:?}");
    for (rest, token, code) in [
        (&[][..], &reader, "server.forbidden"),
        (&[key], &reader, "server.forbidden"),
        (&["eco/general/echo"], &inspector, "store.not_found"),
        (&["echo/general"], &inspector, "agent.bad_key"),
    ] {
        let refused = inspect(&[rest, &["--json"]].concat(), token);
        assert_eq!(refused.json()["error"]["code"], code, "{refused:?}");
        assert_eq!(refused.code, 2, "{refused:?}");
    }
    host.end();
}
