//! The sandbox as the computer of agents, from the image that was built last.
//!
//! These need the image (`cargo xtask guest`), so they are run by name:
//! `cargo test -p a99-shell --features sandbox -- --ignored`.

use a99_capabilities::{Shell, ShellErrorKind, ShellRequest, suite};
use a99_sandbox::cache::{Cache, Event};
use a99_sandbox::{Image, Sandbox, VmCode, block_on};
use a99_shell::sandbox::SandboxShell;
use std::sync::LazyLock;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// Loaded once for all tests.
static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let cache = Cache::of_user().expect("a cache");
    Image::current(&cache, &mut |_: Event<'_>| {}).expect("the built image")
});

fn shell() -> SandboxShell {
    SandboxShell::new(Sandbox::builder().loaded_image(&IMAGE))
}

/// Counts the processes `sleep`.
const SLEEPERS: &str = "ps | grep -c '[s]leep' || true";

/// The output of a script that must succeed.
#[track_caller]
fn script(shell: &SandboxShell, text: &str) -> String {
    let output = block_on(shell.exec(ShellRequest::script(text))).expect("it runs");
    assert_eq!(output.exit_code, 0, "{text}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
#[ignore = "needs the image"]
fn the_sandbox_conforms() {
    let shell = shell();
    assert!(!shell.is_started());
    block_on(suite::shell(&shell)).expect("the laws of a shell");
    assert!(shell.is_started());
    assert_eq!(shell.failure(), None);
    // Nothing is left of what was given up or timed out.
    assert_eq!(script(&shell, SLEEPERS).trim(), "0");
    assert_eq!(
        script(&shell, "ls -a /run | grep -c a99-[0-9] || true").trim(),
        "0"
    );
}

#[test]
#[ignore = "needs the image"]
fn a_call_that_is_given_up_ends_what_it_started() {
    let shell = shell();
    script(&shell, "true");
    for request in [
        ShellRequest::script("setsid sleep 1000 & sleep 1000"),
        ShellRequest::argv(&["sh", "-c", "setsid sleep 1000 & sleep 1000"]),
    ] {
        let mut call = shell.exec(request);
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
        let argv = ShellRequest::argv(&["sh", "-c", "while ! ps | grep -q '[s]leep'; do :; done"]);
        block_on(shell.exec(argv)).expect("it runs");
        drop(call);
        let argv = ShellRequest::argv(&["sh", "-c", "while ps | grep -q '[s]leep'; do :; done"]);
        let started = Instant::now();
        block_on(shell.exec(argv)).expect("they end");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[test]
#[ignore = "needs the image"]
fn files_have_modes_and_whole_contents() {
    let shell = shell();
    let write = |path: &str, bytes: &[u8], mode| {
        block_on(shell.write_file(path.to_owned(), bytes.to_vec(), mode))
    };
    write("/run/run.sh", b"#!/bin/sh\necho \"ran $1\"\n", 0o750).expect("written");
    assert_eq!(script(&shell, "stat -c %a /run/run.sh"), "750\n");
    assert_eq!(script(&shell, "/run/run.sh it"), "ran it\n");
    let kind = |result: Result<(), a99_capabilities::ShellError>| result.map_err(|e| e.kind);
    assert_eq!(kind(write("/run", b"", 0o600)), Err(ShellErrorKind::Failed));
    let missing = write("/none/file", b"", 0o600);
    assert_eq!(kind(missing), Err(ShellErrorKind::NotFound));
    let folder = block_on(shell.read_file("/run".to_owned(), 10));
    assert_eq!(folder.expect_err("a folder").kind, ShellErrorKind::Failed);
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n ^ (n >> 8)) as u8).collect();
    write("/run/large", &large, 0o600).expect("written");
    let back = block_on(shell.read_file("/run/large".to_owned(), large.len()));
    assert!(back.expect("read") == large);
}

#[test]
#[ignore = "needs the image"]
fn a_guest_that_ends_stays_ended() {
    // No command ends the guest, so it is a limit of the host's that does.
    let builder = Sandbox::builder().loaded_image(&IMAGE);
    let shell = SandboxShell::new(builder.instruction_limit(100_000_000));
    for text in ["while :; do :; done", "true"] {
        let error = block_on(shell.exec(ShellRequest::script(text))).expect_err("it ended");
        assert_eq!(error.kind, ShellErrorKind::Crashed);
    }
    let failure = shell.failure().expect("kept for the host");
    assert_eq!(failure.code, VmCode::CpuLimit);
}

#[test]
#[ignore = "needs the image"]
fn calls_side_by_side_share_one_sandbox() {
    let shell = shell();
    let scripts: Vec<_> = (0..4)
        .map(|n| {
            let shell = shell.clone();
            let text = format!("echo {n} >>/run/shared; hostname");
            std::thread::spawn(move || script(&shell, &text))
        })
        .collect();
    for thread in scripts {
        thread.join().expect("no panic");
    }
    let lines = script(&shell, "sort /run/shared");
    assert_eq!(lines, "0\n1\n2\n3\n");
    block_on(shell.stop());
    let error = block_on(shell.exec(ShellRequest::script("true"))).expect_err("stopped");
    assert_eq!(error.kind, ShellErrorKind::Crashed);
}

#[test]
fn a_start_that_fails_tells_programs_nothing_of_the_host() {
    let shell = SandboxShell::new(Sandbox::builder().image("/none/of/home"));
    for _ in 0..2 {
        let error = block_on(shell.exec(ShellRequest::script("true"))).expect_err("no image");
        assert_eq!(error.kind, ShellErrorKind::Unavailable);
        assert!(!error.message.to_string().contains("home"), "{error}");
    }
    assert!(
        shell
            .failure()
            .expect("kept")
            .text
            .contains("/none/of/home")
    );
    assert!(!shell.is_started());
}
