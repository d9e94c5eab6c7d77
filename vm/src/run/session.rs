//! A run with its pending state: the common core of the tokio driver and of runs driven by
//! hand.

use super::RunFault;
use super::host::{self, RunHost};
use crate::abort::AbortSignal;
use crate::args::Args;
use crate::atom::{Answered, AtomDef, AtomError};
use crate::clock::{Environment, FOREVER, RunClock};
use crate::link::Executable;
use crate::machine::{Machine, Request, Requests, Step};
use crate::options::{Outcome, RunOptions};
use crate::pace::Host;
use crate::vm::Vm;
use a99_core::call_id::CallId;
use a99_core::error::ErrorCode;
use a99_core::fuel::Fuel;
use a99_core::sig::AtomTimeout;
use std::sync::Arc;
use std::time::Duration;

/// The next request of a run.
pub(crate) enum Turn {
    /// The run made a call; the next turn begins with its answer.
    Call(Request),
    /// The run made several calls; the next turn begins with all their answers.
    CallAll(Box<Requests>),
    /// The run yields.
    Pause,
    Done,
}

/// A started run.
pub(crate) struct Session {
    pub(crate) machine: Box<Machine>,
    pub(crate) signal: Option<AbortSignal>,
    pub(crate) environment: Option<Arc<dyn Environment>>,
    /// Measured by the clock that drives the run.
    pub(crate) deadline: Option<Duration>,
    /// Whether the deadline derives from fuel.
    timed_by_fuel: bool,
    /// Time that the run used before it was restored; its deadline is shortened by it.
    pub(crate) before: Duration,
    pub(crate) parent: Option<Arc<CallId>>,
    /// Number of the next suspension.
    pub(crate) step: u64,
}

impl Session {
    /// Starts a run; no instruction runs before [`Session::next`].
    pub(crate) fn start(
        vm: &Vm,
        exe: &Arc<Executable>,
        args: Args,
        options: Arc<RunOptions>,
        clock: &impl RunClock,
    ) -> Session {
        let mut session = Session::new(vm.machine(exe), &options);
        if let Some(unknown) = vm.unknown_op(&options) {
            let (why, help) = Vm::misnamed(unknown);
            // Arguments may be nested to any depth.
            args.dispose();
            session.machine.refuse(options, |machine| {
                machine.end_refused(ErrorCode::UnknownOp, why, Some(help));
            });
            return session;
        }
        let host = host_of(
            &session.signal,
            &session.environment,
            session.deadline,
            vm,
            clock,
        );
        session.machine.start(exe, args, options, &host);
        session
    }

    /// Creates a session for a machine with these options.
    pub(crate) fn new(machine: Box<Machine>, options: &RunOptions) -> Session {
        Session {
            machine,
            signal: options.signal.clone(),
            environment: options.environment.clone(),
            deadline: host::deadline(options),
            timed_by_fuel: options.timeout_ms.is_none(),
            before: Duration::ZERO,
            parent: options.parent.clone(),
            step: 0,
        }
    }

    /// Begins a call of a bound program, on the machine of the previous call.
    pub(crate) fn begin_bound(
        &mut self,
        vm: &Vm,
        clock: &impl RunClock,
        start: impl FnOnce(&mut Machine, &dyn Host),
    ) {
        self.step = 0;
        let host = host_of(&self.signal, &self.environment, self.deadline, vm, clock);
        start(&mut self.machine, &host);
    }

    /// Resumes after a bound call, to convert its result for the host.
    pub(crate) fn give_kept(&mut self, vm: &Vm, clock: &impl RunClock) {
        let host = host_of(&self.signal, &self.environment, self.deadline, vm, clock);
        self.machine.give_kept(&host);
    }

