//! Bodies in flight: the memory of a tenant's answers, and turns at parsing JSON (security
//! N08).
//!
//! A run is charged for its answers only when they arrive. Until then, this limit keeps twenty
//! answers at their size limit from exhausting the process.

use crate::error::{FetchCode, FetchError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bodies of one tenant's answers.
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

    /// Registers a new body.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held {
            bodies: self,
            bytes: 0,
        }
    }

    /// Waits until no other body is parsed.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed, the only cause of an error.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }
}

/// The memory of one body; dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct Held<'b> {
    bodies: &'b Bodies,
    bytes: usize,
}

impl Held<'_> {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Raises the memory of the body to `bytes`.
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
