//! TCP connections of a guest, each joined to one of the host.
//!
//! A SYN of the guest waits while the host connects. On success a listening socket is
//! created just for that SYN. On failure the SYN is answered with the matching RST or ICMP
//! error.

mod acknowledgement;
mod flow;

use super::GATEWAY;
use super::config::Limits;
use super::egress_filter::{EgressFilter, family_of};
use super::outbox::Outbox;
use super::packet::IpPacket;
use super::sessions::unreachable;
use super::stack::Stack;
use super::wire::Unreachable;
use flow::Flow;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};
use smoltcp::wire::TcpPacket;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// First source port of connections into the guest (RFC 6335).
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// A port of the guest, and its peer as the guest sees it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TcpKey {
    pub(super) guest_port: u16,
    pub(super) peer: IpAddr,
    pub(super) peer_port: u16,
}

/// A SYN that waits for the host to connect.
struct PendingSyn {
    socket: OwnedFd,
    syn: Vec<u8>,
    since: Instant,
    until: Instant,
    /// The host's connect has finished.
    ready: bool,
}

enum Connection {
    Connecting(PendingSyn),
    Joined(Box<Flow>),
}

/// Table of connections.
pub(super) struct Tcp {
    connections: BTreeMap<TcpKey, Connection>,
    limits: Limits,
    /// Rotates the first connection of each step, for fairness.
    first: usize,
    next_port: u16,
}

/// Result of the host's connect.
enum Attempt {
    Connected(OwnedFd),
    Waiting(OwnedFd),
    Failed(Errno),
}

impl Tcp {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            connections: BTreeMap::new(),
            limits: *limits,
            first: 0,
            next_port: FIRST_DYNAMIC_PORT,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Number of connections that wait for the host.
    pub(super) fn connecting(&self) -> usize {
        let pending = |connection: &&Connection| matches!(connection, Connection::Connecting(_));
        self.connections.values().filter(pending).count()
    }

    /// Handles a packet with a segment of the guest.
    pub(super) fn packet(
        &mut self,
        packet: &IpPacket<'_>,
        filter: &EgressFilter,
        stack: &mut Stack,
        out: &mut Outbox,
        now: Instant,
    ) {
        let Ok(tcp) = TcpPacket::new_checked(packet.payload) else {
            return out.count_drop();
        };
        let key = TcpKey {
            guest_port: tcp.src_port(),
            peer: packet.to,
            peer_port: tcp.dst_port(),
        };
        let opens = tcp.syn() && !tcp.ack() && !tcp.rst() && !tcp.fin();
        let packet = packet.bytes;
        match self.connections.get_mut(&key) {
            Some(Connection::Joined(flow)) => {
                flow.acknowledge(&tcp);
                flow.ingress(packet, stack, out, now);
            }
            // A retransmission, or a newer attempt from the same port.
            Some(Connection::Connecting(pending)) if opens => pending.syn = packet.to_vec(),
            Some(Connection::Connecting(_)) => {}
            None if opens => self.open(key, packet, filter, stack, out, now),
            None => stack.refuse(packet, out, now),
        }
    }

    /// Starts the host's connect for a SYN.
    fn open(
        &mut self,
        key: TcpKey,
        syn: &[u8],
        filter: &EgressFilter,
        stack: &mut Stack,
        out: &mut Outbox,
        now: Instant,
    ) {
        let full = self.len() >= self.limits.tcp || self.connecting() >= self.limits.connecting;
        let target = filter.target(key.peer, key.peer_port, now);
        match target {
            Err(Unreachable::Port) => return stack.refuse(syn, out, now),
            Err(why) => return out.unreachable(why, syn),
            // The guest will retransmit it.
            Ok(_) if full && !self.drop_half_open() => return out.count_drop(),
            Ok(_) => {}
        }
        let Ok(target) = target else { return };
        match connect(target) {
            Attempt::Connected(socket) => self.join(key, socket, syn, stack, out, now),
            Attempt::Waiting(socket) => {
                let pending = PendingSyn {
                    socket,
                    syn: syn.to_vec(),
                    since: now,
                    until: now + self.limits.connect,
                    ready: false,
                };
                self.connections
                    .insert(key, Connection::Connecting(pending));
            }
            Attempt::Failed(error) => refuse(syn, error, stack, out, now),
        }
    }

    /// Drops the oldest half-open connection, so that a guest program that opens many and
    /// completes none cannot block the others. Returns whether there was one.
    fn drop_half_open(&mut self) -> bool {
        let since = |connection: &Connection| match connection {
            Connection::Connecting(pending) => Some(pending.since),
            Connection::Joined(flow) => flow.opening_since(),
        };
        let all = self.connections.iter();
        let half_open = all.filter_map(|(key, connection)| Some((since(connection)?, *key)));
        let Some((_, oldest)) = half_open.min() else {
            return false;
        };
        if let Some(Connection::Joined(mut flow)) = self.connections.remove(&oldest) {
            flow.reset_host();
        }
        true
    }

    /// Joins a connected host socket to the guest's SYN.
    fn join(
        &mut self,
        key: TcpKey,
        socket: OwnedFd,
        syn: &[u8],
        stack: &mut Stack,
        out: &mut Outbox,
        now: Instant,
    ) {
        let flow = Flow::accept(key, socket, self.len(), syn, stack, out, now);
        if let Some(flow) = flow {
            self.connections
                .insert(key, Connection::Joined(Box::new(flow)));
        }
    }

    /// Connections that forwards may still add.
    pub(super) fn room(&self) -> usize {
        self.limits.tcp.saturating_sub(self.len())
    }

