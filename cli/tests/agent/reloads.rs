//! Reloads of a host's file: concurrent ones, and failing ones.

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
    // The program of the older file arrives slowly: through a pipe, which is read twice.
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
        // Other requests are answered meanwhile.
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

#[test]
fn t11_a_reload_that_fails_leaves_timers_as_they_were() {
    let folder = Sandbox::new("agent-many-timers");
    folder.file("idle.ajs", IDLE);
    let timers = |names: &[String]| {
        let timer = |name: &String| format!("{{ name = \"{name}\", cron = \"0 9 * * *\" }}");
        let timers: Vec<String> = names.iter().map(timer).collect();
        format!("{}timers = [{}]\n", one("a", "idle.ajs"), timers.join(", "))
    };
    let config = folder.file("agents.toml", &timers(&["tick".to_owned()]));
    let host = Hosted::start(&["--config", &config]);
    let shown = || {
        let shown = agent(&["inspect", "a", "--json"], &config).json();
        let timers = shown["timers"].as_array().cloned().unwrap_or_default();
        let names = timers.iter().map(|timer| timer["name"].to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(shown(), ["\"tick\""]);
    let many: Vec<String> = (0..1_001).map(|n| format!("t{n}")).collect();
    folder.file("agents.toml", &timers(&many));
    let refused = agent(&["reload"], &config);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("store.too_large"), "{}", refused.err);
    assert_eq!(shown(), ["\"tick\""]);
    // They are still marked as the file's timers, and removed with it.
    folder.file("agents.toml", &timers(&[]));
    let done = agent(&["reload"], &config);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(shown(), Vec::<String>::new());
    host.end();
}

#[cfg(target_os = "linux")]
#[test]
fn t11_an_agent_that_could_not_leave_goes_on() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

    let folder = Sandbox::new("agent-stays");
    folder.file(
        "echo.ajs",
        include_str!("../../src/templates/live/agent.ajs"),
    );
    folder.file("idle.ajs", IDLE);
    let echo = format!(
        "{}config = {{ greeting = \"Hi\" }}\n",
        one("echo", "echo.ajs")
    );
    let config = folder.file("agents.toml", &echo);
    let host = Hosted::start(&["--config", &config]);
    let pid = Pid::from_raw(i32::try_from(host.pid()).expect("small"));
    let limit = getrlimit(Resource::Fsize);
    // For a while the host cannot write any file.
    let full = Rlimit {
        current: Some(1),
        maximum: limit.maximum,
    };
    prlimit(pid, Resource::Fsize, full).expect("a limit");
    folder.file("agents.toml", &one("idle", "idle.ajs"));
    let refused = agent(&["reload"], &config);
    assert_eq!(refused.code, 2, "{refused:?}");
    prlimit(pid, Resource::Fsize, limit).expect("a limit");
    let wait = ["send", "c", "x", "--wait", "--timeout", "20s"];
    let sent = agent(&wait, &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(sent.out.contains("@echo: Hi #1: x"), "{sent:?}");
    // The next reload removes it.
    let done = agent(&["reload", "--json"], &config);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["left"], serde_json::json!(["echo/c/echo"]));
    host.end();
}
