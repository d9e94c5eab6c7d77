//! The tokio side of a run: waiting, timers, abort. Only this module names tokio;
//! it is one user of [`crate::run`], which needs no runtime.

mod admission;
mod call_all;

pub(crate) use admission::{Admission, NO_TIMERS, Refusal};

use crate::atom::{AtomError, Cancelled, HostReply};
use crate::machine::Request;
use crate::native::{Host, StopReason};
use crate::run::{Answered, Session, Stopwatch, Turn, earlier, late, limit_of, wall_clock};
use crate::vm::{AnswerFuture, Vm};
use a99_core::error::ErrorCode;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Stops runs from outside; clones are one signal.
#[derive(Clone, Debug, Default)]
pub struct AbortSignal(Arc<SignalState>);

#[derive(Debug, Default)]
struct SignalState {
    aborted: AtomicBool,
    /// Those who wait on the host meanwhile, by a ticket.
    wakers: Mutex<Vec<(u64, Waker)>>,
    tickets: std::sync::atomic::AtomicU64,
}

impl AbortSignal {
    /// A signal that is not set.
    pub fn new() -> AbortSignal {
        AbortSignal::default()
    }

    /// Sets the signal: runs that carry it end within a millisecond.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut *self.0.wakers.lock().unwrap_or_else(|e| e.into_inner()));
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Whether the signal is set.
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    fn listen(&self, ticket: u64, waker: &Waker) {
        let mut wakers = self.0.wakers.lock().unwrap_or_else(|e| e.into_inner());
        match wakers.iter_mut().find(|(t, _)| *t == ticket) {
            Some((_, old)) => old.clone_from(waker),
            None => wakers.push((ticket, waker.clone())),
        }
    }

    fn forget(&self, ticket: u64) {
        let mut wakers = self.0.wakers.lock().unwrap_or_else(|e| e.into_inner());
        wakers.retain(|(t, _)| *t != ticket);
    }

    fn ticket(&self) -> u64 {
        self.0.tickets.fetch_add(1, Ordering::Relaxed)
    }
}

/// Runs a started session to its end.
pub(crate) async fn drive(vm: &Vm, session: &mut Session, clock: &Stopwatch) {
    let mut turn = session.next(vm, clock);
    loop {
        turn = match turn {
            Turn::Done => return,
            Turn::Pause => {
                yield_now().await;
                session.next(vm, clock)
            }
            Turn::Call(request) => match call(vm, session, request, clock).await {
                Waited::Answer(answer) => session.deliver(vm, clock, answer),
                Waited::Stopped(reason) => return session.machine.stop(reason),
            },
            Turn::CallAll(requests) => match call_all::wait(vm, session, *requests, clock).await {
                Ok(answers) => session.deliver_all(vm, clock, answers),
                Err(reason) => return session.machine.stop(reason),
            },
        };
    }
}

/// The same without a runtime: atoms must answer at once.
pub(crate) fn drive_sync(vm: &Vm, session: &mut Session, clock: &Stopwatch) {
    let mut turn = session.next(vm, clock);
    loop {
        turn = match turn {
            Turn::Done => return,
            Turn::Pause => session.next(vm, clock),
            Turn::Call(request) => {
                let answer = answer_now(*request, session, clock);
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
    let Request {
        atom,
        mut call,
        cancelled,
    } = request;
    call.deadline = session.deadline.and_then(|at| clock.at(at));
    call.events = call.events.map(|events| events.without_waiting());
    let op = call.op.clone();
    let mut future = Vm::start_atom(&atom, call);
    let mut context = Context::from_waker(Waker::noop());
    match poll_caught(&mut future, &mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            cancelled.set();
            Err(cannot_wait(
                &op,
                "run this program with the asynchronous run",
            ))
        }
    }
}

fn cannot_wait(op: &str, why: &str) -> AtomError {
    AtomError::coded(ErrorCode::AsyncInSync, format!("Atom '{op}' waits: {why}"))
}

/// Polls an atom; a panic of host code is an error of that atom (E20: with no
/// host text in it).
pub(crate) fn poll_caught(
    future: &mut AnswerFuture,
    context: &mut Context<'_>,
) -> Poll<Result<HostReply, AtomError>> {
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        future.as_mut().poll(context)
    }));
    polled.unwrap_or_else(|_| Poll::Ready(Err(AtomError::new("The atom failed"))))
}

