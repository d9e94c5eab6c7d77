//! Attacks on the sandbox and its host, numbered as in the threat list's group Sandbox; the
//! tests of mounts, network and image files have the others.

use crate::alone::alone;
use crate::common::{builder, sh, start};
use a99_sandbox::{ExecOptions, Sandbox, VmCode, block_on};
use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Seconds beyond any duration here, even on a busy machine.
const TIMEOUT_SECONDS: u64 = 900;

fn within(
    sandbox: &Sandbox,
    seconds: u64,
    argv: &[&str],
) -> Result<a99_sandbox::Output, a99_sandbox::VmError> {
    let command = sandbox.command(argv).timeout(Duration::from_secs(seconds));
    block_on(command.output())
}

/// Checks that the guest answers, and that earlier processes are gone.
#[track_caller]
fn usable(sandbox: &Sandbox) {
    let deadline = Instant::now() + Duration::from_secs(TIMEOUT_SECONDS);
    loop {
        let left = sh(sandbox, "ls /proc | grep -c '^[0-9]'");
        // The agent, its shell, and the processes of this script; kernel threads.
        let count: u32 = left.trim().parse().expect("a number");
        if count < 60 {
            break;
        }
        assert!(Instant::now() < deadline, "{count} processes are left");
    }
    assert_eq!(sh(sandbox, "python3 -c 'print(6*7)'"), "42\n");
}

#[test]
#[ignore = "needs the image"]
fn s01_fork_bomb() {
    let sandbox = start();
    // The shell forks what it waits for first: a fork after the bomb may fail, which ends it.
    let bomb = "sleep 1000 & f() { f | f & }; f; wait";
    let error = within(&sandbox, 3, &["sh", "-c", bomb]).expect_err("it is killed");
    assert_eq!(error.code, VmCode::TimedOut);
    usable(&sandbox);
    // Others have room meanwhile.
    let other = sandbox.clone();
    let bombing = thread::spawn(move || within(&other, 4, &["sh", "-c", bomb]));
    thread::sleep(Duration::from_millis(500));
    let output =
        within(&sandbox, TIMEOUT_SECONDS, &["sh", "-c", "echo on | cat"]).expect("there is room");
    assert_eq!(output.stdout, b"on\n");
    assert!(bombing.join().expect("no panic").is_err());
    // In the session it ends only the session.
    let options = ExecOptions {
        timeout: Some(Duration::from_secs(3)),
        ..ExecOptions::default()
    };
    let error = block_on(sandbox.exec_with(bomb, options)).expect_err("it is killed");
    assert_eq!(error.code, VmCode::TimedOut);
    usable(&sandbox);
}

#[test]
#[ignore = "needs the image"]
fn s01_memory_hog() {
    let sandbox = start();
    let other = sandbox
        .command(["sleep", "1000"])
        .spawn()
        .expect("it starts");
    assert!(block_on(other.pid()).is_some());
    let hog = "x = []\nwhile True: x.append(bytearray(1 << 20))";
    let output = within(&sandbox, TIMEOUT_SECONDS, &["python3", "-c", hog]).expect("it ends");
    assert!(output.out_of_memory(), "{output:?}");
    assert_eq!(output.signal(), Some(9));
    // The session survives a memory hog of its own.
    sh(&sandbox, "export KEPT=1");
    let script = format!("python3 -c '{hog}'; echo $? $KEPT");
    assert_eq!(sh(&sandbox, &script), "137 1\n");
    // Other processes are not killed.
    assert_eq!(sh(&sandbox, "pidof sleep | wc -w"), "1\n");
    usable(&sandbox);
}

#[test]
#[ignore = "needs the image"]
fn s01_disk_fill() {
    let sandbox = builder().files_in_memory().start_blocking();
    let sandbox = sandbox.expect("a sandbox");
    for place in ["/tmp", "/home/agent", "/dev/shm", "/run", "/dev"] {
        let script = format!("cat /dev/zero >{place}/fill");
        let command = sandbox.command(["sh", "-c", &script]);
        let command = command.timeout(Duration::from_secs(TIMEOUT_SECONDS));
        // Only root can write there.
        let command = if place == "/dev" {
            command.root()
        } else {
            command
        };
        let output = block_on(command.output()).expect("it ends");
        assert_ne!(output.exit_code(), 0, "{place}");
        let text = output.stderr_text();
        assert!(text.contains("No space left"), "{place}: {text}");
    }
    // All of them are full, and the guest still works.
    usable(&sandbox);
    sh(
        &sandbox,
        "for place in /tmp /home/agent /dev/shm /run; do rm $place/fill; done",
    );
    sh(&sandbox, "head -c 20000000 /dev/zero >/again");
}

