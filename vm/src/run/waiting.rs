//! Pending calls of a run that its host drives: one, or several concurrent ones.

use super::{RunFault, Session, Turn, earlier, late, limit_of};
use crate::atom::{Answered, CancelFlag};
use crate::clock::RunClock;
use crate::machine::{PlacedRequest, Request, Requests};
use crate::pace::{Host, StopReason};
use crate::vm::Vm;
use a99_core::call_id::CallId;
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// The calls that a run waits for.
pub(super) enum Waiting {
    One(Outstanding),
    /// The calls of a `callAll`.
    Several(Box<Several>),
}

/// A call passed to the host.
pub(super) struct Outstanding {
    pub(super) id: CallId,
    /// Latest time of the answer.
    pub(super) deadline: Option<Duration>,
    op: Cow<'static, str>,
    /// Time of the call, by the program's clock.
    pub(super) now_ms: f64,
    pub(super) answer: Option<Answered>,
    flag: Option<CancelFlag>,
    /// The call to pass to the host again after a restore.
    pub(super) again: Option<Arc<Request>>,
}

/// A request: owned by the host, or shared with the run.
#[derive(Debug)]
pub(super) enum Asked {
    Own(Request),
    Shared(Arc<Request>),
}

impl Deref for Asked {
    type Target = Request;

    fn deref(&self) -> &Request {
        match self {
            Asked::Own(request) => request,
            Asked::Shared(request) => request,
        }
    }
}

impl DerefMut for Asked {
    /// Copies a shared request for the host.
    fn deref_mut(&mut self) -> &mut Request {
        match self {
            Asked::Own(request) => request,
            Asked::Shared(request) => Arc::make_mut(request),
        }
    }
}

impl Asked {
    pub(super) fn into_request(self) -> Request {
        match self {
            Asked::Own(request) => request,
            Asked::Shared(request) => Arc::unwrap_or_clone(request),
        }
    }
}

impl Drop for Outstanding {
    /// Cancels the call if it was not answered in time.
    fn drop(&mut self) {
        if let Some(flag) = self.flag.take() {
            flag.set();
        }
    }
}

impl Outstanding {
    pub(super) fn of(request: &Request, deadline: Option<Duration>) -> Outstanding {
        Outstanding {
            id: request.call.id.clone(),
            deadline,
            op: request.call.op.clone(),
            now_ms: request.call.now_ms,
            answer: None,
            flag: Some(request.call.cancelled.flag()),
            again: None,
        }
    }

    /// Takes the answer; only a failed atom gets its cancellation flag set.
    fn take_answer(&mut self) -> Option<Answered> {
        let answer = self.answer.take()?;
        if answer.is_ok() {
            self.flag = None;
        }
        Some(answer)
    }

    fn is_late(&self, clock: &impl RunClock) -> bool {
        self.deadline.is_some_and(|at| clock.is_past(at))
    }
}

/// Concurrent calls.
pub(super) struct Several {
    /// The calls in order of their indices.
    pub(super) calls: Vec<OneOf>,
    limit: usize,
    /// Numbers of the calls in progress, in order. With the next two fields, an answer needs
    /// no scan over all calls.
    active: Vec<usize>,
    /// No call before this one is queued.
    next: usize,
    /// Number of unanswered calls.
    open: usize,
    /// Maximum bytes of all answers, and the bytes received so far.
    room: usize,
    bytes: usize,
}

pub(super) struct OneOf {
    /// The call with its inputs, shared with the host: they count once.
    pub(super) request: Arc<Request>,
    /// The instruction that prepared the call.
    pub(super) pc: u32,
    pub(super) state: State,
}

pub(super) enum State {
    /// Waits until an earlier call is answered.
    Queued,
    UnderWay(Outstanding),
    /// Answered; waits for the other answers.
    Answered(Answered),
}

