//! Link: the frame queues between the guest's thread and the gateway's.
//!
//! Each side wakes the other only when it fills an empty queue or frees room that the other
//! waits for: the gateway through an eventfd, the guest through its callback.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum bytes of frames queued for the gateway: eight of the largest, as many as the
/// guest's ring holds.
const FROM_GUEST_BYTES: usize = 512 << 10;

/// Maximum bytes of frames queued for the guest: the full windows of sixteen fast
/// connections.
pub(super) const TO_GUEST_BYTES: usize = 4 << 20;

/// Cost of a frame in addition to its bytes, so that tiny frames are bounded too.
const FRAME_OVERHEAD: usize = 64;

/// Maximum frame accepted: Ethernet's header, a VLAN tag and the largest IP packet.
const MAX_FRAME_BYTES: usize = 18 + 65_535;

/// A frame for the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes from the Ethernet header on.
    pub bytes: Vec<u8>,
    /// The TCP checksum is not filled in and must not be verified.
    pub checksums_valid: bool,
}

impl Frame {
    pub(super) fn cost(&self) -> usize {
        self.bytes.len() + FRAME_OVERHEAD
    }
}

#[derive(Debug, Default)]
struct Queues {
    from_guest: VecDeque<Vec<u8>>,
    from_guest_bytes: usize,
    to_guest: VecDeque<Frame>,
    to_guest_bytes: usize,
    /// The guest waits for room.
    guest_waits: bool,
    /// The gateway waits for room for more frames.
    gateway_waits: bool,
    stopped: bool,
}

/// Counters for tests and diagnosis.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) tcp: AtomicUsize,
    pub(super) connecting: AtomicUsize,
    pub(super) udp: AtomicUsize,
    pub(super) ping: AtomicUsize,
    pub(super) dropped: AtomicU64,
}

/// State shared by the two threads.
#[derive(Debug)]
pub(super) struct Shared {
    queues: Mutex<Queues>,
    event: OwnedFd,
    pub(super) counters: Counters,
}

impl Shared {
    pub(super) fn new() -> std::io::Result<Arc<Self>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self {
            queues: Mutex::default(),
            event,
            counters: Counters::default(),
        }))
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        // The queues are consistent between any two statements.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the gateway's thread.
    pub(super) fn notify(&self) {
        // Fails only after 2^64 pending notifications.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Descriptor that the gateway's thread sleeps on.
    pub(super) fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Clears the notifications; call it before reading the queues, so that none is lost.
    pub(super) fn clear_notifications(&self) {
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }

    /// Ends the gateway's thread.
    pub(super) fn stop(&self) {
        self.queues().stopped = true;
        self.notify();
    }

    /// Moves guest frames to `taken`, up to `bytes` plus one frame. Reports whether frames
    /// are left, whether the guest waits for room, and whether to stop.
    pub(super) fn take(&self, mut bytes: usize, taken: &mut Vec<Vec<u8>>) -> Taken {
        let mut queues = self.queues();
        while bytes > 0 {
            let Some(frame) = queues.from_guest.pop_front() else {
                break;
            };
            bytes = bytes.saturating_sub(frame.len());
            queues.from_guest_bytes -= frame.len() + FRAME_OVERHEAD;
            taken.push(frame);
        }
        let room = queues.from_guest_bytes <= FROM_GUEST_BYTES / 2;
        Taken {
            more: !queues.from_guest.is_empty(),
            guest_waits: room && std::mem::take(&mut queues.guest_waits),
            stopped: queues.stopped,
        }
    }

    /// Free bytes on the way to the guest.
    pub(super) fn room(&self) -> usize {
        TO_GUEST_BYTES.saturating_sub(self.queues().to_guest_bytes)
    }

    /// Queues `frames` for the guest, even beyond the limit; `waits` says that more are
    /// pending. Returns whether the guest must be woken.
    pub(super) fn put(&self, frames: &mut VecDeque<Frame>, waits: bool) -> bool {
        let mut queues = self.queues();
        let wake = queues.to_guest.is_empty() && !frames.is_empty();
        queues.to_guest_bytes += frames.iter().map(Frame::cost).sum::<usize>();
        queues.to_guest.append(frames);
        // Room that the guest freed meanwhile raised no notification.
        let room = queues.to_guest_bytes <= TO_GUEST_BYTES / 2;
        queues.gateway_waits = waits && !room;
        if waits && room {
            self.notify();
        }
        wake
    }
}

