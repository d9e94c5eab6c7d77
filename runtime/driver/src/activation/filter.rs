//! Filter of an activation: which events the agent gets, and which keep it awake.

use super::{Activation, Subject};
use crate::error::codes;
use crate::log::LogLevel;
use a99_runtime_engine::{Body, Event, EventOptions, FilterContext, should_yield_event};

impl Activation {
    /// Whether the agent has work that keeps it awake: news of who came and left does not.
    pub(super) fn is_active(&self) -> bool {
        let mut subjects = self.subjects.values();
        !self.group_commit.is_empty()
            || subjects.any(|it| !matches!(it, Subject::Event(event) if !event.body.wakes()))
    }

    /// Whether the agent gets an event. It relies on the host's record of the sender, not on
    /// the sender's claims.
    pub(super) fn wants(&self, event: &Event) -> bool {
        let is_wanted = self.passes_filter(event, self.filter);
        if !is_wanted && self.filter.targeted_only {
            let untargeted = EventOptions {
                targeted_only: false,
                ..self.filter
            };
            if self.passes_filter(event, untargeted) {
                self.runner.on_filtered(event);
            }
        }
        let max = self.shared.options.max_hops;
        if is_wanted && event.hops > max {
            self.warn_hop_limit(event, max);
        }
        is_wanted && event.hops <= max
    }

    /// Warns that an event passed through too many agents: the agents answer each other.
    fn warn_hop_limit(&self, event: &Event, max: u8) {
        let (key, sender) = (&self.fence.key, &event.sender);
        let who = sender.handle.as_deref().or(sender.name.as_deref());
        let message = format!(
            "event {} of @{} came through {} agents, of at most {max}: it is not handled; agents \
             on `{}` answer each other",
            event.seq.unwrap_or_default(),
            who.unwrap_or("unknown"),
            event.hops,
            key.channel(),
        );
        let log = &self.shared.log;
        log.say(LogLevel::Warn, Some(key), codes::HOP_LIMIT, &message);
        self.status.send_modify(|status| status.hop_limited += 1);
    }

    fn passes_filter(&self, event: &Event, filter: EventOptions) -> bool {
        let me = self.sender.id;
        if let Body::MethodCall { provider_id, .. } = &event.body
            && !filter.observe_calls
        {
            return *provider_id == me;
        }
        let is_solo =
            filter.respond_when_solo && self.shared.presence.is_solo(self.fence.key.channel(), me);
        let context = FilterContext {
            self_id: Some(me),
            is_solo,
        };
        should_yield_event(event, filter, context)
    }
}