/// A call for the host.
pub(super) struct Made {
    pub(super) request: Asked,
    pub(super) deadline: Option<Duration>,
    /// The instruction of the call, if it is not the current one.
    pub(super) pc: Option<u32>,
}

/// The result of a check of the pending calls.
pub(super) enum Seen {
    /// The run continued.
    Turn(Turn),
    /// A call for the host is ready.
    Made(Waiting, Made),
    /// Still pending; check again at this time.
    Still(Waiting, Option<Duration>),
}

/// The latest time of an answer to a call made now.
pub(super) fn until(session: &Session, request: &Request, now: Duration) -> Option<Duration> {
    let machine = &session.machine;
    let own = limit_of(machine, machine.atom_of(request));
    let own = own.and_then(|limit| now.checked_add(limit));
    earlier(own, session.deadline)
}

impl Waiting {
    /// Continues if all calls are answered, timed out or stopped.
    pub(super) fn look(
        self,
        session: &mut Session,
        vm: &Vm,
        clock: &impl RunClock,
        now: Duration,
    ) -> Seen {
        let stop = session.host(vm, clock).stop();
        match self {
            Waiting::One(waiting) => one(waiting, stop, session, vm, clock),
            Waiting::Several(several) => several.look(stop, session, vm, clock, now),
        }
    }

    /// Takes the answer to a call of the run's last suspension.
    pub(super) fn answer(
        &mut self,
        id: &CallId,
        answer: Answered,
        host: &dyn Host,
    ) -> Result<(), RunFault> {
        match self {
            Waiting::One(waiting) if waiting.id != *id => Err(RunFault::UnknownCall(id.clone())),
            Waiting::One(waiting) if waiting.answer.is_none() => {
                waiting.answer = Some(answer);
                Ok(())
            }
            Waiting::One(_) => Err(RunFault::AnsweredCall(id.clone())),
            Waiting::Several(several) => several.answer(id, answer, host),
        }
    }
}

fn one(
    mut waiting: Outstanding,
    stop: Option<StopReason>,
    session: &mut Session,
    vm: &Vm,
    clock: &impl RunClock,
) -> Seen {
    let answer = match (waiting.take_answer(), stop) {
        (Some(answer), _) => answer,
        (None, Some(reason)) => {
            session.machine.stop(reason);
            return Seen::Turn(session.next(vm, clock));
        }
        (None, None) if waiting.is_late(clock) => Err(late(&waiting.op)),
        (None, None) => {
            let deadline = waiting.deadline;
            let again = waiting.again.take();
            let waiting = Waiting::One(waiting);
            return match again {
                Some(request) => Seen::Made(
                    waiting,
                    Made {
                        request: Asked::Shared(request),
                        deadline,
                        pc: None,
                    },
                ),
                None => Seen::Still(waiting, deadline),
            };
        }
    };
    drop(waiting);
    Seen::Turn(session.deliver(vm, clock, answer))
}

impl Several {
    pub(super) fn of(requests: Requests) -> Several {
        let call = |PlacedRequest { request, pc, .. }| OneOf {
            request: Arc::new(request),
            pc,
            state: State::Queued,
        };
        Several {
            open: requests.calls.len(),
            calls: requests.calls.into_iter().map(call).collect(),
            limit: requests.limit,
            active: Vec::new(),
            next: 0,
            room: requests.room,
            bytes: 0,
        }
    }

