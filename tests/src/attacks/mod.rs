//! Programs that try to make a run hold more than its ceiling, or work longer
//! than it pays for. One file for each kind of attack; `all` lists them.
//!
//! `tests/tests/residents.rs` runs each in a process of its own and looks at
//! what that process really held.

mod copies;
mod members;
mod rooms;
mod tables;
mod terse;

use agent99::{Capabilities, ErrorCode, RunOptions};
use serde_json::Value as Json;

/// The ceiling that attacks run against unless they say otherwise, in bytes:
/// the default of the engine.
pub const CEILING: usize = 64 << 20;

/// How a run that is attacked must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Whatever it does, it keeps within its bounds.
    Any,
    /// It is stopped by the ceiling of its heap.
    HeapLimit,
    /// A step fails with an error that the program could have caught.
    Fails(ErrorCode),
    /// It returns.
    Returns,
}

/// A program and what it is given.
pub struct Attack {
    /// Its name, which begins with the class of attacks it belongs to.
    pub name: &'static str,
    /// Its steps.
    pub steps: Json,
    /// Its arguments.
    pub args: Json,
    /// How its run must end.
    pub end: End,
    /// Changes of the run's options.
    pub options: fn(RunOptions) -> RunOptions,
    /// What the host grants.
    pub grants: fn() -> Capabilities,
}

impl Attack {
    fn new(name: &'static str, steps: Json) -> Attack {
        Attack {
            name,
            steps,
            args: Json::Null,
            end: End::Any,
            options: |options| options,
            grants: Capabilities::none,
        }
    }

    fn ends(self, end: End) -> Attack {
        Attack { end, ..self }
    }

    fn with(self, options: fn(RunOptions) -> RunOptions) -> Attack {
        Attack { options, ..self }
    }

    fn granted(self, grants: fn() -> Capabilities) -> Attack {
        Attack { grants, ..self }
    }
}

/// Every attack; add a file's list here.
#[must_use]
pub fn all() -> Vec<Attack> {
    [
        copies::attacks(),
        members::attacks(),
        rooms::attacks(),
        tables::attacks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
