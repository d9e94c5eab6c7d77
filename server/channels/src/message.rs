//! Messages of a WebSocket: frames of [`a99_frame`] without their length, which the WebSocket
//! has itself. A message without bytes is a text, others are binary.

use a99_frame::{Envelope, FrameError, WireError, encode};
use serde::Serialize;

/// Bytes of the length that a WebSocket does not need.
const LENGTH: usize = 4;

/// An encoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Encoded {
    Text(String),
    Binary(Vec<u8>),
}

impl Encoded {
    pub(crate) fn len(&self) -> usize {
        match self {
            Encoded::Text(text) => text.len(),
            Encoded::Binary(bytes) => bytes.len(),
        }
    }
}

/// Encodes a message.
///
/// # Errors
/// [`FrameError::TooLarge`], [`FrameError::NoJson`].
pub(crate) fn message(
    envelope: Envelope,
    json: Option<&impl Serialize>,
    bytes: &[u8],
) -> Result<Encoded, FrameError> {
    let mut frame = encode(envelope, json, bytes)?;
    frame.drain(..LENGTH);
    if !bytes.is_empty() {
        return Ok(Encoded::Binary(frame));
    }
    let text = String::from_utf8(frame);
    Ok(text.map_or_else(|error| Encoded::Binary(error.into_bytes()), Encoded::Text))
}

pub(crate) fn answer(
    id: u64,
    result: &impl Serialize,
    bytes: &[u8],
) -> Result<Encoded, FrameError> {
    message(Envelope::Answer(id), Some(result), bytes)
}

pub(crate) fn failed(id: u64, error: WireError) -> Result<Encoded, FrameError> {
    message(Envelope::Failed(id, error), None::<&()>, &[])
}

pub(crate) fn notice(
    method: &str,
    params: &impl Serialize,
    bytes: &[u8],
) -> Result<Encoded, FrameError> {
    message(Envelope::Notice(method.to_owned()), Some(params), bytes)
}

pub(crate) fn request(
    id: u64,
    method: &str,
    params: &impl Serialize,
    bytes: &[u8],
) -> Result<Encoded, FrameError> {
    message(
        Envelope::Request(id, method.to_owned(), None),
        Some(params),
        bytes,
    )
}
