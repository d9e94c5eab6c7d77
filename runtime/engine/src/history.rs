//! Histories of agents: observed facts, judged against the delivery guarantees.
//!
//! A simulation or a test of a real host records facts in the order in which they became true;
//! [`check`] finds every broken guarantee.

mod judge;
#[cfg(test)]
mod tests;

pub use judge::check;

use crate::delivery::{Delivery, OnDead, Progress, TurnEnd};
use crate::key::{Epoch, Millis, Seq, Trigger};
use std::fmt;

/// The delivery settings of an agent in a history.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The delivery guarantee.
    pub delivery: Delivery,
    /// Maximum concurrent turns.
    pub concurrency: u32,
    /// How often a turn is tried.
    pub max_attempts: u32,
    /// Number of crashes after which a turn is given up.
    pub max_deaths: u32,
    /// The reaction to a turn that was given up.
    pub on_dead: OnDead,
}

/// A send operation of an agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Send {
    /// Durable: one in each turn that is done.
    Reply,
    /// Immediate.
    Now,
}

/// The origin of a logged event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Published: the number that it adds to the state, and the agents that see it.
    Published(u64, Vec<usize>),
    /// Sent by an agent in a turn.
    Sent(usize, Trigger, Send),
}

/// The commit of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The agent's index.
    pub agent: usize,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// The trigger of the turn.
    pub trigger: Trigger,
    /// How the turn ended.
    pub end: TurnEnd,
    /// The run of the handler whose changes it holds.
    pub run: u32,
    /// The number that it adds to the state.
    pub value: u64,
    /// The resulting progress.
    pub progress: Option<Progress>,
    /// The events that it sends; eventually all are in a log.
    pub sends: Vec<Send>,
    /// Timers that it sets (with their due times) and removes.
    pub timers: Vec<(String, Option<Millis>)>,
    /// Whether its timer was gone when it ran, so that it changes nothing.
    pub was_gone: bool,
}

/// An observed fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// An owner opened the store.
    Opened(Epoch),
    /// An owner closed the store, with no work in flight.
    Closed(Epoch),
    /// An event was appended to the log.
    Appended(Seq, Origin),
    /// A start was recorded.
    Recorded(usize, Epoch, Trigger, Option<Progress>),
    /// A handler began; the number is its run in the activation.
    Began(usize, Epoch, Trigger, u32),
    /// An attempt failed; the flag says whether permanently.
    Failed(usize, Epoch, Trigger, bool),
    /// A handler had an external effect.
    Effect(usize, Trigger),
    /// A step of a turn ran.
    Step(usize, Trigger),
    /// The answer of a step was journaled.
    StepKept(usize, Trigger),
    /// A turn was committed.
    Committed(Committed),
    /// Progress was stored.
    Saved(usize, Epoch, Progress),
    /// The outcome of a write is unknown. A start that it may have recorded counts as a crash
    /// until the agent is loaded again.
    InDoubt(usize, Epoch),
}

/// An agent's stored data at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Final {
    /// The processed part of its stream.
    pub progress: Progress,
    /// The sum that its turns computed.
    pub sum: u64,
    /// Whether it stopped before a turn that was given up.
    pub is_stopped: bool,
}

/// All observations of some agents on one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The agents.
    pub agents: Vec<Setup>,
    /// The facts, in order.
    pub facts: Vec<Fact>,
    /// The stored data at the end, one for each agent.
    pub finals: Vec<Final>,
    /// Whether all work came to rest.
    pub is_settled: bool,
}

/// The kind of a broken guarantee.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A passed event has no end.
    Lost,
    /// A turn was committed twice.
    Duplicated,
    /// Sequential turns were committed out of order.
    OutOfOrder,
    /// The state is not the sum of the committed turns.
    WrongState,
    /// A committed send is in no log.
    SendMissing,
    /// A send appears twice.
    SendDuplicated,
    /// Sends are in another order than their commits.
    SendOutOfOrder,
    /// A send appears before the commit of its turn, or without one.
    SentEarly,
    /// Progress went back.
    ProgressBack,
    /// Progress passes the end of the log.
    BeyondHead,
    /// Progress claims unprocessed events.
    ClaimsUndone,
    /// The log has a gap.
    LogHole,
    /// An owner wrote after another had opened the store.
    OldOwner,
    /// A step ran again after its answer was journaled.
    StepRepeated,
    /// A turn was given up before its last attempt.
    DeadEarly,
    /// A timer fired twice.
    TimerTwice,
    /// A timer fired that was not set.
    TimerUnset,
    /// A timer never fired.
    TimerNever,
    /// An at-most-once turn ran twice.
    RanTwice,
    /// A turn ended without its external effect.
    EffectMissing,
    /// Changes of an attempt were committed after another attempt had begun.
    Outlived,
    /// A turn acted before the changes of earlier turns were durable.
    ActedAhead,
    /// A turn is listed as lost in a mode that retries it.
    LostAgain,
    /// The agent does not come to rest.
    Stuck,
}

/// A broken guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind of the broken guarantee.
    pub kind: Kind,
    /// A description of the violation.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}
