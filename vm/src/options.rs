//! Options and outcomes of runs.

use crate::abort::AbortSignal;
use crate::clock::Environment;
use crate::console::ConsoleSink;
use crate::convert::BoundaryLimits;
use crate::heap::DEFAULT_HEAP_LIMIT;
use crate::host_state::{Grants, HostState};
use crate::progress::RunProgress;
use crate::trace::{TraceEvent, TraceSink};
use a99_core::call_id::CallId;
use a99_core::costs::CostModel;
use a99_core::error::RunError;
use a99_core::fuel::{Fuel, FuelError, cost_from_f64};
use a99_core::sig::AtomTimeout;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_run::account::{Account, Usage};
use a99_run::events::{EventSink, LogLine, RunEvent};
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Default fuel of a run, that of the reference implementations.
pub const DEFAULT_FUEL: f64 = 1000.0;

/// Milliseconds of run time per unit of fuel, unless a timeout is set (D22).
pub const TIMEOUT_MS_PER_FUEL: f64 = 10.0;

/// Maximum nesting of sub-agents (D41).
pub const MAX_AGENT_DEPTH: u32 = 10;

/// Bytes of trace that a run keeps; the oldest events are dropped first (D43).
pub const DEFAULT_TRACE_BYTES: usize = 8 << 20;

/// The meaning of `==` and `!=` (D6).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Equality {
    /// ECMAScript loose equality.
    #[default]
    Loose,
    /// No coercion, as in the third generation.
    Exact,
}

/// The price of a step in units of fuel, as a function of its literal input and of the
/// request context.
pub type CostFunction = Arc<dyn Fn(&Value, &Value) -> f64 + Send + Sync>;

/// A price that overrides an atom's own for one run.
#[derive(Clone)]
pub enum CostOverride {
    /// Micro-units.
    Fixed(i64),
    /// Computed for each execution. NaN, infinite and negative prices and panics give the
    /// static default (D17, F03).
    Function(CostFunction),
}

impl fmt::Debug for CostOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostOverride::Fixed(n) => write!(f, "Fixed({n})"),
            CostOverride::Function(_) => f.write_str("Function"),
        }
    }
}

/// The remaining calls of an atom. Clones share the count, so that one budget can span
/// several runs (D42).
#[derive(Clone, Debug)]
pub struct Quota(Arc<QuotaState>);

#[derive(Debug)]
struct QuotaState {
    limit: u64,
    used: AtomicU64,
}

impl Quota {
    /// Creates a budget of `limit` calls.
    pub fn new(limit: u64) -> Quota {
        Quota::with_used(limit, 0)
    }

    /// Creates a budget of `limit` calls, of which earlier runs made `used`.
    pub fn with_used(limit: u64, used: u64) -> Quota {
        Quota(Arc::new(QuotaState {
            limit,
            used: AtomicU64::new(used.min(limit)),
        }))
    }

    /// The budget.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Number of calls counted so far.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed).min(self.0.limit)
    }

    /// Raises the count to at least `used`.
    pub(crate) fn raise(&self, used: u64) {
        self.0
            .used
            .fetch_max(used.min(self.0.limit), Ordering::Relaxed);
    }

    /// Counts a call; false if none is left.
    pub(crate) fn take(&self) -> bool {
        self.0
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < self.0.limit).then_some(n + 1)
            })
            .is_ok()
    }
}

/// Size limits of a run.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of heap, including everything the run holds (D20).
    pub heap_bytes: usize,
    /// Limits of values that cross between host and guest (D21).
    pub boundary: BoundaryLimits,
    /// Maximum nesting of sub-agents (D41).
    pub agent_depth: u32,
    /// Bytes of trace to keep.
    pub trace_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            heap_bytes: DEFAULT_HEAP_LIMIT,
            boundary: BoundaryLimits::default(),
            agent_depth: MAX_AGENT_DEPTH,
            trace_bytes: DEFAULT_TRACE_BYTES,
        }
    }
}

