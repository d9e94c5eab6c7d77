//! Messages between a client and a sandbox's daemon, in frames of [`crate::local`].
//!
//! A connection carries one request, the first frame. During a command both sides send
//! notifications ([`Note`]), and its exit ([`Ended`]) is the answer. Standard input is
//! flow-controlled: a client sends only what it has credit for, so the sandbox always reads, and
//! notices Ctrl-C or a disconnect even while the command reads nothing.

use super::error::REFUSED;
use crate::local::{ID, Refusal, invalid, notice, opened};
use a99_frame::Frame;
use a99_sandbox::Stream;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Most bytes of a stream in one frame, so that streams which share a connection take turns.
pub(crate) const MAX_DATA: usize = 32 << 10;

/// Bytes of standard input that may be in flight.
pub(crate) const WINDOW: usize = 256 << 10;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// Settings and counters of the sandbox.
    Status,
    /// Shut down; the reply comes when only the process itself remains.
    Stop,
    /// Run a command.
    Exec(Box<Exec>),
    /// Freeze the sandbox for a copy. The answer has the state as its bytes, and the
    /// descriptors of memory and disk follow it.
    Freeze,
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

/// A notification during a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "kebab-case")]
pub(crate) enum Note {
    /// To the sandbox: standard input, the bytes of the frame.
    Stdin,
    StdinEnd,
    /// To the sandbox: rows and columns of the terminal.
    Resize(u16, u16),
    /// To the sandbox: a signal's number.
    Signal(u32),
    /// From the sandbox: output, the bytes of the frame.
    Stdout,
    Stderr,
    /// From the sandbox: credit for more bytes of standard input.
    Credit(usize),
}

impl Note {
    pub(crate) fn output(stream: Stream) -> Note {
        match stream {
            Stream::Stderr => Note::Stderr,
            _ => Note::Stdout,
        }
    }
}

/// Exit of a command.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub code: u8,
    /// One of its processes was killed because memory ran out.
    pub out_of_memory: bool,
}

/// Writes a notification with its bytes.
pub(crate) fn note(out: &mut impl Write, note: Note, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&notice(&note, bytes).map_err(invalid)?)
}

/// Writes the answer.
pub(crate) fn answer(
    out: &mut impl Write,
    answer: Result<&impl Serialize, Refusal>,
) -> io::Result<()> {
    let frame = match answer {
        Ok(result) => a99_frame::answer(ID, result),
        Err(refusal) => a99_frame::failed(ID, refusal),
    };
    out.write_all(&frame.map_err(invalid)?)
}

/// The request in a frame, unless it is invalid or of another version of this program.
pub(crate) fn request(frame: &Frame) -> Result<Request, Refusal> {
    let opened = opened(frame, other_version());
    opened
        .map(|(_, request)| request)
        .map_err(|(_, refusal)| refusal)
}

/// The error of a client and a daemon that are not one version of this program.
pub(crate) fn other_version() -> Refusal {
    let text = "this sandbox was started by another version of a99; stop it and start it anew";
    Refusal::new(REFUSED, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_frame::Envelope;

    #[test]
    fn notes_have_one_form() {
        crate::local::tests::assert_documented::<Request>();
        crate::local::tests::assert_documented::<Note>();
        for (written, bytes, text) in [
            (
                Note::Stdin,
                &b"a\n"[..],
                "{\"method\":\"stdin\",\"bytes\":2}\nnulla\n",
            ),
            (Note::StdinEnd, b"", "{\"method\":\"stdin-end\"}\nnull"),
            (
                Note::Resize(24, 300),
                b"",
                "{\"method\":\"resize\"}\n[24,300]",
            ),
            (
                Note::Credit(1 << 18),
                b"",
                "{\"method\":\"credit\"}\n262144",
            ),
        ] {
            let mut frame = Vec::new();
            note(&mut frame, written, bytes).unwrap();
            let frame = frame.split_off(4);
            assert_eq!(frame, text.as_bytes());
            let frame = a99_frame::decode(frame).unwrap();
            let Envelope::Notice(method) = &frame.envelope else {
                panic!("{frame:?}");
            };
            let read: Note = crate::local::parsed(method, &frame.body).unwrap();
            assert_eq!((read, frame.body.bytes()), (written, bytes));
        }
    }

    #[test]
    fn a_request_of_another_version_is_refused() {
        let exec = Request::Exec(Box::new(Exec {
            argv: vec!["echo".to_owned(), "\u{1}ü".to_owned()],
            ..Exec::default()
        }));
        let frame = crate::local::request(&exec, &[]).unwrap().split_off(4);
        assert_eq!(request(&a99_frame::decode(frame).unwrap()), Ok(exec));
        for (line, about) in [
            (
                r#"{"id":1,"method":"status","protocol":3}"#,
                "another version",
            ),
            (r#"{"id":1,"method":"status"}"#, "another version"),
            (r#"{"id":1,"method":"reboot","protocol":4}"#, "reboot"),
            (r#"{"method":"stdin"}"#, "no request"),
        ] {
            let frame = a99_frame::decode(format!("{line}\nnull").into()).unwrap();
            let error = request(&frame).unwrap_err();
            assert_eq!(error.code, REFUSED);
            assert!(error.message.contains(about), "{error:?}");
        }
    }
}
