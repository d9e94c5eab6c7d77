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
use super::outbox::Outbox;
use super::ping::{self, Ping};
use super::rate::TokenBucket;
use super::reassembly::Reassembler;
use super::stack::Stack;
use super::tcp::{self, Tcp};
use super::udp::{self, Udp};
use super::wire::{self, ETHERNET_BYTES, TYPE_ARP, TYPE_IPV4};
use super::{BROADCAST, GATEWAY, GATEWAY_MAC, GUEST, HOST, dhcp, dns};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::AsFd;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, IpProtocol, Ipv4Packet, UdpPacket,
};
use std::net::Ipv4Addr;
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
        if !self.listeners.is_empty() && self.tcp.len() > 0 && !self.out.knows_guest() {
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
        if to != GATEWAY_MAC && to != [0xff; 6] {
            return;
        }
        let mut from = [0; 6];
        from.copy_from_slice(&header[6..12]);
        if !EthernetAddress(from).is_unicast() {
            return self.out.count_drop();
        }
        match u16::from_be_bytes([header[12], header[13]]) {
            TYPE_ARP => {
                self.out.learn(from);
                self.arp(payload);
            }
            TYPE_IPV4 => {
                self.out.learn(from);
                self.ipv4(payload, now);
            }
            // IPv6 and other protocols are ignored.
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
        if (asked == GATEWAY || asked == HOST) && EthernetAddress(mac).is_unicast() {
            let reply = wire::arp(ArpOperation::Reply, asked, mac, asker);
            self.out.frame(reply, false);
        }
    }

    /// Handles an IP packet, which may be followed by the padding of a short frame.
    fn ipv4(&mut self, payload: &[u8], now: Instant) {
        let Ok(ip) = Ipv4Packet::new_checked(payload) else {
            return self.out.count_drop();
        };
        if ip.version() != 4 || !ip.verify_checksum() {
            return self.out.count_drop();
        }
        if ip.more_frags() || ip.frag_offset() != 0 {
            if let Some(whole) = self.reassembler.add(&ip, now) {
                self.packet(&whole, now);
            }
            return;
        }
        let length = usize::from(ip.total_len());
        self.packet(&payload[..length], now);
    }

    /// Handles a complete IP packet.
    fn packet(&mut self, packet: &[u8], now: Instant) {
        let Ok(ip) = Ipv4Packet::new_checked(packet) else {
            return self.out.count_drop();
        };
        let to = ip.dst_addr();
        let everyone = to.is_broadcast() || to.is_multicast() || to == BROADCAST;
        match ip.next_header() {
            IpProtocol::Udp => self.udp(packet, &ip, everyone, now),
            // The guest may not spoof addresses or use multicast.
            _ if everyone || ip.src_addr() != GUEST => {}
            IpProtocol::Tcp => {
                let Self {
                    tcp,
                    filter,
                    stack,
                    out,
                    ..
                } = self;
                tcp.packet(packet, &ip, filter, stack, out, now);
            }
            IpProtocol::Icmp => self
                .ping
                .packet(packet, &ip, &self.filter, &mut self.out, now),
            _ => self.out.count_drop(),
        }
    }

    fn udp(&mut self, packet: &[u8], ip: &Ipv4Packet<&[u8]>, everyone: bool, now: Instant) {
        let Ok(udp) = UdpPacket::new_checked(ip.payload()) else {
            return self.out.count_drop();
        };
        let (from, to) = (ip.src_addr(), ip.dst_addr());
        let verify = self.checksums == Checksums::Verified && udp.checksum() != 0;
        if verify && !udp.verify_checksum(&from.into(), &to.into()) {
            return self.out.count_drop();
        }
        let ours = to == GATEWAY || everyone;
        let asks = udp.src_port() == dhcp::CLIENT_PORT && udp.dst_port() == dhcp::SERVER_PORT;
        if ours && asks && (from == GUEST || from.is_unspecified()) {
            return self.dhcp(udp.payload());
        }
        if everyone || from != GUEST {
            return;
        }
        if to == GATEWAY && udp.dst_port() == dns::PORT {
            let port = udp.src_port();
            if let Some(answer) = self.names.query(udp.payload(), port, &mut self.filter, now) {
                self.send_answer(port, &answer);
            }
            return;
        }
        self.udp
            .packet(packet, ip, &udp, &self.filter, &mut self.out, now);
    }

    fn dhcp(&mut self, message: &[u8]) {
        let Some(reply) = dhcp::answer(message, self.mtu) else {
            return;
        };
        let ports = (dhcp::SERVER_PORT, dhcp::CLIENT_PORT);
        let datagram = wire::udp((GATEWAY, ports.0), (reply.to, ports.1), &reply.payload);
        if let Some(datagram) = datagram {
            let (mac, to) = (reply.to_mac, reply.to);
            self.out
                .packet_to(mac, to, IpProtocol::Udp, GATEWAY, &datagram);
        }
    }

    /// Sends a DNS answer to the guest.
    fn send_answer(&mut self, port: u16, answer: &[u8]) {
        let from: (Ipv4Addr, u16) = (GATEWAY, dns::PORT);
        if let Some(datagram) = wire::udp(from, (GUEST, port), answer) {
            self.out.packet(IpProtocol::Udp, GATEWAY, &datagram);
        }
    }
}
