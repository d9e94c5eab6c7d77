//! Channels in process: subscribers, and the newest events in memory.
//!
//! A reader has a cursor and asks for the events after it. The newest events come from memory,
//! older ones from the store, without gap or overlap. A slow reader delays no other.

mod recent;

use crate::bus::Participant;
use crate::kill;
use crate::metrics::Metrics;
use crate::publishing::Group;
use crate::trace::{Tracer, fail_all};
use crate::transport::{Passing, Remote, Transport};
use a99_runtime_engine::{
    Appended, ChannelStore, Event, EventKind, Fence, Millis, NewEvent, Seq, StoreCode, StoreError,
};
use futures_util::StreamExt;
use recent::Recent;
pub(crate) use recent::size;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, watch};

/// Ephemeral events that wait for a reader; beyond it the reader loses the oldest.
const EPHEMERAL: usize = 256;

/// Channels without readers that stay in memory; clients may ask for any name.
const UNUSED: usize = 1_024;

/// Pause before a channel that a transport watches is watched again.
const WATCH_PAUSE: Duration = Duration::from_millis(500);

/// How long the first reader of a channel waits for its roster.
const ROSTER_WAIT: Duration = Duration::from_secs(1);

/// How often a quiet watch looks whether the host is gone.
const WATCH_LOOK: Duration = Duration::from_secs(5);

/// Locks a mutex whose data stays valid whatever a panicking holder did.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Callback for each appended or ephemeral event.
pub(crate) type Listener = Box<dyn Fn(&str, &Arc<Event>) + Send + Sync>;

/// All channels of a host.
pub(crate) struct Hub {
    store: Arc<dyn ChannelStore>,
    channels: Mutex<HashMap<String, Arc<Channel>>>,
    /// Number of channels at which unused ones are forgotten.
    sweep_at: AtomicUsize,
    /// Approximate bytes of the newest events of all channels.
    bytes: Arc<AtomicUsize>,
    listener: Listener,
    pub(crate) runtime: Handle,
    pub(crate) group: Mutex<Group>,
    /// Where the channels are, if another process has them.
    remote: Option<Arc<Remote>>,
    metrics: Arc<Metrics>,
    pub(crate) tracer: Tracer,
}

/// A channel's state in memory.
pub(crate) struct Channel {
    head: watch::Sender<Seq>,
    recent: Mutex<Recent>,
    passing: broadcast::Sender<Ephemeral>,
    /// Participants of all hosts, and whether a transport watches the channel.
    roster: watch::Sender<Vec<Participant>>,
    is_watched: AtomicBool,
}

/// An ephemeral event.
#[derive(Clone, Debug)]
pub(crate) struct Ephemeral {
    /// The sequence number of the last logged event before it.
    pub(crate) after: Seq,
    pub(crate) event: Arc<Event>,
}

impl Channel {
    fn new(all_bytes: &Arc<AtomicUsize>) -> Channel {
        Channel {
            head: watch::Sender::new(0),
            recent: Mutex::new(Recent {
                all_bytes: Arc::clone(all_bytes),
                ..Recent::default()
            }),
            passing: broadcast::Sender::new(EPHEMERAL),
            roster: watch::Sender::new(Vec::new()),
            is_watched: AtomicBool::new(false),
        }
    }

    /// Rosters that a transport reports.
    pub(crate) fn rosters(&self) -> watch::Receiver<Vec<Participant>> {
        self.roster.subscribe()
    }

    /// Adds a logged event; events may arrive out of order.
    fn take(&self, event: Arc<Event>) {
        let Some(seq) = event.seq else { return };
        let mut recent = locked(&self.recent);
        if seq <= *self.head.borrow() {
            return;
        }
        recent.early.insert(seq, event);
        if recent.is_known {
            self.follow(&mut recent, 0);
        }
    }

    /// Sets the head as the store has it.
    fn know(&self, head: Seq) {
        let mut recent = locked(&self.recent);
        recent.is_known = true;
        self.follow(&mut recent, head);
    }

    /// Advances the head along consecutive events; the lock keeps it monotonic.
    fn follow(&self, recent: &mut Recent, least: Seq) {
        let mut head = least.max(*self.head.borrow());
        if least == head {
            recent.early = recent.early.split_off(&(head + 1));
        }
        if least > *self.head.borrow() {
            // The gap was not announced here: those events are in the store only.
            recent.clear();
        }
        while let Some(next) = recent.early.remove(&(head + 1)) {
            recent.push(next);
            head += 1;
        }
        if self.head.receiver_count() == 0 {
            recent.shrink();
        }
        self.head
            .send_if_modified(|old| std::mem::replace(old, head) != head);
    }

