//! Filters of events: what an agent sees of its channel.
//!
//! They look at what the host knows of sender and receiver and at the event's addressees;
//! nothing that a sender writes about itself decides.

use crate::event::{Body, Event, EventKind};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What an agent wants to see.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventOptions {
    /// Messages that name others only are left out; those that name nobody are not.
    pub targeted_only: bool,
    /// With `targeted_only`: all messages, while only people are there beside the agent.
    pub respond_when_solo: bool,
    /// What came before the agent was awake.
    pub include_replay: bool,
    /// What is in no log.
    pub include_ephemeral: bool,
    /// What the agent said itself is left out.
    pub skip_own_messages: bool,
    /// Calls of its methods reach `on_event` too.
    pub observe_calls: bool,
}

impl Default for EventOptions {
    /// All of the log but the agent's own messages; nothing that is in no log.
    fn default() -> EventOptions {
        EventOptions {
            targeted_only: false,
            respond_when_solo: false,
            include_replay: true,
            include_ephemeral: false,
            skip_own_messages: true,
            observe_calls: false,
        }
    }
}

/// Who looks, and who is there beside.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterContext {
    /// The agent's participant; none before it is known.
    pub self_id: Option<Uuid>,
    /// Whether everybody else on the channel is a person (type `panel`).
    pub is_solo: bool,
}

/// Whether an event reaches the agent.
///
/// In order: own messages, what is in no log, what came before; then a message that names
/// addressees, where only those are wanted.
#[must_use]
pub fn should_yield_event(event: &Event, options: EventOptions, context: FilterContext) -> bool {
    let is_own = context.self_id == Some(event.sender.id);
    if is_agent_debug_event(event) || matches!(event.body, Body::MethodCancel { .. }) {
        return false;
    }
    if is_own && options.skip_own_messages {
        return false;
    }
    if event.kind == EventKind::Ephemeral && !options.include_ephemeral {
        return false;
    }
    if event.kind == EventKind::Replay && !options.include_replay {
        return false;
    }
    match &event.body {
        Body::Message(message) if options.targeted_only => {
            message.at.is_empty()
                || context.self_id.is_some_and(|id| message.at.contains(&id))
                || (options.respond_when_solo && context.self_id.is_some() && context.is_solo)
        }
        _ => true,
    }
}

/// Whether an event is about agents' output and lives: no agent sees those.
#[must_use]
pub fn is_agent_debug_event(event: &Event) -> bool {
    matches!(event.body, Body::AgentDebug { .. })
}