/// Result of [`Shared::take`].
#[derive(Copy, Clone, Debug)]
pub(super) struct Taken {
    pub(super) more: bool,
    pub(super) guest_waits: bool,
    pub(super) stopped: bool,
}

/// The guest's end of its link.
#[derive(Debug)]
pub struct Link {
    shared: Arc<Shared>,
}

impl Link {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Sends a frame of the guest, from the Ethernet header on; `false` if the queue is
    /// full: the caller keeps the frame and is woken once there is room. Frames that are
    /// oversized, or sent after the gateway's end, are dropped, as on a dead link.
    #[must_use]
    pub fn send(&self, frame: &[u8]) -> bool {
        let mut queues = self.shared.queues();
        if queues.stopped || frame.len() > MAX_FRAME_BYTES {
            return true;
        }
        let cost = frame.len() + FRAME_OVERHEAD;
        if queues.from_guest_bytes + cost > FROM_GUEST_BYTES {
            queues.guest_waits = true;
            return false;
        }
        queues.from_guest_bytes += cost;
        queues.from_guest.push_back(frame.to_vec());
        if queues.from_guest.len() == 1 {
            self.shared.notify();
        }
        true
    }

    /// Returns the next frame for the guest. The caller is woken when the empty queue gets
    /// a frame.
    pub fn receive(&mut self) -> Option<Frame> {
        let mut queues = self.shared.queues();
        let frame = queues.to_guest.pop_front()?;
        queues.to_guest_bytes -= frame.cost();
        if queues.gateway_waits && queues.to_guest_bytes <= TO_GUEST_BYTES / 2 {
            queues.gateway_waits = false;
            self.shared.notify();
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(len: usize) -> Frame {
        Frame {
            bytes: vec![0; len],
            checksums_valid: false,
        }
    }

    #[test]
    fn a_full_queue_keeps_frames_out_and_notifies_of_room() {
        let shared = Shared::new().expect("an eventfd");
        let link = Link::new(shared.clone());
        let mut sent = 0;
        while link.send(&[1; 1514]) {
            sent += 1;
        }
        assert!(sent * 1514 < FROM_GUEST_BYTES && sent > 300);
        let mut taken = Vec::new();
        let state = shared.take(1, &mut taken);
        assert!(taken.len() == 1 && state.more && !state.guest_waits && !state.stopped);
        let state = shared.take(usize::MAX, &mut taken);
        assert!(taken.len() == sent && !state.more && state.guest_waits);
        assert!(!shared.take(usize::MAX, &mut taken).guest_waits);
        assert!(link.send(&[1; 1514]));
    }

    #[test]
    fn empty_frames_fill_the_queue_too() {
        let shared = Shared::new().expect("an eventfd");
        let link = Link::new(shared);
        let sent = (0..1_000_000).take_while(|_| link.send(&[])).count();
        assert_eq!(sent, FROM_GUEST_BYTES / FRAME_OVERHEAD);
    }

    #[test]
    fn the_guest_is_woken_once() {
        let shared = Shared::new().expect("an eventfd");
        let mut link = Link::new(shared.clone());
        assert!(shared.put(&mut VecDeque::from([frame(100)]), false));
        assert!(!shared.put(&mut VecDeque::from([frame(100)]), false));
        assert!(!shared.put(&mut VecDeque::new(), false));
        assert_eq!(shared.room(), TO_GUEST_BYTES - 2 * 164);
        assert!(link.receive().is_some() && link.receive().is_some());
        assert_eq!((link.receive(), shared.room()), (None, TO_GUEST_BYTES));
        assert!(shared.put(&mut VecDeque::from([frame(1)]), false));
    }

    #[test]
    fn a_waiting_gateway_is_notified_of_room() {
        let shared = Shared::new().expect("an eventfd");
        let mut link = Link::new(shared.clone());
        let many = TO_GUEST_BYTES / frame(65_534).cost();
        shared.put(&mut (0..many).map(|_| frame(65_534)).collect(), true);
        let notified = |shared: &Shared| rustix::io::read(&shared.event, &mut [0; 8]).is_ok();
        assert!(!notified(&shared));
        for _ in 0..many {
            link.receive();
        }
        assert!(notified(&shared));
    }

    #[test]
    fn nothing_is_kept_after_the_end() {
        let shared = Shared::new().expect("an eventfd");
        let link = Link::new(shared.clone());
        shared.stop();
        assert!(link.send(&[0; 60]));
        assert!(link.send(&[0; MAX_FRAME_BYTES + 1]));
        let mut taken = Vec::new();
        assert!(shared.take(usize::MAX, &mut taken).stopped && taken.is_empty());
    }
}
