//! Running programs: the [`Vm`] with a host's atoms, and the [`Pool`] that
//! bounds many runs.

use crate::args::Args;
use crate::atom::{AtomBody, AtomDef, AtomError, AtomSet, HostCall, HostReply, RestoreState};
use crate::driver::{self, Admission, NO_TIMERS, Refusal};
use crate::heap::Heap;
use crate::link::{Executable, LinkError};
use crate::machine::{LoadRequest, Machine};
use crate::native::Host;
use crate::options::{Outcome, RunOptions};
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

/// The clock and the randomness that runs see.
pub trait Environment: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> f64;
    /// Fills a buffer with random bytes.
    fn random(&self, out: &mut [u8]);
}

/// Makes artifacts of programs that arrive at run time. Without one, such
/// atoms fail.
pub trait ProgramLoader: Send + Sync {
    /// Compiles and verifies a program that sees the variables `outer` of its
    /// caller, each with whether it is a constant.
    ///
    /// What it makes should take at most `room` bytes. `stop` is to be asked at
    /// least every few hundred microseconds: once it says so, whatever is given
    /// is not looked at any more.
    ///
    /// # Errors
    /// The text that the calling program sees.
    fn load(
        &self,
        program: &Value,
        outer: &[(Text, bool)],
        room: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Artifact, Text>;
}

/// A virtual machine: a host's atoms, and the machines of finished runs for
/// reuse.
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
    /// A machine with these atoms.
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

    /// The same machine with what runs count owners of apart, and machines of its own for reuse:
    /// threads that have one each write no memory in common when a run begins or ends. Atoms,
    /// clock and randomness are shared.
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

    /// Keeps up to so many bytes of finished runs for the next ones, 64 MiB by default: as much
    /// as one run may use under the default ceiling. Machines of at most 64 KiB, one for each
    /// thread, are kept besides.
    #[must_use]
    pub fn with_spare_bytes(mut self, bytes: usize) -> Vm {
        self.spare.most_bytes = bytes;
        self
    }

    /// Lets programs run programs.
    #[must_use]
    pub fn with_loader(mut self, loader: Arc<dyn ProgramLoader>) -> Vm {
        self.loader = Some(loader);
        self
    }

    /// Lets snapshots be restored of runs whose atoms keep state of their own.
    #[must_use]
    pub fn with_state(mut self, restore: RestoreState) -> Vm {
        self.state = Some(restore);
        self
    }

    /// When loops of the programs that this machine links are compiled.
    #[cfg(feature = "jit")]
    #[must_use]
    pub fn with_tier(mut self, tier: CompiledTier) -> Vm {
        self.tier = tier;
        self
    }

    /// How such state is made again.
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
    /// An atom that the program needs is missing.
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

    /// Runs a program. The future is `Send`; dropping it ends the run. Options that
    /// name an op which this machine does not have are refused with
    /// [`ErrorCode::UnknownOp`].
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

    /// The outcome of a run that a pool does not let in.
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
        // However deep the host nested them.
        args.dispose();
        let mut machine = Box::<Machine>::default();
        machine.refuse(options, end);
        self.finish(machine, &Duration::ZERO)
    }

    /// The first op, by name, that options of a run name and this machine does not
    /// have; with the nearest one that it has. A quota that counts nothing would
    /// guard nothing.
    pub(crate) fn unknown_op(&self, options: &RunOptions) -> Option<(String, Option<String>)> {
        let named = options.costs.keys().chain(options.quotas.keys());
        let unknown = named
            .chain(options.timeouts.keys())
            .filter(|op| self.atoms.get(op).is_none())
            .min()?;
        let names = self.atoms.iter().map(|atom| &*atom.sig.name);
        // Names with a colon are the engine's own, which no option means.
        let nearest = suggest(unknown, names.filter(|name| !name.contains(':')));
        Some((unknown.clone(), nearest))
    }

    /// Refuses options that name an op which this machine does not have.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownOp`].
    pub fn check_options(&self, options: &RunOptions) -> Result<(), RunError> {
        self.check_options_of("vm.options", options)
    }

    /// The same, with the error in the name of this op.
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

    /// What is said of an op that options name and that is not there, and what helps.
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

    /// Starts a program for a host that answers its calls itself; nothing of it runs
    /// before [`Run::next`]. Needs no runtime, no thread and no clock.
    pub fn start(
        self: &Arc<Self>,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Run {
        Run::start(self.clone(), exe, args.into(), options.into())
    }

    /// Goes on with a snapshot of a run of this program ([`Run::snapshot`]), which
    /// nobody has to trust. What the host says of the run it says again: limits,
    /// capabilities, context, prices, quotas, signal, timeouts. `options.fuel` is the
    /// most that the run may have been given in all; cost model, equality and trace are
    /// as they were.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes, with a stable code: damage, another program,
    /// other atoms, content that no run has, more than the limits allow.
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

    /// A machine for a run of this program.
    pub(crate) fn machine(&self, exe: &Executable) -> Box<Machine> {
        self.spare.take().unwrap_or_else(|| {
            let heap = Heap::new(exe.statics.clone(), exe.shapes.clone());
            Box::new(Machine::over(heap))
        })
    }

    /// The outcome of a machine, which is kept for another run.
    pub(crate) fn finish(&self, mut machine: Box<Machine>, clock: &impl RunClock) -> Outcome {
        let outcome = machine.finish(clock);
        if let Some(machine) = self.spare.put(machine)
            && outcome.error.as_ref().is_some_and(is_stop)
        {
            machine.release();
        }
        outcome
    }

    /// Begins an execution of an asynchronous atom; a panic of host code is
    /// an error of that atom.
    #[inline]
    pub(crate) fn start_atom(atom: &AtomDef, call: HostCall) -> AnswerFuture {
        match &call.events {
            Some(events) => {
                let told = ToldCall::begin(events, &call);
                // Begun now, as where nobody listens.
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

/// Begins an execution of a body.
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

/// A call whose beginning and end the host is told of. An end is told where the beginning
/// was, however the call ends.
struct ToldCall {
    /// Nothing if there was no room for the beginning, or the end was told.
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

/// Whether a run ended because it was told to.
fn is_stop(error: &RunError) -> bool {
    matches!(
        error.code,
        ErrorCode::RunTimeout | ErrorCode::Aborted | ErrorCode::OutOfFuel
    )
}

/// Memory is granted to runs in pieces of this size.
const ADMISSION_UNIT: usize = 64 << 10;

/// Bounds many runs together: each run reserves its heap ceiling from a global
/// cap and waits its turn when the cap is taken (M12).
#[derive(Debug)]
pub struct Pool {
    vm: Arc<Vm>,
    admission: Admission,
}

impl Pool {
    /// A pool whose runs together hold at most `heap_bytes`.
    pub fn new(vm: Arc<Vm>, heap_bytes: usize) -> Pool {
        Pool {
            vm,
            admission: Admission::new(heap_bytes, ADMISSION_UNIT),
        }
    }

    /// Runs a program when there is room for it. Its deadline and its signal
    /// hold while it waits. One whose heap ceiling is above the pool's is refused
    /// with [`ErrorCode::Options`].
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

    /// Runs a program if there is room for it now; one that is too large for the
    /// pool is refused as by [`Pool::run`].
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

    /// The machine behind the pool.
    pub fn vm(&self) -> &Arc<Vm> {
        &self.vm
    }
}
