//! Turns: one event, the handler's changes, and the operations of the turn.

mod channel;
mod client;

use crate::activation::Kept;
use crate::agent::{Agent, Identity};
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::program::TurnRecord;
use crate::shared::Shared;
use crate::step::Journal;
use crate::tables::OwnTables;
use a99_runtime_engine::{
    AgentKey, Attachment, Body, Delivery, Fence, KeptTurn, NewEvent, Sender, Seq, StoreError,
    TimerChange, TimerRow, Trigger, TurnCommit, Uuid, check_part, deep_merge_into,
};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A turn of an agent: its state, its settings and its operations.
///
/// The changes commit together when the handler succeeds. If it fails, none of them is kept.
pub struct Turn<'a, A: Agent> {
    client: &'a TurnClient,
    agent: &'a A,
    /// The state that the turn began with.
    began: &'a A::State,
    state: A::State,
    settings: A::Settings,
}

/// The operations of a turn, for other tasks of its handler. After the turn they fail with
/// `turn.over`.
#[derive(Clone)]
pub struct TurnClient(pub(crate) Arc<TurnInner>);

pub(crate) struct TurnInner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) sender: Arc<Sender>,
    pub(crate) fence: Fence,
    pub(crate) delivery: Delivery,
    pub(crate) trigger: Trigger,
    pub(crate) attempt: u32,
    /// The hop count of the events that the turn sends.
    pub(crate) hops: u8,
    /// The trace context of the event, for the messages that the turn sends.
    pub(crate) trace: Option<Arc<str>>,
    pub(crate) checkpoint: Seq,
    /// [`AgentRow::replays`](a99_runtime_engine::AgentRow::replays)
    pub(crate) replays: u64,
    pub(crate) journal: Journal,
    /// `None` for an agent without tables.
    pub(crate) tables: Option<OwnTables>,
    /// The group commit that must be durable before the turn acts outside of its commit.
    kept: Option<Kept>,
    is_over: AtomicBool,
    /// Whether the handler closed its bus.
    is_closed: AtomicBool,
    /// The effective settings that the turn began with.
    pub(crate) settings: OnceLock<Arc<Value>>,
    changes: Mutex<Changes>,
    /// What a program got and did in it, if the host keeps turns.
    pub(crate) record: Mutex<Option<TurnRecord>>,
}

/// The changes that a turn's commit will contain.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) outbox: Vec<NewEvent>,
    pub(crate) timers: Vec<TimerChange>,
    /// Events that were sent before the commit.
    pub(crate) at_once: Vec<Uuid>,
    /// Changes of the users' settings.
    pub(crate) settings: Option<Value>,
    /// Attachments of the method's answer.
    pub(crate) attachments: Vec<Attachment>,
    /// How often each kind of operation was requested.
    ordinals: HashMap<&'static str, u32>,
}

/// Options of a message.
#[derive(Clone, Debug, Default)]
pub struct SendOptions {
    /// The message that this one answers.
    pub reply_to: Option<Uuid>,
    /// The addressees; empty for everybody.
    pub at: Vec<Uuid>,
    /// The content type.
    pub content_type: Option<String>,
    /// Further metadata.
    pub metadata: Option<Value>,
    /// Attached bytes.
    pub attachments: Vec<Attachment>,
    /// A name that identifies the operation in its turn, so that it has the same identity at
    /// every retry. By default its position among the turn's messages identifies it.
    pub name: Option<String>,
    /// Sends it to present participants only, outside of the log.
    pub ephemeral: bool,
}

/// Options of an update of a message.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Marks the message as complete, too.
    pub complete: bool,
    /// The content type from here on.
    pub content_type: Option<String>,
    /// Attached bytes.
    pub attachments: Vec<Attachment>,
    /// Sends it to present participants only, outside of the log.
    pub ephemeral: bool,
}

/// The result of sending a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The identity under which the message can be updated.
    pub message_id: Uuid,
    /// The sequence number; `None` until the turn commits.
    pub pubsub_id: Option<Seq>,
}

