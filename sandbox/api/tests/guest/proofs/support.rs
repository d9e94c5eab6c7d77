//! Runs programs in guests and on the host, with repeatable input.

use a99_sandbox::{ExecOptions, Output, Sandbox, VmError, block_on};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time limit for a program of these tests: far more than any takes, even on a busy
/// machine.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Runs a command with these bytes as its input and a time limit.
pub fn run_for(
    command: a99_sandbox::Command,
    stdin: &[u8],
    timeout: Duration,
) -> Result<Output, VmError> {
    block_on(command.stdin(stdin).timeout(timeout).output())
}

/// Output of a guest program that must succeed.
#[track_caller]
pub fn in_guest(sandbox: &Sandbox, argv: &[&str], stdin: &[u8]) -> Vec<u8> {
    let output = run_for(sandbox.command(argv), stdin, TIMEOUT).expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.exit_code(), 0, "{argv:?} in the guest: {errors}");
    output.stdout
}

/// Output of a host program that must succeed.
#[track_caller]
pub fn on_host(argv: &[&str], stdin: &[u8], folder: &Path) -> Vec<u8> {
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .env("LC_ALL", "C")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("the host's {} is needed: {error}", argv[0]));
    let mut input = child.stdin.take().expect("a pipe");
    let stdin = stdin.to_vec();
    let feed = std::thread::spawn(move || {
        // A program may end without reading all of it.
        let _ = input.write_all(&stdin);
    });
    let output = child.wait_with_output().expect("it runs");
    feed.join().expect("no panic");
    assert!(output.status.success(), "{argv:?} on the host");
    output.stdout
}

/// Repeatable pseudo-random numbers (Knuth's MMIX generator).
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number: the upper bits, which are more random.
    pub fn next(&mut self) -> u32 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// Returns `count` random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 24) as u8).collect()
    }
}

/// Checks that a guest still runs commands.
#[track_caller]
pub fn is_usable(sandbox: &Sandbox) {
    let options = ExecOptions {
        timeout: Some(TIMEOUT),
        ..ExecOptions::default()
    };
    let output = block_on(sandbox.exec_with("echo $((6 * 7))", options)).expect("it runs");
    assert_eq!(output.stdout, b"42\n");
    assert_eq!(in_guest(sandbox, &["echo", "on"], b""), b"on\n");
}
