//! Echo requests: answered here for the gateway, and forwarded to other hosts through
//! unprivileged ICMP sockets.
//!
//! Linux allows such sockets to groups in `net.ipv4.ping_group_range`. Without them, the
//! guest gets "administratively prohibited" for its echo requests.

use super::config::Limits;
use super::egress_filter::EgressFilter;
use super::outbox::Outbox;
use super::sessions::{Sessions, report_failure};
use super::wire::{self, Unreachable};
use super::{GATEWAY, HOST};
use rustix::event::PollFd;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use smoltcp::wire::{IpProtocol, Ipv4Packet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
/// Size of an echo message's header in bytes.
const HEADER_BYTES: usize = 8;

/// A `ping` in the guest: its identifier and destination.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EchoKey {
    ident: [u8; 2],
    peer: Ipv4Addr,
}

/// Echo sessions of a guest.
pub(super) struct Ping {
    sessions: Sessions<EchoKey>,
    idle: Duration,
}

/// Whether the host allows this process ICMP sockets, without which guests can ping only
/// their gateway.
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
        packet: &[u8],
        ip: &Ipv4Packet<&[u8]>,
        filter: &EgressFilter,
        out: &mut Outbox,
        now: Instant,
    ) {
        let message = ip.payload();
        if message.len() < HEADER_BYTES
            || message[0] != ECHO_REQUEST
            || message[1] != 0
            || wire::checksum(&[message]) != 0
        {
            return out.count_drop();
        }
        let rest = [message[4], message[5], message[6], message[7]];
        let data = &message[HEADER_BYTES..];
        let peer = ip.dst_addr();
        if peer == GATEWAY || peer == HOST {
            let reply = wire::icmp(ECHO_REPLY, 0, rest, data);
            return out.packet(IpProtocol::Icmp, peer, &reply);
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
        let request = wire::icmp(ECHO_REQUEST, 0, rest, data);
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
        match socket() {
            Ok(socket) => {
                let target = SocketAddrV4::new(target, 0);
                self.sessions.open(key, socket, &target, now)
            }
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Ok(()),
            Err(_) => Err(Unreachable::Prohibited),
        }
    }

    /// Delivers replies to the guest; returns whether any wait for room.
    pub(super) fn pump(&mut self, out: &mut Outbox, now: Instant) -> bool {
        self.sessions.pump(out, now, |key, message, out| {
            if message.len() >= HEADER_BYTES && message[0] == ECHO_REPLY {
                let rest = [key.ident[0], key.ident[1], message[6], message[7]];
                let reply = wire::icmp(ECHO_REPLY, 0, rest, &message[HEADER_BYTES..]);
                out.packet(IpProtocol::Icmp, key.peer, &reply);
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
