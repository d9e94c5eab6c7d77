//! UDP: a session for each port of the guest and peer.

use super::GUEST;
use super::config::Limits;
use super::egress_filter::EgressFilter;
use super::outbox::Outbox;
use super::sessions::{Sessions, report_failure};
use super::wire::{self, Unreachable};
use rustix::event::PollFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use smoltcp::wire::{IpProtocol, Ipv4Packet, UdpPacket};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// How long the answer of a name server is waited for; resolvers take a new
/// port for each query.
const DNS_IDLE: Duration = Duration::from_secs(15);

/// A port of the guest, and its peer as the guest knows it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct UdpKey {
    guest_port: u16,
    peer: Ipv4Addr,
    peer_port: u16,
}

/// The sessions.
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

    /// Takes a datagram of the guest, whose checks it has passed.
    pub(super) fn packet(
        &mut self,
        packet: &[u8],
        ip: &Ipv4Packet<&[u8]>,
        udp: &UdpPacket<&[u8]>,
        filter: &EgressFilter,
        out: &mut Outbox,
        now: Instant,
    ) {
        let key = UdpKey {
            guest_port: udp.src_port(),
            peer: ip.dst_addr(),
            peer_port: udp.dst_port(),
        };
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
            // That was about an earlier datagram.
            out.unreachable(Unreachable::Port, packet);
            sent = session.send(packet, udp.payload(), now);
        }
        match sent {
            Ok(()) | Err(Errno::CONNREFUSED) => {}
            Err(error) => report_failure(error, packet, out),
        }
    }

    /// A session, unless the host has no descriptor for it.
    fn open(
        &mut self,
        key: UdpKey,
        filter: &EgressFilter,
        now: Instant,
    ) -> Result<(), Unreachable> {
        let target = filter.target(key.peer, key.peer_port, now)?;
        self.sessions.make_room();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None);
        match socket {
            Ok(socket) => self.sessions.open(key, socket, &target, now),
            Err(_) => Ok(()),
        }
    }

    /// Brings the guest what its peers sent. Whether something waits for room.
    pub(super) fn pump(&mut self, out: &mut Outbox, now: Instant) -> bool {
        self.sessions.pump(out, now, |key, message, out| {
            let from = (key.peer, key.peer_port);
            match wire::udp(from, (GUEST, key.guest_port), message) {
                Some(datagram) => out.packet(IpProtocol::Udp, key.peer, &datagram),
                None => out.count_drop(),
            }
        })
    }

    /// Ends sessions that were silent for long.
    pub(super) fn expire(&mut self, now: Instant) {
        let usual = self.idle;
        self.sessions.expire(now, |key| match key.peer_port {
            super::dns::PORT => DNS_IDLE.min(usual),
            _ => usual,
        });
    }

    /// What to wait for.
    pub(super) fn interest<'a>(&'a self, add: impl FnMut(UdpKey, PollFd<'a>)) {
        self.sessions.interest(add);
    }

    /// Something came.
    pub(super) fn ready(&mut self, key: UdpKey) {
        self.sessions.ready(key);
    }
}
