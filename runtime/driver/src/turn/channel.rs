//! Channel of a turn: what changes on it, what was said before, and the agent's place there.

use super::TurnClient;
use crate::changes::Changes;
use crate::connection::ConnectionStatus;
use crate::error::{AgentError, codes};
use crate::event_bus::{HISTORY_EVENTS, HistoryPage};
use crate::roster::{self, ReadRoster, RosterChange, ToolRoleConflict, announced};
use crate::subscription::Subscription;
use a99_runtime_engine::{Body, Event, PresenceAction, Seq, deep_merge, deep_merge_into};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum events of a page of history.
const PAGE_EVENTS: usize = 500;

impl TurnClient {
    /// The events of the channel from now on.
    async fn events(&self) -> Result<Subscription, AgentError> {
        self.0.settled().await?;
        let (hub, channel) = (self.0.shared.hub(), self.0.fence.key.channel());
        Ok(Subscription::new(hub, channel, None, false).await?)
    }

    /// Reads the roster as long as the turn lasts.
    fn read_roster(&self) -> ReadRoster {
        let client = self.clone();
        Arc::new(move || {
            let client = client.clone();
            Box::pin(async move {
                client.0.going_on()?;
                client.0.shared.presence.refresh().await?;
                Ok(client.roster())
            })
        })
    }

    pub(crate) async fn roster_changes(&self) -> Result<Changes<RosterChange>, AgentError> {
        let events = self.events().await?;
        roster::roster_changes(events, self.now(), self.read_roster()).await
    }

    pub(crate) async fn conflicts(&self) -> Result<Changes<ToolRoleConflict>, AgentError> {
        let events = self.events().await?;
        roster::conflict_changes(events, self.read_roster()).await
    }

    pub(crate) async fn titles(&self) -> Result<Changes<String>, AgentError> {
        Ok(roster::title_changes(self.events().await?))
    }

    pub(crate) fn describe(&self, metadata: Map<String, Value>) -> Result<(), AgentError> {
        let body = Body::Presence {
            action: PresenceAction::Update,
            leave_reason: None,
            metadata: announced(metadata, &self.0.sender),
        };
        self.0.check_open()?;
        let id = self.0.operation("metadata", None)?;
        let event = self.0.event(id, body, Vec::new());
        // In every delivery mode: the store keeps what a commit announces.
        self.0.change(|changes| changes.outbox.push(event))
    }

    /// The effective settings with the changes of this turn.
    pub(crate) fn settings_now(&self) -> Result<Value, AgentError> {
        let began = self.0.settings.get();
        let began = began.map_or_else(|| json!({}), |began| Value::clone(began));
        self.0.change(|changes| match &changes.settings {
            Some(changed) => deep_merge(&began, changed),
            None => began,
        })
    }

    /// Whether the turn changed the settings.
    pub(crate) fn has_new_settings(&self) -> bool {
        let has = self.0.change(|changes| changes.settings.is_some());
        has.unwrap_or_default()
    }

    pub(crate) fn change_settings(&self, partial: &Value) -> Result<(), AgentError> {
        if !partial.is_object() {
            let message = format!("settings are an object, not {partial:.40}");
            return Err(AgentError::new(codes::BAD_VALUE, message).fatal());
        }
        self.0.change(|changes| {
            deep_merge_into(changes.settings.get_or_insert_with(|| json!({})), partial);
        })
    }

    pub(crate) async fn page_before(
        &self,
        before: Seq,
        limit: usize,
    ) -> Result<HistoryPage, AgentError> {
        self.0.settled().await?;
        let store = self.0.shared.hub().store();
        let (channel, most) = (self.0.fence.key.channel(), limit.clamp(1, PAGE_EVENTS));
        let mut events = store.read_before(channel, before, most).await?;
        events.reverse();
        // Sequence numbers are dense and begin at one.
        let first = events.first().and_then(|event| event.seq);
        Ok(HistoryPage {
            has_more: first.is_some_and(|seq| seq > 1),
            events,
        })
    }

    pub(crate) async fn head(&self) -> Result<Seq, AgentError> {
        self.0.settled().await?;
        let store = self.0.shared.hub().store();
        Ok(store.head(self.0.fence.key.channel()).await?)
    }

    pub(crate) async fn missed(&self) -> Result<Vec<Arc<Event>>, AgentError> {
        self.0.settled().await?;
        let store = self.0.shared.hub().store();
        let after = self.0.trigger.seq().unwrap_or(0).max(self.0.checkpoint);
        let channel = self.0.fence.key.channel();
        let mut events = store.read(channel, after, HISTORY_EVENTS).await?;
        let me = self.0.sender.id;
        events.retain(|event| event.body.wakes() && event.sender.id != me);
        Ok(events)
    }

    /// The status of the bus: closed after [`EventBus::close`](crate::EventBus::close).
    pub(crate) fn status(&self) -> ConnectionStatus {
        match self.0.is_closed.load(Ordering::Acquire) || self.0.going_on().is_err() {
            true => ConnectionStatus::Closed,
            false => self.0.shared.connection.status(),
        }
    }

    pub(crate) async fn close_bus(&self) -> Result<(), AgentError> {
        self.0.settled().await?;
        let key = self.0.fence.key.clone();
        self.0.shared.presence.close(key).await?;
        self.0.is_closed.store(true, Ordering::Release);
        Ok(())
    }
}