#[test]
#[ignore = "needs the image"]
fn s01_output_flood_costs_the_host_what_is_allowed() {
    let sandbox = builder()
        .output_limit(10_000_000)
        .start_blocking()
        .expect("a sandbox");
    let error = block_on(sandbox.command(["yes"]).output()).expect_err("too much");
    assert_eq!(error.code, VmCode::OutputLimit);
    let output = error.output.expect("what came");
    assert_eq!(output.stdout.len() + output.stderr.len(), 10_000_000);
    let error = block_on(sandbox.exec("yes")).expect_err("too much");
    assert_eq!(error.code, VmCode::OutputLimit);
    // Unread output does not accumulate.
    let unread = sandbox.command(["yes"]).spawn().expect("it starts");
    thread::sleep(Duration::from_millis(500));
    assert_eq!(sh(&sandbox, "echo on"), "on\n");
    drop(unread);
    let deadline = Instant::now() + Duration::from_secs(10);
    while sh(&sandbox, "pidof yes | wc -w") != "0\n" {
        assert!(Instant::now() < deadline, "it lives on");
    }
    usable(&sandbox);
}

#[test]
#[ignore = "needs the image"]
fn s02_commands_cannot_reach_the_channel() {
    let sandbox = start();
    let options = || ExecOptions {
        timeout: Some(Duration::from_millis(500)),
        ..ExecOptions::default()
    };
    // Standard input is empty, so no protocol data can be read.
    assert_eq!(sh(&sandbox, "cat; read x; echo [$x]"), "[]\n");
    for text in [
        "echo 'open",
        "printf '\\0S0\\0X/\\0'",
        "echo \"$(",
        "return 3",
        "exec 3>&1 4>&2; exec sh -c 'exit 4'",
        "kill -9 $$",
        "trap '' TERM INT HUP; exit 0",
        "exec </dev/null >/dev/null 2>&1",
    ] {
        block_on(sandbox.exec_with(text, options())).ok();
        assert_eq!(sh(&sandbox, "echo on"), "on\n", "after {text}");
    }
    for text in [
        "while :; do :; done",
        "trap '' TERM INT HUP QUIT; while :; do sleep 1; done",
        "kill -STOP $$",
        "setsid sh -c 'sleep 1000' & wait",
    ] {
        let error = block_on(sandbox.exec_with(text, options())).expect_err("it never ends");
        assert_eq!(error.code, VmCode::TimedOut, "{text}");
        assert_eq!(sh(&sandbox, "echo on"), "on\n", "after {text}");
    }
    assert_eq!(sh(&sandbox, "pidof sleep | wc -w"), "0\n");
}

#[test]
#[ignore = "needs the image"]
fn s03_codes_and_bytes_are_exact() {
    let sandbox = start();
    for code in [0, 1, 2, 126, 127, 128, 255] {
        let output = block_on(sandbox.exec(format!("printf x; sh -c 'exit {code}'")));
        let output = output.expect("it runs");
        assert_eq!((output.exit_code(), &output.stdout[..]), (code, &b"x"[..]));
        let exit = format!("exit {code}");
        let output = within(&sandbox, 9, &["sh", "-c", &exit]).expect("it runs");
        assert_eq!(output.exit_code(), code);
    }
    // No byte is lost, doubled or translated, at any split.
    let script = "import sys\nfor n in range(70000):\n sys.stdout.buffer.write(bytes([n % 251]) + 'é€😀'.encode())\n if n % 1000 == 0: sys.stdout.flush()";
    let output = within(&sandbox, TIMEOUT_SECONDS, &["python3", "-c", script]).expect("it runs");
    let mut expected = Vec::new();
    for n in 0..70_000u32 {
        expected.push((n % 251) as u8);
        expected.extend("é€😀".bytes());
    }
    assert!(output.stdout == expected, "{} bytes", output.stdout.len());
    let output = within(&sandbox, 9, &["sh", "-c", "kill -SEGV $$"]).expect("it runs");
    assert_eq!((output.signal(), output.exit_code()), (Some(11), 139));
}

