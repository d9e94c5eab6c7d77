//! Delivery state machine: decides for one agent which turn runs, when it is retried, when it
//! is given up, and how far the stream is processed. It has no clock: each input carries the
//! current time.
//!
//! [`Input`]s report what happened; [`Command`]s say what to do, in the order in which to
//! begin. The driver executes each command and reports its result once.
//!
//! - **Reading.** Events are read in order, from [`Machine::taken`] on, as far as
//!   [`Machine::room`] allows. Duplicates are ignored. An event that skips a sequence number is
//!   held back until the missing one arrives, as long as there is room; otherwise it is
//!   ignored, and read again.
//! - **Writing.** One write is in flight at a time. It claims the progress that holds once it
//!   succeeds, including filtered events, so that the stream's progress never claims what may
//!   fail.
//! - **Timers.** A trigger that is queued or running is ignored when it arrives again; a
//!   committed one is not remembered. Due timers are read after the last commit was reported.
//!   Whether a timer still exists is checked when its turn runs; if not, the turn ends without
//!   changes.
//! - **Outlived attempts.** A handler may continue after its end was reported. Its steps and
//!   sends are then refused: its turn may be committed and its journal deleted.
//! - **Crash isolation.** After a crash, the first turn and each turn that was in flight is
//!   recorded ahead and runs alone until it is committed. A turn under which the process
//!   crashed too often is given up. Its recorded start is withdrawn if the turn is left to the
//!   next activation.
//! - **Stopping.** After [`Command::Stop`] the machine emits no command and ignores all inputs.
//!   It may be dropped at any time, as a crash would.
//!
//! | mode | order | after a crash |
//! |---|---|---|
//! | [`Delivery::AtMostOnce`] | the start is recorded with the progress, the turn runs, its
//! changes are committed | not run again; recovery lists it as lost |
//! | [`Delivery::AtLeastOnce`] | the turn runs, its changes and the progress are committed |
//! run again; immediate sends have the same identities |
//! | [`Delivery::ExactlyOnceState`] | the turn runs; changes, progress and sends are one commit
//! | run again; the first run leaves no trace |

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

/// Delivery guarantees after a crash of the process.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// An event is handled at most once.
    AtMostOnce,
    /// An event is handled at least once.
    AtLeastOnce,
    /// State changes exactly once for each event. External effects happen at least once, each
    /// time under the same identity.
    #[default]
    ExactlyOnceState,
}

/// The reaction to a turn that was given up.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDead {
    /// The stream continues.
    #[default]
    Continue,
    /// The agent stops before the event.
    Stop,
}

/// How an agent's events are delivered.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The delivery guarantee.
    pub delivery: Delivery,
    /// Maximum concurrent turns.
    pub concurrency: NonZeroU32,
    /// How often a turn is tried.
    pub retry: Retry,
    /// The reaction to a turn that was given up.
    pub on_dead: OnDead,
    /// A turn under which the process crashed this often is given up.
    pub max_deaths: u32,
    /// Delay before progress without a turn (filtered events) is stored.
    pub lazy: Millis,
    /// Maximum queued events; further events are read when there is room.
    pub max_queued: usize,
    /// Maximum turns of a group commit. With more than one, a turn may begin before the changes
    /// of earlier turns are durable. Its operations wait for that; other external actions of
    /// its handler do not. It requires [`Delivery::ExactlyOnceState`] and one turn at a time.
    pub turns_per_commit: NonZeroU32,
}

impl Default for Policy {
    /// Exactly-once state, one turn at a time.
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
    /// Effective maximum turns of a group commit: more than one only with exactly-once state
    /// and one turn at a time.
    #[must_use]
    pub fn joined(&self) -> usize {
        let is_fit = self.delivery == Delivery::ExactlyOnceState && self.concurrency.get() == 1;
        match is_fit {
            true => usize::try_from(self.turns_per_commit.get()).unwrap_or(usize::MAX),
            false => 1,
        }
    }
}

/// The processed part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// All events up to this one are processed.
    pub checkpoint: Seq,
    /// Processed events after the checkpoint; concurrent turns finished them out of order.
    pub done: BTreeSet<Seq>,
}

impl Progress {
    /// Whether an event is processed.
    #[must_use]
    pub fn has(&self, seq: Seq) -> bool {
        seq <= self.checkpoint || self.done.contains(&seq)
    }

    /// Adds an event.
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

/// A turn that started in an earlier activation and did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The event, timer or hook that triggered the turn.
    pub trigger: Trigger,
    /// How often it started.
    pub attempts: u32,
}