    fn look(
        mut self: Box<Self>,
        stop: Option<StopReason>,
        session: &mut Session,
        vm: &Vm,
        clock: &impl RunClock,
        now: Duration,
    ) -> Seen {
        // As in a runtime: complete answers take precedence over a stop.
        if self.bytes <= self.room && self.open > 0 {
            if let Some(reason) = stop {
                session.machine.stop(reason);
                return Seen::Turn(session.next(vm, clock));
            }
            self.end_late(clock);
        }
        if self.bytes > self.room {
            return Seen::Turn(session.deliver_all(vm, clock, Err(self.bytes)));
        }
        let mut until_any = session.deadline;
        for number in &self.active {
            let call = &mut self.calls[*number];
            let State::UnderWay(waiting) = &mut call.state else {
                continue;
            };
            if let Some(request) = waiting.again.take() {
                let made = Made {
                    request: Asked::Shared(request),
                    deadline: waiting.deadline,
                    pc: Some(call.pc),
                };
                return Seen::Made(Waiting::Several(self), made);
            }
            until_any = earlier(until_any, waiting.deadline);
        }
        let active = self.active.len();
        match self.queued().filter(|_| active < self.limit) {
            Some(number) => {
                let call = &mut self.calls[number];
                let deadline = until(session, &call.request, now);
                let request = call.request.clone();
                session.machine.report_call(&request);
                call.state = State::UnderWay(Outstanding::of(&request, deadline));
                self.active.push(number);
                let made = Made {
                    request: Asked::Shared(request),
                    deadline,
                    pc: Some(call.pc),
                };
                Seen::Made(Waiting::Several(self), made)
            }
            _ if active > 0 => Seen::Still(Waiting::Several(self), until_any),
            _ => {
                let answers = self.calls.into_iter().filter_map(|call| match call.state {
                    State::Answered(answer) => Some(answer),
                    _ => None,
                });
                Seen::Turn(session.deliver_all(vm, clock, Ok(answers.collect())))
            }
        }
    }

    /// The first queued call.
    fn queued(&mut self) -> Option<usize> {
        while let Some(call) = self.calls.get(self.next) {
            if matches!(call.state, State::Queued) {
                return Some(self.next);
            }
            self.next += 1;
        }
        None
    }

    /// Records the answer of a call in progress.
    fn end(&mut self, number: usize, answer: Answered) {
        self.calls[number].state = State::Answered(answer);
        self.active.retain(|other| *other != number);
        self.open -= 1;
    }

    /// Ends calls that have timed out.
    fn end_late(&mut self, clock: &impl RunClock) {
        // Backwards, since finished calls are removed.
        for at in (0..self.active.len()).rev() {
            let number = self.active[at];
            if let State::UnderWay(waiting) = &self.calls[number].state
                && waiting.is_late(clock)
            {
                let error = late(&waiting.op);
                self.bytes += error.message.len_bytes();
                self.end(number, Err(error));
            }
        }
    }

    fn answer(&mut self, id: &CallId, answer: Answered, host: &dyn Host) -> Result<(), RunFault> {
        let of = |call: &OneOf| call.request.call.id.index();
        let found = self.calls.binary_search_by_key(&id.index(), of);
        let number = found.map_err(|_| RunFault::UnknownCall(id.clone()))?;
        match &mut self.calls[number].state {
            State::Queued => Err(RunFault::UnknownCall(id.clone())),
            State::Answered(_) => Err(RunFault::AnsweredCall(id.clone())),
            State::UnderWay(waiting) => {
                let most = self.room.saturating_sub(self.bytes);
                // A stop of the run takes effect at the next poll.
                self.bytes += Requests::bytes_of(&answer, most, host).unwrap_or(0);
                waiting.answer = Some(answer);
                if let Some(answer) = waiting.take_answer() {
                    self.end(number, answer);
                }
                Ok(())
            }
        }
    }

    /// Whether the calls in progress respect the concurrency limit.
    pub(super) fn is_within_limit(&self) -> bool {
        self.active.len() <= self.limit
    }

    /// Restores the state of a call.
    pub(super) fn restore(&mut self, number: usize, state: State, host: &dyn Host) {
        if let State::Answered(answer) = &state {
            let most = self.room.saturating_sub(self.bytes);
            self.bytes += Requests::bytes_of(answer, most, host).unwrap_or(0);
        }
        match &state {
            State::Queued => {}
            State::UnderWay(_) => self.active.push(number),
            State::Answered(_) => self.open -= 1,
        }
        self.calls[number].state = state;
    }
}
