//! Shards of a host that shares its store: it renews their lease, stops the agents of those that
//! it lost, takes up those that became free, and looks for events that other hosts appended.

use super::Inner;
use crate::activation::Signal;
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::log::LogLevel;
use a99_capabilities::Clock;
use a99_runtime_engine::{
    AgentKey, AgentStore, Claim, Epoch, Millis, Seq, Shards, StoreCode, StoreError, TakeOver,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

/// Shortest lease: renewals have to fit into it.
const MIN_LEASE: Duration = Duration::from_millis(300);

/// How often a host looks for events that others appended.
const LOOK: Duration = Duration::from_millis(250);

/// The part of a store's agents that a host runs, beside other hosts on the same store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostShards {
    /// The shards that the host wants. It starts with those that it gets, and takes the others
    /// up when they are released or their lease ends.
    pub shards: Shards,
    /// The host's name: another host on the store has another one. A host that starts under the
    /// name of a killed one takes its shards at once.
    pub owner: String,
    /// How long the shards of a killed host wait for a host of another name; at least 300
    /// milliseconds. The host renews it three times as often.
    pub lease: Duration,
    /// Whether the start takes the shards of every owner at once, living ones included, which then
    /// stop to run their agents.
    pub takes_over: bool,
}

impl HostShards {
    /// Shards of a host, with a lease of 15 seconds.
    pub fn new(owner: impl Into<String>, shards: Shards) -> HostShards {
        HostShards {
            shards,
            owner: owner.into(),
            lease: Duration::from_secs(15),
            takes_over: false,
        }
    }

    fn claim(&self, clock: &dyn Clock, shards: Shards, take_over: TakeOver) -> Claim {
        let now = crate::shared::now(clock);
        Claim {
            shards,
            owner: self.owner.clone(),
            until: Some(self.until(now)),
            take_over,
            now,
        }
    }

    fn until(&self, now: Millis) -> Millis {
        let lease = self.lease.max(MIN_LEASE).as_millis();
        now.saturating_add(Millis::try_from(lease).unwrap_or(Millis::MAX))
    }
}

/// What a host has of its store.
pub(super) struct Holding {
    wanted: HostShards,
    /// Rings when a write was refused: the lease is looked at now.
    refused: Notify,
    /// Serialises renewals and the release at the end.
    gate: Mutex<()>,
    /// When the last renewal that succeeded began.
    renewed: std::sync::Mutex<Instant>,
    /// The shards whose agents the host runs.
    followed: std::sync::Mutex<Shards>,
}

impl Holding {
    /// Acquires the shards of a starting host. Without a wish it has all of a store that is not
    /// shared.
    pub(super) async fn start(
        wanted: Option<HostShards>,
        agents: &dyn AgentStore,
        clock: &dyn Clock,
    ) -> Result<Option<Holding>, AgentError> {
        let Some(wanted) = wanted else {
            return match agents.owned().is_empty() {
                false => Ok(None),
                true => Err(AgentError::new(
                    codes::NOT_OWNED,
                    "the store is shared and this host owns no shards: name them \
                     (HostBuilder::shards)",
                )),
            };
        };
        let take_over = match wanted.takes_over {
            true => TakeOver::Always,
            false => TakeOver::SameName,
        };
        let began = Instant::now();
        // A handle that owns all leaves the rest to others.
        agents.release(agents.owned() - wanted.shards).await?;
        let claim = wanted.claim(clock, wanted.shards, take_over);
        agents.acquire(claim).await?;
        Ok(Some(Holding {
            wanted,
            refused: Notify::new(),
            gate: Mutex::new(()),
            renewed: std::sync::Mutex::new(began),
            followed: std::sync::Mutex::new(agents.owned()),
        }))
    }

    /// Records that the store refused a write of this host.
    pub(super) fn refused(&self) {
        self.refused.notify_one();
    }

    /// The pause between renewals.
    fn pause(&self) -> Duration {
        self.wanted.lease.max(MIN_LEASE) / 3
    }
}

/// Keeps the lease, and looks for what other hosts appended, until the host stops.
pub(super) fn spawn(inner: &Arc<Inner>) {
    let Some(holding) = &inner.holding else {
        return;
    };
    let (weak, kept) = (Arc::downgrade(inner), Arc::clone(holding));
    inner.runtime.spawn(async move {
        loop {
            // A permit is kept: a refusal before this wait is not missed.
            drop(tokio::time::timeout(kept.pause(), kept.refused.notified()).await);
            let Some(inner) = weak.upgrade() else { return };
            if !inner.renew(&kept).await {
                return;
            }
        }
    });
    if inner.shared.hub().remote().is_some() {
        // The transport reports them.
        return;
    }
    let weak = Arc::downgrade(inner);
    inner.runtime.spawn(async move {
        let mut heads = HashMap::new();
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(inner) = weak.upgrade() else { return };
            if inner.is_stopping.load(Ordering::Acquire) {
                return;
            }
            // A fault of reading shows wherever else the host reads.
            drop(inner.look(&mut heads).await);
        }
    });
}

impl Inner {
    /// Refuses an agent whose shard another host has.
    pub(super) fn check_owned(&self, key: &AgentKey) -> Result<(), AgentError> {
        if self.shared.agents().epoch(key) != Epoch(0) {
            return Ok(());
        }
        let message = format!(
            "the shard {} of {key} is another host's: ask that one",
            key.shard()
        );
        Err(AgentError::new(codes::NOT_OWNED, message))
    }

