//! Waiting for several calls of one run at once.

use super::{CancelOnDrop, Sleep, answer_now, no_timers, poll_caught, timer};
use crate::machine::{PlacedRequest, Request, Requests};
use crate::native::{Host, StopReason};
use crate::run::{Answered, Session, Stopwatch, earlier, late, limit_of, wall_clock};
use crate::vm::{AnswerFuture, Vm};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future as _;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The answers in the order of the calls, or the bytes of those that the run cannot
/// hold.
pub(super) type Answers = Result<Vec<Answered>, usize>;

/// A call that is under way.
struct Active {
    number: usize,
    op: Cow<'static, str>,
    future: AnswerFuture,
    wake_at: Option<Instant>,
    /// The end of its time; made when it is first seen to wait.
    sleep: Option<Sleep>,
    guard: CancelOnDrop,
}

/// The calls of a run, and what has come of them.
struct Calls {
    /// Those that are not started yet, in their order.
    waiting: VecDeque<(usize, Box<Request>, Option<Duration>)>,
    active: Vec<Active>,
    limit: usize,
    answers: Vec<Option<Answered>>,
    /// Bytes of the answers that are there.
    bytes: usize,
    room: usize,
    /// The end of the run's time.
    deadline: Option<Instant>,
}

impl Calls {
    /// Starts calls as long as there is room for one.
    fn start(&mut self) {
        while self.active.len() < self.limit
            && let Some((number, request, limit)) = self.waiting.pop_front()
        {
            let Request {
                atom,
                mut call,
                cancelled,
            } = *request;
            let own = limit.and_then(|limit| wall_clock()?.checked_add(limit));
            let wake_at = earlier(own, self.deadline);
            call.deadline = wake_at;
            self.active.push(Active {
                number,
                op: call.op.clone(),
                future: Vm::start_atom(&atom, call),
                wake_at,
                sleep: None,
                guard: CancelOnDrop {
                    cancelled: Some(cancelled),
                    signal: None,
                },
            });
        }
    }

    /// Polls what is under way, and starts what then has room. Whether all are there
    /// (or more than the run can hold), unless it must stop.
    fn poll(&mut self, context: &mut Context<'_>, host: &dyn Host) -> Poll<Result<(), StopReason>> {
        let mut at = 0;
        loop {
            self.start();
            let Some(active) = self.active.get_mut(at) else {
                return match self.active.is_empty() {
                    true => Poll::Ready(Ok(())),
                    false => Poll::Pending,
                };
            };
            if let Some(reason) = host.stop() {
                return Poll::Ready(Err(reason));
            }
            let Poll::Ready(answer) = active.poll(context) else {
                at += 1;
                continue;
            };
            // Its time may have been the run's.
            if let (Err(_), Some(reason)) = (&answer, host.stop()) {
                return Poll::Ready(Err(reason));
            }
            // Those behind it move up; what is started next comes last.
            let mut done = self.active.remove(at);
            if answer.is_ok() {
                done.guard.cancelled = None;
            }
            let most = self.room.saturating_sub(self.bytes);
            match Requests::bytes_of(&answer, most, host) {
                Ok(bytes) => self.bytes += bytes,
                Err(reason) => return Poll::Ready(Err(reason)),
            }
            self.answers[done.number] = Some(answer);
            if self.bytes > self.room {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl Active {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answered> {
        if let Poll::Ready(answer) = poll_caught(&mut self.future, context) {
            return Poll::Ready(answer);
        }
        let sleep = match &mut self.sleep {
            Some(sleep) => sleep,
            none => match timer(self.wake_at) {
                Ok(sleep) => none.insert(sleep),
                Err(_) => return Poll::Ready(Err(no_timers(&self.op))),
            },
        };
        match sleep.as_mut().map(|sleep| sleep.as_mut().poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(Err(late(&self.op))),
            _ => Poll::Pending,
        }
    }
}

/// Makes the calls and waits until all are answered. Whatever ends the wait, the
/// futures of the calls are dropped with it (D22).
pub(super) async fn wait(
    vm: &Vm,
    session: &mut Session,
    requests: Requests,
    clock: &Stopwatch,
) -> Result<Answers, StopReason> {
    let mut calls = Calls {
        answers: requests.calls.iter().map(|_| None).collect(),
        waiting: VecDeque::with_capacity(requests.calls.len()),
        active: Vec::with_capacity(requests.limit.min(requests.calls.len())),
        limit: requests.limit,
        bytes: 0,
        room: requests.room,
        deadline: session.deadline.and_then(|at| clock.at(at)),
    };
    for (number, PlacedRequest { request, .. }) in requests.calls.into_iter().enumerate() {
        let limit = limit_of(&session.machine, &request);
        calls.waiting.push_back((number, request, limit));
    }
    let listener = CancelOnDrop {
        cancelled: None,
        signal: session.signal.clone().map(|s| (s.ticket(), s)),
    };
    // Most atoms answer at once: memory is given back by those that wait.
    let mut first = true;
    loop {
        let host = session.host(vm, clock);
        let polled = std::future::poll_fn(|context| {
            if let Some((ticket, signal)) = &listener.signal {
                signal.listen(*ticket, context.waker());
            }
            match calls.poll(context, &host) {
                Poll::Pending if first => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
                Poll::Ready(done) => Poll::Ready(Some(done)),
            }
        })
        .await;
        match polled {
            Some(done) => {
                done?;
                return Ok(match calls.bytes > calls.room {
                    true => Err(calls.bytes),
                    false => Ok(calls.answers.into_iter().flatten().collect()),
                });
            }
            None => {
                first = false;
                session.machine.shrink();
            }
        }
    }
}

/// The same without a runtime: each must answer at once.
pub(super) fn now(
    vm: &Vm,
    session: &Session,
    requests: Requests,
    clock: &Stopwatch,
) -> Result<Answers, StopReason> {
    let host = session.host(vm, clock);
    let mut answers = Vec::with_capacity(requests.calls.len());
    let mut bytes = 0usize;
    for PlacedRequest { request, .. } in requests.calls {
        if let Some(reason) = host.stop() {
            return Err(reason);
        }
        let answer = answer_now(*request, session, clock);
        bytes += Requests::bytes_of(&answer, requests.room.saturating_sub(bytes), &host)?;
        answers.push(answer);
        if bytes > requests.room {
            return Ok(Err(bytes));
        }
    }
    Ok(Ok(answers))
}
