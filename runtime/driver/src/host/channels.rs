//! Channels for clients that are not in this process: what a channel server needs of a host.

use super::slots::Member;
use super::{Host, Publish, Published};
use crate::bus::{CallOptions, MethodCallHandle, Participant, find_participant};
use crate::error::AgentError;
use crate::event_bus::CHANNEL_CONFIG;
use crate::hub::locked;
use crate::metrics::Exposition;
use crate::roster::announced;
use crate::subscription::Subscription;
use a99_runtime_engine::{
    AgentStore, Appended, Body, ChannelStore, Event, EventKind, Fence, NewEvent, PresenceAction,
    Sender, StoreCode, StoreError, Uuid, check_part,
};
use serde_json::{Map, Value};
use std::sync::Arc;

impl Host {
    /// Writes the host's metrics ([`metrics::FAMILIES`](crate::metrics::FAMILIES)).
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn metrics(&self, to: &mut Exposition) -> Result<(), AgentError> {
        let shared = &self.0.shared;
        let hub = shared.hub();
        let outbox = match hub.remote() {
            Some(_) => shared.agents().outbox_len().await?,
            None => 0,
        };
        let looked = locked(&self.0.slots).looked(|channel| hub.known_head(channel));
        shared.metrics.write(looked, outbox, to);
        Ok(())
    }

    /// The store of the channels, for reads.
    #[must_use]
    pub fn channel_store(&self) -> &Arc<dyn ChannelStore> {
        self.0.shared.hub().store()
    }

    /// The store of the agents, for reads.
    #[must_use]
    pub fn agent_store(&self) -> &Arc<dyn AgentStore> {
        self.0.shared.agents()
    }

    /// Sends an event that only present participants get; no log has it.
    ///
    /// # Errors
    /// An invalid channel name; attachments, which ephemeral events have not; errors of the
    /// store.
    pub async fn publish_ephemeral(
        &self,
        channel: &str,
        body: Body,
        sender: Sender,
    ) -> Result<Arc<Event>, AgentError> {
        let event = Event {
            id: self.0.shared.fresh(),
            seq: None,
            kind: EventKind::Ephemeral,
            ts: self.0.shared.now(),
            sender: Arc::new(sender),
            hops: 0,
            body,
            attachments: Vec::new(),
        };
        self.pass(channel, event).await
    }

    async fn pass(&self, channel: &str, mut event: Event) -> Result<Arc<Event>, AgentError> {
        check_part("channel", channel)?;
        if let Body::Message(message) = &mut event.body
            && message.id.is_nil()
        {
            message.id = event.id;
        }
        self.0.shared.hub().pass(channel, event.clone()).await?;
        Ok(Arc::new(event))
    }

    /// Appends events of an agent whose host is elsewhere, all or none. The sender of each is
    /// the agent; an event whose identity is already in the log is not appended again.
    ///
    /// # Errors
    /// `store.fenced` if the agent wrote under a later epoch; `store.changed_body`;
    /// `store.input` if the events are not of the fence's agent; errors of the store.
    pub async fn append_of(
        &self,
        fence: Fence,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Appended>, AgentError> {
        let agent = fence.key.participant();
        for new in &events {
            check_part("channel", &new.channel)?;
            if new.event.sender.id != agent {
                let message = format!("an event to append is not of {}", fence.key);
                return Err(StoreError::new(StoreCode::Input, message).into());
            }
        }
        let now = self.0.shared.now();
        let hub = self.0.shared.hub();
        Ok(hub.append(events, Some(fence), now).await?)
    }

    /// Sends an ephemeral event of an agent whose host is elsewhere.
    ///
    /// # Errors
    /// Those of [`Host::publish_ephemeral`].
    pub async fn pass_of(&self, new: NewEvent) -> Result<Arc<Event>, AgentError> {
        let event = Event {
            ts: self.0.shared.now(),
            ..new.event
        };
        self.pass(&new.channel, event).await
    }

    /// Merges members into a channel's configuration, and announces them by an event of the type
    /// [`CHANNEL_CONFIG`].
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn configure_channel(
        &self,
        channel: &str,
        changes: Map<String, Value>,
        sender: Sender,
    ) -> Result<Value, AgentError> {
        let payload = Value::Object(changes);
        // Write first: a receiver of the event must find the new configuration.
        let store = self.channel_store();
        let merged = store
            .update_channel_config(channel, payload.clone())
            .await?;
        let body = Body::Custom {
            name: CHANNEL_CONFIG.to_owned(),
            payload,
        };
        self.publish(channel, of(body, sender)).await?;
        Ok(merged)
    }

    /// Names of the agents that can be invited, sorted.
    #[must_use]
    pub fn known_agents(&self) -> Vec<String> {
        self.0.known()
    }

    /// Replaces the metadata of a participant that joined, and announces it. Gives whether it is
    /// present.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn replace_metadata(
        &self,
        channel: &str,
        id: Uuid,
        metadata: Map<String, Value>,
    ) -> Result<bool, AgentError> {
        let _gate = self.0.membership.lock().await;
        let Some(who) = self.joined(channel, id) else {
            return Ok(false);
        };
        let who = Participant { metadata, ..who };
        self.replace(channel, who).await?;
        Ok(true)
    }

