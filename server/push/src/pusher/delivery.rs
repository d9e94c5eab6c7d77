//! Delivery to one agent: batches in order, one request at a time, until each is acknowledged.

use super::call::{Failure, now};
use super::file::Dead;
use super::{Agent, Inner, PusherOptions};
use crate::fed::locked;
use crate::wire::{Answer, EVENTS, Events, INIT, Init};
use a99_runtime::{AgentError, AgentKey, Body, Event, Participant, Seq};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Events of a batch, and their approximate bytes.
const MAX_EVENTS: usize = 256;
const MAX_BYTES: usize = 2 << 20;

/// The pause after an error of the channels' store.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The bounds of a pause that a receiver asks for.
const MIN_WAIT: Duration = Duration::from_millis(50);
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// The shortest pause before a request without events, in milliseconds.
const CALL_PAUSE: u64 = 200;

/// When an agent whose timers could not be fired is called again, in milliseconds.
const CALL_AGAIN: u64 = 3_600_000;

/// Pushes to an agent until the task is aborted.
pub(super) async fn serve(inner: Weak<Inner>, agent: Arc<Agent>) {
    let mut attempt = 0;
    while let Some(inner) = inner.upgrade() {
        let pause = match inner.init(&agent).await {
            Ok(()) => break,
            Err(failure) => {
                attempt += 1;
                pause(&inner.options, attempt, failure.retry_after)
            }
        };
        drop(inner);
        tokio::select! {
            () = sleep(pause) => {}
            () = agent.retry.notified() => attempt = 0,
        }
    }
    while let Some(inner) = inner.upgrade() {
        let followed = inner.follow(&agent).await;
        drop(inner);
        if followed.is_err() {
            sleep(STORE_PAUSE).await;
        }
    }
}

/// The pause before the next attempt: doubled each time, and random, so that many agents of one
/// receiver do not come at once.
fn pause(options: &PusherOptions, attempt: u32, wanted: Option<Duration>) -> Duration {
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1).min(16));
    let most = options.first_pause.saturating_mul(doubled);
    let most = most.min(options.max_pause);
    let mut random = [0; 1];
    // Without randomness the pause is the longest.
    let share = match getrandom::fill(&mut random) {
        Ok(()) => 0.5 + f64::from(random[0]) / 512.0,
        Err(_) => 1.0,
    };
    let wanted = wanted.unwrap_or_default().min(MAX_WAIT);
    most.mul_f64(share).max(wanted)
}

/// Events that are sent together.
#[derive(Default)]
struct Batch {
    logged: Vec<Arc<Event>>,
    ephemeral: Vec<Arc<Event>>,
    bytes: usize,
    /// Whether a timer is due.
    rings: bool,
}

impl Batch {
    fn add(&mut self, event: Arc<Event>) {
        self.bytes += serde_json::to_vec(&*event).map_or(0, |json| json.len());
        match event.seq {
            Some(_) => self.logged.push(event),
            None => self.ephemeral.push(event),
        }
    }

    fn has_room(&self) -> bool {
        self.logged.len() + self.ephemeral.len() < MAX_EVENTS && self.bytes < MAX_BYTES
    }

    fn last(&self) -> Option<Seq> {
        self.logged.last()?.seq
    }

    /// Whether the agent is to be called for it.
    fn calls(&self, agent: &Agent) -> bool {
        let row = locked(&agent.row);
        let (me, types) = (
            row.registration.agent.participant(),
            &row.registration.types,
        );
        let is_wanted = |event: &Arc<Event>| {
            event.sender.id != me
                && event.body.wakes()
                && (types.is_empty() || types.iter().any(|name| *name == type_of(&event.body)))
        };
        let others = |event: &Arc<Event>| event.sender.id != me;
        self.rings || self.logged.iter().any(is_wanted) || self.ephemeral.iter().any(others)
    }
}

/// The name of an event's type, as its JSON has it.
fn type_of(body: &Body) -> String {
    let json = serde_json::to_value(body).unwrap_or_default();
    json["type"].as_str().unwrap_or_default().to_owned()
}

impl Inner {
    /// Makes the agent one of its receiver, and a participant of its channel.
    async fn init(&self, agent: &Agent) -> Result<(), Failure> {
        let row = locked(&agent.row).clone();
        let mut participant = row.participant;
        if !row.is_ready {
            let init = Init {
                agent: row.registration.agent.clone(),
                config: row.registration.config,
            };
            let answer = self.call(agent, INIT, &init).await?;
            let head = self.host.channel_store().head(init.agent.channel()).await;
            let mut row = locked(&agent.row);
            row.is_ready = true;
            row.acknowledged = row
                .acknowledged
                .max(answer.checkpoint.min(head.unwrap_or(0)));
            row.wake_at = answer.wake_at;
            row.participant.clone_from(&answer.participant);
            participant = answer.participant;
            self.changed.notify_one();
        }
        if let Some(who) = participant
            && let Err(error) = self.join(&row.registration.agent, who).await
        {
            // It gets its events all the same, but others do not find its handle.
            let failure = (error.code().to_owned(), error.to_string());
            *locked(&agent.last_error) = Some(failure);
        }
        Ok(())
    }

