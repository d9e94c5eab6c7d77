//! Stores of agents and channels: what is durable, and in which transaction.
//!
//! A store has one owner. Who opens it raises the epoch of its shards; every write names the
//! epoch that it was begun under ([`Fence`]) and changes nothing if that is not the newest.

use crate::delivery::Progress;
use crate::event::{Body, Event, EventKind, Sender};
use crate::key::{AgentKey, Epoch, Millis, Seq, Trigger};
use crate::tables::TableTurn;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use uuid::Uuid;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// What kind of fault a store has.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreCode {
    /// Another owner has the shard. Nothing was written, and later writes are refused.
    Fenced,
    /// The state changed after it was read. Nothing was written.
    Conflict,
    /// The key already holds other content. Nothing was written.
    ChangedBody,
    /// A state, a payload or the number of timers exceeds its limit. Nothing was written.
    TooLarge,
    /// The requested item does not exist.
    NotFound,
    /// The disk is full, busy or broken. Nothing was written; a retry may succeed.
    Unavailable,
    /// The write may have succeeded or not: read before you do anything else.
    InDoubt,
    /// The stored data is damaged, or from a later version of this program.
    Unreadable,
    /// An argument is invalid: SQL, a name, a path.
    Input,
    /// A constraint of a table is violated. The statement changed nothing.
    Constraint,
    /// The work exceeded its limit of time, steps or memory, or the caller stopped waiting.
    Interrupted,
    /// Another process has the store open.
    Locked,
    /// The store's file is not the one that was last opened: it was copied, moved to another
    /// disk, or restored.
    Copied,
}

impl StoreCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StoreCode::Fenced => "store.fenced",
            StoreCode::Conflict => "store.conflict",
            StoreCode::ChangedBody => "store.changed_body",
            StoreCode::TooLarge => "store.too_large",
            StoreCode::NotFound => "store.not_found",
            StoreCode::Unavailable => "store.unavailable",
            StoreCode::InDoubt => "store.in_doubt",
            StoreCode::Unreadable => "store.unreadable",
            StoreCode::Input => "store.input",
            StoreCode::Constraint => "store.constraint",
            StoreCode::Interrupted => "store.interrupted",
            StoreCode::Locked => "store.locked",
            StoreCode::Copied => "store.copied",
        }
    }
}

/// Why a store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    code: StoreCode,
    message: String,
}

impl StoreError {
    /// An error with its words.
    pub fn new(code: StoreCode, message: impl Into<String>) -> StoreError {
        StoreError {
            code,
            message: message.into(),
        }
    }

    /// Its kind.
    #[must_use]
    pub const fn code(&self) -> StoreCode {
        self.code
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}

/// Who writes: the agent, and the epoch in which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The agent.
    pub key: AgentKey,
    /// Its shard's epoch when the activation began.
    pub epoch: Epoch,
}

/// What is kept of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    /// JSON text of the state; empty while no turn kept one.
    pub state: String,
    /// The state's version; 0 while there is none.
    pub version: u32,
    /// How often the state was changed: what a commit that changes it was based on.
    pub revision: u64,
    /// JSON text of what users changed of the settings.
    pub settings: Option<String>,
    /// How far the stream is done.
    pub progress: Progress,
    /// How often an operator set the progress: part of the identities of what turns send.
    pub replays: u64,
    /// Turns that began and did not end, each with how often.
    pub started: Vec<(Trigger, u32)>,
    /// When the row was made.
    pub created_at: Millis,
    /// When it was changed last.
    pub updated_at: Millis,
}

/// A state to be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewState {
    /// JSON text.
    pub json: String,
    /// Its version.
    pub version: u32,
    /// The revision that it was made from; 0 for none.
    pub base: u64,
}

/// An event to be appended to a channel's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewEvent {
    /// The channel.
    pub channel: String,
    /// The event; `seq` and `ts` are the store's.
    pub event: Event,
}

