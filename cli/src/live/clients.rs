//! Connection limits of a host's socket, and eviction of idle clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Most connections at a time.
const MAX_CLIENTS: usize = 64;

/// Most connections that may stay without a limit, such as `logs --follow`.
const MAX_STAYING: usize = 48;

/// Idle timeout between two requests of a client.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// How long a client that does not read its answer is safe from eviction.
const STALLED: Duration = Duration::from_secs(30);

/// How long a new client waits for a place before it is refused.
const ENTERING: Duration = Duration::from_secs(1);

/// The connected clients.
#[derive(Default)]
pub(super) struct Clients {
    inside: Mutex<Inside>,
    /// Notified when a client leaves, or becomes idle.
    changed: Notify,
}

#[derive(Default)]
struct Inside {
    last: u64,
    all: BTreeMap<u64, Client>,
}

#[derive(Default)]
struct Client {
    /// When the client may be evicted: at once while it is idle, after [`STALLED`] while an answer
    /// is written to it.
    free_from: Option<Instant>,
    is_staying: bool,
    /// Notified when the client is evicted.
    leave: Arc<Notify>,
}

/// The place of a connected client; dropping it frees the place.
pub(super) struct Seat {
    clients: Arc<Clients>,
    id: u64,
    leave: Arc<Notify>,
}

impl Clients {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a client. If all places are taken, it evicts the client that has been idle or has not
    /// read its answer for the longest time, or waits for the next one. `None` after [`ENTERING`].
    pub(super) async fn enter(self: &Arc<Self>) -> Option<Seat> {
        let seat = async {
            loop {
                if let Some(seat) = self.seat() {
                    return seat;
                }
                self.changed.notified().await;
            }
        };
        tokio::time::timeout(ENTERING, seat).await.ok()
    }

    fn seat(self: &Arc<Self>) -> Option<Seat> {
        let mut inside = self.inside();
        if inside.all.len() >= MAX_CLIENTS {
            let now = Instant::now();
            let free = inside.all.iter();
            let free = free.filter_map(|(id, client)| Some((client.free_from?, *id)));
            let (_, oldest) = free.filter(|(from, _)| *from <= now).min()?;
            let left = inside.all.remove(&oldest)?;
            left.leave.notify_one();
        }
        inside.last += 1;
        let (id, client) = (inside.last, Client::default());
        let leave = Arc::clone(&client.leave);
        inside.all.insert(id, client);
        Some(Seat {
            clients: Arc::clone(self),
            id,
            leave,
        })
    }
}

impl Seat {
    fn change(&self, change: impl FnOnce(&mut Client)) {
        if let Some(client) = self.clients.inside().all.get_mut(&self.id) {
            change(client);
        }
    }

    /// Marks the client idle.
    pub(super) fn idle(&self) {
        self.change(|client| client.free_from = Some(Instant::now()));
        self.clients.changed.notify_one();
    }

    /// Marks that an answer is being written; the client may not read it.
    pub(super) fn answered(&self) {
        self.change(|client| client.free_from = Some(Instant::now() + STALLED));
    }

    /// Marks the client busy. Returns whether it still has its place.
    pub(super) fn busy(&self) -> bool {
        self.change(|client| client.free_from = None);
        self.clients.inside().all.contains_key(&self.id)
    }

    /// Exempts the client from eviction. Returns whether there is room for another such client.
    pub(super) fn stay(&self) -> bool {
        let mut inside = self.clients.inside();
        let staying = inside.all.values().filter(|client| client.is_staying);
        let has_room = staying.count() < MAX_STAYING;
        if let Some(client) = inside.all.get_mut(&self.id) {
            client.is_staying |= has_room;
        }
        has_room
    }

    /// Waits until the client is evicted.
    pub(super) async fn makes_room(&self) {
        self.leave.notified().await;
    }

    /// Waits until the client is evicted or times out.
    pub(super) async fn leaves(&self) {
        tokio::select! {
            () = self.makes_room() => {}
            () = tokio::time::sleep(IDLE) => {}
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.clients.inside().all.remove(&self.id);
        self.clients.changed.notify_one();
    }
}
