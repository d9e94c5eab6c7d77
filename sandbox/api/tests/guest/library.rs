//! The library at work, from the image that was built last.

use crate::alone::alone;
use crate::common::{IMAGE, builder, sh, start, succeeded};
use a99_sandbox::{Cancel, Ending, ExecOptions, Sandbox, Stream, VmCode, block_on};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

fn timeout(milliseconds: u64) -> ExecOptions {
    ExecOptions {
        timeout: Some(Duration::from_millis(milliseconds)),
        ..ExecOptions::default()
    }
}

/// Waits until a condition holds.
#[track_caller]
fn eventually(mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < deadline, "it never is so");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The checks of AgentVM's basic test.
#[test]
#[ignore = "needs the image"]
fn agentvm_basics() {
    let sandbox = start();
    let output = block_on(sandbox.exec("echo hello")).unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.exit_code()),
        (&b"hello\n"[..], 0)
    );
    assert_eq!(sh(&sandbox, "python3 -c 'print(100 + 200)'"), "300\n");
    let missing = block_on(sandbox.exec("ls /nonexistent")).unwrap();
    assert_ne!(missing.exit_code(), 0);
    assert!(missing.stderr_text().contains("nonexistent"));
    sh(&sandbox, "export MYVAR=foobar");
    assert_eq!(sh(&sandbox, "echo $MYVAR"), "foobar\n");
    block_on(sandbox.stop());
    let error = block_on(sandbox.exec("true")).unwrap_err();
    assert_eq!(error.code, VmCode::Stopped);
}

#[test]
#[ignore = "needs the image"]
fn the_builder_is_obeyed() {
    let sandbox = builder()
        .hostname("box")
        .env("GREETING", "it's $me")
        .process_limit(20)
        .start_blocking()
        .unwrap();
    assert_eq!(
        sh(&sandbox, "hostname; echo \"$GREETING\""),
        "box\nit's $me\n"
    );
    let output = block_on(sandbox.command(["sh", "-c", "echo $GREETING"]).output());
    assert_eq!(output.unwrap().stdout, b"it's $me\n");
    let own = sandbox.command(["env"]).clear_env().env("A", "1").output();
    assert_eq!(block_on(own).unwrap().stdout, b"A=1\n");
    // That many processes beside the shell, which ends when it gets no more.
    let count = "i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); echo $i; done";
    let started = |output: a99_sandbox::Output| output.stdout_text().lines().count();
    let output = block_on(sandbox.command(["sh", "-c", count]).output());
    assert_eq!(started(output.unwrap()), 19);
    let limited = sandbox.command(["sh", "-c", count]).process_limit(7);
    assert_eq!(started(block_on(limited.output()).unwrap()), 6);
    assert_eq!(started(block_on(sandbox.exec(count)).unwrap()), 19);
}

#[test]
#[ignore = "needs the image"]
fn scripts_with_their_own_streams_run_beside_the_session() {
    let sandbox = start();
    sh(&sandbox, "cd /usr; X=1");
    let options = ExecOptions {
        cwd: Some("/tmp".to_owned()),
        env: vec![("Y".to_owned(), "2".to_owned())],
        stdin: Some(b"typed\n".to_vec()),
        ..ExecOptions::default()
    };
    let output = block_on(sandbox.exec_with("pwd; echo $X$Y; cat; exit 3", options)).unwrap();
    assert_eq!(output.stdout, b"/tmp\n2\ntyped\n");
    assert_eq!(output.exit_code(), 3);
    assert!(!output.session_reset());
    assert_eq!(sh(&sandbox, "pwd; echo $X$Y"), "/usr\n1\n");
}