/// Options of one run. The defaults are safe: limits are on, and no capability is granted.
#[derive(Clone)]
pub struct RunOptions {
    /// The fuel budget.
    pub fuel: Fuel,
    /// Time limit in milliseconds; by default ten per unit of fuel.
    pub timeout_ms: Option<u64>,
    /// Stops the run from outside.
    pub signal: Option<AbortSignal>,
    /// The cost model, which decides how prices are computed (D18).
    pub cost_model: CostModel,
    /// Prices of individual atoms. Unknown names here, in quotas and in timeouts are refused
    /// when the run begins ([`ErrorCode::UnknownOp`](a99_core::error::ErrorCode::UnknownOp)).
    pub costs: HashMap<String, CostOverride>,
    /// Call quotas of individual atoms (D42).
    pub quotas: HashMap<String, Quota>,
    /// Time limits of individual atoms.
    pub timeouts: HashMap<String, AtomTimeout>,
    /// The request context that atoms see.
    pub context: Arc<Value>,
    /// Parts of the context that programs may read (D75): keys, or dotted paths below them.
    pub readable_context: Arc<[String]>,
    /// Capabilities that the host grants.
    pub grants: Grants,
    /// Host values that atoms look up by type.
    pub host: HostState,
    /// Size limits.
    pub limits: Limits,
    /// Whether to keep a trace.
    pub trace: bool,
    /// Receives trace events as they occur.
    pub trace_to: Option<Arc<Box<dyn TraceSink>>>,
    /// Receives events of the run while it is in progress (D87).
    pub events: Option<EventSink>,
    /// Receives lines that programs write by `console`.
    pub console: Option<ConsoleSink>,
    /// Progress counters of the run.
    pub progress: Option<Arc<RunProgress>>,
    /// The meaning of `==`.
    pub equality: Equality,
    /// Nesting depth of this run in sub-agents.
    pub depth: u32,
    /// The call of another run that this run answers: a prefix of the ids of its own calls.
    pub parent: Option<Arc<CallId>>,
    /// Budget of the run and its sub-agents besides fuel: host calls, tokens, money. A run
    /// without one gets an account without limits at its first call.
    pub account: Option<Account>,
    /// Clock and random source of the program instead of the machine's, for reproducible
    /// runs.
    pub environment: Option<Arc<dyn Environment>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        let (context, readable_context) = nothing();
        RunOptions {
            fuel: Fuel::from_decimal(DEFAULT_FUEL).unwrap_or_default(),
            timeout_ms: None,
            signal: None,
            cost_model: CostModel::Metered,
            costs: HashMap::new(),
            quotas: HashMap::new(),
            timeouts: HashMap::new(),
            context,
            readable_context,
            grants: None,
            host: HostState::default(),
            limits: Limits::default(),
            trace: false,
            trace_to: None,
            events: None,
            console: None,
            progress: None,
            equality: Equality::Loose,
            depth: 0,
            parent: None,
            account: None,
            environment: None,
        }
    }
}

/// The empty defaults: an `undefined` context, and no readable members.
type Nothing = (Arc<Value>, Arc<[String]>);

/// The empty defaults of this thread: starting a run then allocates none of them, and threads
/// do not share their reference counts.
fn nothing() -> Nothing {
    let new = || (Arc::new(Value::Undefined), Arc::from(Vec::new()));
    thread_local! {
        static NOTHING: std::cell::OnceCell<Nothing> = const { std::cell::OnceCell::new() };
    }
    let shared = NOTHING.try_with(|nothing| nothing.get_or_init(new).clone());
    shared.unwrap_or_else(|_| new())
}

/// Placeholder options of an idle machine, one per thread.
pub(crate) fn of_no_run() -> Arc<RunOptions> {
    thread_local! {
        static OPTIONS: Arc<RunOptions> = Arc::default();
    }
    let shared = OPTIONS.try_with(Arc::clone);
    shared.unwrap_or_default()
}

impl RunOptions {
    /// The options for one more run, with fresh quotas.
    #[must_use]
    pub fn for_a_run(self: &Arc<Self>) -> Arc<RunOptions> {
        if self.quotas.is_empty() {
            return Arc::clone(self);
        }
        let unused = |(op, quota): (&String, &Quota)| (op.clone(), Quota::new(quota.limit()));
        Arc::new(RunOptions {
            quotas: self.quotas.iter().map(unused).collect(),
            ..RunOptions::clone(self)
        })
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("fuel", &self.fuel)
            .field("timeout_ms", &self.timeout_ms)
            .field("cost_model", &self.cost_model)
            .field("trace", &self.trace)
            .finish_non_exhaustive()
    }
}

/// An invalid option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionError {
    /// The budget is no valid amount of fuel (F02).
    Fuel(FuelError),
    /// The price of this atom is no valid amount of fuel.
    Cost(String),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Fuel(error) => write!(f, "fuel: {error}"),
            OptionError::Cost(op) => {
                write!(f, "cost of '{op}': must be a finite number of at least 0")
            }
        }
    }
}

impl std::error::Error for OptionError {}

impl RunOptions {
    /// Creates the default options.
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    /// Sets the budget, in units of fuel.
    ///
    /// # Errors
    /// The budget is NaN, negative or infinite (F02).
    pub fn fuel(mut self, units: f64) -> Result<RunOptions, OptionError> {
        self.fuel = Fuel::from_decimal(units).map_err(OptionError::Fuel)?;
        Ok(self)
    }

