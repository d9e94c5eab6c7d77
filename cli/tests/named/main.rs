//! Named sandboxes through the built binary: folder, background processes, concurrent clients, and
//! processes that end at the wrong moment.
//!
//! Most need the image (`cargo xtask guest`), so they are ignored. Run them by name:
//! `cargo test --profile sandbox -p a99-cli --features sandbox --test named -- --ignored`.

mod containers;
mod copies;
mod forks;
mod limits;
mod packs;
mod support;

use a99_frame::{Envelope, encode};
use serde_json::Value as Json;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::Duration;
use support::*;

#[test]
fn bad_names_and_options_are_usage_errors() {
    let home = Home::new("usage");
    for args in [
        &["start", "Box"][..],
        &["start", "../x"],
        &["start", ""],
        &["start"],
        &["start", "box", "--publish", "80"],
        &["stop"],
        &["stop", "box", "--all"],
        &["exec", "box"],
        &["exec", "box", "--name", "box", "--", "true"],
        &["exec", "box", "--mount", ".:/w", "--", "true"],
        &["exec", "box", "--net", "full", "--", "true"],
        &["exec", "--detach", "--", "true"],
        &["shell", "box", "--net", "full"],
        &["cp", "a", "b"],
        &["cp", "a:x", "b:y"],
        &["cp", "a:", "b"],
    ] {
        home.fails(args, 2);
    }
}

#[test]
fn what_is_not_there_is_an_error() {
    let home = Home::new("missing");
    let missing = "sandbox.no_such_name";
    assert_eq!(
        home.fails(&["exec", "box", "--json", "--", "true"], 125),
        missing
    );
    assert_eq!(
        home.fails(&["exec", "--name", "box", "--json", "--", "true"], 125),
        missing
    );
    assert_eq!(home.fails(&["stop", "box", "--json"], 125), missing);
    assert_eq!(home.fails(&["cp", "a", "box:/a", "--json"], 125), missing);
    assert_eq!(home.ls()["sandboxes"], Json::Array(vec![]));
    home.ok(&["stop", "--all"]);
    assert!(home.files().is_empty());
}

#[test]
fn a_folder_that_is_not_the_users_alone_is_refused() {
    let home = Home::new("folder");
    let folder = home.0.join("agent99");
    let refused = |why: &str| {
        for args in [
            &["ls", "--json"][..],
            &["stop", "box", "--json"],
            &["exec", "box", "--json", "--", "true"],
        ] {
            assert_eq!(home.fails(args, 125), "sandbox.untrusted_folder", "{why}");
        }
    };
    fs::create_dir(&folder).unwrap();
    for mode in [0o755, 0o770, 0o701] {
        fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
        refused("others may enter it");
    }
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    // Only root can change the owner.
    if std::os::unix::fs::chown(&folder, Some(1), None).is_ok() {
        refused("it is another user's");
    }
    fs::remove_dir(&folder).unwrap();
    let other = home.0.join("other");
    fs::create_dir(&other).unwrap();
    fs::set_permissions(&other, PermissionsExt::from_mode(0o700)).unwrap();
    symlink(&other, &folder).unwrap();
    refused("it is a link");
    fs::remove_file(&folder).unwrap();
}

#[test]
fn what_a_killed_one_left_is_removed() {
    let home = Home::new("stale");
    home.ls();
    let folder = home.0.join("agent99");
    // A socket without a listener, and a lock file without a holder.
    drop(std::os::unix::net::UnixListener::bind(folder.join("box.sock")).unwrap());
    fs::write(folder.join("box.lock"), "999999\n").unwrap();
    let reply = home.ls();
    assert_eq!(reply["removed"][0], "box");
    assert_eq!(reply["sandboxes"], Json::Array(vec![]));
    assert!(home.files().is_empty());
}

