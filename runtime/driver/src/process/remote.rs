//! Turn of an agent whose host is another process: its stores, bus, model and log go over the
//! socket with the turn's token.

use super::ai::Streams;
use super::frame::WireError;
use super::peer::{CALL_TIMEOUT, Peer};
use super::wire::{Asked, OfTurn, Present, RunTurn, Sending, Told};
use crate::bus::{Participant, Waiting};
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::log::{AgentLogger, LogEntry};
use crate::shared::{HostLink, Presence};
use crate::turn::TurnInner;
use a99_capabilities::Clock;
use a99_runtime_engine::{
    AgentKey, AgentRow, AgentStore, Appended, BoxFuture, ChannelStore, Claim, DeadLetter, Epoch,
    Event, Fence, JournalRow, Millis, NewEvent, NewState, Progress, Receipt, Registration, Row,
    RunResult, Seq, Shards, Statement, StoreCode, StoreError, TableTurn, TimerRow, Trigger,
    TurnCommit, Uuid,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;
use tokio::runtime::Handle;

type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The connection of a turn to its host.
pub(super) struct RemoteTurn {
    pub(super) peer: Arc<Peer>,
    pub(super) turn: Uuid,
    pub(super) epoch: Epoch,
    pub(super) streams: Arc<Streams>,
    pub(super) runtime: Handle,
    key: AgentKey,
    present: Mutex<Present>,
    next_wait: AtomicU64,
    /// The local turn, which ends as soon as the host reports it over.
    inner: OnceLock<Weak<TurnInner>>,
}

/// The host's clock at the beginning of the turn, advanced by the time since.
pub(super) struct HostClock {
    pub(super) began: Millis,
    pub(super) at: Instant,
}

impl Clock for HostClock {
    #[allow(
        clippy::cast_precision_loss,
        reason = "milliseconds since 1970 are exact in f64"
    )]
    fn now_ms(&self) -> f64 {
        self.began as f64 + self.at.elapsed().as_millis() as f64
    }
}

/// Converts an error of the host to a store error.
fn store_error(error: &AgentError) -> StoreError {
    let code = match error.code() {
        codes::OVER => StoreCode::Fenced,
        codes::CHANGED_BODY => StoreCode::ChangedBody,
        codes::MESSAGE_TOO_LARGE => StoreCode::TooLarge,
        codes::BAD_MESSAGE | codes::UNKNOWN_CALL | codes::NO_STORAGE => StoreCode::Input,
        code => StoreCode::of(code).unwrap_or(StoreCode::Unavailable),
    };
    StoreError::new(code, error.to_string())
}

impl RemoteTurn {
    pub(super) fn new(
        peer: Arc<Peer>,
        streams: Arc<Streams>,
        key: AgentKey,
        run: &mut RunTurn,
    ) -> RemoteTurn {
        RemoteTurn {
            peer,
            turn: run.turn,
            epoch: run.epoch,
            streams,
            runtime: Handle::current(),
            key,
            present: Mutex::new(std::mem::take(&mut run.presence)),
            next_wait: AtomicU64::new(0),
            inner: OnceLock::new(),
        }
    }

    /// Links the local turn.
    pub(super) fn is_of(&self, inner: &Arc<TurnInner>) {
        self.inner.get_or_init(|| Arc::downgrade(inner));
    }

    /// Ends the local turn if the error says that it is over.
    pub(super) fn heed(&self, error: &AgentError) {
        let inner = self.inner.get().and_then(Weak::upgrade);
        if let (codes::OVER, Some(inner)) = (error.code(), inner) {
            inner.give_up();
        }
    }

    fn of<T>(&self, params: T) -> OfTurn<T> {
        OfTurn {
            turn: self.turn,
            epoch: self.epoch,
            params,
        }
    }

    /// Sends a request to the host.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, AgentError> {
        let asked = self.of(params);
        let answer = self.peer.request(method, &asked, Some(CALL_TIMEOUT)).await;
        answer.inspect_err(|error| self.heed(error))
    }

    async fn stored<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, StoreError> {
        let answer = self.call(method, params).await;
        answer.map_err(|error| store_error(&error))
    }

    /// Refuses an operation that a turn never performs.
    fn refuse<T: Send + 'static>(&self, what: &str) -> Reply<'static, T> {
        let message = format!(
            "{what}: the host of {} does it, which is another process",
            self.key
        );
        Box::pin(ready(Err(StoreError::new(StoreCode::Input, message))))
    }
}

