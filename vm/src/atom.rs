//! Atoms: the one interface between programs and host code.
//!
//! An [`AtomDef`] is a signature plus a body. Control forms have no body (the
//! compiler lowers them), native bodies run inside one instruction on guest
//! values, asynchronous bodies get converted values and give a future. The
//! machine knows no atom by itself; an [`AtomSet`] is what the host grants.

mod error;
mod set;

pub use error::AtomError;
pub use set::{AtomSet, DuplicateAtom};

use crate::convert::BoundaryLimits;
use crate::driver::AbortSignal;
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

/// What the host hands a run besides atoms; atoms that need it know its type.
pub type Grants = Option<Arc<dyn Any + Send + Sync>>;

/// A body that runs inside one instruction, on guest values; see
/// [`crate::native`] for its rules.
pub type NativeFn = fn(&mut Cx<'_>, &mut Scope<'_>, &[Val]) -> Result<Val, Fault>;

/// The same, closing over host state.
pub type NativeDyn =
    dyn Fn(&mut Cx<'_>, &mut Scope<'_>, &[Val]) -> Result<Val, Fault> + Send + Sync;

/// A body that may wait.
pub type AsyncFn = fn(HostCall) -> BoxFuture<'static, Result<HostReply, AtomError>>;

/// The same, closing over host state.
pub type AsyncDyn =
    dyn Fn(HostCall) -> BoxFuture<'static, Result<HostReply, AtomError>> + Send + Sync;

/// The code of an atom.
#[derive(Clone)]
pub enum AtomBody {
    /// Lowered by the compiler.
    Form,
    /// A plain function on guest values.
    Native(NativeFn),
    /// A closure on guest values.
    NativeDyn(Arc<NativeDyn>),
    /// A function that gives a future.
    Async(AsyncFn),
    /// A closure that gives a future.
    AsyncDyn(Arc<AsyncDyn>),
}

impl AtomBody {
    /// Whether a call of it suspends the run.
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

/// The dynamic price of an execution in units of fuel, from its resolved
/// inputs and what may cross the boundary. NaN, infinite or negative results
/// are replaced by the static default (D17). Looking at the inputs is work of
/// the run: memory and a stop are errors.
pub type CostFn = fn(&mut Cx<'_>, &[Val], &BoundaryLimits) -> Result<f64, Fault>;

/// An atom.
#[derive(Clone, Debug)]
pub struct AtomDef {
    /// What the compiler knows of it.
    pub sig: AtomSig,
    /// Its code.
    pub body: AtomBody,
    /// Its price, where the signature says that it is dynamic.
    pub dynamic_cost: Option<CostFn>,
}

impl AtomDef {
    /// Its code, where a call of it is nothing else: it does not wait, and its price is
    /// that of its block.
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

/// What native bodies see of their run.
pub struct Scope<'a> {
    /// What the host said of the run: its context, grants and limits.
    pub options: &'a RunOptions,
    /// Warnings and the run's own state.
    pub locals: &'a Locals,
}

impl<'a> Scope<'a> {
    /// What may cross the boundary in this run (D21).
    #[must_use]
    pub fn limits(&self) -> &'a BoundaryLimits {
        &self.options.limits.boundary
    }
}

/// State of a run's own that atoms keep and that goes with the run when it is suspended:
/// the store of a run whose host grants none.
pub trait RunState: Send + Sync {
    /// The state as a value, the same for the same state; whoever made the state can
    /// make it again from that ([`Vm::with_state`](crate::Vm::with_state)).
    fn save(&self) -> Value;
    /// Bytes that it counted so far ([`Locals::add_bytes`]).
    fn bytes(&self) -> usize;
    /// The state itself, for the atoms that know its type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// Makes state again from what [`RunState::save`] gave; nothing if the value is not of
/// that form.
pub type RestoreState = fn(&Value) -> Option<Arc<dyn RunState>>;

/// State that belongs to one run and is shared with its atoms: warnings, the
/// default store, and the count of memory that such state takes.
#[derive(Default)]
pub struct Locals {
    warnings: Mutex<Vec<Text>>,
    store: OnceLock<Arc<dyn RunState>>,
    /// That of a run whose host gives it none.
    account: OnceLock<Account>,
    bytes: AtomicUsize,
    /// Micro-units that atoms took and the run did not pay yet.
    charges: AtomicI64,
    logging: AtomicBool,
    log: Mutex<Vec<(Text, Value)>>,
    /// Something of it was used, or others than the run may use it.
    used: AtomicBool,
}

/// The state of a run as a snapshot keeps it.
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

/// At most this many warnings are kept for one run.
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

