//! Access to a host's store: who may open it, who waits, and how a host reacts that lost its store.

use crate::harness::{Done, Sandbox, a99};
use crate::hosted::Hosted;
use crate::said;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Creates the agent of `agent new`. Returns its path.
fn new(folder: &Sandbox) -> String {
    let made = a99(&["agent", "new", "echo", "--in", &folder.path("")], b"");
    assert_eq!(made.code, 0, "{made:?}");
    folder.path("echo/agents.toml")
}

fn agent(words: &[&str], config: &str) -> Done {
    let place = ["--config", config];
    a99(&[&["agent"], words, &place].concat(), b"")
}

/// Runs the same command several times at once.
fn together(count: usize, words: &[&str], config: &str) -> Vec<Done> {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..count)
            .map(|_| scope.spawn(|| agent(words, config)))
            .collect();
        let done = all.into_iter().map(|one| one.join().expect("it ends"));
        done.collect()
    })
}

#[test]
fn t4_a_host_and_a_sender_that_start_together_find_each_other() {
    for round in 0..5 {
        let folder = Sandbox::new("agent-together");
        let config = new(&folder);
        let host = Hosted::begin(&["--config", &config]);
        let words = ["send", "general", "Hello", "--wait", "--timeout", "120s"];
        let sent = agent(&words, &config);
        assert_eq!(sent.code, 0, "{round}: {sent:?}");
        assert!(sent.out.contains("@echo: Message #1: Hello"), "{sent:?}");
        let shown = agent(&["inspect", "echo/general/echo"], &config);
        assert_eq!(shown.code, 0, "{round}: {shown:?}");
        host.end();
    }
}

#[test]
fn t4_a_sender_that_does_not_wait_keeps_no_host_from_starting() {
    let folder = Sandbox::new("agent-crossed");
    let config = new(&folder);
    for round in 1..=5 {
        let mut host = Hosted::begin(&["--config", &config]);
        for sent in together(3, &["send", "general", "x", "--timeout", "120s"], &config) {
            assert_eq!(sent.code, 0, "{round}: {sent:?}");
        }
        host.wait_for("started");
        let words = ["send", "general", "last", "--wait", "--timeout", "120s"];
        let last = agent(&words, &config);
        assert_eq!(last.code, 0, "{round}: {last:?}");
        host.end();
    }
    assert_eq!(said(&["--config", &config], "general", "echo").len(), 20);
}

#[test]
fn b9_commands_without_a_host_wait_for_each_other() {
    let folder = Sandbox::new("agent-queued");
    let config = new(&folder);
    for sent in together(6, &["send", "general", "x", "--timeout", "120s"], &config) {
        assert_eq!(sent.code, 0, "{sent:?}");
    }
    assert_eq!(said(&["--config", &config], "general", "user").len(), 6);
}

#[test]
fn t4_readers_never_own_the_store() {
    let folder = Sandbox::new("agent-readers");
    let config = new(&folder);
    let queued = agent(&["send", "general", "zero"], &config);
    assert_eq!(queued.code, 0, "{queued:?}");
    let store = folder.path("echo/agents.db");
    let before = std::fs::read(&store).expect("a store");
    for words in [
        &["inspect", "--json"][..],
        &["logs", "general"],
        &["logs", "general", "--json"],
    ] {
        let read = agent(words, &config);
        assert_eq!(read.code, 0, "{read:?}");
    }
    assert_eq!(std::fs::read(&store).expect("a store"), before);
    // A reader does not keep a starting host out either.
    let mut host = Hosted::begin(&["--config", &config]);
    for read in together(12, &["inspect"], &config) {
        assert_eq!(read.code, 0, "{read:?}");
    }
    host.wait_for("started");
    for read in together(12, &["checkpoint", "echo"], &config) {
        assert_eq!(read.code, 0, "{read:?}");
    }
    let words = ["send", "general", "one", "--wait", "--timeout", "120s"];
    let sent = agent(&words, &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    host.end();
}

#[test]
fn t4_without_a_host_it_is_said_after_a_while() {
    let folder = Sandbox::new("agent-hostless");
    let config = new(&folder);
    let words = ["send", "general", "x", "--wait", "--timeout", "1500ms"];
    let sent = agent(&words, &config);
    assert_eq!(sent.code, 2, "{sent:?}");
    assert!(sent.err.contains("error[cli.no_host]"), "{sent:?}");
    assert!(sent.err.contains("waiting up to"), "{sent:?}");
}

#[test]
fn t7_a_host_whose_store_is_gone_ends_with_an_error() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 3] = [
        ("deleted", |store| {
            std::fs::remove_file(store).expect("removed");
        }),
        ("renamed", |store| {
            std::fs::rename(store, store.with_extension("old")).expect("renamed");
        }),
        ("replaced", |store| {
            let other = store.with_extension("new");
            std::fs::copy(store, &other).expect("copied");
            std::fs::rename(other, store).expect("replaced");
        }),
    ];
    for (name, change) in changes {
        let folder = Sandbox::new("agent-gone");
        let config = new(&folder);
        let host = Hosted::start(&["--config", &config]);
        change(Path::new(&folder.path("echo/agents.db")));
        // Nothing is acknowledged any more.
        let sent = agent(&["send", "general", "lost", "--timeout", "1s"], &config);
        let (code, told) = host.ended();
        assert_eq!(code, Some(2), "{name}: {told:?}");
        let last = told.last().expect("it says why");
        assert_eq!(last["error"]["code"], "store.not_found", "{name}: {told:?}");
        let is_kept = sent.code == 0 && sent.err.contains("no host runs");
        assert!(sent.code == 2 || is_kept, "{name}: {sent:?}");
    }
}

