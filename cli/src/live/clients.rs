//! Clients of a host's socket: how many there may be, and which one makes room for another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Connections at a time.
const MAX_CLIENTS: usize = 64;

/// Of these, such as stay for as long as they like.
const MAX_STAYING: usize = 48;

/// How long a client may take for its next request.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// How long a client keeps its place for certain that takes no answer.
const STALLED: Duration = Duration::from_secs(30);

/// How long a client waits for a place before it is refused.
const ENTERING: Duration = Duration::from_secs(1);

/// The clients that are connected.
#[derive(Default)]
pub(super) struct Clients {
    inside: Mutex<Inside>,
    /// Rings when a client leaves, or begins to wait for its next request.
    changed: Notify,
}

#[derive(Default)]
struct Inside {
    last: u64,
    all: BTreeMap<u64, Client>,
}

#[derive(Default)]
struct Client {
    /// From when on another may have its place: at once while the host waits for its next
    /// request, later while it takes no answer.
    free_from: Option<Instant>,
    is_staying: bool,
    /// Rings when it shall leave.
    leave: Arc<Notify>,
}

/// The place of a client, which it leaves when this is dropped.
pub(super) struct Seat {
    clients: Arc<Clients>,
    id: u64,
    leave: Arc<Notify>,
}

impl Clients {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for another client. If there is none, the one that has been idle for longest
    /// leaves, or one that takes no answer; without any of these, the next that becomes so.
    /// `None` if that takes longer than [`ENTERING`].
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

    /// The host waits for the client's next request.
    pub(super) fn idle(&self) {
        self.change(|client| client.free_from = Some(Instant::now()));
        self.clients.changed.notify_one();
    }

    /// A line is written to the client, who may take it or not.
    pub(super) fn answered(&self) {
        self.change(|client| client.free_from = Some(Instant::now() + STALLED));
    }

    /// The client is being answered. Whether it still has its place.
    pub(super) fn busy(&self) -> bool {
        self.change(|client| client.free_from = None);
        self.clients.inside().all.contains_key(&self.id)
    }

    /// The client stays for as long as it likes. Whether there is room for another of the kind.
    pub(super) fn stay(&self) -> bool {
        let mut inside = self.clients.inside();
        let staying = inside.all.values().filter(|client| client.is_staying);
        let has_room = staying.count() < MAX_STAYING;
        if let Some(client) = inside.all.get_mut(&self.id) {
            client.is_staying |= has_room;
        }
        has_room
    }

    /// Waits until the client shall leave for another.
    pub(super) async fn makes_room(&self) {
        self.leave.notified().await;
    }

    /// Waits until the client shall leave: for another, or because it is idle for too long.
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