#[test]
#[ignore = "needs the image"]
fn streams_are_followed_both_ways() {
    let sandbox = start();
    let process = sandbox.command(["cat"]).piped().spawn().unwrap();
    assert!(block_on(process.pid()).is_some());
    let bytes: Vec<u8> = (0..2_000_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let process = Arc::new(process);
    let (writer, input) = (Arc::clone(&process), bytes.clone());
    let writing = thread::spawn(move || {
        assert!(block_on(writer.write(&input)).unwrap());
        writer.close_input().unwrap();
    });
    let mut echoed = Vec::new();
    while let Some(chunk) = block_on(process.next()).unwrap() {
        assert_eq!(chunk.stream, Stream::Stdout);
        echoed.extend(chunk.bytes);
    }
    writing.join().unwrap();
    assert!(echoed == bytes, "{} bytes", echoed.len());
    assert_eq!(block_on(process.wait()).unwrap().ending, Ending::Code(0));
    // A process that has ended accepts no input.
    assert!(!block_on(process.write(b"x")).unwrap());
}

#[test]
#[ignore = "needs the image"]
fn a_command_that_closes_its_input_takes_all_of_it() {
    let sandbox = start();
    let command = sandbox.command(["true"]).stdin(vec![b'x'; 3_000_000]);
    assert_eq!(block_on(command.output()).unwrap().exit_code(), 0);
    let output = block_on(sandbox.command(["head", "-c1"]).stdin("yes").output());
    assert_eq!(output.unwrap().stdout, b"y");
}

#[test]
#[ignore = "needs the image"]
fn commands_run_side_by_side() {
    let sandbox = start();
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let sandbox = sandbox.clone();
            thread::spawn(move || {
                let text = format!("for i in 1 2 3; do echo {number}; sleep 0.1; done");
                let output = sandbox.command(["sh", "-c", &text]).output();
                (number, block_on(output).unwrap().stdout_text())
            })
        })
        .collect();
    // The session is not delayed by any of them.
    assert_eq!(sh(&sandbox, "echo on"), "on\n");
    for thread in threads {
        let (number, text) = thread.join().unwrap();
        assert_eq!(text, format!("{number}\n").repeat(3));
    }
}

#[test]
#[ignore = "needs the image"]
fn what_is_dropped_or_cancelled_is_killed() {
    let sandbox = start();
    let alive = |sandbox: &Sandbox| sh(sandbox, "pidof sleep | wc -w").trim().to_owned();
    // A dropped future.
    {
        use std::future::Future;
        use std::task::{Context, Waker};
        let text = "setsid sleep 1001 & sleep 1002";
        let mut future = Box::pin(sandbox.command(["sh", "-c", text]).output());
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        eventually(|| alive(&sandbox) == "2");
    }
    // A dropped process.
    drop(sandbox.command(["sleep", "1003"]).spawn().unwrap());
    // A switch, for a running command, a queued script, and a later one.
    let cancel = Cancel::new();
    let (theirs, running) = (cancel.clone(), sandbox.clone());
    let thread = thread::spawn(move || {
        block_on(running.command(["sleep", "1004"]).cancel(&theirs).output())
    });
    eventually(|| alive(&sandbox) == "1");
    cancel.cancel();
    assert_eq!(thread.join().unwrap().unwrap_err().code, VmCode::Cancelled);
    let later = sandbox.command(["sleep", "1005"]).cancel(&cancel).output();
    assert_eq!(block_on(later).unwrap_err().code, VmCode::Cancelled);
    eventually(|| alive(&sandbox) == "0");
}

#[test]
#[ignore = "needs the image"]
fn a_script_that_waits_for_its_turn_can_be_late() {
    let sandbox = start();
    let theirs = sandbox.clone();
    let long = thread::spawn(move || block_on(theirs.exec("touch /on; sleep 5; echo done")));
    eventually(|| {
        let there = sandbox.command(["test", "-e", "/on"]).output();
        block_on(there).unwrap().exit_code() == 0
    });
    let error = block_on(sandbox.exec_with("echo never", timeout(100))).unwrap_err();
    assert_eq!(error.code, VmCode::TimedOut);
    assert!(!long.is_finished());
    assert_eq!(long.join().unwrap().unwrap().stdout, b"done\n");
}

#[test]
#[ignore = "needs the image"]
fn a_late_command_leaves_what_it_wrote() {
    let sandbox = start();
    let command = sandbox.command(["sh", "-c", "echo first; sleep 1000"]);
    let error = block_on(command.timeout(Duration::from_secs(5)).output()).unwrap_err();
    assert_eq!(error.code, VmCode::TimedOut);
    assert_eq!(error.output.unwrap().stdout, b"first\n");
    let error = block_on(sandbox.exec_with("echo one; sleep 1000", timeout(5000))).unwrap_err();
    let output = error.output.unwrap();
    assert_eq!(output.stdout, b"one\n");
    assert!(output.session_reset());
    assert_eq!(sh(&sandbox, "echo on"), "on\n");
}

