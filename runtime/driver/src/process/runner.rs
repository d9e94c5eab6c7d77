//! Runner of an agent whose code is in another process.

use super::calls::Connection;
use super::link::Link;
use super::wire::{Declared, Make, ReadState, RunTurn, TurnEnd};
use crate::agent::{ConnectOptions, Identity, TurnOutcome};
use crate::error::{AgentError, codes};
use crate::runner::{AnyState, Migrated, Output, Runner, Work};
use crate::tables::Tables;
use crate::turn::TurnClient;
use a99_runtime_engine::{BoxFuture, Event, EventOptions, Policy, Seq, TimerChange};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// JSON text of a state whose type only the process knows.
struct Text(String);

/// Wraps a state that came from the process.
fn state(json: String) -> Result<Output, AgentError> {
    let is_object = json.starts_with('{') && serde_json::from_str::<IgnoredAny>(&json).is_ok();
    if !is_object {
        let message = "a state is an object; this one is not";
        return Err(AgentError::new(codes::BAD_VALUE, message).fatal());
    }
    Ok(Output {
        state: Arc::new(Text(json.clone())),
        json,
        settings: None,
        answer: None,
    })
}

pub(super) struct RemoteRunner {
    link: Arc<Link>,
    identity: Identity,
    /// The declarations at an earlier waking, sufficient for views of the channel.
    before: Option<Arc<Declared>>,
    declared: OnceLock<Arc<Declared>>,
    bound: tokio::sync::Mutex<Option<Bound>>,
    /// Whether the current value was initialized; a new value is initialized again.
    is_initialized: AtomicBool,
}

/// The agent's value in a process.
#[derive(Clone)]
struct Bound {
    connection: Arc<Connection>,
    agent: u64,
}

impl Drop for RemoteRunner {
    fn drop(&mut self) {
        if let Some(Bound { connection, agent }) = self.bound.get_mut() {
            connection.peer.notify_soon("agent.drop", agent);
        }
    }
}

impl RemoteRunner {
    pub(super) fn new(
        link: Arc<Link>,
        identity: Identity,
        before: Option<Arc<Declared>>,
    ) -> RemoteRunner {
        RemoteRunner {
            link,
            identity,
            before,
            declared: OnceLock::new(),
            bound: tokio::sync::Mutex::const_new(None),
            is_initialized: AtomicBool::new(false),
        }
    }

    fn declared(&self) -> Option<&Declared> {
        let declared = self.declared.get().or(self.before.as_ref());
        declared.map(|declared| &**declared)
    }

    fn limit(&self) -> Option<Duration> {
        Some(self.link.process.call_timeout)
    }

    /// The agent's value; created if the process is new or has none.
    async fn bound(&self) -> Result<Bound, AgentError> {
        let mut bound = self.bound.lock().await;
        if let Some(bound) = &*bound
            && !bound.connection.peer.has_ended()
        {
            return Ok(bound.clone());
        }
        let connection = self.link.connection().await?;
        let made = Bound {
            agent: self.link.number(),
            connection,
        };
        let make = Make {
            agent: made.agent,
            identity: self.identity.clone(),
        };
        let peer = &made.connection.peer;
        let declared: Declared = peer.request("agent.make", &make, self.limit()).await?;
        let declared = Arc::new(declared);
        let woke = self.declared.get_or_init(|| Arc::clone(&declared));
        if **woke != *declared {
            peer.notify_soon("agent.drop", &made.agent);
            let message = "the process runs another version of the agent than the one that woke; \
                           it is used when the agent wakes next";
            return Err(AgentError::new(codes::CHANGED, message));
        }
        if self.is_initialized.load(Ordering::Acquire) {
            let done = peer.request::<()>("agent.init", &made.agent, self.limit());
            done.await?;
        }
        self.link.learn(&self.identity.key, &declared);
        *bound = Some(made.clone());
        Ok(made)
    }
}

