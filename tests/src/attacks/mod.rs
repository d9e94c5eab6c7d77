//! Attacks: programs that try to exceed a run's memory ceiling, or to work longer than they pay
//! for. One file for each kind of attack; `all` lists them.
//!
//! `tests/tests/residents.rs` runs each in a separate process and measures the process's
//! memory.

mod copies;
mod members;
mod rooms;
mod tables;
mod terse;

use agent99::{Capabilities, ErrorCode, RunOptions};
use serde_json::Value as Json;

/// Default ceiling of attacked runs in bytes: the default of the engine.
pub const CEILING: usize = 64 << 20;

/// Required end of an attacked run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Any end within its bounds.
    Any,
    /// The heap ceiling stops it.
    HeapLimit,
    /// A step fails with a catchable error.
    Fails(ErrorCode),
    /// It returns.
    Returns,
}

/// An attacking program with its inputs.
pub struct Attack {
    /// Its name, which starts with its class of attacks.
    pub name: &'static str,
    /// Steps of the program.
    pub steps: Json,
    /// Arguments of the run.
    pub args: Json,
    /// Required end of the run.
    pub end: End,
    /// Changes of the run's options.
    pub options: fn(RunOptions) -> RunOptions,
    /// Capabilities of the run.
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
