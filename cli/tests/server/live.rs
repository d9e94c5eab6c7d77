//! Channels and agents on a PostgreSQL server: the commands, killed processes, a killed server.

use crate::cluster::{Cluster, Database};
use crate::hosted::{Hosted, lines};
use crate::{PASSWORD, Said, a99, bare, database};
use serde_json::Value as Json;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// A database of a server that one test kills.
fn mortal() -> Database {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start(|_| String::new())));
    cluster.database()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

struct Channels {
    folder: tempfile::TempDir,
    database: Database,
}

impl Channels {
    fn new() -> Channels {
        let (folder, database) = (tempdir().expect("a folder"), mortal());
        let tokens = path(folder.path(), "tokens.json");
        let words = ["token", "new", "--name", "all", "--scope", "admin"];
        let made = a99(
            folder.path(),
            &[&words[..], &["--tokens", &tokens]].concat(),
            None,
        );
        assert_eq!(made.code, Some(0), "{}", made.err);
        std::fs::write(folder.path().join("token"), made.out.trim()).expect("written");
        Channels { folder, database }
    }

    fn serve(&self, listen: &str) -> Hosted {
        let tokens = path(self.folder.path(), "tokens.json");
        Hosted::run(&[
            "channels",
            "serve",
            "--json",
            "--store",
            &self.database.url(),
            "--listen",
            listen,
            "--tokens",
            &tokens,
        ])
    }

    fn ask(&self, what: &str, address: &str, rest: &[&str]) -> Said {
        let token = path(self.folder.path(), "token");
        let words = ["channels", what, address, "general", "--json"];
        let token = ["--token-file", &token];
        a99(
            self.folder.path(),
            &[&words[..], &token, rest].concat(),
            None,
        )
    }

    fn send(&self, address: &str, text: &str) -> Json {
        let sent = self.ask("send", address, &[text, "--key", text]);
        assert_eq!(sent.code, Some(0), "{}{}", sent.out, sent.err);
        sent.json()
    }

