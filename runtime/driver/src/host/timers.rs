//! Timers of a host: it sleeps until the next due time and wakes the agents concerned.

use super::Inner;
use crate::activation::Signal;
use crate::hub::locked;
use a99_runtime_engine::{Fence, Millis, TimerChange, TimerRow, Trigger, TurnCommit};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Page size of timer reads.
const PAGE: usize = 1_024;

/// Interval after which signalled due timers are checked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Interval of checks without any timer.
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
            // `Notify` keeps a permit: a change before this wait is not missed.
            drop(tokio::time::timeout(wait, changed.notified()).await);
        }
    });
}

/// A timer after the clock was set back, if that changes it.
fn turned_back(row: &TimerRow, now: Millis) -> Option<TimerRow> {
    let (due, set_at) = match (&row.cron, row.set_at) {
        (Some(cron), _) => {
            let after = |time| crate::cron::next(cron, row.zone.as_deref(), time).ok();
            // A timer that waits for the occurrence after the next may have fired already,
            // before the clock was set back a little.
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
    /// Adjusts timers after the clock was set back and when the host starts. Cron timers that
    /// skip their next occurrence get it, and timers set from a future moment are set from now
    /// on. Gives whether all were checked: a turn of an awake agent may be handling one.
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

    /// Signals due timers to agents, and gives the time until the next one.
    async fn ring(&self) -> Duration {
        let now = self.shared.now();
        let before = self.rang_at.swap(now, Ordering::AcqRel);
        if now < before && !self.turn_back(now).await {
            // Timers of awake agents are checked when they sleep.
            self.rang_at.store(Millis::MAX, Ordering::Release);
        }
        // Include timers due soon: the next one is among them, even if overdue timers are still
        // pending.
        let soon = now.saturating_add(u64::try_from(AGAIN.as_millis()).unwrap_or(u64::MAX));
        let Ok(soon) = self.shared.agents().timers_due(soon, PAGE).await else {
            return AGAIN;
        };
        let next = soon.iter().find(|(_, row)| row.due > now);
        let next = next.map(|(_, row)| Duration::from_millis(row.due - now));
        for (key, row) in soon.into_iter().filter(|(_, row)| row.due <= now) {
            self.wake(&key);
            // Agents ignore a timer that was already signalled.
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
