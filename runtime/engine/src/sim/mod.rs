//! Simulations of agents: machines, processes, a store and a log under a scheduler driven by a
//! seed, with crashes, stale owners, failing disks and failing handlers.
//!
//! [`simulate`] gives the history of a seed, which [`crate::history::check`] judges. A
//! [`Fault`] makes the store or the driver misbehave; a test shows that each fault is found.

mod driver;
mod group_commit;
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
        /// A deliberate fault.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Fault] = &[$(Fault::$name),*];

            /// The fault's name on a command line.
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
    /// State and progress commit separately.
    CommitsApart = "commits-apart",
    /// Progress is stored before the handler runs, in a mode that runs it first.
    ProgressFirst = "progress-first",
    /// Progress jumps to the turn's sequence number over unprocessed events.
    ProgressJumps = "progress-jumps",
    /// A write that began before a change makes it count as written.
    DirtyCleared = "dirty-cleared",
    /// The store accepts writes of an earlier owner.
    NoFence = "no-fence",
    /// The next attempt begins with the state of a failed one.
    FailedStateKept = "failed-state-kept",
    /// Sends of a turn go out before its commit.
    SendsFirst = "sends-first",
    /// A write in doubt counts as failed, and repeated sends get new identities.
    DoubtIgnored = "doubt-ignored",
    /// The end of a turn leaves its start in the store.
    StartedKept = "started-kept",
    /// The end of an outlived attempt counts as the newest one's.
    OutlivedTold = "outlived-told",
    /// Progress is stored up to the events read, not the events processed.
    SavesTaken = "saves-taken",
    /// An at-most-once turn runs before its start is recorded.
    RunUnrecorded = "run-unrecorded",
    /// Identities of sends change with each run.
    IdentityOfRun = "identity-of-run",
    /// A timer's occurrence is removed only after its turn was committed.
    TimerKept = "timer-kept",
    /// An event leaves the outbox before it is in the log.
    OutboxForgets = "outbox-forgets",
    /// Journaled answers of steps are ignored.
    JournalForgets = "journal-forgets",
    /// Processed events after the checkpoint are not stored.
    DoneDropped = "done-dropped",
    /// A turn acts before earlier turns are durable.
    ActsAhead = "acts-ahead",
    /// A failed group commit counts as successful.
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

/// The first seed whose history breaks a guarantee, with the history and the violations.
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
