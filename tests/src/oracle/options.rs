//! Inputs and outcome of a run.

use a99_core::costs::CostModel;
use a99_core::error::RunError;
use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Price of an atom, set by a host.
#[derive(Clone)]
pub enum CostOverride {
    /// Units of fuel.
    Number(f64),
    /// Units of fuel, computed from the step without `op` and `result`, unresolved.
    Function(Arc<dyn Fn(&Value) -> f64 + Send + Sync>),
}

impl fmt::Debug for CostOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostOverride::Number(n) => write!(f, "{n}"),
            CostOverride::Function(_) => f.write_str("function"),
        }
    }
}

/// A host atom, which gets its step as written.
#[derive(Clone, Debug)]
pub struct CustomAtom {
    /// Its name; it may replace a core atom.
    pub op: String,
    /// Its price in units of fuel.
    pub cost: f64,
    /// Its time limit; 0 for none.
    pub timeout_ms: f64,
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct OracleOptions {
    /// The budget.
    pub fuel: Fuel,
    /// An explicit run timeout in milliseconds; by default 10 a unit of fuel.
    pub timeout_ms: Option<f64>,
    /// True if an explicit timeout is worded like a fuel-derived one.
    pub timeout_from_fuel: bool,
    /// Time limits of atoms in milliseconds, 0 for none.
    pub timeout_overrides: HashMap<String, f64>,
    /// Prices of atoms.
    pub cost_overrides: HashMap<String, CostOverride>,
    /// Most calls of each atom (decision D42).
    pub quotas: HashMap<String, u64>,
    /// The request context.
    pub context: Value,
    /// Parts of the context that programs may read (decision D75).
    pub readable_context: Vec<String>,
    /// True to record a trace.
    pub trace: bool,
    /// True if `==` is v3's (decision D6).
    pub exact_equality: bool,
    /// Cost model (decision D18).
    pub cost_model: CostModel,
    /// Deepest nesting of values that cross the boundary (decision D21).
    pub max_depth: usize,
    /// True if the caller aborted before the start.
    pub aborted: bool,
    /// When the caller aborts, in milliseconds after the start.
    pub abort_after_ms: Option<f64>,
    /// Nesting depth of the run in agents (decision D41).
    pub agent_depth: u32,
    /// Host atoms.
    pub custom: Vec<CustomAtom>,
}

impl Default for OracleOptions {
    fn default() -> Self {
        OracleOptions {
            fuel: Fuel::from_micro(1_000 * a99_core::costs::MICRO),
            timeout_ms: None,
            timeout_from_fuel: false,
            timeout_overrides: HashMap::new(),
            cost_overrides: HashMap::new(),
            quotas: HashMap::new(),
            context: Value::Undefined,
            readable_context: Vec::new(),
            trace: false,
            exact_equality: false,
            cost_model: CostModel::Metered,
            max_depth: 512,
            aborted: false,
            abort_after_ms: None,
            agent_depth: 0,
            custom: Vec::new(),
        }
    }
}

/// One finished execution of an atom (language section 4.10).
#[derive(Clone, Debug)]
pub struct TraceEvent {
    /// The atom.
    pub op: String,
    /// The step without `op` and `result`.
    pub input: Value,
    /// Own variables that changed, with their new values.
    pub state_diff: Value,
    /// Result of the atom.
    pub result: Value,
    /// Text of the error that the atom threw.
    pub error: Option<Text>,
    /// Fuel before its charge.
    pub fuel_before: Fuel,
    /// Fuel at its end.
    pub fuel_after: Fuel,
}

/// Outcome of a run (decision D7).
#[derive(Clone, Debug)]
pub struct OracleOutcome {
    /// The returned value, or the error in its JSON form.
    pub result: Value,
    /// The error, if the run ended with one.
    pub error: Option<RunError>,
    /// Budget minus the remaining fuel.
    pub fuel_used: Fuel,
    /// Trace events, if requested.
    pub trace: Option<Vec<TraceEvent>>,
    /// Warnings.
    pub warnings: Vec<Text>,
    /// The host atom at which the oracle stopped judging; the rest of the outcome is then
    /// meaningless.
    pub not_judged: Option<String>,
}

/// A program that would not compile.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// Reason.
    pub message: String,
}
