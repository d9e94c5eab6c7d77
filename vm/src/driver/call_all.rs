//! Waiting for several calls of one run at once.

use super::active::{ActiveCall, Listener};
use super::answer_now;
use crate::machine::{Machine, PlacedRequest, Request, Requests};
use crate::native::{Host, StopReason};
use crate::run::{Answered, Session, Stopwatch, wall_clock};
use crate::vm::Vm;
use a99_core::call_id::CallId;
use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Instant;

/// The answers in the order of the calls, or the bytes of those that the run cannot
/// hold.
pub(super) type Answers = Result<Vec<Answered>, usize>;

/// The calls of a run, and what has come of them.
pub(super) struct Calls {
    /// Those that are not started yet, in their order.
    waiting: VecDeque<(usize, Request)>,
    /// Those that are under way, with their numbers and ids.
    active: Vec<(usize, CallId, ActiveCall)>,
    limit: usize,
    answers: Vec<Option<Answered>>,
    /// Bytes of the answers that are there.
    bytes: usize,
    room: usize,
    /// The end of the run's time.
    deadline: Option<Instant>,
    listener: Listener,
}

impl Calls {
    /// Calls that were not started.
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

    /// Starts calls as long as there is room for one.
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

    /// Polls what is under way, and starts what then has room. Whether all are there
    /// (or more than the run can hold), unless it must stop.
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
            // Its time may have been the run's.
            if let (Err(_), Some(reason)) = (&answer, host.stop()) {
                return Poll::Ready(Err(reason));
            }
            // Those behind it move up; what is started next comes last.
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

    /// What came of calls that are over. Those that are still under way are dropped.
    pub(super) fn into_answers(self) -> Answers {
        match self.bytes > self.room {
            true => Err(self.bytes),
            false => Ok(self.answers.into_iter().flatten().collect()),
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
