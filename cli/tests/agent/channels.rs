//! Channels over the network: the server, hosts of agents that use it, and the commands that reach
//! it.

use crate::harness::{Done, Sandbox, a99};
use crate::hosted::{Hosted, lines};
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// Issues a token, and gives the file that has it.
fn token(folder: &Sandbox, name: &str, scope: &str) -> String {
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
    let (store, tokens) = (folder.path("channels.db"), folder.path("tokens.json"));
    let args = [
        "channels", "serve", "--json", "--store", &store, "--listen", listen,
    ];
    let mut server = Hosted::run(&[&args[..], &["--tokens", &tokens]].concat());
    let listening = server.wait_for("listening");
    let address = listening["address"]
        .as_str()
        .expect("an address")
        .to_owned();
    (server, address)
}

fn channels(what: &str, server: &str, rest: &[&str], token: &str) -> Done {
    let place = ["channels", what, server, "general"];
    a99(
        &[&place[..], rest, &["--token-file", token, "--json"]].concat(),
        b"",
    )
}

/// Texts that a handle said, once there are as many.
fn said(server: &str, token: &str, handle: &str, count: usize) -> Vec<String> {
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

/// Sends a request, and gives status and body.
fn ask(address: &str, token: &str, method: &str, path: &str, body: &Json) -> (u16, Json) {
    use std::io::{Read as _, Write as _};
    let host = address.trim_start_matches("http://");
    let body = body.to_string();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = std::net::TcpStream::connect(host).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    (
        status.expect("a status"),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

#[test]
fn agents_that_sleep_are_registered_over_http_and_outlast_the_server() {
    let folder = Sandbox::new("channels-push");
    let admin = token(&folder, "admin", "admin");
    let admin = std::fs::read_to_string(admin).expect("a token");
    let reader = token(&folder, "reader", "read:*");
    let reader = std::fs::read_to_string(reader).expect("a token");
    let file = folder.path("push.json");
    let (store, tokens) = (folder.path("channels.db"), folder.path("tokens.json"));
    let serve = || {
        let args = [
            "channels",
            "serve",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--store",
            &store,
        ];
        let mut server =
            Hosted::run(&[&args[..], &["--tokens", &tokens, "--push", &file]].concat());
        let address = server.wait_for("listening")["address"].clone();
        (server, address.as_str().expect("an address").to_owned())
    };
    let (server, address) = serve();
    let agent = serde_json::json!({"agent": "echo/general/echo", "url": "https://192.0.2.1",
        "config": {}, "types": ["message"]});
    let register = |token: &str| ask(&address, token, "POST", "/v1/push/register", &agent);
    assert_eq!(register(&reader).0, 403);
    let (status, registered) = register(&admin);
    assert_eq!(status, 200, "{registered}");
    assert!(
        registered["secret"]
            .as_str()
            .expect("a secret")
            .starts_with("whsec_")
    );
    server.end();
    let (server, address) = serve();
    let (_, agents) = ask(&address, &admin, "GET", "/v1/push/agents", &Json::Null);
    assert_eq!(agents[0]["agent"], "echo/general/echo", "{agents}");
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
