//! Event loop of the gateway's thread: frames in, sockets moved, frames out, sleep.
//!
//! A step never blocks. The poll set is rebuilt after each step, so that it holds only
//! descriptors that a step would serve.

use super::config::{Checksums, Config};
use super::egress_filter::EgressFilter;
use super::error::NetError;
use super::forward::Listener;
use super::link::Shared;
use super::names::Names;
use super::neighbor;
use super::outbox::Outbox;
use super::packet::{self, IpPacket, Parsed};
use super::ping::{self, Ping};
use super::rate::TokenBucket;
use super::reassembly::Reassembler;
use super::stack::Stack;
use super::tcp::{self, Tcp};
use super::udp::{self, Udp};
use super::wire::{self, ETHERNET_BYTES, TYPE_ARP, TYPE_IPV4, TYPE_IPV6};
use super::{BROADCAST, GATEWAY, GATEWAY_MAC, GUEST, dhcp, dns, guest_for, is_gateway};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::AsFd;
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress, IpProtocol, UdpPacket};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Maximum bytes of frames taken from the guest in a step, so that sockets are served too.
const BYTES_PER_STEP: usize = 512 << 10;
/// Interval between expiry checks.
const TICK: Duration = Duration::from_secs(1);
/// Maximum sleep, which bounds the cost of a wrong timer.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// State of the gateway.
pub(super) struct Worker {
    link: Arc<Shared>,
    wake: Box<dyn Fn() + Send>,
    checksums: Checksums,
    mtu: u16,
    out: Outbox,
    from_guest: TokenBucket,
    filter: EgressFilter,
    names: Names,
    stack: Stack,
    tcp: Tcp,
    udp: Udp,
    ping: Ping,
    reassembler: Reassembler,
    listeners: Vec<Listener>,
    taken: Vec<Vec<u8>>,
    ticked: Instant,
    /// Datagrams wait for room on the way to the guest.
    datagrams_wait: bool,
    more: bool,
}

/// Owner of a polled descriptor.
#[derive(Copy, Clone, Debug)]
enum Source {
    Link,
    Tcp(tcp::TcpKey),
    Udp(udp::UdpKey),
    Ping(ping::EchoKey),
    Listener(usize),
}

impl Worker {
    pub(super) fn new(
        config: &Config,
        listeners: Vec<Listener>,
        link: Arc<Shared>,
        wake: Box<dyn Fn() + Send>,
    ) -> Result<Self, NetError> {
        let now = Instant::now();
        let mut out = Outbox::new(config.mtu, config.mac, config.rate.to_guest);
        Ok(Self {
            wake,
            checksums: config.checksums,
            mtu: config.mtu,
            from_guest: TokenBucket::new(config.rate.from_guest, now),
            filter: EgressFilter::new(config.policy.clone()),
            names: Names::new(config.resolver.clone(), link.clone()),
            stack: Stack::new(config, &mut out, now)?,
            tcp: Tcp::new(&config.limits),
            udp: Udp::new(&config.limits),
            ping: Ping::new(&config.limits),
            reassembler: Reassembler::default(),
            listeners,
            taken: Vec::new(),
            ticked: now,
            datagrams_wait: false,
            more: false,
            out,
            link,
        })
    }

    /// Runs the event loop.
    pub(super) fn run(mut self) {
        while self.step() {
            self.wait(MAX_SLEEP);
        }
    }

    /// Runs one step; `false` at the end.
    pub(super) fn step(&mut self) -> bool {
        let now = Instant::now();
        self.out.begin(&self.link, now);
        self.from_guest.fill(now);
        let bytes = self.from_guest.allowance().min(BYTES_PER_STEP);
        let mut frames = std::mem::take(&mut self.taken);
        let taken = self.link.take(bytes, &mut frames);
        if taken.stopped {
            return false;
        }
        self.more = taken.more;
        for frame in frames.drain(..) {
            self.from_guest.take(frame.len());
            self.frame(&frame, now);
        }
        self.taken = frames;
        for (port, answer) in self.names.finished(&mut self.filter, now) {
            self.send_answer(port, &answer);
        }
        self.accept(now);
        self.tcp.step(&mut self.stack, &mut self.out, now);
        self.datagrams_wait = self.udp.pump(&mut self.out, now);
        self.datagrams_wait |= self.ping.pump(&mut self.out, now);
        if now.saturating_duration_since(self.ticked) >= TICK {
            self.tick(now);
        }
        if self.out.end(&self.link, self.datagrams_wait) | taken.guest_waits {
            (self.wake)();
        }
        self.count();
        true
    }

