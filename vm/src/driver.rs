//! The tokio side of a run: waiting, timers, abort.
//!
//! Only this module names tokio. It builds on [`crate::run`], which needs no runtime.

mod active;
mod admission;
mod call_all;
mod pool;

use active::{ActiveCall, Listener, no_timers, timer_of};
use call_all::Calls;
pub use pool::Pool;

use crate::args::Args;
use crate::atom::{Answered, AtomError, poll_caught};
use crate::clock::{Stopwatch, wall_clock};
use crate::link::Executable;
use crate::machine::{Request, Requests};
use crate::options::{Outcome, RunOptions};
use crate::pace::{Host, StopReason};
use crate::run::{Session, Turn};
use crate::vm::Vm;
use a99_core::error::ErrorCode;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The future of a started session, ready when the run ends.
///
/// Calls that answer at once finish within one poll. Pending calls are stored here and
/// dropped with the future (D22).
pub(crate) struct Drive<'a> {
    vm: &'a Vm,
    session: &'a mut Session,
    clock: &'a Stopwatch,
    waits: Waits,
}

/// The event that a run waits for.
enum Waits {
    /// Its next turn.
    Turn,
    Call(Box<OneCall>),
    CallAll(Box<Calls>),
}

/// A call that the run waits for.
struct OneCall {
    call: ActiveCall,
    listener: Listener,
}

impl<'a> Drive<'a> {
    pub(crate) fn new(vm: &'a Vm, session: &'a mut Session, clock: &'a Stopwatch) -> Drive<'a> {
        Drive {
            vm,
            session,
            clock,
            waits: Waits::Turn,
        }
    }

    /// Starts a call; returns `None` if it is pending.
    fn call(&mut self, request: Request, context: &mut Context<'_>) -> Option<Turn> {
        // One reading of the clock: an immediate answer continues the run without another.
        let now = wall_clock();
        let deadline = self.session.deadline.and_then(|at| self.clock.at(at));
        if deadline.is_some_and(|at| now.is_some_and(|now| now >= at)) {
            return Some(self.stopped(StopReason::Deadline, request));
        }
        let mut call = ActiveCall::start(request, &self.session.machine, now, deadline);
        if let Poll::Ready(answer) = call.poll_answer(context) {
            self.end(call, &answer);
            let clock = self.clock;
            return Some(self.session.deliver_at_once(self.vm, clock, answer));
        }
        let listener = Listener::of(self.session.signal.as_ref());
        self.session.machine.shrink();
        let one = Box::new(OneCall { call, listener });
        self.look_at(one, true, context)
    }

    /// Checks a pending call; `polled` has just returned pending.
    fn look_at(
        &mut self,
        mut one: Box<OneCall>,
        polled: bool,
        context: &mut Context<'_>,
    ) -> Option<Turn> {
        one.listener.listen(context);
        if let Some(reason) = self.stop() {
            return Some(self.stopped(reason, one));
        }
        if !polled && let Poll::Ready(answer) = one.call.poll_answer(context) {
            return Some(self.answered(one.call, answer));
        }
        let Poll::Ready(late) = one.call.poll_time(context) else {
            self.waits = Waits::Call(one);
            return None;
        };
        // The atom may have used up the run's time too.
        Some(match self.stop() {
            Some(reason) => self.stopped(reason, one),
            None => self.answered(one.call, Err(late)),
        })
    }

    /// Resumes the run with the answer of a call.
    fn answered(&mut self, call: ActiveCall, answer: Answered) -> Turn {
        self.end(call, &answer);
        self.session.deliver(self.vm, self.clock, answer)
    }

    /// Ends an answered call: its future is dropped before the run continues.
    fn end(&mut self, call: ActiveCall, answer: &Answered) {
        if let Some(flag) = call.end(answer) {
            self.session.machine.reuse(flag);
        }
    }

    /// Polls several pending calls.
    fn look_at_all(&mut self, mut calls: Box<Calls>, context: &mut Context<'_>) -> Option<Turn> {
        let host = self.session.host(self.vm, self.clock);
        let polled = calls.poll(context, &self.session.machine, &host);
        let Poll::Ready(ended) = polled else {
            self.waits = Waits::CallAll(calls);
            return None;
        };
        if let Err(reason) = ended {
            return Some(self.stopped(reason, calls));
        }
        let answers = calls.into_answers();
        Some(self.session.deliver_all(self.vm, self.clock, answers))
    }

    fn call_all(&mut self, requests: Requests, context: &mut Context<'_>) -> Option<Turn> {
        let calls = Calls::of(requests, self.session, self.clock);
        let turn = self.look_at_all(Box::new(calls), context);
        if turn.is_none() {
            // Most atoms answer at once; only runs that wait release memory.
            self.session.machine.shrink();
        }
        turn
    }

    fn stop(&self) -> Option<StopReason> {
        self.session.host(self.vm, self.clock).stop()
    }

    /// Ends the run after its pending calls are dropped: they are paid up to this moment.
    fn stopped<T>(&mut self, reason: StopReason, waited_for: T) -> Turn {
        drop(waited_for);
        self.session.machine.stop(reason);
        Turn::Done
    }
}

impl Future for Drive<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let mut turn = match std::mem::replace(&mut this.waits, Waits::Turn) {
            Waits::Turn => Some(this.session.next(this.vm, this.clock)),
            Waits::Call(one) => this.look_at(one, false, context),
            Waits::CallAll(calls) => this.look_at_all(calls, context),
        };
        loop {
            turn = match turn {
                None => return Poll::Pending,
                Some(Turn::Done) => return Poll::Ready(()),
                Some(Turn::Pause) => {
                    // Yields to other tasks.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Turn::Call(request)) => this.call(request, context),
                Some(Turn::CallAll(requests)) => this.call_all(*requests, context),
            };
        }
    }
}

