//! Publishing of events that no epoch fences: those that wait share a transaction of the store.

use crate::error::AgentError;
use crate::host::Published;
use crate::hub::{Hub, locked, size};
use crate::kill;
use crate::trace::fail_all;
use a99_runtime_engine::{Appended, Millis, NewEvent, StoreCode, StoreError};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Events after which a transaction takes no more, and their approximate bytes.
const GROUP: usize = 256;
const GROUP_BYTES: usize = 1 << 20;

/// An event that [`Host::start_publish`](crate::Host::start_publish) began to publish: the future
/// of its place in the log.
#[derive(Debug)]
pub struct Publishing(oneshot::Receiver<Result<Appended, StoreError>>);

impl Future for Publishing {
    type Output = Result<Published, AgentError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|queued| {
            let none = |_| StoreError::new(StoreCode::InDoubt, "the append has ended in a fault");
            let one = queued.map_err(none)??;
            Ok(Published {
                event: one.event,
                is_new: one.is_new,
            })
        })
    }
}

type Reply = oneshot::Sender<Result<Appended, StoreError>>;

/// Events that wait for one transaction (group commit).
#[derive(Default)]
pub(crate) struct Group {
    waiting: VecDeque<(NewEvent, Reply)>,
    now: Millis,
    /// Whether a [`GroupWriter`] takes what waits.
    is_written: bool,
}

struct GroupWriter {
    hub: Arc<Hub>,
    is_over: bool,
}

impl Hub {
    /// Queues an event for the log; it is the next of its channel that was queued. What waits
    /// is appended together. It completes even if the future is dropped.
    pub(crate) fn publish(self: &Arc<Hub>, event: NewEvent, now: Millis) -> Publishing {
        let (reply, queued) = oneshot::channel();
        let queued = Publishing(queued);
        let hub = Arc::clone(self);
        if self.remote().is_some() {
            self.runtime.spawn(async move {
                let appended = hub.append(vec![event], None, now).await;
                let none = || StoreError::new(StoreCode::InDoubt, "nothing was appended");
                let one = appended.and_then(|mut all| all.pop().ok_or_else(none));
                // The publisher may be gone.
                drop(reply.send(one));
            });
            return queued;
        }
        let mut group = locked(&self.group);
        group.now = group.now.max(now);
        group.waiting.push_back((event, reply));
        if !std::mem::replace(&mut group.is_written, true) {
            drop(group);
            let writer = GroupWriter {
                hub,
                is_over: false,
            };
            self.runtime.spawn(writer.write());
        }
        queued
    }

    /// The next group of events, with its time.
    fn group(&self) -> Option<(Millis, Vec<NewEvent>, Vec<Reply>)> {
        let mut group = locked(&self.group);
        group.is_written = !group.waiting.is_empty();
        let mut bytes = 0;
        let fitting = group.waiting.iter().take(GROUP).take_while(|(new, _)| {
            let fits = bytes <= GROUP_BYTES;
            bytes += size(&new.event);
            fits
        });
        let count = fitting.count();
        let (events, replies) = group.waiting.drain(..count).unzip();
        group.is_written.then_some((group.now, events, replies))
    }
}

impl GroupWriter {
    /// Appends what waits, until there is no more.
    async fn write(mut self) {
        loop {
            // Those that can publish now share the transaction.
            tokio::task::yield_now().await;
            let Some((now, events, replies)) = self.hub.group() else {
                self.is_over = true;
                return;
            };
            kill::point("append.before");
            let spans = self.hub.tracer.of_append(&events);
            let appended = self.hub.store().append_each(events, now).await;
            // A span is that of a trace, and other events of it may be in the log.
            if appended.iter().all(Result::is_err) {
                appended.iter().for_each(|one| fail_all(&spans, one));
            }
            drop(spans);
            kill::point("append.after");
            self.hub.tell(appended.iter().flatten());
            for (one, reply) in appended.into_iter().zip(replies) {
                // The publisher may be gone.
                drop(reply.send(one));
            }
        }
    }
}

impl Drop for GroupWriter {
    /// After a panic those that wait get an error, and the next event another writer.
    fn drop(&mut self) {
        if !self.is_over {
            let mut group = locked(&self.hub.group);
            let left = std::mem::take(&mut *group);
            drop(group);
            drop(left);
        }
    }
}
