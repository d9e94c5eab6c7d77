//! Wire of the local protocol: a line of JSON for each request and each answer.
//!
//! `{"id": 1, "method": "send", "params": {...}}` is answered by any number of
//! `{"id": 1, "event": {...}}` and one `{"id": 1, "result": ...}` or
//! `{"id": 1, "error": {"code", "message", "help"?}}`.

use a99_runtime::Seq;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::time::Duration;

/// Bytes of a line, at most.
pub(super) const MAX_LINE: usize = 1 << 20;

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// Its answers have it too.
    pub(super) id: u64,
    /// What is asked.
    #[serde(flatten)]
    pub(super) call: Call,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "kebab-case")]
pub(super) enum Call {
    /// Puts a message on a channel.
    Send(SendCall),
    /// Calls a method of an agent.
    #[serde(rename = "call")]
    Method(MethodCall),
    /// Events of a channel.
    Logs(LogsCall),
    /// All agents, or one of them.
    Inspect(InspectCall),
    /// Changes how far an agent is.
    Checkpoint(CheckpointCall),
    /// Reads the file of agents again.
    Reload,
}

impl Call {
    /// How long the host may take for it, if that is said.
    pub(super) fn limit(&self) -> Option<Duration> {
        let limit = match self {
            Call::Send(call) => call.wait_ms,
            Call::Method(call) => call.timeout_ms,
            Call::Logs(_) | Call::Inspect(_) | Call::Checkpoint(_) | Call::Reload => None,
        };
        limit.map(Duration::from_millis)
    }
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SendCall {
    pub(super) channel: String,
    pub(super) text: String,
    /// The handle of whoever sends it.
    pub(super) sender: String,
    /// The handles of those it is for.
    #[serde(default)]
    pub(super) at: Vec<String>,
    #[serde(default)]
    pub(super) key: Option<String>,
    /// How long to wait until the agents are done, with all that follows; not at all if none.
    #[serde(default)]
    pub(super) wait_ms: Option<u64>,
}

/// A call of a method. Its answer is `{"answer": ...}`, or `{"error": {"code", "message"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MethodCall {
    pub(super) agent: String,
    pub(super) name: String,
    pub(super) args: Json,
    /// The handle of whoever calls.
    pub(super) sender: String,
    /// How long to wait; as long as the method says if none.
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
}

/// Events of a channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LogsCall {
    pub(super) channel: String,
    #[serde(default)]
    pub(super) after: Seq,
    #[serde(default)]
    pub(super) follow: bool,
}

/// An agent, or all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct InspectCall {
    #[serde(default)]
    pub(super) agent: Option<String>,
}

/// A change of how far an agent is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CheckpointCall {
    pub(super) agent: String,
    pub(super) change: Change,
}

/// What is changed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Change {
    /// Go on after this place.
    Set(Seq),
    /// Handle again what was given up.
    RetryDead,
    /// Forget what was given up.
    ForgetDead,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// The request's.
    pub(super) id: u64,
    /// What it says.
    #[serde(flatten)]
    pub(super) said: Said,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Said {
    /// Something that happened; more follows.
    Event(Json),
    /// It is done.
    Result(Json),
    /// It is not.
    Error(Refusal),
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// A stable code.
    pub(super) code: String,
    /// In words.
    pub(super) message: String,
    /// What helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) help: Option<String>,
}

/// The line of a message, with its end.
///
/// # Errors
/// More bytes than a line may have.
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
