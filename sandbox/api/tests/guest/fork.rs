//! Snapshots and forks: what a copy keeps, what it gets anew, and what it shares.

use super::alone::alone;
use super::common::*;
use a99_sandbox::vm::MAX_DESCRIPTORS;
use a99_sandbox::{Builder, MountMode, Process, Sandbox, VmCode, block_on};
use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A copy, by a fork or by a snapshot.
pub(crate) type CopyOf = fn(&Sandbox, Builder) -> Sandbox;

pub(crate) const COPIES: [CopyOf; 2] = [
    |sandbox, builder| block_on(sandbox.fork(builder)).expect("a fork"),
    |sandbox, builder| {
        let file = tempfile::tempfile().expect("a file");
        let ours = file.try_clone().expect("a descriptor");
        block_on(sandbox.snapshot_to(file, |_, _| {})).expect("saved");
        builder
            .restore_file(ours)
            .start_blocking()
            .expect("restored")
    },
];

/// Starts a detached command, which ends when it is dropped.
fn detach(sandbox: &Sandbox, text: &str) -> Process {
    let process = sandbox.command(["sh", "-c", text]).detach().spawn();
    let process = process.expect("it starts");
    assert!(block_on(process.pid()).is_some());
    process
}

/// Waits until a script succeeds, and returns its output.
#[track_caller]
fn until(sandbox: &Sandbox, text: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let output = block_on(sandbox.exec(text)).expect("it runs");
        if output.exit_code() == 0 {
            return output.stdout_text();
        }
        assert!(
            Instant::now() < deadline,
            "{text}: {}",
            output.stderr_text()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs the image"]
fn background_processes_go_on_in_the_original_and_in_copies() {
    let sandbox = start();
    let _counting = detach(
        &sandbox,
        "while :; do n=$((n+1)); echo $n >/tmp/n.new; mv /tmp/n.new /tmp/n; sleep 0.02; done",
    );
    let _parent = detach(&sandbox, "(sleep 1000 & echo $! >/tmp/child); exit 3");
    sh(&sandbox, "sleep 1001 & export SHELL_CHILD=$!");
    let attached = sandbox
        .command(["sleep", "1002"])
        .spawn()
        .expect("it starts");
    assert!(block_on(attached.pid()).is_some());
    until(&sandbox, "[ -s /tmp/n ] && [ -s /tmp/child ]");
    for copy_of in COPIES {
        let copy = copy_of(&sandbox, builder());
        assert_eq!(copy.interrupted(), 1, "only the attached command");
        assert_eq!(sh(&copy, "pgrep -f 'sleep 1002' | wc -l"), "0\n");
        for of in [&sandbox, &copy] {
            let before = sh(of, "cat /tmp/n");
            until(of, &format!("[ $(cat /tmp/n) -gt {} ]", before.trim()));
            sh(of, "kill -0 $(cat /tmp/child) $SHELL_CHILD");
        }
        // A copy of a copy, and what ends in one ends only there.
        sh(&copy, "kill $SHELL_CHILD; wait $SHELL_CHILD || true");
        let third = copy_of(&copy, builder());
        assert_ne!(
            block_on(third.exec("kill -0 $SHELL_CHILD"))
                .unwrap()
                .exit_code(),
            0
        );
        let before = sh(&third, "cat /tmp/n");
        until(&third, &format!("[ $(cat /tmp/n) -gt {} ]", before.trim()));
    }
    sh(&sandbox, "kill -0 $SHELL_CHILD");
    attached.kill().expect("it runs");
}

#[test]
#[ignore = "needs the image"]
fn a_detached_command_that_ends_in_a_copy_does_no_harm() {
    let sandbox = start();
    let _waiting = detach(
        &sandbox,
        "while [ ! -e /tmp/end ]; do sleep 0.02; done; echo out; touch /tmp/ended",
    );
    let copy = block_on(sandbox.fork(builder())).expect("a fork");
    assert_eq!(copy.interrupted(), 0);
    sh(&copy, "touch /tmp/end");
    until(&copy, "[ -e /tmp/ended ]");
    assert_eq!(sh(&copy, "echo on"), "on\n");
    assert_ne!(
        block_on(sandbox.exec("[ -e /tmp/ended ]"))
            .unwrap()
            .exit_code(),
        0
    );
}

#[test]
#[ignore = "needs the image"]
fn each_copy_has_a_clock_a_time_randomness_and_an_address_of_its_own() {
    let policy = "allow:127.0.0.1:9";
    let networked = || builder().network(policy.parse().expect("a policy"));
    let sandbox = networked().start_blocking().expect("a sandbox");
    let draw = "cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid; head -c 16 /dev/urandom | sha256sum; \
                cat /sys/class/net/eth0/address";
    let mut seen: HashSet<String> = sh(&sandbox, draw).lines().map(str::to_owned).collect();
    let uptime = |of: &Sandbox| sh(of, "cut -d' ' -f1 /proc/uptime").trim().parse::<f64>();
    let uptime = |of: &Sandbox| uptime(of).expect("a number");
    for copy_of in COPIES {
        let before = uptime(&sandbox);
        for _ in 0..3 {
            let copy = copy_of(&sandbox, networked());
            let lines = sh(&copy, draw);
            assert_eq!(lines.lines().count(), 4);
            for line in lines.lines() {
                assert!(seen.insert(line.to_owned()), "{line} again");
            }
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .expect("a time");
            let theirs: u64 = sh(&copy, "date +%s").trim().parse().expect("a time");
            assert!(theirs.abs_diff(now.as_secs()) <= 2, "{theirs}");
            let (first, second) = (uptime(&copy), uptime(&copy));
            assert!(
                before <= first && first <= second,
                "{before} {first} {second}"
            );
            assert!(second < before + 60.0, "{before} {second}");
        }
    }
    let fixed = networked().mac([2, 0, 0, 0, 0, 7]);
    let fixed = block_on(sandbox.fork(fixed)).expect("a fork");
    assert_eq!(
        sh(&fixed, "cat /sys/class/net/eth0/address"),
        "02:00:00:00:00:07\n"
    );
}

#[test]
#[ignore = "needs the image"]
fn connections_stay_with_the_original() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let networked = || {
        let policy = format!("allow:127.0.0.1:{port}");
        builder().network(policy.parse().expect("a policy"))
    };
    let sandbox = networked().start_blocking().expect("a sandbox");
    let _connected = detach(
        &sandbox,
        &format!(
            "python3 -c \"
import os, socket, time
s = socket.create_connection(('192.168.127.254', {port}))
s.sendall(b'hello')
open('/tmp/connected', 'w').close()
while not os.path.exists('/tmp/say'): time.sleep(0.02)
try:
    while True:
        s.sendall(b'more')
        open('/tmp/sent', 'w').close()
        time.sleep(0.02)
except OSError as error:
    open('/tmp/broken', 'w').write(type(error).__name__)
\""
        ),
    );
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut hello = [0; 5];
    stream.read_exact(&mut hello).expect("bytes");
    until(&sandbox, "[ -e /tmp/connected ]");
    for copy_of in COPIES {
        let copy = copy_of(&sandbox, networked());
        sh(&copy, "touch /tmp/say");
        assert_eq!(
            until(&copy, "cat /tmp/broken 2>/dev/null && [ -s /tmp/broken ]"),
            "ConnectionResetError"
        );
    }
    sh(&sandbox, "touch /tmp/say");
    let mut more = [0; 4];
    stream.read_exact(&mut more).expect("bytes");
    assert_eq!((&hello, &more), (b"hello", b"more"));
    assert_ne!(
        block_on(sandbox.exec("[ -e /tmp/broken ]"))
            .unwrap()
            .exit_code(),
        0
    );
    drop::<TcpStream>(stream);
}

#[test]
#[ignore = "needs the image"]
fn disks_are_independent_after_the_copy() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = builder().disk_in(1 << 30, folder.path());
    let sandbox = sandbox.start_blocking().expect("a sandbox");
    sh(
        &sandbox,
        "cd /tmp; head -c 30M /dev/urandom >data; sha256sum data >sum; echo old >text; \
         head -c 5M /dev/urandom >gone; sync; rm gone",
    );
    let in_folder = || builder().disk_in(1 << 30, folder.path());
    for (number, copy_of) in COPIES.into_iter().enumerate() {
        let copy = copy_of(&sandbox, in_folder());
        sh(
            &copy,
            "cd /tmp; sha256sum -c sum; [ \"$(cat text)\" = old ] && [ ! -e gone ]",
        );
        sh(
            &copy,
            "cd /tmp; echo copy >text; head -c 10M /dev/zero >data; sync",
        );
        let line = format!("ours{number}");
        sh(
            &sandbox,
            &format!("cd /tmp; sha256sum -c sum; echo {line} >>new; sync"),
        );
        // Without its caches, a guest reads what is on the disk.
        for of in [&sandbox, &copy] {
            let drop = of
                .command(["sh", "-c", "echo 3 >/proc/sys/vm/drop_caches"])
                .root();
            let _ = block_on(drop.output());
        }
        assert_eq!(
            sh(&copy, "cat /tmp/text; wc -c </tmp/data; ls /tmp"),
            match number {
                0 => "copy\n10485760\ndata\nsum\ntext\n",
                _ => "copy\n10485760\ndata\nnew\nsum\ntext\n",
            }
        );
        assert!(sh(&sandbox, "cat /tmp/text /tmp/new").ends_with(&format!("{line}\n")));
        let again = copy_of(&copy, in_folder());
        assert_eq!(sh(&again, "cat /tmp/text"), "copy\n");
        // The caller limits the disk.
        let small = builder().disk_in(16 << 20, folder.path());
        let error = block_on(sandbox.fork(small)).expect_err("too large");
        assert_eq!(error.code, VmCode::BadOption, "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
}

#[test]
#[ignore = "needs the image"]
fn mounts_are_those_of_the_caller() {
    let (ours, theirs) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    fs::write(ours.path().join("name"), "ours").expect("written");
    fs::write(theirs.path().join("name"), "theirs").expect("written");
    let sandbox = builder().mount("/mnt/data", ours.path(), MountMode::ReadWrite);
    let sandbox = sandbox.start_blocking().expect("a sandbox");
    assert_eq!(sh(&sandbox, "cat /mnt/data/name"), "ours");
    for copy_of in COPIES {
        let with = builder().mount("/mnt/data", theirs.path(), MountMode::ReadOnly);
        let copy = copy_of(&sandbox, with);
        assert_eq!(sh(&copy, "cat /mnt/data/name"), "theirs");
        assert_ne!(
            block_on(copy.exec("echo >/mnt/data/x"))
                .unwrap()
                .exit_code(),
            0
        );
        let without = copy_of(&sandbox, builder());
        assert_ne!(
            block_on(without.exec("cat /mnt/data/name"))
                .unwrap()
                .exit_code(),
            0
        );
    }
    sh(&sandbox, "echo still >/mnt/data/new");
    assert_eq!(
        fs::read(ours.path().join("new")).expect("there"),
        b"still\n"
    );
}

#[test]
#[ignore = "needs the image"]
fn twenty_forks_leave_nothing() {
    if !alone(module_path!(), "twenty_forks_leave_nothing") {
        return;
    }
    let count = |what: &str| {
        fs::read_dir(format!("/proc/self/{what}"))
            .expect("there")
            .count()
    };
    block_on(start().stop());
    let descriptors = count("fd");
    let folder = tempfile::tempdir().expect("a folder");
    let with_disk = || builder().disk_in(64 << 20, folder.path());
    let sandbox = with_disk().start_blocking().expect("a sandbox");
    let round = |sandbox: &Sandbox| {
        let copies: Vec<_> = (0..20)
            .map(|number| {
                sh(
                    sandbox,
                    &format!("head -c 1M /dev/urandom >/tmp/{number}; sync"),
                );
                block_on(sandbox.fork(with_disk())).expect("a fork")
            })
            .collect();
        for (number, copy) in copies.iter().enumerate() {
            assert_eq!(sh(copy, "ls /tmp | wc -l"), format!("{}\n", number + 1));
            block_on(copy.stop());
        }
        sh(sandbox, "rm /tmp/*; sync");
    };
    let threads = || {
        let mut left = count("task");
        for _ in 0..100 {
            thread::sleep(Duration::from_millis(20));
            left = left.min(count("task"));
        }
        left
    };
    let mappings = || {
        let text = fs::read_to_string("/proc/self/maps").expect("there");
        text.lines().count()
    };
    let memory = || {
        let text = fs::read_to_string("/proc/self/smaps_rollup").expect("there");
        let line = text
            .lines()
            .find(|line| line.starts_with("Pss:"))
            .expect("a line");
        let kilobytes = line.split_whitespace().nth(1).expect("a number");
        kilobytes.parse::<u64>().expect("a number") << 10
    };
    round(&sandbox);
    let before = (count("fd"), threads(), mappings(), memory());
    round(&sandbox);
    let after = (count("fd"), threads(), mappings(), memory());
    println!("descriptors, threads, mappings, bytes: {before:?}, then {after:?}");
    // Its memory and disk consist of a bounded number of files.
    assert!(after.0 <= descriptors + MAX_DESCRIPTORS + 4, "{after:?}");
    assert!(after.1 <= before.1, "{before:?} {after:?}");
    assert!(after.2 <= before.2 + 600, "{before:?} {after:?}");
    assert!(after.3 <= before.3 + (32 << 20), "{before:?} {after:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
    block_on(sandbox.stop());
    assert!(memory() < after.3, "its memory is given back");
    assert_eq!(count("fd"), descriptors);
}

#[test]
#[ignore = "needs the image"]
fn a_damaged_snapshot_is_refused_with_its_reason() {
    let sandbox = start();
    sh(&sandbox, "head -c 3M /dev/urandom >/tmp/data");
    let path = tempfile::NamedTempFile::new().expect("a file");
    let mut steps = Vec::new();
    let (said, heard) = std::sync::mpsc::channel();
    let file = path.reopen().expect("a file");
    block_on(sandbox.snapshot_to(file, move |done, total| {
        let _ = said.send((done, total));
    }))
    .expect("saved");
    steps.extend(heard);
    assert!(steps.is_sorted() && steps.len() > 1, "{steps:?}");
    assert!(
        steps
            .last()
            .is_some_and(|(done, total)| done == total && *done > 3 << 20)
    );
    let bytes = fs::read(path.path()).expect("there");
    let refused = |bytes: &[u8], why: &str| {
        let file = tempfile::tempfile().expect("a file");
        (&file).write_all(bytes).expect("written");
        let error = builder()
            .restore_file(file)
            .start_blocking()
            .expect_err("refused");
        assert_eq!(error.code, VmCode::Saved, "{error}");
        assert!(error.text.contains(why), "{why}: {error}");
    };
    let turned = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    refused(&turned(0), "no saved guest");
    refused(&turned(40), "damaged");
    refused(&turned(bytes.len() / 2), "damaged");
    refused(&turned(bytes.len() - 1), "damaged");
    refused(&bytes[..bytes.len() - 7], "too short");
    refused(&[&bytes[..], b"x"].concat(), "more after its end");
    refused(b"", "too short");
    // A file that shrinks while it is read is too short as well, and does not crash.
    let file = path.reopen().expect("a file");
    file.set_len(5000).expect("cut");
    file.write_all_at(&bytes[..8], 0).expect("written");
    let error = builder()
        .restore_file(file)
        .start_blocking()
        .expect_err("refused");
    assert_eq!(error.code, VmCode::Saved);
}
