//! Requests to capabilities of the host, which it answers later.

use agent99::Value;
use agent99::capabilities::CapabilityError;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

/// A request that the host has not seen yet.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) method: &'static str,
    pub(crate) args: Vec<Value>,
}

type Answered = Result<Value, CapabilityError>;

/// Takes the answer of a request.
type Waiter = Box<dyn FnOnce(Answered) + Send>;

#[derive(Default)]
struct State {
    next: u64,
    /// Made, and not passed to the host yet.
    made: VecDeque<Request>,
    /// Requests that something waits for, with their answers.
    waiting: HashMap<u64, Option<Answered>>,
    /// Requests that something else than a future waits for.
    passed_on: HashMap<u64, Waiter>,
    /// Passed to the host and no longer wanted.
    cancelled: Vec<u64>,
}

impl State {
    /// Adds a request and returns its id. Undefined arguments at the end are left out.
    fn make(&mut self, method: &'static str, mut args: Vec<Value>) -> u64 {
        while args.last().is_some_and(Value::is_undefined) {
            args.pop();
        }
        let id = self.next;
        self.next += 1;
        self.made.push_back(Request { id, method, args });
        id
    }
}

/// The requests of one run.
#[derive(Clone, Default)]
pub(crate) struct Asks(Arc<Mutex<State>>);

impl Asks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Makes a request.
    pub(crate) fn ask(&self, method: &'static str, args: Vec<Value>) -> Ask {
        let asks = self.clone();
        let mut state = self.state();
        let id = state.make(method, args);
        state.waiting.insert(id, None);
        Ask { asks, id }
    }

    /// Makes a request whose answer is passed on.
    pub(crate) fn ask_then(
        &self,
        method: &'static str,
        args: Vec<Value>,
        then: impl FnOnce(Answered) + Send + 'static,
    ) {
        let mut state = self.state();
        let id = state.make(method, args);
        state.passed_on.insert(id, Box::new(then));
    }

    /// Takes the next request for the host.
    pub(crate) fn take(&self) -> Option<Request> {
        self.state().made.pop_front()
    }

    /// Answers a request, if something still waits for it.
    pub(crate) fn answer(&self, id: u64, answer: Answered) {
        let then = self.state().passed_on.remove(&id);
        if let Some(then) = then {
            then(answer);
        } else if let Some(slot @ None) = self.state().waiting.get_mut(&id) {
            *slot = Some(answer);
        }
    }

    /// Takes the ids of requests that are no longer wanted.
    pub(crate) fn take_cancelled(&self) -> Vec<u64> {
        std::mem::take(&mut self.state().cancelled)
    }
}

/// The answer of a request. Dropping it cancels the request.
pub(crate) struct Ask {
    asks: Asks,
    id: u64,
}

impl Future for Ask {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answered> {
        // Runs poll their calls after each answer, so that nothing has to be woken.
        let mut state = self.asks.state();
        match state.waiting.get_mut(&self.id).and_then(Option::take) {
            Some(answer) => {
                state.waiting.remove(&self.id);
                Poll::Ready(answer)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        let mut state = self.asks.state();
        if let Some(None) = state.waiting.remove(&self.id) {
            match state.made.iter().position(|made| made.id == self.id) {
                Some(at) => drop(state.made.remove(at)),
                None => state.cancelled.push(self.id),
            }
        }
    }
}
