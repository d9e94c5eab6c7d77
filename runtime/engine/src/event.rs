//! Events of channels: logged and ephemeral events, and their senders.

use crate::key::{Millis, Seq};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;

/// How an event reached its receiver.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It was in the log before the agent woke.
    Replay,
    /// It was appended to the log while the agent was awake.
    Persisted,
    /// It is in no log and reaches only present participants.
    Ephemeral,
}

/// The sender of an event. The host sets it; senders cannot forge it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The participant's identity.
    pub id: Uuid,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `panel` for people, `agent` for agents, or a kind that the host defines.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The handle by which others address it, without `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// Bytes attached to an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The attachment's identity within the event.
    pub id: String,
    /// Its media type.
    pub mime_type: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The bytes; in JSON a list of numbers.
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
    /// The event's identity, `eventId` in JSON. Publishing again under it has no effect.
    #[serde(rename = "eventId")]
    pub id: Uuid,
    /// The sequence number in the log; `None` for an ephemeral event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// How it reached the receiver.
    pub kind: EventKind,
    /// When the host received it.
    pub ts: Millis,
    /// The sender.
    pub sender: Arc<Sender>,
    /// Number of agents that the chain of events passed through; the host counts.
    #[serde(default)]
    pub hops: u8,
    /// The content.
    #[serde(flatten)]
    pub body: Body,
    /// Attached bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// The content of an event. `type` in its JSON form names the variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Body {
    /// A message.
    Message(Message),
    /// More content of a message, or its end. The content is appended.
    UpdateMessage {
        /// The message's identity.
        id: Uuid,
        /// The appended text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// Whether the message is complete now.
        #[serde(default, skip_serializing_if = "is_false")]
        complete: bool,
        /// The content type from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_type: Option<String>,
    },
    /// A message failed.
    Error {
        /// The message's identity.
        id: Uuid,
        /// The error's text.
        error: String,
        /// A stable code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// A call of a participant's method.
    MethodCall {
        /// The call's identity.
        call_id: Uuid,
        /// The method's name.
        method_name: String,
        /// The callee.
        provider_id: Uuid,
        /// The arguments.
        #[serde(default)]
        args: Value,
    },
    /// A method's answer, or a part of it.
    MethodResult {
        /// The call's identity.
        call_id: Uuid,
        /// The answer, or the part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
        /// The content type; that of JSON by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_type: Option<String>,
        /// Whether this is the last part.
        #[serde(default)]
        complete: bool,
        /// Whether the content is an error.
        #[serde(default, skip_serializing_if = "is_false")]
        is_error: bool,
        /// Progress of the method, 0 to 100.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
    },
    /// Cancels a call. Agents never see it.
    MethodCancel {
        /// The call's identity.
        call_id: Uuid,
    },
    /// Work on a message is paused, resumed or cancelled.
    ExecutionPause {
        /// The message's identity.
        message_id: Uuid,
        /// The new status.
        status: PauseStatus,
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A participant joins, leaves or updates its metadata.
    Presence {
        /// The participant's action.
        action: PresenceAction,
        /// The reason for leaving.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leave_reason: Option<String>,
        /// The participant's metadata.
        #[serde(default)]
        metadata: Map<String, Value>,
    },
    /// Asks which participants provide a group of tools.
    ToolRoleRequest {
        /// The group's name.
        group: String,
        /// The asking participant.
        requester_id: Uuid,
        /// Its kind.
        requester_type: String,
    },
    /// Answers a request for a group of tools.
    ToolRoleResponse {
        /// The group's name.
        group: String,
        /// Whether the request is granted.
        accepted: bool,
        /// The new provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff_to: Option<Uuid>,
    },
    /// Announces that a group of tools moves to another provider.
    ToolRoleHandoff {
        /// The group's name.
        group: String,
        /// The previous provider.
        from: Uuid,
        /// The new provider.
        to: Uuid,
    },
    /// Output of an agent, and its starts and stops. Agents never see it.
    AgentDebug {
        /// The debug information.
        payload: Value,
    },
    /// A custom type of a host or an agent.
    Custom {
        /// The type's name.
        name: String,
        /// The content.
        payload: Value,
    },
}

/// A message of a participant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The identity under which the message is updated; the event's identity if it is nil.
    #[serde(default)]
    pub id: Uuid,
    /// The text.
    pub content: String,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Uuid>,
    /// `thinking`, `action`, `typing`, `inline_ui`; text by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The addressees; empty for everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Uuid>,
    /// Further metadata.
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

/// The status of work on a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseStatus {
    /// The work is paused.
    Paused,
    /// The work continues.
    Resumed,
    /// The work was cancelled.
    Cancelled,
}

/// A presence change of a participant.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PresenceAction {
    /// It joins.
    Join,
    /// It leaves.
    Leave,
    /// It updates its metadata.
    Update,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The member of a message's metadata with its trace context (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

impl Body {
    /// Whether both are the same content, whatever their trace contexts: each attempt of a turn
    /// is a span, and what it sends again has the context of another.
    #[must_use]
    pub fn is_same(&self, other: &Body) -> bool {
        let untraced = |body: &Body| match body {
            Body::Message(message) => {
                let mut message = message.clone();
                if let Some(Value::Object(members)) = &mut message.metadata {
                    members.remove(TRACEPARENT);
                }
                // A context makes metadata where there was none.
                message.metadata = message.metadata.filter(|metadata| match metadata {
                    Value::Object(members) => !members.is_empty(),
                    metadata => !metadata.is_null(),
                });
                Some(message)
            }
            _ => None,
        };
        self == other || untraced(self).is_some_and(|it| Some(it) == untraced(other))
    }

    /// Whether the event can wake agents: presence and debug events do not.
    #[must_use]
    pub fn wakes(&self) -> bool {
        !matches!(
            self,
            Body::Presence { .. } | Body::AgentDebug { .. } | Body::MethodCancel { .. }
        )
    }

    /// Why no channel takes this content; `None` for content that channels take.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Body::MethodCall { method_name, .. } if method_name.is_empty() => {
                Some("a call without the name of a method")
            }
            Body::MethodResult {
                progress: Some(progress),
                ..
            } if !(0.0..=100.0).contains(progress) => Some("progress beyond 0 to 100"),
            _ => None,
        }
    }

    /// The name of the type in JSON.
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
    use super::{Body, Event, EventKind, Message, Sender, TRACEPARENT, Value};
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

    #[test]
    fn a_context_changes_no_content() {
        let with = |text: &str, metadata: Option<Value>| {
            let mut message = Message::text(text);
            message.metadata = metadata;
            Body::Message(message)
        };
        let traced = |n: u8| Some(serde_json::json!({TRACEPARENT: n}));
        let plain = with("a", None);
        assert!(with("a", traced(1)).is_same(&with("a", traced(2))));
        assert!(with("a", traced(1)).is_same(&plain) && plain.is_same(&with("a", traced(1))));
        assert!(!with("a", traced(1)).is_same(&with("b", traced(1))));
        let more = Some(serde_json::json!({TRACEPARENT: 1, "n": 1}));
        assert!(!with("a", more).is_same(&plain));
        let list = Some(serde_json::json!([1]));
        assert!(!with("a", list).is_same(&plain));
        let event = |payload: Value| Body::AgentDebug { payload };
        assert!(event(1.into()).is_same(&event(1.into())));
        assert!(!event(1.into()).is_same(&event(2.into())) && !event(1.into()).is_same(&plain));
    }

    #[test]
    fn fractions_are_read_as_they_were_written() {
        for n in 1..20_000 {
            let written = f64::from(n) / 9_973.0;
            let text = serde_json::to_string(&written).expect("JSON");
            let read: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(read.as_f64(), Some(written), "{text}");
        }
    }
}
