//! Queue of a named sandbox: which commands run, and which wait.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most commands and copies at a time. Each has up to four threads and as many descriptors here.
const MAX_RUNNING: usize = 128;

/// How often to check whether a waiting client has disconnected.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// First-come, first-served queue of one sandbox.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    next: u64,
    waiting: VecDeque<u64>,
    closed: bool,
}

impl State {
    /// Whether the first in the queue may start.
    fn has_room(&self) -> bool {
        self.closed || self.running < MAX_RUNNING
    }
}

/// Permission to run; dropping it lets the next one start.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Queue);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.changed.notify_all();
    }
}

impl Queue {
    /// Waits for permission to run; `None` if the client disconnects first.
    pub(super) fn turn(&self, client: &UnixStream) -> Option<Turn<'_>> {
        let mut state = self.state();
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back(ticket);
        while state.waiting.front() != Some(&ticket) || !state.has_room() {
            let waited = self.changed.wait_timeout(state, CHECK_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if is_gone(client) {
                state.waiting.retain(|waiting| *waiting != ticket);
                self.changed.notify_all();
                return None;
            }
        }
        state.waiting.pop_front();
        state.running += 1;
        // There may be room for the next one, too.
        self.changed.notify_all();
        Some(Turn(self))
    }

    /// Number of waiting clients.
    pub(super) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Wakes all waiting clients; their requests fail at once, because the sandbox has ended.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the peer closed the connection.
fn is_gone(stream: &UnixStream) -> bool {
    use rustix::net::{RecvFlags, recv};
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(stream, &mut [0; 1][..], flags).is_ok_and(|(count, _)| count == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    fn eventually(so: impl Fn() -> bool) {
        while !so() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn s6_commands_beyond_the_most_wait_for_their_turn_in_order() {
        let queue = Arc::new(Queue::default());
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut running: Vec<Turn<'_>> = Vec::new();
        running.extend((0..MAX_RUNNING).map(|_| queue.turn(&ours).unwrap()));
        let (started, order) = channel();
        let threads: Vec<_> = (0..10)
            .map(|number| {
                let (theirs, started) = (Arc::clone(&queue), started.clone());
                let client = ours.try_clone().unwrap();
                let thread = thread::spawn(move || {
                    let turn = theirs.turn(&client).unwrap();
                    started.send(number).unwrap();
                    drop(turn);
                });
                eventually(|| queue.waiting() == number + 1);
                thread
            })
            .collect();
        assert!(order.try_recv().is_err());
        running.pop();
        assert_eq!(
            order.iter().take(10).collect::<Vec<_>>(),
            Vec::from_iter(0..10)
        );
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn s6_a_client_that_goes_leaves_the_queue() {
        let queue = Queue::default();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let _running: Vec<_> = (0..MAX_RUNNING)
            .map(|_| queue.turn(&ours).unwrap())
            .collect();
        drop(theirs);
        assert!(queue.turn(&ours).is_none());
        assert_eq!(queue.waiting(), 0);
        queue.close();
        assert!(queue.turn(&ours).is_some());
    }
}
