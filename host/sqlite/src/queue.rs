//! Queues of work: one for the thread that writes, one for those that read.

use crate::task::{Job, locked};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Default)]
pub(crate) struct Queue {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    jobs: VecDeque<Box<dyn Job>>,
    /// Whether what was taken last may not be done yet.
    is_taken: bool,
    is_closed: bool,
}

impl Queue {
    /// Adds work; gives it back if the queue was closed.
    pub(crate) fn push(&self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        let mut inside = locked(&self.inside);
        if inside.is_closed {
            return Err(job);
        }
        inside.jobs.push_back(job);
        drop(inside);
        self.changed.notify_one();
        Ok(())
    }

    /// Whether all that was added is done and more may be: what is done then comes after it.
    /// For queues that one thread takes from.
    pub(crate) fn is_idle(&self) -> bool {
        let inside = locked(&self.inside);
        inside.jobs.is_empty() && !inside.is_taken && !inside.is_closed
    }

    /// Waits for work, and takes `most` of what is there; nothing once the queue is
    /// closed and empty. Whoever comes again is done with what it took before.
    pub(crate) fn take(&self, most: usize) -> Vec<Box<dyn Job>> {
        let mut inside = locked(&self.inside);
        inside.is_taken = false;
        while inside.jobs.is_empty() && !inside.is_closed {
            inside = self
                .changed
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let count = inside.jobs.len().min(most);
        inside.is_taken = count > 0;
        inside.jobs.drain(..count).collect()
    }

    /// Lets no more work in.
    pub(crate) fn close(&self) {
        locked(&self.inside).is_closed = true;
        self.changed.notify_all();
    }
}