impl NewEvent {
    /// An event without attachments.
    #[must_use]
    pub fn new(channel: &str, id: Uuid, sender: Arc<Sender>, hops: u8, body: Body) -> NewEvent {
        NewEvent {
            channel: channel.to_owned(),
            event: Event {
                id,
                seq: None,
                kind: EventKind::Persisted,
                ts: 0,
                sender,
                hops,
                body,
                attachments: Vec::new(),
            },
        }
    }
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Appended {
    /// The channel.
    pub channel: String,
    /// The event with its place, as it stands in the log.
    pub event: Arc<Event>,
    /// Whether it was appended now: it was there already if not.
    pub is_new: bool,
}

/// A change of a timer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TimerChange {
    /// Sets or replaces it.
    Set(TimerRow),
    /// Removes it, if there is one of the name.
    Remove(String),
}

/// A timer of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    /// Its name; one of a name for each agent.
    pub name: String,
    /// When it is due next.
    pub due: Millis,
    /// A cron expression, for one that comes again.
    pub cron: Option<String>,
    /// The cron expression's time zone; UTC if there is none.
    pub zone: Option<String>,
    /// What the agent gets with it.
    pub payload: Value,
    /// Agents that an event went through before this was set in a turn: what is sent when it
    /// fires has as many. One that comes again begins anew, with 1.
    #[serde(default = "first_hop")]
    pub hops: u8,
    /// When it was set, if its time was given from then on: where the clock was ahead then, it
    /// is due as much earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_at: Option<Millis>,
}

fn first_hop() -> u8 {
    1
}

/// A turn that was given up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// What it answered to.
    pub trigger: Trigger,
    /// The last error: its code and its text.
    pub code: String,
    /// What it said.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was given up.
    pub at: Millis,
}

/// What a turn changes, in one transaction; or several turns of an agent that runs one at a
/// time: the state, settings and progress of the last, what all of them send and set.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnCommit {
    /// Who writes.
    pub fence: Fence,
    /// What it answers to: its row of started turns goes, its journal, and the occurrence of
    /// its timer. None for a commit that is no turn's.
    pub trigger: Option<Trigger>,
    /// What turns before it answer to that end in the same commit. None of them answers to a
    /// timer.
    pub earlier: Vec<Trigger>,
    /// How far the stream is done with it; unchanged if there is none.
    pub progress: Option<Progress>,
    /// The state, if it changed.
    pub state: Option<NewState>,
    /// JSON text of the settings, if they changed.
    pub settings: Option<String>,
    /// Events that are sent with it.
    pub outbox: Vec<NewEvent>,
    /// Timers that are set and removed.
    pub timers: Vec<TimerChange>,
    /// The next occurrence of the timer that it answers to, if that comes again.
    pub again: Option<Millis>,
    /// If it was given up.
    pub dead: Option<DeadLetter>,
    /// The transaction of the agent's tables that is kept with it
    /// ([`TableTurn::id`](crate::TableTurn::id)).
    pub tables: Option<u64>,
    /// The present.
    pub now: Millis,
}

impl TurnCommit {
    /// One that changes nothing yet.
    #[must_use]
    pub fn new(fence: Fence, now: Millis) -> TurnCommit {
        TurnCommit {
            fence,
            trigger: None,
            earlier: Vec::new(),
            progress: None,
            state: None,
            settings: None,
            outbox: Vec::new(),
            timers: Vec::new(),
            again: None,
            dead: None,
            tables: None,
            now,
        }
    }
}

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Receipt {
    /// The events of its outbox that stand in a log now. Those whose channel lies elsewhere
    /// are in the outbox, and follow.
    pub appended: Vec<Appended>,
    /// The state's revision now.
    pub revision: u64,
    /// Whether the occurrence of the timer that it answers to was not there any more: it was
    /// done before, or its timer removed or replaced by a turn that was committed first.
    /// Nothing of the commit was kept then, but that the turn is over.
    pub is_gone: bool,
}

/// Whether a step may be made again when it is not known how it ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepClass {
    /// It only reads: again.
    Read,
    /// Whoever is asked knows its key: again.
    Idempotent,
    /// It changes something elsewhere: not again without being asked.
    Unsafe,
}