    /// The sequence number of the last event.
    pub(crate) fn head(&self) -> Seq {
        *self.head.borrow()
    }

    /// A reader that waits for changes of the head.
    pub(crate) fn reader(self: &Arc<Channel>) -> Reader {
        Reader {
            channel: Arc::clone(self),
            head: Some(self.head.subscribe()),
        }
    }

    /// Ephemeral events from now on.
    pub(crate) fn passing(&self) -> broadcast::Receiver<Ephemeral> {
        self.passing.subscribe()
    }

    /// Events in memory after a sequence number; `None` if the next one is not in memory.
    fn recent(&self, after: Seq, most: usize) -> Option<Vec<Arc<Event>>> {
        let recent = locked(&self.recent);
        let first = recent.events.front()?.seq?;
        let skip = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        let found: Vec<_> = recent
            .events
            .iter()
            .skip(skip)
            .take(most)
            .cloned()
            .collect();
        (!found.is_empty()).then_some(found)
    }
}

/// A reader of a channel. A channel without readers keeps few events in memory.
pub(crate) struct Reader {
    pub(crate) channel: Arc<Channel>,
    /// Present until the reader is dropped.
    head: Option<watch::Receiver<Seq>>,
}

impl Reader {
    /// Waits until the head differs from the last [`Reader::look`].
    pub(crate) async fn changed(&mut self) {
        if let Some(head) = &mut self.head {
            // Never fails: the channel held here owns the sender.
            drop(head.changed().await);
        }
    }

    /// The current head, marked as seen.
    pub(crate) fn look(&mut self) -> Seq {
        match &mut self.head {
            Some(head) => *head.borrow_and_update(),
            None => 0,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut recent = locked(&self.channel.recent);
        self.head = None;
        if self.channel.head.receiver_count() == 0 {
            recent.shrink();
        }
    }
}

impl Hub {
    pub(crate) fn new(
        store: Arc<dyn ChannelStore>,
        remote: Option<Arc<Remote>>,
        listener: Listener,
        metrics: Arc<Metrics>,
        tracer: Tracer,
    ) -> Hub {
        Hub {
            tracer,
            metrics,
            remote,
            store,
            channels: Mutex::default(),
            sweep_at: AtomicUsize::new(UNUSED),
            bytes: Arc::default(),
            listener,
            runtime: Handle::current(),
            group: Mutex::default(),
        }
    }

    /// The head of a channel that is in memory.
    pub(crate) fn known_head(&self, name: &str) -> Option<Seq> {
        locked(&self.channels).get(name).map(|there| there.head())
    }

    pub(crate) fn store(&self) -> &Arc<dyn ChannelStore> {
        &self.store
    }

    pub(crate) fn remote(&self) -> Option<&Arc<Remote>> {
        self.remote.as_ref()
    }

    /// The participants of a channel on all hosts, as the transport reported them last.
    pub(crate) fn remote_roster(&self, name: &str) -> Vec<Participant> {
        let channel = locked(&self.channels).get(name).cloned();
        channel.map_or_else(Vec::new, |channel| channel.roster.borrow().clone())
    }

    /// A channel; its first use reads the head from the store.
    pub(crate) async fn channel(self: &Arc<Hub>, name: &str) -> Result<Arc<Channel>, StoreError> {
        let channel = {
            let mut channels = locked(&self.channels);
            match channels.get(name) {
                Some(channel) => Arc::clone(channel),
                None => {
                    if channels.len() >= self.sweep_at.load(Ordering::Relaxed) {
                        forget_unused(&mut channels);
                        let next = (channels.len() * 2).max(UNUSED);
                        self.sweep_at.store(next, Ordering::Relaxed);
                    }
                    let channel = Arc::new(Channel::new(&self.bytes));
                    channels.insert(name.to_owned(), Arc::clone(&channel));
                    channel
                }
            }
        };
        if !locked(&channel.recent).is_known {
            channel.know(self.store.head(name).await?);
        }
        if let Some(remote) = &self.remote
            && !channel.is_watched.swap(true, Ordering::AcqRel)
        {
            let mut rosters = channel.rosters();
            let (hub, transport) = (Arc::downgrade(self), Arc::clone(&remote.transport));
            let (name, channel) = (name.to_owned(), Arc::clone(&channel));
            self.runtime
                .spawn(watch_channel(hub, transport, name, channel));
            // The first turns find who is there.
            drop(tokio::time::timeout(ROSTER_WAIT, rosters.changed()).await);
        }
        Ok(channel)
    }

