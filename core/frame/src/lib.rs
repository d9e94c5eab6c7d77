//! Frames: messages between the processes of one computer.
//!
//! A host of agents, the commands that reach it, agents in other processes, and named sandboxes
//! with their clients all exchange these frames. `docs/protocol.md` lists the methods.
//!
//! A frame is a length, a line of JSON that says what the message is, the JSON of the message,
//! and its bytes, if it has any. The JSON is parsed when its type is known, so that invalid
//! parameters fail only their request. An invalid frame ends the connection.
//!
//! This crate knows no sockets: [`encode`] gives bytes, and an [`Incoming`] takes them as they
//! arrive.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// Maximum bytes of a frame after its length. Longer answers are several notifications.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// Read size in bytes: a length alone allocates no memory.
const PIECE: usize = 64 << 10;

/// The error of a failed request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireError {
    /// Stable code.
    pub code: String,
    /// What failed, and why.
    pub message: String,
    /// Whether the same request would fail again.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Exit code of the command that made the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
}

/// The first line of a frame.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<WireError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
}

/// The kind of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// A request: its id, its method, and the version of the protocol, where both ends have to
    /// be of one.
    Request(u64, String, Option<u32>),
    /// The answer to the request of this id.
    Answer(u64),
    /// The answer to the failed request of this id.
    Failed(u64, WireError),
    /// A notification: its method.
    Notice(String),
}

/// A frame that was read.
#[derive(Debug)]
pub struct Frame {
    /// Its kind.
    pub envelope: Envelope,
    /// Its content.
    pub body: Body,
}

/// Content of a frame: JSON that is parsed once its type is known, and bytes.
#[derive(Debug, Default)]
pub struct Body {
    content: Vec<u8>,
    json: Range<usize>,
}

impl Body {
    /// Parses the JSON.
    ///
    /// # Errors
    /// It is invalid, or of another type.
    pub fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(self.content.get(self.json.clone()).unwrap_or_default())
    }

    /// The bytes after the JSON.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.content.get(self.json.end..).unwrap_or_default()
    }
}

