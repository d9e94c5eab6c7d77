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

    /// Waits for work, and takes `most` of what is there; nothing once the queue is
    /// closed and empty.
    pub(crate) fn take(&self, most: usize) -> Vec<Box<dyn Job>> {
        let mut inside = locked(&self.inside);
        while inside.jobs.is_empty() && !inside.is_closed {
            inside = self
                .changed
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let count = inside.jobs.len().min(most);
        inside.jobs.drain(..count).collect()
    }

    /// Lets no more work in.
    pub(crate) fn close(&self) {
        locked(&self.inside).is_closed = true;
        self.changed.notify_all();
    }
}
