//! A run that its host drives, without runtime, thread or clock.
//!
//! [`Vm::start`](crate::Vm::start) returns a [`Run`]. [`Run::next`] works until the run makes
//! a call, has used up a slice of work, or ends; [`Run::answer`] answers a call. Synchronous
//! atoms run inside. The caller of `next` passes the time. The tokio driver
//! ([`Vm::run`](crate::Vm::run)) uses the same code.

mod host;
mod session;
pub(crate) mod snapshot;
mod stack;
mod waiting;

pub(crate) use host::{RunHost, deadline};
pub(crate) use session::{Session, Turn, earlier, late, limit_of};
pub use stack::StackFrame;
use waiting::{Asked, Made, Outstanding, Seen, Several, Waiting, until};

use crate::args::Args;
use crate::atom::{AnswerFuture, AtomDef, AtomError, Cancelled, HostReply, Locals, poll_caught};
use crate::clock::RunClock;
use crate::link::Executable;
use crate::machine::{CodePlace, Machine};
use crate::options::{Outcome, RunOptions};
use crate::pace::StopReason;
use crate::vm::Vm;
use crate::wire::SnapshotError;
use a99_core::call_id::CallId;
use a99_core::error::{ErrorCode, RunError};
use a99_core::fuel::Fuel;
use a99_core::sig::{Capability, Effect, Params};
use a99_core::suspend::codes;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A run that its host drives.
///
/// Dropping it cancels the run and its pending calls.
pub struct Run {
    vm: Arc<Vm>,
    /// `None` once the outcome was taken.
    session: Option<Session>,
    /// The calls that the run waits for.
    waiting: Option<Waiting>,
    /// The latest time passed by the host.
    now: Duration,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// The next request of a run.
#[derive(Debug)]
pub enum Next {
    /// The run called an asynchronous atom: [`Run::answer`] it, then call `next` again.
    /// Concurrent calls (`callAll`) are returned one by one: call `next` for each, answered
    /// or not.
    Call(Box<Call>),
    /// All calls are pending. Call `next` again when one is answered, or when the run's time
    /// reaches this moment: then a call's timeout or the run's deadline has passed. `None`
    /// without a limit.
    Wait(Option<Duration>),
    /// A slice of work is done, some tens of microseconds: call `next` again after yielding
    /// to others.
    Pause,
    /// The run has ended. Later calls of [`Run::next`] return a run error.
    Done(Box<Outcome>),
}

/// A call that a run makes.
#[derive(Debug)]
pub struct Call {
    /// Id of the call in its run.
    pub id: CallId,
    /// [`CallId::step`].
    pub step: u64,
    /// [`CallId::index`].
    pub index: u32,
    /// The atom's name.
    pub atom: Cow<'static, str>,
    /// Latest time of the answer, as time of the run: the atom's timeout or the run's
    /// deadline.
    pub deadline: Option<Duration>,
    /// What a call changes, as the atom's signature declares it.
    pub effect: Effect,
    /// What the host must grant for it.
    pub capability: Option<Capability>,
    place: CodePlace,
    request: Asked,
}

impl Call {
    /// A call of the machine's top frame.
    fn of(made: Made, machine: &Machine) -> Call {
        let Made {
            request,
            deadline,
            pc,
        } = made;
        let id = request.call.id.clone();
        let sig = &machine.atom_of(&request).sig;
        Call {
            step: id.step(),
            index: id.index(),
            id,
            place: machine.place(pc),
            atom: request.call.op.clone(),
            deadline,
            effect: sig.effect,
            capability: sig.capability,
            request,
        }
    }

    /// JSON pointer of the calling step, if the program has its source. In a program loaded
    /// at run time it points into that program.
    #[must_use]
    pub fn pointer(&self) -> Option<String> {
        self.place.pointer()
    }

    /// The inputs by name, as an object.
    pub fn inputs(&self) -> Value {
        let args = &self.request.call.args;
        match &self.atom_def().sig.params {
            Params::Named(params) => {
                let mut map = Map::new();
                for (param, arg) in params.iter().zip(args) {
                    if !arg.is_undefined() {
                        map.insert(param.name, arg.clone());
                    }
                }
                Value::Object(map)
            }
            Params::Open | Params::Raw => args.first().cloned().unwrap_or(Value::Undefined),
        }
    }

    fn atom_def(&self) -> &AtomDef {
        self.place.atom_of(&self.request)
    }

    /// The inputs in the order of the atom's parameters; one object for open and raw
    /// parameters.
    pub fn args(&self) -> &[Value] {
        &self.request.call.args
    }

    /// Fuel that the run has left.
    pub fn fuel_left(&self) -> Fuel {
        self.request.call.fuel_left
    }

