//! Calls that a run waits for, while its host drives it: one, or several at once.

use super::{Answered, RunClock, RunFault, Session, Turn, earlier, late, limit_of};
use crate::atom::CancelFlag;
use crate::machine::{PlacedRequest, Request, Requests};
use crate::native::{Host, StopReason};
use crate::vm::Vm;
use a99_core::call_id::CallId;
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// What a run waits for.
pub(super) enum Waiting {
    One(Outstanding),
    /// Calls of a `callAll`.
    Several(Box<Several>),
}

/// A call that was given to the host.
pub(super) struct Outstanding {
    pub(super) id: CallId,
    /// When its answer comes too late.
    pub(super) deadline: Option<Duration>,
    op: Cow<'static, str>,
    /// When it was made, by the clock that programs see.
    pub(super) now_ms: f64,
    pub(super) answer: Option<Answered>,
    flag: Option<CancelFlag>,
    /// The call as it is given once more after the run was restored.
    pub(super) again: Option<Arc<Request>>,
}

/// What a call asks: the host's alone, or what the run keeps too.
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
    /// Of what is shared the host gets a copy.
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
    /// Whatever becomes of a call that was not answered in time, its atom is told.
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

    /// The call was answered: only an atom that failed is told that it may stop.
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

/// Calls that are under way at once.
pub(super) struct Several {
    /// In their order, which is that of their indices.
    pub(super) calls: Vec<OneOf>,
    limit: usize,
    /// The numbers of those that are under way, in order: with the two that follow, an
    /// answer takes no look at all calls.
    active: Vec<usize>,
    /// None before this one is queued.
    next: usize,
    /// How many are not answered.
    open: usize,
    /// Bytes that all answers together may take, and those that are there do.
    room: usize,
    bytes: usize,
}

/// One of several calls.
pub(super) struct OneOf {
    /// The call with its inputs, which the host shares: they count once.
    pub(super) request: Arc<Request>,
    /// The instruction that prepared it.
    pub(super) pc: u32,
    pub(super) state: State,
}

pub(super) enum State {
    /// It waits until one of those before it is answered.
    Queued,
    UnderWay(Outstanding),
    /// The answer waits for those of the others.
    Answered(Answered),
}

/// A call for the host.
pub(super) struct Made {
    pub(super) request: Asked,
    pub(super) deadline: Option<Duration>,
    /// The instruction that it belongs to, if not the one that runs.
    pub(super) pc: Option<u32>,
}

/// What comes of a look at what a run waits for.
pub(super) enum Seen {
    /// The run went on.
    Turn(Turn),
    /// A call is given to the host.
    Made(Waiting, Made),
    /// Nothing yet; when to look again.
    Still(Waiting, Option<Duration>),
}

/// When an answer to a call that is made now comes too late.
pub(super) fn until(session: &Session, request: &Request, now: Duration) -> Option<Duration> {
    let machine = &session.machine;
    let own = limit_of(machine, machine.atom_of(request));
    let own = own.and_then(|limit| now.checked_add(limit));
    earlier(own, session.deadline)
}

impl Waiting {
    /// Goes on if everything is answered, late or stopped.
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

    /// Takes the answer of a call of the run's last suspension.
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
        // As where a runtime waits: answers that are all there come first.
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

    /// The first call that waits until one of those before it is answered.
    fn queued(&mut self) -> Option<usize> {
        while let Some(call) = self.calls.get(self.next) {
            if matches!(call.state, State::Queued) {
                return Some(self.next);
            }
            self.next += 1;
        }
        None
    }

    /// Notes the answer of a call that was under way.
    fn end(&mut self, number: usize, answer: Answered) {
        self.calls[number].state = State::Answered(answer);
        self.active.retain(|other| *other != number);
        self.open -= 1;
    }

    /// Ends the calls whose time is up.
    fn end_late(&mut self, clock: &impl RunClock) {
        // From the last, since those that end are taken out.
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
                // A run that is to stop does so when it is asked next.
                self.bytes += Requests::bytes_of(&answer, most, host).unwrap_or(0);
                waiting.answer = Some(answer);
                if let Some(answer) = waiting.take_answer() {
                    self.end(number, answer);
                }
                Ok(())
            }
        }
    }

    /// Whether no more calls are under way than may be.
    pub(super) fn is_within_limit(&self) -> bool {
        self.active.len() <= self.limit
    }

    /// Puts what had become of a call when the run was suspended.
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