    /// Makes the agent a participant: it stays one while its host sleeps.
    async fn join(&self, key: &AgentKey, who: Participant) -> Result<(), AgentError> {
        let who = Participant {
            id: key.participant(),
            handle: key.handle().to_owned(),
            agent: Some(key.clone()),
            ..who
        };
        let channel = key.channel();
        match self.host.replace_participant(channel, who.clone()).await? {
            true => Ok(()),
            false => self.host.join(channel, who).await,
        }
    }

    /// Pushes events after the last acknowledged one. Returns when that changed otherwise than by
    /// acknowledging what was read.
    async fn follow(&self, agent: &Agent) -> Result<(), AgentError> {
        let (key, acknowledged, ephemeral) = {
            let row = locked(&agent.row);
            let key = row.registration.agent.clone();
            (key, row.acknowledged, row.registration.ephemeral)
        };
        let subscribed = self
            .host
            .subscribe(key.channel(), Some(acknowledged), ephemeral);
        let mut events = subscribed.await?;
        while locked(&agent.row).acknowledged == events.cursor() {
            let mut batch = Batch::default();
            let wake_at = locked(&agent.row).wake_at;
            tokio::select! {
                event = events.next() => batch.add(event?),
                () = until(wake_at) => batch.rings = true,
                () = agent.retry.notified() => continue,
            }
            while batch.has_room() {
                match timeout(Duration::ZERO, events.next()).await {
                    Ok(event) => batch.add(event?),
                    Err(_) => break,
                }
            }
            match batch.calls(agent) {
                true => self.deliver(agent, batch, events.head()).await,
                // Nothing wakes the agent: it reads these events when something does.
                false => self.acknowledge(agent, batch.last(), None),
            }
        }
        Ok(())
    }

    fn acknowledge(&self, agent: &Agent, last: Option<Seq>, answer: Option<&Answer>) {
        let mut row = locked(&agent.row);
        if let Some(last) = last {
            row.acknowledged = row.acknowledged.max(last);
        }
        if let Some(answer) = answer {
            // A receiver may not have itself called without a pause.
            let soon = now().saturating_add(CALL_PAUSE);
            row.wake_at = answer.wake_at.map(|at| at.max(soon));
        }
        self.changed.notify_one();
    }

    /// Sends a batch until it is acknowledged or becomes a dead letter.
    async fn deliver(&self, agent: &Agent, mut batch: Batch, head: Seq) {
        let (mut attempt, began) = (0, Instant::now());
        loop {
            let request = Events {
                agent: agent.key(),
                events: batch.logged.clone(),
                head,
                // At most once.
                ephemeral: std::mem::take(&mut batch.ephemeral),
            };
            let wait = match self.call(agent, EVENTS, &request).await {
                Ok(answer) => match answer.retry_after {
                    None => {
                        let last = batch.last().max(Some(answer.checkpoint.min(head)));
                        self.acknowledge(agent, last, Some(&answer));
                        locked(&agent.row).dead = None;
                        return;
                    }
                    Some(after) => {
                        batch
                            .logged
                            .retain(|event| event.seq > Some(answer.checkpoint));
                        self.acknowledge(agent, None, Some(&answer));
                        attempt = 0;
                        if began.elapsed() >= self.options.max_age {
                            let message = "the turns go on for too long";
                            self.give_up(agent, &batch, "timeout", message, attempt);
                            return;
                        }
                        Duration::from_millis(after).clamp(MIN_WAIT, MAX_WAIT)
                    }
                },
                Err(failure) if failure.is_too_large && batch.logged.len() > 1 => {
                    // The rest is read again.
                    batch.logged.truncate(batch.logged.len() / 2);
                    continue;
                }
                Err(failure) => {
                    attempt += 1;
                    let is_final = failure.is_final || failure.is_too_large;
                    let is_over = attempt >= self.options.max_attempts
                        || began.elapsed() >= self.options.max_age;
                    if is_final || is_over {
                        self.give_up(agent, &batch, &failure.code, &failure.message, attempt);
                        return;
                    }
                    pause(&self.options, attempt, failure.retry_after)
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = agent.retry.notified() => attempt = 0,
            }
        }
    }

    /// Records a batch as a dead letter, and goes on after it.
    fn give_up(&self, agent: &Agent, batch: &Batch, code: &str, message: &str, attempts: u32) {
        let mut row = locked(&agent.row);
        let first = batch.logged.first().and_then(|event| event.seq);
        let first = first.unwrap_or(row.acknowledged.saturating_add(1));
        let last = batch.last().unwrap_or(row.acknowledged);
        let before = row.dead.as_ref().map(|dead| dead.first);
        row.dead = Some(Dead {
            first: before.map_or(first, |before| before.min(first)),
            last,
            code: code.to_owned(),
            message: message.to_owned(),
            attempts,
            at: now(),
        });
        row.acknowledged = row.acknowledged.max(last);
        if row.wake_at.is_some() {
            row.wake_at = Some(now().saturating_add(CALL_AGAIN));
        }
        self.changed.notify_one();
    }
}

/// Waits until a time; without one for ever.
async fn until(time: Option<u64>) {
    match time {
        Some(time) => sleep(Duration::from_millis(time.saturating_sub(now()))).await,
        None => std::future::pending().await,
    }
}
