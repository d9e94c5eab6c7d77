//! A call in progress: its future, its timeout, and its cancellation flag.

use super::cannot_wait;
use crate::abort::AbortSignal;
use crate::atom::{AnswerFuture, Answered, AtomError, CancelFlag, poll_caught};
use crate::machine::{Machine, Request};
use crate::run::{earlier, late, limit_of};
use std::borrow::Cow;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// A started call. If it is dropped before it answers, its cancellation flag is set, also
/// when the run's own future is dropped.
pub(super) struct ActiveCall {
    op: Cow<'static, str>,
    future: AnswerFuture,
    wake_at: Option<Instant>,
    /// The timer, created when the call is first pending.
    sleep: Option<Sleep>,
    /// `None` once the call has answered.
    flag: Option<CancelFlag>,
}

impl ActiveCall {
    /// Starts a call of the machine's program. Its timeout is that of its atom, limited by
    /// the run's deadline.
    #[inline(always)]
    pub(super) fn start(
        request: Request,
        machine: &Machine,
        now: Option<Instant>,
        deadline: Option<Instant>,
    ) -> ActiveCall {
        let atom = machine.atom_of(&request);
        let own = limit_of(machine, atom).and_then(|limit| now?.checked_add(limit));
        let wake_at = earlier(own, deadline);
        let mut call = request.call;
        call.deadline = wake_at;
        let flag = call.cancelled.flag();
        ActiveCall {
            future: atom.start(call),
            op: atom.sig.name.clone(),
            wake_at,
            sleep: None,
            flag: Some(flag),
        }
    }

    /// Polls the atom for its answer.
    pub(super) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Answered> {
        poll_caught(&mut self.future, context)
    }

    /// Polls the timeout: the error that becomes the answer.
    pub(super) fn poll_time(&mut self, context: &mut Context<'_>) -> Poll<AtomError> {
        let sleep = match &mut self.sleep {
            Some(sleep) => sleep,
            // Only pending calls need a timer.
            none => match timer(self.wake_at) {
                Ok(sleep) => none.insert(sleep),
                Err(NoTimers) => return Poll::Ready(no_timers(&self.op)),
            },
        };
        match sleep.as_mut().map(|sleep| sleep.as_mut().poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(late(&self.op)),
            _ => Poll::Pending,
        }
    }

    /// Ends the call with this answer: only a failed atom gets its cancellation flag set.
    /// Returns the unused flag of a successful one.
    pub(super) fn end(mut self, answer: &Answered) -> Option<CancelFlag> {
        match answer {
            Ok(_) => self.flag.take(),
            Err(_) => None,
        }
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        if let Some(flag) = self.flag.take() {
            flag.set();
        }
    }
}

/// Wakes a task when its run is aborted.
pub(super) struct Listener(Option<(u64, AbortSignal)>);

impl Listener {
    /// Creates the listener of a run's signal.
    pub(super) fn of(signal: Option<&AbortSignal>) -> Listener {
        Listener(signal.map(|signal| (signal.ticket(), signal.clone())))
    }

    /// Registers the task to wake.
    pub(super) fn listen(&self, context: &Context<'_>) {
        if let Some((ticket, signal)) = &self.0 {
            signal.listen(*ticket, context.waker());
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((ticket, signal)) = self.0.take() {
            signal.forget(ticket);
        }
    }
}

/// The error of an atom that waits without timers.
pub(super) fn no_timers(op: &str) -> AtomError {
    cannot_wait(
        op,
        "run this program inside a tokio runtime whose time is enabled",
    )
}

/// The runtime has no timers.
pub(super) struct NoTimers;

/// A timer, if there is a deadline.
pub(super) type Sleep = Option<Pin<Box<tokio::time::Sleep>>>;

/// Creates a timer, if there is a deadline; an error outside a runtime with timers.
pub(super) fn timer(at: Option<Instant>) -> Result<Sleep, NoTimers> {
    let Some(at) = at else { return Ok(None) };
    timer_of(|| tokio::time::sleep_until(at.into())).map(Some)
}

/// The timer that `make` creates; an error outside a runtime with timers.
pub(super) fn timer_of(
    make: impl FnOnce() -> tokio::time::Sleep + std::panic::UnwindSafe,
) -> Result<Pin<Box<tokio::time::Sleep>>, NoTimers> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(NoTimers);
    }
    // Tokio offers no query for timers: creating one panics if they are missing.
    std::panic::catch_unwind(|| Box::pin(make())).map_err(|_| NoTimers)
}
