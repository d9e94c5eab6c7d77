//! Reports: messages from agent to host.

use super::codec::{ProtocolError, Reader, write_frame};
use super::kind::{
    DRAINED, EXITED, FAILED, GRANT, PONG, PREPARED, READY, RESUMED, STARTED, STDERR, STDOUT,
};
use super::{MAX_CHUNK, Stream};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Code(u8),
    /// A signal of this number ended it.
    Signal(u8),
}

impl Default for Ending {
    fn default() -> Self {
        Self::Code(0)
    }
}

/// Result of a command that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exited {
    /// How its process ended.
    pub ending: Ending,
    /// The kernel's out-of-memory killer ended one of its processes.
    pub out_of_memory: bool,
    /// The session shell ended with the script; the next script gets a new one
    /// with the last working directory and exported variables.
    pub session_reset: bool,
}

impl Exited {
    /// Returns the exit code; for a command that a signal ended, 128 plus its number, as in
    /// shells.
    pub fn exit_code(&self) -> u8 {
        match self.ending {
            Ending::Code(code) => code,
            Ending::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Another reason, given in the text.
    #[default]
    Other = 0,
    /// The program or its interpreter does not exist.
    NotFound = 1,
    /// The program exists but is not executable.
    NotExecutable = 2,
    /// The working directory cannot be entered.
    Folder = 3,
}

impl Reason {
    fn from_number(number: u8) -> Option<Self> {
        [
            Self::Other,
            Self::NotFound,
            Self::NotExecutable,
            Self::Folder,
        ]
        .get(usize::from(number))
        .copied()
    }
}

/// A message from guest to host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The agent accepts requests; its first frame.
    Ready {
        /// Protocol version.
        version: u16,
        /// Whether each command gets a control group.
        control_groups: bool,
    },
    /// Reply to [`Request::Resume`](super::Request::Resume).
    Resumed {
        /// Error text, if a step failed.
        failure: Option<String>,
        /// Number of commands that were running when the guest was saved, and were ended.
        interrupted: u32,
    },
    /// Reply to [`Request::Prepare`](super::Request::Prepare), with the bytes that were
    /// zeroed.
    Prepared(u64),
    /// Reply to [`Request::Drain`](super::Request::Drain).
    Drained,
    /// The command runs with this process id. Not sent for a script, which runs in the
    /// session shell.
    Started(u32),
    /// A chunk of standard output or standard error.
    Output(Stream, Vec<u8>),
    /// The command ended and all its output was sent; its last frame.
    Exited(Exited),
    /// The command could not start, or the request is invalid: reason, errno (0 if unknown)
    /// and text. Its last frame.
    Failed(Reason, u32, String),
    /// Reply to [`Request::Ping`](super::Request::Ping).
    Pong,
    /// Grants this many more bytes of standard input.
    Credit(u32),
}

const OUT_OF_MEMORY: u8 = 1;
const SESSION_RESET: u8 = 2;

/// Appends a [`Report::Output`] of at most [`MAX_CHUNK`] bytes without copying them first;
/// returns how many it took.
pub fn output_frame(out: &mut Vec<u8>, id: u64, stream: Stream, bytes: &[u8]) -> usize {
    let len = bytes.len().min(MAX_CHUNK);
    let kind = if stream == Stream::Stderr {
        STDERR
    } else {
        STDOUT
    };
    write_frame(out, kind, id, |w| w.rest(&bytes[..len]));
    len
}

impl Report {
    /// Appends the frame to `out`.
    pub fn encode(&self, id: u64, out: &mut Vec<u8>) {
        write_frame(out, self.kind(), id, |w| match self {
            Report::Ready {
                version,
                control_groups,
            } => {
                w.u16(*version);
                w.u8(u8::from(*control_groups));
            }
            Report::Resumed {
                failure,
                interrupted,
            } => {
                w.option(failure.as_ref(), |w, text| w.bytes(text.as_bytes()));
                w.u32(*interrupted);
            }
            Report::Drained | Report::Pong => {}
            Report::Prepared(bytes) => w.u64(*bytes),
            Report::Started(pid) => w.u32(*pid),
            Report::Output(_, bytes) => w.rest(bytes),
            Report::Exited(exited) => exited.write(w),
            Report::Failed(reason, errno, text) => {
                w.u8(*reason as u8);
                w.u32(*errno);
                w.bytes(text.as_bytes());
            }
            Report::Credit(bytes) => w.u32(*bytes),
        });
    }

    /// Decodes the payload of a frame of that kind.
    ///
    /// # Errors
    /// [`ProtocolError`] for an unknown kind or a malformed payload.
    pub fn decode(kind: u8, payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut r = Reader::new(payload);
        let report = match kind {
            READY => Report::Ready {
                version: r.u16(),
                control_groups: r.flag(),
            },
            RESUMED => Report::Resumed {
                failure: r.option(Reader::text),
                interrupted: r.u32(),
            },
            DRAINED => Report::Drained,
            PREPARED => Report::Prepared(r.u64()),
            STARTED => Report::Started(r.u32()),
            STDOUT => Report::Output(Stream::Stdout, r.rest()),
            STDERR => Report::Output(Stream::Stderr, r.rest()),
            EXITED => Report::Exited(Exited::read(&mut r)),
            FAILED => {
                let number = r.u8();
                let reason = r.check(Reason::from_number(number));
                Report::Failed(reason, r.u32(), r.text())
            }
            PONG => Report::Pong,
            GRANT => Report::Credit(r.u32()),
            other => return Err(ProtocolError::UnknownKind(other)),
        };
        r.finish(kind, report)
    }

    /// Returns the frame kind, one of [`kind`](super::kind).
    pub fn kind(&self) -> u8 {
        match self {
            Report::Ready { .. } => READY,
            Report::Resumed { .. } => RESUMED,
            Report::Drained => DRAINED,
            Report::Prepared(_) => PREPARED,
            Report::Started(_) => STARTED,
            Report::Output(Stream::Stderr, _) => STDERR,
            Report::Output(..) => STDOUT,
            Report::Exited(_) => EXITED,
            Report::Failed(..) => FAILED,
            Report::Credit(_) => GRANT,
            Report::Pong => PONG,
        }
    }
}

impl Exited {
    fn write(&self, w: &mut super::codec::Writer<'_>) {
        let (signalled, number) = match self.ending {
            Ending::Code(code) => (0, code),
            Ending::Signal(signal) => (1, signal),
        };
        w.u8(signalled);
        w.u8(number);
        let oom = if self.out_of_memory { OUT_OF_MEMORY } else { 0 };
        let reset = if self.session_reset { SESSION_RESET } else { 0 };
        w.u8(oom | reset);
    }

    fn read(r: &mut Reader<'_>) -> Self {
        let signalled = r.flag();
        let number = r.u8();
        let flags = r.u8();
        let known = flags & !(OUT_OF_MEMORY | SESSION_RESET) == 0;
        r.check(known.then_some(()));
        Self {
            ending: if signalled {
                Ending::Signal(number)
            } else {
                Ending::Code(number)
            },
            out_of_memory: flags & OUT_OF_MEMORY != 0,
            session_reset: flags & SESSION_RESET != 0,
        }
    }
}