    /// The machine's view of the host.
    pub(crate) fn host<'a, C: RunClock>(&'a self, vm: &'a Vm, clock: &'a C) -> RunHost<'a, C> {
        host_of(&self.signal, &self.environment, self.deadline, vm, clock)
    }

    /// Continues until the run needs the host; not while a call is pending.
    #[inline(always)]
    pub(crate) fn next(&mut self, vm: &Vm, clock: &impl RunClock) -> Turn {
        let host = host_of(&self.signal, &self.environment, self.deadline, vm, clock);
        let step = self.machine.resume(&host);
        turn(
            &mut self.machine,
            &mut self.step,
            &self.parent,
            vm,
            &host,
            step,
        )
    }

    /// Continues with the answer of the pending call.
    pub(crate) fn deliver(&mut self, vm: &Vm, clock: &impl RunClock, answer: Answered) -> Turn {
        self.deliver_then(Machine::resume, vm, clock, answer)
    }

    /// Continues with an immediate answer: the deadline was checked when the call was made.
    #[inline]
    pub(crate) fn deliver_at_once(
        &mut self,
        vm: &Vm,
        clock: &impl RunClock,
        answer: Answered,
    ) -> Turn {
        self.deliver_then(Machine::resume_answered, vm, clock, answer)
    }

    #[inline(always)]
    fn deliver_then(
        &mut self,
        resume: impl FnOnce(&mut Machine, &dyn Host) -> Step,
        vm: &Vm,
        clock: &impl RunClock,
        answer: Answered,
    ) -> Turn {
        let host = host_of(&self.signal, &self.environment, self.deadline, vm, clock);
        self.machine.report_answers();
        if self.machine.is_traced() {
            self.machine
                .trace_answers(std::slice::from_ref(&answer), &host);
        }
        let step = match self.machine.deliver(answer, &host) {
            Some(step) => step,
            None => resume(&mut self.machine, &host),
        };
        turn(
            &mut self.machine,
            &mut self.step,
            &self.parent,
            vm,
            &host,
            step,
        )
    }

    /// Continues with the answers of several calls, in order. If the answers exceed the
    /// ceiling, the error is their size in bytes and the run ends.
    pub(crate) fn deliver_all(
        &mut self,
        vm: &Vm,
        clock: &impl RunClock,
        answers: Result<Vec<Answered>, usize>,
    ) -> Turn {
        let host = host_of(&self.signal, &self.environment, self.deadline, vm, clock);
        self.machine.report_answers();
        match answers {
            Ok(answers) => {
                self.machine.trace_answers(&answers, &host);
                self.machine.deliver_all(answers, &host);
            }
            Err(wanted) => self.machine.refuse_answers(wanted, &host),
        }
        self.next(vm, clock)
    }

    /// Adds fuel to a run in progress.
    pub(crate) fn refuel(&mut self, more: Fuel) -> Result<(), RunFault> {
        if self.machine.is_over() {
            return Err(RunFault::Over);
        }
        let added = self.machine.refuel(more);
        if self.timed_by_fuel
            && let Some(deadline) = self.deadline
        {
            let later = host::by_fuel(added).and_then(|more| deadline.checked_add(more));
            self.deadline = later.filter(|at| *at < FOREVER);
        }
        Ok(())
    }

    /// The outcome of a finished run, measured by the clock that drove it. The machine is
    /// kept for reuse.
    pub(crate) fn finish(self, vm: &Vm, clock: &impl RunClock) -> Outcome {
        vm.finish(self.machine, clock)
    }
}

/// Translates a step of the machine for the driver. Loads programs that arrive at run time.
#[inline(always)]
fn turn(
    machine: &mut Machine,
    calls: &mut u64,
    parent: &Option<Arc<CallId>>,
    vm: &Vm,
    host: &dyn Host,
    mut step: Step,
) -> Turn {
    loop {
        machine.hand_over_lines();
        step = match step {
            Step::Done => return Turn::Done,
            Step::Yield => {
                machine.report();
                return Turn::Pause;
            }
            Step::Call(mut request) => {
                request.call.id = CallId::new(parent.clone(), *calls, 0);
                *calls += 1;
                machine.report_call(&request);
                if machine.is_traced() {
                    machine.trace_call(&request, host);
                }
                return Turn::Call(request);
            }
            Step::CallAll(mut requests) => {
                for one in &mut requests.calls {
                    one.request.call.id = CallId::new(parent.clone(), *calls, one.place);
                    machine.trace_call(&one.request, host);
                }
                *calls += 1;
                return Turn::CallAll(requests);
            }
            Step::Load(request) => {
                let loaded = vm.load(&request, host);
                machine.load(loaded, *request, host);
                machine.resume(host)
            }
        };
    }
}

/// The machine's view of the host, from borrowed parts of a session.
pub(super) fn host_of<'a, C>(
    signal: &'a Option<AbortSignal>,
    environment: &'a Option<Arc<dyn Environment>>,
    deadline: Option<Duration>,
    vm: &'a Vm,
    clock: &'a C,
) -> RunHost<'a, C> {
    RunHost {
        environment: environment.as_deref().unwrap_or(vm.environment()),
        signal: signal.as_ref(),
        deadline,
        clock,
    }
}

/// The time limit of an atom, if it has one.
#[inline]
pub(crate) fn limit_of(machine: &Machine, atom: &AtomDef) -> Option<Duration> {
    match machine.timeout_of(&atom.sig) {
        AtomTimeout::None => None,
        AtomTimeout::Ms(ms) => Some(Duration::from_millis(ms)).filter(|d| *d < FOREVER),
    }
}

pub(crate) fn earlier<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The error of an atom that timed out.
pub(crate) fn late(op: &str) -> AtomError {
    AtomError::coded(ErrorCode::AtomTimeout, format!("Atom '{op}' timed out"))
}