    /// Sets the run's time limit in milliseconds.
    #[must_use]
    pub fn timeout_ms(mut self, ms: u64) -> RunOptions {
        self.timeout_ms = Some(ms);
        self
    }

    /// Sets the signal that stops the run.
    #[must_use]
    pub fn signal(mut self, signal: AbortSignal) -> RunOptions {
        self.signal = Some(signal);
        self
    }

    /// Sets the cost model.
    #[must_use]
    pub fn cost_model(mut self, model: CostModel) -> RunOptions {
        self.cost_model = model;
        self
    }

    /// Sets the price of an atom, in units of fuel.
    ///
    /// # Errors
    /// The price is NaN, negative or infinite.
    pub fn cost(mut self, op: &str, units: f64) -> Result<RunOptions, OptionError> {
        let micro = cost_from_f64(units).ok_or_else(|| OptionError::Cost(op.to_owned()))?;
        self.costs.insert(op.to_owned(), CostOverride::Fixed(micro));
        Ok(self)
    }

    /// Sets the price of an atom as a function of its input and the context.
    #[must_use]
    pub fn cost_fn(
        mut self,
        op: &str,
        price: impl Fn(&Value, &Value) -> f64 + Send + Sync + 'static,
    ) -> RunOptions {
        self.costs
            .insert(op.to_owned(), CostOverride::Function(Arc::new(price)));
        self
    }

    /// Sets the clock and random source that the program sees.
    #[must_use]
    pub fn environment(mut self, environment: Arc<dyn Environment>) -> RunOptions {
        self.environment = Some(environment);
        self
    }

    /// Sets the account of calls, tokens and money.
    #[must_use]
    pub fn account(mut self, account: Account) -> RunOptions {
        self.account = Some(account);
        self
    }

    /// Limits the number of calls of an atom.
    #[must_use]
    pub fn quota(mut self, op: &str, calls: u64) -> RunOptions {
        self.quotas.insert(op.to_owned(), Quota::new(calls));
        self
    }

    /// Sets the time limit of an atom.
    #[must_use]
    pub fn atom_timeout(mut self, op: &str, timeout: AtomTimeout) -> RunOptions {
        self.timeouts.insert(op.to_owned(), timeout);
        self
    }

    /// Sets the request context.
    #[must_use]
    pub fn context(mut self, context: impl Into<Value>) -> RunOptions {
        self.context = Arc::new(context.into());
        self
    }