/// How far a step is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalStatus {
    /// It began.
    Started,
    /// It ended, with this JSON text.
    Done(String),
    /// It ended with an error: code and text.
    Failed(String, String),
}

/// A step of a turn, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRow {
    /// The turn.
    pub trigger: Trigger,
    /// The step: its name, with its ordinal where names come again.
    pub name: String,
    /// What kind of step it is.
    pub class: StepClass,
    /// What was asked, as a digest: another one under the same name is refused.
    pub body: u64,
    /// How far it is.
    pub status: JournalStatus,
}

/// An agent that lives on a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// Who.
    pub key: AgentKey,
    /// With what configuration.
    pub config: Value,
    /// Since when.
    pub registered_at: Millis,
}

/// A row of a store that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Its table.
    pub table: &'static str,
    /// The agent's key as it stands there.
    pub key: String,
    /// What is wrong with it.
    pub error: StoreError,
}

/// Keeps agents: state, progress, journal, timers, outbox and dead letters.
pub trait AgentStore: Send + Sync {
    /// What is kept of an agent; none if it never began a turn.
    ///
    /// Errors: [`StoreCode::Unreadable`] if its stream is done further than the log of its
    /// channel goes, as after a power cut that took a part of one of them.
    fn load(&self, key: &AgentKey) -> Reply<'_, Option<AgentRow>>;

    /// Writes a start ahead: that this turn began, for the `attempt`th time. With
    /// `progress`, the stream is done with it already.
    fn record_start(
        &self,
        fence: Fence,
        trigger: Trigger,
        attempt: u32,
        progress: Option<Progress>,
    ) -> Reply<'_, ()>;

    /// Ends a turn, whole or not at all. Progress is added to what is there and never taken
    /// back, so that turns which run at the same time may end in any order.
    fn commit(&self, commit: TurnCommit) -> Reply<'_, Receipt>;

    /// Replaces the state by one of a later version, and keeps what was there before each
    /// step.
    fn migrate_state(
        &self,
        fence: Fence,
        state: NewState,
        backups: Vec<(u32, String)>,
        now: Millis,
    ) -> Reply<'_, u64>;

    /// The journal of a turn, in the order in which its steps began.
    fn journal(&self, key: &AgentKey, trigger: &Trigger) -> Reply<'_, Vec<JournalRow>>;

    /// Keeps a step: a new one, how one that began ended, or that one which failed begins
    /// again. One that is done stays as it is.
    ///
    /// Errors: [`StoreCode::ChangedBody`] if the name stands for something else.
    fn record_step(&self, fence: Fence, row: JournalRow) -> Reply<'_, ()>;

    /// Timers that are due until then, with whose they are, earliest first.
    fn timers_due(&self, until: Millis, most: usize) -> Reply<'_, Vec<(AgentKey, TimerRow)>>;

    /// All timers of an agent.
    fn timers(&self, key: &AgentKey) -> Reply<'_, Vec<TimerRow>>;

    /// When the next timer is due.
    fn next_due(&self) -> Reply<'_, Option<Millis>>;

    /// Turns that were given up, oldest first.
    fn dead_letters(&self, key: &AgentKey) -> Reply<'_, Vec<DeadLetter>>;

    /// Forgets them.
    fn forget_dead(&self, key: &AgentKey) -> Reply<'_, u64>;

    /// Events of the outbox that are to be appended elsewhere: the agent, and the event.
    fn outbox(&self, most: usize) -> Reply<'_, Vec<(AgentKey, NewEvent)>>;

    /// Takes events out of the outbox that were appended.
    fn outbox_done(&self, ids: Vec<Uuid>) -> Reply<'_, ()>;

    /// Registers an agent, or changes its configuration.
    fn register(&self, registration: Registration) -> Reply<'_, ()>;

    /// Removes an agent from its channel; its state stays.
    fn unregister(&self, key: &AgentKey) -> Reply<'_, bool>;

    /// All agents whose rows can be read, by key.
    fn registrations(&self) -> Reply<'_, Vec<Registration>>;

