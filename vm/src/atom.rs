//! Atoms: the one interface between programs and host code.
//!
//! An [`AtomDef`] is a signature and a body. The compiler lowers control forms, which have no
//! body. Native bodies run inside one instruction on guest values. Asynchronous bodies get
//! converted values and return a future. The machine has no builtin atoms: the host grants an
//! [`AtomSet`].

mod error;
mod set;
mod start;

pub use error::AtomError;
pub use set::{AtomSet, DuplicateAtom};
pub(crate) use start::poll_caught;

use crate::abort::AbortSignal;
use crate::clock::wall_clock;
use crate::convert::BoundaryLimits;
use crate::heap::Val;
use crate::native::{Cx, Fault};
use crate::options::RunOptions;
use a99_core::call_id::CallId;
use a99_core::fuel::Fuel;
use a99_core::sig::AtomSig;
use a99_core::text::Text;
use a99_core::value::Value;
use a99_run::account::Account;
use a99_run::events::EventSink;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A body that runs inside one instruction, on guest values; see [`crate::native`] for its
/// rules.
pub type NativeFn = fn(&mut Cx<'_>, &mut Scope<'_>, &[Val]) -> Result<Val, Fault>;

/// A [`NativeFn`] that closes over host state.
pub type NativeDyn =
    dyn Fn(&mut Cx<'_>, &mut Scope<'_>, &[Val]) -> Result<Val, Fault> + Send + Sync;

/// An asynchronous body.
pub type AsyncFn = fn(HostCall) -> BoxFuture<'static, Result<HostReply, AtomError>>;

/// An [`AsyncFn`] that closes over host state.
pub type AsyncDyn =
    dyn Fn(HostCall) -> BoxFuture<'static, Result<HostReply, AtomError>> + Send + Sync;

/// The answer of an atom or of its host.
pub(crate) type Answered = Result<HostReply, AtomError>;

/// The future of an atom's answer.
pub(crate) type AnswerFuture = BoxFuture<'static, Answered>;

/// The code of an atom.
#[derive(Clone)]
pub enum AtomBody {
    /// Lowered by the compiler.
    Form,
    /// A plain function on guest values.
    Native(NativeFn),
    /// A closure on guest values.
    NativeDyn(Arc<NativeDyn>),
    /// A function that returns a future.
    Async(AsyncFn),
    /// A closure that returns a future.
    AsyncDyn(Arc<AsyncDyn>),
}

impl AtomBody {
    /// Whether a call of the atom suspends the run.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self, AtomBody::Async(_) | AtomBody::AsyncDyn(_))
    }
}

impl fmt::Debug for AtomBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AtomBody::Form => "Form",
            AtomBody::Native(_) | AtomBody::NativeDyn(_) => "Native",
            AtomBody::Async(_) | AtomBody::AsyncDyn(_) => "Async",
        })
    }
}

/// Computes the dynamic price of a call, in units of fuel, from its resolved inputs and the
/// boundary limits.
///
/// NaN, infinite and negative results are replaced by the static default (D17). Reading the
/// inputs is work of the run, so a lack of memory and a stop are errors.
pub type CostFn = fn(&mut Cx<'_>, &[Val], &BoundaryLimits) -> Result<f64, Fault>;

/// An atom: signature, body and price.
#[derive(Clone, Debug)]
pub struct AtomDef {
    /// The signature that the compiler checks against.
    pub sig: AtomSig,
    /// The implementation.
    pub body: AtomBody,
    /// The price function, if the signature declares a dynamic price.
    pub dynamic_cost: Option<CostFn>,
}

impl AtomDef {
    /// The native body, if a call needs nothing else: the atom is synchronous and the price
    /// of its block covers it.
    pub(crate) fn plain(&self) -> Option<NativeFn> {
        match self.body {
            AtomBody::Native(body)
                if self.dynamic_cost.is_none() && self.sig.charged_by_machine().is_none() =>
            {
                Some(body)
            }
            _ => None,
        }
    }
}

/// The run's state that native bodies can use.
pub struct Scope<'a> {
    /// Options of the run: context, grants and limits.
    pub options: &'a RunOptions,
    /// Warnings and the state that atoms keep per run.
    pub locals: &'a Locals,
}

impl<'a> Scope<'a> {
    /// The boundary limits of this run (D21).
    #[must_use]
    pub fn limits(&self) -> &'a BoundaryLimits {
        &self.options.limits.boundary
    }
}

