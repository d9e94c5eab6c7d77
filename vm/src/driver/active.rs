//! A call that is under way: its future, the end of its time, and who is told that it is no
//! longer wanted.

use super::{AbortSignal, cannot_wait, poll_caught};
use crate::atom::{AtomError, CancelFlag};
use crate::machine::{Machine, Request};
use crate::run::{Answered, earlier, late, limit_of};
use crate::vm::{AnswerFuture, Vm};
use std::borrow::Cow;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// A call that was started. One that is dropped before it has answered is told that its answer
/// is no longer wanted, also when the run's own future is dropped.
pub(super) struct ActiveCall {
    op: Cow<'static, str>,
    future: AnswerFuture,
    wake_at: Option<Instant>,
    /// The end of its time; made when it is first seen to wait.
    sleep: Option<Sleep>,
    /// Nothing once it has answered.
    flag: Option<CancelFlag>,
}

impl ActiveCall {
    /// Starts a call of the machine's program, now. It may take as long as its atom may, and no
    /// longer than its run.
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
            future: Vm::start_atom(atom, call),
            op: atom.sig.name.clone(),
            wake_at,
            sleep: None,
            flag: Some(flag),
        }
    }

    /// The answer of the atom, if it is there.
    pub(super) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Answered> {
        poll_caught(&mut self.future, context)
    }

    /// The end of its time: the error that is its answer then.
    pub(super) fn poll_time(&mut self, context: &mut Context<'_>) -> Poll<AtomError> {
        let sleep = match &mut self.sleep {
            Some(sleep) => sleep,
            // Timers are made only for those that wait.
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

    /// Ends it with this answer: only an atom that failed is told that it may stop. What is left
    /// of one that did not.
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
    /// That of a run.
    pub(super) fn of(signal: Option<&AbortSignal>) -> Listener {
        Listener(signal.map(|signal| (signal.ticket(), signal.clone())))
    }

    /// Wakes this task.
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

/// The error of an atom that waits where nothing wakes it.
fn no_timers(op: &str) -> AtomError {
    cannot_wait(
        op,
        "run this program inside a tokio runtime whose time is enabled",
    )
}

/// Nobody here wakes a future when its time has come.
pub(super) struct NoTimers;

/// A future for a moment, if there is one.
pub(super) type Sleep = Option<Pin<Box<tokio::time::Sleep>>>;

/// A future for a moment, if there is one; an error outside of a runtime that
/// has timers.
pub(super) fn timer(at: Option<Instant>) -> Result<Sleep, NoTimers> {
    let Some(at) = at else { return Ok(None) };
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(NoTimers);
    }
    // Whether a runtime has timers can only be found out by asking for one.
    std::panic::catch_unwind(|| Box::pin(tokio::time::sleep_until(at.into())))
        .map(Some)
        .map_err(|_| NoTimers)
}
