//! Frames: messages on the socket between a host and a process of agents.
//!
//! A frame is a four-byte big-endian length, then a line of JSON that describes the message, a
//! line feed, and the message's JSON:
//!
//! | line | JSON after it | message |
//! |---|---|---|
//! | `{"id":1,"method":"..."}` | the parameters | a request |
//! | `{"id":1}` | the result | the answer to a request |
//! | `{"id":1,"error":{"code","message","final"}}` | nothing | the answer to a failed request |
//! | `{"method":"..."}` | the parameters | a notification, without answer |
//!
//! An invalid frame ends the connection. Invalid parameters fail only their request.

use crate::error::{AgentError, codes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum bytes of a frame after its length.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// Read size in bytes: a length alone allocates no memory.
const PIECE: usize = 64 << 10;

/// An error in the wire format.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireError {
    code: String,
    message: String,
    #[serde(rename = "final")]
    is_final: bool,
}

impl From<&AgentError> for WireError {
    fn from(error: &AgentError) -> WireError {
        WireError {
            code: error.code().to_owned(),
            message: error.to_string(),
            is_final: error.is_final(),
        }
    }
}

impl From<WireError> for AgentError {
    fn from(wire: WireError) -> AgentError {
        let error = AgentError::new(wire.code, wire.message);
        if wire.is_final { error.fatal() } else { error }
    }
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
}

/// The kind of a frame.
#[derive(Debug)]
pub(crate) enum Envelope {
    Request { id: u64, method: String },
    Answer { id: u64 },
    Failed { id: u64, error: WireError },
    Notice { method: String },
}

/// A frame that was read.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) envelope: Envelope,
    /// The JSON after the line.
    pub(crate) body: Body,
}

/// JSON that is parsed once its type is known.
#[derive(Debug)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    from: usize,
}

impl Body {
    /// Parses the value.
    pub(crate) fn read<T: DeserializeOwned>(&self, of: &str) -> Result<T, AgentError> {
        let json = self.bytes.get(self.from..).unwrap_or_default();
        serde_json::from_slice(json).map_err(|error| {
            let message = format!("what belongs to '{of}' is not of its form: {error}");
            AgentError::new(codes::BAD_MESSAGE, message).fatal()
        })
    }
}

fn malformed(message: impl std::fmt::Display) -> AgentError {
    AgentError::new(codes::BAD_FRAME, format!("no frame: {message}"))
}

/// Decodes a frame without its length.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<Frame, AgentError> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| malformed("it has no line feed"))?;
    let head: Head = serde_json::from_slice(bytes.get(..end).unwrap_or_default())
        .map_err(|error| malformed(format_args!("its first line: {error}")))?;
    let envelope = match (head.id, head.method, head.error) {
        (Some(id), Some(method), None) => Envelope::Request { id, method },
        (Some(id), None, None) => Envelope::Answer { id },
        (Some(id), None, Some(error)) => Envelope::Failed { id, error },
        (None, Some(method), None) => Envelope::Notice { method },
        _ => return Err(malformed("it is neither request, answer nor notice")),
    };
    let body = Body {
        from: end + 1,
        bytes,
    };
    Ok(Frame { envelope, body })
}

fn encode(head: &Head, body: Option<&dyn Json>) -> Result<Vec<u8>, AgentError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, head)?;
    bytes.push(b'\n');
    if let Some(body) = body {
        body.write(&mut bytes)?;
    }
    let length = bytes.len() - 4;
    if length > MAX_FRAME_BYTES {
        let message = format!("a message has {length} bytes, more than {MAX_FRAME_BYTES}");
        return Err(AgentError::new(codes::MESSAGE_TOO_LARGE, message).fatal());
    }
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(place) = bytes.first_chunk_mut() {
        *place = length;
    }
    Ok(bytes)
}

/// A value with a JSON form.
trait Json {
    fn write(&self, to: &mut Vec<u8>) -> serde_json::Result<()>;
}

impl<T: Serialize> Json for T {
    fn write(&self, to: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(to, self)
    }
}

pub(crate) fn request(
    id: u64,
    method: &str,
    params: &impl Serialize,
) -> Result<Vec<u8>, AgentError> {
    let head = Head {
        id: Some(id),
        method: Some(method.to_owned()),
        error: None,
    };
    encode(&head, Some(&params))
}

pub(crate) fn notice(method: &str, params: &impl Serialize) -> Result<Vec<u8>, AgentError> {
    let head = Head {
        method: Some(method.to_owned()),
        ..Head::default()
    };
    encode(&head, Some(&params))
}

