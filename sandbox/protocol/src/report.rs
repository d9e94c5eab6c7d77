//! Reports: what the agent sends to the host.

use super::codec::{ProtocolError, Reader, write_frame};
use super::kind::{
    DRAINED, EXITED, FAILED, GRANT, PONG, PREPARED, READY, RESUMED, STARTED, STDERR, STDOUT,
};
use super::{MAX_CHUNK, Stream};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with that code.
    Code(u8),
    /// A signal of that number ended it.
    Signal(u8),
}

impl Default for Ending {
    fn default() -> Self {
        Self::Code(0)
    }
}

/// The end of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exited {
    /// How.
    pub ending: Ending,
    /// The kernel ended one of its processes for want of memory.
    pub out_of_memory: bool,
    /// The session shell ended with the script; the next script gets a new one
    /// with the last working directory and exported variables.
    pub session_reset: bool,
}

impl Exited {
    /// The exit code; for a command that a signal ended 128 and its number, as
    /// shells have it.
    pub fn exit_code(&self) -> u8 {
        match self.ending {
            Ending::Code(code) => code,
            Ending::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// Why a request cannot be fulfilled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Another one, which the text names.
    #[default]
    Other = 0,
    /// There is no such program, or none that could interpret it.
    NotFound = 1,
    /// The program is there and cannot be executed.
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

/// A frame from guest to host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The agent takes requests; its first frame.
    Ready {
        /// The protocol's version.
        version: u16,
        /// Whether commands get control groups of their own.
        control_groups: bool,
    },
    /// [`Request::Resume`](super::Request::Resume) is done.
    Resumed {
        /// What failed, if anything did.
        failure: Option<String>,
        /// How many commands ran when the guest was saved, and were ended.
        interrupted: u32,
    },
    /// [`Request::Prepare`](super::Request::Prepare) is done: so many bytes
    /// were zeroed.
    Prepared(u64),
    /// [`Request::Drain`](super::Request::Drain) is done.
    Drained,
    /// The command runs as that process. Not sent for a script, which runs in the
    /// session shell.
    Started(u32),
    /// A chunk of standard output or standard error.
    Output(Stream, Vec<u8>),
    /// The command ended, and all its output was sent. Its last frame.
    Exited(Exited),
    /// The command could not be started, or the request makes no sense: why,
    /// error number (0 if none) and text. Its last frame.
    Failed(Reason, u32, String),
    /// The answer to [`Request::Ping`](super::Request::Ping).
    Pong,
    /// That many more bytes of standard input may be sent.
    Credit(u32),
}

const OUT_OF_MEMORY: u8 = 1;
const SESSION_RESET: u8 = 2;

/// Appends a [`Report::Output`] of at most [`MAX_CHUNK`] bytes without taking
/// them; the answer is how many it took.
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

    /// Reads the payload of a frame of that kind.
    ///
    /// # Errors
    /// [`ProtocolError`].
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

    /// The number of its frames' kind, one of [`kind`](super::kind).
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
