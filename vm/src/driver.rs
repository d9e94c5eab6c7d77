//! The tokio side of a run: waiting, timers, abort. The only file that names
//! tokio; everything else of this crate is pure.

mod admission;

pub(crate) use admission::{Admission, NO_TIMERS, Refusal};

use crate::atom::{AtomError, Cancelled, HostReply};
use crate::machine::{Machine, Request, Step};
use crate::native::{Host, StopReason};
use crate::vm::{Environment, Vm};
use a99_core::error::ErrorCode;
use a99_core::sig::AtomTimeout;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Deadlines further away than this are none: they would overflow timers.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

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

/// What the machine may ask during a run.
pub(crate) struct RunHost<'a> {
    environment: &'a dyn Environment,
    signal: Option<AbortSignal>,
    deadline: Option<Instant>,
}

impl<'a> RunHost<'a> {
    pub(crate) fn new(
        environment: &'a dyn Environment,
        signal: Option<AbortSignal>,
        timeout: Option<Duration>,
    ) -> RunHost<'a> {
        let deadline = timeout
            .filter(|t| *t < FOREVER)
            .and_then(|t| Instant::now().checked_add(t));
        RunHost {
            environment,
            signal,
            deadline,
        }
    }
}

impl Host for RunHost<'_> {
    fn stop(&self) -> Option<StopReason> {
        if self.signal.as_ref().is_some_and(AbortSignal::is_aborted) {
            return Some(StopReason::Aborted);
        }
        let late = self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline);
        late.then_some(StopReason::Deadline)
    }

    fn now_ms(&self) -> f64 {
        self.environment.now_ms()
    }

    fn random(&self, out: &mut [u8]) {
        self.environment.random(out);
    }
}

/// How a wait on the host ended.
enum Waited {
    Answer(Result<HostReply, AtomError>),
    Stopped(StopReason),
}

/// Runs a started machine to its end.
pub(crate) async fn drive(vm: &Vm, machine: &mut Machine, host: &RunHost<'_>) {
    let mut next = machine.resume(host);
    loop {
        next = match next {
            Step::Done => return,
            Step::Yield => {
                yield_now().await;
                machine.resume(host)
            }
            Step::Call(request) => {
                let limit = vm.atom_timeout(machine, &request);
                let answer = call(machine, *request, host, limit).await;
                after_wait(machine, host, answer)
            }
            Step::Load(request) => {
                let loaded = vm.load(&request, host);
                machine.load(loaded, *request, host);
                machine.resume(host)
            }
        };
    }
}

/// The same without a runtime: atoms must answer at once.
pub(crate) fn drive_sync(vm: &Vm, machine: &mut Machine, host: &RunHost<'_>) {
    let mut next = machine.resume(host);
    loop {
        next = match next {
            Step::Done => return,
            Step::Yield => machine.resume(host),
            Step::Call(request) => {
                let Request {
                    atom,
                    mut call,
                    cancelled,
                } = *request;
                call.deadline = host.deadline;
                let op = call.op.clone();
                let mut future = Vm::start_atom(&atom, call);
                let mut context = Context::from_waker(Waker::noop());
                let answer = match poll_caught(&mut future, &mut context) {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => {
                        cancelled.set();
                        Err(AtomError::coded(
                            ErrorCode::AsyncInSync,
                            format!(
                                "Atom '{op}' waits: run this program with the asynchronous run"
                            ),
                        ))
                    }
                };
                after_wait(machine, host, Waited::Answer(answer))
            }
            Step::Load(request) => {
                let loaded = vm.load(&request, host);
                machine.load(loaded, *request, host);
                machine.resume(host)
            }
        };
    }
}

fn after_wait(machine: &mut Machine, host: &RunHost<'_>, waited: Waited) -> Step {
    match waited {
        Waited::Stopped(reason) => {
            machine.stop(reason);
            Step::Done
        }
        Waited::Answer(answer) => match machine.deliver(answer, host) {
            Some(step) => step,
            None => machine.resume(host),
        },
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<HostReply, AtomError>> + Send>>;

/// Polls an atom; a panic of host code is an error of that atom (E20: with no
/// host text in it).
fn poll_caught(
    future: &mut Answer,
    context: &mut Context<'_>,
) -> Poll<Result<HostReply, AtomError>> {
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        future.as_mut().poll(context)
    }));
    polled.unwrap_or_else(|_| Poll::Ready(Err(AtomError::new("The atom failed"))))
}

/// Waits for an atom until it answers, its time is up, or the run must stop.
/// Whatever ends the wait, the atom's future is dropped with it (D22).
async fn call(
    machine: &mut Machine,
    request: Request,
    host: &RunHost<'_>,
    limit: AtomTimeout,
) -> Waited {
    let Request {
        atom,
        mut call,
        cancelled,
    } = request;
    let op = call.op.clone();
    let started = Instant::now();
    let wake_at = earlier(after(started, limit), host.deadline);
    call.deadline = wake_at;
    let mut future = Vm::start_atom(&atom, call);
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
    machine.shrink();
    let guard = CancelOnDrop {
        cancelled: Some(cancelled),
        signal: host.signal.clone().map(|s| (s.ticket(), s)),
    };
    let sleep = match timer(wake_at) {
        Ok(sleep) => sleep,
        Err(NoTimers) => {
            let message = format!(
                "Atom '{op}' waits: run this program inside a tokio runtime whose time is enabled"
            );
            return Waited::Answer(Err(AtomError::coded(ErrorCode::AsyncInSync, message)));
        }
    };
    let mut sleep = pin!(sleep);
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
            if let Some(reason) = host.stop() {
                return Poll::Ready(Waited::Stopped(reason));
            }
            return Poll::Ready(Waited::Answer(Err(AtomError::coded(
                ErrorCode::AtomTimeout,
                format!("Atom '{op}' timed out"),
            ))));
        }
        Poll::Pending
    })
    .await;
    guard.done(&waited);
    waited
}

/// Nobody here wakes a future when its time has come.
struct NoTimers;

/// A future for a moment, if there is one; an error outside of a runtime that
/// has timers.
fn timer(at: Option<Instant>) -> Result<Option<Pin<Box<tokio::time::Sleep>>>, NoTimers> {
    let Some(at) = at else { return Ok(None) };
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(NoTimers);
    }
    // Whether a runtime has timers can only be found out by asking for one.
    std::panic::catch_unwind(|| Box::pin(tokio::time::sleep_until(at.into())))
        .map(Some)
        .map_err(|_| NoTimers)
}

/// The end of an atom's own time.
fn after(started: Instant, limit: AtomTimeout) -> Option<Instant> {
    match limit {
        AtomTimeout::None => None,
        AtomTimeout::Ms(ms) => Some(Duration::from_millis(ms))
            .filter(|d| *d < FOREVER)
            .map(|d| started + d),
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
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
