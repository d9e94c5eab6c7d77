//! Timers of a host: the one that is due next is waited for; who has one that is due wakes.

use super::Inner;
use crate::activation::Signal;
use crate::hub::locked;
use a99_runtime_engine::{Fence, Millis, TimerChange, TimerRow, Trigger, TurnCommit};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Timers that are looked at together.
const PAGE: usize = 1_024;

/// Timers that are due and were told are looked at again after this time.
const AGAIN: Duration = Duration::from_secs(1);

/// Without any timer the store is looked at this often.
const IDLE: Duration = Duration::from_secs(60);

pub(super) fn spawn(inner: &Arc<Inner>) {
    let weak = Arc::downgrade(inner);
    let changed = Arc::clone(&inner.timers_changed);
    inner.runtime.spawn(async move {
        loop {
            let Some(inner) = weak.upgrade() else { return };
            if inner.is_stopping.load(Ordering::Acquire) {
                return;
            }
            let wait = inner.ring().await;
            drop(inner);
            // Whoever changes a timer, or ends, rings; a ring before this is kept.
            drop(tokio::time::timeout(wait, changed.notified()).await);
        }
    });
}

/// A timer as it is after the clock was set back, if that changes it.
fn turned_back(row: &TimerRow, now: Millis) -> Option<TimerRow> {
    let (due, set_at) = match (&row.cron, row.set_at) {
        (Some(cron), _) => {
            let after = |time| crate::cron::next(cron, row.zone.as_deref(), time).ok();
            // One that waits for the occurrence after the next may have had that one, before
            // the clock was set back a little.
            let next = after(now)?;
            let is_ahead = after(next).is_some_and(|then| then < row.due);
            (is_ahead.then_some(next)?, None)
        }
        (None, Some(set_at)) if set_at > now => {
            let due = now.saturating_add(row.due.saturating_sub(set_at));
            (due, Some(now))
        }
        (None, _) => return None,
    };
    Some(TimerRow {
        due,
        set_at,
        ..row.clone()
    })
}

impl Inner {
    /// After the clock was set back, and when the host starts: cron timers that wait for a later
    /// occurrence than the next get that one, and timers that were set from a moment on that is
    /// still to come are set from now on. Whether all were looked at: a turn of an agent that
    /// is awake may answer to one.
    async fn turn_back(&self, now: Millis) -> bool {
        let agents = self.shared.agents();
        let Ok(all) = agents.timers_due(Millis::MAX, usize::MAX).await else {
            return false;
        };
        let mut is_whole = true;
        for (key, row) in all.into_iter().filter(|(_, row)| row.due > now) {
            let Some(moved) = turned_back(&row, now) else {
                continue;
            };
            if locked(&self.slots).is_awake(&key) {
                is_whole = false;
                continue;
            }
            let fence = Fence {
                epoch: agents.epoch(&key),
                key,
            };
            let mut commit = TurnCommit::new(fence, now);
            commit.trigger = Some(Trigger::Timer(row.name, row.due));
            match row.cron {
                Some(_) => commit.again = Some(moved.due),
                None => commit.timers.push(TimerChange::Set(moved)),
            }
            is_whole &= agents.commit(commit).await.is_ok();
        }
        is_whole
    }

    /// Tells agents of timers that are due, and says how long there is nothing to do.
    async fn ring(&self) -> Duration {
        let now = self.shared.now();
        let before = self.rang_at.swap(now, Ordering::AcqRel);
        if now < before && !self.turn_back(now).await {
            // Those that are awake are looked at when they sleep.
            self.rang_at.store(Millis::MAX, Ordering::Release);
        }
        // With those that are due soon: the next one is among them, whoever still has one that
        // was due before.
        let soon = now.saturating_add(u64::try_from(AGAIN.as_millis()).unwrap_or(u64::MAX));
        let Ok(soon) = self.shared.agents().timers_due(soon, PAGE).await else {
            return AGAIN;
        };
        let next = soon.iter().find(|(_, row)| row.due > now);
        let next = next.map(|(_, row)| Duration::from_millis(row.due - now));
        for (key, row) in soon.into_iter().filter(|(_, row)| row.due <= now) {
            self.wake(&key);
            // Agents know which they were told already.
            locked(&self.slots).signal(&key, Signal::Timer(row));
        }
        if let Some(next) = next {
            return next;
        }
        match self.shared.agents().next_due().await {
            Ok(Some(at)) if at > now => Duration::from_millis(at - now).min(IDLE),
            Ok(None) => IDLE,
            Ok(Some(_)) | Err(_) => AGAIN,
        }
    }
}
