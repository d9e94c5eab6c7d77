//! What a host says about one run, and what it gets back.

use crate::atom::Grants;
use crate::console::ConsoleSink;
use crate::convert::BoundaryLimits;
use crate::driver::AbortSignal;
use crate::heap::DEFAULT_HEAP_LIMIT;
use crate::host_state::HostState;
use crate::progress::RunProgress;
use crate::trace::{TraceEvent, TraceSink};
use crate::vm::Environment;
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

/// The fuel of a run unless the host says otherwise; the references' default.
pub const DEFAULT_FUEL: f64 = 1000.0;

/// Milliseconds of run time for each unit of fuel, unless an explicit timeout
/// replaces it (D22).
pub const TIMEOUT_MS_PER_FUEL: f64 = 10.0;

/// How deep sub-agents may nest (D41).
pub const MAX_AGENT_DEPTH: u32 = 10;

/// Bytes of trace that a run keeps; older events are dropped first (D43).
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

/// The price of a step as a function of its input as written and of the
/// request context, in units of fuel.
pub type CostFunction = Arc<dyn Fn(&Value, &Value) -> f64 + Send + Sync>;

/// A price that replaces an atom's own for one run.
#[derive(Clone)]
pub enum CostOverride {
    /// Micro-units.
    Fixed(i64),
    /// Computed for each execution; NaN, infinite, negative and panicking
    /// prices are replaced by the static default (D17, F03).
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

/// How many calls of an atom are left; clones share the count, so that one
/// budget can span several runs (D42).
#[derive(Clone, Debug)]
pub struct Quota(Arc<QuotaState>);

#[derive(Debug)]
struct QuotaState {
    limit: u64,
    used: AtomicU64,
}

impl Quota {
    /// A budget of this many calls.
    pub fn new(limit: u64) -> Quota {
        Quota(Arc::new(QuotaState {
            limit,
            used: AtomicU64::new(0),
        }))
    }

    /// The budget.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Calls counted so far.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed).min(self.0.limit)
    }

    /// Counts at least so many calls.
    pub(crate) fn raise(&self, used: u64) {
        self.0
            .used
            .fetch_max(used.min(self.0.limit), Ordering::Relaxed);
    }

    /// Counts a call; `false` if none is left.
    pub(crate) fn take(&self) -> bool {
        self.0
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < self.0.limit).then_some(n + 1)
            })
            .is_ok()
    }
}

/// The sizes that a run may not pass.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of heap, over everything the run holds (D20).
    pub heap_bytes: usize,
    /// What may cross between host and guest (D21).
    pub boundary: BoundaryLimits,
    /// Depth of sub-agents (D41).
    pub agent_depth: u32,
    /// Bytes of trace kept.
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

/// Everything a host says about one run. The defaults are safe: limits are on
/// and nothing is granted.
#[derive(Clone)]
pub struct RunOptions {
    /// The budget.
    pub fuel: Fuel,
    /// Milliseconds the run may take; by default ten for each unit of fuel.
    pub timeout_ms: Option<u64>,
    /// Stops the run from outside.
    pub signal: Option<AbortSignal>,
    /// Which prices apply (D18).
    pub cost_model: CostModel,
    /// Prices of single atoms. Here as in quotas and timeouts, a name that the
    /// engine does not have is refused when the run begins
    /// ([`ErrorCode::UnknownOp`](a99_core::error::ErrorCode::UnknownOp)).
    pub costs: HashMap<String, CostOverride>,
    /// Calls of single atoms (D42).
    pub quotas: HashMap<String, Quota>,
    /// Time limits of single atoms.
    pub timeouts: HashMap<String, AtomTimeout>,
    /// The request context that atoms see.
    pub context: Arc<Value>,
    /// What of it programs may read (D75): keys, or dotted paths below them.
    pub readable_context: Arc<[String]>,
    /// What the host grants.
    pub grants: Grants,
    /// Values of the host that its atoms ask for.
    pub host: HostState,
    /// Sizes.
    pub limits: Limits,
    /// Keep a trace.
    pub trace: bool,
    /// Where events of the trace go as they are made.
    pub trace_to: Option<Arc<Box<dyn TraceSink>>>,
    /// Where events of the run go while it goes on (D87).
    pub events: Option<EventSink>,
    /// Where lines go that programs write by `console`.
    pub console: Option<ConsoleSink>,
    /// Counters that show how far the run is.
    pub progress: Option<Arc<RunProgress>>,
    /// The meaning of `==`.
    pub equality: Equality,
    /// How deep this run itself is nested in sub-agents.
    pub depth: u32,
    /// The call of another run that this run answers: the identities of its own calls
    /// begin with it.
    pub parent: Option<Arc<CallId>>,
    /// What the run may use beside fuel, with the sub-agents below it: calls of the host,
    /// tokens, money. A run without one gets an account without limits with its first call.
    pub account: Option<Account>,
    /// The clock and the randomness that the program sees, in place of the machine's: a run
    /// that is to be the same when it is run again.
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

/// What options have that say nothing: an `undefined` context, and no names of members of it.
type Nothing = (Arc<Value>, Arc<[String]>);

/// One for each thread: starting a run allocates none, and threads do not count their runs in
/// one place.
fn nothing() -> Nothing {
    let new = || (Arc::new(Value::Undefined), Arc::from(Vec::new()));
    thread_local! {
        static NOTHING: std::cell::OnceCell<Nothing> = const { std::cell::OnceCell::new() };
    }
    let shared = NOTHING.try_with(|nothing| nothing.get_or_init(new).clone());
    shared.unwrap_or_else(|_| new())
}

/// Options of no run, for a machine between two: one for each thread.
pub(crate) fn of_no_run() -> Arc<RunOptions> {
    thread_local! {
        static OPTIONS: Arc<RunOptions> = Arc::default();
    }
    let shared = OPTIONS.try_with(Arc::clone);
    shared.unwrap_or_default()
}

impl RunOptions {
    /// The same for one more run: with quotas of its own, of which nothing is used.
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

/// An option that cannot be.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionError {
    /// The budget is no sane amount of fuel (F02).
    Fuel(FuelError),
    /// The price of this atom is no sane amount of fuel.
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
    /// The defaults.
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    /// Sets the budget, in units of fuel.
    ///
    /// # Errors
    /// NaN, negative and infinite budgets (F02).
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
    /// NaN, negative and infinite prices.
    pub fn cost(mut self, op: &str, units: f64) -> Result<RunOptions, OptionError> {
        let micro = cost_from_f64(units).ok_or_else(|| OptionError::Cost(op.to_owned()))?;
        self.costs.insert(op.to_owned(), CostOverride::Fixed(micro));
        Ok(self)
    }

