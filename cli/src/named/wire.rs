//! What a client and a sandbox's process say to each other: frames of a kind, a
//! length and that many bytes.
//!
//! A connection carries one request, the first frame. The answer to a command is
//! what it writes, then how it ended; to all else it is one reply. Standard
//! input flows under a window: a client sends what it has credit for, so that
//! the other end always reads, and hears of Ctrl-C or the client's end although
//! the command reads nothing.

use super::problem::{Problem, REFUSED};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::io::{self, Read, Write};

/// Raised when requests or frames change: a sandbox may have been started by an
/// older binary.
const PROTOCOL: u32 = 2;

/// Largest frame of bytes.
pub(crate) const MAX_DATA: usize = 64 << 10;

/// Largest frame of JSON: arguments and variables of a command, which may have
/// 2 MiB in Linux, written with escapes.
const MAX_JSON: usize = 16 << 20;

/// Bytes of standard input that may be under way.
pub(crate) const WINDOW: usize = 256 << 10;

/// What a frame is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To the sandbox: what is asked, JSON.
    Request,
    /// To the sandbox: bytes for standard input.
    Stdin,
    /// To the sandbox: no more of them.
    StdinEnd,
    /// To the sandbox: the terminal's rows and columns, two bytes each.
    Resize,
    /// To the sandbox: a signal's number, four bytes.
    Signal,
    /// From the sandbox: what was asked, done; JSON.
    Reply,
    /// From the sandbox: bytes of standard output.
    Stdout,
    /// From the sandbox: bytes of standard error.
    Stderr,
    /// From the sandbox: that many more bytes of standard input, four bytes.
    Credit,
    /// From the sandbox: the exit code of the command, one byte, and another one
    /// that is 1 if something of it was ended for want of memory.
    Exit,
    /// From the sandbox: a [`Problem`], JSON.
    Problem,
}

impl Kind {
    const ALL: [(u8, Kind); 11] = [
        (b'q', Kind::Request),
        (b'i', Kind::Stdin),
        (b'e', Kind::StdinEnd),
        (b'w', Kind::Resize),
        (b's', Kind::Signal),
        (b'r', Kind::Reply),
        (b'1', Kind::Stdout),
        (b'2', Kind::Stderr),
        (b'c', Kind::Credit),
        (b'x', Kind::Exit),
        (b'p', Kind::Problem),
    ];

    fn byte(self) -> u8 {
        let of = |(byte, kind): &(u8, Kind)| (*kind == self).then_some(*byte);
        Self::ALL.iter().find_map(of).unwrap_or_default()
    }

    fn of(byte: u8) -> Option<Kind> {
        let of = |(other, kind): &(u8, Kind)| (*other == byte).then_some(*kind);
        Self::ALL.iter().find_map(of)
    }

    /// Most bytes that one may have.
    fn limit(self) -> usize {
        match self {
            Kind::Request | Kind::Reply | Kind::Problem => MAX_JSON,
            Kind::Stdin | Kind::Stdout | Kind::Stderr => MAX_DATA,
            Kind::StdinEnd => 0,
            Kind::Exit => 2,
            Kind::Resize | Kind::Signal | Kind::Credit => 4,
        }
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// What it is.
    pub kind: Kind,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Frame {
    /// The content of a signal or a credit.
    pub(crate) fn number(&self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes.as_slice().try_into().ok()?))
    }

