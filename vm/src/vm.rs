//! Runs of programs: the [`Vm`] with a host's atoms, and the [`Pool`] that bounds concurrent
//! runs.

use crate::args::Args;
use crate::atom::{AtomBody, AtomDef, AtomError, AtomSet, HostCall, HostReply, RestoreState};
use crate::driver::{self, Admission, NO_TIMERS, Refusal};
use crate::heap::Heap;
use crate::link::{Executable, LinkError};
use crate::machine::{LoadRequest, Machine};
use crate::options::{Outcome, RunOptions};
use crate::pace::Host;
use crate::run::{self, Run, RunClock, RunHost, Session, SnapshotError, Stopwatch};
use crate::spare::{self, Spare};
#[cfg(feature = "jit")]
use crate::tier::CompiledTier;
use a99_core::call_id::CallId;
use a99_core::diag::{excerpt, suggest};
use a99_core::error::{ErrorCode, RunError};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_core::verify::Artifact;
use a99_run::events::{CallEnd, EventSink, RunEventKind};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The clock and random source of runs.
pub trait Environment: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> f64;
    /// Fills a buffer with random bytes.
    fn random(&self, out: &mut [u8]);
}

/// Makes artifacts of programs that arrive at run time. Without a loader the atoms that need
/// one fail.
pub trait ProgramLoader: Send + Sync {
    /// Compiles and verifies a program that can access the variables `outer` of its caller;
    /// the flag marks constants.
    ///
    /// The artifact should take at most `room` bytes. Poll `stop` at least every few hundred
    /// microseconds: once it returns true, the result is ignored.
    ///
    /// # Errors
    /// The message that the calling program sees.
    fn load(
        &self,
        program: &Value,
        outer: &[(Text, bool)],
        room: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Artifact, Text>;
}

/// A virtual machine: a host's atoms, and idle machines for reuse.
pub struct Vm {
    atoms: Arc<AtomSet>,
    environment: Arc<dyn Environment>,
    loader: Option<Arc<dyn ProgramLoader>>,
    state: Option<RestoreState>,
    #[cfg(feature = "jit")]
    tier: CompiledTier,
    spare: Spare,
}

impl std::fmt::Debug for Vm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vm").finish_non_exhaustive()
    }
}

impl Vm {
    /// Creates a machine with these atoms.
    pub fn new(atoms: AtomSet, environment: Arc<dyn Environment>) -> Vm {
        Vm {
            atoms: Arc::new(atoms),
            environment,
            loader: None,
            state: None,
            #[cfg(feature = "jit")]
            tier: CompiledTier::default(),
            spare: Spare::new(spare::DEFAULT_BYTES),
        }
    }

    /// Copies the machine with separate reference counts for the parts that runs clone, and
    /// its own idle machines. Threads with a copy each write no shared memory when a run
    /// begins or ends. Atoms, clock and random source are shared.
    #[must_use]
    pub fn unshared(&self) -> Vm {
        Vm {
            atoms: Arc::clone(&self.atoms),
            environment: Arc::clone(&self.environment),
            loader: self.loader.clone(),
            state: self.state,
            #[cfg(feature = "jit")]
            tier: self.tier,
            spare: Spare::new(self.spare.most_bytes),
        }
    }

    /// Sets the bytes of finished runs to keep for reuse. The default is 64 MiB, the default
    /// ceiling of one run. Each thread also keeps one machine of at most 64 KiB.
    #[must_use]
    pub fn with_spare_bytes(mut self, bytes: usize) -> Vm {
        self.spare.most_bytes = bytes;
        self
    }

    /// Sets the loader for programs that run programs.
    #[must_use]
    pub fn with_loader(mut self, loader: Arc<dyn ProgramLoader>) -> Vm {
        self.loader = Some(loader);
        self
    }

    /// Sets how to recreate the run state of atoms ([`RunState`](crate::atom::RunState)) from
    /// snapshots.
    #[must_use]
    pub fn with_state(mut self, restore: RestoreState) -> Vm {
        self.state = Some(restore);
        self
    }

