//! Delivery state machine: decides for one agent which turn runs, when it is tried again, when
//! it is given up, and how far the stream is done. It knows no clock: the present comes with
//! each input.
//!
//! What happens goes in as [`Input`]; what must be done comes out as [`Command`]s, in the order
//! in which it is begun. Whoever drives it does each and tells once how it ended.
//!
//! - **Reading.** Events are read in order, from [`Machine::taken`] on, as many as there is
//!   [`Machine::room`] for. What comes again is ignored. What skips a place is held back until
//!   that came, as long as there is room; otherwise it is ignored, and read again.
//! - **Writing.** One write is under way at a time. It claims what will be done once it is made,
//!   and what was filtered, so that the stream's progress never claims what may fail.
//! - **Timers.** A trigger that waits or runs is ignored when it comes again; one that was
//!   committed is not remembered. Due timers are read after the last commit was told. Whether
//!   one still stands is looked at when it is run; if not, its turn is done without a change.
//! - **Outlived attempts.** A handler may go on after its end was told. Its steps and what it
//!   sends are refused then: its turn may be committed, and its journal be gone.
//! - **Killers.** After a process was cut off, the first turn, and each that was under way
//!   then, is written ahead and runs alone until it is committed; one under which the process
//!   died too often is given up. Its start is taken back if it is left to whoever loads the
//!   agent next.
//! - **Stopping.** After [`Command::Stop`] nothing is said and nothing is taken. A machine may
//!   be dropped at any time: that is what a crash does.
//!
//! | mode | order | after a kill |
//! |---|---|---|
//! | [`Delivery::AtMostOnce`] | the start is recorded with the progress, the turn runs, its changes are committed | not run again; recovery lists it as lost |
//! | [`Delivery::AtLeastOnce`] | the turn runs, its changes and the progress are committed | run again; what it sent at once has the same identities |
//! | [`Delivery::ExactlyOnceState`] | the turn runs; changes, progress and what it sends are one commit | run again; nothing of the first run is seen |

mod machine;
#[cfg(test)]
mod tests;
mod turns;
mod writes;

pub use machine::Machine;

use crate::key::{Millis, Seq, Trigger};
use crate::retry::Retry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// What an agent can rely on when its process is killed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// An event is seen once or not at all.
    AtMostOnce,
    /// An event is seen once or more often.
    AtLeastOnce,
    /// State changes once for each event; effects elsewhere are made at least once, each
    /// time under the same identity.
    #[default]
    ExactlyOnceState,
}

/// What happens after a turn was given up.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDead {
    /// The stream goes on.
    #[default]
    Continue,
    /// The agent stops in front of the event.
    Stop,
}

/// How an agent's events are delivered.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What it can rely on.
    pub delivery: Delivery,
    /// Turns that run at the same time.
    pub concurrency: NonZeroU32,
    /// How often a turn is tried.
    pub retry: Retry,
    /// What happens after that.
    pub on_dead: OnDead,
    /// A turn under which the process died this often is given up.
    pub max_deaths: u32,
    /// Progress that no turn commits (events that were filtered) is kept this much later.
    pub lazy: Millis,
    /// Events that are waited for in memory, at most; more are not taken until there is room.
    pub max_queued: usize,
    /// Turns that end at once and are kept in one commit, at most. With more than one a turn
    /// may begin before what the one before it changed is kept: its operations wait for that,
    /// what its handler does elsewhere by itself does not. For
    /// [`Delivery::ExactlyOnceState`], one turn at a time.
    pub turns_per_commit: NonZeroU32,
}

impl Default for Policy {
    /// State changes once for each event, one turn at a time.
    fn default() -> Policy {
        Policy {
            delivery: Delivery::default(),
            concurrency: NonZeroU32::MIN,
            retry: Retry::default(),
            on_dead: OnDead::default(),
            max_deaths: 3,
            lazy: 1_000,
            max_queued: 1_024,
            turns_per_commit: NonZeroU32::MIN,
        }
    }
}

impl Policy {
    /// Turns that may be kept in one commit: more than one only where one runs at a time and
    /// the state changes once for each event.
    #[must_use]
    pub fn joined(&self) -> usize {
        let is_fit = self.delivery == Delivery::ExactlyOnceState && self.concurrency.get() == 1;
        match is_fit {
            true => usize::try_from(self.turns_per_commit.get()).unwrap_or(usize::MAX),
            false => 1,
        }
    }
}

/// How far a stream is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Everything up to here.
    pub checkpoint: Seq,
    /// And these beyond it, which turns that run at the same time did first.
    pub done: BTreeSet<Seq>,
}

impl Progress {
    /// Whether an event is done.
    #[must_use]
    pub fn has(&self, seq: Seq) -> bool {
        seq <= self.checkpoint || self.done.contains(&seq)
    }