    fn said(&self, address: &str) -> Vec<String> {
        let logs = self.ask("logs", address, &[]);
        assert_eq!(logs.code, Some(0), "{}", logs.err);
        let events = lines(&logs.out);
        let texts = events.iter().filter(|event| event["type"] == "message");
        texts
            .map(|event| event["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

fn address(server: &mut Hosted) -> String {
    let listening = server.wait_for("listening");
    listening["address"]
        .as_str()
        .expect("an address")
        .to_owned()
}

#[test]
fn channels_on_a_server_outlast_kills_of_both() {
    let channels = Channels::new();
    let mut server = channels.serve("127.0.0.1:0");
    let url = address(&mut server);
    let listen = url.trim_start_matches("http://").to_owned();
    assert_eq!(channels.send(&url, "one")["isNew"], true);
    assert_eq!(channels.send(&url, "one")["isNew"], false);
    server.kill();
    let mut server = channels.serve(&listen);
    assert_eq!(address(&mut server), url);
    assert_eq!(channels.send(&url, "one")["isNew"], false);
    assert_eq!(channels.send(&url, "two")["seq"], 2);
    // The database dies while the channel server runs on.
    channels.database.cluster.kill();
    channels.database.cluster.run();
    assert_eq!(channels.send(&url, "two")["isNew"], false);
    assert_eq!(channels.send(&url, "three")["seq"], 3);
    assert_eq!(channels.said(&url), ["one", "two", "three"]);
    // A second server waits, and continues where the first is killed. The first has its lock
    // again.
    std::thread::sleep(Duration::from_secs(1));
    let mut second = channels.serve("127.0.0.1:0");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(channels.send(&url, "four")["seq"], 4);
    server.kill();
    let other = address(&mut second);
    assert_eq!(channels.said(&other), ["one", "two", "three", "four"]);
    let lines_of_it = second.end();
    let has_stopped = lines_of_it.iter().any(|line| line["event"] == "stopped");
    assert!(has_stopped, "{lines_of_it:?}");
    assert!(
        !format!("{lines_of_it:?}").contains(PASSWORD),
        "{lines_of_it:?}"
    );
    let names = "SELECT string_agg(name || head, ' ') FROM agent99.channel";
    assert_eq!(channels.database.sql(names), "general4");
}

#[test]
fn agents_on_a_server_outlast_kills_of_both() {
    let (folder, database) = (tempdir().expect("a folder"), mortal());
    let folder = folder.path();
    let made = a99(folder, &["agent", "new", "echo"], None);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let (config, url) = (path(folder, "echo/agents.toml"), database.url());
    let place = ["--config", &config, "--store", &url];
    let agent = |words: &[&str]| {
        let said = a99(folder, &[&["agent"], words, &place].concat(), None);
        assert_eq!(said.code, Some(0), "{words:?}: {}{}", said.out, said.err);
        said
    };
    let queued = agent(&["send", "general", "zero"]);
    assert!(queued.err.contains("no host runs"), "{}", queued.err);
    let host = Hosted::start(&place);
    let sent = agent(&["send", "general", "one", "--wait"]);
    assert!(sent.out.contains("@echo: Message #2: one"), "{}", sent.out);
    host.kill();
    let again = agent(&["send", "general", "two", "--key", "k"]);
    assert!(again.err.contains("no host runs"), "{}", again.err);
    let mut host = Hosted::start(&place);
    agent(&["send", "general", "two", "--key", "k", "--wait"]);
    for text in ["three", "four"] {
        database.cluster.kill();
        database.cluster.run();
        let words = ["send", "general", text, "--wait", "--timeout", "60s"];
        let sent = agent(&words);
        assert!(sent.out.contains(text), "{}", sent.out);
    }
    let shown = agent(&["inspect", "echo", "--json"]).json();
    assert_eq!(
        (&shown["state"]["count"], &shown["lag"]),
        (&5.into(), &0.into())
    );
    // What ends without a word is taken over after it.
    host.kill();
    host = Hosted::start(&place);
    let lines_of_it = host.end();
    assert!(
        !format!("{lines_of_it:?}").contains(PASSWORD),
        "{lines_of_it:?}"
    );
    // The same from the server, without a host.
    let logs = agent(&["logs", "general", "--json"]);
    let events = lines(&logs.out);
    let by_echo = events
        .iter()
        .filter(|event| event["sender"]["handle"] == "echo");
    let texts: Vec<&str> = by_echo
        .filter_map(|event| event["content"].as_str())
        .collect();
    let expected = ["zero", "one", "two", "three", "four"].iter().zip(1..);
    let expected: Vec<String> = expected
        .map(|(text, n)| format!("Message #{n}: {text}"))
        .collect();
    assert_eq!(texts, expected);
    let moved = agent(&["checkpoint", "echo", "--set", "0", "--json"]).json();
    assert_eq!(moved["checkpoint"], 0, "{moved}");
}

#[test]
fn a_host_that_was_replaced_ends() {
    let (folder, database) = (tempdir().expect("a folder"), database());
    let folder = folder.path();
    let made = a99(folder, &["agent", "new", "echo"], None);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let config = path(folder, "echo/agents.toml");
    let mut host = Hosted::start(&["--config", &config, "--store", &database.url()]);
    // As a later owner does while the connection of this one is cut.
    database.sql("UPDATE agent99.agent_writer SET epoch = epoch + 1");
    database.sql("UPDATE agent99.shard SET epoch = epoch + 1");
    let refused = host.wait_for("refused");
    assert_eq!(refused["code"], "store.fenced", "{refused}");
}

#[test]
fn a_store_that_cannot_be_used_is_refused() {
    let (folder, database) = (tempdir().expect("a folder"), database());
    let folder = folder.path();
    let made = a99(folder, &["agent", "new", "echo"], None);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let config = path(folder, "echo/agents.toml");
    let url = database.url();
    let host = |url: &str, password: Option<&str>| {
        let words = [
            "agent", "host", "--json", "--config", &config, "--store", url,
        ];
        let said = a99(folder, &words, password);
        assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
        let last = lines(&said.out).pop().unwrap_or_default();
        let text = |key: &str| last["error"][key].as_str().unwrap_or_default().to_owned();
        (
            text("code"),
            format!("{} {}", text("message"), text("help")),
        )
    };
    database.sql("CREATE ROLE guest LOGIN PASSWORD 'swordfish'");
    let wrong = url.replace(PASSWORD, "hunter2");
    let unknown = url.replace(&database.name, "nowhere");
    let guest = url.replace("admin", "guest");
    let down = "postgres://ann:hunter2@127.0.0.1:1/db?connect_timeout=1";
    let began = Instant::now();
    for (url, code, word) in [
        (down, "postgres.unreachable", "see that the server runs"),
        (&wrong, "postgres.login", "the password"),
        (&unknown, "postgres.not_found", "createdb"),
        (&guest, "postgres.denied", "let the user"),
        ("mysql://ann:hunter2@h/db", "postgres.config", "postgres://"),
        (
            "postgres://ann:hunter2@h/db?hunter2=1",
            "postgres.config",
            "parameter",
        ),
    ] {
        let (found, text) = host(url, None);
        assert_eq!(found, code, "{text}");
        assert!(text.contains("--store") && text.contains(word), "{text}");
    }
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(host(&bare(&url), Some("hunter2")).0, "postgres.login");
    // A machine beyond this one is not spoken to without TLS.
    let elsewhere = url.replace("127.0.0.1", "localhost,0.0.0.0");
    let elsewhere = elsewhere.replace("sslmode=disable", "connect_timeout=2");
    let (found, text) = host(&elsewhere, None);
    assert_eq!(found, "postgres.tls", "{text}");
    // Tables of a later version.
    let made = Hosted::start(&["--config", &config, "--store", &url]);
    made.end();
    database.sql("UPDATE agent99.a99_component SET version = 99 WHERE name = 'runtime'");
    let (found, text) = host(&url, None);
    assert_eq!(found, "postgres.newer", "{text}");
    assert!(text.contains("a later one"), "{text}");
}

#[test]
fn the_file_of_passwords_is_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, database) = (tempdir().expect("a folder"), database());
    let folder = folder.path();
    let made = a99(folder, &["agent", "new", "echo"], None);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let file = folder.join("pgpass");
    std::fs::write(&file, format!("*:*:{}:admin:{PASSWORD}\n", database.name)).expect("written");
    let send = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("set");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_a99"));
        command.args(["agent", "send", "general", "hello", "--json", "--store"]);
        command.arg(bare(&database.url())).current_dir(folder);
        command.env_remove("PGPASSWORD").env("PGPASSFILE", &file);
        let output = command.output().expect("the binary starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let refused = send(0o644);
    assert!(
        refused.contains("postgres.config") && refused.contains("chmod 600"),
        "{refused}"
    );
    let sent = send(0o600);
    assert!(sent.contains("\"queued\":true"), "{sent}");
    assert!(!format!("{sent}{refused}").contains(PASSWORD));
}