    /// Sets when loops are compiled to machine code.
    #[cfg(feature = "jit")]
    #[must_use]
    pub fn with_tier(mut self, tier: CompiledTier) -> Vm {
        self.tier = tier;
        self
    }

    /// The function that recreates run state.
    pub(crate) fn state(&self) -> Option<RestoreState> {
        self.state
    }

    /// The atoms of this machine.
    pub fn atoms(&self) -> &AtomSet {
        &self.atoms
    }

    /// Links an artifact with this machine's atoms.
    ///
    /// # Errors
    /// The program needs an atom that this machine lacks.
    pub fn link(&self, artifact: &Artifact) -> Result<Arc<Executable>, LinkError> {
        Executable::link(artifact, &self.atoms).map(|exe| Arc::new(self.tiered(exe)))
    }

    #[cfg(feature = "jit")]
    fn tiered(&self, exe: Executable) -> Executable {
        exe.with_tier(self.tier)
    }

    #[cfg(not(feature = "jit"))]
    #[allow(clippy::unused_self, reason = "there is one tier")]
    fn tiered(&self, exe: Executable) -> Executable {
        exe
    }

    /// Runs a program. The future is `Send`; dropping it cancels the run. Options that name
    /// an op which this machine lacks fail with [`ErrorCode::UnknownOp`].
    pub fn run(
        &self,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: impl Into<Arc<RunOptions>>,
    ) -> impl Future<Output = Outcome> + Send {
        let (args, options) = (args.into(), options.into());
        async move { self.run_for(&Stopwatch::start(), exe, args, options).await }
    }

    async fn run_for(
        &self,
        clock: &Stopwatch,
        exe: &Arc<Executable>,
        args: Args,
        options: Arc<RunOptions>,
    ) -> Outcome {
        let mut session = Session::start(self, exe, args, options, clock);
        driver::Drive::new(self, &mut session, clock).await;
        session.finish(self, clock)
    }

    /// The outcome of a run that a pool refuses.
    fn refused(&self, refusal: Refusal, args: Args, options: Arc<RunOptions>) -> Outcome {
        let wanted = options.limits.heap_bytes;
        self.not_begun(args, options, |machine| match refusal {
            Refusal::Stopped(reason) => machine.stop(reason),
            Refusal::TooLarge(pool) => {
                let why = format!(
                    "This run can never be admitted: its heap ceiling of {wanted} bytes is above \
                     the {pool} bytes of the pool"
                );
                machine.end_refused(ErrorCode::Options, why, None);
            }
            Refusal::NoTimers => {
                machine.end_refused(ErrorCode::Options, NO_TIMERS.to_owned(), None);
            }
        })
    }

    /// The outcome of a run that ends before its program begins.
    fn not_begun(
        &self,
        args: Args,
        options: Arc<RunOptions>,
        end: impl FnOnce(&mut Machine),
    ) -> Outcome {
        // Arguments may be nested to any depth.
        args.dispose();
        let mut machine = Box::<Machine>::default();
        machine.refuse(options, end);
        self.finish(machine, &Duration::ZERO)
    }

    /// The first unknown op, by name, in the options of a run, with the nearest known one. A
    /// quota of an unknown op would guard nothing.
    pub(crate) fn unknown_op(&self, options: &RunOptions) -> Option<(String, Option<String>)> {
        let named = options.costs.keys().chain(options.quotas.keys());
        let unknown = named
            .chain(options.timeouts.keys())
            .filter(|op| self.atoms.get(op).is_none())
            .min()?;
        let names = self.atoms.iter().map(|atom| &*atom.sig.name);
        // Names with a colon are internal; options never mean them.
        let nearest = suggest(unknown, names.filter(|name| !name.contains(':')));
        Some((unknown.clone(), nearest))
    }

    /// Rejects options that name an op which this machine lacks.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownOp`].
    pub fn check_options(&self, options: &RunOptions) -> Result<(), RunError> {
        self.check_options_of("vm.options", options)
    }