    /// Adds an event of its own to the run's trace, if one is kept
    /// (`console.log`).
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

    /// The state for a call, which may keep it.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<Locals> {
        self.use_it();
        Arc::clone(self)
    }

    /// The state of the next run in place of that of one that is over.
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

    /// The store that this run owns when the host grants none (D40), made at
    /// its first use.
    pub fn store_or_init(
        &self,
        make: impl FnOnce() -> Arc<dyn RunState>,
    ) -> Arc<dyn Any + Send + Sync> {
        self.use_it();
        self.store.get_or_init(make).clone().into_any()
    }

    /// The account of a run whose host gives it none: one without limits, made at its first
    /// use.
    fn account(&self) -> Account {
        self.account.get_or_init(Account::default).clone()
    }

    /// The same, if it was used.
    pub(crate) fn own_account(&self) -> Option<&Account> {
        self.account.get()
    }

    /// State for one call of a run, which has the run's account.
    pub(crate) fn for_a_call(run: &Locals) -> Locals {
        Locals {
            account: OnceLock::from(run.account()),
            ..Locals::default()
        }
    }

    /// What a snapshot keeps of it: warnings, own events that the trace has not taken,
    /// the store, and charges that are not paid.
    pub(crate) fn saved(&self) -> SavedLocals {
        SavedLocals {
            warnings: (self.warnings.lock().unwrap_or_else(|e| e.into_inner())).clone(),
            log: (self.log.lock().unwrap_or_else(|e| e.into_inner())).clone(),
            store: self.store.get().map(|store| store.save()),
            charges: self.charges.load(Ordering::Relaxed),
        }
    }

    /// Takes over what a snapshot kept; the store was made from its part.
    pub(crate) fn restore(&self, saved: SavedLocals, store: Option<Arc<dyn RunState>>) {
        self.use_it();
        saved.warnings.into_iter().for_each(|text| self.warn(text));
        *self.log.lock().unwrap_or_else(|e| e.into_inner()) = saved.log;
        self.charges.store(saved.charges.max(0), Ordering::Relaxed);
        if let Some(store) = store {
            self.add_bytes(store.bytes());
            // A run that was just made has none.
            let _ = self.store.set(store);
        }
    }