/// How a wait on the host ended.
enum Waited {
    Answer(Answered),
    Stopped(StopReason),
}

/// Waits for an atom until it answers, its time is up, or the run must stop.
/// Whatever ends the wait, the atom's future is dropped with it (D22).
async fn call(
    vm: &Vm,
    session: &mut Session,
    mut request: Box<Request>,
    clock: &Stopwatch,
) -> Waited {
    let limit = limit_of(&session.machine, &request);
    let own = limit.and_then(|limit| wall_clock()?.checked_add(limit));
    let wake_at = earlier(own, session.deadline.and_then(|at| clock.at(at)));
    request.call.deadline = wake_at;
    let op = request.call.op.clone();
    let cancelled = request.cancelled;
    let mut future = Vm::start_atom(&request.atom, request.call);
    let mut first = true;
    // Most atoms answer at once: timers are made only for those that wait.
    let ready = std::future::poll_fn(|context| {
        if !std::mem::replace(&mut first, false) {
            return Poll::Ready(None);
        }
        Poll::Ready(match poll_caught(&mut future, context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    })
    .await;
    if let Some(answer) = ready {
        return Waited::Answer(answer);
    }
    session.machine.shrink();
    let guard = CancelOnDrop {
        cancelled: Some(cancelled),
        signal: session.signal.clone().map(|s| (s.ticket(), s)),
    };
    let sleep = match timer(wake_at) {
        Ok(sleep) => sleep,
        Err(NoTimers) => return Waited::Answer(Err(no_timers(&op))),
    };
    let mut sleep = pin!(sleep);
    let host = session.host(vm, clock);
    let waited = std::future::poll_fn(|context| {
        if let Some((ticket, signal)) = &guard.signal {
            signal.listen(*ticket, context.waker());
        }
        if let Some(reason) = host.stop() {
            return Poll::Ready(Waited::Stopped(reason));
        }
        if let Poll::Ready(answer) = poll_caught(&mut future, context) {
            return Poll::Ready(Waited::Answer(answer));
        }
        if let Some(sleep) = sleep.as_mut().get_mut()
            && sleep.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(match host.stop() {
                Some(reason) => Waited::Stopped(reason),
                None => Waited::Answer(Err(late(&op))),
            });
        }
        Poll::Pending
    })
    .await;
    guard.done(&waited);
    waited
}

/// The error of an atom that waits where nothing wakes it.
fn no_timers(op: &str) -> AtomError {
    cannot_wait(
        op,
        "run this program inside a tokio runtime whose time is enabled",
    )
}

/// Nobody here wakes a future when its time has come.
struct NoTimers;

type Sleep = Option<Pin<Box<tokio::time::Sleep>>>;

/// A future for a moment, if there is one; an error outside of a runtime that
/// has timers.
fn timer(at: Option<Instant>) -> Result<Sleep, NoTimers> {
    let Some(at) = at else { return Ok(None) };
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(NoTimers);
    }
    // Whether a runtime has timers can only be found out by asking for one.
    std::panic::catch_unwind(|| Box::pin(tokio::time::sleep_until(at.into())))
        .map(Some)
        .map_err(|_| NoTimers)
}

/// Tells an atom that its answer is no longer wanted, also when the run's own
/// future is dropped.
struct CancelOnDrop {
    cancelled: Option<Cancelled>,
    signal: Option<(u64, AbortSignal)>,
}

impl CancelOnDrop {
    fn done(mut self, waited: &Waited) {
        let in_time = matches!(waited, Waited::Answer(Ok(_)));
        if in_time {
            self.cancelled = None;
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some((ticket, signal)) = self.signal.take() {
            signal.forget(ticket);
        }
        if let Some(cancelled) = self.cancelled.take() {
            cancelled.set();
        }
    }
}

/// Lets other tasks run.
async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
