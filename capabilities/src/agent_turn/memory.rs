//! In-memory turn, which records a program's changes.

use super::requests::{
    MessageFailure, MessageUpdate, TurnCall, TurnEvent, TurnGuest, TurnMessage, TurnPart,
    TurnTimer, merge_state, timer_name,
};
use super::{AgentTurn, Done, TurnQuery};
use crate::error::{CapabilityError, Reply, ready};
use crate::script::lock;
use crate::size::value_bytes;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::sync::Mutex;

/// Most bytes of a turn's state, settings and changes.
const MAX_BYTES: usize = 16 << 20;

/// A change that a program made in its turn.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnChange {
    /// A sent message and its identity.
    Sent(Text, TurnMessage),
    /// Text appended to a message, or its end.
    Updated(MessageUpdate),
    /// A message marked as failed.
    Failed(MessageFailure),
    /// A published event and its identity.
    Published(Text, TurnEvent),
    /// A timer that was set.
    TimerSet(TurnTimer),
    /// A timer that was removed.
    TimerCancelled(Text),
    /// A method that was called.
    Called(TurnCall),
    /// A part of a method's answer.
    Answered(TurnPart),
    /// An agent that was invited.
    Invited(TurnGuest),
    /// An agent that was removed.
    Removed(TurnGuest),
}

/// A turn in memory, for tests and scripts. Identities count up, and storage answers are
/// scripted by statement.
#[derive(Debug)]
pub struct MemoryTurn {
    inner: Mutex<Inner>,
    identity: Value,
    storage: Option<Value>,
    roster: Value,
    methods: Value,
}

#[derive(Debug)]
struct Inner {
    state: Value,
    settings: Value,
    changes: Vec<TurnChange>,
    bytes: usize,
    ids: u64,
}

impl Default for Inner {
    fn default() -> Self {
        Inner {
            state: Value::Object(Map::new()),
            settings: Value::Object(Map::new()),
            changes: Vec::new(),
            bytes: 0,
            ids: 0,
        }
    }
}

impl Inner {
    /// Counts the bytes of a recorded value.
    fn take(&mut self, value: &Value) -> Result<(), CapabilityError> {
        let bytes = self.bytes.saturating_add(value_bytes(value) + 64);
        if bytes > MAX_BYTES {
            return Err(CapabilityError::new("agentTurn: the turn is full"));
        }
        self.bytes = bytes;
        Ok(())
    }

    fn next_id(&mut self, kind: &str) -> Text {
        let id = format!("{kind}-{}", self.ids);
        self.ids += 1;
        id.into()
    }
}

impl MemoryTurn {
    /// A turn of the agent `agent` with the handle `agent` on the channel `channel`, with an
    /// empty state and empty settings.
    #[must_use]
    pub fn new() -> MemoryTurn {
        let identity = [
            ("agent", "agent"),
            ("channel", "channel"),
            ("handle", "agent"),
            ("id", "agent/channel/agent"),
        ];
        MemoryTurn {
            inner: Mutex::default(),
            identity: Value::Object(identity.into_iter().collect()),
            storage: None,
            roster: Value::Array(Vec::new()),
            methods: Value::Object(Map::new()),
        }
    }

    /// The same turn with this state.
    #[must_use]
    pub fn with_state(self, state: Value) -> MemoryTurn {
        lock(&self.inner).state = state;
        self
    }

    /// The same turn with these settings.
    #[must_use]
    pub fn with_settings(self, settings: Value) -> MemoryTurn {
        lock(&self.inner).settings = settings;
        self
    }

    /// The same turn with this identity.
    #[must_use]
    pub fn with_identity(self, identity: Value) -> MemoryTurn {
        MemoryTurn { identity, ..self }
    }

    /// The same turn with scripted storage answers: an object with a member for each statement.
    #[must_use]
    pub fn with_storage(self, answers: Value) -> MemoryTurn {
        MemoryTurn {
            storage: Some(answers),
            ..self
        }
    }

    /// The same turn with this roster, a list.
    #[must_use]
    pub fn with_roster(self, roster: Value) -> MemoryTurn {
        MemoryTurn { roster, ..self }
    }

    /// The same turn with scripted answers of methods: an object with a member for each method.
    #[must_use]
    pub fn with_methods(self, answers: Value) -> MemoryTurn {
        MemoryTurn {
            methods: answers,
            ..self
        }
    }

    /// The changes so far, in order.
    #[must_use]
    pub fn changes(&self) -> Vec<TurnChange> {
        lock(&self.inner).changes.clone()
    }

    fn change<T>(
        &self,
        request: &Value,
        change: impl FnOnce(&mut Inner) -> Result<(TurnChange, T), CapabilityError>,
    ) -> Result<T, CapabilityError> {
        let mut inner = lock(&self.inner);
        let bytes = inner.bytes;
        inner.take(request)?;
        match change(&mut inner) {
            Ok((change, answer)) => {
                inner.changes.push(change);
                Ok(answer)
            }
            Err(error) => {
                inner.bytes = bytes;
                Err(error)
            }
        }
    }
}

