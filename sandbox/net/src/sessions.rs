//! Session table of UDP and ping: a connected host socket for each key of the guest.
//!
//! A connected socket receives only from its peer, and the host reports when the peer's
//! port is closed. Sessions end after silence; when the table is full, a new one evicts the
//! one that was idle longest.

use super::outbox::Outbox;
use super::wire::{self, Unreachable};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Maximum messages that one session delivers in a step, for fairness.
const MESSAGES_PER_STEP: usize = 16;

/// A socket and its last use.
pub(super) struct Session {
    socket: OwnedFd,
    /// Start of the guest's last packet, quoted in ICMP errors.
    quote: Vec<u8>,
    used: Instant,
    readable: bool,
}

/// Sessions of one protocol.
pub(super) struct Sessions<K> {
    sessions: HashMap<K, Session>,
    limit: usize,
    buffer: Vec<u8>,
}

impl<K: Copy + Eq + Hash> Sessions<K> {
    /// Creates an empty table of at most `limit` sessions.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            sessions: HashMap::new(),
            limit,
            buffer: vec![0; usize::from(u16::MAX)],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether the session exists.
    pub(crate) fn has(&self, key: K) -> bool {
        self.sessions.contains_key(&key)
    }

    /// Returns an existing session.
    pub(crate) fn get(&mut self, key: K) -> Option<&mut Session> {
        self.sessions.get_mut(&key)
    }

    /// Makes room for a session: at the limit, evicts the one that was idle longest.
    pub(crate) fn make_room(&mut self) {
        if self.sessions.len() >= self.limit {
            let silent = self.sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(key) = silent.map(|(key, _)| *key) {
                self.sessions.remove(&key);
            }
        }
    }

    /// Adds a session with a connected socket.
    pub(crate) fn open(
        &mut self,
        key: K,
        socket: OwnedFd,
        target: &impl SocketAddrArg,
        now: Instant,
    ) -> Result<(), Unreachable> {
        rustix::net::connect(&socket, target)
            .map_err(|error| unreachable(error).unwrap_or(Unreachable::Network))?;
        let session = Session {
            socket,
            quote: Vec::new(),
            used: now,
            readable: false,
        };
        self.sessions.insert(key, session);
        Ok(())
    }

    /// Receives from peers; `bring` delivers a message to the guest. Returns whether
    /// messages wait for room.
    pub(crate) fn pump(
        &mut self,
        out: &mut Outbox,
        now: Instant,
        mut bring: impl FnMut(K, &[u8], &mut Outbox),
    ) -> bool {
        let mut waits = false;
        for (key, session) in &mut self.sessions {
            let mut left = MESSAGES_PER_STEP;
            while session.readable && left > 0 && out.fits_datagram() {
                if let Some(length) = session.receive(&mut self.buffer, out, now) {
                    bring(*key, &self.buffer[..length], out);
                }
                left -= 1;
            }
            if left == 0 {
                // The next poll shows whether more arrived.
                session.readable = false;
            }
            waits |= session.readable;
        }
        waits
    }

    /// Ends sessions that were idle for the time that `idle` gives.
    pub(crate) fn expire(&mut self, now: Instant, idle: impl Fn(&K) -> Duration) {
        self.sessions
            .retain(|key, session| now.saturating_duration_since(session.used) < idle(key));
    }

    /// Descriptors and events to poll.
    pub(crate) fn interest<'a>(&'a self, mut add: impl FnMut(K, PollFd<'a>)) {
        for (key, session) in &self.sessions {
            if !session.readable {
                let socket = session.socket.as_fd();
                add(*key, PollFd::from_borrowed_fd(socket, PollFlags::IN));
            }
        }
    }

    /// Marks a session as readable.
    pub(crate) fn ready(&mut self, key: K) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.readable = true;
        }
    }
}

impl Session {
    /// Sends the payload of a guest packet. Errors are the host's.
    pub(crate) fn send(
        &mut self,
        packet: &[u8],
        message: &[u8],
        now: Instant,
    ) -> rustix::io::Result<()> {
        self.used = now;
        self.quote.clear();
        self.quote.extend_from_slice(wire::quote(packet));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::send(&self.socket, message, flags).map(drop)
    }

    /// Receives a message and returns its length; errors are reported to the guest here.
    fn receive(&mut self, buffer: &mut [u8], out: &mut Outbox, now: Instant) -> Option<usize> {
        match rustix::net::recv(&self.socket, buffer, RecvFlags::DONTWAIT) {
            Ok((_, length)) => {
                self.used = now;
                Some(length)
            }
            Err(error) => {
                // An error is reported once, so the next call returns data.
                self.readable = error != Errno::AGAIN;
                if let Some(why) = unreachable(error) {
                    out.unreachable(why, &self.quote);
                }
                None
            }
        }
    }
}

/// Reports to the guest a packet that could not be sent.
pub(super) fn report_failure(error: Errno, packet: &[u8], out: &mut Outbox) {
    match unreachable(error) {
        Some(why) => out.unreachable(why, packet),
        None => out.count_drop(),
    }
}

/// Maps a host error to an ICMP code for the guest.
pub(super) fn unreachable(error: Errno) -> Option<Unreachable> {
    match error {
        Errno::CONNREFUSED => Some(Unreachable::Port),
        Errno::NETUNREACH | Errno::NETDOWN | Errno::ADDRNOTAVAIL => Some(Unreachable::Network),
        Errno::HOSTUNREACH | Errno::HOSTDOWN | Errno::TIMEDOUT => Some(Unreachable::Host),
        Errno::ACCESS | Errno::PERM => Some(Unreachable::Prohibited),
        _ => None,
    }
}
