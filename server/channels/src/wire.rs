//! Messages of the protocol: parameters and results, as `docs/channels.md` lists them.

use a99_frame::FrameError;
use a99_runtime::{AgentKey, Attachment, Body, Event, Participant, Seq, Uuid};
use a99_runtime_engine::{Epoch, Fence, NewEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The version of the protocol. A server refuses clients of another one.
pub const PROTOCOL: u32 = 1;

/// The path of the socket on a server.
pub const SOCKET_PATH: &str = "/v1/socket";

/// Names of requests.
pub mod methods {
    /// Opens the session: the first request.
    pub const HELLO: &str = "hello";
    /// Adds a participant to a channel.
    pub const JOIN: &str = "join";
    /// Replaces the metadata of a participant.
    pub const UPDATE_METADATA: &str = "update-metadata";
    /// Removes a participant.
    pub const LEAVE: &str = "leave";
    /// Begins to send a channel's events.
    pub const SUBSCRIBE: &str = "subscribe";
    /// Ends that.
    pub const UNSUBSCRIBE: &str = "unsubscribe";
    /// Publishes an event.
    pub const PUBLISH: &str = "publish";
    /// Appends events of agents whose host is elsewhere.
    pub const APPEND: &str = "append";
    /// Reads events after a sequence number.
    pub const READ: &str = "read";
    /// Reads events before a sequence number.
    pub const HISTORY: &str = "history";
    /// Finds an event by its identity.
    pub const FIND: &str = "find";
    /// The last sequence number of a channel.
    pub const HEAD: &str = "head";
    /// The channels that the token may read, with their heads.
    pub const CHANNELS: &str = "channels";
    /// The participants of a channel.
    pub const ROSTER: &str = "roster";
    /// The configuration of a channel.
    pub const CONFIG: &str = "config";
    /// Changes it.
    pub const CONFIGURE: &str = "configure";
    /// Calls a participant's method and waits for its answer.
    pub const CALL: &str = "call";
    /// The agents that can be invited, and those of the channel.
    pub const AGENTS: &str = "agents";
    /// Invites an agent.
    pub const INVITE: &str = "invite";
    /// Removes an agent.
    pub const REMOVE: &str = "remove";
}

/// Names of notifications.
pub mod notices {
    /// An event of a subscription, from the server.
    pub const EVENT: &str = "event";
    /// The participants of a subscribed channel, from the server, after each change.
    pub const ROSTER: &str = "roster";
    /// The end of a subscription by an error, from the server.
    pub const ENDED: &str = "ended";
    /// More events that a client takes.
    pub const CREDIT: &str = "credit";
    /// Cancels a request of the client.
    pub const CANCEL: &str = "cancel";
}

/// Parameters of `hello`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`]
    pub protocol: u32,
    /// The token, unless a header has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Result of `hello`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// [`PROTOCOL`]
    pub protocol: u32,
    /// The version of the server.
    pub server: String,
    /// The identity of events that the client publishes without having joined.
    pub participant: Uuid,
    /// The token's scopes.
    pub scopes: Vec<String>,
    /// How often the server pings, in milliseconds.
    pub ping_ms: u64,
    /// Maximum bytes of a message.
    pub max_message_bytes: usize,
}

/// Parameters of `join`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Join {
    /// The channel.
    pub channel: String,
    /// The handle, without `@`.
    pub handle: String,
    /// The display name; the token's by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `panel` for people; `client` by default.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Methods that others may call.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub methods: Value,
    /// Further metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The agent's key, of hosts of agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentKey>,
}

/// Result of `join`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Joined {
    /// The participant's identity.
    pub participant: Uuid,
    /// The participants of the channel.
    pub roster: Vec<Participant>,
}

/// Parameters that name a channel.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfChannel {
    /// The channel.
    pub channel: String,
}

/// Parameters of `leave`, and of `update-metadata`, which has `metadata`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfParticipant {
    /// The channel.
    pub channel: String,
    /// The participant, which this connection joined.
    pub participant: Uuid,
    /// The new metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Parameters of `subscribe`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subscribe {
    /// The number that notifications carry, chosen by the client.
    pub subscription: u64,
    /// The channel.
    pub channel: String,
    /// Events after this sequence number; only new ones by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seq>,
    /// Also events that are in no log.
    #[serde(default)]
    pub ephemeral: bool,
    /// Also the roster, at once and after each change.
    #[serde(default)]
    pub roster: bool,
    /// How many events the client takes before it grants more; without it, any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u32>,
}