fn sending(event: NewEvent) -> Sending {
    let event = event.event;
    Sending {
        id: event.id,
        body: event.body,
        attachments: event.attachments,
    }
}

/// Operations that the host does: the method and its parameters.
macro_rules! asked {
    ($($name:ident($($input:tt: $of:ty),*) -> $output:ty: $method:literal, $params:expr;)*) => {
        $(fn $name(&self, $($input: $of),*) -> Reply<'_, $output> {
            Box::pin(self.0.stored($method, $params))
        })*
    };
}

/// Operations that a turn never performs.
macro_rules! refused {
    ($($name:ident($($input:ty),*) -> $output:ty: $what:literal;)*) => {
        $(fn $name(&self, $(_: $input),*) -> Reply<'_, $output> {
            self.0.refuse($what)
        })*
    };
}

/// The host's stores, limited to the operations of a turn.
pub(super) struct RemoteStore(pub(super) Arc<RemoteTurn>);

impl AgentStore for RemoteStore {
    asked! {
        journal(_: &AgentKey, _: &Trigger) -> Vec<JournalRow>: "step.journal", ();
        record_step(_: Fence, row: JournalRow) -> (): "step.keep", row;
        keep_program(hash: [u8; 32], bytes: Vec<u8>) -> (): "program.keep", (hash, bytes);
        program(hash: [u8; 32]) -> Option<Vec<u8>>: "program.find", hash;
    }

    refused! {
        load(&AgentKey) -> Option<AgentRow>: "reading an agent";
        record_start(Fence, Trigger, u32, Option<Progress>) -> (): "starting a turn";
        commit(TurnCommit) -> Receipt: "committing a turn";
        migrate_state(Fence, NewState, Vec<(u32, String)>, Millis) -> u64: "replacing a state";
        timers_due(Millis, usize) -> Vec<(AgentKey, TimerRow)>: "reading timers";
        timers(&AgentKey) -> Vec<TimerRow>: "reading timers";
        next_due() -> Option<Millis>: "reading timers";
        dead_letters(&AgentKey) -> Vec<DeadLetter>: "reading dead letters";
        forget_dead(&AgentKey) -> u64: "forgetting dead letters";
        outbox(usize) -> Vec<(AgentKey, NewEvent)>: "reading the outbox";
        outbox_done(Vec<Uuid>) -> (): "emptying the outbox";
        register(Registration) -> (): "registering an agent";
        unregister(&AgentKey) -> bool: "removing an agent";
        registrations() -> Vec<Registration>: "reading all agents";
        behind() -> Vec<AgentKey>: "reading all agents";
        flush() -> (): "waiting for the disk";
        acquire(Claim) -> Shards: "acquiring shards";
        renew(Millis) -> Shards: "renewing a lease";
        release(Shards) -> (): "releasing shards";
    }

    fn tables(&self, _: Fence) -> Reply<'_, Arc<dyn TableTurn>> {
        let tables: Arc<dyn TableTurn> = Arc::new(RemoteTables(Arc::clone(&self.0)));
        Box::pin(ready(Ok(tables)))
    }

    fn epoch(&self, _: &AgentKey) -> Epoch {
        self.0.epoch
    }

    fn owned(&self) -> Shards {
        Shards::NONE
    }

    fn was_cut_off(&self) -> Shards {
        Shards::NONE
    }
}

impl ChannelStore for RemoteStore {
    asked! {
        read(_: &str, after: Seq, most: usize) -> Vec<Arc<Event>>: "channel.read", (after, most);
        read_before(_: &str, before: Seq, most: usize) -> Vec<Arc<Event>>: "channel.read_before", (before, most);
        head(_: &str) -> Seq: "channel.head", ();
        channel_config(_: &str) -> Value: "channel.config", ();
        update_channel_config(_: &str, changes: Value) -> Value: "channel.configure", changes;
    }

    refused! {
        find(&str, Uuid) -> Option<Arc<Event>>: "finding an event";
        channels() -> Vec<(String, Seq)>: "reading all channels";
    }

