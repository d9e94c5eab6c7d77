//! UDP: a connected socket of the host for each port and peer of the guest.
//!
//! Connected, because then only that peer is heard, and because the host says
//! when nobody listens there. Sessions end after silence; when there are too
//! many, the most silent one ends for the newest.

use super::GUEST;
use super::config::Limits;
use super::gate::Gate;
use super::outbox::Outbox;
use super::wire::{self, Unreachable};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use smoltcp::wire::{IpProtocol, Ipv4Packet, UdpPacket};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// How long the answer of a name server is waited for; resolvers take a new
/// port for each query.
const DNS_IDLE: Duration = Duration::from_secs(15);

/// Datagrams that one session may bring in a turn, so that all get theirs.
const DATAGRAMS_A_TURN: usize = 16;

/// A port of the guest, and its peer as the guest knows it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    guest_port: u16,
    peer: Ipv4Addr,
    peer_port: u16,
}

struct Session {
    socket: OwnedFd,
    /// The beginning of the guest's last datagram, for ICMP errors about it.
    quote: Vec<u8>,
    used: Instant,
    readable: bool,
}

/// The sessions.
pub(super) struct Udp {
    sessions: HashMap<Key, Session>,
    limit: usize,
    idle: Duration,
    buffer: Vec<u8>,
}

impl Udp {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            sessions: HashMap::new(),
            limit: limits.udp,
            idle: limits.udp_idle,
            buffer: vec![0; usize::from(u16::MAX)],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Takes a datagram of the guest, whose checks it has passed.
    pub(super) fn packet(
        &mut self,
        packet: &[u8],
        ip: &Ipv4Packet<&[u8]>,
        udp: &UdpPacket<&[u8]>,
        gate: &Gate,
        out: &mut Outbox,
        now: Instant,
    ) {
        let key = Key {
            guest_port: udp.src_port(),
            peer: ip.dst_addr(),
            peer_port: udp.dst_port(),
        };
        if !self.sessions.contains_key(&key) {
            match self.open(key, gate, now) {
                Ok(Some(session)) => drop(self.sessions.insert(key, session)),
                Ok(None) => return out.lose(),
                Err(why) => return out.unreachable(why, packet),
            }
        }
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        session.used = now;
        session.quote.clear();
        session.quote.extend_from_slice(wire::quote(packet));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let send = |session: &Session| rustix::net::send(&session.socket, udp.payload(), flags);
        let mut sent = send(session);
        if sent == Err(Errno::CONNREFUSED) {
            // That was about an earlier datagram.
            out.unreachable(Unreachable::Port, packet);
            sent = send(session);
        }
        match sent {
            Ok(_) | Err(Errno::CONNREFUSED) => {}
            Err(error) => match unreachable(error) {
                Some(why) => out.unreachable(why, packet),
                None => out.lose(),
            },
        }
    }

    /// A session; `Ok(None)` if the host has no descriptor for it.
    fn open(
        &mut self,
        key: Key,
        gate: &Gate,
        now: Instant,
    ) -> Result<Option<Session>, Unreachable> {
        let target = gate.target(key.peer, key.peer_port, now)?;
        if self.sessions.len() >= self.limit {
            let silent = self.sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(key) = silent.map(|(key, _)| *key) {
                self.sessions.remove(&key);
            }
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None);
        let Ok(socket) = socket else {
            return Ok(None);
        };
        match rustix::net::connect(&socket, &target) {
            Ok(()) => Ok(Some(Session {
                socket,
                quote: Vec::new(),
                used: now,
                readable: false,
            })),
            Err(error) => Err(unreachable(error).unwrap_or(Unreachable::Network)),
        }
    }

    /// Brings the guest what its peers sent. Whether something waits for room.
    pub(super) fn pump(&mut self, out: &mut Outbox, now: Instant) -> bool {
        let mut waits = false;
        for (key, session) in &mut self.sessions {
            let mut left = DATAGRAMS_A_TURN;
            while session.readable && left > 0 && out.fits_datagram() {
                session.receive(*key, &mut self.buffer, out, now);
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

    /// Ends sessions that were silent for long.
    pub(super) fn expire(&mut self, now: Instant) {
        let idle = |key: &Key| match key.peer_port {
            super::dns::PORT => DNS_IDLE.min(self.idle),
            _ => self.idle,
        };
        self.sessions
            .retain(|key, session| now.saturating_duration_since(session.used) < idle(key));
    }

    /// What to wait for.
    pub(super) fn interest<'a>(&'a self, mut add: impl FnMut(Key, PollFd<'a>)) {
        for (key, session) in &self.sessions {
            if !session.readable {
                add(
                    *key,
                    PollFd::from_borrowed_fd(session.socket.as_fd(), PollFlags::IN),
                );
            }
        }
    }

    /// Something came.
    pub(super) fn ready(&mut self, key: Key) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.readable = true;
        }
    }
}

impl Session {
    fn receive(&mut self, key: Key, buffer: &mut [u8], out: &mut Outbox, now: Instant) {
        match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((_, length)) => {
                self.used = now;
                let from = (key.peer, key.peer_port);
                match wire::udp(from, (GUEST, key.guest_port), &buffer[..length]) {
                    Some(datagram) => out.packet(IpProtocol::Udp, key.peer, &datagram),
                    None => out.lose(),
                }
            }
            Err(error) => {
                // An error is told once, so the next call is about data.
                self.readable = error != Errno::AGAIN;
                if let Some(why) = unreachable(error) {
                    out.unreachable(why, &self.quote);
                }
            }
        }
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