#[test]
fn completions_and_help_know_the_commands() {
    let a99 = || Command::new(env!("CARGO_BIN_EXE_a99"));
    for shell in ["bash", "zsh", "fish"] {
        let script = a99().args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(script.stdout).unwrap();
        for word in [
            "start", "stop", "ls", "cp", "fork", "snapshot", "publish", "detach",
        ] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    for command in [
        "start", "exec", "shell", "fork", "snapshot", "cp", "ls", "stop",
    ] {
        let help = a99().args(["sandbox", command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains("Examples:"), "{command}: {help}");
    }
}

#[test]
#[ignore = "needs the image"]
fn a_sandbox_stays_between_commands() {
    let home = Home::new("stays");
    let share = home.0.join("share");
    fs::create_dir(&share).unwrap();
    let mount = format!("{}:/project:rw", share.display());
    let reply = home.ok(&["start", "box", "--json", "--mount", &mount, "--env", "A=1"]);
    let reply: Json = serde_json::from_str(&reply).expect(IMAGE);
    assert_eq!(
        (&reply["name"], &reply["status"]),
        (&"box".into(), &"running".into())
    );
    home.ok(&[
        "exec",
        "box",
        "--",
        "sh",
        "-c",
        "echo $A > /root/file; hostname",
    ]);
    assert_eq!(
        home.ok(&["exec", "--name", "box", "--", "cat", "/root/file"]),
        "1\n"
    );
    let both = [
        "exec",
        "box",
        "--env",
        "B=2",
        "--cwd",
        "/tmp",
        "--",
        "sh",
        "-c",
        "pwd; echo $A$B",
    ];
    assert_eq!(home.ok(&both), "/tmp\n12\n");
    // Exit codes equal those of new sandboxes.
    home.fails(&["exec", "box", "--", "sh", "-c", "exit 7"], 7);
    home.fails(&["exec", "box", "--", "sh", "-c", "kill -9 $$"], 137);
    let slow = [
        "exec",
        "box",
        "--json",
        "--timeout",
        "300ms",
        "--",
        "sleep",
        "60",
    ];
    assert_eq!(home.fails(&slow, 124), "sandbox.timed_out");
    let none = ["exec", "box", "--json", "--", "/no/such/program"];
    assert_eq!(home.fails(&none, 127), "sandbox.cannot_start");
    let both = [
        "exec",
        "box",
        "--json",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 3",
    ];
    let output = home.run(&both);
    let reply: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["exitCode"], 3);
    assert_eq!(
        (&reply["stdout"], &reply["stderr"]),
        (&"out\n".into(), &"err\n".into())
    );
    // Writes still in the guest reach the mount when the sandbox stops, at the latest.
    home.ok(&["exec", "box", "--", "sh", "-c", "echo kept > /project/kept"]);
    let taken = home.fails(&["start", "box", "--json"], 125);
    assert_eq!(taken, "sandbox.name_taken");
    home.ok(&["stop", "box"]);
    assert_eq!(fs::read_to_string(share.join("kept")).unwrap(), "kept\n");
    assert!(home.files().is_empty(), "{:?}", home.files());
    assert_eq!(
        home.fails(&["exec", "box", "--json", "--", "true"], 125),
        "sandbox.no_such_name"
    );
}

#[test]
#[ignore = "needs the image"]
fn a_start_that_fails_says_why_and_leaves_nothing() {
    let home = Home::new("unstarted");
    let bad = [
        "start",
        "box",
        "--json",
        "--mount",
        "/no/such/folder:/project",
    ];
    assert_eq!(home.fails(&bad, 125), "sandbox.mount");
    assert!(home.files().is_empty(), "{:?}", home.files());
    home.ok(&["start", "box"]);
}

#[test]
#[ignore = "needs the image"]
fn two_starts_of_a_name_make_one_sandbox() {
    let home = Home::new("twice");
    let starts: Vec<Child> = (0..3)
        .map(|_| home.spawn(&["start", "box", "--json"]))
        .collect();
    let outputs: Vec<Output> = starts
        .into_iter()
        .map(|start| start.wait_with_output().unwrap())
        .collect();
    let started = outputs.iter().filter(|output| output.status.success());
    assert_eq!(started.count(), 1, "{outputs:?}");
    assert_eq!(home.ls()["sandboxes"].as_array().unwrap().len(), 1);
}

#[test]
#[ignore = "needs the image"]
fn clients_work_side_by_side_and_bytes_are_exact() {
    let home = Home::new("clients");
    home.ok(&["start", "box"]);
    home.ok(&["start", "other"]);
    // One command waits for the effect of the other.
    let mut waiting = home.spawn(&[
        "exec",
        "box",
        "--",
        "sh",
        "-c",
        "mkfifo /f; echo up; cat /f",
    ]);
    assert_eq!(first_line(&mut waiting), "up\n");
    home.ok(&["exec", "box", "--", "sh", "-c", "echo hello > /f"]);
    let mut rest = String::new();
    waiting
        .stdout
        .as_mut()
        .unwrap()
        .read_to_string(&mut rest)
        .unwrap();
    assert_eq!(rest, "hello\n");
    assert!(waiting.wait().unwrap().success());
    // More than any window, both ways, two at once.
    let bytes: Vec<u8> = (0..1_500_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    thread::scope(|scope| {
        let echo = |name: &'static str| {
            let (home, bytes) = (&home, &bytes);
            scope.spawn(move || {
                let mut child = home.spawn(&["exec", name, "--", "cat"]);
                let mut input = child.stdin.take().unwrap();
                let writing = scope.spawn(move || input.write_all(bytes).unwrap());
                let output = child.wait_with_output().unwrap();
                writing.join().unwrap();
                assert!(output.status.success() && output.stdout == *bytes);
            });
        };
        let _ = ["box", "box", "other"].map(echo);
    });
    assert_eq!(home.ls()["sandboxes"].as_array().unwrap().len(), 2);
    home.ok(&["stop", "--all"]);
    assert_eq!(home.ls()["sandboxes"].as_array().unwrap().len(), 0);
}

#[test]
#[ignore = "needs the image"]
fn a_client_that_goes_takes_its_command_with_it() {
    let home = Home::new("gone");
    home.ok(&["start", "box"]);
    // One that waits, one whose output no client reads, one that does not read a full standard
    // input.
    let scripts = [
        "echo up; exec sleep 600",
        "echo up; exec yes",
        "echo up; exec sleep 600",
    ];
    for (index, script) in scripts.iter().enumerate() {
        let mut child = home.spawn(&["exec", "box", "--", "sh", "-c", script]);
        assert_eq!(first_line(&mut child), "up\n");
        if index == 2 {
            let mut input = child.stdin.take().unwrap();
            thread::spawn(move || while input.write_all(&[7; 65_536]).is_ok() {});
            thread::sleep(Duration::from_millis(500));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        eventually(|| count(&home, "box", "sleep") + count(&home, "box", "yes") == 0);
    }
    // Except for a detached command.
    let pid = home.ok(&["exec", "box", "--detach", "--", "sleep", "601"]);
    let pid: u32 = pid.trim().parse().unwrap();
    home.ok(&["exec", "box", "--", "kill", "-0", &pid.to_string()]);
    assert_eq!(count(&home, "box", "sleep"), 1);
    let none = [
        "exec",
        "box",
        "--detach",
        "--json",
        "--",
        "/no/such/program",
    ];
    assert_eq!(home.fails(&none, 127), "sandbox.cannot_start");
}

#[test]
#[ignore = "needs the image"]
fn signals_are_the_commands() {
    let home = Home::new("signals");
    home.ok(&["start", "box"]);
    let script = "trap 'echo int; exit 5' INT; echo up; while :; do sleep 0.1; done";
    let mut child = home.spawn(&["exec", "box", "--", "sh", "-c", script]);
    assert_eq!(first_line(&mut child), "up\n");
    kill("-INT", &child.id().to_string());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    // A second signal at once kills a command that ignores the first.
    let script = "trap '' INT; echo up; while :; do sleep 0.1; done";
    let mut child = home.spawn(&["exec", "box", "--", "sh", "-c", script]);
    assert_eq!(first_line(&mut child), "up\n");
    for _ in 0..2 {
        kill("-INT", &child.id().to_string());
        thread::sleep(Duration::from_millis(100));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(137), "{output:?}");
    let child = home.spawn(&["exec", "box", "--", "sleep", "600"]);
    eventually(|| count(&home, "box", "sleep") == 1);
    kill("-TERM", &child.id().to_string());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
}

#[test]
#[ignore = "needs the image"]
fn a_stop_ends_what_runs() {
    let home = Home::new("stop");
    for how in ["stop", "term"] {
        home.ok(&["start", "box"]);
        let pid = home.pid("box");
        let mut child = home.spawn(&["exec", "box", "--json", "--", "sleep", "600"]);
        drop(child.stdin.take());
        eventually(|| count(&home, "box", "sleep") == 1);
        match how {
            "stop" => drop(home.ok(&["stop", "box"])),
            _ => kill("-TERM", &pid),
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        let reply: Json = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reply["error"]["code"], "sandbox.stopped");
        eventually(|| home.files().is_empty());
    }
}

#[test]
#[ignore = "needs the image"]
fn a_killed_process_is_noticed_and_its_name_is_free() {
    let home = Home::new("killed");
    home.ok(&["start", "box"]);
    let pid = home.pid("box");
    let mut child = home.spawn(&["exec", "box", "--json", "--", "sleep", "600"]);
    drop(child.stdin.take());
    eventually(|| count(&home, "box", "sleep") == 1);
    kill("-KILL", &pid);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let reply: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["error"]["code"], "sandbox.lost");
    // The process may take a moment to end.
    let mut removed = Vec::new();
    eventually(|| {
        let reply = home.ls();
        removed.extend(reply["removed"].as_array().unwrap().clone());
        reply["sandboxes"].as_array().unwrap().is_empty()
    });
    assert_eq!(removed, ["box"]);
    // `start` cleans up without an `ls` before it.
    home.ok(&["start", "box"]);
    kill("-KILL", &home.pid("box"));
    eventually(|| home.run(&["start", "box"]).status.success());
    home.ok(&["exec", "box", "--", "true"]);
    // A hanging daemon is killed; its mounts receive nothing more.
    kill("-STOP", &home.pid("box"));
    home.ok(&["stop", "box"]);
    assert!(!home.files().iter().any(|file| file.ends_with(".sock")));
}

#[test]
#[ignore = "needs the image"]
fn a_guest_is_not_turned_off_from_inside_and_its_end_frees_the_name() {
    let home = Home::new("poweroff");
    home.ok(&["start", "box"]);
    for args in [
        &["exec", "box", "--", "poweroff", "-f"][..],
        &["exec", "box", "--root", "--", "poweroff", "-f"],
    ] {
        let output = home.run(args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        home.ok(&["exec", "box", "--", "true"]);
    }
    home.ok(&["stop", "box"]);
    home.ok(&["start", "box", "--lifetime", "1s"]);
    eventually(|| home.ls()["sandboxes"].as_array().unwrap().is_empty());
    home.ok(&["start", "box"]);
}

#[test]
#[ignore = "needs the image"]
fn another_users_process_is_refused() {
    const PLAY: &str = "A99_TEST_SOCKET";
    if let Ok(socket) = std::env::var(PLAY) {
        // The other user's part of this test.
        let mut stream = UnixStream::connect(socket).unwrap();
        // With a single write: a refused client is disconnected, perhaps before it has written
        // anything.
        let request = Envelope::Request(1, "status".to_owned(), Some(4));
        let frame = encode(request, Some(&()), b"").unwrap();
        let _ = stream.write_all(&frame);
        let mut answer = Vec::new();
        let wait = Some(Duration::from_secs(2));
        stream.set_read_timeout(wait).unwrap();
        // The answer is a frame, not a line: read until the end or the timeout. The daemon may
        // close the connection with unread data.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        panic!("answer: {answer}");
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    use std::os::unix::process::CommandExt;
    let home = Home::new("other-user");
    home.ok(&["start", "box"]);
    // As if the folder's permissions had failed.
    let socket = home.0.join("agent99/box.sock");
    fs::set_permissions(home.0.join("agent99"), PermissionsExt::from_mode(0o711)).unwrap();
    fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
    let me = "another_users_process_is_refused";
    let ask = |user: u32| {
        let mut play = Command::new(std::env::current_exe().unwrap());
        play.args(["--exact", me, "--ignored", "--nocapture"])
            .env(PLAY, &socket);
        let output = play.uid(user).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&both).into_owned()
    };
    assert!(ask(0).contains("instructions"), "{}", ask(0));
    let other = ask(1);
    // The connection may close before the refusal is read, but no other answer comes.
    let refused = other.contains("answer: ") && !other.contains("instructions");
    assert!(refused, "{other}");
    fs::set_permissions(home.0.join("agent99"), PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
#[ignore = "needs the image"]
fn a_tree_comes_back_as_it_went() {
    let home = Home::new("copy");
    home.ok(&["start", "box"]);
    let tree = home.0.join("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    let bytes: Vec<u8> = (0..300_000u32).map(|n| (n ^ (n >> 7)) as u8).collect();
    fs::write(tree.join("a/binary"), &bytes).unwrap();
    fs::write(tree.join("a/b/run"), "#!/bin/sh\necho ran\n").unwrap();
    fs::write(tree.join("empty"), "").unwrap();
    symlink("a/binary", tree.join("link")).unwrap();
    for (path, mode) in [
        ("a/b/run", 0o751),
        ("a/binary", 0o640),
        ("empty", 0o400),
        ("a/b", 0o711),
    ] {
        fs::set_permissions(tree.join(path), PermissionsExt::from_mode(mode)).unwrap();
    }
    let from = tree.to_str().unwrap();
    let reply = home.ok(&["cp", from, "box:/home/agent", "--json"]);
    let reply: Json = serde_json::from_str(&reply).unwrap();
    assert_eq!((&reply["files"], &reply["links"]), (&3.into(), &1.into()));
    assert_eq!(
        home.ok(&["exec", "box", "--", "/home/agent/tree/a/b/run"]),
        "ran\n"
    );
    // An existing folder receives the copy under its name; a new name becomes the copy.
    let back = home.0.join("back");
    home.ok(&["cp", "box:/home/agent/tree", back.to_str().unwrap()]);
    let again = home.0.join("again");
    fs::create_dir(&again).unwrap();
    home.ok(&["cp", "box:tree", again.to_str().unwrap()]);
    for copy in [back, again.join("tree")] {
        assert_eq!(fs::read(copy.join("a/binary")).unwrap(), bytes);
        assert_eq!(
            fs::read_link(copy.join("link")).unwrap(),
            PathBuf::from("a/binary")
        );
        for path in ["", "a", "a/b", "a/b/run", "a/binary", "empty"] {
            let meta = |top: &PathBuf| fs::metadata(top.join(path)).unwrap();
            let (ours, theirs) = (meta(&tree), meta(&copy));
            assert_eq!(
                ours.permissions().mode(),
                theirs.permissions().mode(),
                "{path}"
            );
            assert_eq!(
                ours.modified().unwrap(),
                theirs.modified().unwrap(),
                "{path}"
            );
        }
    }
    let file = home.0.join("file");
    home.ok(&[
        "cp",
        "box:/home/agent/tree/a/binary",
        file.to_str().unwrap(),
    ]);
    assert_eq!(fs::read(&file).unwrap(), bytes);
    let none = ["cp", "box:/no/such", file.to_str().unwrap(), "--json"];
    assert_eq!(home.fails(&none, 125), "sandbox.copy");
    let none = ["cp", "/no/such/file", "box:/home/agent", "--json"];
    assert_eq!(home.fails(&none, 125), "sandbox.copy");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
#[ignore = "needs the image"]
fn a_published_port_leads_into_the_sandbox() {
    let home = Home::new("publish");
    let reply = home.ok(&["start", "box", "--publish", "0:8000", "--json"]);
    let reply: Json = serde_json::from_str(&reply).unwrap();
    let listen = reply["ports"][0]["listen"].as_str().unwrap().to_owned();
    let serve = "import socket; s = socket.create_server(('', 8000)); c = s.accept()[0]; c.sendall(b'from inside'); c.close()";
    home.ok(&["exec", "box", "--detach", "--", "python3", "-c", serve]);
    eventually(|| {
        let mut text = String::new();
        let read =
            std::net::TcpStream::connect(&listen).and_then(|mut s| s.read_to_string(&mut text));
        read.is_ok() && text == "from inside"
    });
    assert_eq!(home.ls()["sandboxes"][0]["ports"], reply["ports"]);
}