impl Vm {
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
        Drive::new(self, &mut session, clock).await;
        session.finish(self, clock)
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
        drive_sync(self, &mut session, &clock);
        session.finish(self, &clock)
    }
}

/// Drives a run without a runtime: atoms must answer at once.
pub(crate) fn drive_sync(vm: &Vm, session: &mut Session, clock: &Stopwatch) {
    let mut turn = session.next(vm, clock);
    loop {
        turn = match turn {
            Turn::Done => return,
            Turn::Pause => session.next(vm, clock),
            Turn::Call(request) => {
                let answer = answer_now(request, session, clock);
                session.deliver(vm, clock, answer)
            }
            Turn::CallAll(requests) => match call_all::now(vm, session, *requests, clock) {
                Ok(answers) => session.deliver_all(vm, clock, answers),
                Err(reason) => return session.machine.stop(reason),
            },
        };
    }
}

/// The answer of an atom that may not wait.
fn answer_now(request: Request, session: &Session, clock: &Stopwatch) -> Answered {
    let atom = session.machine.atom_of(&request);
    let mut call = request.call;
    call.deadline = session.deadline.and_then(|at| clock.at(at));
    call.events = call.events.take().map(|events| events.without_waiting());
    let flag = call.cancelled.flag();
    let mut future = atom.start(call);
    let mut context = Context::from_waker(Waker::noop());
    match poll_caught(&mut future, &mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            flag.set();
            Err(cannot_wait(
                &atom.sig.name,
                "run this program with the asynchronous run",
            ))
        }
    }
}

/// Timers of a host that drives runs without a tokio runtime. The host provides them as a value
/// of this type ([`RunOptions::host`](crate::RunOptions::host)).
pub trait Timers: Send + Sync {
    /// A future that is ready once a time has passed.
    fn sleep(&self, time: Duration) -> crate::atom::BoxFuture<'static, ()>;
}

/// Waits for an atom until a time has passed, without a thread: by the host's [`Timers`], or by
/// tokio's.
///
/// # Errors
/// The host has none, and the runtime has none.
pub async fn sleep(call: &crate::atom::HostCall, time: Duration) -> Result<(), AtomError> {
    if let Some(timers) = call.options.host.get::<dyn Timers>() {
        timers.sleep(time).await;
        return Ok(());
    }
    let sleep = timer_of(|| tokio::time::sleep(time)).map_err(|_| no_timers(&call.op))?;
    sleep.await;
    Ok(())
}

fn cannot_wait(op: &str, why: &str) -> AtomError {
    AtomError::coded(ErrorCode::AsyncInSync, format!("Atom '{op}' waits: {why}"))
}