    /// Accepts forwarded connections.
    fn accept(&mut self, now: Instant) {
        let Self { tcp, stack, .. } = self;
        for listener in &mut self.listeners {
            // Connections without room stay in the host's backlog.
            listener.accept(tcp.room(), |socket, port| {
                tcp.forward(socket, port, stack, now);
            });
        }
        if !self.listeners.is_empty() && self.tcp.len() > 0 && self.out.guest().is_none() {
            self.out.frame(wire::arp_request(), false);
        }
    }

    /// Drops expired entries.
    fn tick(&mut self, now: Instant) {
        self.ticked = now;
        self.tcp.expire(now);
        self.udp.expire(now);
        self.ping.expire(now);
        self.filter.expire(now);
        self.names.expire(now);
        self.listeners.iter_mut().for_each(Listener::resume);
    }

    fn count(&self) {
        let counters = &self.link.counters;
        let set = |counter: &std::sync::atomic::AtomicUsize, value| {
            counter.store(value, Ordering::Relaxed)
        };
        set(&counters.tcp, self.tcp.len());
        set(&counters.connecting, self.tcp.connecting());
        set(&counters.udp, self.udp.len());
        set(&counters.ping, self.ping.len());
    }

    /// Sleeps until an event or a timer, `longest` at most.
    pub(super) fn wait(&mut self, longest: Duration) {
        let timeout = self.timeout(Instant::now()).min(longest);
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        let mut sources = vec![Source::Link];
        let mut fds = vec![PollFd::from_borrowed_fd(
            self.link.event().as_fd(),
            PollFlags::IN,
        )];
        let mut add = |source, fd| {
            sources.push(source);
            fds.push(fd);
        };
        self.tcp.interest(|key, fd| add(Source::Tcp(key), fd));
        self.udp.interest(|key, fd| add(Source::Udp(key), fd));
        self.ping.interest(|key, fd| add(Source::Ping(key), fd));
        if self.tcp.room() > 0 {
            for (index, listener) in self.listeners.iter().enumerate() {
                if let Some(fd) = listener.interest() {
                    add(Source::Listener(index), fd);
                }
            }
        }
        // An interrupted or failed wait counts as a short one.
        if rustix::event::poll(&mut fds, Some(&timeout)).is_err() {
            return;
        }
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        for (source, events) in sources.into_iter().zip(events) {
            if events.is_empty() {
                continue;
            }
            match source {
                Source::Link => self.link.clear_notifications(),
                Source::Tcp(key) => self.tcp.ready(key, events),
                Source::Udp(key) => self.udp.ready(key),
                Source::Ping(key) => self.ping.ready(key),
                Source::Listener(index) => self.listeners[index].set_ready(),
            }
        }
    }

    /// Time until the next timer.
    fn timeout(&self, now: Instant) -> Duration {
        let limited = self.from_guest.closed_for().map(|time| now + time);
        let mut due = [self.tcp.next(), None, None, None];
        if self.more {
            due[1] = Some(limited.unwrap_or(now));
        }
        if self.out.held_back() || self.datagrams_wait {
            due[2] = self.out.closed_until(now);
        }
        let idle = self.tcp.len() + self.udp.len() + self.ping.len() == 0;
        if !idle || self.listeners.iter().any(Listener::is_paused) {
            due[3] = Some(self.ticked + TICK);
        }
        let due = due.into_iter().flatten().min();
        due.map_or(MAX_SLEEP, |due| due.saturating_duration_since(now))
    }

    /// Handles a frame of the guest.
    fn frame(&mut self, frame: &[u8], now: Instant) {
        if frame.len() < ETHERNET_BYTES {
            return self.out.count_drop();
        }
        let (header, payload) = frame.split_at(ETHERNET_BYTES);
        let to = &header[..6];
        // IPv6 asks for addresses by multicast (RFC 2464).
        let multicast = to.starts_with(&[0x33, 0x33]);
        if to != GATEWAY_MAC && to != [0xff; 6] && !multicast {
            return;
        }
        let mut from = [0; 6];
        from.copy_from_slice(&header[6..12]);
        if !EthernetAddress(from).is_unicast() {
            return self.out.count_drop();
        }
        let kind = u16::from_be_bytes([header[12], header[13]]);
        match kind {
            TYPE_ARP => {
                self.out.learn(from);
                self.arp(payload);
            }
            TYPE_IPV4 | TYPE_IPV6 => {
                self.out.learn(from);
                match wire::is_v6(payload) == (kind == TYPE_IPV6) {
                    true => self.ip(payload, now),
                    false => self.out.count_drop(),
                }
            }
            // Other protocols are ignored.
            _ => {}
        }
    }

