//! UDP: a session for each pair of guest port and peer.

use super::config::Limits;
use super::egress_filter::{EgressFilter, family_of};
use super::guest_for;
use super::outbox::Outbox;
use super::packet::IpPacket;
use super::sessions::{Sessions, report_failure};
use super::wire::{self, Unreachable};
use rustix::event::PollFd;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType};
use smoltcp::wire::{IpProtocol, UdpPacket};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Idle timeout of a name server session; resolvers use a new port for each query.
const DNS_IDLE: Duration = Duration::from_secs(15);

/// A port of the guest, and its peer as the guest sees it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct UdpKey {
    guest_port: u16,
    peer: IpAddr,
    peer_port: u16,
}

/// UDP sessions of a guest.
pub(super) struct Udp {
    sessions: Sessions<UdpKey>,
    idle: Duration,
}

impl Udp {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            sessions: Sessions::new(limits.udp),
            idle: limits.udp_idle,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Handles a datagram of the guest that passed all checks.
    pub(super) fn packet(
        &mut self,
        packet: &IpPacket<'_>,
        udp: &UdpPacket<&[u8]>,
        filter: &EgressFilter,
        out: &mut Outbox,
        now: Instant,
    ) {
        let key = UdpKey {
            guest_port: udp.src_port(),
            peer: packet.to,
            peer_port: udp.dst_port(),
        };
        let packet = packet.bytes;
        if !self.sessions.has(key)
            && let Err(why) = self.open(key, filter, now)
        {
            return out.unreachable(why, packet);
        }
        let Some(session) = self.sessions.get(key) else {
            // The host has no descriptor for it.
            return out.count_drop();
        };
        let mut sent = session.send(packet, udp.payload(), now);
        if sent == Err(Errno::CONNREFUSED) {
            // The error belongs to an earlier datagram.
            out.unreachable(Unreachable::Port, packet);
            sent = session.send(packet, udp.payload(), now);
        }
        match sent {
            Ok(()) | Err(Errno::CONNREFUSED) => {}
            Err(error) => report_failure(error, packet, out),
        }
    }

    /// Opens a session, unless the host is out of descriptors.
    fn open(
        &mut self,
        key: UdpKey,
        filter: &EgressFilter,
        now: Instant,
    ) -> Result<(), Unreachable> {
        let target = filter.target(key.peer, key.peer_port, now)?;
        self.sessions.make_room();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = family_of(target.ip());
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None);
        match socket {
            Ok(socket) => self.sessions.open(key, socket, &target, now),
            Err(_) => Ok(()),
        }
    }

    /// Delivers datagrams of peers to the guest; returns whether any wait for room.
    pub(super) fn pump(&mut self, out: &mut Outbox, now: Instant) -> bool {
        self.sessions.pump(out, now, |key, message, out| {
            let from = (key.peer, key.peer_port);
            match wire::udp(from, (guest_for(key.peer), key.guest_port), message) {
                Some(datagram) => out.packet(IpProtocol::Udp, key.peer, &datagram),
                None => out.count_drop(),
            }
        })
    }

    /// Ends idle sessions.
    pub(super) fn expire(&mut self, now: Instant) {
        let usual = self.idle;
        self.sessions.expire(now, |key| match key.peer_port {
            super::dns::PORT => DNS_IDLE.min(usual),
            _ => usual,
        });
    }

    /// Descriptors and events to poll.
    pub(super) fn interest<'a>(&'a self, add: impl FnMut(UdpKey, PollFd<'a>)) {
        self.sessions.interest(add);
    }

    /// Marks a session as readable.
    pub(super) fn ready(&mut self, key: UdpKey) {
        self.sessions.ready(key);
    }
}
