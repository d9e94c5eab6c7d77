//! Starts asynchronous atoms, and reports their calls as events.

use super::{AnswerFuture, Answered, AtomBody, AtomDef, AtomError, HostCall};
use a99_core::call_id::CallId;
use a99_core::text::Text;
use a99_run::events::{CallEnd, EventSink, RunEventKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

impl AtomDef {
    /// Starts an execution of an asynchronous atom. A panic of host code becomes an error of
    /// that atom.
    #[inline]
    pub(crate) fn start(&self, call: HostCall) -> AnswerFuture {
        match &call.events {
            Some(events) => {
                let told = ToldCall::begin(events, &call);
                // Started now, as without a subscriber.
                let answer = start_body(&self.body, call);
                Box::pin(told.follow(answer))
            }
            None => start_body(&self.body, call),
        }
    }
}

/// Starts an execution of a body.
#[inline]
fn start_body(body: &AtomBody, call: HostCall) -> AnswerFuture {
    let started = catch_unwind(AssertUnwindSafe(|| match body {
        AtomBody::Async(body) => body(call),
        AtomBody::AsyncDyn(body) => body(call),
        _ => Box::pin(std::future::ready(Err(AtomError::new(
            "Invalid program: not an atom that waits",
        )))),
    }));
    started.unwrap_or_else(|_| Box::pin(std::future::ready(Err(AtomError::new("The atom failed")))))
}

/// A call whose start and end are sent as events. An end event follows every start event,
/// however the call ends.
struct ToldCall {
    /// `None` if the start event found no room, or the end was sent.
    events: Option<EventSink>,
    id: CallId,
}

impl ToldCall {
    fn begin(events: &EventSink, call: &HostCall) -> ToldCall {
        let started = RunEventKind::CallStarted {
            call: call.id.clone(),
            op: Text::from(&*call.op),
        };
        ToldCall {
            events: events.try_send(started).then(|| events.clone()),
            id: call.id.clone(),
        }
    }

    async fn follow(mut self, answer: AnswerFuture) -> Answered {
        let answer = answer.await;
        self.end(match &answer {
            Ok(_) => CallEnd::Answered,
            Err(_) => CallEnd::Failed,
        });
        answer
    }

    fn end(&mut self, end: CallEnd) {
        if let Some(events) = self.events.take() {
            let call = std::mem::take(&mut self.id);
            events.send_beyond(RunEventKind::CallEnded { call, end });
        }
    }
}

impl Drop for ToldCall {
    fn drop(&mut self) {
        self.end(match std::thread::panicking() {
            true => CallEnd::Failed,
            false => CallEnd::Stopped,
        });
    }
}

/// Polls an atom. A panic of host code becomes an error of that atom (E20: without host
/// text).
pub(crate) fn poll_caught(future: &mut AnswerFuture, context: &mut Context<'_>) -> Poll<Answered> {
    let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
    polled.unwrap_or_else(|_| Poll::Ready(Err(AtomError::new("The atom failed"))))
}