impl TurnInner {
    #[allow(
        clippy::too_many_arguments,
        reason = "it is made in one place, of what a turn is"
    )]
    pub(crate) fn new(
        shared: Arc<Shared>,
        identity: Arc<Identity>,
        sender: Arc<Sender>,
        fence: Fence,
        delivery: Delivery,
        (trigger, attempt): (Trigger, u32),
        hops: u8,
        checkpoint: Seq,
        replays: u64,
        has_tables: bool,
        kept: Option<Kept>,
    ) -> TurnInner {
        TurnInner {
            tables: has_tables.then(OwnTables::default),
            journal: Journal::of(
                Arc::clone(shared.agents()),
                fence.clone(),
                trigger.clone(),
                kept.clone(),
            ),
            kept,
            shared,
            identity,
            sender,
            fence,
            delivery,
            trigger,
            attempt,
            hops,
            trace: None,
            checkpoint,
            replays,
            is_over: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            settings: OnceLock::new(),
            changes: Mutex::default(),
            record: Mutex::default(),
        }
    }

    /// How many turns of a program the host keeps. A process of agents has no store for them.
    pub(crate) fn keeps(&self) -> u32 {
        match self.shared.link {
            Some(_) => 0,
            None => self.shared.options.keep_turns,
        }
    }

    /// The turn as the store keeps it, with the state that it began with.
    pub(crate) fn kept(
        &self,
        (state, base): (&Arc<str>, u64),
        commit: &TurnCommit,
        at_once: Vec<Uuid>,
    ) -> Option<KeptTurn> {
        let record = locked(&self.record).take()?;
        Some(KeptTurn {
            trigger: self.trigger.clone(),
            base,
            state: Arc::clone(state),
            record: record.text(commit, at_once)?,
            keep: self.keeps(),
        })
    }

    /// Ends the turn and takes its changes: leftover tasks of the handler cannot act for it.
    pub(crate) fn end(&self) -> Changes {
        self.is_over.store(true, Ordering::Release);
        if let Some(tables) = &self.tables {
            tables.end();
        }
        std::mem::take(&mut *locked(&self.changes))
    }

    /// Ends the turn and discards its changes.
    pub(crate) fn give_up(&self) {
        drop(self.end());
        self.abandon_tables();
    }

    /// Rolls back its changes of the agent's tables.
    pub(crate) fn abandon_tables(&self) {
        if let Some(tables) = &self.tables {
            tables.abandon();
        }
    }

    /// The transaction of the agent's tables to commit, if any.
    pub(crate) fn tables_id(&self) -> Option<u64> {
        self.tables.as_ref().and_then(OwnTables::id)
    }

    /// Fails if its changes of the agent's tables cannot be committed.
    pub(crate) fn check_tables(&self) -> Result<(), AgentError> {
        self.tables.as_ref().map_or(Ok(()), OwnTables::check)
    }

    /// Takes over events and timers of a handler in another process.
    #[cfg(unix)]
    pub(crate) fn take_over(
        &self,
        outbox: Vec<crate::process::Sending>,
        timers: Vec<TimerChange>,
    ) -> Result<(), AgentError> {
        let events = outbox.into_iter();
        let events = events.map(|sent| self.event(sent.id, sent.body, sent.attachments));
        let events: Vec<NewEvent> = events.collect();
        let timers = timers.into_iter().map(|change| match change {
            TimerChange::Set(row) => self.timer(row).map(TimerChange::Set),
            TimerChange::Remove(_) => Ok(change),
        });
        let timers: Vec<TimerChange> = timers.collect::<Result<_, _>>()?;
        self.change(|changes| {
            changes.outbox.extend(events);
            changes.timers.extend(timers);
        })
    }

    /// A timer with the hops of the turn; a recurring timer starts again at one.
    ///
    /// # Errors
    /// `timer.bad` for an invalid name.
    fn timer(&self, row: TimerRow) -> Result<TimerRow, AgentError> {
        if let Err(error) = check_part("timer", &row.name) {
            return Err(AgentError::new(codes::BAD_TIMER, error.to_string()).fatal());
        }
        let hops = if row.cron.is_some() { 1 } else { self.hops };
        Ok(TimerRow { hops, ..row })
    }

    /// Queues the answer of a method. It commits whether or not the handler succeeded.
    pub(crate) fn answer(&self, body: Body) {
        let id = self.identify("answer");
        let mut changes = locked(&self.changes);
        let attachments = std::mem::take(&mut changes.attachments);
        changes.outbox.push(self.event(id, body, attachments));
    }

    /// Attaches bytes to the answer of the method that runs.
    pub(crate) fn attach(&self, attachments: Vec<Attachment>) -> Result<(), AgentError> {
        self.change(|changes| changes.attachments = attachments)
    }

    pub(crate) fn going_on(&self) -> Result<(), AgentError> {
        match self.is_over.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(AgentError::new(
                codes::OVER,
                format!("the turn of {} is over", self.trigger),
            )),
        }
    }

    /// An error of a store, or `turn.over` if the turn has ended meanwhile.
    pub(crate) fn failed(&self, error: StoreError) -> AgentError {
        self.going_on().err().unwrap_or_else(|| error.into())
    }

    /// Waits until the changes of earlier turns are durable.
    pub(crate) async fn settled(&self) -> Result<(), AgentError> {
        self.going_on()?;
        match &self.kept {
            Some(kept) => kept.wait().await.map_err(|error| self.failed(error)),
            None => Ok(()),
        }
    }

    /// Edits the changes, unless the turn is over.
    fn change<T>(&self, f: impl FnOnce(&mut Changes) -> T) -> Result<T, AgentError> {
        let mut changes = locked(&self.changes);
        self.going_on()?;
        Ok(f(&mut changes))
    }

    fn identify(&self, name: &str) -> Uuid {
        self.trigger.replayed(&self.fence.key, self.replays, name)
    }

    /// The identity of an operation: from its name, or its position among those of its kind.
    pub(crate) fn operation(
        &self,
        kind: &'static str,
        name: Option<&str>,
    ) -> Result<Uuid, AgentError> {
        match name {
            Some(name) => {
                self.going_on()?;
                Ok(self.identify(&format!("{kind}={name}")))
            }
            None => self.change(|changes| {
                let ordinal = changes.ordinals.entry(kind).or_default();
                let id = self.identify(&format!("{kind}:{ordinal}"));
                *ordinal += 1;
                id
            }),
        }
    }

    pub(crate) fn event(&self, id: Uuid, mut body: Body, attachments: Vec<Attachment>) -> NewEvent {
        if let Some(parent) = &self.trace {
            crate::trace::put(parent, &mut body);
        }
        let (channel, sender) = (self.fence.key.channel(), Arc::clone(&self.sender));
        let mut new = NewEvent::new(channel, id, sender, self.hops, body);
        new.event.attachments = attachments;
        new
    }

    /// A durable operation: with the commit, or immediately under at-least-once delivery.
    async fn durable(&self, event: NewEvent) -> Result<Option<Seq>, AgentError> {
        self.check_open()?;
        if self.delivery == Delivery::AtLeastOnce {
            let id = event.event.id;
            let seq = self.immediate(event).await?;
            return self
                .change(|changes| changes.at_once.push(id))
                .map(|()| Some(seq));
        }
        self.change(|changes| {
            let id = event.event.id;
            let same = changes.outbox.iter().find(|old| old.event.id == id);
            match same.is_none_or(|old| old == &event) {
                true => {
                    if same.is_none() {
                        changes.outbox.push(event);
                    }
                    Ok(None)
                }
                false => Err(AgentError::new(
                    codes::CHANGED_BODY,
                    "the turn has another operation of this name",
                )),
            }
        })?
    }

    /// Publishes an event with the commit, or immediately under at-least-once delivery.
    pub(crate) async fn with_commit(
        &self,
        kind: &'static str,
        body: Body,
    ) -> Result<Option<Seq>, AgentError> {
        let id = self.operation(kind, None)?;
        self.durable(self.event(id, body, Vec::new())).await
    }

    /// Publishes an event immediately.
    pub(crate) async fn at_once(&self, kind: &'static str, body: Body) -> Result<Seq, AgentError> {
        let id = self.operation(kind, None)?;
        self.immediate(self.event(id, body, Vec::new())).await
    }

    /// Refuses operations after the handler closed its bus.
    fn check_open(&self) -> Result<(), AgentError> {
        match self.is_closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => {
                let message = "the turn closed its event bus";
                Err(AgentError::new(codes::CONNECTION, message).fatal())
            }
        }
    }

    /// Performs an operation immediately, under the same identity at every retry.
    pub(crate) async fn immediate(&self, event: NewEvent) -> Result<Seq, AgentError> {
        self.check_open()?;
        self.settled().await?;
        let (fence, now) = (Some(self.fence.clone()), self.shared.now());
        let appended = self.shared.hub().append(vec![event], fence, now).await;
        let appended = appended.map_err(|error| self.failed(error))?;
        let seq = appended.first().and_then(|one| one.event.seq);
        seq.ok_or_else(|| AgentError::new(codes::BAD_VALUE, "the event got no place"))
    }
}