    /// Answers ARP requests for the gateway's addresses.
    fn arp(&mut self, payload: &[u8]) {
        let repr = ArpPacket::new_checked(payload).and_then(|packet| ArpRepr::parse(&packet));
        let Ok(ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr: EthernetAddress(mac),
            source_protocol_addr: asker,
            target_protocol_addr: asked,
            ..
        }) = repr
        else {
            return;
        };
        if is_gateway(asked.into()) && EthernetAddress(mac).is_unicast() {
            let reply = wire::arp(ArpOperation::Reply, asked, mac, asker);
            self.out.frame(reply, false);
        }
    }

    /// Handles an IP packet, which may be followed by the padding of a short frame.
    fn ip(&mut self, payload: &[u8], now: Instant) {
        match packet::parse(payload) {
            Some(Parsed::Whole(packet)) => self.packet(&packet, now),
            Some(Parsed::Part(part)) => {
                let Some(whole) = self.reassembler.add(&part, now) else {
                    return;
                };
                // Honest senders do not fragment fragments.
                match whole.get(ETHERNET_BYTES..).and_then(packet::parse) {
                    Some(Parsed::Whole(packet)) => self.packet(&packet, now),
                    _ => self.out.count_drop(),
                }
            }
            None => self.out.count_drop(),
        }
    }

    /// Handles a complete IP packet.
    fn packet(&mut self, packet: &IpPacket<'_>, now: Instant) {
        let everyone = match packet.to {
            IpAddr::V4(to) => to.is_broadcast() || to.is_multicast() || to == BROADCAST,
            IpAddr::V6(to) => to.is_multicast(),
        };
        match packet.protocol {
            IpProtocol::Udp => self.udp(packet, everyone, now),
            _ if neighbor::is_solicitation(packet) => {
                let mac = self.out.guest();
                if let Some(answer) = mac.and_then(|mac| neighbor::answer(packet, mac)) {
                    self.out.frame(answer, false);
                }
            }
            // The guest may not spoof addresses or use multicast.
            _ if everyone || packet.from != guest_for(packet.to) => {}
            IpProtocol::Tcp => {
                let Self {
                    tcp,
                    filter,
                    stack,
                    out,
                    ..
                } = self;
                tcp.packet(packet, filter, stack, out, now);
            }
            IpProtocol::Icmp | IpProtocol::Icmpv6 => {
                self.ping.packet(packet, &self.filter, &mut self.out, now);
            }
            _ => self.out.count_drop(),
        }
    }

    fn udp(&mut self, packet: &IpPacket<'_>, everyone: bool, now: Instant) {
        let Ok(udp) = UdpPacket::new_checked(packet.payload) else {
            return self.out.count_drop();
        };
        let (from, to) = (packet.from, packet.to);
        let verify = self.checksums == Checksums::Verified;
        // IPv6 has no datagrams without a checksum (RFC 8200 section 8.1).
        let absent = udp.checksum() == 0 && to.is_ipv6();
        if verify && (absent || !udp.verify_checksum(&from.into(), &to.into())) {
            return self.out.count_drop();
        }
        let gateway = IpAddr::V4(GATEWAY);
        let ours = to == gateway || (everyone && to.is_ipv4());
        let asks = udp.src_port() == dhcp::CLIENT_PORT && udp.dst_port() == dhcp::SERVER_PORT;
        if ours && asks && (from == IpAddr::V4(GUEST) || from.is_unspecified()) {
            return self.dhcp(udp.payload());
        }
        if everyone || from != guest_for(to) {
            return;
        }
        if to == gateway && udp.dst_port() == dns::PORT {
            let port = udp.src_port();
            if let Some(answer) = self.names.query(udp.payload(), port, &mut self.filter, now) {
                self.send_answer(port, &answer);
            }
            return;
        }
        self.udp
            .packet(packet, &udp, &self.filter, &mut self.out, now);
    }

    fn dhcp(&mut self, message: &[u8]) {
        let Some(reply) = dhcp::answer(message, self.mtu) else {
            return;
        };
        let ports = (dhcp::SERVER_PORT, dhcp::CLIENT_PORT);
        let (from, to) = (GATEWAY.into(), reply.to.into());
        let datagram = wire::udp((from, ports.0), (to, ports.1), &reply.payload);
        if let Some(datagram) = datagram {
            self.out
                .packet_to(reply.to_mac, to, IpProtocol::Udp, from, &datagram);
        }
    }

    /// Sends a DNS answer to the guest.
    fn send_answer(&mut self, port: u16, answer: &[u8]) {
        let from = GATEWAY.into();
        if let Some(datagram) = wire::udp((from, dns::PORT), (GUEST.into(), port), answer) {
            self.out.packet(IpProtocol::Udp, from, &datagram);
        }
    }
}
