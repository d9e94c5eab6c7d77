//! Stores on a server: `--store postgres://...` of runs, channels and hosts of agents.

#![cfg(unix)]

#[path = "../../host/postgres/tests/server/cluster.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "tests of the server, which fail by panicking, need more of it"
)]
mod cluster;
#[path = "agent/hosted.rs"]
#[allow(dead_code, reason = "tests of hosts need more of it")]
mod hosted;
#[path = "server/live.rs"]
mod live;

use cluster::{Cluster, Database};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::tempdir;

const PASSWORD: &str = "swordfish";

/// Counts its runs, and notes each run in a collection of vectors.
const COUNT: &str = r#"{"op": "seq", "steps": [
    {"op": "storeGet", "key": "count", "result": "old"},
    {"op": "if", "condition": "old", "then": [
        {"op": "mathCalc", "expr": "old + 1", "vars": {"old": "old"}, "result": "runs"}
    ], "else": [
        {"op": "varSet", "key": "runs", "value": 1},
        {"op": "storeCreateCollection", "collection": "notes", "dimension": 2}
    ]},
    {"op": "storeSet", "key": "count", "value": "runs"},
    {"op": "storeVectorAdd", "collection": "notes", "doc": {"embedding": [1, 0.5]}},
    {"op": "storeVectorSearch", "collection": "notes", "vector": [1, 1], "k": 9, "result": "all"},
    {"op": "return", "schema": {"type": "object", "properties": {"runs": {}, "all": {}}}}
]}"#;

fn database() -> Database {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER
        .get_or_init(|| Cluster::start(|_| String::new()))
        .database()
}

/// Output of a run, checked to contain no password.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.err))
    }

    /// Code and text of the error.
    fn refused(&self) -> (String, String) {
        assert_eq!(self.code, Some(2), "{}{}", self.out, self.err);
        let error = &self.json()["error"];
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let code = text("code");
        (code, format!("{} {}", text("message"), text("help")))
    }
}

fn a99(folder: &Path, args: &[&str], password: Option<&str>) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.env_remove("PGPASSWORD");
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    let output = command.output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("texts are UTF-8");
    let said = Said {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    for shown in [&said.out, &said.err] {
        for secret in [PASSWORD, "hunter2"] {
            assert!(!shown.contains(secret), "{args:?}: {shown}");
        }
    }
    said
}

fn folder() -> tempfile::TempDir {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("agent.json"), COUNT).expect("written");
    folder
}

/// The URL without its password.
fn bare(url: &str) -> String {
    url.replace(&format!(":{PASSWORD}@"), "@")
}

#[test]
fn what_is_stored_on_a_server_is_there_in_the_next_run() {
    let (folder, url) = (folder(), database().url());
    for runs in 1..4 {
        let said = a99(folder.path(), &["run", "agent.json", "--store", &url], None);
        assert_eq!(said.json()["runs"], runs, "{}", said.err);
        assert_eq!(said.json()["all"].as_array().map(Vec::len), Some(runs));
    }
    // From another folder, with the password of the environment.
    let (other, url) = (self::folder(), bare(&url));
    let words = ["run", "agent.json", "--store", &url];
    let said = a99(other.path(), &words, Some(PASSWORD));
    assert_eq!(said.json()["runs"], 4, "{}", said.err);
}

#[test]
fn a_configuration_names_a_server() {
    let (folder, url) = (folder(), database().url());
    let config = folder.path().join("agent99.toml");
    fs::write(&config, format!("store = \"{url}\"")).expect("written");
    let said = a99(folder.path(), &["run", "agent.json"], None);
    assert_eq!(said.json()["runs"], 1, "{}", said.err);
    let place = bare(url.split('?').next().expect("a URL"));
    assert!(
        said.err.contains(&format!("store = {place}")),
        "{}",
        said.err
    );
    for more in [&[][..], &["--json"]] {
        let words = [&["config", "agent.json"][..], more].concat();
        let said = a99(folder.path(), &words, None);
        assert!(said.out.contains(&place), "{}", said.out);
    }
    // The environment's password is the user's: a found file cannot use it.
    fs::write(&config, format!("store = \"{}\"", bare(&url))).expect("written");
    let said = a99(folder.path(), &["run", "agent.json"], Some(PASSWORD));
    for told in [
        "`store` of agent99.toml is not taken",
        "No store was granted",
    ] {
        assert!(said.err.contains(told), "{}", said.err);
    }
    let words = ["run", "agent.json", "--config", "agent99.toml"];
    let said = a99(folder.path(), &words, Some(PASSWORD));
    assert_eq!(said.json()["runs"], 2, "{}", said.err);
}

#[test]
fn a_server_that_is_none_is_refused_before_the_run() {
    let folder = folder();
    let database = database();
    let url = database.url();
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("an address").port();
    drop(closed);
    let nobody = format!("postgres://admin:hunter2@127.0.0.1:{port}/agents?sslmode=disable");
    let wrong = url.replace(PASSWORD, "hunter2");
    let unknown = url.replace(&database.name, "nowhere");
    for (url, code, word) in [
        (
            nobody.as_str(),
            "postgres.unreachable",
            "see that the server runs",
        ),
        (
            &wrong,
            "postgres.login",
            "see that the user and the password are right",
        ),
        (&unknown, "postgres.not_found", "createdb"),
        (
            "postgres://ann:hunter2@/db",
            "postgres.config",
            "names no host",
        ),
        (
            "postgres://ann:hunter2@h:port/db",
            "postgres.config",
            "cannot be read",
        ),
        (
            "postgres://ann:hunter2@h/db?hunter2=1",
            "postgres.config",
            "parameter",
        ),
        (
            "postgres://ann:hunter2",
            "postgres.config",
            "cannot be read",
        ),
        (
            "mysql://ann:hunter2@h/db",
            "cli.usage",
            "postgres://user@host",
        ),
    ] {
        let words = ["run", "agent.json", "--json", "--store", url];
        let (found, text) = a99(folder.path(), &words, None).refused();
        assert_eq!(found, code, "{text}");
        assert!(text.contains("--store") && text.contains(word), "{text}");
        // The same for people.
        let words = ["run", "agent.json", "--store", url];
        assert_eq!(a99(folder.path(), &words, None).code, Some(2));
    }
    let (code, _) = a99(
        folder.path(),
        &["run", "agent.json", "--json", "--store", &bare(&url)],
        Some("hunter2"),
    )
    .refused();
    assert_eq!(code, "postgres.login");
}

#[test]
fn tables_of_a_later_version_are_refused_before_the_run() {
    let (folder, database) = (folder(), database());
    let url = database.url();
    let words = ["run", "agent.json", "--json", "--store", &url];
    assert_eq!(a99(folder.path(), &words, None).code, Some(0));
    for name in ["entries", "vectors"] {
        let set = |version: u32| {
            database.sql(&format!(
                "UPDATE agent99.a99_component SET version = {version} WHERE name = '{name}'"
            ));
        };
        set(9);
        let (code, text) = a99(folder.path(), &words, None).refused();
        assert_eq!(code, "postgres.newer", "{text}");
        assert!(
            text.contains(&database.name) && text.contains("a later one"),
            "{text}"
        );
        set(1);
    }
    assert_eq!(a99(folder.path(), &words, None).code, Some(0));
}