    /// Lets programs read these parts of the request context by `$kind: context` (D75): keys,
    /// or dotted paths. By default none is readable.
    #[must_use]
    pub fn readable_context<T: Into<String>>(
        mut self,
        paths: impl IntoIterator<Item = T>,
    ) -> RunOptions {
        self.readable_context = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether to keep a trace.
    #[must_use]
    pub fn trace(mut self, on: bool) -> RunOptions {
        self.trace = on;
        self
    }

    /// Passes every trace event to a sink when its step has ended, with or without a kept
    /// trace: see [`TraceSink`]. Events are not buffered, so a run of any length can be
    /// followed.
    ///
    /// ```
    /// use a99_vm::{RunOptions, TraceEvent};
    ///
    /// let options = RunOptions::new().trace_to(|event: &TraceEvent| {
    ///     println!("{} {:?} {}", event.sequence, event.pointer, event.op);
    /// });
    /// assert!(!options.trace);
    /// ```
    #[must_use]
    pub fn trace_to(mut self, sink: impl TraceSink + 'static) -> RunOptions {
        self.trace_to = Some(Arc::new(Box::new(sink)));
        self
    }

    /// Sends events of the run while it is in progress, such as the pieces of models' answers
    /// and the chunks that the program sends by `streamChunk` (D87).
    ///
    /// A slow reader delays only the calls that send text or chunks. Their timeouts and the
    /// run's deadline keep running. With [`RunOptions::trace_to`] the same sink also gets the
    /// steps.
    ///
    /// ```
    /// use a99_vm::{RunOptions, event_channel};
    ///
    /// let (sink, stream) = event_channel(64);
    /// let options = RunOptions::new().trace_to(sink.clone()).events(sink);
    /// # drop((options, stream));
    /// ```
    #[must_use]
    pub fn events(mut self, sink: EventSink) -> RunOptions {
        self.events = Some(sink);
        self
    }

    /// Calls a function with each line that programs write by `console`, soon after it is
    /// written. Its time counts as the run's. The outcome has the lines too
    /// ([`Outcome::logs`]), and so do events.
    #[must_use]
    pub fn console(mut self, write: impl Fn(&LogLine) + Send + Sync + 'static) -> RunOptions {
        self.console = Some(ConsoleSink::new(write));
        self
    }

    /// Counts the run's progress, for another thread to read: see [`RunProgress`].
    #[must_use]
    pub fn progress(mut self, progress: Arc<RunProgress>) -> RunOptions {
        self.progress = Some(progress);
        self
    }

    /// Calls a function with each event of the run. Its time counts as the run's:
    /// [`EventSink::to_function`].
    ///
    /// ```
    /// use a99_vm::{RunEventKind, RunOptions};
    ///
    /// let options = RunOptions::new().on_event(|event| {
    ///     if let RunEventKind::Text { text, .. } = &event.kind {
    ///         print!("{text}");
    ///     }
    /// });
    /// assert!(options.events.is_some());
    /// ```
    #[must_use]
    pub fn on_event(self, call: impl Fn(RunEvent) + Send + Sync + 'static) -> RunOptions {
        self.events(EventSink::to_function(call))
    }

    /// Provides a value that host atoms look up by type
    /// ([`AtomCx::host`](crate::typed::AtomCx::host)). It overrides an earlier value of the
    /// same type and the engine's. The type may be a trait object.
    ///
    /// ```
    /// use a99_vm::RunOptions;
    /// use std::sync::Arc;
    ///
    /// struct Account {
    ///     number: u32,
    /// }
    ///
    /// let options = RunOptions::new().host(Arc::new(Account { number: 7 }));
    /// assert_eq!(options.host.get::<Account>().map(|a| a.number), Some(7));
    /// ```
    #[must_use]
    pub fn host<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> RunOptions {
        self.host = self.host.with(value);
        self
    }

    /// Sets the heap ceiling in bytes.
    #[must_use]
    pub fn heap_bytes(mut self, bytes: usize) -> RunOptions {
        self.limits.heap_bytes = bytes;
        self
    }

    /// Sets the meaning of `==`.
    #[must_use]
    pub fn equality(mut self, equality: Equality) -> RunOptions {
        self.equality = equality;
        self
    }
}

/// The outcome of a run (D7). Serializes as [`Outcome::to_json`].
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The value that the program returned, the error as a value if it failed, or `undefined`
    /// if it never returned.
    pub result: Value,
    /// The error of a failed run.
    pub error: Option<RunError>,
    /// Fuel spent; it may exceed the budget by the last price.
    pub fuel_used: Fuel,
    /// The trace, if it was requested.
    pub trace: Option<Vec<TraceEvent>>,
    /// Warnings of the run.
    pub warnings: Vec<Text>,
    /// Lines that the program wrote by `console`, at most
    /// [`MAX_KEPT`](crate::console::MAX_KEPT) bytes; after a restore only later lines.
    pub logs: Box<[LogLine]>,
    /// Usage of the run and its sub-agents: of a run with an account, or with a call of the
    /// host.
    pub usage: Option<Box<Usage>>,
}

/// Outcomes and errors are returned by value through every layer, so their size is pinned
/// here. Bytes on a 64-bit machine.
const _: () = {
    assert!(size_of::<Outcome>() <= 216);
    assert!(size_of::<RunError>() <= 112);
};

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl Outcome {
    /// The JSON form, that of `a99 run --json`.
    ///
    /// An object with `result`, or `error` ([`RunError::to_json`]) if the run failed;
    /// `fuel_used`, a number of units; `warnings`, an array of strings; `logs`, an array of
    /// [`LogLine::to_json`], if the program wrote any; `usage` ([`Usage::to_json`]), if there
    /// were sub-agents, or tokens or money were used; and `trace`, an array of
    /// [`TraceEvent::to_json`], if one was kept. An `undefined` result is left out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        match &self.error {
            Some(error) => map.insert("error", error.to_json()),
            None => map.insert("result", self.result.clone()),
        };
        map.insert("fuel_used", self.fuel_used.to_f64());
        let warnings = self.warnings.iter().cloned().map(Value::from);
        map.insert("warnings", Value::Array(warnings.collect()));
        if !self.logs.is_empty() {
            let logs = self.logs.iter().map(LogLine::to_json);
            map.insert("logs", Value::Array(logs.collect()));
        }
        if let Some(usage) = self.usage.as_ref().filter(|usage| !usage.is_plain()) {
            map.insert("usage", usage.to_json());
        }
        if let Some(events) = &self.trace {
            let events = events.iter().map(TraceEvent::to_json);
            map.insert("trace", Value::Array(events.collect()));
        }
        Value::Object(map)
    }

    /// The result, or the error, as in the first generation.
    ///
    /// # Errors
    /// The run's error.
    pub fn into_result(self) -> Result<Value, RunError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.result),
        }
    }
}