    /// Replaces what a participant that joined says about itself, except its handle, and
    /// announces it. Gives whether it is present.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn replace_participant(
        &self,
        channel: &str,
        who: Participant,
    ) -> Result<bool, AgentError> {
        let _gate = self.0.membership.lock().await;
        let Some(there) = self.joined(channel, who.id) else {
            return Ok(false);
        };
        let who = Participant {
            handle: there.handle,
            ..who
        };
        self.replace(channel, who).await?;
        Ok(true)
    }

    /// A participant that joined.
    fn joined(&self, channel: &str, id: Uuid) -> Option<Participant> {
        let present = locked(&self.0.slots).present(channel).into_iter();
        let mut joined = present.filter_map(|member| match member {
            Member::Joined(who) => Some(who),
            Member::Agent(..) => None,
        });
        joined.find(|who| who.id == id)
    }

    async fn replace(&self, channel: &str, who: Participant) -> Result<(), AgentError> {
        // First the roster, then the log: a reader of the event must find the change.
        locked(&self.0.slots).join(channel, who.clone());
        let update = PresenceAction::Update;
        self.announce(channel, &who, update, None, None).await
    }

    /// Removes a participant that joined, and records why: `graceful` or `disconnect`. Gives
    /// whether it was present.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn leave_because(
        &self,
        channel: &str,
        id: Uuid,
        reason: &str,
    ) -> Result<bool, AgentError> {
        let _gate = self.0.membership.lock().await;
        let left = locked(&self.0.slots).leave(channel, id);
        let Some(left) = left else { return Ok(false) };
        let leave = PresenceAction::Leave;
        self.announce(channel, &left, leave, Some(reason), None)
            .await?;
        Ok(true)
    }

    /// Publishes a presence event of a participant, under an idempotency key if there is one.
    pub(super) async fn announce(
        &self,
        channel: &str,
        who: &Participant,
        action: PresenceAction,
        reason: Option<&str>,
        key: Option<String>,
    ) -> Result<(), AgentError> {
        let sender = who.sender();
        let body = Body::Presence {
            action,
            leave_reason: reason.map(str::to_owned),
            metadata: announced(who.metadata.clone(), &sender),
        };
        let publish = Publish {
            key,
            ..of(body, sender)
        };
        self.publish(channel, publish).await.map(drop)
    }

    /// Calls a method of any participant of a channel, found by its handle or its identity. The
    /// call is durable when this returns. The timeout is the given one, then the method's, then one minute.
    ///
    /// # Errors
    /// `provider-not-found` with the handles of the channel; `method-not-found` with the existing
    /// methods; errors of the store.
    pub async fn call_participant(
        &self,
        channel: &str,
        caller: Sender,
        provider: &str,
        method: &str,
        args: Value,
        options: CallOptions,
    ) -> Result<MethodCallHandle, AgentError> {
        let roster = self.roster(channel);
        let found = find_participant(&roster, provider).map_err(AgentError::fatal)?;
        self.call_of(channel, caller, found, method, args, options)
            .await
    }

    pub(super) async fn call_of(
        &self,
        channel: &str,
        caller: Sender,
        provider: &Participant,
        method: &str,
        args: Value,
        options: CallOptions,
    ) -> Result<MethodCallHandle, AgentError> {
        let advertised = provider.check_method(method)?;
        let call_id = options.id.unwrap_or_else(|| self.0.shared.fresh());
        let body = Body::MethodCall {
            call_id,
            method_name: method.to_owned(),
            provider_id: provider.id,
            args,
        };
        let publish = Publish {
            key: options.id.map(|id| id.to_string()),
            ..of(body, caller)
        };
        let Published { event, .. } = self.publish(channel, publish).await?;
        let hub = self.0.shared.hub();
        let results = Subscription::new(hub, channel, event.seq, false).await?;
        let limits = [options.timeout, advertised];
        Ok(MethodCallHandle::new(
            call_id,
            provider.id,
            results,
            limits,
            None,
        ))
    }
}

/// An event without key and attachments.
pub(super) fn of(body: Body, sender: Sender) -> Publish {
    Publish {
        body,
        sender,
        key: None,
        attachments: Vec::new(),
    }
}

impl Participant {
    /// The sender of the participant's events.
    #[must_use]
    pub fn sender(&self) -> Sender {
        Sender {
            id: self.id,
            name: Some(self.name.clone()),
            kind: Some(self.kind.clone()),
            handle: Some(self.handle.clone()),
        }
    }
}
