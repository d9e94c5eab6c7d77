//! Simulations of agents: machines, processes, a store and a log under a scheduler that a
//! seed decides, with crashes, old owners, disks that fail and handlers that do.
//!
//! [`simulate`] gives the history of a seed, which [`crate::history::check`] judges. A
//! [`Fault`] makes the store or the driver do what a sound one never does; a test shows that
//! each is found.

mod ahead;
mod driver;
mod handler;
mod process;
mod random;
mod store;
#[cfg(test)]
mod tests;

pub use random::Random;

use crate::history::{History, Violation, check};
use process::Simulation;
use std::fmt;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Something done wrongly on purpose.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Fault] = &[$(Fault::$name),*];

            /// Its name on a command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Fault::$name => $text,)*
                }
            }
        }
    };
}

faults! {
    /// State and progress are committed one after the other.
    CommitsApart = "commits-apart",
    /// Progress is kept before the handler runs, in a mode that runs it first.
    ProgressFirst = "progress-first",
    /// Progress becomes the place of the turn, whatever lies before it.
    ProgressJumps = "progress-jumps",
    /// A write that began before a change makes it count as written.
    DirtyCleared = "dirty-cleared",
    /// The store takes what an earlier owner writes.
    NoFence = "no-fence",
    /// The next attempt begins with the state of one that failed.
    FailedStateKept = "failed-state-kept",
    /// What is sent with the turn is sent before it is committed.
    SendsFirst = "sends-first",
    /// A write in doubt counts as not made, and what is sent again has new identities.
    DoubtIgnored = "doubt-ignored",
    /// The end of a turn leaves its start in the store.
    StartedKept = "started-kept",
    /// The end of an attempt that was outlived counts as the newest's.
    OutlivedTold = "outlived-told",
    /// Progress is kept up to what was read, not what is done.
    SavesTaken = "saves-taken",
    /// An at-most-once turn runs before its start is recorded.
    RunUnrecorded = "run-unrecorded",
    /// Identities of what is sent change with each run.
    IdentityOfRun = "identity-of-run",
    /// The occurrence of a timer goes after its turn was committed.
    TimerKept = "timer-kept",
    /// An event leaves the outbox before it is in the log.
    OutboxForgets = "outbox-forgets",
    /// Answers of steps are not looked for.
    JournalForgets = "journal-forgets",
    /// What is done beyond the checkpoint is not kept.
    DoneDropped = "done-dropped",
    /// A turn acts although those before it are not kept.
    ActsAhead = "acts-ahead",
    /// A commit of several turns that failed counts as made.
    HeldForgotten = "held-forgotten",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let found = Fault::ALL.iter().find(|fault| fault.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
            format!("no fault of that name; there are {}", names.join(", "))
        })
    }
}

/// The history of a seed.
#[must_use]
pub fn simulate(seed: u64, fault: Option<Fault>) -> History {
    Simulation::new(seed, fault).history()
}

/// The first of some seeds whose history breaks a promise, with it and what it breaks.
#[must_use]
pub fn first_violation(
    seeds: std::ops::Range<u64>,
    fault: Option<Fault>,
) -> Option<(u64, History, Vec<Violation>)> {
    seeds.into_iter().find_map(|seed| {
        let history = simulate(seed, fault);
        let found = check(&history);
        (!found.is_empty()).then_some((seed, history, found))
    })
}
