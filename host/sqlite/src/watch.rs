//! Interrupts: stops a connection's work at the deadline of opening, for callers that gave up,
//! and at a memory limit.

use crate::memory::memory_used;
use crate::task::locked;
use rusqlite::Connection;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// SQLite virtual-machine instructions between two checks.
pub(crate) const LOOK_EVERY: i32 = 10_000;

/// Bytes by which one job may grow SQLite's memory.
const MAX_GROWTH: u64 = 512 << 20;

/// How long a job continues after its caller gave up, if others share its transaction:
/// interrupting it rolls back theirs too.
pub(crate) const SHARED: Duration = Duration::from_secs(1);

/// A connection with its interrupt state.
pub(crate) struct Link {
    connection: Connection,
    pub(crate) watch: Arc<Watch>,
}

impl Link {
    pub(crate) fn new(connection: Connection, watch: Arc<Watch>) -> Link {
        Link { connection, watch }
    }
}

impl Deref for Link {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Link {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

pub(crate) struct Watch(Mutex<State>);

struct State {
    /// Deadline of opening.
    until: Option<Instant>,
    /// Flags of callers that gave up.
    left: Vec<Arc<AtomicBool>>,
    since: Instant,
    grace: Duration,
    held: u64,
}

impl Watch {
    /// Watch for opening, with a deadline.
    pub(crate) fn until(deadline: Instant) -> Arc<Watch> {
        Arc::new(Watch(Mutex::new(State {
            until: Some(deadline),
            left: Vec::new(),
            since: Instant::now(),
            grace: Duration::ZERO,
            held: memory_used(),
        })))
    }

    /// Starts work for these callers. It continues for `grace` after all have given up.
    pub(crate) fn serve(&self, left: Vec<Arc<AtomicBool>>, grace: Duration) {
        *locked(&self.0) = State {
            until: None,
            left,
            since: Instant::now(),
            grace,
            held: memory_used(),
        };
    }

    /// Disables interrupts: the following work ends by itself.
    pub(crate) fn rest(&self) {
        self.serve(Vec::new(), Duration::ZERO);
    }

    /// True after the deadline of opening, or once all callers gave up.
    pub(crate) fn is_over(&self) -> bool {
        let state = locked(&self.0);
        state.is_over()
    }

    /// True if SQLite must abort the running statement.
    pub(crate) fn must_stop(&self) -> bool {
        let state = locked(&self.0);
        let is_given_up = state.is_over() && state.since.elapsed() >= state.grace;
        is_given_up || memory_used() > state.held.saturating_add(MAX_GROWTH)
    }
}

impl State {
    fn is_over(&self) -> bool {
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        let mut left = self.left.iter();
        is_late || !self.left.is_empty() && left.all(|left| left.load(Ordering::Relaxed))
    }
}
