//! Wire format of the local protocol: one line of JSON for each request and answer.
//!
//! `{"id": 1, "method": "send", "params": {...}}` is answered by any number of
//! `{"id": 1, "event": {...}}` and one `{"id": 1, "result": ...}` or
//! `{"id": 1, "error": {"code", "message", "help"?}}`.

use a99_runtime::Seq;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::time::Duration;

/// Most bytes of a line.
pub(super) const MAX_LINE: usize = 1 << 20;

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// Id that its answers repeat.
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) call: Call,
}

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
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SendCall {
    pub(super) channel: String,
    pub(super) text: String,
    /// Handle of the sender.
    pub(super) sender: String,
    /// Handles of the recipients.
    #[serde(default)]
    pub(super) at: Vec<String>,
    #[serde(default)]
    pub(super) key: Option<String>,
    /// How long to wait until the agents have handled the message and the events that follow from
    /// it; `None` does not wait.
    #[serde(default)]
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
    #[serde(default)]
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
    #[serde(default)]
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// The request's id.
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) said: Said,
}

/// Content of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Said {
    /// An event; more answers follow.
    Event(Json),
    /// The request succeeded.
    Result(Json),
    /// The request failed.
    Error(Refusal),
}

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) code: String,
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) help: Option<String>,
}

/// Encodes a message as a line.
///
/// # Errors
/// The line would exceed [`MAX_LINE`].
pub(super) fn line(message: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut bytes = serde_json::to_vec(message).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    match bytes.len() <= MAX_LINE {
        true => Ok(bytes),
        false => Err(format!(
            "a message has {} bytes of at most {MAX_LINE}",
            bytes.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_have_one_form() {
        let request = Request {
            id: 7,
            call: Call::Checkpoint(CheckpointCall {
                agent: "echo".to_owned(),
                change: Change::Set(4),
            }),
        };
        let written = json!({
            "id": 7,
            "method": "checkpoint",
            "params": {"agent": "echo", "change": {"set": 4}},
        });
        assert_eq!(serde_json::to_value(&request).ok(), Some(written.clone()));
        assert_eq!(serde_json::from_value(written).ok(), Some(request));
        let reload: Result<Request, _> = serde_json::from_str(r#"{"id":1,"method":"reload"}"#);
        assert!(matches!(
            reload,
            Ok(Request {
                id: 1,
                call: Call::Reload
            })
        ));
    }

    #[test]
    fn answers_have_one_form() {
        let said = Said::Error(Refusal {
            code: "agent.unknown".to_owned(),
            message: "no".to_owned(),
            help: None,
        });
        let line = line(&Answer { id: 1, said }).expect("a line");
        let text = "{\"id\":1,\"error\":{\"code\":\"agent.unknown\",\"message\":\"no\"}}\n";
        assert_eq!(String::from_utf8(line).as_deref(), Ok(text));
    }

    #[test]
    fn lines_are_bounded() {
        assert!(line(&"x".repeat(MAX_LINE)).is_err());
    }
}