    /// A flag that is set once the answer is no longer wanted.
    pub fn cancelled(&self) -> Cancelled {
        self.request.call.cancelled.clone()
    }

    /// Starts the atom's own implementation, for calls that the host does not answer itself.
    ///
    /// Atoms that need a runtime need it here too. `deadline` is [`Call::deadline`] by the
    /// system's clock, for atoms that keep it themselves.
    ///
    /// The atom owns its inputs. For a `callAll` the run keeps them too, for snapshots: the
    /// atom gets a copy, which does not count against the ceiling.
    pub fn start(self, deadline: Option<Instant>) -> Answer {
        let atom = self.place.atom_of(&self.request);
        let mut call = self.request.into_request().call;
        call.deadline = deadline;
        Answer(atom.start(call))
    }

    /// As [`Call::start`], with the atom's charges kept separate, for a host that keeps a
    /// journal. The atom cannot reach the run's own state (its store).
    pub fn start_measured(mut self, deadline: Option<Instant>) -> (Answer, CallCharges) {
        let call = &mut self.request.call;
        let own = Arc::new(Locals::for_a_call(&call.locals));
        let charges = CallCharges {
            run: std::mem::replace(&mut call.locals, own.clone()),
            own,
        };
        (self.start(deadline), charges)
    }

    /// Charges the run for the call, in addition to its answer, with the result of
    /// [`CallCharges::settle`] from the recorded call. The charge is paid when the call ends.
    pub fn charge(&self, fuel: Fuel) {
        self.request.call.locals.charge(fuel);
    }

    /// Adds a warning to the outcome of the run, for an answer of the host.
    pub fn warn(&self, text: impl Into<Text>) {
        self.request.call.locals.warn(text);
    }

    /// Time of the call by the program's clock, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> f64 {
        self.request.call.now_ms
    }
}

/// Charges and warnings of an atom, separate from its answer ([`Call::start_measured`]).
#[derive(Debug)]
#[must_use = "the run pays when it is settled"]
pub struct CallCharges {
    run: Arc<Locals>,
    own: Arc<Locals>,
}

impl CallCharges {
    /// Passes the charges and warnings to the run, and returns the fuel. Call it when the
    /// answer is there, or its future was dropped.
    pub fn settle(self) -> Fuel {
        let fuel = Fuel::from_micro(self.own.take_charges());
        self.run.charge(fuel);
        let warnings = self.own.take_warnings();
        warnings.into_iter().for_each(|text| self.run.warn(text));
        fuel
    }
}

/// The future answer of an atom started by [`Call::start`]. A panic of the atom becomes an
/// error.
pub struct Answer(AnswerFuture);

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

impl Future for Answer {
    type Output = Result<HostReply, AtomError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        poll_caught(&mut self.0, context)
    }
}

/// An invalid operation on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFault {
    /// The run made no such call.
    UnknownCall(CallId),
    /// The call was answered, or ended by its deadline.
    AnsweredCall(CallId),
    /// The run has ended.
    Over,
}

impl RunFault {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            RunFault::UnknownCall(_) => codes::UNKNOWN_CALL,
            RunFault::AnsweredCall(_) => codes::ANSWERED_CALL,
            RunFault::Over => codes::OVER,
        }
    }
}

impl fmt::Display for RunFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunFault::UnknownCall(id) => write!(f, "the run made no call {id}"),
            RunFault::AnsweredCall(id) => {
                write!(f, "call {id} was answered, or its time was up")
            }
            RunFault::Over => f.write_str("the run has ended"),
        }
    }
}

impl std::error::Error for RunFault {}

/// Memory that a run holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RunMemory {
    /// Bytes that count against the heap ceiling, including uncollected garbage.
    pub counted: usize,
    /// The heap ceiling in bytes.
    pub limit: usize,
    /// Approximate memory of the run in bytes, including unused buffer capacity.
    pub held: usize,
}

impl Vm {
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
}

impl Run {
    /// Starts a program; no instruction runs before [`Run::next`].
    pub(crate) fn start(
        vm: Arc<Vm>,
        exe: &Arc<Executable>,
        args: Args,
        options: Arc<RunOptions>,
    ) -> Run {
        let session = Session::start(&vm, exe, args, options, &Duration::ZERO);
        Run::of(vm, session)
    }

    fn of(vm: Arc<Vm>, session: Session) -> Run {
        Run {
            vm,
            session: Some(session),
            waiting: None,
            now: Duration::ZERO,
        }
    }

