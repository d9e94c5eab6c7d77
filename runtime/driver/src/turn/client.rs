//! Operations of a turn: messages, calls, steps, timers.

use super::{SendOptions, Sent, TurnClient, UpdateOptions};
use crate::agent::Identity;
use crate::bus::{CallOptions, MethodCallHandle, Participant, find_participant};
use crate::error::{AgentError, codes};
use crate::log::LogLevel;
use crate::step::Step;
use crate::subscription::Subscription;
use a99_capabilities::AiProvider;
use a99_runtime_engine::{
    Attachment, Body, Event, Message, Millis, NewEvent, PauseStatus, Seq, TimerChange, TimerRow,
    Trigger, Uuid, derived,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The end of a message.
fn completed(id: Uuid) -> Body {
    Body::UpdateMessage {
        id,
        content: None,
        complete: true,
        content_type: None,
    }
}

impl TurnClient {
    /// The agent's key and configuration.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// The event, timer or hook that triggered the turn.
    #[must_use]
    pub fn trigger(&self) -> &Trigger {
        &self.0.trigger
    }

    /// The number of this attempt in the current activation, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// The last sequence number that was processed when the turn began.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        self.0.checkpoint
    }

    /// Whether the turn is over; its operations are then refused.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }

    fn message(&self, id: Uuid, content: String, options: SendOptions) -> NewEvent {
        let body = Body::Message(Message {
            id,
            content,
            reply_to: options.reply_to,
            content_type: options.content_type,
            at: options.at,
            metadata: options.metadata,
        });
        self.0.event(id, body, options.attachments)
    }

    /// Sends a message with the turn's commit; immediately under at-least-once delivery.
    ///
    /// # Errors
    /// `turn.over`; `step.changed_body` for a name that the turn already used for a different
    /// operation; errors of the store if it is sent immediately.
    pub async fn send_with(
        &self,
        content: impl Into<String>,
        options: SendOptions,
    ) -> Result<Sent, AgentError> {
        if options.ephemeral {
            let message_id = self.send_ephemeral(content, options).await?;
            return Ok(Sent {
                message_id,
                pubsub_id: None,
            });
        }
        let message_id = self.0.operation("send", options.name.as_deref())?;
        let event = self.message(message_id, content.into(), options);
        let pubsub_id = self.0.durable(event).await?;
        Ok(Sent {
            message_id,
            pubsub_id,
        })
    }

    /// [`TurnClient::send_with`] to everybody.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_with`].
    pub async fn send(&self, content: impl Into<String>) -> Result<Sent, AgentError> {
        self.send_with(content, SendOptions::default()).await
    }

    /// Sends a message immediately, before the turn ends, for answers that grow while they are
    /// made. A retry of the turn finds the message and does not send it twice.
    ///
    /// # Errors
    /// `turn.over`; `step.changed_body` if an earlier attempt sent a different message under
    /// its identity; `store.fenced` and other errors of the store.
    pub async fn send_now(
        &self,
        content: impl Into<String>,
        options: SendOptions,
    ) -> Result<Sent, AgentError> {
        let message_id = self.0.operation("send-now", options.name.as_deref())?;
        let event = self.message(message_id, content.into(), options);
        let pubsub_id = Some(self.0.immediate(event).await?);
        Ok(Sent {
            message_id,
            pubsub_id,
        })
    }

    /// Sends an ephemeral message to present participants, outside of the log: `typing`, or
    /// parts of an answer that will be committed whole.
    ///
    /// # Errors
    /// `turn.over`
    pub async fn send_ephemeral(
        &self,
        content: impl Into<String>,
        options: SendOptions,
    ) -> Result<Uuid, AgentError> {
        let id = self.0.operation("ephemeral", options.name.as_deref())?;
        let event = self.message(id, content.into(), options);
        self.pass(event).await?;
        Ok(id)
    }

    pub(crate) async fn pass(&self, event: NewEvent) -> Result<(), AgentError> {
        self.0.check_open()?;
        self.0.settled().await?;
        if let Some(link) = &self.0.shared.link {
            return link.pass(event).await;
        }
        let ts = self.0.shared.now();
        let passing = Event { ts, ..event.event };
        Ok(self.0.shared.hub().pass(&event.channel, passing).await?)
    }

    /// Appends text to a message. Gives the sequence number of the update, as
    /// [`Sent::pubsub_id`].
    ///
    /// # Errors
    /// Those of [`TurnClient::send_with`].
    pub async fn update(
        &self,
        id: Uuid,
        content: impl Into<String>,
    ) -> Result<Option<Seq>, AgentError> {
        self.update_with(id, content, UpdateOptions::default())
            .await
    }

    /// [`TurnClient::update`] with options.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_with`].
    pub async fn update_with(
        &self,
        id: Uuid,
        content: impl Into<String>,
        options: UpdateOptions,
    ) -> Result<Option<Seq>, AgentError> {
        let body = Body::UpdateMessage {
            id,
            content: Some(content.into()),
            complete: options.complete,
            content_type: options.content_type,
        };
        if options.ephemeral {
            let operation = self.0.operation("ephemeral", None)?;
            let event = self.0.event(operation, body, options.attachments);
            return self.pass(event).await.map(|()| None);
        }
        let operation = self.0.operation("update", None)?;
        let event = self.0.event(operation, body, options.attachments);
        self.0.durable(event).await
    }

    /// Marks a message as complete.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_with`].
    pub async fn complete(&self, id: Uuid) -> Result<Option<Seq>, AgentError> {
        self.0.with_commit("update", completed(id)).await
    }

    /// Marks a message as complete with the turn's commit, under every delivery guarantee. It
    /// does not wait, so a destructor may call it.
    ///
    /// # Errors
    /// `turn.over`
    pub fn complete_with_commit(&self, id: Uuid) -> Result<(), AgentError> {
        let operation = self.0.operation("update", None)?;
        let event = self.0.event(operation, completed(id), Vec::new());
        self.0.change(|changes| changes.outbox.push(event))
    }

    /// Appends ephemeral text to a message for present participants, outside of the log.
    ///
    /// # Errors
    /// `turn.over`
    pub async fn update_ephemeral(
        &self,
        id: Uuid,
        content: impl Into<String>,
    ) -> Result<(), AgentError> {
        let options = UpdateOptions {
            ephemeral: true,
            ..UpdateOptions::default()
        };
        self.update_with(id, content, options).await.map(drop)
    }

    /// Marks an ephemeral message as complete for present participants.
    ///
    /// # Errors
    /// `turn.over`
    pub async fn complete_ephemeral(&self, id: Uuid) -> Result<(), AgentError> {
        let operation = self.0.operation("ephemeral", None)?;
        let event = self.0.event(operation, completed(id), Vec::new());
        self.pass(event).await
    }

    /// Announces immediately that work on a message is paused, resumed or cancelled.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_now`].
    pub async fn announce_pause(
        &self,
        message_id: Uuid,
        status: PauseStatus,
        reason: Option<String>,
    ) -> Result<Seq, AgentError> {
        let body = Body::ExecutionPause {
            message_id,
            status,
            reason,
        };
        self.0.at_once("execution-pause", body).await
    }

    /// Subscribes to the agent's channel: the events after `after`, then live events. A turn
    /// that waits for something else can watch for calls meanwhile.
    ///
    /// # Errors
    /// `turn.over`; errors of the store.
    pub async fn subscribe(&self, after: Option<Seq>) -> Result<Subscription, AgentError> {
        self.0.settled().await?;
        let (hub, channel) = (self.0.shared.hub(), self.0.fence.key.channel());
        Ok(Subscription::new(hub, channel, after, false).await?)
    }

    /// Marks a message as failed.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_with`].
    pub async fn error(
        &self,
        id: Uuid,
        error: impl Into<String>,
        code: Option<String>,
    ) -> Result<Option<Seq>, AgentError> {
        let error = error.into();
        let body = Body::Error { id, error, code };
        self.0.with_commit("error", body).await
    }

    /// Publishes a custom event: with the commit, or ephemerally to present participants.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_with`].
    pub async fn publish(
        &self,
        name: impl Into<String>,
        payload: Value,
        persist: bool,
    ) -> Result<(), AgentError> {
        let published = self.published(name.into(), payload, persist);
        published.await.map(drop)
    }

    /// [`TurnClient::publish`], which also gives the event's identity.
    pub(crate) async fn published(
        &self,
        name: String,
        payload: Value,
        persist: bool,
    ) -> Result<Uuid, AgentError> {
        let operation = self.0.operation("publish", None)?;
        let body = Body::Custom { name, payload };
        let event = self.0.event(operation, body, Vec::new());
        match persist {
            true => self.0.durable(event).await.map(drop)?,
            false => self.pass(event).await?,
        }
        Ok(operation)
    }

    /// The participants of the channel.
    #[must_use]
    pub fn roster(&self) -> Vec<Participant> {
        self.0.shared.presence.roster(self.0.fence.key.channel())
    }

    /// Resolves handles to participants; a leading `@` and letter case are ignored.
    ///
    /// # Errors
    /// `provider-not-found` with the unknown handles: none is dropped silently.
    pub fn resolve_handles(&self, handles: &[&str]) -> Result<Vec<Uuid>, AgentError> {
        let roster = self.roster();
        let found = handles.iter();
        let found = found.map(|written| find_participant(&roster, written).map(|who| who.id));
        found.collect()
    }

    /// Calls a method of a participant of the channel, named by its handle or its identity. The
    /// call is sent immediately, under the same identity at every retry, and its answer is in the
    /// log.
    ///
    /// # Errors
    /// `provider-not-found`; `method-not-found`; `call.would_deadlock` if the callee waits for
    /// this agent; those of [`TurnClient::send_now`].
    pub async fn call_method(
        &self,
        handle: &str,
        method: &str,
        args: Value,
        options: CallOptions,
    ) -> Result<MethodCallHandle, AgentError> {
        let roster = self.roster();
        let provider = find_participant(&roster, handle)?;
        let advertised = provider.check_method(method)?;
        let me = &self.0.fence.key;
        let waiting = match &provider.agent {
            Some(callee) => Some(self.0.shared.wait(me, callee).await?),
            None => None,
        };
        let call_id = self.0.operation("call", options.name.as_deref())?;
        let body = Body::MethodCall {
            call_id,
            method_name: method.to_owned(),
            provider_id: provider.id,
            args,
        };
        let seq = self
            .0
            .immediate(self.0.event(call_id, body, Vec::new()))
            .await?;
        let hub = self.0.shared.hub();
        let results = Subscription::new(hub, me.channel(), Some(seq), false).await?;
        let limits = [options.timeout, advertised];
        Ok(MethodCallHandle::new(
            call_id,
            provider.id,
            results,
            limits,
            waiting,
        ))
    }

    /// Gives the content of a method's answer, and attaches bytes to the answer. A method ends
    /// with it: `turn.result_with_attachments(content, attachments)`.
    ///
    /// # Errors
    /// `turn.over`
    pub fn result_with_attachments(
        &self,
        content: Value,
        attachments: Vec<Attachment>,
    ) -> Result<Value, AgentError> {
        self.0.attach(attachments).map(|()| content)
    }

    /// Cancels a call: a method that has not ended is aborted, changes nothing, and answers
    /// with `cancelled`.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_now`].
    pub async fn cancel_call(&self, call: MethodCallHandle) -> Result<(), AgentError> {
        let id = self
            .0
            .operation("cancel", Some(&call.call_id.to_string()))?;
        let call_id = call.call_id;
        let event = self.0.event(id, Body::MethodCancel { call_id }, Vec::new());
        self.0.immediate(event).await.map(drop)
    }

    /// The language model that the host grants.
    ///
    /// # Errors
    /// `ai.missing`
    pub fn ai(&self) -> Result<&Arc<dyn AiProvider>, AgentError> {
        let ai = self.0.shared.ai.as_ref();
        ai.ok_or_else(|| AgentError::new(codes::NO_AI, "the host grants no language model").fatal())
    }

    /// Writes an entry to the host's log.
    pub fn log(&self, level: LogLevel, message: &str) {
        self.0
            .shared
            .log
            .say(level, Some(&self.0.fence.key), "agent.says", message);
    }

    /// Sets a timer with the commit, for a time in milliseconds since the Unix epoch. It
    /// replaces a timer of the same name.
    ///
    /// # Errors
    /// `turn.over`; `timer.bad` for an invalid name.
    pub fn set_timer(
        &self,
        name: impl Into<String>,
        due: Millis,
        payload: Value,
    ) -> Result<(), AgentError> {
        self.set(TimerRow {
            name: name.into(),
            due,
            cron: None,
            zone: None,
            payload,
            hops: 1,
            set_at: None,
        })
    }

    /// Sets a timer relative to a time. If the clock is set back later, the timer is due
    /// earlier by the same amount.
    ///
    /// # Errors
    /// `turn.over`; `timer.bad` for an invalid name.
    pub(crate) fn set_timer_after(
        &self,
        name: impl Into<String>,
        began: Millis,
        after: Millis,
        payload: Value,
    ) -> Result<(), AgentError> {
        // The turn may have begun before the clock was set back.
        let set_at = began.min(self.0.shared.now());
        self.set(TimerRow {
            name: name.into(),
            due: set_at.saturating_add(after),
            cron: None,
            zone: None,
            payload,
            hops: 1,
            set_at: Some(set_at),
        })
    }

    /// Sets a recurring timer by a cron expression of five or six fields, in a time zone or
    /// UTC.
    ///
    /// # Errors
    /// `turn.over`; `timer.bad` for an invalid expression, with the position, or an invalid
    /// zone.
    pub fn set_cron(
        &self,
        name: impl Into<String>,
        cron: &str,
        zone: Option<&str>,
        payload: Value,
    ) -> Result<(), AgentError> {
        let due = crate::cron::next(cron, zone, self.0.shared.now())?;
        self.set(TimerRow {
            name: name.into(),
            due,
            cron: Some(cron.to_owned()),
            zone: zone.map(str::to_owned),
            payload,
            hops: 1,
            set_at: None,
        })
    }

    fn set(&self, row: TimerRow) -> Result<(), AgentError> {
        let row = self.0.timer(row)?;
        self.0
            .change(|changes| changes.timers.push(TimerChange::Set(row)))
    }

    /// Removes a timer with the commit.
    ///
    /// # Errors
    /// `turn.over`
    pub fn cancel_timer(&self, name: impl Into<String>) -> Result<(), AgentError> {
        let name = name.into();
        self.0
            .change(|changes| changes.timers.push(TimerChange::Remove(name)))
    }

    /// Runs a step and journals its answer: a retry of the turn gets the answer without running
    /// the step. The step must only read, or the service it calls must know its idempotency
    /// key; for other steps use [`TurnClient::step_as`].
    ///
    /// # Errors
    /// Those of the step, of which final ones are journaled too; `step.changed_body`; errors of
    /// the store.
    pub async fn step<T, F>(&self, name: &str, step: F) -> Result<T, AgentError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, AgentError>>,
    {
        self.step_as(Step::named(name), step).await
    }

    /// [`TurnClient::step`] for a [`Step`] that must not run twice, or that has a request.
    ///
    /// # Errors
    /// Those of [`TurnClient::step`]; `step.unknown_outcome` for a step that must not run twice
    /// and was interrupted.
    pub async fn step_as<T, F>(&self, step: Step, work: F) -> Result<T, AgentError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, AgentError>>,
    {
        self.0.going_on()?;
        self.0.journal.step(step, work, || self.is_over()).await
    }

    /// Waits until the changes of earlier turns are durable. Where a turn may begin before that
    /// ([`Policy::turns_per_commit`](crate::Policy::turns_per_commit)), operations wait
    /// automatically. Call this before the handler acts elsewhere without a step.
    ///
    /// # Errors
    /// `turn.over`; `store.unavailable` if the group commit failed: the turn is retried.
    pub async fn settled(&self) -> Result<(), AgentError> {
        self.0.settled().await
    }

    /// An idempotency key for requests of a step: the same at every retry of the turn.
    #[must_use]
    pub fn idempotency_key(&self, name: &str) -> Uuid {
        let (key, trigger) = (&self.0.fence.key, self.0.trigger.to_string());
        match self.0.replays {
            0 => derived(&["step", key.as_str(), &trigger, name]),
            n => derived(&["step", key.as_str(), &trigger, name, &format!("replay {n}")]),
        }
    }

    /// The current time in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.0.shared.now()
    }
}