/// Result of `subscribe`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Subscribed {
    /// The sequence number after which events are sent.
    pub after: Seq,
    /// The last sequence number of the channel.
    pub head: Seq,
}

/// Parameters of `unsubscribe`, and of the notification `credit`, which has `events`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfSubscription {
    /// The number of the subscription.
    pub subscription: u64,
    /// How many more events the client takes.
    #[serde(default)]
    pub events: u32,
}

/// An attachment whose bytes follow the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttachmentMeta {
    /// Its identity within the event; a number by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its media type.
    pub mime_type: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Bytes that belong to it.
    pub size: usize,
}

/// Parameters of `publish`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Publish {
    /// The channel.
    pub channel: String,
    /// The content of the event.
    pub body: Body,
    /// The sender, which this connection joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<Uuid>,
    /// Idempotency key: publishing again under it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the log gets it; otherwise only present participants do.
    #[serde(default = "is_persisted")]
    pub persist: bool,
    /// Attachments, whose bytes follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentMeta>,
}

fn is_persisted() -> bool {
    true
}

/// Result of `publish`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The event's identity; that of the message for a message without its own.
    pub id: Uuid,
    /// The sequence number; none for an event that is in no log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// Whether this request appended it; false if the key was used before.
    pub is_new: bool,
}

/// Parameters of `append`: events of one agent, in order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Append {
    /// The agent.
    pub agent: AgentKey,
    /// The epoch under which its host owns it.
    pub epoch: Epoch,
    /// The events.
    pub events: Vec<AgentEvent>,
}

/// An event of an agent whose host is elsewhere.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentEvent {
    /// The channel.
    pub channel: String,
    /// The event's identity: appending again under it has no effect.
    pub id: Uuid,
    /// Number of agents that the chain of events passed through.
    pub hops: u8,
    /// The content.
    pub body: Body,
    /// Whether the log gets it.
    #[serde(default = "is_persisted")]
    pub persist: bool,
    /// Attachments, whose bytes follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentMeta>,
}

/// Result of `append`, for each event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// The sequence number; none for an event that is in no log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// When the server received it.
    pub ts: u64,
    /// Whether this request appended it.
    pub is_new: bool,
}

/// Parameters of `read` (events after `at`) and `history` (before it, newest first).
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The channel.
    pub channel: String,
    /// The sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Seq>,
    /// Maximum events; at most [`MAX_READ`].
    #[serde(default = "page")]
    pub limit: usize,
}

fn page() -> usize {
    100
}

/// Maximum events of one answer.
pub const MAX_READ: usize = 500;

/// Result of `read`, `history` and `find`: events without bytes of attachments, which follow in
/// the order of the events.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Events {
    /// The events.
    pub events: Vec<Sent>,
    /// Whether the channel has more in that direction.
    pub has_more: bool,
}

/// An event on the wire.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sent {
    /// The event, without attachments.
    pub event: Arc<Event>,
    /// Its attachments, whose bytes follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentMeta>,
}

/// The notification `event`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Delivered {
    /// The subscription.
    pub subscription: u64,
    /// The event, without attachments.
    pub event: Arc<Event>,
    /// Its attachments, whose bytes follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentMeta>,
}

/// The notification `roster`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Roster {
    /// The subscription.
    pub subscription: u64,
    /// The participants.
    pub participants: Vec<Participant>,
}

/// The notification `ended`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The subscription.
    pub subscription: u64,
    /// Why it ended.
    pub error: a99_frame::WireError,
}

/// Parameters of `find`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Find {
    /// The channel.
    pub channel: String,
    /// The event's identity.
    pub id: Uuid,
}

/// Parameters of `configure`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configure {
    /// The channel.
    pub channel: String,
    /// Members to replace.
    pub changes: Map<String, Value>,
    /// Whether the channel gets an event of the type `channel-config`.
    #[serde(default = "is_persisted")]
    pub announce: bool,
}