    /// The same with one more.
    pub fn add(&mut self, seq: Seq) {
        if !self.has(seq) {
            self.done.insert(seq);
        }
        while let Some(next) = self.checkpoint.checked_add(1) {
            if !self.done.remove(&next) {
                break;
            }
            self.checkpoint = next;
        }
    }
}

/// A turn that began before the agent was loaded, and did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// What it answers to.
    pub trigger: Trigger,
    /// How often it began.
    pub attempts: u32,
}

/// What the store has of an agent when it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// How far its stream is done.
    pub progress: Progress,
    /// Turns that began and did not end.
    pub started: Vec<Started>,
    /// Whether the process that had it before was cut off. Not so if this very process had it:
    /// turns that began under it killed nothing.
    pub was_cut_off: bool,
}

/// A turn of this activation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId(pub u64);

/// How a handler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// It did what it wanted.
    Done,
    /// It gave an error; `is_final` if trying again is of no use.
    Failed {
        /// A stable code.
        code: String,
        /// What it said.
        error: String,
        /// Whether trying again is of no use.
        is_final: bool,
    },
    /// It was cancelled: by its time, or because the agent stops.
    Cancelled,
}

/// Why a write was not made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CommitFault {
    /// Another owner has the agent.
    Fenced,
    /// The state was changed since the turn read it.
    Conflict,
    /// Nothing was written, and it may go better later.
    Unavailable,
    /// It is not known whether it was written.
    InDoubt,
    /// It can never be written: it is too large, or says something else than before.
    Refused,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The next event of the stream; `deliver` if it passes the agent's filter.
    Event {
        /// Its place.
        seq: Seq,
        /// Whether the agent sees it.
        deliver: bool,
    },
    /// A timer is due, or an event came that is in no log, or a hook is to be run.
    Trigger(Trigger),
    /// A start was recorded.
    Recorded(TurnId),
    /// A start was not recorded.
    NotRecorded(TurnId, CommitFault),
    /// The attempt of a turn ended: the turn, which attempt, how. Any but the newest is
    /// ignored.
    Ended(TurnId, u32, TurnResult),
    /// A commit was made.
    Committed(TurnId),
    /// A commit was not made.
    NotCommitted(TurnId, CommitFault),
    /// Progress was kept.
    Saved,
    /// Progress was not kept.
    NotSaved(CommitFault),
    /// Time has passed.
    Time,
    /// No more turns are begun; those that run may end.
    Drain,
    /// Turns that run are cancelled too.
    Halt,
}

/// How a turn is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// With what it changed.
    Done,
    /// Given up: without its changes, with a dead letter.
    Dead {
        /// A stable code.
        code: String,
        /// The last error.
        error: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// Cut off in a mode that runs it once: without its changes.
    Lost,
}

/// Why an agent stops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was asked to, and is done.
    Drained,
    /// Another owner has it.
    Fenced,
    /// A turn was given up, and the policy is to stop.
    Dead,
    /// It must be read again from the store: what was written last is not known.
    Reload,
}

/// What must be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Record that a turn begins.
    Record {
        /// The turn.
        turn: TurnId,
        /// What it answers to.
        trigger: Trigger,
        /// How often it began, this time included; without it once that is taken back.
        attempt: u32,
        /// The stream is done with it already.
        progress: Option<Progress>,
    },
    /// Run the handler.
    Run {
        /// The turn.
        turn: TurnId,
        /// What it answers to.
        trigger: Trigger,
        /// Which run of this activation it is, from 1: those after a conflict count too.
        attempt: u32,
    },
    /// Cancel the handler; its end is still told.
    Cancel(TurnId),
    /// Commit the turn. What an attempt changed goes in with [`TurnEnd::Done`] only.
    Commit {
        /// The turn.
        turn: TurnId,
        /// What it answers to.
        trigger: Trigger,
        /// How.
        end: TurnEnd,
        /// How far the stream is done then; none where it is unchanged.
        progress: Option<Progress>,
    },
    /// Keep the progress, of which no turn is part.
    Save(Progress),
    /// Tell the machine when this time has come; replaces the earlier one.
    WakeAt(Millis),
    /// These turns were cut off and are not run again. They are committed as lost, one after
    /// the other; tell the agent.
    Lost(Vec<Trigger>),
    /// The agent stops. Nothing follows.
    Stop(StopReason),
}

impl Command {
    /// Whether it may be done only when every turn that was told as committed is kept. A
    /// commit that joins those of turns before it need not wait.
    #[must_use]
    pub fn needs_kept(&self) -> bool {
        match self {
            Command::Record { .. } | Command::Commit { .. } | Command::Save(_) => true,
            Command::Stop(reason) => *reason == StopReason::Drained,
            // Whether a timer still stands is looked at when its turn begins.
            Command::Run { trigger, .. } => trigger.seq().is_none(),
            Command::Cancel(_) | Command::WakeAt(_) | Command::Lost(_) => false,
        }
    }
}
