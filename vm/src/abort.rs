//! The signal that stops runs from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// Stops runs from outside; clones share the signal.
#[derive(Clone, Debug, Default)]
pub struct AbortSignal(Arc<SignalState>);

#[derive(Debug, Default)]
struct SignalState {
    aborted: AtomicBool,
    /// Tasks that wait on the host, by ticket.
    wakers: Mutex<Vec<(u64, Waker)>>,
    tickets: std::sync::atomic::AtomicU64,
}

impl AbortSignal {
    /// Creates a signal that is not set.
    pub fn new() -> AbortSignal {
        AbortSignal::default()
    }

    /// Sets the signal: runs that carry it end within a millisecond.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut *self.0.wakers.lock().unwrap_or_else(|e| e.into_inner()));
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Whether the signal is set.
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    pub(crate) fn listen(&self, ticket: u64, waker: &Waker) {
        let mut wakers = self.0.wakers.lock().unwrap_or_else(|e| e.into_inner());
        match wakers.iter_mut().find(|(t, _)| *t == ticket) {
            Some((_, old)) => old.clone_from(waker),
            None => wakers.push((ticket, waker.clone())),
        }
    }

    pub(crate) fn forget(&self, ticket: u64) {
        let mut wakers = self.0.wakers.lock().unwrap_or_else(|e| e.into_inner());
        wakers.retain(|(t, _)| *t != ticket);
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.0.tickets.fetch_add(1, Ordering::Relaxed)
    }
}
