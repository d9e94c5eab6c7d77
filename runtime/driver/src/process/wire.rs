//! Wire: the messages between host and process.

use crate::agent::{ConnectOptions, Identity};
use crate::bus::Participant;
use crate::runner::Work;
use a99_runtime_engine::{
    Attachment, Body, Delivery, Epoch, EventOptions, Millis, Policy, Sender, Seq, TimerChange,
    Trigger, Uuid,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The protocol version; both ends must have the same.
pub(crate) const PROTOCOL: u32 = 1;

/// The first request of a process.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    pub(crate) token: String,
    /// Names of the agents that it runs.
    pub(crate) agents: Vec<String>,
}

/// Creates an agent's value in the process, under a number.
#[derive(Serialize, Deserialize)]
pub(crate) struct Make {
    pub(crate) agent: u64,
    pub(crate) identity: Identity,
}

/// The declarations of an agent type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Declared {
    pub(crate) policy: Policy,
    pub(crate) turn_timeout: Millis,
    pub(crate) events: EventOptions,
    pub(crate) version: u32,
    pub(crate) methods: Value,
    /// Migrations of its tables.
    pub(crate) tables: Option<Vec<String>>,
    pub(crate) settings: Value,
    /// The options for joining a new channel.
    pub(crate) connect: ConnectOptions,
    /// JSON of the state of a new agent.
    pub(crate) initial: String,
}

/// A state that was read and migrated to the agent's version.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReadState {
    pub(crate) state: String,
    pub(crate) backups: Vec<(u32, Value)>,
}

/// A turn to run.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunTurn {
    pub(crate) turn: Uuid,
    pub(crate) epoch: Epoch,
    pub(crate) agent: u64,
    pub(crate) sender: Arc<Sender>,
    pub(crate) trigger: Trigger,
    pub(crate) attempt: u32,
    pub(crate) delivery: Delivery,
    pub(crate) hops: u8,
    pub(crate) checkpoint: Seq,
    #[serde(default)]
    pub(crate) replays: u64,
    pub(crate) has_tables: bool,
    pub(crate) has_ai: bool,
    pub(crate) has_log: bool,
    pub(crate) now: Millis,
    pub(crate) presence: Present,
    pub(crate) work: Work,
    pub(crate) state: String,
    pub(crate) settings: Value,
}

/// The participants of the channel, and the agents that can be invited.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Present {
    pub(crate) roster: Vec<Participant>,
    pub(crate) known: Vec<String>,
}

/// An event that a turn sends. The host sets channel, sender and hops.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sending {
    pub(crate) id: Uuid,
    pub(crate) body: Body,
    pub(crate) attachments: Vec<Attachment>,
}

/// The output of a handler.
#[derive(Serialize, Deserialize)]
pub(crate) struct TurnEnd {
    pub(crate) state: String,
    pub(crate) settings: Option<Value>,
    pub(crate) answer: Option<Value>,
    /// Attachments of the answer.
    #[serde(default)]
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) outbox: Vec<Sending>,
    pub(crate) timers: Vec<TimerChange>,
}

/// A request of a turn: the attempt's token and epoch, and the parameters.
#[derive(Serialize, Deserialize)]
pub(crate) struct OfTurn<T> {
    pub(crate) turn: Uuid,
    pub(crate) epoch: Epoch,
    pub(crate) params: T,
}

/// A statement on the agent's tables.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) sql: String,
    pub(crate) params: Vec<Value>,
    /// The step limit.
    pub(crate) steps: Option<u64>,
    pub(crate) repeatable: bool,
    pub(crate) first: bool,
}

/// The result of a statement, and the steps that it took.
#[derive(Serialize, Deserialize)]
pub(crate) struct Told<T> {
    pub(crate) taken: u64,
    pub(crate) done: Result<T, super::frame::WireError>,
}

/// Notification of a new head of the turn's channel.
#[derive(Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) turn: Uuid,
    pub(crate) seq: Seq,
}
