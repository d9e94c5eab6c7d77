//! Events of channels: what is in the log, what passes by, and who sent it.

use crate::key::{Millis, Seq};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;

/// How an event came to whoever sees it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It is in the log, and was there before the agent was awake.
    Replay,
    /// It is in the log, and came while the agent was awake.
    Persisted,
    /// It is in no log, and is seen by those who are there.
    Ephemeral,
}

/// Who sent an event, as the host knows it: senders cannot write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The participant.
    pub id: Uuid,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `panel` for people, `agent` for agents, others as a host likes.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// By which it is addressed, without `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// Bytes that belong to an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Which of the event's it is.
    pub id: String,
    /// Its media type.
    pub mime_type: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The bytes; a list of numbers as JSON.
    #[serde(with = "bytes")]
    pub data: Vec<u8>,
}

mod bytes {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(data: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(data)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        Vec::deserialize(from)
    }
}

/// An event of a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its identity, `eventId` as JSON. Publishing again under the same one does nothing.
    #[serde(rename = "eventId")]
    pub id: Uuid,
    /// Its place in the log; none for what is in no log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// How it came.
    pub kind: EventKind,
    /// When the host took it.
    pub ts: Millis,
    /// Who sent it.
    pub sender: Arc<Sender>,
    /// How many agents stand between it and whoever began; the host counts.
    #[serde(default)]
    pub hops: u8,
    /// What it says.
    #[serde(flatten)]
    pub body: Body,
    /// Bytes that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// What an event says. `type` in its JSON form tells which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Body {
    /// Somebody says something.
    Message(Message),
    /// More of a message, or its end. The content is appended.
    UpdateMessage {
        /// The message.
        id: Uuid,
        /// What is appended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// Whether the message is whole now.
        #[serde(default, skip_serializing_if = "is_false")]
        complete: bool,
        /// The kind of content from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_type: Option<String>,
    },
    /// A message failed.
    Error {
        /// The message.
        id: Uuid,
        /// What went wrong.
        error: String,
        /// A stable code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// A participant is asked to do something.
    MethodCall {
        /// The call.
        call_id: Uuid,
        /// The method.
        method_name: String,
        /// Who is asked.
        provider_id: Uuid,
        /// With what.
        #[serde(default)]
        args: Value,
    },
    /// An answer, or a part of one.
    MethodResult {
        /// The call.
        call_id: Uuid,
        /// The answer, or the part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
        /// Whether it is the last.
        #[serde(default)]
        complete: bool,
        /// Whether it says what went wrong.
        #[serde(default, skip_serializing_if = "is_false")]
        is_error: bool,
        /// How far it is, 0 to 100.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
    },
    /// A call is not wanted any more. Agents never see it.
    MethodCancel {
        /// The call.
        call_id: Uuid,
    },
    /// Work on a message is paused, goes on, or is given up.
    ExecutionPause {
        /// The message.
        message_id: Uuid,
        /// What happens to it.
        status: PauseStatus,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A participant comes, goes, or says something else about itself.
    Presence {
        /// What it does.
        action: PresenceAction,
        /// How it went.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leave_reason: Option<String>,
        /// What it says about itself.
        #[serde(default)]
        metadata: Map<String, Value>,
    },
    /// Asks who has a group of tools.
    ToolRoleRequest {
        /// The group.
        group: String,
        /// Who asks.
        requester_id: Uuid,
        /// Of which kind.
        requester_type: String,
    },
    /// Answers that.
    ToolRoleResponse {
        /// The group.
        group: String,
        /// Whether it is given.
        accepted: bool,
        /// To whom.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff_to: Option<Uuid>,
    },
    /// A group of tools goes to another.
    ToolRoleHandoff {
        /// The group.
        group: String,
        /// From whom.
        from: Uuid,
        /// To whom.
        to: Uuid,
    },
    /// What an agent prints, and when it starts and stops. No agent sees it.
    AgentDebug {
        /// What happened.
        payload: Value,
    },
    /// A type of the host's or of an agent's own.
    Custom {
        /// The type.
        name: String,
        /// What it says.
        payload: Value,
    },
}

/// Somebody says something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The message's identity, under which it is updated. That of the event if it is nil.
    #[serde(default)]
    pub id: Uuid,
    /// The text.
    pub content: String,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Uuid>,
    /// `thinking`, `action`, `typing`, `inline_ui`; text if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// To whom; to everybody if nobody is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Uuid>,
    /// Whatever else the sender says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

impl Message {
    /// A message to everybody.
    pub fn text(content: impl Into<String>) -> Message {
        Message {
            content: content.into(),
            ..Message::default()
        }
    }
}

/// What happens to the work on a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseStatus {
    /// It waits.
    Paused,
    /// It goes on.
    Resumed,
    /// It was given up.
    Cancelled,
}

/// What a participant does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PresenceAction {
    /// It comes.
    Join,
    /// It goes.
    Leave,
    /// It says something else about itself.
    Update,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Body {
    /// Whether agents may be woken by it: presence and debugging wake nobody.
    #[must_use]
    pub fn wakes(&self) -> bool {
        !matches!(
            self,
            Body::Presence { .. } | Body::AgentDebug { .. } | Body::MethodCancel { .. }
        )
    }

    /// The type, as `type` says it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Body::Message(_) => "message",
            Body::UpdateMessage { .. } => "update-message",
            Body::Error { .. } => "error",
            Body::MethodCall { .. } => "method-call",
            Body::MethodResult { .. } => "method-result",
            Body::MethodCancel { .. } => "method-cancel",
            Body::ExecutionPause { .. } => "execution-pause",
            Body::Presence { .. } => "presence",
            Body::ToolRoleRequest { .. } => "tool-role-request",
            Body::ToolRoleResponse { .. } => "tool-role-response",
            Body::ToolRoleHandoff { .. } => "tool-role-handoff",
            Body::AgentDebug { .. } => "agent-debug",
            Body::Custom { .. } => "custom",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, Event, EventKind, Message, Sender};
    use crate::key::derived;
    use std::sync::Arc;

    #[test]
    fn events_have_one_json_form() {
        let event = Event {
            id: derived(&["event"]),
            seq: Some(3),
            kind: EventKind::Persisted,
            ts: 1_700_000_000_000,
            sender: Arc::new(Sender::default()),
            hops: 0,
            body: Body::Message(Message::text("hello")),
            attachments: Vec::new(),
        };
        let json = serde_json::to_value(&event).expect("JSON");
        assert_eq!(json["type"], "message");
        assert_eq!(json["content"], "hello");
        assert_eq!(json["seq"], 3);
        let read: Event = serde_json::from_value(json).expect("an event");
        assert_eq!(read.body, event.body);
    }
}
