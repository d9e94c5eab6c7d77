//! A sandbox that the first call starts. Concurrent calls wait for one start; no runtime is
//! needed.

use super::guest::unavailable;
use a99_capabilities::ShellError;
use a99_sandbox::{Builder, Sandbox, VmError};
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The builder of the sandbox, and the state of its start.
pub(super) struct Lazy {
    builder: Builder,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// Callers that wait for the end of a start.
    waiting: Vec<Waker>,
    /// Why the last start failed.
    failure: Option<VmError>,
}

enum Phase {
    Stopped,
    /// One caller is starting it.
    Starting,
    Running(Sandbox),
}

/// The right to start it. Dropping it lets the next caller try.
struct Start<'a>(&'a Lazy);

impl Drop for Start<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(state.phase, Phase::Starting) {
            state.phase = Phase::Stopped;
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Lazy {
    pub(crate) fn new(builder: Builder) -> Lazy {
        let state = State {
            phase: Phase::Stopped,
            waiting: Vec::new(),
            failure: None,
        };
        Lazy {
            builder,
            state: Mutex::new(state),
        }
    }

    /// The state; every holder leaves it consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sandbox, if it was started.
    pub(crate) fn running(&self) -> Option<Sandbox> {
        match &self.lock().phase {
            Phase::Running(sandbox) => Some(sandbox.clone()),
            Phase::Stopped | Phase::Starting => None,
        }
    }

    /// Why the last start failed, or the guest ended.
    pub(crate) fn failure(&self) -> Option<VmError> {
        match self.running() {
            Some(sandbox) => sandbox.ended(),
            None => self.lock().failure.clone(),
        }
    }

    /// The sandbox, started if necessary.
    pub(crate) async fn sandbox(&self) -> Result<Sandbox, ShellError> {
        let start = match poll_fn(|context| self.poll_turn(context)).await {
            Ok(sandbox) => return Ok(sandbox),
            Err(start) => start,
        };
        let started = self.builder.clone().start().await;
        let mut state = self.lock();
        match started {
            Ok(sandbox) => {
                state.failure = None;
                state.phase = Phase::Running(sandbox.clone());
                drop(state);
                drop(start);
                Ok(sandbox)
            }
            Err(error) => {
                let told = unavailable(&error);
                state.failure = Some(error);
                drop(state);
                drop(start);
                Err(told)
            }
        }
    }

    /// The sandbox, or the right to start it.
    fn poll_turn(&self, context: &mut Context<'_>) -> Poll<Result<Sandbox, Start<'_>>> {
        let mut state = self.lock();
        match &state.phase {
            Phase::Running(sandbox) => Poll::Ready(Ok(sandbox.clone())),
            Phase::Stopped => {
                state.phase = Phase::Starting;
                Poll::Ready(Err(Start(self)))
            }
            Phase::Starting => {
                state.waiting.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
