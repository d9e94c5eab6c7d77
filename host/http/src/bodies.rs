//! Bodies under way: what all of a tenant's take together, and turns at reading JSON
//! (security N08).
//!
//! A run counts what it was answered. Before that, twenty answers at the limit of one
//! would be the process's memory and nobody's.

use crate::error::{FetchCode, FetchError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bodies of one fetch's answers.
#[derive(Debug)]
pub(crate) struct Bodies {
    held: AtomicUsize,
    limit: usize,
    turns: Arc<Semaphore>,
}

impl Bodies {
    pub(crate) fn new(limit: usize) -> Bodies {
        Bodies {
            held: AtomicUsize::new(0),
            limit,
            turns: Arc::new(Semaphore::new(1)),
        }
    }

    /// A body that begins.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held {
            bodies: self,
            bytes: 0,
        }
    }

    /// Waits until no other body is read.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed, which is the one way not to get a permit.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }
}

/// What one body takes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held<'b> {
    bodies: &'b Bodies,
    bytes: usize,
}

impl Held<'_> {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// It takes as much as this now.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), FetchError> {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.bodies.held.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        if before.saturating_add(more) <= self.bodies.limit {
            return Ok(());
        }
        let most = self.bodies.limit;
        let text = format!(
            "answers that are under way at once are larger than {most} bytes together; \
             fetch fewer at a time"
        );
        Err(FetchError::new(FetchCode::BodyTooLarge, text))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.bodies.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
