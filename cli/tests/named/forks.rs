//! Snapshots and forks by command, and the example of them.

use crate::support::*;
use serde_json::Value as Json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn json(text: &str) -> Json {
    serde_json::from_str(text).expect("JSON")
}

#[test]
#[ignore = "needs the image"]
fn a_running_sandbox_is_forked_saved_and_started_again() {
    let home = Home::new("forks");
    let file = home.0.join("box.snapshot");
    let file = file.to_str().unwrap();
    let size = ["--disk", "256M", "--ram", "384M"];
    home.ok(&[&["start", "box", "--env", "ORIGINAL=yes"], &size[..]].concat());
    home.ok(&[
        "exec",
        "box",
        "--session",
        "--",
        "cd /tmp; export STATE=kept; echo 1 >file",
    ]);
    home.ok(&["exec", "box", "--detach", "--", "sleep", "1000"]);
    let mut attached = home.spawn(&["exec", "box", "--", "sleep", "1001"]);
    eventually(|| count(&home, "box", "sleep") == 2);
    let saved = json(&home.ok(&["snapshot", "box", file, "--json"]));
    assert_eq!(saved["name"], "box");
    assert!(saved["bytes"].as_u64().unwrap() > 1 << 20, "{saved}");
    let metadata = fs::metadata(file).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let forked = json(&home.ok(&["fork", "box", "fork", "--json"]));
    assert_eq!(
        (&forked["name"], &forked["from"]),
        (&"fork".into(), &"box".into())
    );
    // It has the memory of its original, which was asked for there.
    assert_eq!(forked["ram"], 384 << 20, "{forked}");
    home.ok(&["start", "again", "--from", file]);
    for copy in ["fork", "again"] {
        let text = home.ok(&[
            "exec",
            copy,
            "--session",
            "--",
            "pwd; echo $STATE; cat file",
        ]);
        assert_eq!(text, "/tmp\nkept\n1\n", "{copy}");
        assert_eq!(
            count(&home, copy, "sleep"),
            1,
            "{copy}: only the detached one"
        );
        assert_eq!(
            home.ok(&["exec", copy, "--", "hostname"]),
            format!("{copy}\n")
        );
        home.ok(&["exec", copy, "--session", "--", "echo 2 >file; sync"]);
    }
    assert_eq!(
        home.ok(&["exec", "box", "--session", "--", "cat file"]),
        "1\n"
    );
    assert_eq!(count(&home, "box", "sleep"), 2);
    assert!(attached.try_wait().unwrap().is_none(), "it runs on");
    // The original is not needed any more.
    home.ok(&["stop", "box"]);
    attached.wait().unwrap();
    assert_eq!(
        home.ok(&["exec", "fork", "--session", "--", "cat file"]),
        "2\n"
    );
    home.ok(&["stop", "--all"]);
    assert!(home.files().is_empty());
}

#[test]
#[ignore = "needs the image"]
fn what_cannot_be_copied_is_refused_with_its_reason() {
    let home = Home::new("forks-refused");
    let path = |name: &str| home.0.join(name).to_str().unwrap().to_owned();
    let missing = "sandbox.no_such_name";
    assert_eq!(
        home.fails(&["snapshot", "box", &path("x"), "--json"], 125),
        missing
    );
    assert_eq!(home.fails(&["fork", "box", "new", "--json"], 125), missing);
    assert!(!Path::new(&path("x")).exists());
    home.ok(&["start", "box"]);
    let taken = home.fails(&["fork", "box", "box", "--json"], 125);
    assert_eq!(taken, "sandbox.name_taken");
    for target in [path("none/x"), path("")] {
        let code = home.fails(&["snapshot", "box", &target, "--json"], 125);
        assert_eq!(code, "sandbox.io", "{target}");
    }
    // A snapshot replaces a file only when it is whole, and leaves no other.
    fs::write(path("kept"), "old").unwrap();
    home.ok(&["snapshot", "box", &path("kept")]);
    let bytes = fs::read(path("kept")).unwrap();
    assert!(bytes.len() > 1 << 20);
    let mut left: Vec<_> = fs::read_dir(&home.0).unwrap().collect();
    left.retain(|entry| entry.as_ref().unwrap().path().is_file());
    assert_eq!(left.len(), 1, "{left:?}");
    for (name, bad) in [
        ("cut", &bytes[..bytes.len() / 2]),
        ("text", b"{\"image\": \"../../etc\"}"),
        ("empty", b""),
    ] {
        fs::write(path(name), bad).unwrap();
        let code = home.fails(&["start", "bad", "--from", &path(name), "--json"], 125);
        assert_eq!(code, "sandbox.saved", "{name}");
    }
    // A pipe without a writer does not delay the command.
    let pipe = Command::new("mkfifo").arg(path("pipe")).status();
    assert!(pipe.unwrap().success());
    for name in ["none", "pipe", "."] {
        let code = home.fails(&["start", "bad", "--from", &path(name), "--json"], 125);
        assert_eq!(code, "sandbox.io", "{name}");
    }
    // Each copy counts.
    let code = home.fails(&["fork", "box", "two", "--max", "1", "--json"], 125);
    assert_eq!(code, "sandbox.too_many");
    let code = home.fails(&["start", "two", "--max", "1", "--json"], 125);
    assert_eq!(code, "sandbox.too_many");
    home.ok(&["fork", "box", "two", "--max", "2"]);
    assert_eq!(home.ls()["sandboxes"].as_array().unwrap().len(), 2);
}

#[test]
#[ignore = "needs the image"]
fn the_example_explores_ten_branches() {
    let home = Home::new("branches");
    let example = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/branches"));
    let folder = home.0.join("example");
    fs::create_dir_all(folder.join("work")).unwrap();
    for entry in fs::read_dir(example.join("work")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.join("work").join(entry.file_name())).unwrap();
    }
    let readme = fs::read_to_string(example.join("README.md")).unwrap();
    let blocks = readme.split("```sh\n").skip(1);
    let blocks: Vec<&str> = blocks
        .map(|block| block.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 4);
    let built = Path::new(env!("CARGO_BIN_EXE_a99")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["--noprofile", "--norc", "-euc", &blocks.concat()])
        .current_dir(&folder)
        .env("PATH", format!("{}:{path}", built.display()))
        .env("XDG_RUNTIME_DIR", &home.0)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let lengths = (0..10).map(|n| {
        let text = fs::read_to_string(folder.join(format!("result-{n}.json"))).unwrap();
        let result = json(&text);
        assert_eq!(result["branch"], n);
        result["length"].as_u64().unwrap()
    });
    let lengths: Vec<u64> = lengths.collect();
    let shortest = lengths.iter().min().unwrap();
    assert!(
        lengths.iter().any(|length| length != shortest),
        "{lengths:?}"
    );
    let said = String::from_utf8(output.stdout).unwrap();
    let last = said.lines().last().unwrap();
    assert_eq!(last, shortest.to_string(), "{said} {lengths:?}");
    assert!(home.files().is_empty());
}
