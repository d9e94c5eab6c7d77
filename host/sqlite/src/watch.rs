//! What stops the work of a connection from outside: the deadline of opening, callers that
//! gave up, and the memory that it takes.

use crate::memory::memory_used;
use crate::task::locked;
use rusqlite::Connection;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Instructions of SQLite between two looks.
pub(crate) const LOOK_EVERY: i32 = 10_000;

/// Bytes of SQLite's memory by which one work may let it grow.
const MAX_GROWTH: u64 = 512 << 20;

/// How long work goes on that others share a transaction with, though its caller gave up:
/// stopping it undoes theirs.
pub(crate) const SHARED: Duration = Duration::from_secs(1);

/// A connection, and what stops its work.
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
    /// When opening must be done.
    until: Option<Instant>,
    /// Set by callers that gave up.
    left: Vec<Arc<AtomicBool>>,
    since: Instant,
    grace: Duration,
    held: u64,
}

impl Watch {
    /// For opening, which ends at a deadline.
    pub(crate) fn until(deadline: Instant) -> Arc<Watch> {
        Arc::new(Watch(Mutex::new(State {
            until: Some(deadline),
            left: Vec::new(),
            since: Instant::now(),
            grace: Duration::ZERO,
            held: memory_used(),
        })))
    }

    /// Work for these callers begins. It goes on without them for as long as `grace` says.
    pub(crate) fn serve(&self, left: Vec<Arc<AtomicBool>>, grace: Duration) {
        *locked(&self.0) = State {
            until: None,
            left,
            since: Instant::now(),
            grace,
            held: memory_used(),
        };
    }

    /// What follows ends by itself.
    pub(crate) fn rest(&self) {
        self.serve(Vec::new(), Duration::ZERO);
    }

    /// Whether nobody waits for a lock any more.
    pub(crate) fn is_over(&self) -> bool {
        let state = locked(&self.0);
        state.is_over()
    }

    /// Whether SQLite has to stop.
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
