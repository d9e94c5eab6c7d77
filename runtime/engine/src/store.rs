//! Stores of agents and channels: the durable data, and the transactions that change it.
//!
//! Each shard of a store has one owner. Acquiring it increments its epoch, the fencing token.
//! Every write carries the epoch that it was begun under ([`Fence`]) and is refused if that is
//! not the newest. A handle lists agents, timers and outgoing events of its own shards only.

use crate::delivery::Progress;
use crate::event::{Body, Event, EventKind, Sender};
use crate::key::{AgentKey, Epoch, Millis, Seq, Trigger};
use crate::shards::{Claim, Shards};
use crate::tables::TableTurn;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::sync::Arc;
use uuid::Uuid;

mod error;

pub use error::{StoreCode, StoreError};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The fencing token of a writer: the agent, and the epoch in which it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The agent.
    pub key: AgentKey,
    /// Its shard's epoch when the activation began.
    pub epoch: Epoch,
}

/// An agent's stored row.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    /// JSON text of the state; empty before the first stored state.
    pub state: String,
    /// The state's version; 0 without a state.
    pub version: u32,
    /// Number of state changes, which commits check optimistically.
    pub revision: u64,
    /// JSON text of the users' settings.
    pub settings: Option<String>,
    /// The processed part of the stream.
    pub progress: Progress,
    /// How often an operator set the progress: part of the identities of a turn's sends.
    pub replays: u64,
    /// Turns that started and did not end, each with the number of starts.
    pub started: Vec<(Trigger, u32)>,
    /// When the row was created.
    pub created_at: Millis,
    /// When it was last changed.
    pub updated_at: Millis,
}

/// A state to store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewState {
    /// JSON text.
    pub json: String,
    /// The state's version.
    pub version: u32,
    /// The revision that it was derived from; 0 for none.
    pub base: u64,
}

/// An event to append to a channel's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewEvent {
    /// The channel's name.
    pub channel: String,
    /// The event; the store sets `seq` and `ts`.
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

/// The result of appending an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Appended {
    /// The channel's name.
    pub channel: String,
    /// The event with its sequence number, as the log has it.
    pub event: Arc<Event>,
    /// Whether this call appended it; false if it was already in the log.
    pub is_new: bool,
}

/// A change of a timer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TimerChange {
    /// Sets or replaces the timer.
    Set(TimerRow),
    /// Removes the timer of this name, if it exists.
    Remove(String),
}

/// A timer of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    /// The name, unique for each agent.
    pub name: String,
    /// The next due time.
    pub due: Millis,
    /// The cron expression of a recurring timer.
    pub cron: Option<String>,
    /// The cron expression's time zone; UTC by default.
    pub zone: Option<String>,
    /// The value that the agent gets with it.
    pub payload: Value,
    /// Hop count of the turn that set the timer; events sent when it fires continue from it. A
    /// recurring timer starts again at 1.
    #[serde(default = "first_hop")]
    pub hops: u8,
    /// When a relative timer was set. If the clock was ahead then, it is due earlier by that
    /// amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_at: Option<Millis>,
}

fn first_hop() -> u8 {
    1
}

/// A turn that was given up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The event, timer or hook that triggered the turn.
    pub trigger: Trigger,
    /// The code of the last error.
    pub code: String,
    /// The text of the last error.
    pub error: String,
    /// Number of attempts.
    pub attempts: u32,
    /// When it was given up.
    pub at: Millis,
}

/// The changes of a turn in one transaction, or a group commit of several turns of an agent
/// that runs one at a time: the state, settings and progress of the last, the sends and timers
/// of all.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnCommit {
    /// The fencing token.
    pub fence: Fence,
    /// The trigger of the turn: its start, its journal and the occurrence of its timer are
    /// removed. `None` for a commit that is not a turn's.
    pub trigger: Option<Trigger>,
    /// Triggers of earlier turns in the same group commit. None of them is a timer.
    pub earlier: Vec<Trigger>,
    /// The resulting progress; `None` if it is unchanged.
    pub progress: Option<Progress>,
    /// The state, if it changed.
    pub state: Option<NewState>,
    /// JSON text of the settings, if they changed.
    pub settings: Option<String>,
    /// Events to send.
    pub outbox: Vec<NewEvent>,
    /// Timers to set and remove.
    pub timers: Vec<TimerChange>,
    /// The next occurrence of the triggering timer, if it recurs.
    pub again: Option<Millis>,
    /// The dead letter of a turn that was given up.
    pub dead: Option<DeadLetter>,
    /// The transaction of the agent's tables to commit with it
    /// ([`TableTurn::id`](crate::TableTurn::id)).
    pub tables: Option<u64>,
    /// The turn as it can be replayed, if its agent keeps turns.
    pub kept: Option<KeptTurn>,
    /// The current time.
    pub now: Millis,
}

