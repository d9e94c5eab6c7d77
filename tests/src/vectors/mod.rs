//! Conformance vectors: reading them, running them on an engine, judging.
//!
//! A vector is one line of a `.jsonl` file: a program or a condition text,
//! what it is given, and what came out of a reference implementation. The
//! rules of comparison and the choice among the alternatives follow
//! "Replaying vectors" of the decisions. An [`Engine`] is whatever runs
//! programs: the oracle, or the virtual machine through the facade.

mod bound;
mod compare;
mod deviations;
mod models;
mod oracle_engine;
mod read;
mod replay;
mod script;
mod stored;
mod suspended;
mod turn;
mod vm_engine;

pub use compare::{Difference, Rules, condition_difference, outcome_difference};
pub use deviations::{Deviation, Deviations, read as read_deviations};
pub use oracle_engine::OracleEngine;
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

/// The budget when a vector names none.
pub const DEFAULT_FUEL: f64 = 1_000.0;

/// Everything that an engine needs to run the program of a vector.
#[derive(Debug)]
pub struct RunSpec {
    /// The program.
    pub program: Document,
    /// Its arguments.
    pub args: Value,
    /// The budget.
    pub fuel: Fuel,
    /// The run timeout in milliseconds; absent: 10 for a unit of fuel. Its
    /// error is worded as fuel-derived either way.
    pub timeout_ms: Option<f64>,
    /// Atoms of the program that get [`REFERENCE_ATOM_TIMEOUT_MS`]: all that
    /// are neither containers nor host atoms.
    pub limited_atoms: Vec<String>,
    /// Prices that replace the table's, in units of fuel.
    pub cost_overrides: Vec<(String, f64)>,
    /// Calls of atoms that are allowed (feature `v3`).
    pub quotas: Vec<(String, u64)>,
    /// Whether `==` coerces nothing (feature `v3`).
    pub exact_equality: bool,
    /// The request context.
    pub context: Value,
    /// What of it the program may read.
    pub readable_context: Vec<String>,
    /// Whether a trace is wanted.
    pub trace: bool,
    /// Whether the caller aborted before the start.
    pub aborted: bool,
    /// Milliseconds after which the caller aborts.
    pub abort_after_ms: Option<f64>,
    /// Host atoms to register.
    pub atoms: Vec<HostAtom>,
    /// Whether proportional prices hold (feature `metered`).
    pub metered: bool,
    /// The capabilities: one script for all of them.
    pub script: SharedScript,
    /// Who listens to the run, where the script does not.
    pub listener: Option<EventSink>,
}

/// A trace event of an engine.
#[derive(Clone, Debug)]
pub struct EngineEvent {
    /// The atom.
    pub op: Text,
    /// Its step without `op` and `result`.
    pub input: Value,
    /// Changed own variables.
    pub state_diff: Value,
    /// What it returned.
    pub result: Value,
    /// What it threw.
    pub error: Option<Text>,
    /// Fuel before.
    pub fuel_before: Fuel,
    /// Fuel after.
    pub fuel_after: Fuel,
}

/// What an engine made of a program.
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
    /// It was not accepted.
    Rejected {
        /// Why.
        message: String,
    },
    /// It reached an atom of a host, whose rules the engine does not know.
    NotJudged,
}

/// The error of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineError {
    /// Its text.
    pub message: Text,
    /// The atom that failed.
    pub op: Text,
    /// Whether it is the caller's abort, whose text the references share with
    /// the run timeout.
    pub aborted: bool,
}

/// Something that runs programs.
pub trait Engine {
    /// Its name on the command line.
    fn name(&self) -> &str;
    /// Runs a program.
    fn run_program(&self, spec: RunSpec) -> EngineOutcome;
    /// Parses a condition in the strict v2 dialect into its expression node.
    fn parse_condition(&self, text: &str) -> Result<Value, String>;
}
