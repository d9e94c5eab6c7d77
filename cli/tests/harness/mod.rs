//! Test harness: runs the built binary and captures its output.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Result of a run of the binary.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    /// Standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_a99"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn finish(child: Child) -> Done {
    let output = child.wait_with_output().expect("the binary ends");
    Done {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("the output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("the messages are UTF-8"),
    }
}

/// Runs the binary in this folder.
pub fn a99_in(folder: &std::path::Path, args: &[&str]) -> Done {
    let child = Command::new(env!("CARGO_BIN_EXE_a99"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    finish(child)
}

/// Runs the binary on this standard input.
pub fn a99(args: &[&str], stdin: &[u8]) -> Done {
    let mut child = start(args);
    let mut input = child.stdin.take().expect("standard input is piped");
    // A command that does not read its input closes the pipe.
    let _ = input.write_all(stdin);
    drop(input);
    finish(child)
}

/// Runs a command on a program from standard input.
pub fn program(text: &str, args: &[&str]) -> Done {
    let args: Vec<&str> = args.iter().copied().chain(["-"]).collect();
    a99(&args, text.as_bytes())
}

/// Feeds spaces until the binary stops reading.
pub fn endless(args: &[&str]) -> Done {
    let mut child = start(args);
    let mut input = child.stdin.take().expect("standard input is piped");
    let chunk = vec![b' '; 1 << 20];
    while input.write_all(&chunk).is_ok() {}
    drop(input);
    finish(child)
}

/// Runs a program from standard input and interrupts it.
#[cfg(unix)]
pub fn interrupted(args: &[&str], stdin: &[u8]) -> Done {
    let args: Vec<&str> = args.iter().copied().chain(["-"]).collect();
    let mut child = start(&args);
    let mut input = child.stdin.take().expect("standard input is piped");
    input.write_all(stdin).expect("the program is read");
    drop(input);
    wait_for_handler(child.id());
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill runs").success());
    finish(child)
}

/// Waits until the process handles interrupts: an earlier one would kill it.
#[cfg(unix)]
fn wait_for_handler(pid: u32) {
    const SIGINT_BIT: u64 = 1 << 1;
    for _ in 0..600 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
            // On a system without this file, a second is plenty.
            std::thread::sleep(std::time::Duration::from_secs(1));
            return;
        };
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        if caught.is_some_and(|signals| signals & SIGINT_BIT != 0) {
            return;
        }
    }
    panic!("the command never listened for interrupts");
}

/// Runs the binary with a standard output whose reader is closed.
#[cfg(unix)]
pub fn unread(args: &[&str]) -> Done {
    let mut child = start(args);
    drop(child.stdin.take());
    drop(child.stdout.take());
    finish(child)
}

/// A private folder for a test, removed at its end.
pub struct Sandbox(PathBuf);

impl Sandbox {
    /// Creates an empty folder.
    pub fn new(name: &str) -> Sandbox {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder is made");
        Sandbox(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the file is written");
        path
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
