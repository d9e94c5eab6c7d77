//! A guest at work, from the image that was built last: guarantees of its agent and kernel
//! for every command.

use crate::common::{sh, start};
use a99_sandbox::{Command, Output, Stream, VmCode, VmError, block_on};
use std::collections::HashSet;
use std::time::Duration;

fn run(command: Command) -> Result<Output, VmError> {
    block_on(command.output())
}

#[test]
#[ignore = "needs the image"]
fn commands_and_scripts_give_exact_bytes() {
    let sandbox = start();
    assert_eq!(sh(&sandbox, "echo hi"), "hi\n");
    let text = r"printf '\0\377'; echo e >&2; exit 9";
    let output = run(sandbox.command(["sh", "-c", text])).expect("it runs");
    assert_eq!(output.stdout, b"\0\xff");
    assert_eq!(output.stderr, b"e\n");
    assert_eq!(output.exit_code(), 9);
    let output = run(sandbox.command(["python3", "-c", "print(6*7)"]));
    assert_eq!(output.expect("it runs").stdout, b"42\n");
    sh(&sandbox, "export A=1; cd /tmp; B='x y'");
    assert_eq!(sh(&sandbox, "echo $A $B $PWD"), "1 x y /tmp\n");
    let missing = run(sandbox.command(["/none"]));
    assert_eq!(missing.expect_err("not there").code, VmCode::CannotStart);
}

#[test]
#[ignore = "needs the image"]
fn broken_scripts_harm_only_themselves() {
    let sandbox = start();
    for text in [
        "echo 'open",
        "cat",
        "return 3",
        "printf '\\0S0\\0'; echo \"$(",
        "break 9",
    ] {
        block_on(sandbox.exec(text)).expect("it ends");
    }
    let output = block_on(sandbox.exec("export K=v; cd /usr; exit 5")).expect("it ends");
    assert_eq!(output.exit_code(), 5);
    assert!(output.session_reset());
    assert_eq!(sh(&sandbox, "echo $K $PWD"), "v /usr\n");
}

#[test]
#[ignore = "needs the image"]
fn limits_of_time_output_memory_and_processes_hold() {
    let sandbox = start();
    let text = "setsid sleep 1000 & while :; do :; done";
    let endless = sandbox.command(["sh", "-c", text]);
    let error = run(endless.timeout(Duration::from_millis(300))).expect_err("too long");
    assert_eq!(error.code, VmCode::TimedOut);
    let error = run(sandbox.command(["yes"]).output_limit(100_000)).expect_err("too much");
    assert_eq!(error.code, VmCode::OutputLimit);
    let small = sandbox
        .command(["python3", "-c", "x = bytearray(60 << 20)"])
        .process_limit(5)
        .memory_limit(20 << 20);
    let output = run(small).expect("it runs");
    assert_eq!(output.signal(), Some(9));
    assert!(output.out_of_memory());
    let text = "for i in 1 2 3 4 5 6 7 8 9; do sleep 100 & done; echo on";
    run(sandbox.command(["sh", "-c", text]).process_limit(5)).expect("it ends");
    // None of their processes is left.
    let left = sh(&sandbox, "pidof sleep yes python3 python3.13 | wc -w");
    assert_eq!(left.trim(), "0");
}

#[test]
#[ignore = "needs the image"]
fn a_megabyte_goes_through_whole() {
    let sandbox = start();
    let bytes: Vec<u8> = (0..1_000_000u32).map(|n| (n ^ (n >> 8)) as u8).collect();
    let output = run(sandbox.command(["cat"]).stdin(bytes.clone())).expect("it runs");
    assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
    assert!(output.stderr.is_empty());
}

#[test]
#[ignore = "needs the image"]
fn an_output_that_nobody_takes_blocks_no_other() {
    let sandbox = start();
    let yes = sandbox.command(["yes"]).spawn().expect("it starts");
    // It runs now, and from here on its output is not read.
    let first = block_on(yes.next()).expect("the guest runs");
    assert!(first.is_some_and(|chunk| chunk.bytes.starts_with(b"y\ny\n")));
    assert_eq!(sh(&sandbox, "echo on"), "on\n");
    yes.kill().expect("the guest runs");
    while let Some(chunk) = block_on(yes.next()).expect("the guest runs") {
        assert_eq!(chunk.stream, Stream::Stdout);
    }
    let exited = block_on(yes.wait()).expect("it was killed");
    assert_eq!(exited.exit_code(), 128 + 9);
}

/// More commands than the agent could hold open files for.
#[test]
#[ignore = "needs the image"]
fn commands_leave_nothing_behind_however_fast_they_come() {
    let sandbox = start();
    let (first, rest) = (40, 560);
    let run_many = |count: usize| {
        for _ in 0..count {
            let output = run(sandbox.command(["true"])).expect("it runs");
            assert_eq!(output.exit_code(), 0);
        }
        let groups = sh(&sandbox, "ls -d /sys/fs/cgroup/agent99/*/ | wc -l");
        let files = sh(&sandbox, "ls /proc/$PPID/fd | wc -l");
        let number = |text: String| text.trim().parse::<u32>().expect("a number");
        (number(groups), number(files))
    };
    let (groups, files) = run_many(first);
    let (more_groups, more_files) = run_many(rest);
    assert!(more_groups <= groups + 10, "{groups}, {more_groups}");
    assert!(more_files <= files + 50, "{files}, {more_files}");
}

#[test]
#[ignore = "needs the image"]
fn instances_are_different_and_know_the_time() {
    let mut seen = HashSet::new();
    let text = "cat /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | sha256sum; \
                python3 -c 'import secrets; print(secrets.token_hex())'";
    for _ in 0..20 {
        let sandbox = start();
        for line in sh(&sandbox, text).lines() {
            assert!(seen.insert(line.to_owned()), "{line} again");
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.expect("after 1970").as_secs();
        let theirs = sh(&sandbox, "date +%s");
        let theirs: u64 = theirs.trim().parse().expect("a number");
        assert!(theirs.abs_diff(now) <= 2, "{theirs} and {now}");
    }
    assert_eq!(seen.len(), 60);
}

#[test]
#[ignore = "needs the image"]
fn a_stopped_guest_tells_so() {
    let sandbox = start();
    let other = sandbox.clone();
    let waiting = std::thread::spawn(move || block_on(other.exec("sleep 1000")));
    assert_eq!(sh(&start(), "echo other"), "other\n");
    std::thread::sleep(Duration::from_millis(200));
    sandbox.halt();
    let error = waiting.join().expect("no panic").expect_err("stopped");
    assert_eq!(error.code, VmCode::Stopped);
    let error = block_on(sandbox.exec("true"));
    assert_eq!(error.expect_err("stopped").code, VmCode::Stopped);
}

#[test]
#[ignore = "needs the image"]
fn nobody_in_a_guest_turns_it_off() {
    let sandbox = start();
    let output = block_on(sandbox.exec("poweroff -f")).expect("it goes on");
    assert_ne!(output.exit_code(), 0);
    let output = run(sandbox.command(["poweroff", "-f"]).root()).expect("it goes on");
    assert_ne!(output.exit_code(), 0);
    assert_eq!(sh(&sandbox, "echo on"), "on\n");
}