pub(crate) fn answer(id: u64, result: &impl Serialize) -> Result<Vec<u8>, AgentError> {
    let head = Head {
        id: Some(id),
        ..Head::default()
    };
    encode(&head, Some(&result))
}

pub(crate) fn failed(id: u64, error: &AgentError) -> Result<Vec<u8>, AgentError> {
    let head = Head {
        id: Some(id),
        method: None,
        error: Some(error.into()),
    };
    encode(&head, None)
}

/// Reads the next frame; `None` if the stream ends between two frames.
pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Option<Frame>, AgentError> {
    let lost = |error: std::io::Error| AgentError::new(codes::LOST, error.to_string());
    let mut length = [0; 4];
    let first = from.read(&mut length).await.map_err(lost)?;
    if first == 0 {
        return Ok(None);
    }
    let rest = length.get_mut(first..).unwrap_or_default();
    from.read_exact(rest).await.map_err(lost)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_FRAME_BYTES {
        let message = format!("it has {length} bytes, more than {MAX_FRAME_BYTES}");
        return Err(malformed(message));
    }
    let mut bytes = Vec::with_capacity(length.min(PIECE));
    while bytes.len() < length {
        let at = bytes.len();
        bytes.resize(length.min(at + PIECE), 0);
        let piece = bytes.get_mut(at..).unwrap_or_default();
        from.read_exact(piece).await.map_err(lost)?;
    }
    decode(bytes).map(Some)
}

#[cfg(test)]
mod tests {
    use super::{Envelope, MAX_FRAME_BYTES, answer, codes, decode, failed, notice, read, request};
    use crate::error::AgentError;
    use proptest::prelude::{any, proptest};

    fn read_back(frame: &[u8]) -> super::Frame {
        decode(frame.get(4..).expect("a length").to_vec()).expect("a frame")
    }

    #[test]
    fn frames_read_as_they_were_written() {
        let frame = read_back(&request(7, "a.b", &"x\ny").expect("written"));
        assert!(matches!(&frame.envelope, Envelope::Request { id: 7, method } if method == "a.b"));
        assert_eq!(frame.body.read::<String>("a.b").expect("a text"), "x\ny");
        let frame = read_back(&answer(8, &[1, 2]).expect("written"));
        assert!(matches!(frame.envelope, Envelope::Answer { id: 8 }));
        assert_eq!(frame.body.read::<Vec<u8>>("a").expect("a list"), [1, 2]);
        let frame = read_back(&notice("n", &()).expect("written"));
        assert!(matches!(frame.envelope, Envelope::Notice { .. }));
        let error = AgentError::new("x.y", "why").fatal();
        let frame = read_back(&failed(9, &error).expect("written"));
        let Envelope::Failed { id: 9, error: wire } = frame.envelope else {
            panic!("{frame:?}");
        };
        assert_eq!(AgentError::from(wire), error);
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [
            "",
            "{}",
            "\n",
            "{}\n",
            "{\"id\":-1}\n",
            "{\"id\":1,\"x\":2}\n",
            "[]\n1",
            "{\"error\":{\"code\":\"a\",\"message\":\"b\",\"final\":true}}\n",
        ] {
            let error = decode(bytes.into()).expect_err(bytes);
            assert_eq!(error.code(), codes::BAD_FRAME, "{bytes}");
        }
        let frame = decode("{\"id\":1}\n{".into()).expect("a frame");
        let error = frame.body.read::<u8>("m").expect_err("no number");
        assert_eq!(error.code(), codes::BAD_MESSAGE);
    }

    #[tokio::test]
    async fn lengths_are_bounded() {
        let long = u32::try_from(MAX_FRAME_BYTES + 1).expect("a length");
        let error = read(&mut &long.to_be_bytes()[..]).await.expect_err("long");
        assert_eq!(error.code(), codes::BAD_FRAME);
        let cut = [0, 0, 1, 0, b'{'];
        let error = read(&mut &cut[..]).await.expect_err("cut");
        assert_eq!(error.code(), codes::LOST);
        assert!(read(&mut &[][..]).await.expect("the end").is_none());
        let text = "x".repeat(MAX_FRAME_BYTES);
        let error = request(1, "m", &text).expect_err("large");
        assert_eq!(error.code(), codes::MESSAGE_TOO_LARGE);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
            if let Ok(frame) = decode(bytes) {
                drop(frame.body.read::<serde_json::Value>("m"));
            }
        }
    }
}
