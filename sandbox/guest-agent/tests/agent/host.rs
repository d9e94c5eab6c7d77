//! The host's side of the agent's socket.

use a99_sandbox_protocol::{
    Ending, Exec, Exited, FrameReader, Reason, Report, Request, Script, Stream, VERSION,
    WINDOW_BYTES, stdin_frame,
};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Longer than any duration here.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Path of the agent's program.
pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_agent99-agent");

/// Reports about a command so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandState {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) credit: u32,
    pub(crate) end: Option<Result<Exited, (Reason, u32, String)>>,
}

/// The host's side of the connection.
pub(crate) struct Host {
    pub(crate) agent: Child,
    pub(crate) stream: UnixStream,
    pub(crate) reader: FrameReader,
    pub(crate) commands: HashMap<u64, CommandState>,
    /// Commands whose output gets no new credit.
    pub(crate) starved: Vec<u64>,
    pub(crate) last_id: u64,
    /// Temporary files of the agent, which it leaves behind when it is killed.
    pub(crate) _temporary: TempDir,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::of(Command::new(AGENT).arg("--stdin"))
    }

    /// Starts an agent with this command.
    pub(crate) fn of(agent: &mut Command) -> Self {
        let (stream, theirs) = UnixStream::pair().expect("sockets");
        stream.set_read_timeout(Some(TIMEOUT)).expect("timeout");
        let temporary = tempfile::tempdir().expect("a folder");
        let agent = agent
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .expect("the agent");
        let mut host = Self {
            agent,
            stream,
            reader: FrameReader::new(),
            commands: HashMap::new(),
            starved: Vec::new(),
            last_id: 0,
            _temporary: temporary,
        };
        let ready = Report::Ready {
            version: VERSION,
            control_groups: false,
        };
        assert_eq!(host.report(), (0, ready));
        host
    }

    pub(crate) fn send(&mut self, id: u64, request: &Request) {
        let mut bytes = Vec::new();
        request.encode(id, &mut bytes);
        self.stream.write_all(&bytes).expect("the agent listens");
    }

    pub(crate) fn report(&mut self) -> (u64, Report) {
        let mut buffer = [0; 65536];
        loop {
            if let Some(report) = self.reader.next(Report::decode).expect("good frames") {
                return report;
            }
            let count = self.stream.read(&mut buffer).expect("a report in time");
            assert!(count > 0, "the agent is gone");
            self.reader.push(&buffer[..count]);
        }
    }

    /// Handles one report.
    pub(crate) fn step(&mut self) -> u64 {
        let (id, report) = self.report();
        let state = self.commands.entry(id).or_default();
        assert!(state.end.is_none(), "{report:?} after the end of {id}");
        match report {
            Report::Started(_) => {}
            Report::Output(stream, bytes) => {
                let all = if stream == Stream::Stdout {
                    &mut state.stdout
                } else {
                    &mut state.stderr
                };
                all.extend(&bytes);
                if !self.starved.contains(&id) {
                    self.send(id, &Request::Credit(stream, bytes.len() as u32));
                }
            }
            Report::Credit(bytes) => state.credit += bytes,
            Report::Exited(exited) => state.end = Some(Ok(exited)),
            Report::Failed(reason, errno, text) => state.end = Some(Err((reason, errno, text))),
            other => panic!("unexpected {other:?}"),
        }
        id
    }

    pub(crate) fn start(&mut self, request: &Request) -> u64 {
        self.last_id += 1;
        self.commands.entry(self.last_id).or_default().credit = WINDOW_BYTES;
        self.send(self.last_id, request);
        self.last_id
    }

    pub(crate) fn finish(&mut self, id: u64) -> CommandState {
        while self.commands[&id].end.is_none() {
            self.step();
        }
        self.commands.remove(&id).expect("it ran")
    }

    pub(crate) fn run(&mut self, request: &Request) -> CommandState {
        let id = self.start(request);
        self.finish(id)
    }

    pub(crate) fn script(&mut self, text: &str) -> CommandState {
        self.run(&script(text))
    }

    /// Feeds standard input within the credit, to the end.
    pub(crate) fn feed(&mut self, id: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.commands[&id].end.is_none() {
            let credit = self.commands[&id].credit as usize;
            if credit == 0 {
                self.step();
                continue;
            }
            let mut frame = Vec::new();
            let count = stdin_frame(&mut frame, id, &bytes[..bytes.len().min(credit)]);
            self.commands.get_mut(&id).expect("it runs").credit -= count as u32;
            self.stream.write_all(&frame).expect("the agent listens");
            bytes = &bytes[count..];
        }
        self.send(id, &Request::StdinEnd);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

pub(crate) fn exec(argv: &[&str]) -> Exec {
    Exec {
        argv: argv.iter().map(|a| a.as_bytes().to_vec()).collect(),
        ..Exec::default()
    }
}

pub(crate) fn sh(text: &str) -> Request {
    Request::Exec(exec(&["sh", "-c", text]))
}

pub(crate) fn script(text: &str) -> Request {
    Request::Script(Script {
        text: text.as_bytes().to_vec(),
    })
}

impl CommandState {
    #[track_caller]
    pub(crate) fn exited(&self) -> Exited {
        self.end.clone().expect("ended").expect("started")
    }

    #[track_caller]
    pub(crate) fn assert(&self, stdout: &str, code: u8) {
        assert_eq!(String::from_utf8_lossy(&self.stdout), stdout, "{self:?}");
        assert_eq!(self.exited().ending, Ending::Code(code), "{self:?}");
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.stdout).expect("text")
    }
}