    /// Continues until the run needs the host. `now` is the time since the run began (or was
    /// restored): a [`Duration`], or a running [`RunClock`].
    pub fn next(&mut self, now: impl RunClock) -> Next {
        let Some(session) = &mut self.session else {
            return Next::Done(Box::new(over()));
        };
        self.now = self.now.max(now.elapsed());
        let turn = match self.waiting.take() {
            None => session.next(&self.vm, &now),
            Some(waiting) => match waiting.look(session, &self.vm, &now, self.now) {
                Seen::Turn(turn) => turn,
                Seen::Made(waiting, made) => {
                    self.waiting = Some(waiting);
                    return Next::Call(Box::new(Call::of(made, &session.machine)));
                }
                Seen::Still(waiting, until) => {
                    self.waiting = Some(waiting);
                    return Next::Wait(until);
                }
            },
        };
        self.now = self.now.max(now.elapsed());
        if !matches!(turn, Turn::Done) {
            // The pause may be long: release memory.
            session.machine.park();
        }
        match turn {
            Turn::Call(request) => {
                let deadline = until(session, &request, self.now);
                self.waiting = Some(Waiting::One(Outstanding::of(&request, deadline)));
                let made = Made {
                    request: Asked::Own(request),
                    deadline,
                    pc: None,
                };
                Next::Call(Box::new(Call::of(made, &session.machine)))
            }
            Turn::CallAll(requests) => {
                self.waiting = Some(Waiting::Several(Box::new(Several::of(*requests))));
                // At least one of several calls starts at once.
                self.next(now)
            }
            Turn::Pause => Next::Pause,
            Turn::Done => {
                let outcome = self
                    .session
                    .take()
                    .map(|session| session.finish(&self.vm, &self.now));
                Next::Done(Box::new(outcome.unwrap_or_else(over)))
            }
        }
    }

    /// Answers a call; [`Run::next`] continues with the answer.
    ///
    /// # Errors
    /// The run did not make the call, or no longer waits for it.
    pub fn answer(
        &mut self,
        id: &CallId,
        answer: Result<HostReply, AtomError>,
    ) -> Result<(), RunFault> {
        let Some(session) = &mut self.session else {
            return Err(RunFault::Over);
        };
        let is_ours = id.parent() == session.parent.as_deref();
        if !is_ours || id.step() >= session.step {
            return Err(RunFault::UnknownCall(id.clone()));
        }
        match &mut self.waiting {
            Some(waiting) if id.step() + 1 == session.step => {
                let host = session.host(&self.vm, &self.now);
                waiting.answer(id, answer, &host)?;
                session.machine.report_answer(id);
                Ok(())
            }
            _ => Err(RunFault::AnsweredCall(id.clone())),
        }
    }

    /// Aborts the run, as an abort signal does; [`Run::next`] returns the outcome.
    pub fn abort(&mut self) {
        self.waiting = None;
        if let Some(session) = &mut self.session {
            session.machine.stop(StopReason::Aborted);
        }
    }

    /// Adds fuel to the budget of a run in progress, at a pause or while a call is pending. A
    /// time limit derived from fuel is extended too. A run that is out of fuel has ended.
    ///
    /// # Errors
    /// The run has ended.
    pub fn refuel(&mut self, more: Fuel) -> Result<(), RunFault> {
        match &mut self.session {
            Some(session) => session.refuel(more),
            None => Err(RunFault::Over),
        }
    }

    /// Sets the maximum work between two pauses, in units of about a nanosecond; at most
    /// 16,384, the default. Results, fuel and trace do not depend on it.
    pub fn set_slice(&mut self, work: u32) {
        if let Some(session) = &mut self.session {
            session.machine.set_slice(work);
        }
    }

    /// Fuel that the run has left; zero after its end.
    #[must_use]
    pub fn fuel_left(&self) -> Fuel {
        let fuel = |s: &Session| Fuel::from_micro(s.machine.exact_fuel().max(0));
        self.session.as_ref().map_or(Fuel::ZERO, fuel)
    }

    /// Memory that the run holds; zero after its end.
    #[must_use]
    pub fn memory(&self) -> RunMemory {
        let Some(session) = &self.session else {
            return RunMemory {
                counted: 0,
                limit: 0,
                held: 0,
            };
        };
        let (counted, limit) = session.machine.heap_use();
        RunMemory {
            counted,
            limit,
            held: session.machine.memory_bytes(),
        }
    }
}

/// The outcome of `next` after the end of a run.
fn over() -> Outcome {
    let error = RunError::new(ErrorCode::Options, "vm.run", "The run has ended");
    Outcome {
        result: error.to_value(),
        error: Some(error),
        fuel_used: Fuel::ZERO,
        trace: None,
        warnings: Vec::new(),
        logs: Box::default(),
        usage: None,
    }
}
