//! Subscriptions of a connection: a task each, which reads the log as fast as the client takes
//! events.

use super::Inner;
use super::error::Refusal;
use super::metrics::Counted;
use super::outgoing::{Gone, Outgoing};
use crate::codes::{BEYOND_HEAD, TOO_LARGE, TOO_MANY};
use crate::message::{Encoded, delivery, notice};
use crate::wire::{Delivered, Ended, Roster, Sent, Subscribe, Subscribed, detach, notices};
use a99_frame::FrameError;
use a99_runtime::{Body, Event, Seq, Subscription};
use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

#[derive(Default)]
pub(super) struct Subscriptions {
    running: HashMap<u64, Running>,
    /// A subscription that begins once its request is answered.
    begun: Option<Forward>,
}

struct Running {
    _counted: Counted,
    task: Option<AbortHandle>,
    credit: Option<Arc<Semaphore>>,
}

struct Forward {
    number: u64,
    events: Subscription,
    credit: Option<Arc<Semaphore>>,
    /// Whether the roster is sent after changes.
    roster: bool,
    server: Arc<Inner>,
    out: Outgoing,
}

impl Subscriptions {
    /// Opens a subscription, which [`Subscriptions::start`] starts.
    pub(super) async fn open(
        &mut self,
        server: &Arc<Inner>,
        out: &Outgoing,
        asked: Subscribe,
    ) -> Result<Subscribed, Refusal> {
        let most = server.limits.subscriptions;
        if self.running.len() >= most {
            let message = format!("a connection has at most {most} subscriptions");
            return Err(Refusal::new(TOO_MANY, message).help("end some, or open a connection more"));
        }
        let number = asked.subscription;
        if self.running.contains_key(&number) {
            let message = format!("the connection has a subscription {number} already");
            return Err(Refusal::bad(message));
        }
        let host = &server.host;
        let head = checked_head(server, &asked.channel, asked.after).await?;
        let events = host.subscribe(&asked.channel, asked.after, asked.ephemeral);
        let events = events.await?;
        let credit = asked
            .credit
            .map(|most| Arc::new(Semaphore::new(most as usize)));
        let subscribed = Subscribed {
            after: events.cursor(),
            head: head.max(events.cursor()),
        };
        let running = Running {
            _counted: server.metrics.subscribed(),
            task: None,
            credit: credit.clone(),
        };
        self.running.insert(number, running);
        self.begun = Some(Forward {
            number,
            events,
            credit,
            roster: asked.roster,
            server: Arc::clone(server),
            out: out.clone(),
        });
        Ok(subscribed)
    }

    /// Starts the subscription that was opened.
    pub(super) fn start(&mut self) {
        let Some(forward) = self.begun.take() else {
            return;
        };
        if let Some(running) = self.running.get_mut(&forward.number) {
            running.task = Some(tokio::spawn(forward.run()).abort_handle());
        }
    }

    /// Allows more events.
    pub(super) fn credit(&self, number: u64, events: u32) {
        let running = self.running.get(&number);
        if let Some(credit) = running.and_then(|running| running.credit.as_ref()) {
            let room = (Semaphore::MAX_PERMITS >> 1).saturating_sub(credit.available_permits());
            credit.add_permits(room.min(events as usize));
        }
    }

    /// Ends a subscription. Gives whether there was one.
    pub(super) fn close(&mut self, number: u64) -> bool {
        let running = self.running.remove(&number);
        if let Some(task) = running.as_ref().and_then(|running| running.task.as_ref()) {
            task.abort();
        }
        running.is_some()
    }

    /// Ends all subscriptions.
    pub(super) fn end(&mut self) {
        self.begun = None;
        for (_, running) in self.running.drain() {
            if let Some(task) = running.task {
                task.abort();
            }
        }
    }
}

/// The head of a channel after whose event `after` a client reads on.
///
/// # Errors
/// `channels.beyond_head` if the channel ends before it: the client would miss what comes next.
pub(super) async fn checked_head(
    server: &Inner,
    channel: &str,
    after: Option<Seq>,
) -> Result<Seq, Refusal> {
    let head = server.host.channel_store().head(channel).await?;
    match after.filter(|after| *after > head) {
        None => Ok(head),
        Some(after) => {
            let message = format!(
                "the channel {channel} ends at {head}, before {after}: events were lost, or \
                 another channel had this name"
            );
            let help = "subscribe from the end of the channel, or from 0";
            Err(Refusal::new(BEYOND_HEAD, message).help(help))
        }
    }
}

impl Forward {
    async fn run(mut self) {
        let ended = self.forward().await;
        if let Err(Some(refusal)) = ended {
            let ended = Ended {
                subscription: self.number,
                error: refusal.0,
            };
            // The connection may have ended.
            drop(self.out.notify(notices::ENDED, &ended).await);
        }
    }

    /// Sends events until the connection ends, or an error ends the subscription.
    async fn forward(&mut self) -> Result<(), Option<Refusal>> {
        let mut is_changed = self.roster;
        // Older presence events changed nothing that is so now.
        let present_from: Seq = self.events.head();
        loop {
            let event = tokio::select! {
                biased;
                event = self.events.next() => event.map_err(|error| Some(error.into()))?,
                () = ready(()), if is_changed => {
                    is_changed = false;
                    self.send_roster().await.map_err(|Gone| None)?;
                    continue;
                }
            };
            let is_presence = matches!(event.body, Body::Presence { .. });
            is_changed |=
                self.roster && is_presence && event.seq.is_none_or(|seq| seq > present_from);
            if let Some(credit) = &self.credit {
                match credit.acquire().await {
                    Ok(permit) => permit.forget(),
                    Err(_) => return Ok(()),
                }
            }
            self.send(&event).await?;
        }
    }

    fn encoded(&self, event: &Arc<Event>) -> Result<Encoded, FrameError> {
        if event.attachments.is_empty() {
            let text = self.server.encoded.json(event);
            return delivery(self.number, &text.map_err(FrameError::NoJson)?);
        }
        let mut bytes = Vec::new();
        let Sent { event, attachments } = detach(event, &mut bytes);
        let delivered = Delivered {
            subscription: self.number,
            event,
            attachments,
        };
        notice(notices::EVENT, &delivered, &bytes)
    }

    async fn send(&self, event: &Arc<Event>) -> Result<(), Option<Refusal>> {
        match self.encoded(event) {
            Ok(message) => {
                self.out.send(message).await.map_err(|Gone| None)?;
                self.server.metrics.delivered.inc();
                Ok(())
            }
            Err(FrameError::TooLarge(size)) => {
                let seq = event.seq.unwrap_or_default();
                let message = format!(
                    "the event {seq} has {size} bytes, more than {}",
                    a99_frame::MAX_FRAME_BYTES
                );
                let help = format!("subscribe again after {seq} to pass it over");
                Err(Some(Refusal::new(TOO_LARGE, message).help(help)))
            }
            Err(error) => Err(Some(error.into())),
        }
    }

    async fn send_roster(&self) -> Result<(), Gone> {
        let roster = Roster {
            subscription: self.number,
            participants: self.server.host.roster(self.events.channel()),
        };
        self.out.notify(notices::ROSTER, &roster).await
    }
}
