//! Requests of a pusher and their answers, as `docs/push.md` lists them.

use a99_runtime::{AgentKey, Event, Participant, Seq};
use a99_runtime_engine::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The path of [`Init`] below the receiver's address.
pub const INIT: &str = "/v1/push/init";
/// The path of [`Events`].
pub const EVENTS: &str = "/v1/push/events";
/// The path of [`Shutdown`].
pub const SHUTDOWN: &str = "/v1/push/shutdown";

/// Maximum events of a request, logged and ephemeral.
pub const MAX_EVENTS: usize = 500;

/// Makes an agent one of its channel, or changes its configuration.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Init {
    /// The agent.
    pub agent: AgentKey,
    /// Its configuration.
    #[serde(default)]
    pub config: Value,
}

/// Events of an agent's channel. Without events it only lets due timers fire.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// The agent.
    pub agent: AgentKey,
    /// Events of the log, with their sequence numbers.
    #[serde(default)]
    pub events: Vec<Arc<Event>>,
    /// The last sequence number of the log.
    #[serde(default)]
    pub head: Seq,
    /// Events that are in no log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ephemeral: Vec<Arc<Event>>,
}

/// Ends an agent: its state remains.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {
    /// The agent.
    pub agent: AgentKey,
}

/// The answer to each request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The last event up to which all are handled; this is durable.
    pub checkpoint: Seq,
    /// Events of the request that were new.
    #[serde(default)]
    pub accepted: usize,
    /// Events of the request that were handled before.
    #[serde(default)]
    pub duplicate: usize,
    /// After how many milliseconds to ask again, if the work goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// When to send a request without events: a timer is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Millis>,
    /// What the agent is as a participant of its channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<Participant>,
}
