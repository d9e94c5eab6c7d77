//! Calls under way of a run that the library drives itself, to record or profile it.

use a99_core::call_id::CallId;
use a99_core::error::ErrorCode;
use a99_vm::atom::{AtomError, HostReply};
use a99_vm::{Answer, Call};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How often a waiting run looks for an abort.
const LOOK: Duration = Duration::from_millis(20);

/// A call under way, with what its driver keeps of it.
pub(crate) struct UnderWay<T> {
    pub(crate) id: CallId,
    pub(crate) atom: String,
    deadline: Option<Duration>,
    answer: Answer,
    pub(crate) kept: T,
}

pub(crate) struct Calls<T> {
    began: Instant,
    under_way: Vec<UnderWay<T>>,
}

impl<T> Calls<T> {
    pub(crate) fn new() -> Calls<T> {
        Calls {
            began: Instant::now(),
            under_way: Vec::new(),
        }
    }

    /// Time of the run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Starts the atom of a call.
    pub(crate) fn begin(
        &mut self,
        call: Call,
        start: impl FnOnce(Call, Option<Instant>) -> (Answer, T),
    ) {
        let (id, atom, deadline) = (call.id.clone(), call.atom.to_string(), call.deadline);
        let at = deadline.and_then(|at| self.began.checked_add(at));
        let (answer, kept) = start(call, at);
        self.under_way.push(UnderWay {
            id,
            atom,
            deadline,
            answer,
            kept,
        });
    }

    /// Waits for answers until a time of the run, or a moment if nothing happens.
    pub(crate) async fn wait(
        &mut self,
        until: Option<Duration>,
    ) -> Vec<(UnderWay<T>, Result<HostReply, AtomError>)> {
        let now = self.elapsed();
        let rest = until.map_or(LOOK, |until| until.saturating_sub(now).min(LOOK));
        let calls = &mut self.under_way;
        let ready = std::future::poll_fn(|context| {
            let found = calls.iter_mut().enumerate().find_map(|(at, call)| {
                match Pin::new(&mut call.answer).poll(context) {
                    Poll::Ready(result) => Some((at, result)),
                    Poll::Pending => None,
                }
            });
            found.map_or(Poll::Pending, Poll::Ready)
        });
        if let Ok((at, result)) = tokio::time::timeout(rest, ready).await {
            return vec![(self.under_way.remove(at), result)];
        }
        let now = self.elapsed();
        let is_late = |call: &mut UnderWay<T>| call.deadline.is_some_and(|at| at <= now);
        let late = self.under_way.extract_if(.., is_late);
        late.map(|call| {
            let text = format!("Atom '{}' timed out", call.atom);
            (call, Err(AtomError::coded(ErrorCode::AtomTimeout, text)))
        })
        .collect()
    }
}
