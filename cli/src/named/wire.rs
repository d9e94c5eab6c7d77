//! Wire format between a client and a sandbox's daemon, in the frames of
//! [`a99_sandbox_protocol`].
//!
//! A connection carries one request, the first frame. The answer to a command is its output, then
//! its exit; every other request gets one reply. Standard input is flow-controlled: a client sends
//! only what it has credit for, so the sandbox always reads, and notices Ctrl-C or a disconnect
//! even while the command reads nothing.

use super::error::{NamedError, REFUSED};
use a99_sandbox_protocol::{
    self as protocol, Ending, Exited, HEADER_BYTES, MAX_CHUNK, PtySize, Report, Stream, kind,
    raw_frame, read_frame,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::io::{self, Read, Write};

/// Protocol version, raised when requests or frames change: an older binary may have started the
/// sandbox.
const PROTOCOL: u32 = 3;

/// Most bytes of a stream in one frame.
pub(crate) const MAX_DATA: usize = MAX_CHUNK;

/// Largest JSON frame: arguments and variables of a command, up to 2 MiB in Linux before escaping.
const MAX_JSON: usize = 16 << 20;

/// Longest payload of all other frames.
const MAX_SMALL: usize = 64;

/// Bytes of standard input that may be in flight.
pub(crate) const WINDOW: usize = 256 << 10;

/// The id of all frames: a connection carries one request.
const ID: u64 = 0;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// To the sandbox: the request as JSON.
    Call(Vec<u8>),
    /// To the sandbox: standard input and its end, the terminal's size, a signal.
    Request(protocol::Request),
    /// From the sandbox: the reply as JSON.
    Reply(Vec<u8>),
    /// From the sandbox: output, credit for standard input, the command's exit.
    Report(Report),
    /// From the sandbox: a [`NamedError`] as JSON.
    Error(Vec<u8>),
}

impl Frame {
    pub(crate) fn stdin(bytes: &[u8]) -> Self {
        Self::Request(protocol::Request::Stdin(bytes.to_vec()))
    }

    /// The end of standard input.
    pub(crate) fn stdin_end() -> Self {
        Self::Request(protocol::Request::StdinEnd)
    }

    /// A new terminal size.
    pub(crate) fn resize(rows: u16, cols: u16) -> Self {
        Self::Request(protocol::Request::Resize(PtySize { rows, cols }))
    }

    pub(crate) fn signal(number: u32) -> Self {
        Self::Request(protocol::Request::Signal(number))
    }

    /// Bytes that the command wrote.
    pub(crate) fn output(stream: Stream, bytes: &[u8]) -> Self {
        Self::Report(Report::Output(stream, bytes.to_vec()))
    }

    /// Credit for more bytes of standard input.
    pub(crate) fn credit(bytes: u32) -> Self {
        Self::Report(Report::Credit(bytes))
    }

    /// A command's exit code, and whether one of its processes was killed because memory ran out.
    pub(crate) fn exited(code: u8, out_of_memory: bool) -> Self {
        Self::Report(Report::Exited(Exited {
            ending: Ending::Code(code),
            out_of_memory,
            session_reset: false,
        }))
    }

    /// Number of the frame's kind on the wire.
    fn number(&self) -> u8 {
        match self {
            Self::Call(_) => kind::CALL,
            Self::Reply(_) => kind::REPLY,
            Self::Error(_) => kind::ERROR,
            Self::Request(request) => request.kind(),
            Self::Report(report) => report.kind(),
        }
    }

    pub(crate) fn error(error: &NamedError) -> io::Result<Self> {
        Ok(Self::Error(serde_json::to_vec(error)?))
    }

    pub(crate) fn reply(value: &Json) -> io::Result<Self> {
        Ok(Self::Reply(serde_json::to_vec(value)?))
    }
}

