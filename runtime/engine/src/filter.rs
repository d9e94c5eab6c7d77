//! Filters of events: the part of its channel that an agent sees.
//!
//! They use the host's record of sender and receiver and the event's addressees; the sender's
//! claims about itself decide nothing.

use crate::event::{Body, Event, EventKind};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The events that an agent wants.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventOptions {
    /// Excludes messages addressed to others only; messages without addressees pass.
    pub targeted_only: bool,
    /// With `targeted_only`: all messages pass while all other participants are people.
    pub respond_when_solo: bool,
    /// Includes events from before the agent woke.
    pub include_replay: bool,
    /// Includes ephemeral events.
    pub include_ephemeral: bool,
    /// Excludes the agent's messages.
    pub skip_own_messages: bool,
    /// Also delivers calls of its methods to `on_event`.
    pub observe_calls: bool,
}

impl Default for EventOptions {
    /// The whole log except the agent's messages, without ephemeral events.
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

/// The receiving agent and its channel.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterContext {
    /// The agent's participant; `None` before it is known.
    pub self_id: Option<Uuid>,
    /// Whether all other participants of the channel are people (type `panel`).
    pub is_solo: bool,
}

/// Whether an event passes the agent's filter.
///
/// The order of the checks is: the agent's messages, ephemeral events, replayed events, then
/// the addressees of a message if only targeted ones are wanted.
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

/// Whether an event is debug output of agents, which no agent sees.
#[must_use]
pub fn is_agent_debug_event(event: &Event) -> bool {
    matches!(event.body, Body::AgentDebug { .. })
}