    /// Connects a socket that a forward accepted to a port of the guest.
    pub(super) fn forward(
        &mut self,
        socket: OwnedFd,
        guest_port: u16,
        stack: &mut Stack,
        now: Instant,
    ) {
        // There are fewer connections than ports.
        let key = loop {
            let peer_port = self.next_port;
            self.next_port = peer_port.checked_add(1).unwrap_or(FIRST_DYNAMIC_PORT);
            let peer = GATEWAY.into();
            let key = TcpKey {
                guest_port,
                peer,
                peer_port,
            };
            if !self.connections.contains_key(&key) {
                break key;
            }
        };
        if let Some(flow) = Flow::connect(key, socket, self.len(), stack, now) {
            self.connections
                .insert(key, Connection::Joined(Box::new(flow)));
        }
    }

    /// Handles finished connects, moves bytes, and sends pending packets to the guest.
    pub(super) fn step(&mut self, stack: &mut Stack, out: &mut Outbox, now: Instant) {
        self.answered(stack, out, now);
        let mut busy = Vec::new();
        for (key, connection) in &mut self.connections {
            if let Connection::Joined(flow) = connection
                && flow.pump(now)
            {
                busy.push(*key);
            }
        }
        self.egress(busy, stack, out, now);
        self.connections.retain(|_, connection| match connection {
            Connection::Joined(flow) => !flow.is_over(),
            Connection::Connecting(_) => true,
        });
    }

    /// Joins or refuses connections whose connect has finished.
    fn answered(&mut self, stack: &mut Stack, out: &mut Outbox, now: Instant) {
        let due = |pending: &PendingSyn| pending.ready || pending.until <= now;
        let answered: Vec<TcpKey> = self
            .connections
            .iter()
            .filter(|(_, connection)| matches!(connection, Connection::Connecting(pending) if due(pending)))
            .map(|(key, _)| *key)
            .collect();
        for key in answered {
            let Some(Connection::Connecting(pending)) = self.connections.remove(&key) else {
                continue;
            };
            let outcome = match pending.ready {
                true => sockopt::socket_error(&pending.socket).unwrap_or_else(Err),
                false => Err(Errno::TIMEDOUT),
            };
            match outcome {
                Ok(()) => self.join(key, pending.socket, &pending.syn, stack, out, now),
                Err(error) => refuse(&pending.syn, error, stack, out, now),
            }
        }
    }

    /// Lets the connections send round-robin, a packet each.
    fn egress(&mut self, mut busy: Vec<TcpKey>, stack: &mut Stack, out: &mut Outbox, now: Instant) {
        if busy.is_empty() {
            return;
        }
        self.first = self.first.wrapping_add(1);
        let first = self.first % busy.len();
        busy.rotate_left(first);
        while !busy.is_empty() {
            let mut full = false;
            busy.retain(|key| match self.connections.get_mut(key) {
                Some(Connection::Joined(flow)) if !full => {
                    let sent = flow.egress(stack, out, now);
                    full = out.held_back();
                    sent && !full
                }
                _ => false,
            });
        }
    }

    /// Ends idle connections.
    pub(super) fn expire(&mut self, now: Instant) {
        for connection in self.connections.values_mut() {
            if let Connection::Joined(flow) = connection {
                flow.expire(&self.limits, now);
            }
        }
    }

    /// Time of the next deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        let next = |connection: &Connection| match connection {
            Connection::Connecting(pending) => Some(pending.until),
            Connection::Joined(flow) => flow.timer(),
        };
        self.connections.values().filter_map(next).min()
    }

    /// Descriptors and events to poll.
    pub(super) fn interest<'a>(&'a self, mut add: impl FnMut(TcpKey, PollFd<'a>)) {
        for (key, connection) in &self.connections {
            match connection {
                Connection::Connecting(pending) => {
                    add(
                        *key,
                        PollFd::from_borrowed_fd(pending.socket.as_fd(), PollFlags::OUT),
                    );
                }
                Connection::Joined(flow) => {
                    if let Some(fd) = flow.interest() {
                        add(*key, fd);
                    }
                }
            }
        }
    }

    /// Records events of the host's socket.
    pub(super) fn ready(&mut self, key: TcpKey, events: PollFlags) {
        match self.connections.get_mut(&key) {
            Some(Connection::Connecting(pending)) => pending.ready = true,
            Some(Connection::Joined(flow)) => flow.ready(events),
            None => {}
        }
    }
}

/// Starts a non-blocking connect.
fn connect(target: SocketAddr) -> Attempt {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = family_of(target.ip());
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
    let socket = match socket {
        Ok(socket) => socket,
        Err(error) => return Attempt::Failed(error),
    };
    match rustix::net::connect(&socket, &target) {
        Ok(()) => Attempt::Connected(socket),
        Err(Errno::INPROGRESS) => Attempt::Waiting(socket),
        Err(error) => Attempt::Failed(error),
    }
}

/// Answers the guest's SYN after a failed connect.
fn refuse(syn: &[u8], error: Errno, stack: &mut Stack, out: &mut Outbox, now: Instant) {
    match error {
        // The host is short of descriptors or memory; the guest retransmits.
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN => {
            out.count_drop()
        }
        error => match unreachable(error) {
            Some(why) if why != Unreachable::Port => out.unreachable(why, syn),
            _ => stack.refuse(syn, out, now),
        },
    }
}

/// Closes a socket of the host with RST.
fn reset(socket: OwnedFd) {
    // Without it the peer would see an orderly end, which is worse than none; it fails only
    // on non-sockets.
    let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
}
