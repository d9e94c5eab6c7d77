//! Frames on the socket between a host and a process of agents, as [`a99_frame`] has them.

use crate::error::{AgentError, codes};
pub(super) use a99_frame::{Body, Envelope, Frame, WireError, failed, notice, request};
use a99_frame::{FrameError, Incoming, Step};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};

impl From<&AgentError> for WireError {
    fn from(error: &AgentError) -> WireError {
        WireError {
            code: error.code().to_owned(),
            message: error.to_string(),
            is_final: error.is_final(),
            ..WireError::default()
        }
    }
}

impl From<WireError> for AgentError {
    fn from(wire: WireError) -> AgentError {
        let error = AgentError::new(wire.code, wire.message);
        if wire.is_final { error.fatal() } else { error }
    }
}

impl From<FrameError> for AgentError {
    fn from(error: FrameError) -> AgentError {
        let message = error.to_string();
        match error {
            FrameError::Malformed(_) => AgentError::new(codes::BAD_FRAME, message),
            FrameError::Cut => AgentError::new(codes::LOST, message),
            FrameError::TooLarge(_) => AgentError::new(codes::MESSAGE_TOO_LARGE, message).fatal(),
            FrameError::NoJson(error) => error.into(),
        }
    }
}

/// Parses the value that belongs to a method.
pub(super) fn parsed<T: DeserializeOwned>(body: &Body, of: &str) -> Result<T, AgentError> {
    body.json().map_err(|error| {
        let message = format!("what belongs to '{of}' is not of its form: {error}");
        AgentError::new(codes::BAD_MESSAGE, message).fatal()
    })
}

pub(super) fn answer(id: u64, result: &impl Serialize) -> Result<Vec<u8>, AgentError> {
    Ok(a99_frame::answer(id, result)?)
}

/// Reads the next frame; `None` if the stream ends between two frames.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Option<Frame>, AgentError> {
    let lost = |error: std::io::Error| AgentError::new(codes::LOST, error.to_string());
    let mut incoming = Incoming::default();
    loop {
        let count = from.read(incoming.room()).await.map_err(lost)?;
        match incoming.advance(count)? {
            Step::More => {}
            Step::Frame(frame) => return Ok(Some(frame)),
            Step::End => return Ok(None),
        }
    }
}