    /// Appends events and notifies readers. It completes even if the future is dropped, so that
    /// every logged event is announced.
    pub(crate) async fn append(
        self: &Arc<Hub>,
        events: Vec<NewEvent>,
        fence: Option<Fence>,
        now: Millis,
    ) -> Result<Vec<Appended>, StoreError> {
        let hub = Arc::clone(self);
        let work = self.runtime.spawn(async move {
            if let Some(remote) = &hub.remote {
                // What earlier turns sent comes first.
                remote.drain().await?;
            }
            kill::point("append.before");
            let spans = hub.tracer.of_append(&events);
            let appended = hub.store.append(events, fence, now).await;
            fail_all(&spans, &appended);
            let appended = appended?;
            kill::point("append.after");
            hub.tell(&appended);
            Ok(appended)
        });
        work.await
            .unwrap_or_else(|fault| Err(StoreError::new(StoreCode::InDoubt, fault.to_string())))
    }

    /// Reads a channel's head again after an append whose outcome is in doubt.
    pub(crate) async fn look_again(self: &Arc<Hub>, name: &str) -> Result<(), StoreError> {
        let channel = self.channel(name).await?;
        channel.know(self.store.head(name).await?);
        Ok(())
    }

    /// Records that another process appended to a channel.
    pub(crate) fn goes_on(&self, name: &str, head: Seq) {
        let channel = locked(&self.channels).get(name).cloned();
        if let Some(channel) = channel {
            channel.know(head);
        }
    }

    /// Announces the events that a commit appended.
    pub(crate) fn tell<'a>(&self, appended: impl IntoIterator<Item = &'a Appended>) {
        if let Some(remote) = &self.remote {
            remote.committed();
        }
        for one in appended {
            self.metrics.appended(std::slice::from_ref(one));
            if !one.is_new {
                continue;
            }
            let channel = locked(&self.channels).get(&one.channel).cloned();
            self.hear(&one.channel, channel.as_deref(), &one.event);
        }
    }

    /// Gives an event of the log to the host and to the readers of its channel.
    fn hear(&self, name: &str, channel: Option<&Channel>, event: &Arc<Event>) {
        // A reader of news of a participant finds it in the roster.
        let is_heard = !event.body.wakes();
        if is_heard {
            (self.listener)(name, event);
        }
        if let Some(channel) = channel {
            channel.take(Arc::clone(event));
        }
        // A sleeping agent wakes after the event can be read.
        if !is_heard {
            (self.listener)(name, event);
        }
    }

    /// Sends an ephemeral event.
    pub(crate) async fn pass(
        self: &Arc<Hub>,
        channel: &str,
        event: Event,
    ) -> Result<(), StoreError> {
        if let Some(fault) = event.body.fault() {
            return Err(StoreError::new(StoreCode::Input, fault));
        }
        let event = Arc::new(Event {
            kind: EventKind::Ephemeral,
            seq: None,
            ..event
        });
        if let Some(remote) = &self.remote {
            // It comes back with those of others.
            let event = Event::clone(&event);
            let passing = NewEvent {
                channel: channel.to_owned(),
                event,
            };
            return remote.transport.pass(passing).await.map_err(|error| {
                let code = match error.is_final() {
                    true => StoreCode::Input,
                    false => StoreCode::Unavailable,
                };
                StoreError::new(code, error.to_string())
            });
        }
        let there = self.channel(channel).await?;
        self.present(channel, &there, event);
        Ok(())
    }

    /// Gives an ephemeral event to the readers of a channel.
    fn present(&self, name: &str, channel: &Channel, event: Arc<Event>) {
        // Without receivers the event is dropped.
        let passing = Ephemeral {
            after: channel.head(),
            event: Arc::clone(&event),
        };
        drop(channel.passing.send(passing));
        (self.listener)(name, &event);
    }

    /// Takes what a transport reports of a channel.
    fn report(&self, name: &str, channel: &Channel, passing: Passing) {
        match passing {
            Passing::Event(event) if event.seq.is_some() => {
                self.hear(name, Some(channel), &event);
            }
            Passing::Event(event) => self.present(name, channel, event),
            Passing::Roster(roster) => drop(channel.roster.send_replace(roster)),
        }
    }