    /// As [`Vm::check_options`], with the error attributed to this op.
    pub(crate) fn check_options_of(
        &self,
        op: &'static str,
        options: &RunOptions,
    ) -> Result<(), RunError> {
        let Some(unknown) = self.unknown_op(options) else {
            return Ok(());
        };
        let (why, help) = Vm::misnamed(unknown);
        let mut error = RunError::new(ErrorCode::UnknownOp, op, why);
        error.help = Some(help);
        Err(error)
    }

    /// Message and help for an unknown op in options.
    pub(crate) fn misnamed((op, nearest): (String, Option<String>)) -> (String, String) {
        let shown = excerpt(&op);
        let why = format!("The options name the op '{shown}', which this engine does not have");
        let help = match nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => ErrorCode::UnknownOp.help().to_owned(),
        };
        (why, help)
    }

    /// Runs a program on this thread. An atom that would have to wait fails.
    pub fn run_sync(
        &self,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Outcome {
        let (args, options) = (args.into(), options.into());
        let clock = Stopwatch::start();
        let mut session = Session::start(self, exe, args, options, &clock);
        driver::drive_sync(self, &mut session, &clock);
        session.finish(self, &clock)
    }

    /// Starts a run that the host drives; no instruction runs before [`Run::next`]. Needs no
    /// runtime, thread or clock.
    pub fn start(
        self: &Arc<Self>,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Run {
        Run::start(self.clone(), exe, args.into(), options.into())
    }

    /// Resumes a run of this program from a snapshot ([`Run::snapshot`]), which needs no
    /// trust.
    ///
    /// The host passes its options again: limits, capabilities, context, prices, quotas,
    /// signal, timeouts. `options.fuel` is the most fuel that the run may have been given in
    /// total. Cost model, equality and trace come from the snapshot.
    ///
    /// # Errors
    /// Any fault of the bytes, with a stable code: damage, another program, other atoms,
    /// impossible state, or more than the limits allow.
    pub fn restore(
        self: &Arc<Self>,
        exe: &Arc<Executable>,
        snapshot: &[u8],
        options: impl Into<Arc<RunOptions>>,
    ) -> Result<Run, SnapshotError> {
        Run::restore(self.clone(), exe, snapshot, options.into())
    }

    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    /// An idle or new machine for a run of this program.
    pub(crate) fn machine(&self, exe: &Executable) -> Box<Machine> {
        self.spare.take().unwrap_or_else(|| {
            let heap = Heap::new(exe.statics.clone(), exe.shapes.clone());
            Box::new(Machine::over(heap))
        })
    }

    /// The outcome of a machine, which is then kept for reuse.
    pub(crate) fn finish(&self, mut machine: Box<Machine>, clock: &impl RunClock) -> Outcome {
        let outcome = machine.finish(clock);
        if let Some(machine) = self.spare.put(machine)
            && outcome.error.as_ref().is_some_and(is_stop)
        {
            machine.release();
        }
        outcome
    }

    /// Starts an execution of an asynchronous atom. A panic of host code becomes an error of
    /// that atom.
    #[inline]
    pub(crate) fn start_atom(atom: &AtomDef, call: HostCall) -> AnswerFuture {
        match &call.events {
            Some(events) => {
                let told = ToldCall::begin(events, &call);
                // Started now, as without a subscriber.
                let answer = start_body(&atom.body, call);
                Box::pin(told.follow(answer))
            }
            None => start_body(&atom.body, call),
        }
    }

    /// Compiles, verifies and links a program that arrived at run time.
    pub(crate) fn load(
        &self,
        request: &LoadRequest,
        host: &dyn Host,
    ) -> Result<Arc<Executable>, Text> {
        let stop = || host.stop().is_some();
        let loader = self
            .loader
            .as_ref()
            .ok_or_else(|| Text::from("This host does not run programs from programs"))?;
        let artifact = loader.load(&request.program, &request.outer, request.room, &stop)?;
        let linked = match stop() {
            true => None,
            false => Executable::link_watched(&artifact, &self.atoms, &stop),
        };
        match linked {
            Some(linked) => linked
                .map(|exe| Arc::new(self.tiered(exe)))
                .map_err(|e| Text::from(e.to_string())),
            None => Err(Text::from("Loading was stopped")),
        }
    }
}

/// Starts an execution of a body.
#[inline]
fn start_body(body: &AtomBody, call: HostCall) -> AnswerFuture {
    let started = catch_unwind(AssertUnwindSafe(|| match body {
        AtomBody::Async(body) => body(call),
        AtomBody::AsyncDyn(body) => body(call),
        _ => Box::pin(std::future::ready(Err(AtomError::new(
            "Invalid program: not an atom that waits",
        )))),
    }));
    started.unwrap_or_else(|_| Box::pin(std::future::ready(Err(AtomError::new("The atom failed")))))
}

/// A call whose start and end are sent as events. An end event follows every start event,
/// however the call ends.
struct ToldCall {
    /// `None` if the start event found no room, or the end was sent.
    events: Option<EventSink>,
    id: CallId,
}

impl ToldCall {
    fn begin(events: &EventSink, call: &HostCall) -> ToldCall {
        let started = RunEventKind::CallStarted {
            call: call.id.clone(),
            op: Text::from(&*call.op),
        };
        ToldCall {
            events: events.try_send(started).then(|| events.clone()),
            id: call.id.clone(),
        }
    }

    async fn follow(mut self, answer: AnswerFuture) -> Result<HostReply, AtomError> {
        let answer = answer.await;
        self.end(match &answer {
            Ok(_) => CallEnd::Answered,
            Err(_) => CallEnd::Failed,
        });
        answer
    }

    fn end(&mut self, end: CallEnd) {
        if let Some(events) = self.events.take() {
            let call = std::mem::take(&mut self.id);
            events.send_beyond(RunEventKind::CallEnded { call, end });
        }
    }
}

impl Drop for ToldCall {
    fn drop(&mut self) {
        self.end(match std::thread::panicking() {
            true => CallEnd::Failed,
            false => CallEnd::Stopped,
        });
    }
}

/// The future of an atom's answer.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Result<HostReply, AtomError>> + Send>>;

/// Whether a run ended because it was stopped.
fn is_stop(error: &RunError) -> bool {
    matches!(
        error.code,
        ErrorCode::RunTimeout | ErrorCode::Aborted | ErrorCode::OutOfFuel
    )
}

/// Unit in which a pool grants memory, in bytes.
const ADMISSION_UNIT: usize = 64 << 10;

/// Bounds concurrent runs: each reserves its heap ceiling from a shared limit, and waits
/// while the limit is used up (M12).
#[derive(Debug)]
pub struct Pool {
    vm: Arc<Vm>,
    admission: Admission,
}

impl Pool {
    /// Creates a pool whose runs together hold at most `heap_bytes`.
    pub fn new(vm: Arc<Vm>, heap_bytes: usize) -> Pool {
        Pool {
            vm,
            admission: Admission::new(heap_bytes, ADMISSION_UNIT),
        }
    }

    /// Runs a program when there is room for it. Its deadline and signal apply while it
    /// waits. A run with a higher heap ceiling than the pool's is refused with
    /// [`ErrorCode::Options`].
    pub async fn run(
        &self,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Outcome {
        let (args, options) = (args.into(), options.into());
        let clock = Stopwatch::start();
        let host = RunHost {
            environment: self.vm.environment(),
            signal: options.signal.as_ref(),
            deadline: run::deadline(&options),
            clock: &clock,
        };
        let bytes = options.limits.heap_bytes;
        match self.admission.admit(bytes, &host, &clock).await {
            Ok(_permit) => self.vm.run_for(&clock, exe, args, options).await,
            Err(refusal) => self.vm.refused(refusal, args, options),
        }
    }

    /// Runs a program if there is room for it now. One that is too large for the pool is
    /// refused as by [`Pool::run`].
    pub async fn try_run(
        &self,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Option<Outcome> {
        let (args, options) = (args.into(), options.into());
        match self.admission.try_admit(options.limits.heap_bytes) {
            Ok(None) => None,
            Ok(Some(_permit)) => Some(self.vm.run(exe, args, options).await),
            Err(refusal) => Some(self.vm.refused(refusal, args, options)),
        }
    }

    /// The machine of the pool.
    pub fn vm(&self) -> &Arc<Vm> {
        &self.vm
    }
}
