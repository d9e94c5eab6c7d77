//! Rules of long-lived agents: keys, events, filters, migrations, and the delivery state
//! machine. Events go in, commands come out; there is no clock, no randomness and no I/O.
//!
//! `a99-runtime` is the host that executes the commands, with stores of `a99-runtime-stores`.

#![warn(unreachable_pub)]

pub mod codes;
mod delivery;
mod depth;
mod event;
mod filter;
#[cfg(any(test, feature = "testing"))]
pub mod history;
mod key;
mod merge;
mod migrate;
mod retry;
mod shards;
#[cfg(any(test, feature = "testing"))]
pub mod sim;
mod store;
mod tables;

pub use delivery::{
    Command, CommitFault, Delivery, Input, Machine, OnDead, Policy, Progress, Recovered, Started,
    StopReason, TurnEnd, TurnId, TurnResult,
};
pub use depth::{MAX_JSON_DEPTH, json_depth};
pub use event::{
    Attachment, Body, Event, EventKind, Message, PauseStatus, PresenceAction, Sender, TRACEPARENT,
};
pub use filter::{EventOptions, FilterContext, is_agent_debug_event, should_yield_event};
pub use key::{
    AgentKey, Epoch, KeyError, MAX_PART_BYTES, Millis, SHARDS, Seq, Trigger, check_part, derived,
    digest, published, unique,
};
pub use merge::{deep_merge, deep_merge_into, restricted};
pub use migrate::{Migrated, Migration, StateError, migrate};
pub use retry::Retry;
pub use shards::{Claim, Shards, TakeOver};
pub use store::{
    AgentRow, AgentStore, Appended, BoxFuture, ChannelStore, Damaged, DeadLetter, Fence,
    JournalRow, JournalStatus, KeptTurn, NewEvent, NewState, Receipt, Registration, StepClass,
    StoreCode, StoreError, TimerChange, TimerRow, TurnCommit,
};
pub use tables::{Row, RunResult, Statement, StepCount, TableTurn};
pub use uuid::Uuid;
