//! Histories of agents: what was seen of them, judged by what their delivery promises.
//!
//! A simulation or a test of a real host writes down facts in the order in which they became
//! true; [`check`] finds every promise that was broken.

mod judge;
#[cfg(test)]
mod tests;

pub use judge::check;

use crate::delivery::{Delivery, OnDead, Progress, TurnEnd};
use crate::key::{Epoch, Millis, Seq, Trigger};
use std::fmt;

/// How an agent of a history is delivered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What it can rely on.
    pub delivery: Delivery,
    /// Turns that run at the same time.
    pub concurrency: u32,
    /// How often a turn is tried.
    pub max_attempts: u32,
    /// After so many deaths a turn is given up.
    pub max_deaths: u32,
    /// What happens then.
    pub on_dead: OnDead,
}

/// An operation by which an agent sends.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Send {
    /// Durable: one in each turn that was done.
    Reply,
    /// Immediate.
    Now,
}

/// What an event of a log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Published: what it adds to the state, and the agents that see it.
    Published(u64, Vec<usize>),
    /// Sent by an agent in a turn.
    Sent(usize, Trigger, Send),
}

/// How a turn was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The agent.
    pub agent: usize,
    /// In which epoch.
    pub epoch: Epoch,
    /// What it answers to.
    pub trigger: Trigger,
    /// How it ended.
    pub end: TurnEnd,
    /// Of which run of the handler it holds the changes.
    pub run: u32,
    /// What it adds to the state.
    pub value: u64,
    /// How far the stream is done.
    pub progress: Option<Progress>,
    /// What it sends; all stand in a log in the end.
    pub sends: Vec<Send>,
    /// Timers that it sets (with when they are due) and removes.
    pub timers: Vec<(String, Option<Millis>)>,
    /// It answers to a timer that was gone when it ran, and changes nothing.
    pub was_gone: bool,
}

/// Something that became true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// An owner opened the store.
    Opened(Epoch),
    /// It closed it, with nothing under way.
    Closed(Epoch),
    /// An event stands in the log.
    Appended(Seq, Origin),
    /// A start was recorded.
    Recorded(usize, Epoch, Trigger, Option<Progress>),
    /// A handler began: which run of the activation it is.
    Began(usize, Epoch, Trigger, u32),
    /// An attempt counted as failed; whether for good.
    Failed(usize, Epoch, Trigger, bool),
    /// A handler did something elsewhere.
    Effect(usize, Trigger),
    /// A step of a turn was made.
    Step(usize, Trigger),
    /// Its answer was kept.
    StepKept(usize, Trigger),
    /// A turn was committed.
    Committed(Committed),
    /// Progress was kept.
    Saved(usize, Epoch, Progress),
    /// It is not known how a write ended. A start that it may have recorded counts as a death
    /// until the agent is read again.
    InDoubt(usize, Epoch),
}

/// What is kept of an agent in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Final {
    /// How far its stream is done.
    pub progress: Progress,
    /// What its turns added up to.
    pub sum: u64,
    /// Whether it stands still before a turn that was given up.
    pub is_stopped: bool,
}

/// All that was seen of some agents on one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The agents.
    pub agents: Vec<Setup>,
    /// What became true, in order.
    pub facts: Vec<Fact>,
    /// What is kept in the end; one for each agent.
    pub finals: Vec<Final>,
    /// Whether everything came to rest.
    pub is_settled: bool,
}

/// What kind of promise was broken.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An event that was passed has no end.
    Lost,
    /// A turn was committed twice.
    Duplicated,
    /// Turns of one at a time were committed out of order.
    OutOfOrder,
    /// The state is not the sum of what was done.
    WrongState,
    /// Something that was to be sent is in no log.
    SendMissing,
    /// Something was sent twice.
    SendDuplicated,
    /// What was sent stands in another order than it was committed in.
    SendOutOfOrder,
    /// Something was sent before its turn was committed, or by one that never was.
    SentEarly,
    /// Progress went back.
    ProgressBack,
    /// Progress claims what is not in the log.
    BeyondHead,
    /// Progress claims what is not done.
    ClaimsUndone,
    /// The log has a hole.
    LogHole,
    /// An owner wrote after another had opened the store.
    OldOwner,
    /// A step was made again after its answer was kept.
    StepRepeated,
    /// A turn was given up before it was tried as often as it may be.
    DeadEarly,
    /// A timer fired twice.
    TimerTwice,
    /// A timer fired that was not set.
    TimerUnset,
    /// A timer never fired.
    TimerNever,
    /// An at-most-once turn ran twice.
    RanTwice,
    /// A turn was done without doing elsewhere what it does.
    EffectMissing,
    /// What an attempt changed was committed after another had begun.
    Outlived,
    /// A turn acted before what the one before it changed was kept.
    ActedAhead,
    /// A turn is called lost in a mode that runs it again.
    LostAgain,
    /// It does not come to rest.
    Stuck,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub kind: Kind,
    /// By what.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}