impl Runner for RemoteRunner {
    fn prepare(&self) -> BoxFuture<'_, TurnOutcome> {
        Box::pin(async move { self.bound().await.map(drop) })
    }

    fn policy(&self) -> Policy {
        self.declared().map(|said| said.policy).unwrap_or_default()
    }

    fn turn_timeout(&self) -> Duration {
        let millis = self.declared().map_or(0, |said| said.turn_timeout);
        Duration::from_millis(millis)
    }

    fn event_options(&self) -> EventOptions {
        self.declared().map(|said| said.events).unwrap_or_default()
    }

    fn connect_options(&self, _: &Identity, _: Seq) -> ConnectOptions {
        let said = self.declared().map(|said| said.connect.clone());
        said.unwrap_or_default()
    }

    fn connect<'a>(
        &'a self,
        _: &'a Identity,
        checkpoint: Seq,
    ) -> BoxFuture<'a, Result<ConnectOptions, AgentError>> {
        Box::pin(async move {
            let Bound { connection, agent } = self.bound().await?;
            let asked = (agent, checkpoint);
            let peer = &connection.peer;
            peer.request("agent.connect", &asked, self.limit()).await
        })
    }

    fn version(&self) -> u32 {
        self.declared().map_or(0, |said| said.version)
    }

    /// Null before the first waking: the agent may have any methods.
    fn advertised(&self) -> Value {
        let said = self.declared().map(|said| said.methods.clone());
        said.unwrap_or_default()
    }

    fn tables(&self) -> Option<Tables> {
        let migrations = self.declared()?.tables.clone()?;
        Some(Tables { migrations })
    }

    fn init<'a>(&'a self, _: &'a Identity) -> BoxFuture<'a, TurnOutcome> {
        Box::pin(async move {
            let Bound { connection, agent } = self.bound().await?;
            let peer = &connection.peer;
            peer.request::<()>("agent.init", &agent, self.limit())
                .await?;
            self.is_initialized.store(true, Ordering::Release);
            Ok(())
        })
    }

    fn read<'a>(
        &'a self,
        json: &'a str,
        found: u32,
    ) -> BoxFuture<'a, Result<Migrated, AgentError>> {
        Box::pin(async move {
            let Bound { connection, agent } = self.bound().await?;
            let asked = (agent, json, found);
            let peer = &connection.peer;
            let read: ReadState = peer.request("agent.read", &asked, self.limit()).await?;
            Ok((state(read.state)?, read.backups))
        })
    }

    fn initial(&self) -> Result<Output, AgentError> {
        let initial = self.declared().map(|said| said.initial.clone());
        state(initial.unwrap_or_default())
    }

    fn decode(&self, json: Value) -> Result<Output, AgentError> {
        state(json.to_string())
    }

    fn default_settings(&self) -> Result<Value, AgentError> {
        let said = self.declared().map(|said| said.settings.clone());
        Ok(said.unwrap_or_default())
    }

    /// Notifies the process if the connection has room.
    fn on_filtered(&self, event: &Event) {
        if let Ok(bound) = self.bound.try_lock()
            && let Some(Bound { connection, agent }) = &*bound
        {
            let _has_room = connection
                .peer
                .try_notify("agent.filtered", &(agent, event));
        }
    }

    fn run(
        self: Arc<Self>,
        work: Work,
        client: TurnClient,
        state: AnyState,
        settings: Arc<Value>,
    ) -> BoxFuture<'static, Result<Output, AgentError>> {
        Box::pin(async move {
            let Some(Text(json)) = state.downcast_ref() else {
                let message = "the state is of another type";
                return Err(AgentError::new(codes::BAD_VALUE, message).fatal());
            };
            let Bound { connection, agent } = self.bound().await?;
            let inner = &client.0;
            let turn = inner.shared.fresh();
            let run = RunTurn {
                turn,
                epoch: inner.fence.epoch,
                agent,
                sender: Arc::clone(&inner.sender),
                trigger: inner.trigger.clone(),
                attempt: inner.attempt,
                delivery: inner.delivery,
                hops: inner.hops,
                checkpoint: inner.checkpoint,
                replays: inner.replays,
                has_tables: inner.tables.is_some(),
                has_ai: inner.shared.ai.is_some(),
                has_log: inner.shared.log.0.is_some(),
                now: inner.shared.now(),
                presence: super::calls::present(&client),
                work,
                state: json.clone(),
                settings: Value::clone(&settings),
            };
            let attempt = connection.begin(turn, client.clone(), self.limit());
            let end = connection.peer.request("turn.run", &run, None).await;
            attempt.ended();
            take(end?, &client)
        })
    }
}

/// Converts a handler's output to that of a local turn.
fn take(end: TurnEnd, client: &TurnClient) -> Result<Output, AgentError> {
    for change in &end.timers {
        let TimerChange::Set(row) = change else {
            continue;
        };
        if let Some(cron) = &row.cron {
            crate::cron::next(cron, row.zone.as_deref(), client.0.shared.now())?;
        }
    }
    client.0.take_over(end.outbox, end.timers)?;
    client.0.attach(end.attachments)?;
    let mut output = state(end.state)?;
    (output.settings, output.answer) = (end.settings, end.answer);
    Ok(output)
}