#[test]
fn t7_another_path_leads_to_the_same_host() {
    let folder = Sandbox::new("agent-paths");
    let config = new(&folder);
    let host = Hosted::start(&["--config", &config]);
    let store = folder.path("echo/agents.db");
    let (soft, hard) = (folder.path("soft.db"), folder.path("hard.db"));
    std::os::unix::fs::symlink(&store, &soft).expect("a link");
    std::fs::hard_link(&store, &hard).expect("a link");
    let by = |words: &[&str], store: &str| {
        let place = ["--config", &config, "--store", store];
        a99(&[&["agent"], words, &place].concat(), b"")
    };
    let words = ["send", "general", "soft", "--wait", "--timeout", "120s"];
    let sent = by(&words, &soft);
    assert_eq!(sent.code, 0, "{sent:?}");
    // Its log is beside the other name: it is neither read nor written.
    let refused = by(&["inspect"], &hard);
    assert!(
        refused.code == 2 && refused.err.contains("hard links"),
        "{refused:?}"
    );
    let refused = by(&["send", "general", "hard", "--timeout", "1s"], &hard);
    assert!(
        refused.code == 2 && refused.err.contains("store.locked"),
        "{refused:?}"
    );
    std::fs::remove_file(&hard).expect("removed");
    #[cfg(target_os = "linux")]
    {
        std::fs::remove_file(folder.path("echo/agents.db.lock")).expect("a lock file");
        let socket = folder.path("echo/agents.db.sock");
        std::fs::rename(&socket, folder.path("moved")).expect("a socket");
        let refused = by(&["send", "general", "x", "--timeout", "1s"], &store);
        assert!(
            refused.code == 2 && refused.err.contains("store.locked"),
            "{refused:?}"
        );
        std::fs::rename(folder.path("moved"), &socket).expect("a socket");
    }
    let words = ["send", "general", "still", "--wait", "--timeout", "120s"];
    let sent = agent(&words, &config);
    assert!(sent.code == 0 && sent.out.contains("#2: still"), "{sent:?}");
    host.end();
}