impl<'a, A: Agent> Turn<'a, A> {
    pub(crate) fn new(
        client: &'a TurnClient,
        agent: &'a A,
        began: &'a A::State,
        settings: A::Settings,
    ) -> Turn<'a, A> {
        Turn {
            client,
            agent,
            began,
            state: began.clone(),
            settings,
        }
    }

    pub(crate) fn into_state(self) -> A::State {
        self.state
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &A::State {
        &self.state
    }

    /// The state, for changes.
    pub fn state_mut(&mut self) -> &mut A::State {
        &mut self.state
    }

    /// Whether the state differs from that of the last commit.
    ///
    /// # Errors
    /// `turn.bad_value` for a state that cannot be stored.
    pub fn is_dirty(&self) -> Result<bool, AgentError> {
        Ok(serde_json::to_value(self.began)? != serde_json::to_value(&self.state)?)
    }

    /// Replaces the state by that of a new agent. The checkpoint moves on as after any turn;
    /// [`Held::reset`](crate::Held::reset) clears it too.
    pub fn reset_state(&mut self) {
        self.state = self.agent.initial_state();
    }

    /// Merges members into the state, at every depth ([`deep_merge`](crate::deep_merge)).
    ///
    /// # Errors
    /// `turn.bad_value` if the result does not deserialize as the agent's state; the state is
    /// then unchanged.
    pub fn set_state(&mut self, partial: &Value) -> Result<(), AgentError> {
        let mut merged = serde_json::to_value(&self.state)?;
        deep_merge_into(&mut merged, partial);
        self.state = serde_json::from_value(merged)?;
        Ok(())
    }

    /// Replaces members of the state, at its first level only.
    ///
    /// # Errors
    /// Those of [`Turn::set_state`].
    pub fn update_state(&mut self, partial: &Value) -> Result<(), AgentError> {
        let mut merged = serde_json::to_value(&self.state)?;
        if let (Value::Object(merged), Value::Object(partial)) = (&mut merged, partial) {
            merged.extend(partial.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
        self.state = serde_json::from_value(merged)?;
        Ok(())
    }

    /// The effective settings.
    #[must_use]
    pub fn settings(&self) -> &A::Settings {
        &self.settings
    }

    /// Merges members into the settings. After the commit they override configuration and
    /// defaults.
    ///
    /// # Errors
    /// `turn.bad_value` if the result does not deserialize as settings.
    pub fn update_settings(&mut self, partial: &Value) -> Result<(), AgentError> {
        let mut merged = serde_json::to_value(&self.settings)?;
        deep_merge_into(&mut merged, partial);
        self.settings = serde_json::from_value(merged)?;
        self.client.change_settings(partial)
    }

    /// The agent's key.
    #[must_use]
    pub fn key(&self) -> &AgentKey {
        &self.client.0.fence.key
    }

    /// The operations, for other tasks of the handler.
    #[must_use]
    pub fn client(&self) -> TurnClient {
        self.client.clone()
    }
}

impl<A: Agent> std::ops::Deref for Turn<'_, A> {
    type Target = TurnClient;

    fn deref(&self) -> &TurnClient {
        self.client
    }
}
