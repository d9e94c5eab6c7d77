//! Requests: messages from host to agent.

use super::codec::{ProtocolError, Reader, write_frame};
use super::kind::{
    CREDIT, DRAIN, EXEC, KILL, PING, PREPARE, RESIZE, RESUME, SCRIPT, SIGNAL, STDIN, STDIN_END,
};
use super::{MAX_CHUNK, Resume, Stream};

/// Size of a terminal in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PtySize {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

/// Limits of a command, enforced by its control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum processes and threads at a time.
    pub pids: Option<u32>,
    /// Maximum bytes of memory.
    pub memory: Option<u64>,
}

/// The user that a command runs as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum User {
    /// The guest's ordinary user, without administrator rights.
    #[default]
    Ordinary = 0,
    /// The administrator, with only the rights that reach files, processes and the network
    /// of commands.
    Root = 1,
    /// The ordinary user with access to all files, which copies them for the host.
    Files = 2,
}

impl User {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Ordinary, Self::Root, Self::Files]
            .get(usize::from(number))
            .copied()
    }
}

/// A command to start as a fresh process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exec {
    /// Program and arguments. A name without a slash is looked up in `PATH`.
    pub argv: Vec<Vec<u8>>,
    /// Variables added to the agent's environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Starts from an empty environment instead.
    pub clear_env: bool,
    /// User that the command runs as.
    pub user: User,
    /// Working directory; the user's home if absent.
    pub cwd: Option<Vec<u8>>,
    /// Whether [`Request::Stdin`] will follow; otherwise standard input is empty.
    pub stdin: bool,
    /// Runs on a terminal of that size. Standard output then carries all output, and
    /// [`Request::Stdin`] types into the terminal.
    pub pty: Option<PtySize>,
    /// Leaves the command's child processes running when it ends.
    pub detach: bool,
    /// Resource limits.
    pub limits: Limits,
}

/// A script for the session shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Text of the script.
    pub text: Vec<u8>,
}

/// A message from host to guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Starts a guest from a snapshot or after boot. Precedes the first command; answered
    /// by [`Report::Resumed`](super::Report::Resumed).
    Resume(Box<Resume>),
    /// Zeroes free memory before a snapshot. Answered by
    /// [`Report::Prepared`](super::Report::Prepared).
    Prepare,
    /// Ends all commands and writes back unwritten data to the host before the guest stops.
    /// Answered by [`Report::Drained`](super::Report::Drained).
    Drain,
    /// Starts a command.
    Exec(Exec),
    /// Runs a script in the session shell.
    Script(Script),
    /// Bytes of standard input, within the credit.
    Stdin(Vec<u8>),
    /// Closes standard input.
    StdinEnd,
    /// Resizes the terminal.
    Resize(PtySize),
    /// Sends a signal to the command's process group.
    Signal(u32),
    /// Kills the command and all processes it started.
    Kill,
    /// Grants this many more bytes of a stream.
    Credit(Stream, u32),
    /// Liveness check, answered by [`Report::Pong`](super::Report::Pong).
    Ping,
}

/// Appends a [`Request::Stdin`] of at most [`MAX_CHUNK`] bytes without copying them first;
/// returns how many it took.
pub fn stdin_frame(out: &mut Vec<u8>, id: u64, bytes: &[u8]) -> usize {
    let len = bytes.len().min(MAX_CHUNK);
    write_frame(out, STDIN, id, |w| w.rest(&bytes[..len]));
    len
}

impl Request {
    /// Appends the frame to `out`.
    pub fn encode(&self, id: u64, out: &mut Vec<u8>) {
        write_frame(out, self.kind(), id, |w| match self {
            Request::Resume(resume) => resume.write(w),
            Request::Prepare
            | Request::Drain
            | Request::StdinEnd
            | Request::Kill
            | Request::Ping => {}
            Request::Exec(exec) => exec.write(w),
            Request::Script(script) => w.rest(&script.text),
            Request::Stdin(bytes) => w.rest(bytes),
            Request::Resize(size) => {
                w.u16(size.rows);
                w.u16(size.cols);
            }
            Request::Signal(number) => w.u32(*number),
            Request::Credit(stream, bytes) => {
                w.u8(*stream as u8);
                w.u32(*bytes);
            }
        });
    }

    /// Decodes the payload of a frame of that kind.
    ///
    /// # Errors
    /// [`ProtocolError`] for an unknown kind or a malformed payload.
    pub fn decode(kind: u8, payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut r = Reader::new(payload);
        let request = match kind {
            RESUME => Request::Resume(Box::new(Resume::read(&mut r))),
            PREPARE => Request::Prepare,
            DRAIN => Request::Drain,
            EXEC => Request::Exec(Exec::read(&mut r)),
            SCRIPT => Request::Script(Script { text: r.rest() }),
            STDIN => Request::Stdin(r.rest()),
            STDIN_END => Request::StdinEnd,
            RESIZE => Request::Resize(PtySize::read(&mut r)),
            SIGNAL => Request::Signal(r.u32()),
            KILL => Request::Kill,
            PING => Request::Ping,
            CREDIT => {
                let stream = Stream::from_number(r.u8());
                let stream = stream.ok_or(ProtocolError::Malformed(kind))?;
                Request::Credit(stream, r.u32())
            }
            other => return Err(ProtocolError::UnknownKind(other)),
        };
        r.finish(kind, request)
    }

    /// Returns the frame kind, one of [`kind`](super::kind).
    pub fn kind(&self) -> u8 {
        match self {
            Request::Resume(_) => RESUME,
            Request::Prepare => PREPARE,
            Request::Drain => DRAIN,
            Request::Exec(_) => EXEC,
            Request::Script(_) => SCRIPT,
            Request::Stdin(_) => STDIN,
            Request::StdinEnd => STDIN_END,
            Request::Resize(_) => RESIZE,
            Request::Signal(_) => SIGNAL,
            Request::Kill => KILL,
            Request::Credit(..) => CREDIT,
            Request::Ping => PING,
        }
    }
}

impl Limits {
    pub(super) fn write(&self, w: &mut super::codec::Writer<'_>) {
        w.option(self.pids.as_ref(), |w, pids| w.u32(*pids));
        w.option(self.memory.as_ref(), |w, memory| w.u64(*memory));
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            pids: r.option(Reader::u32),
            memory: r.option(Reader::u64),
        }
    }
}

impl PtySize {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            rows: r.u16(),
            cols: r.u16(),
        }
    }
}

impl Exec {
    fn write(&self, w: &mut super::codec::Writer<'_>) {
        w.list(&self.argv, |w, argument| w.bytes(argument));
        w.list(&self.env, |w, (name, value)| {
            w.bytes(name);
            w.bytes(value);
        });
        w.u8(u8::from(self.clear_env));
        w.u8(self.user as u8);
        w.option(self.cwd.as_ref(), |w, cwd| w.bytes(cwd));
        w.u8(u8::from(self.stdin));
        w.option(self.pty.as_ref(), |w, size| {
            w.u16(size.rows);
            w.u16(size.cols);
        });
        w.u8(u8::from(self.detach));
        self.limits.write(w);
    }

    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            argv: r.list(Reader::bytes),
            env: r.list(|r| (r.bytes(), r.bytes())),
            clear_env: r.flag(),
            user: {
                let number = r.u8();
                r.check(User::from_number(number))
            },
            cwd: r.option(Reader::bytes),
            stdin: r.flag(),
            pty: r.option(PtySize::read),
            detach: r.flag(),
            limits: Limits::read(r),
        }
    }
}