/// A turn that ended, kept so that it can be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTurn {
    /// The trigger of the turn.
    pub trigger: Trigger,
    /// The revision of the state that it began with.
    pub base: u64,
    /// JSON text of that state.
    pub state: Arc<str>,
    /// What the turn got and did, in the form of its driver.
    pub record: String,
    /// How many of the agent's last turns the store keeps.
    pub keep: u32,
}

impl TurnCommit {
    /// A commit without changes.
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
            kept: None,
            now,
        }
    }
}

/// The result of a commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Receipt {
    /// The events of its outbox that are in a log now. Those for channels of another store are
    /// in the outbox, and are forwarded later.
    pub appended: Vec<Appended>,
    /// The state's new revision.
    pub revision: u64,
    /// Whether the occurrence of the triggering timer no longer existed: it was handled before,
    /// or its timer removed or replaced by a turn that committed first. The commit then only
    /// ended the turn.
    pub is_gone: bool,
}

/// Whether a step whose outcome is unknown may run again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepClass {
    /// It only reads: it may.
    Read,
    /// It is idempotent, because the service knows its key: it may.
    Idempotent,
    /// It has an external effect: it may not, unless requested.
    Unsafe,
}

/// The status of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalStatus {
    /// It started.
    Started,
    /// It ended, with this JSON text.
    Done(String),
    /// It failed, with this code and text.
    Failed(String, String),
}

/// A journaled step of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRow {
    /// The turn.
    pub trigger: Trigger,
    /// The step's name, with an ordinal if the name repeats.
    pub name: String,
    /// The step's class.
    pub class: StepClass,
    /// A digest of the request: a different request under the same name is refused.
    pub body: u64,
    /// The step's status.
    pub status: JournalStatus,
}

/// An agent's registration on a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// The agent.
    pub key: AgentKey,
    /// Its configuration.
    pub config: Value,
    /// When it was registered.
    pub registered_at: Millis,
    /// The metadata that it announced last, of agents that did.
    pub metadata: Option<Map<String, Value>>,
}

/// An unreadable row of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The table.
    pub table: &'static str,
    /// The agent's key as stored.
    pub key: String,
    /// The error.
    pub error: StoreError,
}

/// Stores agents: state, progress, journal, timers, outbox and dead letters.
pub trait AgentStore: Send + Sync {
    /// Loads an agent's row; `None` before its first turn began.
    ///
    /// Errors: [`StoreCode::Unreadable`] if its progress passes the end of its channel's log,
    /// as after a power failure that lost a part of one of them.
    fn load(&self, key: &AgentKey) -> Reply<'_, Option<AgentRow>>;

    /// Records ahead that a turn starts for the `attempt`th time. With `progress`, the event
    /// already counts as processed.
    fn record_start(
        &self,
        fence: Fence,
        trigger: Trigger,
        attempt: u32,
        progress: Option<Progress>,
    ) -> Reply<'_, ()>;

    /// Commits a turn whole or not at all. An update of the agent's presence that it sends is
    /// the metadata of the agent's registration. Progress is merged with the stored one and never
    /// goes back, so that concurrent turns may end in any order.
    fn commit(&self, commit: TurnCommit) -> Reply<'_, Receipt>;

    /// Replaces the state with one of a later version, and archives the states before each
    /// migration.
    fn migrate_state(
        &self,
        fence: Fence,
        state: NewState,
        backups: Vec<(u32, String)>,
        now: Millis,
    ) -> Reply<'_, u64>;

    /// The journal of a turn, in the order in which its steps began.
    fn journal(&self, key: &AgentKey, trigger: &Trigger) -> Reply<'_, Vec<JournalRow>>;

