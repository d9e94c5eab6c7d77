//! Timers of a host: the one that is due next is waited for; who has one that is due wakes.

use super::Inner;
use crate::activation::Signal;
use crate::hub::locked;
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

impl Inner {
    /// Tells agents of timers that are due, and says how long there is nothing to do.
    async fn ring(&self) -> Duration {
        let now = self.shared.now();
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
