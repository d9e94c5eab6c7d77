//! `a99 token`: tokens of servers.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod harness;

use harness::{Done, a99, a99_in};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use tempfile::tempdir;

fn token(folder: &Path, args: &[&str]) -> Done {
    let args = [&["token"], args, &["--tokens", "private/tokens.json"]].concat();
    a99_in(folder, &args)
}

fn mode(path: &Path) -> u32 {
    path.metadata()
        .expect("the file exists")
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn a_token_is_printed_once_listed_and_revoked() {
    let folder = tempdir().unwrap();
    let made = token(
        folder.path(),
        &[
            "new",
            "--name",
            "ci",
            "--scope",
            "read:general",
            "write:team-*",
        ],
    );
    assert_eq!(made.code, 0, "{made:?}");
    let text = made.out.strip_suffix('\n').unwrap();
    let (id, secret) = text.strip_prefix("a99t_").unwrap().split_once('_').unwrap();
    assert!(id.len() == 12 && secret.len() == 43, "{text}");
    assert!(
        made.err.contains("not shown again") && !made.err.contains(secret),
        "{made:?}"
    );
    let file = folder.path().join("private/tokens.json");
    assert!(!fs::read_to_string(&file).unwrap().contains(secret));
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));

    let listed = token(folder.path(), &["list"]);
    assert!(
        listed.out.starts_with(id) && listed.out.ends_with("ci  read:general write:team-*\n"),
        "{listed:?}"
    );
    let listed = token(folder.path(), &["list", "--json"]).json();
    let row = &listed["tokens"][0];
    assert_eq!((&listed["ok"], &row["name"]), (&true.into(), &"ci".into()));
    assert_eq!(
        row["scopes"],
        serde_json::json!(["read:general", "write:team-*"])
    );
    assert!(row.get("hash").is_none() && !listed.to_string().contains(secret));
    // 90 days, with either length of February.
    let date = |name: &str| row[name].as_str().unwrap()[..7].to_owned();
    assert!(date("expires") > date("created"), "{row}");

    let gone = token(folder.path(), &["revoke", id]);
    assert_eq!((gone.code, &*gone.out), (0, ""), "{gone:?}");
    assert!(gone.err.contains(id), "{gone:?}");
    assert_eq!(token(folder.path(), &["list"]).out, "");
    let again = token(folder.path(), &["revoke", id, "--json"]);
    assert_eq!(
        (again.code, &again.json()["error"]["code"]),
        (2, &"server.unknown_token".into())
    );
}

#[test]
fn tokens_expire_when_asked() {
    let folder = tempdir().unwrap();
    let new = |expires: &[&str]| {
        let args = ["new", "--json", "--name", "x", "--scope", "admin"];
        token(folder.path(), &[&args[..], expires].concat())
    };
    let made = new(&["--expires", "never"]).json();
    assert_eq!(
        (&made["ok"], &made["expires"]),
        (&true.into(), &Value::Null)
    );
    assert!(made["token"].as_str().unwrap().starts_with("a99t_"));
    let made = new(&["--expires", "1d"]).json();
    let day = |name: &str| made[name].as_str().unwrap()[..10].to_owned();
    assert_ne!(day("expires"), day("created"));
    assert_eq!(
        made["expires"].as_str().unwrap()[10..],
        made["created"].as_str().unwrap()[10..]
    );
    for wrong in ["0d", "soon", "400d", ""] {
        let refused = new(&["--expires", wrong]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], "cli.usage", "{wrong}");
    }
}

#[test]
fn mistakes_have_codes_and_fixes() {
    let folder = tempdir().unwrap();
    for (args, code) in [
        (
            &["new", "--name", "x", "--scope", "read"][..],
            "server.bad_scope",
        ),
        (
            &["new", "--name", "x", "--scope", "reads:general"],
            "server.bad_scope",
        ),
        (
            &["new", "--name", "", "--scope", "admin"],
            "server.bad_scope",
        ),
        (&["new", "--name", "x"], "cli.usage"),
        (&["new", "--scope", "admin"], "cli.usage"),
        (&["revoke"], "cli.usage"),
        (&["revoke", "x"], "server.unknown_token"),
    ] {
        let done = token(folder.path(), &[args, &["--json"]].concat());
        assert_eq!(
            (done.code, &done.json()["error"]["code"]),
            (2, &code.into()),
            "{args:?}"
        );
    }
    assert_eq!(
        token(folder.path(), &["new", "--name", "x", "--scope", "admin"]).code,
        0
    );
    let file = folder.path().join("private/tokens.json");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let shared = token(folder.path(), &["list"]);
    assert!(
        shared.code == 2 && shared.err.contains("error[server.bad_tokens_file]"),
        "{shared:?}"
    );
    assert!(shared.err.contains("chmod 600"), "{shared:?}");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "{").unwrap();
    let damaged = token(
        folder.path(),
        &["new", "--name", "x", "--scope", "admin", "--json"],
    );
    assert_eq!(damaged.json()["error"]["code"], "server.bad_tokens_file");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{");
    let explained = a99(&["explain", "server.bad_tokens_file"], b"");
    assert!(
        explained.code == 0 && explained.out.contains("Listeners"),
        "{explained:?}"
    );
}

#[test]
fn commands_at_the_same_time_lose_nothing() {
    let folder = tempdir().unwrap();
    let made: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let folder = folder.path();
                scope.spawn(move || {
                    let done = token(
                        folder,
                        &["new", "--name", "x", "--scope", "admin", "--json"],
                    );
                    done.json()["id"].as_str().unwrap().to_owned()
                })
            })
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let listed = token(folder.path(), &["list", "--json"]).json();
    let ids = listed["tokens"].as_array().unwrap().iter();
    let ids: HashSet<String> = ids
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, made.into_iter().collect());
    assert_eq!(ids.len(), 16);
}

#[test]
fn the_default_file_is_that_of_the_user() {
    let folder = tempdir().unwrap();
    let new = |variable: &str, value: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
        command.args(["token", "new", "--name", "x", "--scope", "admin"]);
        command.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        command.env(variable, value).output().unwrap().status.code()
    };
    let (home, config) = (folder.path().join("home"), folder.path().join("config"));
    assert_eq!(new("HOME", &home), Some(0));
    assert!(home.join(".config/a99/tokens.json").is_file());
    assert_eq!(new("XDG_CONFIG_HOME", &config), Some(0));
    assert!(config.join("a99/tokens.json").is_file());
    assert_eq!(new("XDG_CONFIG_HOME", Path::new("relative")), Some(2));
}
