//! A guest at work, from the image that was built last.
//!
//! These need the image (`cargo xtask guest`), so they are run by name:
//! `cargo test -p a99-sandbox --test guest -- --ignored`. `A99_TEST_MODULE`
//! names a compiled module to use instead.

use a99_guest_agent::protocol::{Ending, Exec, Limits, Stream};
use a99_sandbox::image::Cache;
use a99_sandbox::vm::{Event, Image, Options, Run, Sandbox, VmCode};
use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Loaded once for all tests.
static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    if let Ok(path) = std::env::var("A99_TEST_MODULE") {
        return Image::at(Path::new(&path)).expect("the named module");
    }
    let cache = Cache::of_user().expect("a cache");
    Image::current(&cache, &mut |_: a99_sandbox::image::Event<'_>| {}).expect("the built image")
});

fn start() -> Sandbox {
    Sandbox::start(&IMAGE, &Options::default()).expect("a guest")
}

fn exec(argv: &[&str]) -> Exec {
    Exec {
        argv: argv.iter().map(|a| a.as_bytes().to_vec()).collect(),
        ..Exec::default()
    }
}

#[track_caller]
fn script(sandbox: &Sandbox, text: &str) -> String {
    let output = sandbox.script(text, &Run::default()).expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.exit_code(), 0, "{text}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
#[ignore = "needs the image"]
fn commands_and_scripts_give_exact_bytes() {
    let sandbox = start();
    assert_eq!(script(&sandbox, "echo hi"), "hi\n");
    let run = Run::default();
    let text = r"printf '\0\377'; echo e >&2; exit 9";
    let output = sandbox.command(exec(&["sh", "-c", text]), &run);
    let output = output.expect("it runs");
    assert_eq!(output.stdout, b"\0\xff");
    assert_eq!(output.stderr, b"e\n");
    assert_eq!(output.exit_code(), 9);
    let output = sandbox.command(exec(&["python3", "-c", "print(6*7)"]), &run);
    assert_eq!(output.expect("it runs").stdout, b"42\n");
    script(&sandbox, "export A=1; cd /tmp; B='x y'");
    assert_eq!(script(&sandbox, "echo $A $B $PWD"), "1 x y /tmp\n");
    let missing = sandbox.command(exec(&["/none"]), &run);
    assert_eq!(missing.expect_err("not there").code, VmCode::CannotStart);
}

#[test]
#[ignore = "needs the image"]
fn broken_scripts_harm_only_themselves() {
    let sandbox = start();
    let run = Run::default();
    for text in [
        "echo 'open",
        "cat",
        "return 3",
        "printf '\\0S0\\0'; echo \"$(",
        "break 9",
    ] {
        sandbox.script(text, &run).expect("it ends");
    }
    let output = sandbox.script("export K=v; cd /usr; exit 5", &run);
    let output = output.expect("it ends");
    assert_eq!(output.exit_code(), 5);
    assert!(output.exited.session_reset);
    assert_eq!(script(&sandbox, "echo $K $PWD"), "v /usr\n");
}

#[test]
#[ignore = "needs the image"]
fn limits_of_time_output_memory_and_processes_hold() {
    let sandbox = start();
    let limited = |run: Run, argv: &[&str]| sandbox.command(exec(argv), &run);
    let timeout = Run {
        timeout: Some(Duration::from_millis(300)),
        ..Run::default()
    };
    let text = "setsid sleep 1000 & while :; do :; done";
    let error = limited(timeout, &["sh", "-c", text]).expect_err("too long");
    assert_eq!(error.code, VmCode::TimedOut);
    let output = Run {
        output_limit: Some(100_000),
        ..Run::default()
    };
    let error = limited(output, &["yes"]).expect_err("too much");
    assert_eq!(error.code, VmCode::OutputLimit);
    let small = Exec {
        limits: Limits {
            pids: Some(5),
            memory: Some(20 << 20),
        },
        ..exec(&["python3", "-c", "x = bytearray(60 << 20)"])
    };
    let output = sandbox.command(small, &Run::default()).expect("it runs");
    assert_eq!(output.exited.ending, Ending::Signal(9));
    assert!(output.exited.out_of_memory);
    let text = "for i in 1 2 3 4 5 6 7 8 9; do sleep 100 & done; echo on";
    let bomb = Exec {
        limits: Limits {
            pids: Some(5),
            memory: None,
        },
        ..exec(&["sh", "-c", text])
    };
    sandbox.command(bomb, &Run::default()).expect("it ends");
    // Nothing is left of any of them.
    let left = script(&sandbox, "pidof sleep yes python3 python3.13 | wc -w");
    assert_eq!(left.trim(), "0");
}

#[test]
#[ignore = "needs the image"]
fn streams_go_through_whole() {
    let sandbox = start();
    let bytes: Vec<u8> = (0..1_000_000u32).map(|n| (n ^ (n >> 8)) as u8).collect();
    let run = Run {
        stdin: bytes.clone(),
        ..Run::default()
    };
    let output = sandbox.command(exec(&["cat"]), &run).expect("it runs");
    assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let input = std::io::Cursor::new(bytes.clone());
    let exited = sandbox.stream(exec(&["cat"]), Some(input), &mut stdout, &mut stderr);
    assert_eq!(exited.expect("it runs").ending, Ending::Code(0));
    assert!(stdout == bytes && stderr.is_empty());
}

#[test]
#[ignore = "needs the image"]
fn an_output_that_nobody_takes_blocks_no_other() {
    let sandbox = start();
    let (sender, events) = channel();
    let yes = sandbox.open(exec(&["yes"]), move |event| {
        let _ = sender.send(event);
    });
    let yes = yes.expect("it starts");
    assert_eq!(script(&sandbox, "echo on"), "on\n");
    yes.kill().expect("the guest runs");
    let mut total = 0;
    loop {
        match events.recv().expect("an end") {
            Event::Output(Stream::Stdout, bytes) => {
                total += bytes.len();
                let consumed = yes.consumed(Stream::Stdout, 1 << 20);
                consumed.expect("the guest runs");
            }
            Event::Exited(exited) => {
                assert_eq!(exited.ending, Ending::Signal(9));
                break;
            }
            _ => {}
        }
    }
    assert!(total > 0);
}

#[test]
#[ignore = "needs the image"]
fn instances_are_different_and_know_the_time() {
    let mut seen = HashSet::new();
    let text = "cat /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | sha256sum; \
                python3 -c 'import secrets; print(secrets.token_hex())'";
    for _ in 0..20 {
        let sandbox = start();
        for line in script(&sandbox, text).lines() {
            assert!(seen.insert(line.to_owned()), "{line} again");
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.expect("after 1970").as_secs();
        let theirs = script(&sandbox, "date +%s");
        let theirs: u64 = theirs.trim().parse().expect("a number");
        assert!(theirs.abs_diff(now) <= 2, "{theirs} and {now}");
    }
    assert_eq!(seen.len(), 60);
}

#[test]
#[ignore = "needs the image"]
fn a_stopped_guest_tells_so() {
    let sandbox = Arc::new(start());
    let other = Arc::clone(&sandbox);
    let waiting = std::thread::spawn(move || other.script("sleep 1000", &Run::default()));
    assert_eq!(script(&start(), "echo other"), "other\n");
    std::thread::sleep(Duration::from_millis(200));
    sandbox.halt();
    let error = waiting.join().expect("no panic").expect_err("stopped");
    assert_eq!(error.code, VmCode::Stopped);
    let error = sandbox.script("true", &Run::default());
    assert_eq!(error.expect_err("stopped").code, VmCode::Stopped);
}

#[test]
#[ignore = "needs the image"]
fn a_guest_that_ends_is_a_typed_error() {
    let sandbox = start();
    let error = sandbox.script("poweroff -f", &Run::default());
    assert_eq!(error.expect_err("it is off").code, VmCode::GuestEnded);
}
