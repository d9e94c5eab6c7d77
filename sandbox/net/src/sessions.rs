//! Session table of UDP and ping: for each key of the guest's a connected
//! socket of the host.
//!
//! Connected, because then only that peer is received from, and because the host says
//! when nobody listens there. Sessions end after silence; when there are too
//! many, the most silent one ends for the newest.

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

/// Messages that one session may bring in a step, so that all get theirs.
const MESSAGES_PER_STEP: usize = 16;

/// A socket, and what it was used for.
pub(super) struct Session {
    socket: OwnedFd,
    /// The beginning of the guest's last packet, for ICMP errors about it.
    quote: Vec<u8>,
    used: Instant,
    readable: bool,
}

/// The sessions of one kind.
pub(super) struct Sessions<K> {
    sessions: HashMap<K, Session>,
    limit: usize,
    buffer: Vec<u8>,
}

impl<K: Copy + Eq + Hash> Sessions<K> {
    /// None yet, and never more than `limit`.
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

    /// Whether there is one.
    pub(crate) fn has(&self, key: K) -> bool {
        self.sessions.contains_key(&key)
    }

    /// One that is there.
    pub(crate) fn get(&mut self, key: K) -> Option<&mut Session> {
        self.sessions.get_mut(&key)
    }

    /// Room for one more: at the limit the most silent one ends.
    pub(crate) fn make_room(&mut self) {
        if self.sessions.len() >= self.limit {
            let silent = self.sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(key) = silent.map(|(key, _)| *key) {
                self.sessions.remove(&key);
            }
        }
    }

    /// Begins one with a socket, which is connected to its target.
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

    /// Brings what peers sent: `bring` gives the guest a message. Whether
    /// something waits for room.
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
                // The next poll says whether there is more.
                session.readable = false;
            }
            waits |= session.readable;
        }
        waits
    }

    /// Ends sessions that were silent for as long as `idle` says.
    pub(crate) fn expire(&mut self, now: Instant, idle: impl Fn(&K) -> Duration) {
        self.sessions
            .retain(|key, session| now.saturating_duration_since(session.used) < idle(key));
    }

    /// What to wait for.
    pub(crate) fn interest<'a>(&'a self, mut add: impl FnMut(K, PollFd<'a>)) {
        for (key, session) in &self.sessions {
            if !session.readable {
                let socket = session.socket.as_fd();
                add(*key, PollFd::from_borrowed_fd(socket, PollFlags::IN));
            }
        }
    }

    /// Something came.
    pub(crate) fn ready(&mut self, key: K) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.readable = true;
        }
    }
}

impl Session {
    /// Sends what a packet of the guest holds. An error is the host's.
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

    /// The length of what came, if it is no error: that is passed to the guest here.
    fn receive(&mut self, buffer: &mut [u8], out: &mut Outbox, now: Instant) -> Option<usize> {
        match rustix::net::recv(&self.socket, buffer, RecvFlags::DONTWAIT) {
            Ok((_, length)) => {
                self.used = now;
                Some(length)
            }
            Err(error) => {
                // An error is reported once, so the next call is about data.
                self.readable = error != Errno::AGAIN;
                if let Some(why) = unreachable(error) {
                    out.unreachable(why, &self.quote);
                }
                None
            }
        }
    }
}

/// Reports a packet that could not be sent to the guest.
pub(super) fn report_failure(error: Errno, packet: &[u8], out: &mut Outbox) {
    match unreachable(error) {
        Some(why) => out.unreachable(why, packet),
        None => out.count_drop(),
    }
}

/// What an error of the host's means to the guest.
pub(super) fn unreachable(error: Errno) -> Option<Unreachable> {
    match error {
        Errno::CONNREFUSED => Some(Unreachable::Port),
        Errno::NETUNREACH | Errno::NETDOWN | Errno::ADDRNOTAVAIL => Some(Unreachable::Network),
        Errno::HOSTUNREACH | Errno::HOSTDOWN | Errno::TIMEDOUT => Some(Unreachable::Host),
        Errno::ACCESS | Errno::PERM => Some(Unreachable::Prohibited),
        _ => None,
    }
}
