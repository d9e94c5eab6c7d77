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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Message, Sender};
    use serde_json::json;
    use std::sync::Arc;

    const ME: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    fn event(sender: Uuid, kind: EventKind, body: Body) -> Event {
        Event {
            id: Uuid::nil(),
            seq: None,
            kind,
            ts: 0,
            sender: Arc::new(Sender {
                id: sender,
                ..Sender::default()
            }),
            hops: 0,
            body,
            attachments: Vec::new(),
        }
    }

    fn to(at: &[Uuid]) -> Body {
        Body::Message(Message {
            at: at.to_vec(),
            ..Message::text("x")
        })
    }

    /// Each combination of options, context, kind, sender and addressees, beside the rules in
    /// their order.
    #[test]
    fn rules_apply_in_their_order() {
        let custom = Body::Custom {
            name: "n".to_owned(),
            payload: json!(1),
        };
        let debug = Body::AgentDebug { payload: json!(1) };
        let cancel = Body::MethodCancel { call_id: ME };
        let bodies = [
            custom,
            debug,
            cancel,
            to(&[]),
            to(&[ME]),
            to(&[OTHER, ME]),
            to(&[OTHER]),
        ];
        let kinds = [
            EventKind::Replay,
            EventKind::Persisted,
            EventKind::Ephemeral,
        ];
        let mut passed = 0;
        for bits in 0..128_u32 {
            let bit = |n: u32| bits >> n & 1 == 1;
            let options = EventOptions {
                targeted_only: bit(0),
                respond_when_solo: bit(1),
                include_replay: bit(2),
                include_ephemeral: bit(3),
                skip_own_messages: bit(4),
                observe_calls: false,
            };
            let context = FilterContext {
                self_id: bit(5).then_some(ME),
                is_solo: bit(6),
            };
            for (n, body) in bodies.iter().enumerate() {
                for (kind, sender) in kinds
                    .into_iter()
                    .flat_map(|kind| [(kind, ME), (kind, OTHER)])
                {
                    let event = event(sender, kind, body.clone());
                    let yields = should_yield_event(&event, options, context);
                    assert_eq!(is_agent_debug_event(&event), n == 1);
                    let expected = match (n, kind) {
                        (1 | 2, _) => false,
                        _ if sender == ME && bit(5) && bit(4) => false,
                        (_, EventKind::Ephemeral) if !bit(3) => false,
                        (_, EventKind::Replay) if !bit(2) => false,
                        (0 | 3, _) => true,
                        _ if !bit(0) => true,
                        (4 | 5, _) if bit(5) => true,
                        _ => bit(1) && bit(5) && bit(6),
                    };
                    assert_eq!(yields, expected, "{bits:b} {n} {kind:?} {sender}");
                    passed += u32::from(yields);
                }
            }
        }
        assert!((1_000..4_000).contains(&passed), "{passed}");
    }
}
