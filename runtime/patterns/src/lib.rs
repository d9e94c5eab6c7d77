//! Parts of long-lived agents, on top of [`a99_runtime`].
//!
//! Each part works alone. Those with data that must outlast a turn ([`SettingsManager`],
//! [`MissedContext`], [`ContextUsage`], [`Approvals`]) are values that an agent keeps in its
//! state, so that they commit with the turn. The others belong to a turn or to the awake agent.

#![warn(unreachable_pub)]

mod approval;
pub mod codes;
mod interrupt;
mod missed;
mod queue;
mod response;
mod roster;
mod settings;
mod standard;
mod text;
mod trackers;
mod usage;

pub use approval::{Answered, Approvals, Decision, Grant, METHOD as APPROVAL_METHOD, Question};
pub use interrupt::{AbortToken, Handler, InterruptController, PAUSE, RESUME};
pub use missed::{
    FormattedContext, MAX_CHARS, MAX_RESULT_CHARS, MissedContext, format_missed_context, render,
};
pub use queue::{MAX_QUEUED, MessageQueue, QueueOptions, QueueStats, Rejected};
pub use response::{Answer, ResponseManager};
pub use roster::{RosterTool, RosterTools, ToolOutcome, roster_to_tools, tool_result};
pub use settings::SettingsManager;
pub use standard::{
    MAX_TASKS, MAX_TITLE_CHARS, SET_TITLE, Todo, TodoStatus, WRITE_TASKS, call_standard_tool,
    standard_tools, with_standard_tools,
};
pub use trackers::{Action, Thinking, TrackerManager, Typing};
pub use usage::{ContextUsage, UsageReport, UsageTotals};

/// Compiles and runs the Rust examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/patterns.md")]
struct Guide;
