//! Echo requests: answered here for the gateway, and forwarded to other hosts through
//! unprivileged ICMP sockets.
//!
//! Linux allows such sockets to groups in `net.ipv4.ping_group_range`. Without them, the
//! guest gets "administratively prohibited" for its echo requests.

use super::config::Limits;
use super::egress_filter::{EgressFilter, family_of};
use super::outbox::Outbox;
use super::packet::IpPacket;
use super::sessions::{Sessions, report_failure};
use super::wire::{self, Unreachable};
use super::{guest_for, is_gateway};
use rustix::event::PollFd;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, ipproto};
use smoltcp::wire::IpProtocol;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Size of an echo message's header in bytes.
const HEADER_BYTES: usize = 8;

/// A `ping` in the guest: its identifier and destination.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EchoKey {
    ident: [u8; 2],
    peer: IpAddr,
}

/// Echo sessions of a guest.
pub(super) struct Ping {
    sessions: Sessions<EchoKey>,
    idle: Duration,
}

/// Protocol, and the types of an echo request and a reply, of a peer's family.
fn kinds(peer: IpAddr) -> (IpProtocol, u8, u8) {
    match peer {
        IpAddr::V4(_) => (IpProtocol::Icmp, 8, 0),
        IpAddr::V6(_) => (IpProtocol::Icmpv6, 128, 129),
    }
}

/// Builds an echo message of the guest, or a reply to it.
fn message(peer: IpAddr, kind: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    match peer {
        IpAddr::V4(_) => wire::icmp(kind, 0, rest, data),
        // The sum is the same in both directions.
        IpAddr::V6(_) => wire::icmpv6((peer, guest_for(peer)), kind, 0, rest, data),
    }
}

/// Whether the host allows this process ICMP sockets, without which guests can ping only
/// their gateway.
pub fn host_allows_ping() -> bool {
    socket(Ipv4Addr::LOCALHOST.into()).is_ok()
}

fn socket(peer: IpAddr) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = match peer {
        IpAddr::V4(_) => ipproto::ICMP,
        IpAddr::V6(_) => ipproto::ICMPV6,
    };
    rustix::net::socket_with(family_of(peer), SocketType::DGRAM, flags, Some(protocol))
}

/// Checksum of an ICMP message, which is zero if it is right.
fn sum(ends: (IpAddr, IpAddr), message: &[u8]) -> u16 {
    match ends.1 {
        IpAddr::V4(_) => wire::checksum(&[message]),
        IpAddr::V6(_) => wire::message_checksum(ends, IpProtocol::Icmpv6, message),
    }
}

impl Ping {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            sessions: Sessions::new(limits.ping),
            idle: limits.ping_idle,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Handles an ICMP message of the guest; drops all but echo requests.
    pub(super) fn packet(
        &mut self,
        packet: &IpPacket<'_>,
        filter: &EgressFilter,
        out: &mut Outbox,
        now: Instant,
    ) {
        let IpPacket {
            bytes: packet,
            from,
            to: peer,
            protocol,
            payload: asked,
        } = *packet;
        let (expected, request, reply) = kinds(peer);
        if protocol != expected
            || asked.len() < HEADER_BYTES
            || asked[0] != request
            || asked[1] != 0
            || sum((from, peer), asked) != 0
        {
            return out.count_drop();
        }
        let rest = [asked[4], asked[5], asked[6], asked[7]];
        let data = &asked[HEADER_BYTES..];
        if is_gateway(peer) {
            let reply = message(peer, reply, rest, data);
            return out.packet(protocol, peer, &reply);
        }
        let ident = [rest[0], rest[1]];
        let key = EchoKey { ident, peer };
        if !self.sessions.has(key)
            && let Err(why) = self.open(key, filter, now)
        {
            return out.unreachable(why, packet);
        }
        let Some(session) = self.sessions.get(key) else {
            // The host has no descriptor for it.
            return out.count_drop();
        };
        // The host inserts its own identifier and checksum.
        let request = message(peer, request, rest, data);
        if let Err(error) = session.send(packet, &request, now) {
            report_failure(error, packet, out);
        }
    }

    /// Opens a session, unless the host is out of descriptors.
    fn open(
        &mut self,
        key: EchoKey,
        filter: &EgressFilter,
        now: Instant,
    ) -> Result<(), Unreachable> {
        let target = filter.target_host(key.peer, now)?;
        self.sessions.make_room();
        match socket(target) {
            Ok(socket) => {
                let target = SocketAddr::new(target, 0);
                self.sessions.open(key, socket, &target, now)
            }
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Ok(()),
            Err(_) => Err(Unreachable::Prohibited),
        }
    }

    /// Delivers replies to the guest; returns whether any wait for room.
    pub(super) fn pump(&mut self, out: &mut Outbox, now: Instant) -> bool {
        self.sessions.pump(out, now, |key, got, out| {
            let (protocol, _, reply) = kinds(key.peer);
            if got.len() >= HEADER_BYTES && got[0] == reply {
                let rest = [key.ident[0], key.ident[1], got[6], got[7]];
                let reply = message(key.peer, reply, rest, &got[HEADER_BYTES..]);
                out.packet(protocol, key.peer, &reply);
            }
        })
    }

    /// Ends idle sessions.
    pub(super) fn expire(&mut self, now: Instant) {
        let idle = self.idle;
        self.sessions.expire(now, |_| idle);
    }

    /// Descriptors and events to poll.
    pub(super) fn interest<'a>(&'a self, add: impl FnMut(EchoKey, PollFd<'a>)) {
        self.sessions.interest(add);
    }

    /// Marks a session as readable.
    pub(super) fn ready(&mut self, key: EchoKey) {
        self.sessions.ready(key);
    }
}