    /// Renews the lease and takes up free shards. Gives whether the host goes on.
    async fn renew(self: &Arc<Inner>, holding: &Arc<Holding>) -> bool {
        let _one = holding.gate.lock().await;
        if self.is_stopping.load(Ordering::Acquire) {
            return false;
        }
        if let Err(error) = self.try_renew(holding).await {
            let code = error.code().name();
            let message = format!("the lease of the shards is not renewed: {error}");
            self.shared.log.say(LogLevel::Warn, None, code, &message);
        }
        self.follow_shards(holding);
        true
    }

    async fn try_renew(&self, holding: &Holding) -> Result<(), StoreError> {
        let (agents, wanted) = (self.shared.agents(), &holding.wanted);
        let (began, lease) = (Instant::now(), wanted.lease.max(MIN_LEASE));
        let renewing = agents.renew(wanted.until(self.shared.now()));
        let renewed = tokio::time::timeout(lease, renewing).await;
        let renewed = renewed.unwrap_or_else(|_| {
            let message = "the store did not answer within the lease";
            Err(StoreError::new(StoreCode::Unavailable, message))
        });
        match renewed {
            Ok(_) => *locked(&holding.renewed) = began,
            Err(error) => {
                // Others may have the shards by now. This clock has no jumps.
                if locked(&holding.renewed).elapsed() >= lease {
                    let releasing = agents.release(agents.owned());
                    drop(tokio::time::timeout(MIN_LEASE, releasing).await);
                }
                return Err(error);
            }
        }
        let missing = wanted.shards - agents.owned();
        if !missing.is_empty() {
            let claim = wanted.claim(&*self.shared.clock, missing, TakeOver::Never);
            agents.acquire(claim).await?;
        }
        Ok(())
    }

    /// Stops agents of lost shards, and takes up those of new ones.
    fn follow_shards(self: &Arc<Inner>, holding: &Arc<Holding>) {
        let owned = self.shared.agents().owned();
        let before = std::mem::replace(&mut *locked(&holding.followed), owned);
        let (lost, gained) = (before - owned, owned - before);
        let keys = locked(&self.slots).keys().into_iter();
        let gone: Vec<AgentKey> = keys.filter(|key| !owned.contains(key.shard())).collect();
        for key in &gone {
            let signals = locked(&self.slots).remove(key);
            // The activation may have ended already.
            if let Some(signals) = signals {
                drop(signals.send(Signal::Lost));
            }
        }
        if !lost.is_empty() {
            let count = gone.len();
            let message = format!("the shards {lost} are lost: {count} agents end here");
            let log = &self.shared.log;
            log.say(LogLevel::Error, None, codes::SHARD_LOST, &message);
        }
        if gone.is_empty() && gained.is_empty() {
            return;
        }
        self.ended.send_modify(|n| *n += 1);
        // Slow channels do not delay the next renewal.
        let (inner, holding) = (Arc::clone(self), Arc::clone(holding));
        self.runtime.spawn(async move {
            if let Some(remote) = inner.shared.hub().remote() {
                for key in &gone {
                    drop(remote.transport.leave(key).await);
                }
            }
            if let Err(error) = inner.take_up(gained).await {
                // The next renewal tries again.
                let mut followed = locked(&holding.followed);
                *followed = *followed - gained;
                let message = format!("agents of the shards {gained} wait: {error}");
                let log = &inner.shared.log;
                log.say(LogLevel::Error, None, error.code(), &message);
            }
        });
    }

    /// Adds the agents of new shards, and wakes those with pending work.
    async fn take_up(&self, gained: Shards) -> Result<(), AgentError> {
        let agents = self.shared.agents();
        let mut new = Vec::new();
        {
            // An invitation adds its agent itself.
            let _gate = self.membership.lock().await;
            let registered = agents.registrations().await?.into_iter();
            let registered = registered.filter(|one| gained.contains(one.key.shard()));
            let cut_off = agents.was_cut_off();
            for registration in registered {
                let key = registration.key.clone();
                let was_cut_off = cut_off.contains(key.shard());
                let mut slots = locked(&self.slots);
                if slots.add(registration, was_cut_off) {
                    new.push(key);
                }
            }
        }
        if let Some(remote) = self.shared.hub().remote() {
            // Their last events may still be in the outbox.
            remote.committed();
        }
        for key in &new {
            self.join_or_say(key).await;
        }
        self.timers_changed.notify_one();
        self.catch_up().await
    }

    /// Wakes readers and agents of channels to which others appended.
    async fn look(&self, heads: &mut HashMap<String, Seq>) -> Result<(), AgentError> {
        let hub = self.shared.hub();
        let is_first = heads.is_empty();
        for (channel, head) in hub.store().channels().await? {
            if heads.get(&channel) == Some(&head) {
                continue;
            }
            hub.goes_on(&channel, head);
            let there = match is_first {
                true => Vec::new(),
                false => locked(&self.slots).of_channel(&channel),
            };
            for (key, _) in there {
                let is_awake = locked(&self.slots).is_awake(&key);
                if !is_awake && self.is_behind(&key).await {
                    self.wake(&key);
                }
            }
            heads.insert(channel, head);
        }
        if is_first && let Err(error) = self.catch_up().await {
            heads.clear();
            return Err(error);
        }
        Ok(())
    }

    /// Gives the shards back when the host has stopped.
    pub(super) async fn give_back(&self) -> Result<(), StoreError> {
        let Some(holding) = &self.holding else {
            return Ok(());
        };
        let _one = holding.gate.lock().await;
        let agents = self.shared.agents();
        agents.release(agents.owned()).await
    }
}
