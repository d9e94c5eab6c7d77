//! Hosts started by tests, and ended by a signal.

use serde_json::Value as Json;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Timeout for expected events, long enough for busy machines.
const PATIENCE: Duration = Duration::from_secs(120);

/// A host process, killed if the test fails.
pub struct Hosted {
    child: Child,
    lines: Receiver<Json>,
    seen: Vec<Json>,
}

/// Starts the binary, with standard output as a pipe.
pub fn spawn(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_a99"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the binary starts")
}

/// The lines of JSON in a text.
pub fn lines(text: &str) -> Vec<Json> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// Lines of a process as they arrive.
fn told(stdout: ChildStdout) -> Receiver<Json> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let Ok(json) = serde_json::from_str(&line) else {
                break;
            };
            if tell.send(json).is_err() {
                break;
            }
        }
    });
    told
}

/// Lines of a process up to an expected one.
pub fn until(child: &mut Child, is_it: impl Fn(&Json) -> bool) -> Vec<Json> {
    let stdout = child.stdout.as_mut().expect("a pipe");
    let started = Instant::now();
    let mut seen = Vec::new();
    let mut reader = BufReader::with_capacity(1, stdout);
    while started.elapsed() < PATIENCE {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        let json: Json = serde_json::from_str(&line).expect(&line);
        let found = is_it(&json);
        seen.push(json);
        if found {
            return seen;
        }
    }
    panic!("it did not come: {seen:?}");
}

impl Hosted {
    /// Starts a host and waits until it runs.
    pub fn start(place: &[&str]) -> Hosted {
        let mut host = Hosted::begin(place);
        host.wait_for("started");
        host
    }

    /// Starts a host without waiting, as a script does in the background.
    pub fn begin(place: &[&str]) -> Hosted {
        Hosted::of(spawn(&[&["agent", "host", "--json"], place].concat()))
    }

    /// Starts another command that runs until it is ended.
    #[cfg(feature = "server")]
    pub fn run(args: &[&str]) -> Hosted {
        Hosted::of(spawn(args))
    }

    /// Starts a host whose files may have at most this many blocks.
    pub fn limited(place: &[&str], blocks: u32) -> Hosted {
        let script = format!("ulimit -f {blocks} && exec \"$@\"");
        let child = Command::new("sh")
            .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_a99")])
            .args(["agent", "host", "--json"])
            .args(place)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let mut host = Hosted::of(child.expect("a shell"));
        host.wait_for("started");
        host
    }

    fn of(mut child: Child) -> Hosted {
        let lines = told(child.stdout.take().expect("a pipe"));
        Hosted {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Waits until it ends by itself. Returns its exit code and output.
    pub fn ended(mut self) -> (Option<i32>, Vec<Json>) {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push(line);
        }
        let status = self.child.wait().expect("it ends");
        (status.code(), std::mem::take(&mut self.seen))
    }

    /// Waits for an event of the host.
    pub fn wait_for(&mut self, event: &str) -> Json {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let Ok(line) = line else {
                panic!("no `{event}` after {:?}", self.seen);
            };
            self.seen.push(line.clone());
            if line["event"] == event {
                return line;
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn socket(&self) -> String {
        let started = self.seen.iter().find(|line| line["event"] == "started");
        let socket = started.and_then(|line| line["socket"].as_str());
        socket.expect("it said so").to_owned()
    }

    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Ends it by SIGTERM. Returns its output.
    pub fn end(mut self) -> Vec<Json> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill runs").success());
        self.wait_for("stopped");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {:?}", self.seen);
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