    /// Rows of agents and timers that cannot be read: others are not held up by them.
    fn damaged(&self) -> Reply<'_, Vec<Damaged>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Registered agents that have something to do: events of their channel that they have
    /// not seen, or turns that began and did not end.
    fn behind(&self) -> Reply<'_, Vec<AgentKey>>;

    /// The tables of an agent for a turn: its file is opened, and made if there is none. What
    /// an earlier turn left between its two files is done first.
    ///
    /// Errors: [`StoreCode::Input`] for a store without tables; [`StoreCode::Unreadable`] if
    /// state and tables are of two times, as after a power cut that took a part of one;
    /// [`StoreCode::Fenced`].
    fn tables(&self, fence: Fence) -> Reply<'_, Arc<dyn TableTurn>> {
        let message = format!("the store of {} keeps no tables of agents", fence.key);
        Box::pin(std::future::ready(Err(StoreError::new(
            StoreCode::Input,
            message,
        ))))
    }

    /// Leads the tables of an agent up to the version that these migrations end in, in one
    /// transaction: those that were made before are not made again.
    ///
    /// Errors are those of [`AgentStore::tables`] and of statements, and
    /// [`StoreCode::Unreadable`] if the tables are of a later version.
    fn migrate_tables(&self, fence: Fence, migrations: Vec<String>) -> Reply<'_, ()> {
        let _ = migrations;
        Box::pin(async move { self.tables(fence).await.map(drop) })
    }

    /// Keeps a program by its hash.
    fn keep_program(&self, hash: [u8; 32], bytes: Vec<u8>) -> Reply<'_, ()>;

    /// A program by its hash.
    fn program(&self, hash: [u8; 32]) -> Reply<'_, Option<Vec<u8>>>;

    /// The epoch that this handle owns the shard of an agent with.
    fn epoch(&self, key: &AgentKey) -> Epoch;

    /// Whether the last owner was cut off instead of closing the store.
    fn was_cut_off(&self) -> bool;

    /// Why the store is in another file than when its last owner opened it, if it is.
    fn moved(&self) -> Option<String> {
        None
    }

    /// Waits until everything that was acknowledged is as durable as it will be.
    fn flush(&self) -> Reply<'_, ()>;
}

/// Keeps channels: logs of events with dense places.
pub trait ChannelStore: Send + Sync {
    /// Appends events, all or none. One whose identity is in the log is not appended again,
    /// and answered with what stands there.
    ///
    /// Errors: [`StoreCode::Fenced`] if a later epoch of the agent wrote already;
    /// [`StoreCode::ChangedBody`] if something else stands under the identity.
    fn append(
        &self,
        events: Vec<NewEvent>,
        fence: Option<Fence>,
        now: Millis,
    ) -> Reply<'_, Vec<Appended>>;

    /// Events after a place, in order, at most so many. Their kind is `Persisted`.
    fn read(&self, channel: &str, after: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>>;

    /// Events before a place, the newest first, at most so many.
    fn read_before(&self, channel: &str, before: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>>;

    /// An event by its identity.
    fn find(&self, channel: &str, id: Uuid) -> Reply<'_, Option<Arc<Event>>>;

    /// The place of the last event; 0 for a channel without any.
    fn head(&self, channel: &str) -> Reply<'_, Seq>;

    /// All channels with their heads, by name.
    fn channels(&self) -> Reply<'_, Vec<(String, Seq)>>;

    /// The configuration of a channel: an object.
    fn channel_config(&self, channel: &str) -> Reply<'_, Value>;

    /// Merges members into the configuration, and gives what is there now.
    fn update_channel_config(&self, channel: &str, changes: Value) -> Reply<'_, Value>;
}

/// Whoever sends for an agent, as its channel shows it.
impl Sender {
    /// The agent of a key.
    #[must_use]
    pub fn agent(key: &AgentKey) -> Sender {
        Sender {
            id: key.participant(),
            name: Some(key.agent().to_owned()),
            kind: Some("agent".to_owned()),
            handle: Some(key.handle().to_owned()),
        }
    }
}