    /// The host sets the sender and checks that the turn is still running.
    fn append(
        &self,
        events: Vec<NewEvent>,
        _: Option<Fence>,
        _: Millis,
    ) -> Reply<'_, Vec<Appended>> {
        Box::pin(async move {
            let mut appended = Vec::with_capacity(events.len());
            for new in events {
                let (channel, mut event) = (new.channel.clone(), new.event.clone());
                event.seq = Some(self.0.stored("channel.append", sending(new)).await?);
                appended.push(Appended {
                    channel,
                    event: Arc::new(event),
                    // The host announces the event.
                    is_new: false,
                });
            }
            Ok(appended)
        })
    }
}

/// The agent's tables in the turn. The host begins and ends their transaction.
struct RemoteTables(Arc<RemoteTurn>);

impl RemoteTables {
    async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        statement: Statement,
        first: bool,
    ) -> Result<T, StoreError> {
        let steps = statement.steps;
        let asked = Asked {
            sql: statement.sql,
            params: statement.params,
            steps: steps.as_ref().map(|steps| steps.left()),
            repeatable: statement.is_repeatable,
            first,
        };
        let told: Told<T> = self.0.stored(method, asked).await?;
        if let Some(steps) = steps {
            steps.add(told.taken);
        }
        told.done.map_err(|wire: WireError| {
            let error = wire.into();
            self.0.heed(&error);
            store_error(&error)
        })
    }
}

impl TableTurn for RemoteTables {
    /// The host knows the transaction's number.
    fn id(&self) -> u64 {
        0
    }

    fn exec(&self, statement: Statement) -> Reply<'_, ()> {
        Box::pin(self.ask("storage.exec", statement, false))
    }

    fn run(&self, statement: Statement) -> Reply<'_, RunResult> {
        Box::pin(self.ask("storage.run", statement, false))
    }

    fn query(&self, statement: Statement, first: bool) -> Reply<'_, Vec<Row>> {
        Box::pin(self.ask("storage.query", statement, first))
    }

    /// The host ends the transaction with its turn.
    fn end(&self) {}

    fn abandon(&self) {}

    /// The host checks before it commits.
    fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The participants of the channel at the beginning of the turn, or after its last invitation
/// or removal.
pub(super) struct RemotePresence(pub(super) Arc<RemoteTurn>);

impl Presence for RemotePresence {
    fn roster(&self, _: &str) -> Vec<Participant> {
        locked(&self.0.present).roster.clone()
    }

    fn is_solo(&self, _: &str, me: Uuid) -> bool {
        let present = locked(&self.0.present);
        let mut others = present.roster.iter().filter(|who| who.id != me);
        others.all(|who| who.kind == "panel")
    }

    fn known(&self) -> Vec<String> {
        locked(&self.0.present).known.clone()
    }

    fn invite(&self, key: AgentKey, config: Value) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            let present = self.0.call("agents.invite", (key, config)).await?;
            *locked(&self.0.present) = present;
            Ok(())
        })
    }

    fn remove(&self, key: AgentKey) -> BoxFuture<'_, Result<bool, AgentError>> {
        Box::pin(async move {
            let (was_there, present) = self.0.call("agents.remove", key).await?;
            *locked(&self.0.present) = present;
            Ok(was_there)
        })
    }

    fn close(&self, _: AgentKey) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(self.0.call("agents.sleep", ()))
    }

    fn refresh(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            let present = self.0.call("channel.roster", ()).await?;
            *locked(&self.0.present) = present;
            Ok(())
        })
    }
}

impl HostLink for RemoteTurn {
    fn pass(&self, event: NewEvent) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(self.call("channel.pass", sending(event)))
    }

    fn wait(&self, callee: AgentKey) -> BoxFuture<'_, Result<Waiting, AgentError>> {
        Box::pin(async move {
            let id = self.next_wait.fetch_add(1, Ordering::Relaxed);
            self.call::<()>("call.wait", (id, callee)).await?;
            let (peer, over) = (Arc::clone(&self.peer), self.of(id));
            Ok(Waiting::until(move || {
                peer.notify_soon("call.over", &over);
            }))
        })
    }
}

impl AgentLogger for RemoteTurn {
    /// Logging never waits: without room the entry is lost.
    fn log(&self, entry: &LogEntry<'_>) {
        let said = self.of((entry.level.name(), entry.code, entry.message));
        let _has_room = self.peer.try_notify("log", &said);
    }
}