    /// Adds to the bytes that such state holds; counted against the heap
    /// ceiling after the call that changed it (D20).
    pub fn add_bytes(&self, bytes: usize) {
        self.use_it();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Charges the run for what an asynchronous atom does. It is paid when the
    /// call ends, also by an error, a timeout or an abort.
    pub fn charge(&self, fuel: Fuel) {
        self.use_it();
        let more = fuel.micro().max(0);
        let add = |now: i64| Some(now.saturating_add(more));
        // The closure never refuses.
        let _ = self
            .charges
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes the charges that were not paid yet, in micro-units.
    pub(crate) fn take_charges(&self) -> i64 {
        match self.charges.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.charges.swap(0, Ordering::Relaxed),
        }
    }

    /// Bytes counted so far.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// One execution of an asynchronous atom: a box of its [`CallParts`], since it moves through
/// many hands.
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

/// What a call is made of.
#[derive(Clone, Debug)]
pub struct CallParts {
    /// The atom's name.
    pub op: Cow<'static, str>,
    /// Its inputs, in the order of the signature's parameters; one object for
    /// open and raw parameters.
    pub args: Vec<Value>,
    /// What the host said of the run: its context, grants and state are there.
    pub options: Arc<RunOptions>,
    /// State of the run.
    pub locals: Arc<Locals>,
    /// Fuel the run has left.
    pub fuel_left: Fuel,
    /// How deep this run is nested in sub-agents (D41).
    pub depth: u32,
    /// Tells whether the run still wants the answer.
    pub cancelled: Cancelled,
    /// Milliseconds since the Unix epoch when the call was made.
    pub now_ms: f64,
    /// When the answer comes too late: the end of the atom's time or of the
    /// run's, whichever is first (D22).
    pub deadline: Option<Instant>,
    /// Which call of the run this is; a run that answers it has it as its
    /// [`parent`](crate::RunOptions::parent).
    pub id: CallId,
    /// Where the call may send what the host is to learn of it while it goes on; nothing
    /// where nobody listens.
    pub events: Option<EventSink>,
}

impl HostCall {
    /// The run's account: what the call uses beside fuel is used of it.
    #[must_use]
    pub fn account(&self) -> Account {
        let own = || self.locals.account();
        self.options.account.clone().unwrap_or_else(own)
    }

    /// Sends the host of the run a chunk, as `streamChunk` does, and waits until there is
    /// room for it. Nothing happens where nobody listens.
    pub async fn send_chunk(&self, value: Value) {
        if let Some(events) = &self.events {
            events.send_chunk(self.id.clone(), value).await;
        }
    }
}

/// Charges a run for the time of a call, whichever way the call ends: an atom
/// that is dropped by a timeout or an abort pays up to that moment.
#[derive(Debug)]
pub struct TimeCharge {
    locals: Arc<Locals>,
    per_second: Fuel,
    /// Nothing where there is no clock.
    started: Option<Instant>,
    settled: bool,
}

impl TimeCharge {
    /// Starts to count, at this price for a second.
    pub fn start(call: &HostCall, per_second: Fuel) -> TimeCharge {
        TimeCharge {
            locals: call.locals.clone(),
            per_second,
            started: crate::run::wall_clock(),
            settled: false,
        }
    }

    /// Ends the count with the time that is really to be paid.
    pub fn settle(mut self, elapsed: Duration) {
        self.settled = true;
        self.take(elapsed);
    }

    /// The price of a time in micro-units, rounded down.
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

/// Set when the run no longer wants an answer, because it was aborted, timed
/// out or dropped.
#[derive(Clone, Debug, Default)]
pub struct Cancelled {
    flag: CancelFlag,
    signal: Option<AbortSignal>,
}

impl Cancelled {
    /// Set by this flag, and by the signal of the run.
    pub(crate) fn by(flag: CancelFlag, signal: Option<AbortSignal>) -> Cancelled {
        Cancelled { flag, signal }
    }

    /// Its own flag, for whoever sets it.
    pub(crate) fn flag(&self) -> CancelFlag {
        self.flag.clone()
    }

    /// Whether the answer is no longer wanted.
    pub fn is_set(&self) -> bool {
        self.flag.is_set() || self.signal.as_ref().is_some_and(AbortSignal::is_aborted)
    }
}

/// The flag of a call that is set when its answer is no longer wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// The answer is no longer wanted.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether another call may have it: nobody else has it, and it is not set. A count of one
    /// stays so, since who has none cannot make one.
    pub(crate) fn is_free(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && !self.is_set()
    }
}

/// The answer of an asynchronous atom.
#[derive(Clone, Debug, Default)]
pub struct HostReply {
    /// Its value.
    pub value: ReplyValue,
    /// Fuel that the call used on behalf of the run, charged to it (D41).
    pub fuel_used: Option<Fuel>,
    /// The value is a program that the run itself executes in place of the
    /// call (`agentRun` with the token of a stored procedure).
    pub run_inline: bool,
}

/// The value of a [`HostReply`]; `undefined` unless set.
#[derive(Clone, Debug)]
pub struct ReplyValue(pub Value);

impl Drop for ReplyValue {
    /// Host code may nest arrays as deep as it likes; the compiler's glue would
    /// follow them down the stack (M09).
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

/// What a set takes as an atom: an [`AtomDef`], or the constant that `#[atom]`
/// adds to a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no atom",
    label = "not an atom",
    note = "`#[atom]` adds a constant to a function, named as the function in capitals: \
            `.with(COUNT_WORDS)` for `fn count_words`",
    note = "an atom without `#[atom]` is an `AtomDef`"
)]
pub trait IntoAtom {
    /// The atom.
    fn into_atom(self) -> AtomDef;
}

impl IntoAtom for AtomDef {
    fn into_atom(self) -> AtomDef {
        self
    }
}
