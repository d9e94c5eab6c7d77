//! Transports: channels whose logs another process has.
//!
//! The host of such agents keeps their states; what their turns send stays in the outbox of its
//! store, in the same transaction, until the channel server has it.

use crate::bus::Participant;
use crate::error::AgentError;
use crate::kill;
use crate::log::{Log, LogLevel};
use crate::metrics::Metrics;
use crate::shared::now;
use crate::trace::{Tracer, fail_all};
use a99_capabilities::Clock;
use a99_runtime_engine::{
    AgentKey, AgentStore, BoxFuture, ChannelStore, DeadLetter, Event, Fence, Millis, NewEvent, Seq,
    StoreCode, StoreError, Trigger, TurnCommit, Uuid,
};
use futures_util::stream::BoxStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};

/// Events that leave the outbox in one append.
const BATCH: usize = 256;

/// Pauses between attempts to empty the outbox.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// What a channel reports.
#[derive(Clone, Debug)]
pub enum Passing {
    /// An event of the log, or an ephemeral one.
    Event(Arc<Event>),
    /// The participants, of all hosts.
    Roster(Vec<Participant>),
}

/// Channels that another process has.
///
/// [`ChannelStore::append`] with a fence appends events of an agent of this host; without one, of
/// the host's own participant.
pub trait Transport: ChannelStore {
    /// The name of the target, as agents see it.
    fn mode(&self) -> &'static str;

    /// Reports the events of a channel after a sequence number, each once and in order, and the
    /// roster at once and after each change. The stream ends when it cannot go on.
    fn watch(
        &self,
        channel: &str,
        after: Seq,
    ) -> BoxFuture<'_, Result<BoxStream<'static, Passing>, AgentError>>;

    /// Sends an ephemeral event.
    fn pass(&self, event: NewEvent) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Makes an agent of this host a participant of its channel.
    fn join(&self, agent: Participant) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Ends that.
    fn leave(&self, agent: &AgentKey) -> BoxFuture<'_, Result<(), AgentError>>;
}

/// The channels of a host over a transport, and its outbox.
pub(crate) struct Remote {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) metrics: Arc<Metrics>,
    agents: Arc<dyn AgentStore>,
    clock: Arc<dyn Clock>,
    log: Log,
    tracer: Tracer,
    /// Whether the outbox may have events.
    has_events: AtomicBool,
    changed: Arc<Notify>,
    draining: Mutex<()>,
}

impl Remote {
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        agents: Arc<dyn AgentStore>,
        clock: Arc<dyn Clock>,
        log: Log,
        tracer: Tracer,
    ) -> Remote {
        Remote {
            transport,
            metrics: Arc::default(),
            agents,
            clock,
            log,
            tracer,
            has_events: AtomicBool::new(true),
            changed: Arc::default(),
            draining: Mutex::new(()),
        }
    }

    /// Records that a commit may have put events into the outbox.
    pub(crate) fn committed(&self) {
        self.has_events.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Sends the events of the outbox, in order.
    ///
    /// # Errors
    /// Those of the transport and of the store. What was not sent stays.
    pub(crate) async fn drain(&self) -> Result<(), StoreError> {
        if !self.has_events.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one = self.draining.lock().await;
        while self.has_events.swap(false, Ordering::AcqRel) {
            let drained = self.drain_all().await;
            if drained.is_err() {
                self.has_events.store(true, Ordering::Release);
                return drained;
            }
        }
        Ok(())
    }

    async fn drain_all(&self) -> Result<(), StoreError> {
        loop {
            let mut waiting = self.agents.outbox(BATCH).await?.into_iter().peekable();
            if waiting.peek().is_none() {
                return Ok(());
            }
            while let Some((key, first)) = waiting.next() {
                let mut events = vec![first];
                while let Some((_, next)) = waiting.next_if(|(other, _)| *other == key) {
                    events.push(next);
                }
                self.forward(key, events, now(&*self.clock)).await?;
            }
        }
    }

    /// Appends events of an agent, and removes them from the outbox.
    async fn forward(
        &self,
        key: AgentKey,
        events: Vec<NewEvent>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let ids = events.iter().map(|new| new.event.id).collect();
        let fence = Fence {
            epoch: self.agents.epoch(&key),
            key,
        };
        kill::point("outbox.before");
        match self.append(&fence, events.clone(), now).await {
            Ok(()) => {}
            // One of them is refused: each alone, so that the others arrive.
            Err(error) if is_final(&error) => {
                for event in events {
                    let (id, again) = (event.event.id, self.append(&fence, vec![event], now));
                    match again.await {
                        Err(error) if is_final(&error) => {
                            self.refuse(&fence, id, &error, now).await?
                        }
                        sent => sent?,
                    }
                }
            }
            Err(error) => return Err(error),
        }
        kill::point("outbox.after");
        self.agents.outbox_done(ids).await
    }

    async fn append(
        &self,
        fence: &Fence,
        events: Vec<NewEvent>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let spans = self.tracer.of_outbox(&fence.key, &events);
        let append = self.transport.append(events, Some(fence.clone()), now);
        let appended = append.await;
        fail_all(&spans, &appended);
        let appended = appended?;
        self.metrics.appended(&appended);
        Ok(())
    }

    /// Records an event that the channel server will never take.
    async fn refuse(
        &self,
        fence: &Fence,
        id: Uuid,
        error: &StoreError,
        now: Millis,
    ) -> Result<(), StoreError> {
        let code = error.code().name();
        let message = format!("an event that {} sent was refused: {error}", fence.key);
        self.log
            .say(LogLevel::Error, Some(&fence.key), code, &message);
        let mut commit = TurnCommit::new(fence.clone(), now);
        commit.dead = Some(DeadLetter {
            trigger: Trigger::Once(id),
            code: code.to_owned(),
            error: message,
            attempts: 1,
            at: now,
        });
        self.agents.commit(commit).await?;
        let counts = self.metrics.of(fence.key.agent());
        counts.dead_letters.inc();
        Ok(())
    }

    /// Empties the outbox after each commit, until the host is gone.
    pub(crate) fn keep_drained(self: &Arc<Remote>) -> impl Future<Output = ()> + use<> {
        // While it waits it holds neither the host nor its store.
        let (remote, changed) = (Arc::downgrade(self), Arc::clone(&self.changed));
        async move {
            let mut pause = FIRST_PAUSE;
            while let Some(there) = remote.upgrade() {
                let drained = there.drain().await;
                if let Err(error) = drained {
                    let code = error.code().name();
                    let message = format!("events in the outbox wait: {error}");
                    there.log.say(LogLevel::Warn, None, code, &message);
                    drop(there);
                    // A commit does not make the server answer.
                    tokio::time::sleep(pause).await;
                    pause = pause.saturating_mul(2).min(MAX_PAUSE);
                    continue;
                }
                drop(there);
                pause = FIRST_PAUSE;
                changed.notified().await;
            }
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// Whether appending the same event again will fail again.
fn is_final(error: &StoreError) -> bool {
    matches!(
        error.code(),
        StoreCode::Fenced | StoreCode::ChangedBody | StoreCode::TooLarge | StoreCode::Input
    )
}