/// Most bytes of a payload; `None` for kinds that this protocol does not use.
fn limit(number: u8) -> Option<usize> {
    match number {
        kind::CALL | kind::REPLY | kind::ERROR => Some(MAX_JSON),
        kind::STDIN | kind::STDOUT | kind::STDERR => Some(MAX_DATA),
        kind::STDIN_END | kind::RESIZE | kind::SIGNAL | kind::GRANT | kind::EXITED => {
            Some(MAX_SMALL)
        }
        _ => None,
    }
}

/// Writes a frame with a single write.
///
/// # Errors
/// I/O errors of `out`; content that is too long.
pub(crate) fn write(out: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let number = frame.number();
    let mut bytes = Vec::new();
    match frame {
        Frame::Call(json) | Frame::Reply(json) | Frame::Error(json) => {
            raw_frame(&mut bytes, number, ID, json);
        }
        Frame::Request(request) => request.encode(ID, &mut bytes),
        Frame::Report(report) => report.encode(ID, &mut bytes),
    }
    // Do not send a frame that the peer would refuse.
    let length = bytes.len() - HEADER_BYTES;
    if limit(number).is_none_or(|most| length > most) {
        let text = format!("a frame of kind {number:#04x} and {length} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    out.write_all(&bytes)
}

/// Reads a frame; `None` at the end of the stream between two frames.
///
/// # Errors
/// I/O errors of `input`; an invalid frame.
pub(crate) fn read(input: &mut impl Read) -> io::Result<Option<Frame>> {
    let Some((number, _, payload)) = read_frame(input, limit)? else {
        return Ok(None);
    };
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let frame = match number {
        kind::CALL => Frame::Call(payload),
        kind::REPLY => Frame::Reply(payload),
        kind::ERROR => Frame::Error(payload),
        ..=0x7F => protocol::Request::decode(number, &payload)
            .map(Frame::Request)
            .map_err(invalid)?,
        _ => Report::decode(number, &payload)
            .map(Frame::Report)
            .map_err(invalid)?,
    };
    Ok(Some(frame))
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Settings and counters of the sandbox.
    Status,
    /// Shut down; the reply comes when only the process itself remains.
    Stop,
    /// Run a command.
    Exec(Box<Exec>),
    /// Copy from the host to the guest.
    CopyIn {
        /// Absolute path.
        host: String,
        guest: String,
    },
    /// Copy from the guest to the host.
    CopyOut {
        guest: String,
        /// Absolute path.
        host: String,
        /// Whether git settings and hooks are copied unchanged.
        #[serde(default)]
        git: bool,
    },
}

/// A command to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exec {
    /// The command and its arguments.
    pub argv: Vec<String>,
    /// Variables in addition to the sandbox's.
    pub env: Vec<(String, String)>,
    /// Run as the guest's administrator.
    pub root: bool,
    pub cwd: Option<String>,
    /// Whether standard input follows.
    pub stdin: bool,
    pub timeout_ms: Option<u64>,
    /// Most bytes of output.
    pub output_limit: Option<u64>,
    /// Rows and columns of a login shell's terminal, instead of `argv`.
    pub shell: Option<(u16, u16)>,
    /// Most bytes of memory.
    pub memory: Option<u64>,
    /// Most processes and threads.
    pub processes: Option<u32>,
    /// Run `argv` in the shared session shell: one argument is a script, several are a command and
    /// its arguments.
    pub session: bool,
    /// Reply with the process id and let it run on; its output is discarded.
    pub detach: bool,
}

/// Writes a request as a frame.
///
/// # Errors
/// A request that is too long.
pub(crate) fn write_request(out: &mut impl Write, request: &Request) -> io::Result<()> {
    let call = serde_json::json!({"protocol": PROTOCOL, "request": request});
    write(out, &Frame::Call(serde_json::to_vec(&call)?))
}

/// Parses the request in a frame.
///
/// # Errors
/// An invalid request, and one of another version of this program.
pub(crate) fn parse_request(frame: &Frame) -> Result<Request, NamedError> {
    let refused = |text: &str| NamedError::new(REFUSED, text);
    let Frame::Call(json) = frame else {
        return Err(refused("the first frame is no request"));
    };
    let mut call: Json = parse(json)?;
    if call["protocol"] != PROTOCOL {
        return Err(refused(
            "this sandbox was started by another version of a99; stop it and start it anew",
        ));
    }
    serde_json::from_value(call["request"].take()).map_err(|error| refused(&error.to_string()))
}

/// Parses the JSON of a frame.
///
/// # Errors
/// [`REFUSED`] for invalid JSON.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NamedError> {
    serde_json::from_slice(bytes).map_err(|error| NamedError::new(REFUSED, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Frame> {
        vec![
            Frame::Call(vec![7; 1 << 20]),
            Frame::stdin(&[7; MAX_DATA]),
            Frame::stdin_end(),
            Frame::resize(24, 300),
            Frame::signal(15),
            Frame::Reply(b"{}".to_vec()),
            Frame::output(Stream::Stdout, &[7; MAX_DATA]),
            Frame::output(Stream::Stderr, b""),
            Frame::credit(1 << 18),
            Frame::exited(137, true),
            Frame::Error(b"{}".to_vec()),
        ]
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut bytes = Vec::new();
        for frame in all() {
            write(&mut bytes, &frame).unwrap();
        }
        let mut input = bytes.as_slice();
        for frame in all() {
            assert_eq!(read(&mut input).unwrap(), Some(frame));
        }
        assert_eq!(read(&mut input).unwrap(), None);
    }

    #[test]
    fn what_is_too_long_or_not_used_here_is_not_sent() {
        for frame in [
            Frame::stdin(&[7; MAX_DATA + 1]),
            Frame::output(Stream::Stdout, &[7; MAX_DATA + 1]),
            Frame::Call(vec![7; MAX_JSON + 1]),
            Frame::Request(protocol::Request::Kill),
            Frame::Report(Report::Pong),
        ] {
            let mut bytes = Vec::new();
            assert!(write(&mut bytes, &frame).is_err());
            assert!(bytes.is_empty());
        }
    }

    #[test]
    fn bad_frames_are_refused_and_take_no_memory() {
        let frame = |length: u32, kind: u8, payload: &[u8]| {
            let mut bytes = Vec::new();
            raw_frame(&mut bytes, kind, ID, payload);
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            bytes
        };
        for bad in [
            frame(0, b'?', b""),
            frame(u32::MAX, kind::STDIN, b""),
            frame(MAX_DATA as u32 + 1, kind::STDIN, b""),
            frame(1, kind::STDIN_END, b"x"),
            frame(3, kind::RESIZE, b"xyz"),
            frame(5, kind::STDIN, b"xy"),
            frame(MAX_JSON as u32 + 1, kind::CALL, b"x"),
            frame(0, kind::STDIN, b"")[..5].to_vec(),
            // The form of version 2.
            b"q\x02\0\0\0{}".to_vec(),
        ] {
            assert!(read(&mut &*bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_request_of_another_version_is_refused() {
        let exec = Request::Exec(Box::new(Exec {
            argv: vec!["echo".to_owned(), "\u{1}ü".to_owned()],
            ..Exec::default()
        }));
        let mut bytes = Vec::new();
        write_request(&mut bytes, &exec).unwrap();
        let frame = read(&mut bytes.as_slice()).unwrap().unwrap();
        assert_eq!(parse_request(&frame), Ok(exec));
        for (text, about) in [
            (r#"{"protocol":2,"request":"status"}"#, "another version"),
            (r#"{"request":"status"}"#, "another version"),
            (r#"{"protocol":3,"request":"reboot"}"#, "reboot"),
            ("[", "EOF"),
        ] {
            let call = Frame::Call(text.as_bytes().to_vec());
            let error = parse_request(&call).unwrap_err();
            assert_eq!(error.code, REFUSED);
            assert!(error.message.contains(about), "{error:?}");
        }
    }
}