impl Default for MemoryTurn {
    fn default() -> Self {
        MemoryTurn::new()
    }
}

impl AgentTurn for MemoryTurn {
    fn state(&self) -> Reply<'_> {
        ready(Ok(lock(&self.inner).state.clone()))
    }

    fn set_state(&self, state: Value, replace: bool) -> Done<'_> {
        let mut inner = lock(&self.inner);
        ready(inner.take(&state).and_then(|()| {
            if replace {
                inner.state = state;
                return Ok(());
            }
            merge_state("agentSetState", &mut inner.state, state)
        }))
    }

    fn settings(&self) -> Reply<'_> {
        ready(Ok(lock(&self.inner).settings.clone()))
    }

    fn set_settings(&self, settings: Value) -> Done<'_> {
        let mut inner = lock(&self.inner);
        ready(
            inner
                .take(&settings)
                .and_then(|()| merge_state("agentSetSettings", &mut inner.settings, settings)),
        )
    }

    fn identity(&self) -> Reply<'_> {
        ready(Ok(self.identity.clone()))
    }

    fn send(&self, message: Value) -> Reply<'_> {
        ready(self.change(&message, |inner| {
            let message = TurnMessage::read(&message)?;
            let id = inner.next_id("message");
            Ok((TurnChange::Sent(id.clone(), message), id.into()))
        }))
    }

    fn update(&self, update: Value) -> Done<'_> {
        ready(self.change(&update, |_| {
            Ok((TurnChange::Updated(MessageUpdate::read(&update)?), ()))
        }))
    }

    fn fail(&self, failure: Value) -> Done<'_> {
        ready(self.change(&failure, |_| {
            Ok((TurnChange::Failed(MessageFailure::read(&failure)?), ()))
        }))
    }

    fn publish(&self, event: Value) -> Reply<'_> {
        ready(self.change(&event, |inner| {
            let event = TurnEvent::read(&event)?;
            let id = inner.next_id("event");
            Ok((TurnChange::Published(id.clone(), event), id.into()))
        }))
    }

    fn set_timer(&self, timer: Value) -> Done<'_> {
        ready(self.change(&timer, |_| {
            Ok((TurnChange::TimerSet(TurnTimer::read(&timer)?), ()))
        }))
    }

    fn cancel_timer(&self, name: Value) -> Done<'_> {
        ready(self.change(&name, |_| {
            Ok((TurnChange::TimerCancelled(timer_name(&name)?), ()))
        }))
    }

    fn roster(&self) -> Reply<'_> {
        ready(Ok(self.roster.clone()))
    }

    fn call_method(&self, call: Value) -> Reply<'_> {
        ready(self.change(&call, |_| {
            let call = TurnCall::read(&call)?;
            let method = call.method.to_string_lossy();
            let answer = self.methods.get(&method).cloned();
            let none = || CapabilityError::new("method-not-found: no such method");
            Ok((TurnChange::Called(call.clone()), answer.ok_or_else(none)?))
        }))
    }

    fn method_result(&self, part: Value) -> Done<'_> {
        ready(self.change(&part, |_| {
            Ok((TurnChange::Answered(TurnPart::read(&part)?), ()))
        }))
    }

    fn invite(&self, guest: Value) -> Reply<'_> {
        ready(self.change(&guest, |_| {
            let guest = TurnGuest::read("agentInvite", &guest)?;
            let [agent, handle] = [&guest.agent, &guest.handle].map(Text::to_string_lossy);
            let key = Value::from(format!("{agent}/channel/{handle}"));
            Ok((TurnChange::Invited(guest.clone()), key))
        }))
    }

    fn remove(&self, guest: Value) -> Reply<'_> {
        ready(self.change(&guest, |inner| {
            let guest = TurnGuest::read("agentRemove", &guest)?;
            let is_it = |change: &&TurnChange| match change {
                TurnChange::Invited(other) | TurnChange::Removed(other) => {
                    other.handle == guest.handle
                }
                _ => false,
            };
            let last = inner.changes.iter().rev().find(is_it);
            let was_there = matches!(last, Some(TurnChange::Invited(_)));
            Ok((TurnChange::Removed(guest), was_there.into()))
        }))
    }

    fn has_storage(&self) -> bool {
        self.storage.is_some()
    }

    fn storage(&self, _how: TurnQuery, sql: Value, _params: Value) -> Reply<'_> {
        let Some(answers) = &self.storage else {
            return ready(Err(CapabilityError::new(
                "agentTurn: the agent has no storage",
            )));
        };
        let found = sql.as_str().and_then(|sql| answers.get(sql));
        ready(
            found.cloned().ok_or_else(|| {
                CapabilityError::new("agentTurn: the statement is not in the script")
            }),
        )
    }
}