/// Parameters of `call`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Call {
    /// The channel.
    pub channel: String,
    /// The callee's handle.
    pub provider: String,
    /// The method.
    pub method: String,
    /// The arguments.
    #[serde(default)]
    pub args: Value,
    /// The caller, which this connection joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<Uuid>,
    /// The call's identity: asking again with it gives the answer of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Uuid>,
    /// The timeout; the method's by default, then one minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Parameters of `invite` and `remove`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invite {
    /// The agent.
    pub agent: AgentKey,
    /// Its configuration.
    #[serde(default)]
    pub config: Value,
}

/// Result of `agents`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Agents {
    /// Names of the agents that can be invited.
    pub known: Vec<String>,
    /// The agents of the channel.
    pub agents: Vec<AgentKey>,
}

/// Separates an event from the bytes of its attachments, which are appended to `bytes`.
pub(crate) fn detach(event: &Arc<Event>, bytes: &mut Vec<u8>) -> Sent {
    if event.attachments.is_empty() {
        return Sent {
            event: Arc::clone(event),
            attachments: Vec::new(),
        };
    }
    let mut bare = Event::clone(event);
    let attachments = detached(std::mem::take(&mut bare.attachments), bytes);
    Sent {
        event: Arc::new(bare),
        attachments,
    }
}

/// Describes attachments, and appends their bytes.
pub(crate) fn detached(attachments: Vec<Attachment>, bytes: &mut Vec<u8>) -> Vec<AttachmentMeta> {
    let described = attachments.into_iter().map(|one| {
        bytes.extend(&one.data);
        AttachmentMeta {
            id: Some(one.id),
            mime_type: one.mime_type,
            name: one.name,
            size: one.data.len(),
        }
    });
    described.collect()
}

/// Takes the attachments of one event from the bytes of a message.
///
/// # Errors
/// There are fewer bytes than the attachments have.
pub(crate) fn attach(
    metas: Vec<AttachmentMeta>,
    bytes: &mut &[u8],
) -> Result<Vec<Attachment>, FrameError> {
    let taken = metas.into_iter().enumerate().map(|(n, meta)| {
        let (data, rest) = bytes.split_at_checked(meta.size).ok_or_else(|| {
            let have = bytes.len();
            FrameError::Malformed(format!("attachment {n} has {} bytes of {have}", meta.size))
        })?;
        *bytes = rest;
        Ok(Attachment {
            id: meta.id.unwrap_or_else(|| n.to_string()),
            mime_type: meta.mime_type,
            name: meta.name,
            data: data.to_vec(),
        })
    });
    taken.collect()
}

/// Takes the attachments of the only event of a message: all of its bytes belong to them.
///
/// # Errors
/// There are fewer bytes than the attachments have, or more.
pub(crate) fn attach_all(
    metas: Vec<AttachmentMeta>,
    mut bytes: &[u8],
) -> Result<Vec<Attachment>, FrameError> {
    let attachments = attach(metas, &mut bytes)?;
    match bytes.len() {
        0 => Ok(attachments),
        left => Err(FrameError::Malformed(format!(
            "{left} bytes belong to no attachment"
        ))),
    }
}

/// Joins an event with its attachments again.
///
/// # Errors
/// Those of [`attach`].
pub(crate) fn whole(sent: Sent, bytes: &mut &[u8]) -> Result<Arc<Event>, FrameError> {
    if sent.attachments.is_empty() {
        return Ok(sent.event);
    }
    let mut event = Arc::unwrap_or_clone(sent.event);
    event.attachments = attach(sent.attachments, bytes)?;
    Ok(Arc::new(event))
}

impl AgentEvent {
    /// An event of an agent as it is sent to a server. The bytes of its attachments are appended
    /// to `bytes`.
    #[must_use]
    pub fn of(new: NewEvent, persist: bool, bytes: &mut Vec<u8>) -> AgentEvent {
        let event = new.event;
        AgentEvent {
            channel: new.channel,
            id: event.id,
            hops: event.hops,
            body: event.body,
            persist,
            attachments: detached(event.attachments, bytes),
        }
    }
}

impl Append {
    /// The fencing token of the request.
    pub(crate) fn fence(&self) -> Fence {
        Fence {
            key: self.agent.clone(),
            epoch: self.epoch,
        }
    }
}
