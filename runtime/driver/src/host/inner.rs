//! Host internals: which agents wake, and the follow-up of activations that end.

use super::slots::{Member, Phase, Start};
use super::{Host, Inner};
use crate::activation::{Ended, Loading, Signal};
use crate::agent::Identity;
use crate::bus::Participant;
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::log::LogLevel;
use crate::runner::{Runner, settled};
use crate::shared::Presence;
use crate::tables::check_policy;
use a99_runtime_engine::{
    AgentKey, Body, BoxFuture, Event, EventKind, PresenceAction, Seq, StopReason, StoreCode, Uuid,
};
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Presence on the channels of a host.
pub(super) struct Present(pub(super) Weak<Inner>);

impl Present {
    fn host(&self) -> Result<Host, AgentError> {
        let inner = self.0.upgrade().map(Host);
        inner.ok_or_else(|| AgentError::new(codes::STOPPING, "the host is gone"))
    }
}

impl Presence for Present {
    fn roster(&self, channel: &str) -> Vec<Participant> {
        self.0
            .upgrade()
            .map_or_else(Vec::new, |inner| inner.roster(channel))
    }

    fn is_solo(&self, channel: &str, me: Uuid) -> bool {
        let inner = self.0.upgrade();
        inner.is_some_and(|inner| {
            let elsewhere = inner.shared.hub().remote_roster(channel);
            let mut others = elsewhere.iter().filter(|who| who.id != me);
            others.all(|who| who.kind == "panel") && locked(&inner.slots).is_solo(channel, me)
        })
    }

    fn known(&self) -> Vec<String> {
        let inner = self.0.upgrade();
        inner.map_or_else(Vec::new, |inner| inner.known())
    }

    fn invite(&self, key: AgentKey, config: Value) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move { self.host()?.invite(&key, config).await })
    }

    fn remove(&self, key: AgentKey) -> BoxFuture<'_, Result<bool, AgentError>> {
        Box::pin(async move { self.host()?.remove(&key).await })
    }

    fn close(&self, key: AgentKey) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            locked(&self.host()?.0.slots).signal(&key, Signal::Drain);
            Ok(())
        })
    }
}

/// An agent as a participant of its channel.
pub(super) fn described(
    identity: &Identity,
    make: impl FnOnce() -> Arc<dyn Runner>,
) -> Participant {
    let look = || {
        let runner = make();
        (runner.connect_options(identity, 0), runner.advertised())
    };
    // An agent whose value cannot be made is still a participant.
    let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
    let (connect, methods) = looked.unwrap_or_default();
    let key = &identity.key;
    Participant {
        id: key.participant(),
        handle: key.handle().to_owned(),
        name: connect.name.unwrap_or_else(|| key.agent().to_owned()),
        kind: connect.kind.unwrap_or_else(|| "agent".to_owned()),
        methods,
        agent: Some(key.clone()),
        metadata: connect.extra_metadata,
    }
}

impl Inner {
    /// The participants of a channel: agents, awake or asleep, and those that joined.
    pub(super) fn roster(&self, channel: &str) -> Vec<Participant> {
        let present = locked(&self.slots).present(channel).into_iter();
        let mut roster: Vec<_> = present.filter_map(|who| self.participant(who)).collect();
        let elsewhere = self.shared.hub().remote_roster(channel);
        let here: Vec<Uuid> = roster.iter().map(|who| who.id).collect();
        roster.extend(elsewhere.into_iter().filter(|who| !here.contains(&who.id)));
        roster
    }

    /// An agent of this host as a participant of its channel.
    pub(super) fn member(&self, key: &AgentKey) -> Option<Participant> {
        let member = locked(&self.slots).member(key)?;
        self.participant(member)
    }

    /// A member of a channel as a participant; `None` for an agent without a definition.
    pub(super) fn participant(&self, member: Member) -> Option<Participant> {
        let (identity, metadata) = match member {
            Member::Joined(who) => return Some(who),
            Member::Agent(identity, metadata) => (identity, metadata),
        };
        let factory = self.factory(identity.key.agent())?;
        let mut who = described(&identity, || factory(&identity));
        who.metadata = metadata.unwrap_or(who.metadata);
        Some(who)
    }

    /// Names of the agents that can be invited, sorted.
    pub(super) fn known(&self) -> Vec<String> {
        let mut known: Vec<String> = locked(&self.factories).keys().cloned().collect();
        known.sort_unstable();
        known
    }

