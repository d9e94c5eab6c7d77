//! Conformance vectors: reading, running on an engine, judging.
//!
//! A vector is one line of a `.jsonl` file: a program or a condition text, its inputs, and the
//! outcome of a reference implementation. Comparison and the choice among alternatives follow
//! "Replaying vectors" of the decisions. An [`Engine`] runs programs: the oracle, or the
//! virtual machine through the facade.

mod bound;
mod compare;
mod deviations;
mod models;
mod oracle_engine;
mod process;
mod read;
mod replay;
mod script;
mod stored;
mod suspended;
mod vm_engine;

pub use compare::{Difference, Rules, condition_difference, outcome_difference};
pub use deviations::{Deviation, Deviations, read as read_deviations};
pub use oracle_engine::OracleEngine;
pub use process::ProcessEngine;
pub use read::{Subject, Vector, decode, read_file};
pub use replay::{CHOSEN, Report, Verdict, replay};
pub use script::{HostAtom, Reply, Script, SharedScript};
pub use stored::StoreEngine;
pub use suspended::SuspendedEngine;
pub use vm_engine::{ArtifactEngine, Route, VmEngine, run_by};

use a99_core::fuel::Fuel;
use a99_core::json::Document;
use a99_core::text::Text;
use a99_core::value::Value;
use agent99::EventSink;

/// The time limit of ordinary atoms in the references, in milliseconds.
pub const REFERENCE_ATOM_TIMEOUT_MS: u64 = 1_000;

/// Default budget of a vector.
pub const DEFAULT_FUEL: f64 = 1_000.0;

/// Inputs of a vector's program for an engine.
#[derive(Debug)]
pub struct RunSpec {
    /// The program.
    pub program: Document,
    /// Its arguments.
    pub args: Value,
    /// The budget.
    pub fuel: Fuel,
    /// Timeout of the run in milliseconds; by default 10 for a unit of fuel. Its error is
    /// worded as fuel-derived either way.
    pub timeout_ms: Option<f64>,
    /// Atoms of the program that get [`REFERENCE_ATOM_TIMEOUT_MS`]: all except containers and
    /// host atoms.
    pub limited_atoms: Vec<String>,
    /// Prices that replace the table's, in units of fuel.
    pub cost_overrides: Vec<(String, f64)>,
    /// Most calls of atoms (feature `v3`).
    pub quotas: Vec<(String, u64)>,
    /// True if `==` coerces nothing (feature `v3`).
    pub exact_equality: bool,
    /// The request context.
    pub context: Value,
    /// Parts of the context that the program may read.
    pub readable_context: Vec<String>,
    /// True to record a trace.
    pub trace: bool,
    /// True if the caller aborted before the start.
    pub aborted: bool,
    /// Milliseconds after which the caller aborts.
    pub abort_after_ms: Option<f64>,
    /// Host atoms to register.
    pub atoms: Vec<HostAtom>,
    /// True if proportional prices hold (feature `metered`).
    pub metered: bool,
    /// The capabilities: one script for all of them.
    pub script: SharedScript,
    /// Sink of the run's events, if it is not the script's.
    pub listener: Option<EventSink>,
}

/// A trace event of an engine.
#[derive(Clone, Debug)]
pub struct EngineEvent {
    /// The atom.
    pub op: Text,
    /// Its step without `op` and `result`.
    pub input: Value,
    /// Own variables that changed.
    pub state_diff: Value,
    /// Result of the atom.
    pub result: Value,
    /// Error that the atom threw.
    pub error: Option<Text>,
    /// Fuel before.
    pub fuel_before: Fuel,
    /// Fuel after.
    pub fuel_after: Fuel,
}

/// Outcome of a program on an engine.
#[derive(Clone, Debug)]
pub enum EngineOutcome {
    /// It ran.
    Ran {
        /// The result; the error's JSON form if the run ended with one.
        result: Value,
        /// Message, atom and whether the caller aborted.
        error: Option<EngineError>,
        /// Fuel used.
        fuel_used: Fuel,
        /// The trace, if wanted.
        trace: Option<Vec<EngineEvent>>,
    },
    /// The program was refused.
    Rejected {
        /// Reason.
        message: String,
    },
    /// The run reached a host atom whose rules the engine does not know.
    NotJudged,
}

/// The error of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineError {
    /// Its text.
    pub message: Text,
    /// The atom that failed.
    pub op: Text,
    /// True for the caller's abort, whose text the references share with the run timeout.
    pub aborted: bool,
}

/// An implementation that runs programs.
pub trait Engine {
    /// Name on the command line.
    fn name(&self) -> &str;
    /// Runs a program.
    fn run_program(&self, spec: RunSpec) -> EngineOutcome;
    /// Parses a condition in the strict v2 dialect into its expression node.
    fn parse_condition(&self, text: &str) -> Result<Value, String>;
}