#[test]
fn t11_files_of_a_store_are_its_owners_alone() {
    let folder = Sandbox::new("agent-private");
    folder.file("a.ajs", "async function agent({ event }) {\n  await agentStorageRun({ sql: 'INSERT INTO t (n) VALUES (1)' })\n}\n");
    folder.file("1.sql", "CREATE TABLE t (n INTEGER)");
    let config = folder.file(
        "agents.toml",
        "[[agent]]\nname = \"a\"\nprogram = \"a.ajs\"\nchannel = \"c\"\nmigrations = [\"1.sql\"]\n",
    );
    let host = Hosted::start(&["--config", &config]);
    let words = ["send", "c", "x", "--wait", "--timeout", "120s"];
    let sent = agent(&words, &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    let mut seen = 0;
    let mut folders = vec![folder.path("").into()];
    while let Some(next) = folders.pop() {
        let next: std::path::PathBuf = next;
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("a file").path();
            let name = path.display().to_string();
            if !name.contains("agents.db") {
                continue;
            }
            let found = path.metadata().expect("a file");
            let mode = found.permissions().mode() & 0o777;
            let wanted = if found.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, wanted, "{name}: {mode:o}");
            seen += 1;
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    // The store, its log, index, lock and socket; the folder of tables with a file, its log and
    // index.
    assert!(seen >= 9, "{seen}");
    host.end();
}

#[test]
fn t11_idle_clients_make_room_for_commands() {
    let folder = Sandbox::new("agent-idle");
    let config = new(&folder);
    let host = Hosted::start(&["--config", &config]);
    let connect = |n: usize| {
        let mut stream = std::os::unix::net::UnixStream::connect(host.socket()).expect("a host");
        // Some send half of a request.
        if n.is_multiple_of(2) {
            std::io::Write::write_all(&mut stream, b"\0\0\0\x20{\"id\":1,").expect("written");
        }
        stream
    };
    let idle: Vec<_> = (0..200).map(connect).collect();
    let words = ["send", "general", "Hello", "--wait", "--timeout", "120s"];
    let sent = agent(&words, &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    drop(idle);
    host.end();
}

#[test]
fn t11_a_message_for_no_agent_is_said_to_be_one() {
    let folder = Sandbox::new("agent-unheard");
    let config = new(&folder);
    for is_hosted in [false, true] {
        let host = is_hosted.then(|| Hosted::start(&["--config", &config]));
        let sent = agent(&["send", "genral", "Hello"], &config);
        assert_eq!(sent.code, 0, "{sent:?}");
        let warning = "no agent is on the channel `genral`; did you mean `general`?";
        assert!(sent.err.contains(warning), "{sent:?}");
        let sent = agent(&["send", "genral", "Hello", "--json"], &config).json();
        assert_eq!(
            (&sent["ok"], &sent["subscribers"]),
            (&true.into(), &0.into())
        );
        assert_eq!(sent["warning"], warning);
        let sent = agent(&["send", "general", "Hello", "--json"], &config).json();
        assert_eq!(sent["subscribers"], 1, "{sent}");
        assert!(sent["warning"].is_null(), "{sent}");
        if let Some(host) = host {
            host.end();
        }
    }
}

const THREE: &str = "[[agent]]\nname = \"a\"\nprogram = \"echo.ajs\"\nchannel = \"c\"\n\
    config = { greeting = \"Message\" }\n\
    [[agent]]\nname = \"b\"\nprogram = \"echo.ajs\"\nchannel = \"c\"\n\
    config = { greeting = \"Message\" }\n\
    [[agent]]\nname = \"d\"\nprogram = \"echo.ajs\"\nchannel = \"c\"\n\
    config = { greeting = \"Message\" }\n";

#[test]
fn t11_agents_of_the_template_do_not_answer_each_other() {
    let folder = Sandbox::new("agent-three");
    folder.file(
        "echo.ajs",
        include_str!("../../src/templates/live/agent.ajs"),
    );
    let config = folder.file("agents.toml", THREE);
    let host = Hosted::start(&["--config", &config]);
    let words = [
        "send",
        "c",
        "Hello",
        "--wait",
        "--timeout",
        "120s",
        "--json",
    ];
    let sent = agent(&words, &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    // The answers of all three, and the result.
    assert_eq!(sent.out.lines().count(), 4, "{sent:?}");
    host.end();
}

#[test]
fn t11_the_end_at_the_limit_of_hops_is_said() {
    let folder = Sandbox::new("agent-hops");
    folder.file(
        "echo.ajs",
        "async function agent({ event }) {\n  if (event.type === 'message') {\n    \
         await agentSend({ content: 'again' })\n  }\n}\n",
    );
    let two = THREE.split("[[agent]]").take(3).collect::<Vec<_>>();
    let config = folder.file("agents.toml", &two.join("[[agent]]"));
    let host = Hosted::start(&["--config", &config]);
    let words = ["send", "c", "Hello", "--wait", "--timeout", "120s"];
    let sent = agent(&words, &config);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(sent.err.contains("limit of 4 hops"), "{sent:?}");
    let shown = agent(&["inspect", "a", "--json"], &config).json();
    assert!(shown["hopLimited"].as_u64() > Some(0), "{shown}");
    let told = host.end();
    let is_told = told.iter().any(|line| line["code"] == "agent.hop_limit");
    assert!(is_told, "{told:?}");
}

#[test]
fn t11_a_host_outlives_the_limit_of_file_sizes() {
    let folder = Sandbox::new("agent-limited");
    let config = new(&folder);
    // In blocks of 512 bytes or 1 KiB, depending on the shell.
    let host = Hosted::limited(&["--config", &config], 2_000);
    let text = "x".repeat(100_000);
    let mut failed = None;
    for n in 0..100 {
        let words = ["send", "other", &text, "--timeout", "60s"];
        let sent = agent(&words, &config);
        if sent.code != 0 {
            failed = Some((n, sent));
            break;
        }
    }
    let (n, failed) = failed.expect("the limit is reached");
    assert!(n > 2 && failed.err.contains("error[store."), "{failed:?}");
    let shown = agent(&["inspect", "echo", "--json"], &config);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_eq!(shown.json()["key"], "echo/general/echo", "{shown:?}");
    host.kill();
}

#[test]
fn t6_send_says_which_agents_failed() {
    let folder = Sandbox::new("agent-failed");
    folder.file(
        "a.ajs",
        "async function agent() {\n  throw new Error('no luck')\n}\n",
    );
    let config = folder.file(
        "agents.toml",
        "[[agent]]\nname = \"a\"\nprogram = \"a.ajs\"\nchannel = \"c\"\n\
         retry = { attempts = 1 }\non-dead = \"stop\"\n",
    );
    let host = Hosted::start(&["--config", &config]);
    let words = ["send", "c", "one", "--wait", "--timeout", "60s"];
    let sent = agent(&words, &config);
    assert!(sent.code == 1 && sent.err.contains("no luck"), "{sent:?}");
    // It stopped before that event and handles none after it.
    let words = ["send", "c", "two", "--wait", "--timeout", "60s"];
    let sent = agent(&words, &config);
    assert_eq!(sent.code, 1, "{sent:?}");
    assert!(
        sent.err.contains("error[cli.agent_failed]") && sent.err.contains("a/c/a did not handle"),
        "{sent:?}"
    );
    let sent = agent(&[&words[..], &["--json"]].concat(), &config);
    assert_eq!(sent.code, 1, "{sent:?}");
    let last = crate::lines(&sent.out).pop().expect("a result");
    assert_eq!(last["ok"], false, "{last}");
    assert_eq!(last["failed"][0]["key"], "a/c/a", "{last}");
    assert!(last["failed"][0]["code"].is_string(), "{last}");
    host.end();
}

#[test]
fn t9_a_copied_store_is_hosted_only_where_that_is_meant() {
    let folder = Sandbox::new("agent-forked");
    let config = new(&folder);
    let wait = ["send", "general", "one", "--wait", "--timeout", "120s"];
    let host = Hosted::start(&["--config", &config]);
    assert_eq!(agent(&wait, &config).code, 0);
    host.end();
    let copied = Command::new("cp")
        .args(["-r", &folder.path("echo"), &folder.path("fork")])
        .status();
    assert!(copied.expect("cp runs").success());
    let fork = folder.path("fork/agents.toml");
    // The copy is neither hosted nor changed, and can be read.
    let refused = agent(&["host", "--json"], &fork);
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.code, &error["code"]),
        (2, &"store.copied".into()),
        "{refused:?}"
    );
    let text = error["message"].as_str().unwrap_or_default();
    assert!(text.contains("echo/agents.db"), "{text}");
    let refused = agent(&["send", "general", "two", "--timeout", "1s"], &fork);
    assert!(
        refused.code == 2 && refused.err.contains("a99 agent host --moved"),
        "{refused:?}"
    );
    let shown = agent(&["inspect", "echo", "--json"], &fork);
    assert_eq!(shown.json()["state"]["count"], 1, "{shown:?}");
    // The original runs on, and if the copy is intended, both do.
    let first = Hosted::start(&["--config", &config]);
    let second = Hosted::start(&["--config", &fork, "--moved"]);
    for config in [&config, &fork] {
        let sent = agent(&wait, config);
        assert!(sent.code == 0 && sent.out.contains("#2: one"), "{sent:?}");
    }
    first.end();
    second.end();
    // The confirmation is needed once; a renamed folder counts as the same.
    std::fs::rename(folder.path("fork"), folder.path("moved")).expect("renamed");
    let moved = folder.path("moved/agents.toml");
    Hosted::start(&["--config", &moved]).end();
    let sent = agent(&["send", "general", "three"], &moved);
    assert_eq!(sent.code, 0, "{sent:?}");
    // A restored backup.
    let (store, backup) = (folder.path("moved/agents.db"), folder.path("backup"));
    std::fs::copy(&store, &backup).expect("copied");
    std::fs::rename(&backup, &store).expect("restored");
    let refused = agent(&["host"], &moved);
    assert!(
        refused.code == 2 && refused.err.contains("restored"),
        "{refused:?}"
    );
    Hosted::start(&["--config", &moved, "--moved"]).end();
    Hosted::start(&["--config", &moved]).end();
}
