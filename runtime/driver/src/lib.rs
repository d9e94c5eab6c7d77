//! Long-lived agents: durable state, events, timers and exactly-once delivery inside your
//! process.
//!
//! A [`Host`] runs agents, types that implement [`Agent`]. Each agent is on a channel whose log
//! gives every event a sequence number. An agent handles an event in a turn. A turn is one
//! transaction: state, progress, sent events and timers commit together.

#![warn(unreachable_pub)]

mod activation;
mod agent;
mod bus;
mod calls;
mod changes;
mod connection;
mod context;
mod conversation;
mod cron;
mod error;
mod event_bus;
mod host;
mod hub;
mod kill;
mod log;
mod metered;
mod methods;
pub mod metrics;
mod options;
#[cfg(unix)]
mod process;
pub mod program;
mod publishing;
mod roster;
mod runner;
mod shared;
mod states;
mod step;
mod subscription;
#[cfg(feature = "testing")]
pub mod suite;
mod tables;
mod trace;
mod transport;
mod turn;

pub use a99_runtime_engine::{
    AgentKey, Attachment, Body, DeadLetter, Delivery, Event, EventKind, EventOptions, KeyError,
    Message, Migration, OnDead, PauseStatus, Policy, PresenceAction, Retry, Row, RunResult, Sender,
    Seq, Shards, StepClass, StepCount, TimerRow, Trigger, Uuid, deep_merge, is_agent_debug_event,
    should_yield_event,
};
pub use agent::{Agent, Alarm, ConnectOptions, Identity, Replay, TurnOutcome};
pub use bus::{CallOptions, Chunk, MethodAnswer, MethodCallHandle, Participant, find_participant};
pub use changes::Changes;
pub use connection::{ConnectionStatus, Reports};
pub use context::{
    ContextParts, EMBEDDED, OnAdvance, PROCESS, RuntimeContext, StorageApi, create_runtime_context,
};
pub use conversation::{Said, Speaker, conversation};
pub use cron::next as next_occurrence;
pub use error::{AgentError, codes};
pub use event_bus::{
    CHANNEL_CONFIG, EventBus, HISTORY_EVENTS, HistoryPage, MethodResult, tool_role_winner,
};
pub use host::{
    AgentInfo, AgentRunEnd, Handling, Held, Host, HostBuilder, HostShards, Publish, Published,
    RunAgentOptions, run_agent,
};
pub use log::{AgentLogger, LogEntry, LogLevel};
pub use methods::{Method, MethodCall, Methods};
pub use options::HostOptions;
#[cfg(unix)]
pub use process::{AgentProcess, MAX_FRAME_BYTES, Process};
pub use publishing::Publishing;
pub use roster::{RosterChange, ToolRoleConflict};
pub use states::{StateChange, StateSubscription};
pub use step::Step;
pub use subscription::Subscription;
pub use tables::{Storage, SyncStorage, Tables};
pub use trace::Propagation;
pub use transport::{Passing, Transport};
pub use turn::{SendOptions, Sent, Turn, TurnClient, UpdateOptions};

/// Compiles and runs the Rust examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/runtime.md")]
struct Guide;

/// Compiles the Rust examples of the page about metrics.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/observability.md")]
struct Observability;

/// Compiles and runs the target of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/targets.md")]
struct Targets;
