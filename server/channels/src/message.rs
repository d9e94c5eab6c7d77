//! Messages of a WebSocket: frames of [`a99_frame`] without their length, which the WebSocket
//! has itself. A message without bytes is a text, others are binary.

use crate::wire::notices;
use a99_frame::{Envelope, FrameError, MAX_FRAME_BYTES, WireError, encode};
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

/// The notification of an event without attachments, from the event's JSON: what
/// [`Delivered`](crate::wire::Delivered) encodes to.
pub(crate) fn delivery(subscription: u64, event: &str) -> Result<Encoded, FrameError> {
    let head = format!(
        "{{\"method\":\"{}\"}}\n{{\"subscription\":{subscription},\"event\":",
        notices::EVENT
    );
    let length = head.len() + event.len() + 1;
    if length > MAX_FRAME_BYTES {
        return Err(FrameError::TooLarge(length));
    }
    let mut text = String::with_capacity(length);
    text.push_str(&head);
    text.push_str(event);
    text.push('}');
    Ok(Encoded::Text(text))
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

#[cfg(test)]
mod tests {
    use super::{delivery, notice};
    use crate::wire::{Delivered, notices};
    use a99_runtime::{Body, Message, Sender, Uuid};
    use a99_runtime_engine::NewEvent;
    use std::sync::Arc;

    #[test]
    fn a_delivery_from_text_is_that_of_its_event() {
        let body = Body::Message(Message::text("a\n\"b\""));
        let new = NewEvent::new("c", Uuid::nil(), Arc::new(Sender::default()), 0, body);
        let text = serde_json::to_string(&new.event).expect("JSON");
        let delivered = Delivered {
            subscription: u64::MAX,
            event: Arc::new(new.event),
            attachments: Vec::new(),
        };
        let encoded = notice(notices::EVENT, &delivered, &[]).expect("a message");
        assert_eq!(delivery(u64::MAX, &text).expect("a message"), encoded);
    }
}
