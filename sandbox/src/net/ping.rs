//! Echo requests: to the gateway answered here, to others through the host's
//! unprivileged ICMP sockets.
//!
//! Linux lets groups in `net.ipv4.ping_group_range` have such sockets. Where it
//! does not, the guest is told that echo requests are administratively
//! prohibited.

use super::config::Limits;
use super::gate::Gate;
use super::outbox::Outbox;
use super::udp::unreachable;
use super::wire::{self, Unreachable};
use super::{GATEWAY, HOST};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};
use smoltcp::wire::{IpProtocol, Ipv4Packet};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
/// Bytes of an echo message before its data.
const HEADER_BYTES: usize = 8;
/// Replies that one session may bring in a turn.
const REPLIES_A_TURN: usize = 16;

/// A `ping` in the guest: its identifier and what it pings.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    ident: [u8; 2],
    peer: Ipv4Addr,
}

struct Session {
    socket: OwnedFd,
    quote: Vec<u8>,
    used: Instant,
    readable: bool,
}

/// The sessions.
pub(super) struct Ping {
    sessions: HashMap<Key, Session>,
    limit: usize,
    idle: Duration,
    buffer: Vec<u8>,
}

/// Whether the host lets this process have ICMP sockets, without which guests
/// can ping their gateway only.
pub fn host_allows_ping() -> bool {
    socket().is_ok()
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = Some(ipproto::ICMP);
    rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, protocol)
}

impl Ping {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            sessions: HashMap::new(),
            limit: limits.ping,
            idle: limits.ping_idle,
            buffer: vec![0; usize::from(u16::MAX)],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Takes an ICMP message of the guest; all but echo requests end here.
    pub(super) fn packet(
        &mut self,
        packet: &[u8],
        ip: &Ipv4Packet<&[u8]>,
        gate: &Gate,
        out: &mut Outbox,
        now: Instant,
    ) {
        let message = ip.payload();
        if message.len() < HEADER_BYTES
            || message[0] != ECHO_REQUEST
            || message[1] != 0
            || wire::checksum(&[message]) != 0
        {
            return out.lose();
        }
        let rest = [message[4], message[5], message[6], message[7]];
        let data = &message[HEADER_BYTES..];
        let peer = ip.dst_addr();
        if peer == GATEWAY || peer == HOST {
            let reply = wire::icmp(ECHO_REPLY, 0, rest, data);
            return out.packet(IpProtocol::Icmp, peer, &reply);
        }
        let ident = [rest[0], rest[1]];
        match self.session(Key { ident, peer }, gate, now) {
            Ok(Some(session)) => session.request(packet, rest, data, out, now),
            Ok(None) => out.lose(),
            Err(why) => out.unreachable(why, packet),
        }
    }

    /// The session; `Ok(None)` if the host has no descriptor for it.
    fn session(
        &mut self,
        key: Key,
        gate: &Gate,
        now: Instant,
    ) -> Result<Option<&mut Session>, Unreachable> {
        if !self.sessions.contains_key(&key) {
            let target = gate.target_host(key.peer, now)?;
            if self.sessions.len() >= self.limit {
                let silent = self.sessions.iter().min_by_key(|(_, session)| session.used);
                if let Some(key) = silent.map(|(key, _)| *key) {
                    self.sessions.remove(&key);
                }
            }
            let socket = match socket() {
                Ok(socket) => socket,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => return Ok(None),
                Err(_) => return Err(Unreachable::Prohibited),
            };
            rustix::net::connect(&socket, &SocketAddrV4::new(target, 0))
                .map_err(|error| unreachable(error).unwrap_or(Unreachable::Network))?;
            let session = Session {
                socket,
                quote: Vec::new(),
                used: now,
                readable: false,
            };
            self.sessions.insert(key, session);
        }
        Ok(self.sessions.get_mut(&key))
    }

    /// Brings the guest its replies. Whether something waits for room.
    pub(super) fn pump(&mut self, out: &mut Outbox, now: Instant) -> bool {
        let mut waits = false;
        for (key, session) in &mut self.sessions {
            let mut left = REPLIES_A_TURN;
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
        let idle = self.idle;
        self.sessions
            .retain(|_, session| now.saturating_duration_since(session.used) < idle);
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
    fn request(
        &mut self,
        packet: &[u8],
        rest: [u8; 4],
        data: &[u8],
        out: &mut Outbox,
        now: Instant,
    ) {
        self.used = now;
        self.quote.clear();
        self.quote.extend_from_slice(wire::quote(packet));
        // The host puts its own identifier and checksum in.
        let message = wire::icmp(ECHO_REQUEST, 0, rest, data);
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if let Err(error) = rustix::net::send(&self.socket, &message, flags) {
            match unreachable(error) {
                Some(why) => out.unreachable(why, packet),
                None => out.lose(),
            }
        }
    }

    fn receive(&mut self, key: Key, buffer: &mut [u8], out: &mut Outbox, now: Instant) {
        match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((_, length)) => {
                self.used = now;
                let message = &buffer[..length];
                if length >= HEADER_BYTES && message[0] == ECHO_REPLY {
                    let rest = [key.ident[0], key.ident[1], message[6], message[7]];
                    let reply = wire::icmp(ECHO_REPLY, 0, rest, &message[HEADER_BYTES..]);
                    out.packet(IpProtocol::Icmp, key.peer, &reply);
                }
            }
            Err(error) => {
                self.readable = error != Errno::AGAIN;
                if let Some(why) = unreachable(error) {
                    out.unreachable(why, &self.quote);
                }
            }
        }
    }
}