/// An agent's data in the store when it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The processed part of its stream.
    pub progress: Progress,
    /// Turns that started and did not end.
    pub started: Vec<Started>,
    /// Whether the previous process crashed. False if this process had the agent before: its
    /// turns caused no crash.
    pub was_cut_off: bool,
}

/// A turn of this activation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId(pub u64);

/// The result of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// It succeeded.
    Done,
    /// It failed.
    Failed {
        /// A stable code.
        code: String,
        /// The error's text.
        error: String,
        /// Whether a retry is useless.
        is_final: bool,
    },
    /// It was cancelled: by its timeout, or because the agent stops.
    Cancelled,
}

/// Why a write failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CommitFault {
    /// Another owner has the agent.
    Fenced,
    /// The state changed since the turn read it.
    Conflict,
    /// Nothing was written, and a retry may succeed.
    Unavailable,
    /// Whether it was written is unknown.
    InDoubt,
    /// The write can never succeed: it is too large, or contradicts an earlier one.
    Refused,
}

/// An event that the driver reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The next event of the stream.
    Event {
        /// Its sequence number.
        seq: Seq,
        /// Whether it passes the agent's filter.
        deliver: bool,
    },
    /// A timer is due, an ephemeral event arrived, or a hook must run.
    Trigger(Trigger),
    /// A start was recorded.
    Recorded(TurnId),
    /// A start was not recorded.
    NotRecorded(TurnId, CommitFault),
    /// An attempt ended: the turn, the number of the attempt, and the result. Only the newest
    /// attempt counts.
    Ended(TurnId, u32, TurnResult),
    /// A commit succeeded.
    Committed(TurnId),
    /// A commit failed.
    NotCommitted(TurnId, CommitFault),
    /// Progress was stored.
    Saved,
    /// Progress was not stored.
    NotSaved(CommitFault),
    /// Time has passed.
    Time,
    /// Begin no more turns; running ones may end.
    Drain,
    /// Cancel running turns too.
    Halt,
}

/// How a turn is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// With its changes.
    Done,
    /// Given up: without its changes, with a dead letter.
    Dead {
        /// A stable code.
        code: String,
        /// The last error.
        error: String,
        /// Number of attempts.
        attempts: u32,
    },
    /// Interrupted in a mode that runs it once: without its changes.
    Lost,
}

/// Why an agent stops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was asked to stop, and all turns have ended.
    Drained,
    /// Another owner has it.
    Fenced,
    /// A turn was given up under [`OnDead::Stop`].
    Dead,
    /// It must be loaded again: the outcome of the last write is unknown.
    Reload,
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Record the start of a turn.
    Record {
        /// The turn.
        turn: TurnId,
        /// The event, timer or hook that triggered the turn.
        trigger: Trigger,
        /// How often the turn started, this time included unless the start is withdrawn.
        attempt: u32,
        /// Progress that already includes the turn's event.
        progress: Option<Progress>,
    },
    /// Run the handler.
    Run {
        /// The turn.
        turn: TurnId,
        /// The event, timer or hook that triggered the turn.
        trigger: Trigger,
        /// The number of this run in the activation, from 1, including reruns after conflicts.
        attempt: u32,
    },
    /// Cancel the handler; its end is still reported.
    Cancel(TurnId),
    /// Commit the turn. An attempt's changes are included only with [`TurnEnd::Done`].
    Commit {
        /// The turn.
        turn: TurnId,
        /// The event, timer or hook that triggered the turn.
        trigger: Trigger,
        /// How the turn ends.
        end: TurnEnd,
        /// The resulting progress; `None` if it is unchanged.
        progress: Option<Progress>,
    },
    /// Store progress that is part of no turn.
    Save(Progress),
    /// Report when this time has come; replaces the earlier time.
    WakeAt(Millis),
    /// These turns were interrupted and will not be retried. They are committed as lost, one
    /// after the other; inform the agent.
    Lost(Vec<Trigger>),
    /// The agent stops. No command follows.
    Stop(StopReason),
}

impl Command {
    /// Whether the command must wait until all turns reported as committed are durable. A
    /// commit that joins their group commit need not wait.
    #[must_use]
    pub fn needs_kept(&self) -> bool {
        match self {
            Command::Record { .. } | Command::Commit { .. } | Command::Save(_) => true,
            Command::Stop(reason) => *reason == StopReason::Drained,
            // A turn of a timer checks in the store whether the timer still exists.
            Command::Run { trigger, .. } => trigger.seq().is_none(),
            Command::Cancel(_) | Command::WakeAt(_) | Command::Lost(_) => false,
        }
    }
}
