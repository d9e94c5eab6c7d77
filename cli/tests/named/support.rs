//! Test fixture: a private runtime directory for the sandboxes of a test.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use serde_json::Value as Json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub const IMAGE: &str = "needs the image";

/// A private runtime directory; dropping it ends its sandboxes.
pub struct Home(pub PathBuf);

impl Home {
    pub fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("named-{name}"));
        let home = Home(path);
        // Remove the rest of an earlier failed run.
        home.clear();
        fs::create_dir_all(&home.0).unwrap();
        home
    }

    pub fn clear(&self) {
        if self.0.exists() {
            let _ = self.command(&["stop", "--all"]).output();
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
        command.arg("sandbox").args(args);
        command.env("XDG_RUNTIME_DIR", &self.0).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must succeed. Returns its standard output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with this exit code. Returns its error code.
    #[track_caller]
    pub fn fails(&self, args: &[&str], exit: i32) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(exit), "{args:?}: {output:?}");
        let report: Json = serde_json::from_slice(&output.stdout).unwrap_or_default();
        report["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The output of `ls --json`.
    #[track_caller]
    pub fn ls(&self) -> Json {
        serde_json::from_str(&self.ok(&["ls", "--json"])).unwrap()
    }

    #[track_caller]
    pub fn pid(&self, name: &str) -> String {
        let list = self.ls();
        let mut all = list["sandboxes"].as_array().unwrap().iter();
        let status = all.find(|status| status["name"] == name).unwrap();
        status["pid"].to_string()
    }

    /// Starts a command with piped output.
    pub fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("agent99")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Waits for the first line of a command's output.
pub fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.as_mut().unwrap());
    output.read_line(&mut line).unwrap();
    line
}

pub fn kill(signal: &str, pid: &str) {
    let sent = Command::new("kill").args([signal, pid]).status().unwrap();
    assert!(sent.success());
}

/// Waits until a condition holds.
#[track_caller]
pub fn eventually(mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < deadline, "it never is so");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Number of processes of a program in the sandbox.
pub fn count(home: &Home, name: &str, program: &str) -> usize {
    let output = home.run(&["exec", name, "--", "pidof", program]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().count()
}
