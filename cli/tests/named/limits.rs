//! Limits of sandboxes on the command line, the session shell, and disconnecting readers and
//! sandboxes.

use crate::support::*;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn s11_limits_out_of_range_are_usage_errors() {
    let home = Home::new("limits");
    for args in [
        &["exec", "--memory", "0", "--", "true"][..],
        &["exec", "--memory", "1.5G", "--", "true"],
        &["exec", "--memory", "1G", "--", "true"],
        &["start", "box", "--memory", "257M"],
        &["exec", "--processes", "0", "--", "true"],
        &["exec", "--output-limit", "-1", "--", "true"],
        &["exec", "--lifetime", "0s", "--", "true"],
        &["exec", "box", "--lifetime", "5s", "--", "true"],
        &["exec", "box", "--image", "a.wasm", "--", "true"],
        &["exec", "box", "--session", "--cwd", "/", "--", "true"],
        &["exec", "box", "--session", "--env", "A=1", "--", "true"],
        &["exec", "box", "--session", "--memory", "64M", "--", "true"],
        &["exec", "box", "--session", "--detach", "--", "true"],
    ] {
        home.fails(args, 2);
    }
}

#[test]
#[ignore = "needs the image"]
fn s11_a_command_has_the_limits_of_its_options() {
    let home = Home::new("limited");
    let limit = ["exec", "--output-limit", "1000", "--", "yes"];
    let output = home.run(&limit);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert_eq!(output.stdout, b"y\n".repeat(500));
    let hog = "b = bytearray(100 << 20)";
    let output = home.run(&["exec", "--memory", "30M", "--", "python3", "-c", hog]);
    assert_eq!(output.status.code(), Some(137), "{output:?}");
    let many = "for i in 1 2 3 4 5 6; do sleep 5 & done 2>&1; wait";
    let output = home.run(&["exec", "--processes", "3", "--", "sh", "-c", many]);
    assert!(!output.status.success(), "{output:?}");
    let start = Instant::now();
    let code = home.fails(
        &["exec", "--json", "--lifetime", "1s", "--", "sleep", "60"],
        125,
    );
    assert_eq!(code, "sandbox.time_limit");
    assert!(start.elapsed() < Duration::from_secs(30));
    // Limits of a named sandbox, and of one command in it.
    home.ok(&["start", "box", "--output-limit", "1000"]);
    let output = home.run(&["exec", "box", "--", "yes"]);
    assert_eq!(output.stdout.len(), 1000, "{output:?}");
    let output = home.run(&["exec", "box", "--output-limit", "10", "--", "yes"]);
    assert_eq!(output.stdout.len(), 10, "{output:?}");
    let output = home.run(&["exec", "box", "--memory", "30M", "--", "python3", "-c", hog]);
    assert_eq!(output.status.code(), Some(137), "{output:?}");
}

#[test]
#[ignore = "needs the image"]
fn commands_of_the_session_share_a_shell() {
    let home = Home::new("session");
    home.ok(&["start", "box"]);
    let session = |arguments: &[&str]| {
        let args = ["exec", "box", "--session", "--"];
        home.run(&[&args[..], arguments].concat())
    };
    assert!(
        session(&["cd /tmp && X=5; f() { echo f$X; }"])
            .status
            .success()
    );
    assert_eq!(session(&["f; pwd"]).stdout, b"f5\n/tmp\n");
    assert_eq!(session(&["echo", "it's", "$X"]).stdout, b"it's $X\n");
    let output = session(&["echo out; echo err >&2; false"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        (&output.stdout[..], &output.stderr[..]),
        (&b"out\n"[..], &b"err\n"[..])
    );
    let late = [
        "exec",
        "box",
        "--session",
        "--timeout",
        "1s",
        "--",
        "echo a; sleep 60",
    ];
    let output = home.run(&late);
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(124), &b"a\n"[..])
    );
    let child = home.spawn(&["exec", "box", "--session", "--", "sleep 60"]);
    eventually(|| count(&home, "box", "sleep") == 1);
    kill("-INT", &child.id().to_string());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(session(&["echo", "still"]).stdout, b"still\n");
}

#[test]
#[ignore = "needs the image"]
fn a_reader_that_has_enough_is_no_error() {
    let home = Home::new("pipe");
    home.ok(&["start", "box"]);
    for args in [&["exec", "--", "yes"][..], &["exec", "box", "--", "yes"]] {
        let mut command = home.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        drop(output);
        let output = child.wait_with_output().unwrap();
        assert_eq!(line, "y\n");
        assert_eq!(output.status.code(), Some(141), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
#[ignore = "needs the image"]
fn s6_the_second_signal_ends_a_client_of_a_sandbox_that_answers_no_more() {
    let home = Home::new("frozen");
    home.ok(&["start", "box"]);
    let pid = home.pid("box");
    for signal in ["-INT", "-TERM"] {
        let mut child = home.spawn(&["exec", "box", "--", "sh", "-c", "echo up; sleep 600"]);
        assert_eq!(first_line(&mut child), "up\n");
        kill("-STOP", &pid);
        kill(signal, &child.id().to_string());
        thread::sleep(Duration::from_millis(200));
        assert!(
            child.try_wait().unwrap().is_none(),
            "the first is the command's"
        );
        kill(signal, &child.id().to_string());
        let start = Instant::now();
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(if signal == "-INT" { 130 } else { 143 }));
        assert!(start.elapsed() < Duration::from_secs(20));
        kill("-CONT", &pid);
    }
    home.ok(&["exec", "box", "--", "true"]);
}

/// A limit without effect is refused, by the guest if only the guest knows.
#[test]
#[ignore = "needs the image"]
fn s5_a_limit_above_what_commands_have_is_refused() {
    let home = Home::new("memory");
    let output = home.run(&["exec", "--memory", "1G", "--", "true"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("256M"), "{said}");
    for args in [
        &["exec", "--memory", "250M", "--json", "--", "true"][..],
        &["start", "box", "--memory", "250M", "--json"],
    ] {
        let output = home.run(args);
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("commands have"), "{said}");
    }
    home.ok(&["start", "box"]);
    home.fails(&["exec", "box", "--memory", "250M", "--", "true"], 126);
    home.ok(&["exec", "box", "--memory", "100M", "--", "true"]);
}

/// Commands beyond the maximum wait in the queue.
#[test]
#[ignore = "needs the image"]
fn s6_many_commands_at_once_all_run() {
    let home = Home::new("many");
    home.ok(&["start", "box"]);
    // Long enough to start all: those that may run at once do.
    let script = "echo $1; sleep 2";
    let children: Vec<_> = (0..200)
        .map(|number| {
            let number = number.to_string();
            home.spawn(&["exec", "box", "--", "sh", "-c", script, "sh", &number])
        })
        .collect();
    for (number, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{number}: {output:?}");
        assert_eq!(output.stdout, format!("{number}\n").as_bytes());
    }
}