#[test]
#[ignore = "needs the image"]
fn s09_no_command_ends_the_guest() {
    let sandbox = start();
    let other = sandbox.command(["sleep", "1000"]).spawn();
    let other = other.expect("it starts");
    for text in [
        "poweroff -f",
        "reboot -f",
        "echo c >/proc/sysrq-trigger; kill -9 1; kill -SEGV 1; poweroff -f",
    ] {
        let output = block_on(sandbox.exec(text)).expect("the guest goes on");
        assert_ne!(output.exit_code(), 0, "{text}");
        let command = sandbox.command(["sh", "-c", text]).root();
        let output = block_on(command.output()).expect("the guest goes on");
        assert_ne!(output.exit_code(), 0, "{text}");
    }
    assert_eq!(sh(&sandbox, "pidof sleep | wc -w"), "1\n");
    other.kill().expect("the guest goes on");
    usable(&sandbox);
}

#[test]
#[ignore = "needs the image"]
fn s10_stop_meets_everything() {
    let sandbox = start();
    let calls: Vec<_> = (0..6)
        .map(|number| {
            let sandbox = sandbox.clone();
            thread::spawn(move || match number {
                0 | 1 => block_on(sandbox.exec("sleep 1000")),
                _ => block_on(sandbox.command(["sleep", "1000"]).output()),
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    block_on(sandbox.stop());
    assert!(start.elapsed() < Duration::from_secs(5));
    for call in calls {
        let error = call.join().expect("no panic").expect_err("stopped");
        assert_eq!(error.code, VmCode::Stopped);
    }
    block_on(sandbox.stop());
    let error = block_on(sandbox.exec("true")).expect_err("stopped");
    assert_eq!(error.code, VmCode::Stopped);
    let error = block_on(sandbox.snapshot()).expect_err("stopped");
    assert_eq!(error.code, VmCode::Stopped);
    assert!(sandbox.command(["true"]).spawn().is_err());
}

#[test]
#[ignore = "needs the image"]
fn s10_a_thousand_starts_leave_nothing() {
    if !alone(module_path!(), "s10_a_thousand_starts_leave_nothing") {
        return;
    }
    let cycle = |number: u32| {
        let sandbox = start();
        if number.is_multiple_of(10) {
            assert_eq!(sh(&sandbox, "echo hi"), "hi\n");
        }
        block_on(sandbox.stop());
    };
    (0..50).for_each(cycle);
    let before = usage();
    (0..1000).for_each(cycle);
    let after = usage();
    // A thread may still be exiting.
    assert!(after.threads <= before.threads + 1, "{before:?} {after:?}");
    assert_eq!(
        after.descriptors, before.descriptors,
        "{before:?} {after:?}"
    );
    let grown = after.memory.saturating_sub(before.memory);
    assert!(grown < 8 << 20, "{before:?} {after:?}");
}

/// Resources of this process.
#[derive(Debug)]
struct Usage {
    threads: usize,
    descriptors: usize,
    memory: u64,
}

fn usage() -> Usage {
    let count = |path: &str| fs::read_dir(path).expect("Linux").count();
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    Usage {
        threads: count("/proc/self/task"),
        descriptors: count("/proc/self/fd"),
        memory: kilobytes.expect("a number") << 10,
    }
}

#[test]
#[ignore = "needs the image"]
fn s11_a_hardened_clock_is_coarse() {
    let sandbox = builder().hardened().start_blocking().expect("a sandbox");
    let script = "import time\nseen = {time.clock_gettime_ns(time.CLOCK_MONOTONIC) for _ in range(3000)}\nseen = sorted(seen)\nprint(min(b - a for a, b in zip(seen, seen[1:])))";
    let finest = sandbox.command(["python3", "-c", script]).output();
    let finest: u64 = block_on(finest)
        .expect("it runs")
        .stdout_text()
        .trim()
        .parse()
        .expect("a number");
    assert!(finest >= 900_000, "{finest} ns");
    // It still sleeps and wakes.
    let start = Instant::now();
    sh(&sandbox, "sleep 0.05");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
#[ignore = "needs the image"]
fn s12_no_two_guests_draw_the_same() {
    let first = start();
    let saved = block_on(first.snapshot()).expect("it is saved");
    let text = "cat /proc/sys/kernel/random/uuid; head -c 16 /dev/urandom | sha256sum; \
                python3 -c 'import secrets, uuid; print(secrets.token_hex()); print(uuid.uuid4())'";
    let mut seen = HashSet::new();
    let mut draw = |sandbox: &Sandbox| {
        for line in sh(sandbox, text).lines() {
            assert!(seen.insert(line.to_owned()), "{line} again");
        }
    };
    draw(&first);
    for _ in 0..5 {
        draw(&start());
        draw(
            &builder()
                .restore(saved.clone())
                .start_blocking()
                .expect("a sandbox"),
        );
    }
    assert_eq!(seen.len(), 44);
}