    /// Rows and columns.
    pub(crate) fn size(&self) -> Option<(u16, u16)> {
        let [a, b, c, d] = self.bytes.as_slice().try_into().ok()?;
        Some((u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
    }
}

/// The content of [`Kind::Resize`].
pub(crate) fn size_bytes(rows: u16, columns: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (rows.to_le_bytes(), columns.to_le_bytes());
    [a, b, c, d]
}

/// Writes a frame in one piece.
///
/// # Errors
/// Those of `out`; content that is too long.
pub(crate) fn write(out: &mut impl Write, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() > kind.limit() {
        let text = format!("{} bytes where {} are allowed", bytes.len(), kind.limit());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut frame = Vec::with_capacity(5 + bytes.len());
    frame.push(kind.byte());
    frame.extend((bytes.len() as u32).to_le_bytes());
    frame.extend(bytes);
    out.write_all(&frame)
}

/// Writes a frame of JSON.
///
/// # Errors
/// Those of `out`; content that is too long.
pub(crate) fn write_json(
    out: &mut impl Write,
    kind: Kind,
    value: &impl Serialize,
) -> io::Result<()> {
    write(out, kind, &serde_json::to_vec(value)?)
}

/// Reads a frame; `None` at the end between two.
///
/// # Errors
/// Those of `input`; what is no frame.
pub(crate) fn read(input: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut kind = [0];
    loop {
        match input.read(&mut kind) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let kind = Kind::of(kind[0]).ok_or_else(|| invalid("a frame of no known kind"))?;
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > kind.limit() {
        return Err(invalid("a frame that is too long"));
    }
    // What is announced is not taken before it comes.
    let mut bytes = Vec::new();
    input.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(Frame { kind, bytes }))
}

/// What a client may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// What the sandbox is like, and how it fares.
    Status,
    /// End it; answered when nothing of it is left but its process.
    Stop,
    /// Run a command.
    Exec(Box<Exec>),
    /// Copy from an absolute path of the host to the guest.
    CopyIn {
        /// The source.
        host: String,
        /// The destination.
        guest: String,
    },
    /// Copy from the guest to an absolute path of the host.
    CopyOut {
        /// The source.
        guest: String,
        /// The destination.
        host: String,
        /// Whether git directories are copied as they are.
        #[serde(default)]
        git: bool,
    },
}

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exec {
    /// The command and its arguments.
    pub argv: Vec<String>,
    /// Variables besides those of the sandbox.
    pub env: Vec<(String, String)>,
    /// Run as the guest's administrator.
    pub root: bool,
    /// Working directory.
    pub cwd: Option<String>,
    /// Whether standard input follows.
    pub stdin: bool,
    /// Longest time in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Most bytes of output.
    pub output_limit: Option<u64>,
    /// Rows and columns of a login shell's terminal, instead of `argv`.
    pub shell: Option<(u16, u16)>,
    /// Most bytes of memory.
    pub memory: Option<u64>,
    /// Most processes and threads.
    pub processes: Option<u32>,
    /// Run `argv` in the shell that such commands share: one argument as a
    /// script, several as a command and its arguments.
    pub session: bool,
    /// Answer with the number of its process and let it run on; its output goes
    /// nowhere.
    pub detach: bool,
}

/// A request as it travels.
///
/// # Errors
/// One that is too long.
pub(crate) fn write_request(out: &mut impl Write, request: &Request) -> io::Result<()> {
    let call = serde_json::json!({"protocol": PROTOCOL, "request": request});
    write_json(out, Kind::Request, &call)
}

/// The request in a frame.
///
/// # Errors
/// What is no request, and one of another version of this program.
pub(crate) fn parse_request(frame: &Frame) -> Result<Request, Problem> {
    let refused = |text: &str| Problem::new(REFUSED, text);
    if frame.kind != Kind::Request {
        return Err(refused("the first frame is no request"));
    }
    let mut call: Json = parse(&frame.bytes)?;
    if call["protocol"] != PROTOCOL {
        return Err(refused(
            "this sandbox was started by another version of a99; stop it and start it anew",
        ));
    }
    serde_json::from_value(call["request"].take()).map_err(|error| refused(&error.to_string()))
}

/// The JSON of a frame.
///
/// # Errors
/// [`REFUSED`] for what is none.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| Problem::new(REFUSED, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut bytes = Vec::new();
        for (_, kind) in Kind::ALL {
            write(&mut bytes, kind, &vec![7; kind.limit().min(MAX_DATA)]).unwrap();
            let too_long = vec![0; kind.limit() + 1];
            assert!(write(&mut bytes, kind, &too_long).is_err(), "{kind:?}");
        }
        let mut input = bytes.as_slice();
        for (_, kind) in Kind::ALL {
            let frame = read(&mut input).unwrap().unwrap();
            assert_eq!(frame.kind, kind);
            assert_eq!(frame.bytes, vec![7; kind.limit().min(MAX_DATA)]);
        }
        assert_eq!(read(&mut input).unwrap(), None);
    }

    #[test]
    fn bad_frames_are_refused_and_take_no_memory() {
        for bad in [
            &b"?\0\0\0\0"[..],
            b"i\xff\xff\xff\xff",
            b"i\x01\x00\x01\x00",
            b"e\x01\0\0\0x",
            b"i\x05\0\0\0xy",
            b"i\x05",
            b"q\0\0\x80\0x",
        ] {
            assert!(read(&mut &*bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_request_of_another_version_is_told_so() {
        let exec = Request::Exec(Box::new(Exec {
            argv: vec!["echo".to_owned(), "\u{1}ü".to_owned()],
            ..Exec::default()
        }));
        let mut bytes = Vec::new();
        write_request(&mut bytes, &exec).unwrap();
        let frame = read(&mut bytes.as_slice()).unwrap().unwrap();
        assert_eq!(parse_request(&frame), Ok(exec));
        for (text, about) in [
            (r#"{"protocol":1,"request":"status"}"#, "another version"),
            (r#"{"request":"status"}"#, "another version"),
            (r#"{"protocol":2,"request":"reboot"}"#, "reboot"),
            ("[", "EOF"),
        ] {
            let bytes = text.as_bytes().to_vec();
            let kind = Kind::Request;
            let problem = parse_request(&Frame { kind, bytes }).unwrap_err();
            assert_eq!(problem.code, REFUSED);
            assert!(problem.message.contains(about), "{problem:?}");
        }
    }

    #[test]
    fn sizes_and_numbers_are_read_back() {
        let bytes = size_bytes(24, 300).to_vec();
        let kind = Kind::Resize;
        assert_eq!(Frame { kind, bytes }.size(), Some((24, 300)));
        let kind = Kind::Signal;
        let bytes = 15u32.to_le_bytes().to_vec();
        assert_eq!(Frame { kind, bytes }.number(), Some(15));
        let bytes = vec![1];
        assert_eq!(Frame { kind, bytes }.number(), None);
    }
}