/// State that atoms keep for one run, suspended together with it; for instance the store of a
/// run without a granted one.
pub trait RunState: Send + Sync {
    /// Serializes the state, deterministically. The state's owner can recreate it from the
    /// value ([`Vm::with_state`](crate::Vm::with_state)).
    fn save(&self) -> Value;
    /// Bytes that the state added so far ([`Locals::add_bytes`]).
    fn bytes(&self) -> usize;
    /// Converts to `Any`, for atoms that downcast to their type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// Recreates state from the result of [`RunState::save`]; `None` if the value has another
/// form.
pub type RestoreState = fn(&Value) -> Option<Arc<dyn RunState>>;

/// State of one run that its atoms share: warnings, the default store, and the bytes that
/// such state takes.
#[derive(Default)]
pub struct Locals {
    warnings: Mutex<Vec<Text>>,
    store: OnceLock<Arc<dyn RunState>>,
    /// The account of a run whose options have none.
    account: OnceLock<Account>,
    bytes: AtomicUsize,
    /// Micro-units that atoms charged and the run has not paid yet.
    charges: AtomicI64,
    logging: AtomicBool,
    log: Mutex<Vec<(Text, Value)>>,
    /// Whether the state was changed or shared: then it must be reset before the next run.
    used: AtomicBool,
}

/// The part of [`Locals`] that a snapshot stores.
#[derive(Default)]
pub(crate) struct SavedLocals {
    pub(crate) warnings: Vec<Text>,
    pub(crate) log: Vec<(Text, Value)>,
    pub(crate) store: Option<Value>,
    pub(crate) charges: i64,
}

impl fmt::Debug for Locals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locals").finish_non_exhaustive()
    }
}

/// Maximum number of warnings of one run.
pub const MAX_WARNINGS: usize = 1_000;

impl Locals {
    /// Adds a warning to the outcome.
    pub fn warn(&self, text: impl Into<Text>) {
        let text = text.into();
        let mut warnings = self.warnings.lock().unwrap_or_else(|e| e.into_inner());
        if warnings.len() < MAX_WARNINGS {
            self.use_it();
            self.bytes.fetch_add(text.len_bytes(), Ordering::Relaxed);
            warnings.push(text);
        }
    }

    /// Adds an event of an atom to the run's trace, if one is kept (`console.log`).
    pub fn log(&self, op: &'static str, value: impl FnOnce() -> Value) {
        if self.logging.load(Ordering::Relaxed) {
            self.use_it();
            let mut log = self.log.lock().unwrap_or_else(|e| e.into_inner());
            log.push((Text::from(op), value()));
        }
    }

    pub(crate) fn take_log(&self) -> Vec<(Text, Value)> {
        std::mem::take(&mut *self.log.lock().unwrap_or_else(|e| e.into_inner()))
    }

    pub(crate) fn set_logging(&self, on: bool) {
        self.logging.store(on, Ordering::Relaxed);
    }

    fn use_it(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// A shared handle for a call, which may outlive the run.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<Locals> {
        self.use_it();
        Arc::clone(self)
    }

    /// Resets the state for the next run.
    pub(crate) fn renew(self: &mut Arc<Self>) {
        if self.used.load(Ordering::Relaxed) {
            match Arc::get_mut(self) {
                Some(locals) => locals.reset(),
                None => *self = Arc::default(),
            }
        }
    }

    fn reset(&mut self) {
        self.warnings
            .get_mut()
            .unwrap_or_else(|e| e.into_inner())
            .clear();
        self.log
            .get_mut()
            .unwrap_or_else(|e| e.into_inner())
            .clear();
        self.store = OnceLock::new();
        self.account = OnceLock::new();
        *self.bytes.get_mut() = 0;
        *self.charges.get_mut() = 0;
        *self.used.get_mut() = false;
    }