    /// Journals a step: a new one, the result of a started one, or the restart of a failed one.
    /// A finished step never changes.
    ///
    /// Errors: [`StoreCode::ChangedBody`] if the name belongs to a different step.
    fn record_step(&self, fence: Fence, row: JournalRow) -> Reply<'_, ()>;

    /// Timers of owned shards due at a time, with their agents, earliest first.
    fn timers_due(&self, until: Millis, most: usize) -> Reply<'_, Vec<(AgentKey, TimerRow)>>;

    /// All timers of an agent.
    fn timers(&self, key: &AgentKey) -> Reply<'_, Vec<TimerRow>>;

    /// The earliest due time of all timers of owned shards.
    fn next_due(&self) -> Reply<'_, Option<Millis>>;

    /// Turns that were given up, oldest first.
    fn dead_letters(&self, key: &AgentKey) -> Reply<'_, Vec<DeadLetter>>;

    /// Deletes the dead letters, and gives their number.
    fn forget_dead(&self, key: &AgentKey) -> Reply<'_, u64>;

    /// Events of owned shards in the outbox, to append to another store, each with its agent.
    fn outbox(&self, most: usize) -> Reply<'_, Vec<(AgentKey, NewEvent)>>;

    /// Number of these events.
    fn outbox_len(&self) -> Reply<'_, u64> {
        Box::pin(async move { Ok(self.outbox(usize::MAX).await?.len() as u64) })
    }

    /// Removes forwarded events from the outbox.
    fn outbox_done(&self, ids: Vec<Uuid>) -> Reply<'_, ()>;

    /// Registers an agent without metadata, or changes its configuration.
    fn register(&self, registration: Registration) -> Reply<'_, ()>;

    /// Removes an agent from its channel; its state remains.
    fn unregister(&self, key: &AgentKey) -> Reply<'_, bool>;

    /// All agents of owned shards with readable rows, by key.
    fn registrations(&self) -> Reply<'_, Vec<Registration>>;

    /// Unreadable rows of agents and timers; they do not affect other rows.
    fn damaged(&self) -> Reply<'_, Vec<Damaged>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Registered agents of owned shards with pending work: unprocessed events of their channel,
    /// or turns that started and did not end.
    fn behind(&self) -> Reply<'_, Vec<AgentKey>>;

    /// Opens the tables of an agent for a turn; a missing file is created. A commit that an
    /// earlier turn left incomplete between its two files is completed first.
    ///
    /// Errors: [`StoreCode::Input`] for a store without tables; [`StoreCode::Unreadable`] if
    /// state and tables are from different times, as after a power failure that lost a part of
    /// one; [`StoreCode::Fenced`].
    fn tables(&self, fence: Fence) -> Reply<'_, Arc<dyn TableTurn>> {
        let message = format!("the store of {} keeps no tables of agents", fence.key);
        Box::pin(std::future::ready(Err(StoreError::new(
            StoreCode::Input,
            message,
        ))))
    }

    /// Runs the missing migrations of an agent's tables in one transaction.
    ///
    /// Errors are those of [`AgentStore::tables`] and of statements, and
    /// [`StoreCode::Unreadable`] if the tables are of a later version.
    fn migrate_tables(&self, fence: Fence, migrations: Vec<String>) -> Reply<'_, ()> {
        let _ = migrations;
        Box::pin(async move { self.tables(fence).await.map(drop) })
    }

    /// Stores a program under its hash.
    fn keep_program(&self, hash: [u8; 32], bytes: Vec<u8>) -> Reply<'_, ()>;

    /// Finds a program by its hash.
    fn program(&self, hash: [u8; 32]) -> Reply<'_, Option<Vec<u8>>>;

    /// The triggers of an agent's kept turns, oldest first.
    fn kept_turns(&self, key: &AgentKey) -> Reply<'_, Vec<Trigger>> {
        let _ = key;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// The last kept turn of a trigger, and the state that it left; `None` for a state that is
    /// not kept, because the turn after it is not.
    fn kept_turn(
        &self,
        key: &AgentKey,
        trigger: &Trigger,
    ) -> Reply<'_, Option<(KeptTurn, Option<String>)>> {
        let _ = (key, trigger);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// The epoch under which this handle owns an agent's shard; 0 if it does not.
    fn epoch(&self, key: &AgentKey) -> Epoch;

    /// Acquires the shards of a claim that it may take, and gives them. Each gets a new epoch.
    /// Shards that this handle owns already are acquired anew.
    ///
    /// Errors: [`StoreCode::Input`] without an owner's name.
    fn acquire(&self, claim: Claim) -> Reply<'_, Shards>;

    /// Extends the lease of all owned shards, and gives those that others acquired meanwhile:
    /// this handle has lost them. A lease that ended without another owner is extended.
    fn renew(&self, until: Millis) -> Reply<'_, Shards>;

    /// Gives shards back, so that others acquire them at once; those of other owners stay with
    /// them. Running writes are refused from the call on, even if it fails.
    fn release(&self, shards: Shards) -> Reply<'_, ()>;

    /// The shards that this handle owns, as far as it knows.
    fn owned(&self) -> Shards;

    /// Owned shards whose last owner was interrupted before it released them.
    fn was_cut_off(&self) -> Shards;

    /// Why the file is not the one that the last owner opened, if it differs.
    fn moved(&self) -> Option<String> {
        None
    }

    /// Whether replies need no runtime of the caller, so that it may block its thread on them.
    fn is_synchronous(&self) -> bool {
        false
    }

    /// Clears the progress of an agent that is not awake: it handles its channel again from the
    /// beginning, under new identities.
    ///
    /// Errors: [`StoreCode::NotFound`] if the store has no row of the agent;
    /// [`StoreCode::Input`] for a store that cannot.
    fn restart(&self, key: &AgentKey) -> Reply<'_, ()> {
        let message = format!("the store of {key} does not set progress back");
        Box::pin(std::future::ready(Err(StoreError::new(
            StoreCode::Input,
            message,
        ))))
    }

    /// Waits until everything acknowledged is durable.
    fn flush(&self) -> Reply<'_, ()>;
}

