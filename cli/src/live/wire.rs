//! Requests to a host, in frames of [`crate::local`].
//!
//! Events and, for all agents, their statuses are notifications; the rest of the result is the
//! answer.

use super::error::BAD_REQUEST;
pub(super) use crate::local::Refusal;
use crate::local::opened;
use a99_frame::{Frame, FrameError};
use a99_runtime::Seq;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::time::Duration;

/// Notifications during an answer: an event of a channel, the status of an agent.
pub(super) const EVENT: &str = "event";
pub(super) const AGENT: &str = "agent";

/// A method of the protocol with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "kebab-case")]
pub(super) enum Call {
    /// Sends a message to a channel.
    Send(SendCall),
    #[serde(rename = "call")]
    Method(MethodCall),
    /// Reads events of a channel.
    Logs(LogsCall),
    /// Inspects all agents, or one of them.
    Inspect(InspectCall),
    /// Changes an agent's checkpoint or dead letters.
    Checkpoint(CheckpointCall),
    /// Reloads the file of agents.
    Reload,
}

impl Call {
    /// Timeout of the call, if it has one.
    pub(super) fn limit(&self) -> Option<Duration> {
        let limit = match self {
            Call::Send(call) => call.wait_ms,
            Call::Method(call) => call.timeout_ms,
            Call::Logs(_) | Call::Inspect(_) | Call::Checkpoint(_) | Call::Reload => None,
        };
        limit.map(Duration::from_millis)
    }

    /// Encodes the request, unless it is too large.
    pub(super) fn frame(&self) -> Result<Vec<u8>, Refusal> {
        let bytes = match self {
            Call::Send(call) => call.text.as_bytes(),
            _ => &[],
        };
        let frame = crate::local::request(self, bytes);
        frame.map_err(|error| {
            Refusal::new(BAD_REQUEST, error.to_string()).helped("send less at a time")
        })
    }

    /// Id and call of a request; a refusal has the request's id, or 0.
    pub(super) fn of(frame: &Frame) -> Result<(u64, Call), (u64, Refusal)> {
        let (id, mut call) = opened(frame, other_version())?;
        if let Call::Send(call) = &mut call {
            let text = std::str::from_utf8(frame.body.bytes());
            let text = text.map_err(|_| (id, Refusal::new(BAD_REQUEST, "the text is not UTF-8")));
            call.text = text?.to_owned();
        }
        Ok((id, call))
    }
}

/// The error of a host and a command that are not one version of this program.
pub(super) fn other_version() -> Refusal {
    let text = "the host was started by another version of a99";
    Refusal::new(BAD_REQUEST, text).helped("end the host, and start it again: `a99 agent host`")
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SendCall {
    pub(super) channel: String,
    /// The bytes of the frame.
    #[serde(skip)]
    pub(super) text: String,
    /// Handle of the sender.
    pub(super) sender: String,
    /// Handles of the recipients.
    #[serde(default)]
    pub(super) at: Vec<String>,
    pub(super) key: Option<String>,
    /// How long to wait until the agents have handled the message and the events that follow from
    /// it; `None` does not wait.
    pub(super) wait_ms: Option<u64>,
}

/// A method call. Its answer is `{"answer": ...}`, or `{"error": {"code", "message"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MethodCall {
    pub(super) agent: String,
    pub(super) name: String,
    pub(super) args: Json,
    /// Handle of the caller.
    pub(super) sender: String,
    /// How long to wait; by default the method's timeout.
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LogsCall {
    pub(super) channel: String,
    #[serde(default)]
    pub(super) after: Seq,
    #[serde(default)]
    pub(super) follow: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct InspectCall {
    pub(super) agent: Option<String>,
}

/// A change of an agent's progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CheckpointCall {
    pub(super) agent: String,
    pub(super) change: Change,
}

/// The change of an agent's progress.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Change {
    /// Continue after this sequence number.
    Set(Seq),
    /// Handle the dead letters again.
    RetryDead,
    /// Discard the dead letters.
    ForgetDead,
}

impl From<FrameError> for Refusal {
    /// The error of an answer that is too large.
    fn from(error: FrameError) -> Refusal {
        Refusal::new("store.too_large", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_one_form() {
        crate::local::tests::assert_documented::<Call>();
        let call = Call::Checkpoint(CheckpointCall {
            agent: "echo".to_owned(),
            change: Change::Set(4),
        });
        let bytes = call.frame().expect("a frame").split_off(4);
        let text = "{\"id\":1,\"method\":\"checkpoint\",\"protocol\":4}\n\
             {\"agent\":\"echo\",\"change\":{\"set\":4}}";
        assert_eq!(String::from_utf8(bytes.clone()).as_deref(), Ok(text));
        let frame = a99_frame::decode(bytes).expect("a frame");
        assert_eq!(Call::of(&frame), Ok((1, call)));
        let text = SendCall {
            text: "a\nb".to_owned(),
            ..SendCall::default()
        };
        for call in [Call::Reload, Call::Send(text)] {
            let bytes = call.frame().expect("a frame").split_off(4);
            let frame = a99_frame::decode(bytes).expect("a frame");
            assert_eq!(Call::of(&frame), Ok((1, call)));
        }
    }

    #[test]
    fn requests_of_another_version_are_refused() {
        for line in [
            "{\"id\":7,\"method\":\"reload\"}\nnull",
            "{\"id\":7,\"method\":\"reload\",\"protocol\":5}\nnull",
        ] {
            let frame = a99_frame::decode(line.into()).expect("a frame");
            assert_eq!(Call::of(&frame), Err((7, other_version())));
        }
    }
}
