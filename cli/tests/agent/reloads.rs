//! Reloads of a host's file: two at once, and those that fail.

use crate::harness::{Done, Sandbox, a99};
use crate::hosted::Hosted;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

fn agent(words: &[&str], config: &str) -> Done {
    let place = ["--config", config];
    a99(&[&["agent"], words, &place].concat(), b"")
}

/// The text of a file with one agent.
fn one(name: &str, program: &str) -> String {
    format!("[[agent]]\nname = \"{name}\"\nprogram = \"{program}\"\nchannel = \"c\"\n")
}

const IDLE: &str = "async function agent() {\n  return 1\n}\n";

#[test]
fn t11_of_two_reloads_at_once_the_newer_file_stands() {
    let folder = Sandbox::new("agent-two-reloads");
    folder.file("idle.ajs", IDLE);
    let config = folder.file("agents.toml", &one("first", "idle.ajs"));
    let host = Hosted::start(&["--config", &config]);
    // The program of the older file comes slowly: by a pipe, which is read twice.
    let pipe = folder.path("pipe.ajs");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let feed = || {
        let pipe = std::fs::OpenOptions::new().write(true).open(&pipe);
        pipe.expect("a reader")
    };
    folder.file("agents.toml", &one("older", "pipe.ajs"));
    std::thread::scope(|scope| {
        let reload = || agent(&["reload"], &config);
        let older = scope.spawn(reload);
        let mut first = feed();
        // Others are answered meanwhile.
        let shown = agent(&["inspect"], &config);
        assert!(
            shown.code == 0 && shown.out.contains("first/c/first"),
            "{shown:?}"
        );
        folder.file("agents.toml", &one("newer", "idle.ajs"));
        let newer = scope.spawn(reload);
        std::thread::sleep(Duration::from_secs(1));
        first.write_all(IDLE.as_bytes()).expect("written");
        drop(first);
        std::thread::sleep(Duration::from_millis(500));
        feed().write_all(IDLE.as_bytes()).expect("written");
        for reload in [older, newer] {
            let done = reload.join().expect("it ends");
            assert_eq!(done.code, 0, "{done:?}");
        }
    });
    let shown = agent(&["inspect", "--json"], &config).json();
    let keys: Vec<_> = shown["agents"].as_array().into_iter().flatten().collect();
    assert!(
        keys.len() == 1 && keys[0]["key"] == "newer/c/newer",
        "{shown}"
    );
    host.end();
}
