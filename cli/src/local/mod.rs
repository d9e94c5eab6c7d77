//! The local protocol: what commands say to a host of agents or to a named sandbox, in frames of
//! [`a99_frame`]. `docs/protocol.md` describes it.
//!
//! A request is answered by any number of notifications and one answer. Both ends are one version
//! of this program: a request carries the version, and is refused if the other end has another.

mod client;

pub(crate) use client::{Connection, Lost, invalid};

use a99_frame::{Body, Envelope, Frame, FrameError, WireError, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

/// Protocol version, raised when a message changes: an older binary may be at the other end.
const PROTOCOL: u32 = 4;

/// Id of a command's request: its connection carries one.
pub(crate) const ID: u64 = 1;

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    /// What failed, and why.
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// Exit code of the command that made the request.
    pub(crate) exit: Option<u8>,
    /// Output up to the failure, where `--json` collects it. It is not sent.
    pub(crate) output: Option<Box<(Vec<u8>, Vec<u8>)>>,
}

impl Refusal {
    /// A refusal without help.
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Refusal {
        Refusal {
            code: code.to_owned(),
            message: message.into(),
            help: None,
            exit: None,
            output: None,
        }
    }
}

impl From<WireError> for Refusal {
    fn from(wire: WireError) -> Refusal {
        Refusal {
            code: wire.code,
            message: wire.message,
            help: wire.help,
            exit: wire.exit,
            output: None,
        }
    }
}

impl From<Refusal> for WireError {
    fn from(refusal: Refusal) -> WireError {
        WireError {
            code: refusal.code,
            message: refusal.message,
            is_final: false,
            help: refusal.help,
            exit: refusal.exit,
        }
    }
}

/// Method and parameters of an enum whose tag is `method`.
fn parts(message: &impl Serialize) -> Result<(String, Json), FrameError> {
    let mut json = serde_json::to_value(message).map_err(FrameError::NoJson)?;
    let method = json["method"].as_str().unwrap_or_default().to_owned();
    Ok((method, json["params"].take()))
}

/// Encodes a request.
pub(crate) fn request(call: &impl Serialize, bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
    let (method, params) = parts(call)?;
    encode(
        Envelope::Request(ID, method, Some(PROTOCOL)),
        Some(&params),
        bytes,
    )
}

/// Encodes a notification.
#[cfg(feature = "sandbox")]
pub(crate) fn notice(said: &impl Serialize, bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
    let (method, params) = parts(said)?;
    encode(Envelope::Notice(method), Some(&params), bytes)
}

/// Parses a message as an enum whose tag is `method`.
pub(crate) fn parsed<T: DeserializeOwned>(method: &str, body: &Body) -> serde_json::Result<T> {
    let params: Json = body.json()?;
    serde_json::from_value(json!({"method": method, "params": params}))
}

/// Id and call of a request.
///
/// # Errors
/// With the request's id, or 0: `other`, which is about another version of this program, and its
/// code for bytes that are no request.
pub(crate) fn opened<T: DeserializeOwned>(
    frame: &Frame,
    other: Refusal,
) -> Result<(u64, T), (u64, Refusal)> {
    let Envelope::Request(id, method, protocol) = &frame.envelope else {
        return Err((
            0,
            Refusal::new(&other.code, "the first frame is no request"),
        ));
    };
    if *protocol != Some(PROTOCOL) {
        return Err((*id, other));
    }
    let no_request = |error| {
        let text = format!("this is no request: {error}");
        (*id, Refusal::new(&other.code, text))
    };
    parsed(method, &frame.body)
        .map(|call| (*id, call))
        .map_err(no_request)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Checks that `docs/protocol.md` has a row for each message of an enum, which serde lists for an
    /// unknown one.
    pub(crate) fn assert_documented<T: DeserializeOwned>() {
        let error = serde_json::from_value::<T>(json!({"method": "?"})).err();
        let text = error.map(|error| error.to_string()).unwrap_or_default();
        let names: Vec<&str> = text.split('`').skip(3).step_by(2).collect();
        assert!(!names.is_empty(), "{text}");
        for name in names {
            let row = format!("\n| `{name}` |");
            assert!(
                include_str!("../../../docs/protocol.md").contains(&row),
                "{name}"
            );
        }
    }
}