#[test]
#[ignore = "needs the image"]
fn a_shell_has_a_terminal() {
    let sandbox = start();
    let shell = Arc::new(sandbox.shell(30, 90).spawn().unwrap());
    let type_in = |text: &str| assert!(block_on(shell.write(text.as_bytes())).unwrap());
    let mut seen = String::new();
    let mut until = |text: &str| {
        while !seen.contains(text) {
            let chunk = block_on(shell.next()).unwrap().expect("the shell runs");
            seen.push_str(&String::from_utf8_lossy(&chunk.bytes));
        }
        seen.clear();
    };
    until("$ ");
    type_in("stty size; test -t 0 && echo $TERM-$((1+1))\n");
    until("30 90\r\nxterm-256color-2\r\n");
    shell.resize(40, 100).unwrap();
    type_in("stty size\n");
    until("40 100\r\n");
    type_in("sleep 1000\n");
    thread::sleep(Duration::from_millis(300));
    type_in("\x03");
    until("$ ");
    type_in("exit 7\n");
    while block_on(shell.next()).unwrap().is_some() {}
    assert_eq!(block_on(shell.wait()).unwrap().ending, Ending::Code(7));
}

#[test]
#[ignore = "needs the image"]
fn files_are_copied_both_ways() {
    let sandbox = start();
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    fs::create_dir_all(from.join("sub/empty")).unwrap();
    let content: Vec<u8> = (0..3_000_000u32).map(|n| (n ^ (n >> 11)) as u8).collect();
    fs::write(from.join("sub/data"), &content).unwrap();
    fs::write(from.join("run"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(from.join("run"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("sub/data", from.join("link")).unwrap();
    let copied = block_on(sandbox.copy_in(&from, "/to")).unwrap();
    assert_eq!((copied.files, copied.folders, copied.links), (2, 3, 1));
    assert_eq!(sh(&sandbox, "/to/run; stat -c %a /to/run"), "ran\n750\n");
    sh(
        &sandbox,
        "ln -s /etc/passwd /to/out; mkfifo /to/pipe; cmp /to/link /to/sub/data",
    );
    let back = folder.path().join("back");
    let copied = block_on(sandbox.copy_out("/to", &back)).unwrap();
    assert_eq!((copied.files, copied.folders, copied.links), (2, 3, 1));
    assert_eq!(copied.left_out, 2);
    assert!(fs::read(back.join("link")).unwrap() == content);
    let metadata = |folder: &std::path::Path| fs::metadata(folder.join("run")).unwrap();
    assert_eq!(metadata(&back).mode(), metadata(&from).mode());
    assert_eq!(metadata(&back).mtime(), metadata(&from).mtime());
    for (guest, host) in [("/nothing", "x"), ("/to", "none/x")] {
        let error = block_on(sandbox.copy_out(guest, folder.path().join(host))).unwrap_err();
        assert_eq!(error.code, VmCode::Copy, "{error}");
    }
    let error = block_on(sandbox.copy_in(folder.path().join("none"), "/x")).unwrap_err();
    assert_eq!(error.code, VmCode::Copy, "{error}");
    let error = block_on(sandbox.copy_in(&from, "/proc/x")).unwrap_err();
    assert_eq!(error.code, VmCode::Copy, "{error}");
}

#[test]
#[ignore = "needs the image"]
fn a_saved_sandbox_goes_on_elsewhere() {
    let sandbox = start();
    sh(
        &sandbox,
        "export KEPT=yes; cd /usr; echo text >/file; f() { echo f$1; }",
    );
    let left = sandbox.command(["sleep", "1000"]).spawn().unwrap();
    assert!(block_on(left.pid()).is_some());
    let saved = block_on(sandbox.snapshot()).unwrap();
    // The sandbox continues, and so does the command.
    assert_eq!(sh(&sandbox, "echo $KEPT; pidof sleep | wc -w"), "yes\n1\n");
    left.kill().unwrap();
    block_on(sandbox.stop());
    assert!(saved.len() < 64 << 20, "{} bytes", saved.len());
    let ids = "cat /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | sha256sum";
    let mut seen = std::collections::HashSet::new();
    for _ in 0..3 {
        let other = builder().restore(saved.clone()).start_blocking().unwrap();
        assert_eq!(other.interrupted(), 1);
        assert_eq!(
            sh(&other, "echo $KEPT; pwd; cat /file; f 1"),
            "yes\n/usr\ntext\nf1\n"
        );
        assert_eq!(sh(&other, "pidof sleep | wc -w"), "0\n");
        assert_eq!(sh(&other, "python3 -c 'print(6*7)'"), "42\n");
        for line in sh(&other, ids).lines() {
            assert!(seen.insert(line.to_owned()), "{line} again");
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let theirs: u64 = sh(&other, "date +%s").trim().parse().unwrap();
        assert!(theirs.abs_diff(now.unwrap().as_secs()) <= 2);
    }
    // A restored sandbox can be saved again.
    let other = builder().restore(saved.clone()).start_blocking().unwrap();
    sh(&other, "KEPT=twice");
    let again = block_on(other.snapshot()).unwrap();
    let third = builder().restore(again).start_blocking().unwrap();
    assert_eq!(sh(&third, "echo $KEPT"), "twice\n");
    let mut damaged = saved;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let error = builder().restore(damaged).start_blocking().unwrap_err();
    assert_eq!(error.code, VmCode::Saved);
}

#[test]
#[ignore = "needs the image"]
fn a_script_that_is_saved_is_interrupted() {
    let sandbox = start();
    sh(&sandbox, "export KEPT=yes");
    let theirs = sandbox.clone();
    let script = thread::spawn(move || block_on(theirs.exec("touch /on; sleep 5; echo done")));
    eventually(|| {
        let there = sandbox.command(["test", "-e", "/on"]).output();
        block_on(there).unwrap().exit_code() == 0
    });
    let saved = block_on(sandbox.snapshot()).unwrap();
    assert_eq!(script.join().unwrap().unwrap().stdout, b"done\n");
    let other = builder().restore(saved).start_blocking().unwrap();
    assert_eq!(other.interrupted(), 1);
    let output = block_on(other.exec("echo $KEPT")).unwrap();
    assert!(output.session_reset());
    assert_eq!(output.stdout, b"yes\n");
}

#[test]
#[ignore = "needs the image"]
fn limits_of_the_sandbox_hold() {
    let sandbox = builder().time_limit(Duration::from_millis(500));
    let sandbox = sandbox.start_blocking().unwrap();
    let error = block_on(sandbox.exec("sleep 1000")).unwrap_err();
    assert_eq!(error.code, VmCode::TimeLimit);
    let sandbox = builder().instruction_limit(300_000_000);
    let sandbox = sandbox.start_blocking().unwrap();
    let error = block_on(sandbox.exec("while :; do :; done")).unwrap_err();
    assert_eq!(error.code, VmCode::CpuLimit);
}

#[test]
#[ignore = "needs the image"]
fn two_hundred_at_once() {
    if !alone(module_path!(), "two_hundred_at_once") {
        return;
    }
    const COUNT: usize = 200;
    let before = private_bytes();
    let threads: Vec<_> = (0..COUNT)
        .map(|number| {
            thread::spawn(move || {
                let sandbox = Sandbox::builder().loaded_image(&IMAGE);
                let sandbox = sandbox.start_blocking().expect("a sandbox");
                let text = format!("python3 -c 'print({number} * 2)'");
                let output = block_on(sandbox.exec(&text)).expect("it runs");
                assert_eq!(succeeded(&text, output), format!("{}\n", number * 2));
                sandbox
            })
        })
        .collect();
    let sandboxes: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    let used = private_bytes() - before;
    assert!(used < 4 << 30, "{} MiB", used >> 20);
    drop(sandboxes);
}

/// Private bytes of this process's memory.
fn private_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").expect("Linux");
    let fields = text.lines().filter(|line| line.starts_with("Private_"));
    let kilobytes = fields.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.sum::<u64>() << 10
}

#[test]
fn futures_can_be_sent() {
    fn sent<T: Send>(_: &T) {}
    fn shared<T: Send + Sync>() {}
    shared::<Sandbox>();
    shared::<a99_sandbox::Process>();
    sent(&Sandbox::builder().start());
    #[allow(dead_code, reason = "it is only compiled")]
    fn of(sandbox: &Sandbox, process: &a99_sandbox::Process) {
        sent(&sandbox.exec("x"));
        sent(&sandbox.exec_with("x", ExecOptions::default()));
        sent(&sandbox.command(["x"]).output());
        sent(&sandbox.copy_in("x", "y"));
        sent(&sandbox.copy_out("x", "y"));
        sent(&sandbox.snapshot());
        sent(&sandbox.stop());
        sent(&process.next());
        sent(&process.write(b"x"));
        sent(&process.wait());
    }
}
