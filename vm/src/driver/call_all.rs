//! Waits for several concurrent calls of one run (`callAll`).

use super::active::{ActiveCall, Listener};
use super::answer_now;
use crate::atom::Answered;
use crate::clock::{Stopwatch, wall_clock};
use crate::machine::{Machine, PlacedRequest, Request, Requests};
use crate::pace::{Host, StopReason};
use crate::run::Session;
use crate::vm::Vm;
use a99_core::call_id::CallId;
use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Instant;

/// The answers in the order of the calls, or the bytes of answers that exceed the run's
/// ceiling.
pub(super) type Answers = Result<Vec<Answered>, usize>;

/// The concurrent calls of a run with their state.
pub(super) struct Calls {
    /// Calls not started yet, in order.
    waiting: VecDeque<(usize, Request)>,
    /// Calls in progress, with their numbers and ids.
    active: Vec<(usize, CallId, ActiveCall)>,
    limit: usize,
    answers: Vec<Option<Answered>>,
    /// Bytes of the answers received so far.
    bytes: usize,
    room: usize,
    deadline: Option<Instant>,
    listener: Listener,
}

impl Calls {
    /// Creates the set; no call is started yet.
    pub(super) fn of(requests: Requests, session: &Session, clock: &Stopwatch) -> Calls {
        let placed = requests.calls.into_iter().enumerate();
        let waiting: VecDeque<_> = placed
            .map(|(number, PlacedRequest { request, .. })| (number, request))
            .collect();
        Calls {
            answers: waiting.iter().map(|_| None).collect(),
            active: Vec::with_capacity(requests.limit.min(waiting.len())),
            waiting,
            limit: requests.limit,
            bytes: 0,
            room: requests.room,
            deadline: session.deadline.and_then(|at| clock.at(at)),
            listener: Listener::of(session.signal.as_ref()),
        }
    }

    /// Starts calls up to the concurrency limit.
    fn start(&mut self, machine: &Machine) {
        while self.active.len() < self.limit
            && let Some((number, request)) = self.waiting.pop_front()
        {
            machine.report_call(&request);
            let id = request.call.id.clone();
            let call = ActiveCall::start(request, machine, wall_clock(), self.deadline);
            self.active.push((number, id, call));
        }
    }

    /// Polls calls in progress and starts others as room permits. Ready when all have
    /// answered, when the answers exceed the ceiling, or when the run must stop.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        machine: &Machine,
        host: &dyn Host,
    ) -> Poll<Result<(), StopReason>> {
        self.listener.listen(context);
        let mut at = 0;
        loop {
            self.start(machine);
            let Some((_, _, active)) = self.active.get_mut(at) else {
                return match self.active.is_empty() {
                    true => Poll::Ready(Ok(())),
                    false => Poll::Pending,
                };
            };
            if let Some(reason) = host.stop() {
                return Poll::Ready(Err(reason));
            }
            let answer = match active.poll_answer(context) {
                Poll::Ready(answer) => answer,
                Poll::Pending => match active.poll_time(context) {
                    Poll::Ready(late) => Err(late),
                    Poll::Pending => {
                        at += 1;
                        continue;
                    }
                },
            };
            // The atom may have used up the run's time too.
            if let (Err(_), Some(reason)) = (&answer, host.stop()) {
                return Poll::Ready(Err(reason));
            }
            // Later entries move up; newly started calls are appended.
            let (number, id, done) = self.active.remove(at);
            machine.report_answer(&id);
            done.end(&answer);
            let most = self.room.saturating_sub(self.bytes);
            match Requests::bytes_of(&answer, most, host) {
                Ok(bytes) => self.bytes += bytes,
                Err(reason) => return Poll::Ready(Err(reason)),
            }
            self.answers[number] = Some(answer);
            if self.bytes > self.room {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// The results of finished calls. Calls still in progress are dropped.
    pub(super) fn into_answers(self) -> Answers {
        match self.bytes > self.room {
            true => Err(self.bytes),
            false => Ok(self.answers.into_iter().flatten().collect()),
        }
    }
}

/// Runs the calls without a runtime: each must answer at once.
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
        session.machine.report_call(&request);
        let answer = answer_now(request, session, clock);
        bytes += Requests::bytes_of(&answer, requests.room.saturating_sub(bytes), &host)?;
        answers.push(answer);
        if bytes > requests.room {
            return Ok(Err(bytes));
        }
    }
    Ok(Ok(answers))
}