    pub(super) fn going_on(&self) -> Result<(), AgentError> {
        match self.is_stopping.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(AgentError::new(codes::STOPPING, "the host is stopping")),
        }
    }

    /// Makes the value of an agent's first waking. On failure the waking reports the error.
    ///
    /// # Errors
    /// `agent.bad_policy` for an agent that could never wake.
    pub(super) async fn make(
        &self,
        key: &AgentKey,
        config: &Value,
    ) -> Result<Option<Arc<dyn Runner>>, AgentError> {
        let identity = Identity {
            key: key.clone(),
            config: Arc::new(config.clone()),
        };
        let Some(factory) = self.factory(key.agent()) else {
            return Ok(None);
        };
        let make = std::panic::AssertUnwindSafe(|| factory(&identity));
        let Ok(runner) = std::panic::catch_unwind(make) else {
            return Ok(None);
        };
        if runner.prepare().await.is_err() {
            return Ok(Some(runner));
        }
        let look = std::panic::AssertUnwindSafe(|| (runner.tables().is_some(), runner.policy()));
        let Ok((has_tables, policy)) = std::panic::catch_unwind(look) else {
            return Ok(None);
        };
        check_policy(has_tables, &policy)?;
        Ok(Some(runner))
    }

    /// Refuses settings that an agent could not deserialize, if its value can be made here.
    pub(super) fn check_settings(&self, key: &AgentKey, merged: &str) -> Result<(), AgentError> {
        let identity = locked(&self.slots).identity(key);
        let factory = self.factory(key.agent());
        let (Some(identity), Some(factory)) = (identity, factory) else {
            return Ok(());
        };
        // Writing to the store reports invalid JSON.
        let Ok(saved) = serde_json::from_str(merged) else {
            return Ok(());
        };
        let check = || {
            let runner = factory(&identity);
            let settled = settled(&*runner, &identity, &saved);
            runner.check_settings(&settled)
        };
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        checked.unwrap_or(Ok(()))
    }

    /// Wakes agents with pending work.
    pub(super) async fn catch_up(&self) -> Result<(), AgentError> {
        for key in self.shared.agents().behind().await? {
            // Its channel may only have news of who came and left.
            if self.is_behind(&key).await {
                self.wake(&key);
            }
        }
        if self.shared.hub().remote().is_none() {
            return Ok(());
        }
        // Another store has the logs: it is read, as this one cannot say who is behind.
        let keys = locked(&self.slots).keys();
        for key in keys {
            let row = self.shared.agents().load(&key).await?;
            let checkpoint = row.map_or(0, |row| row.progress.checkpoint);
            if self.has_news(&key, checkpoint).await {
                self.wake(&key);
            }
        }
        Ok(())
    }

    /// Makes the agents participants of their channels over the transport, if there is one.
    pub(super) async fn connect(&self) -> Result<(), AgentError> {
        let hub = self.shared.hub();
        let Some(remote) = hub.remote() else {
            return Ok(());
        };
        self.runtime.spawn(remote.keep_drained());
        let keys = locked(&self.slots).keys();
        for key in keys {
            self.join_or_say(&key).await;
        }
        Ok(())
    }

    /// The same, with a log entry for an agent that cannot join.
    pub(super) async fn join_or_say(&self, key: &AgentKey) {
        if let Err(error) = self.join_remote(key).await {
            let message = format!("{key} is not on its channel: {error}");
            let log = &self.shared.log;
            log.say(LogLevel::Error, Some(key), error.code(), &message);
        }
    }

    /// Makes an agent a participant of its channel over the transport, if there is one.
    pub(super) async fn join_remote(&self, key: &AgentKey) -> Result<(), AgentError> {
        let hub = self.shared.hub();
        let Some(remote) = hub.remote() else {
            return Ok(());
        };
        // From now on its events arrive.
        hub.channel(key.channel()).await?;
        let roster = self.roster(key.channel()).into_iter();
        let mut roster = roster.filter(|who| who.agent.as_ref() == Some(key));
        match roster.next() {
            Some(who) => remote.transport.join(who).await,
            None => Ok(()),
        }
    }

    /// Wakes the sleeping agents that may want an event.
    pub(super) fn heard(&self, channel: &str, event: &Arc<Event>) {
        if let Body::MethodCancel { call_id } = &event.body {
            self.shared.calls.cancel(*call_id, event.sender.id);
        }
        if event.kind == EventKind::Ephemeral {
            return;
        }
        if let Body::Presence {
            action: PresenceAction::Update,
            metadata,
            ..
        } = &event.body
        {
            locked(&self.slots).describe(channel, event.sender.id, metadata);
        }
        if !event.body.wakes() {
            return;
        }
        let asleep = locked(&self.slots).asleep_for(channel, event);
        for key in asleep {
            self.wake(&key);
        }
    }

    /// Wakes an agent, unless it is awake or must not wake.
    pub(super) fn wake(&self, key: &AgentKey) {
        if self.is_stopping.load(Ordering::Acquire) {
            return;
        }
        let Some(inner) = self.weak.upgrade() else {
            return;
        };
        let mut slots = locked(&self.slots);
        let Some(started) = slots.start(key) else {
            return;
        };
        drop(slots);
        let (key, generation) = (key.clone(), started.generation);
        self.runtime.spawn(async move {
            let live = inner.runtime.spawn(Arc::clone(&inner).live(started));
            let ended = live.await.unwrap_or_else(|fault| {
                let message = format!("a hook panicked: {fault}");
                Ended::Failed(AgentError::new(codes::PANIC, message))
            });
            inner.ended(&key, generation, ended).await;
        });
    }

    /// Makes an agent's value and runs its activation. A panic in the agent's code affects this
    /// task only.
    async fn live(self: Arc<Self>, started: Start) -> Ended {
        let name = started.identity.key.agent();
        let Some(factory) = self.factory(name) else {
            let message = format!("no agent is called '{name}' here");
            return Ended::Failed(AgentError::new(codes::UNKNOWN_AGENT, message).fatal());
        };
        let loading = Loading {
            shared: Arc::clone(&self.shared),
            runner: started.made.unwrap_or_else(|| factory(&started.identity)),
            identity: started.identity,
            signals: started.signals,
            status: started.status,
            timers_changed: Arc::clone(&self.timers_changed),
            was_cut_off: started.was_cut_off,
        };
        drop(self);
        loading.live().await
    }

    pub(super) async fn ended(&self, key: &AgentKey, generation: u64, ended: Ended) {
        let ended = match ended {
            Ended::Failed(error) if error.code() == StoreCode::Fenced.name() => {
                Ended::Stopped(StopReason::Fenced)
            }
            Ended::Stopped(StopReason::Reload) => {
                // The outcome of the append is in doubt too.
                let again = self.shared.hub().look_again(key.channel()).await;
                let message = "it is not known whether the last commit was written";
                let error = AgentError::new(StoreCode::InDoubt.name(), message);
                Ended::Failed(again.err().map_or(error, AgentError::from))
            }
            ended => ended,
        };
        let (phase, cursor) = match ended {
            Ended::Asleep { cursor } => (Phase::Asleep, Some(cursor)),
            Ended::Stopped(StopReason::Drained) => (Phase::Asleep, Some(0)),
            Ended::Stopped(reason) => {
                let code = match reason {
                    StopReason::Fenced => {
                        self.holding.iter().for_each(|holding| holding.refused());
                        self.shared.metrics.fenced.inc();
                        "store.fenced"
                    }
                    _ => a99_runtime_engine::codes::DEAD,
                };
                let why = locked(&self.slots).look(key).1.last_error;
                let message = match (reason, why) {
                    (StopReason::Dead, Some(why)) => {
                        format!("{key} stopped: {}: {why}", why.code())
                    }
                    _ => format!("{key} stopped: {code}"),
                };
                self.shared
                    .log
                    .say(LogLevel::Error, Some(key), code, &message);
                (Phase::Stopped(AgentError::new(code, message)), None)
            }
            Ended::Failed(error) => {
                let message = error.to_string();
                self.shared
                    .log
                    .say(LogLevel::Error, Some(key), error.code(), &message);
                (Phase::Failed(error), None)
            }
        };
        let again = locked(&self.slots).end(key, generation, phase);
        self.ended.send_modify(|n| *n += 1);
        self.timers_changed.notify_one();
        if let Some(after) = again {
            // Retry after the pause.
            let (weak, key) = (self.weak.clone(), key.clone());
            self.runtime.spawn(async move {
                tokio::time::sleep(after).await;
                if let Some(inner) = weak.upgrade() {
                    locked(&inner.slots).try_again(&key);
                    inner.wake(&key);
                }
            });
        }
        // Events may have arrived while it went to sleep.
        if let Some(cursor) = cursor
            && self.has_news(key, cursor).await
        {
            self.wake(key);
        }
    }

    /// Whether any event after the cursor may be for an agent.
    pub(super) async fn has_news(&self, key: &AgentKey, mut cursor: Seq) -> bool {
        let hub = self.shared.hub();
        let me = key.participant();
        let Ok(channel) = hub.channel(key.channel()).await else {
            return false;
        };
        while let Ok(events) = hub.read(key.channel(), &channel, cursor, 500).await {
            if events.is_empty() {
                return false;
            }
            cursor += events.len() as Seq;
            if events
                .iter()
                .any(|event| event.body.wakes() && event.sender.id != me)
            {
                return true;
            }
        }
        false
    }

    pub(super) async fn is_settled(&self) -> bool {
        let looked = locked(&self.slots).progress();
        for (key, is_awake, is_over, checkpoint) in looked {
            if is_over {
                continue;
            }
            let Ok(head) = self.shared.hub().store().head(key.channel()).await else {
                return false;
            };
            if is_awake && checkpoint < head {
                return false;
            }
            if is_awake || checkpoint >= head {
                continue;
            }
            // For an agent that has not woken yet, the store has the checkpoint.
            let Ok(row) = self.shared.agents().load(&key).await else {
                return false;
            };
            let kept = row.map_or(0, |row| row.progress.checkpoint);
            if self.has_news(&key, checkpoint.max(kept)).await {
                return false;
            }
        }
        true
    }
}