    /// Events after a sequence number, in order and without gaps; empty at the head.
    pub(crate) async fn read(
        &self,
        name: &str,
        channel: &Channel,
        after: Seq,
        most: usize,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        if after >= channel.head() {
            return Ok(Vec::new());
        }
        match channel.recent(after, most) {
            Some(events) => Ok(events),
            None => self.store.read(name, after, most.min(500)).await,
        }
    }
}

/// Forgets channels that no reader has. The store still has them; clones are made under the lock
/// of the map, so that a channel with one owner is unused.
fn forget_unused(channels: &mut HashMap<String, Arc<Channel>>) {
    channels.retain(|_, channel| {
        let is_used = Arc::strong_count(channel) > 1;
        if !is_used {
            locked(&channel.recent).clear();
        }
        is_used
    });
}

/// Watches a channel until the host is gone.
async fn watch_channel(
    hub: Weak<Hub>,
    transport: Arc<dyn Transport>,
    name: String,
    channel: Arc<Channel>,
) {
    while hub.strong_count() > 0 {
        if let Ok(mut passing) = transport.watch(&name, channel.head()).await {
            while hub.strong_count() > 0 {
                match tokio::time::timeout(WATCH_LOOK, passing.next()).await {
                    Ok(Some(passing)) => {
                        let Some(hub) = hub.upgrade() else { return };
                        hub.report(&name, &channel, passing);
                    }
                    Ok(None) => break,
                    Err(_) => {}
                }
            }
        }
        tokio::time::sleep(WATCH_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::recent::{ALL_RECENT_BYTES, UNREAD_BYTES};
    use super::*;
    use a99_runtime_engine::{Body, Message, Sender, Uuid};

    fn event(seq: Seq) -> Arc<Event> {
        let body = Body::Message(Message::text("x".repeat(1_000)));
        let id = Uuid::from_u128(u128::from(seq));
        let sender = Arc::new(Sender::default());
        let mut event = NewEvent::new("c", id, sender, 0, body).event;
        event.seq = Some(seq);
        Arc::new(event)
    }

    fn told(bytes: &Arc<AtomicUsize>, events: Seq) -> Arc<Channel> {
        let channel = Arc::new(Channel::new(bytes));
        channel.know(0);
        (1..=events).for_each(|seq| channel.take(event(seq)));
        channel
    }

    #[test]
    fn little_is_kept_of_a_channel_that_nobody_reads() {
        let bytes = Arc::default();
        let channel = told(&bytes, 100);
        assert!((1..=UNREAD_BYTES).contains(&bytes.load(Ordering::Relaxed)));
        let last = channel.recent(99, 10).expect("the last one");
        assert_eq!(last[0].seq, Some(100));
        let reader = channel.reader();
        (101..=200).for_each(|seq| channel.take(event(seq)));
        assert_eq!(channel.recent(100, 500).expect("all").len(), 100);
        assert!(bytes.load(Ordering::Relaxed) > 100_000);
        drop(reader);
        assert!(bytes.load(Ordering::Relaxed) <= UNREAD_BYTES);
    }

    #[test]
    fn channels_without_readers_are_forgotten() {
        let bytes = Arc::default();
        let mut channels = HashMap::new();
        channels.insert("unused".to_owned(), told(&bytes, 3));
        channels.insert("read".to_owned(), told(&bytes, 3));
        let reader = channels["read"].reader();
        forget_unused(&mut channels);
        assert_eq!(channels.keys().collect::<Vec<_>>(), ["read"]);
        drop(reader);
        forget_unused(&mut channels);
        assert_eq!((channels.len(), bytes.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn all_channels_together_keep_a_bounded_part() {
        let bytes = Arc::default();
        let readers: Vec<Reader> = (0..100)
            .map(|_| {
                let channel = Arc::new(Channel::new(&bytes));
                channel.know(0);
                let reader = channel.reader();
                (1..=1_000).for_each(|seq| channel.take(event(seq)));
                // The newest is there however much others have.
                assert_eq!(channel.recent(999, 10).expect("the last one").len(), 1);
                reader
            })
            .collect();
        let most = ALL_RECENT_BYTES + readers.len() * 2_000;
        assert!(bytes.load(Ordering::Relaxed) <= most);
        drop(readers);
        assert!(bytes.load(Ordering::Relaxed) <= 100 * UNREAD_BYTES);
    }
}