/// Stores channels: logs of events with dense sequence numbers.
pub trait ChannelStore: Send + Sync {
    /// Appends all events or none. An event whose identity is already in the log is not
    /// appended again; the result is the logged one.
    ///
    /// Errors: [`StoreCode::Fenced`] if a later epoch of the agent wrote already;
    /// [`StoreCode::ChangedBody`] if a different event has the identity.
    fn append(
        &self,
        events: Vec<NewEvent>,
        fence: Option<Fence>,
        now: Millis,
    ) -> Reply<'_, Vec<Appended>>;

    /// Appends events in order, each by itself: one that is refused keeps no other out. A store
    /// with transactions takes one for all.
    ///
    /// Errors: those of [`ChannelStore::append`], of each event.
    fn append_each(
        &self,
        events: Vec<NewEvent>,
        now: Millis,
    ) -> BoxFuture<'_, Vec<Result<Appended, StoreError>>> {
        Box::pin(async move {
            let mut all = Vec::with_capacity(events.len());
            for event in events {
                let appended = self.append(vec![event], None, now).await;
                all.push(appended.and_then(|mut appended| {
                    let none = || StoreError::new(StoreCode::InDoubt, "nothing was appended");
                    appended.pop().ok_or_else(none)
                }));
            }
            all
        })
    }

    /// At most `most` events after a sequence number, in order. Their kind is `Persisted`.
    fn read(&self, channel: &str, after: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>>;

    /// At most `most` events before a sequence number, newest first.
    fn read_before(&self, channel: &str, before: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>>;

    /// An event by its identity.
    fn find(&self, channel: &str, id: Uuid) -> Reply<'_, Option<Arc<Event>>>;

    /// The sequence number of the last event; 0 for an empty channel.
    fn head(&self, channel: &str) -> Reply<'_, Seq>;

    /// All channels with their heads, by name.
    fn channels(&self) -> Reply<'_, Vec<(String, Seq)>>;

    /// The configuration of a channel: an object.
    fn channel_config(&self, channel: &str) -> Reply<'_, Value>;

    /// Merges members into the configuration, and gives the result.
    fn update_channel_config(&self, channel: &str, changes: Value) -> Reply<'_, Value>;
}

/// Senders of agents' events.
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