/// Why bytes are no frame, or a message has none.
#[derive(Debug)]
pub enum FrameError {
    /// The bytes that were read are no frame.
    Malformed(String),
    /// The stream ended amid a frame.
    Cut,
    /// The message to send has this many bytes, more than [`MAX_FRAME_BYTES`].
    TooLarge(usize),
    /// The message to send has no JSON form.
    NoJson(serde_json::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Malformed(why) => write!(f, "no frame: {why}"),
            FrameError::Cut => write!(f, "the stream ended amid a frame"),
            FrameError::TooLarge(bytes) => {
                write!(
                    f,
                    "a message has {bytes} bytes, more than {MAX_FRAME_BYTES}"
                )
            }
            FrameError::NoJson(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FrameError {}

fn malformed(why: impl fmt::Display) -> FrameError {
    FrameError::Malformed(why.to_string())
}

/// Decodes a frame without its length.
///
/// # Errors
/// [`FrameError::Malformed`].
pub fn decode(content: Vec<u8>) -> Result<Frame, FrameError> {
    let end = content.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| malformed("it has no line feed"))?;
    let head: Head = serde_json::from_slice(content.get(..end).unwrap_or_default())
        .map_err(|error| malformed(format_args!("its first line: {error}")))?;
    let envelope = match (head.id, head.method, head.error) {
        (Some(id), Some(method), None) => Envelope::Request(id, method, head.protocol),
        (Some(id), None, None) => Envelope::Answer(id),
        (Some(id), None, Some(error)) => Envelope::Failed(id, error),
        (None, Some(method), None) => Envelope::Notice(method),
        _ => return Err(malformed("it is neither request, answer nor notice")),
    };
    let from = end + 1;
    let until = content.len().checked_sub(head.bytes.unwrap_or(0));
    let until = until.filter(|until| *until >= from);
    let until = until.ok_or_else(|| malformed("it is shorter than its bytes"))?;
    let body = Body {
        content,
        json: from..until,
    };
    Ok(Frame { envelope, body })
}

/// Encodes a frame with its length.
///
/// # Errors
/// [`FrameError::TooLarge`], [`FrameError::NoJson`].
pub fn encode(
    envelope: Envelope,
    json: Option<&impl Serialize>,
    bytes: &[u8],
) -> Result<Vec<u8>, FrameError> {
    let mut head = Head {
        bytes: Some(bytes.len()).filter(|count| *count > 0),
        ..Head::default()
    };
    match envelope {
        Envelope::Request(id, method, protocol) => {
            (head.id, head.method, head.protocol) = (Some(id), Some(method), protocol);
        }
        Envelope::Answer(id) => head.id = Some(id),
        Envelope::Failed(id, error) => (head.id, head.error) = (Some(id), Some(error)),
        Envelope::Notice(method) => head.method = Some(method),
    }
    let mut frame = Vec::with_capacity(bytes.len() + 128);
    frame.extend([0; 4]);
    serde_json::to_writer(&mut frame, &head).map_err(FrameError::NoJson)?;
    frame.push(b'\n');
    if let Some(json) = json {
        serde_json::to_writer(&mut frame, json).map_err(FrameError::NoJson)?;
    }
    frame.extend(bytes);
    let length = frame.len() - 4;
    let fits = u32::try_from(length)
        .ok()
        .filter(|_| length <= MAX_FRAME_BYTES);
    let fits = fits.ok_or(FrameError::TooLarge(length))?;
    if let Some(place) = frame.first_chunk_mut() {
        *place = fits.to_be_bytes();
    }
    Ok(frame)
}

/// [Encodes](encode) a request of any version.
pub fn request(id: u64, method: &str, params: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    encode(
        Envelope::Request(id, method.to_owned(), None),
        Some(params),
        &[],
    )
}

/// [Encodes](encode) a notification.
pub fn notice(method: &str, params: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    encode(Envelope::Notice(method.to_owned()), Some(params), &[])
}

/// [Encodes](encode) the answer to a request.
pub fn answer(id: u64, result: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    encode(Envelope::Answer(id), Some(result), &[])
}

/// [Encodes](encode) the answer to a failed request.
pub fn failed(id: u64, error: impl Into<WireError>) -> Result<Vec<u8>, FrameError> {
    encode(Envelope::Failed(id, error.into()), None::<&()>, &[])
}

/// What a read gave.
#[derive(Debug)]
pub enum Step {
    /// Part of a frame.
    More,
    /// The rest of a frame.
    Frame(Frame),
    /// The stream ended between two frames.
    End,
}

/// A frame that arrives in pieces. Bytes are read into its room, as in
/// `incoming.advance(stream.read(incoming.room())?)`; it never takes bytes of the next frame.
#[derive(Debug, Default)]
pub struct Incoming {
    length: [u8; 4],
    content: Vec<u8>,
    /// Bytes of the frame, with its length, that have arrived.
    filled: usize,
    /// Bytes of the frame after its length, once that has arrived.
    wanted: Option<usize>,
}

impl Incoming {
    /// The place for the next bytes, which is never empty.
    pub fn room(&mut self) -> &mut [u8] {
        let Some(wanted) = self.wanted else {
            return self.length.get_mut(self.filled..).unwrap_or_default();
        };
        let at = self.filled - 4;
        if self.content.len() == at {
            self.content.resize(wanted.min(at + PIECE), 0);
        }
        self.content.get_mut(at..).unwrap_or_default()
    }

    /// Takes as many bytes as were read into the room; 0 is the end of the stream.
    ///
    /// # Errors
    /// [`FrameError::Malformed`], [`FrameError::Cut`].
    pub fn advance(&mut self, count: usize) -> Result<Step, FrameError> {
        match (count, self.filled) {
            (0, 0) => return Ok(Step::End),
            (0, _) => return Err(FrameError::Cut),
            _ => self.filled += count,
        }
        if self.wanted.is_none() && self.filled == 4 {
            let length = u32::from_be_bytes(self.length) as usize;
            if length > MAX_FRAME_BYTES {
                let why = format!("it has {length} bytes, more than {MAX_FRAME_BYTES}");
                return Err(FrameError::Malformed(why));
            }
            self.wanted = Some(length);
        }
        if self.wanted.is_none_or(|wanted| self.filled - 4 < wanted) {
            return Ok(Step::More);
        }
        let whole = std::mem::take(self);
        decode(whole.content).map(Step::Frame)
    }
}

#[cfg(test)]
mod tests;