    /// Sets the price of an atom by a function of its input and the context.
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

    /// Sets the clock and the randomness that the program sees.
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

    /// Limits how often an atom may be called.
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

    /// Lets programs read these parts of the request context by `$kind: context` (D75):
    /// keys, or dotted paths. Nothing is readable by default.
    #[must_use]
    pub fn readable_context<T: Into<String>>(
        mut self,
        paths: impl IntoIterator<Item = T>,
    ) -> RunOptions {
        self.readable_context = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Keeps a trace.
    #[must_use]
    pub fn trace(mut self, on: bool) -> RunOptions {
        self.trace = on;
        self
    }

    /// Gives every event of the trace to a sink when its step has ended, whether
    /// or not a trace is kept besides: see [`TraceSink`]. Nothing is held back, so
    /// a run of any length can be followed.
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

    /// Sends events of the run while it goes on, such as the pieces of models' answers and
    /// what the program sends by `streamChunk` (D87). Whoever reads slowly makes the calls
    /// wait that send text or chunks; their times and the run's go on meanwhile. With
    /// [`RunOptions::trace_to`] the same sink gets the steps, too.
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

    /// Calls a function with each line that programs write by `console`, soon after. Its time is
    /// the run's. The outcome has them as well ([`Outcome::logs`]), and events tell of them.
    #[must_use]
    pub fn console(mut self, write: impl Fn(&LogLine) + Send + Sync + 'static) -> RunOptions {
        self.console = Some(ConsoleSink::new(write));
        self
    }

    /// Has the run count what it does, for another thread to read: see [`RunProgress`].
    #[must_use]
    pub fn progress(mut self, progress: Arc<RunProgress>) -> RunOptions {
        self.progress = Some(progress);
        self
    }

    /// Calls a function with each event of the run. Its time is the run's:
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

    /// Gives the host's atoms a value that they ask for by its type
    /// ([`AtomCx::host`](crate::typed::AtomCx::host)), in place of one of the same
    /// type before, and of the engine's. The type may be a trait.
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

/// What came of a run (D7). Serializes as [`Outcome::to_json`].
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What the program returned; the error as a value if it failed;
    /// `undefined` if it never returned.
    pub result: Value,
    /// Why it failed.
    pub error: Option<RunError>,
    /// Fuel spent; it may pass the budget by the last price.
    pub fuel_used: Fuel,
    /// The trace, if it was asked for.
    pub trace: Option<Vec<TraceEvent>>,
    /// Warnings.
    pub warnings: Vec<Text>,
    /// What the program wrote by `console`, at most [`MAX_KEPT`](crate::console::MAX_KEPT)
    /// bytes; of a run that was restored since then.
    pub logs: Box<[LogLine]>,
    /// What the run and its sub-agents used: of a run with an account, or with a call of
    /// the host.
    pub usage: Option<Box<Usage>>,
}

/// Outcomes and errors are returned by value through every layer: growth of
/// them is a decision. Bytes on a 64-bit machine.
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
    /// The form for machines, that of `a99 run --json`: an object of `result`, or
    /// of `error` ([`RunError::to_json`]) if the run failed; `fuel_used`, a number
    /// of units; `warnings`, an array of strings; `logs`, an array of [`LogLine::to_json`], if the
    /// program wrote any; `usage` ([`Usage::to_json`]), if there
    /// were sub-agents, or tokens or money were used; and `trace`, an array of [`TraceEvent::to_json`], if one was
    /// kept. An `undefined` result is left out.
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

    /// The first generation's style: the result, or the error.
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
