//! Changes: a stream of what a channel's events mean for its receiver.

use crate::bus::Participant;
use crate::error::AgentError;
use crate::subscription::Subscription;
use a99_runtime_engine::{Body, BoxFuture, Event};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

type Found<T> = BoxFuture<'static, Result<Vec<T>, AgentError>>;

/// A stream of changes of a channel, in the order of its log. A stream of a turn ends with it:
/// `turn.over`.
pub struct Changes<T> {
    events: Subscription,
    ready: VecDeque<T>,
    look: Box<dyn FnMut(Arc<Event>) -> Found<T> + Send>,
    looking: Option<Found<T>>,
    /// The last presence event. The roster that it changed may come after it.
    presence: Option<Arc<Event>>,
    rosters: watch::Receiver<Vec<Participant>>,
}

impl<T> fmt::Debug for Changes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Changes");
        out.field("events", &self.events).finish_non_exhaustive()
    }
}

impl<T> Changes<T> {
    /// First the given values, then those that `look` finds in the events.
    pub(crate) fn new(
        events: Subscription,
        first: impl IntoIterator<Item = T>,
        look: impl FnMut(Arc<Event>) -> Found<T> + Send + 'static,
    ) -> Changes<T> {
        Changes {
            rosters: events.rosters(),
            presence: None,
            events,
            ready: first.into_iter().collect(),
            look: Box::new(look),
            looking: None,
        }
    }

    /// Waits for the next change. Cancel-safe: dropping the future loses none.
    ///
    /// # Errors
    /// Errors of reading the log or the roster; `turn.over`.
    pub async fn next(&mut self) -> Result<T, AgentError> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(ready);
            }
            let looking = match &mut self.looking {
                Some(looking) => looking,
                None => {
                    let event = tokio::select! {
                        event = self.events.next() => event?,
                        Ok(()) = self.rosters.changed() => match &self.presence {
                            Some(event) => Arc::clone(event),
                            None => continue,
                        },
                    };
                    if let Body::Presence { .. } = event.body {
                        self.presence = Some(Arc::clone(&event));
                    }
                    self.looking.insert((self.look)(event))
                }
            };
            let found = looking.await;
            self.looking = None;
            self.ready.extend(found?);
        }
    }
}
