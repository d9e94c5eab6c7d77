//! Job queues of the writer thread and the reader threads.

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
    /// True while the jobs taken last may be unfinished.
    is_taken: bool,
    is_closed: bool,
}

impl Queue {
    /// Adds a job; returns it if the queue is closed.
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

    /// True if every job is done and the queue is open, so that work done now comes after all
    /// of it. Valid only for queues with one consumer.
    pub(crate) fn is_idle(&self) -> bool {
        let inside = locked(&self.inside);
        inside.jobs.is_empty() && !inside.is_taken && !inside.is_closed
    }

    /// Waits for jobs and takes at most `most`; returns an empty list once the queue is closed
    /// and empty. A repeated call means that the consumer has finished its earlier jobs.
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

    pub(crate) fn close(&self) {
        locked(&self.inside).is_closed = true;
        self.changed.notify_all();
    }
}