    /// Takes the warnings collected so far.
    pub fn take_warnings(&self) -> Vec<Text> {
        if !self.used.load(Ordering::Relaxed) {
            return Vec::new();
        }
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// The store of a run without a granted one (D40), created on first use.
    pub fn store_or_init(
        &self,
        make: impl FnOnce() -> Arc<dyn RunState>,
    ) -> Arc<dyn Any + Send + Sync> {
        self.use_it();
        self.store.get_or_init(make).clone().into_any()
    }

    /// The account of a run whose options have none: without limits, created on first use.
    fn account(&self) -> Account {
        self.account.get_or_init(Account::default).clone()
    }

    /// The run's own account, if it was used.
    pub(crate) fn own_account(&self) -> Option<&Account> {
        self.account.get()
    }

    /// State for one call of a run, with the run's account.
    pub(crate) fn for_a_call(run: &Locals) -> Locals {
        Locals {
            account: OnceLock::from(run.account()),
            ..Locals::default()
        }
    }

    /// Saves the state for a snapshot: warnings, events that the trace has not taken yet, the
    /// store, and unpaid charges.
    pub(crate) fn saved(&self) -> SavedLocals {
        SavedLocals {
            warnings: (self.warnings.lock().unwrap_or_else(|e| e.into_inner())).clone(),
            log: (self.log.lock().unwrap_or_else(|e| e.into_inner())).clone(),
            store: self.store.get().map(|store| store.save()),
            charges: self.charges.load(Ordering::Relaxed),
        }
    }

    /// Restores saved state; the caller has recreated `store`.
    pub(crate) fn restore(&self, saved: SavedLocals, store: Option<Arc<dyn RunState>>) {
        self.use_it();
        saved.warnings.into_iter().for_each(|text| self.warn(text));
        *self.log.lock().unwrap_or_else(|e| e.into_inner()) = saved.log;
        self.charges.store(saved.charges.max(0), Ordering::Relaxed);
        if let Some(store) = store {
            self.add_bytes(store.bytes());
            // A new run has no store, so that setting it cannot fail.
            let _ = self.store.set(store);
        }
    }

    /// Adds bytes of such state. They count against the heap ceiling after the call that
    /// changed it (D20).
    pub fn add_bytes(&self, bytes: usize) {
        self.use_it();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Charges the run for the work of an asynchronous atom. The charge is paid when the call
    /// ends, also after an error, a timeout or an abort.
    pub fn charge(&self, fuel: Fuel) {
        self.use_it();
        let more = fuel.micro().max(0);
        let add = |now: i64| Some(now.saturating_add(more));
        // The closure always returns `Some`.
        let _ = self
            .charges
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes the unpaid charges, in micro-units.
    pub(crate) fn take_charges(&self) -> i64 {
        match self.charges.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.charges.swap(0, Ordering::Relaxed),
        }
    }

    /// Bytes added so far.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// One execution of an asynchronous atom. Its [`CallParts`] are boxed because they are moved
/// often.
#[derive(Clone, Debug)]
pub struct HostCall(Box<CallParts>);

impl From<CallParts> for HostCall {
    fn from(parts: CallParts) -> HostCall {
        HostCall(Box::new(parts))
    }
}

impl Deref for HostCall {
    type Target = CallParts;

    fn deref(&self) -> &CallParts {
        &self.0
    }
}

impl DerefMut for HostCall {
    fn deref_mut(&mut self) -> &mut CallParts {
        &mut self.0
    }
}

/// The parts of a [`HostCall`].
#[derive(Clone, Debug)]
pub struct CallParts {
    /// The atom's name.
    pub op: Cow<'static, str>,
    /// The inputs in the order of the signature's parameters; one object for open and raw
    /// parameters.
    pub args: Vec<Value>,
    /// Options of the run, with context, grants and host state.
    pub options: Arc<RunOptions>,
    /// State of the run that atoms share.
    pub locals: Arc<Locals>,
    /// Fuel that the run has left.
    pub fuel_left: Fuel,
    /// Nesting depth of this run in sub-agents (D41).
    pub depth: u32,
    /// Set once the run no longer wants the answer.
    pub cancelled: Cancelled,
    /// Time of the call, in milliseconds since the Unix epoch.
    pub now_ms: f64,
    /// Milliseconds since then, if a restored run makes the call again.
    pub waited_ms: f64,
    /// Latest time of the answer: the timeout of the atom or the deadline of the run,
    /// whichever is earlier (D22).
    pub deadline: Option<Instant>,
    /// Id of the call in its run. A run that answers the call has it as its
    /// [`parent`](crate::RunOptions::parent).
    pub id: CallId,
    /// Sink for events of the call while it runs; `None` without a subscriber.
    pub events: Option<EventSink>,
}

impl HostCall {
    /// The run's account for resources other than fuel.
    #[must_use]
    pub fn account(&self) -> Account {
        let own = || self.locals.account();
        self.options.account.clone().unwrap_or_else(own)
    }

    /// Sends a chunk to the run's host, as `streamChunk` does, and waits for room. Returns at
    /// once without a subscriber.
    pub async fn send_chunk(&self, value: Value) {
        if let Some(events) = &self.events {
            events.send_chunk(self.id.clone(), value).await;
        }
    }
}

/// Charges a run for the duration of a call, however it ends. An atom dropped by a timeout or
/// an abort pays up to that moment.
#[derive(Debug)]
pub struct TimeCharge {
    locals: Arc<Locals>,
    per_second: Fuel,
    /// `None` without a clock.
    started: Option<Instant>,
    settled: bool,
}

impl TimeCharge {
    /// Starts the charge, at a price per second.
    pub fn start(call: &HostCall, per_second: Fuel) -> TimeCharge {
        TimeCharge {
            locals: call.locals.clone(),
            per_second,
            started: wall_clock(),
            settled: false,
        }
    }

    /// Ends the charge with a measured duration instead of the elapsed time.
    pub fn settle(mut self, elapsed: Duration) {
        self.settled = true;
        self.take(elapsed);
    }

    /// The price of a duration in micro-units, rounded down.
    fn take(&self, elapsed: Duration) {
        const NANOS: u128 = 1_000_000_000;
        let rate = u128::from(self.per_second.micro().max(0).unsigned_abs());
        let micro = rate.saturating_mul(elapsed.as_nanos()) / NANOS;
        let micro = i64::try_from(micro).unwrap_or(i64::MAX);
        self.locals.charge(Fuel::from_micro(micro));
    }
}

impl Drop for TimeCharge {
    fn drop(&mut self) {
        if !self.settled {
            self.take(self.started.map_or(Duration::ZERO, |at| at.elapsed()));
        }
    }
}

/// Set when the run no longer wants an answer, because it was aborted, timed out or dropped.
#[derive(Clone, Debug, Default)]
pub struct Cancelled {
    flag: CancelFlag,
    signal: Option<AbortSignal>,
}

impl Cancelled {
    /// Combines a call's flag with the signal of its run.
    pub(crate) fn by(flag: CancelFlag, signal: Option<AbortSignal>) -> Cancelled {
        Cancelled { flag, signal }
    }

    /// The flag of the call, for the side that sets it.
    pub(crate) fn flag(&self) -> CancelFlag {
        self.flag.clone()
    }

    /// Whether the answer is no longer wanted.
    pub fn is_set(&self) -> bool {
        self.flag.is_set() || self.signal.as_ref().is_some_and(AbortSignal::is_aborted)
    }
}

/// The flag of a call, set when its answer is no longer wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether another call may reuse the flag: it has no other owner and is not set. A count
    /// of one is stable, because only an owner can create another.
    pub(crate) fn is_free(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && !self.is_set()
    }
}

/// The answer of an asynchronous atom.
#[derive(Clone, Debug, Default)]
pub struct HostReply {
    /// The value of the answer.
    pub value: ReplyValue,
    /// Fuel that the call used on behalf of the run and that the run pays (D41).
    pub fuel_used: Option<Fuel>,
    /// Whether the value is a program that the run executes itself instead of the call
    /// (`agentRun` with the token of a stored procedure).
    pub run_inline: bool,
}

/// The value of a [`HostReply`]; `undefined` unless set.
#[derive(Clone, Debug)]
pub struct ReplyValue(pub Value);

impl Drop for ReplyValue {
    /// Drops nested arrays iteratively. Host code may nest them to any depth, and drop glue
    /// recurses (M09).
    fn drop(&mut self) {
        if matches!(self.0, Value::Array(_) | Value::Object(_)) {
            std::mem::replace(&mut self.0, Value::Undefined).dispose();
        }
    }
}

impl Default for ReplyValue {
    fn default() -> Self {
        ReplyValue(Value::Undefined)
    }
}

impl From<Value> for HostReply {
    fn from(value: Value) -> HostReply {
        HostReply {
            value: ReplyValue(value),
            fuel_used: None,
            run_inline: false,
        }
    }
}

/// Converts to an atom for a set: from an [`AtomDef`], or from the constant that `#[atom]`
/// generates for a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no atom",
    label = "not an atom",
    note = "`#[atom]` adds a constant to a function, named as the function in capitals: \
            `.with(COUNT_WORDS)` for `fn count_words`",
    note = "an atom without `#[atom]` is an `AtomDef`"
)]
pub trait IntoAtom {
    /// Converts to the atom.
    fn into_atom(self) -> AtomDef;
}

impl IntoAtom for AtomDef {
    fn into_atom(self) -> AtomDef {
        self
    }
}
