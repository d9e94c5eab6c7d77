//! Body of the fuzz target `net_frames`: a guest that sends arbitrary frames.
//!
//! The script's records become frames. Some are sent unchanged; most get headers that route
//! them to one of the protocols. The policy allows one listening port and one that refuses,
//! both on the host's loopback, so that no packet leaves the host.

use super::config::{Checksums, Config};
use super::link::{Frame, Link, Shared};
use super::resolver::{ResolveError, Resolver};
use super::wire::{
    self, ETHERNET_BYTES, Fragment, IPV4_BYTES, IPV6_BYTES, LINK_HOP_LIMIT, TYPE_IPV4, TYPE_IPV6,
};
use super::worker::Worker;
use super::{GATEWAY, GATEWAY_MAC, GATEWAY_V6, GUEST, GUEST_V6, HOST, HOST_V6, guest_for};
use smoltcp::wire::IpProtocol;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum bytes of a script's frame.
const MAX_BODY_BYTES: usize = 2000;
/// Frames between two steps of the gateway.
const FRAMES_PER_STEP: usize = 8;
/// Table sizes, small enough to be reached.
const TABLE: usize = 8;

/// Accepts no connection; the host's backlog answers until it is full.
static LISTENER: LazyLock<Option<TcpListener>> =
    LazyLock::new(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok());

/// Answers at once, depending on the name's length.
struct Instantly;

impl Resolver for Instantly {
    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        match name.len() % 3 {
            0 => Ok(vec![
                Ipv4Addr::LOCALHOST.into(),
                Ipv4Addr::new(192, 0, 2, 1).into(),
                Ipv6Addr::LOCALHOST.into(),
            ]),
            1 => Err(ResolveError::NotFound),
            _ => Err(ResolveError::Failed),
        }
    }
}

/// A script, read from its start.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// Reads a body after its length.
    fn body(&mut self) -> &'a [u8] {
        let [high, low] = [self.byte().unwrap_or(0), self.byte().unwrap_or(0)];
        self.bytes(usize::from(u16::from_be_bytes([high, low])) % MAX_BODY_BYTES)
    }
}

/// Feeds arbitrary guest frames: no panic, bounded tables and queues, and a gateway that
/// still answers afterwards.
///
/// # Panics
/// If the gateway fails.
pub fn net_frames(data: &[u8]) {
    let mut script = Script(data);
    let choice = script.byte().unwrap_or(0);
    let open = LISTENER
        .as_ref()
        .and_then(|socket| socket.local_addr().ok());
    let open = open.map_or(1, |address| address.port());
    // Port 1 of the loopback is tcpmux, which is closed on real hosts.
    let policy = format!("allow:localhost:{open},localhost:1,*.test");
    let mut config = Config::new(policy.parse().unwrap_or_default());
    if choice & 1 != 0 {
        config.mtu = 1500;
    }
    if choice & 2 != 0 {
        config.checksums = Checksums::Verified;
    }
    config.limits.tcp = TABLE;
    config.limits.udp = TABLE;
    config.limits.ping = TABLE;
    config.resolver = Arc::new(Instantly);
    let Ok(shared) = Shared::new() else { return };
    let Ok(mut worker) = Worker::new(&config, Vec::new(), shared.clone(), Box::new(|| ())) else {
        return;
    };
    let mut link = Link::new(shared.clone());
    let mut count = 0;
    while let Some(kind) = script.byte() {
        let frame = frame(kind, &mut script, open);
        assert!(link.send(&frame), "there is room");
        count += 1;
        if count % FRAMES_PER_STEP == 0 {
            step(&mut worker, &mut link, &shared);
        }
    }
    step(&mut worker, &mut link, &shared);
    works(&mut worker, &mut link);
}

fn step(worker: &mut Worker, link: &mut Link, shared: &Shared) {
    assert!(worker.step());
    worker.wait(Duration::ZERO);
    while let Some(frame) = link.receive() {
        assert!(frame.bytes.len() >= ETHERNET_BYTES && frame.bytes[6..12] == GATEWAY_MAC);
    }
    let counters = &shared.counters;
    for counter in [&counters.tcp, &counters.udp, &counters.ping] {
        assert!(counter.load(Ordering::Relaxed) <= TABLE);
    }
}

/// Destinations on the link and beyond it, by family.
const DESTINATIONS: [[IpAddr; 4]; 2] = [
    [
        IpAddr::V4(GATEWAY),
        IpAddr::V4(HOST),
        IpAddr::V4(GUEST),
        IpAddr::V4(Ipv4Addr::BROADCAST),
    ],
    [
        IpAddr::V6(GATEWAY_V6),
        IpAddr::V6(HOST_V6),
        IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()),
        IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1)),
    ],
];

/// Builds a frame from the script.
fn frame(kind: u8, script: &mut Script<'_>, open: u16) -> Vec<u8> {
    let v6 = kind & 8 != 0;
    let body = script.body();
    let to = DESTINATIONS[usize::from(v6)][usize::from(kind >> 4) % 4];
    let port = [open, 1, 53, 67][usize::from(kind >> 6)];
    match kind % 8 {
        0 => body.to_vec(),
        1 if v6 => neighbor(body),
        1 => ethernet(0x0806, body),
        2 if v6 => headers(body),
        2 => ethernet(TYPE_IPV4, body),
        3 => ip(IpProtocol::Tcp, to, &tcp(body, to, port)),
        4 => {
            let from_port = if port == 67 { 68 } else { 4000 };
            let datagram = wire::udp((guest_for(to), from_port), (to, port), body);
            ip(IpProtocol::Udp, to, &datagram.unwrap_or_default())
        }
        5 => {
            let rest = [0, kind, 0, 1];
            match v6 {
                true => {
                    let echo = wire::icmpv6((guest_for(to), to), 128, 0, rest, body);
                    ip(IpProtocol::Icmpv6, to, &echo)
                }
                false => ip(IpProtocol::Icmp, to, &wire::icmp(8, 0, rest, body)),
            }
        }
        6 => fragment(kind, DESTINATIONS[usize::from(v6)][1], body),
        _ => {
            // A query for the name in the body.
            let mut query = vec![0, kind, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            query.extend_from_slice(body);
            query.extend_from_slice(b"\x04test\0\0");
            query.extend_from_slice(if v6 { &[28, 0, 1] } else { &[1, 0, 1] });
            let to = GATEWAY.into();
            let datagram = wire::udp((GUEST.into(), 4001), (to, 53), &query);
            ip(IpProtocol::Udp, to, &datagram.unwrap_or_default())
        }
    }
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_BYTES];
    wire::ethernet(&mut frame, GATEWAY_MAC, kind);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame.extend_from_slice(payload);
    frame
}

fn packet(protocol: IpProtocol, to: IpAddr, payload: &[u8], cut: Option<Fragment>) -> Vec<u8> {
    let packet = wire::packet(protocol, (guest_for(to), to), payload, cut);
    let packet = packet.unwrap_or_default().split_off(ETHERNET_BYTES);
    ethernet(if to.is_ipv6() { TYPE_IPV6 } else { TYPE_IPV4 }, &packet)
}

fn ip(protocol: IpProtocol, to: IpAddr, payload: &[u8]) -> Vec<u8> {
    packet(protocol, to, payload, None)
}

/// Builds a message of neighbor discovery with a right checksum: the first byte is its type,
/// the rest its fields and options.
fn neighbor(body: &[u8]) -> Vec<u8> {
    let (kind, rest) = body.split_first().unwrap_or((&0, &[]));
    let to = GATEWAY_V6.into();
    let message = wire::icmpv6((GUEST_V6.into(), to), 133 + kind % 5, 0, [0; 4], rest);
    let mut frame = ip(IpProtocol::Icmpv6, to, &message);
    frame[ETHERNET_BYTES + 7] = LINK_HOP_LIMIT;
    frame
}

/// Builds an IPv6 packet with extension headers or any other protocol: the first byte is its
/// number, the rest follows.
fn headers(body: &[u8]) -> Vec<u8> {
    let (next, rest) = body.split_first().unwrap_or((&0, &[]));
    ip(IpProtocol::from(*next), HOST_V6.into(), rest)
}

/// Builds a segment: the first bytes are flags, port and sequence numbers, the rest options
/// and data.
fn tcp(body: &[u8], to: IpAddr, port: u16) -> Vec<u8> {
    let at = |index: usize| body.get(index).copied().unwrap_or(0);
    let mut segment = vec![0x0f, at(0) % 16];
    segment.extend_from_slice(&port.to_be_bytes());
    segment.extend_from_slice(&[0, 0, 0, at(1), at(2), at(3), at(4), at(5)]);
    segment.extend_from_slice(&[at(6) | 0x50, at(7), at(8), at(9), 0, 0, 0, 0]);
    segment.extend_from_slice(body.get(10..).unwrap_or_default());
    let sum = wire::message_checksum((guest_for(to), to), IpProtocol::Tcp, &segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    segment
}

fn fragment(kind: u8, to: IpAddr, body: &[u8]) -> Vec<u8> {
    let offset = body.first().map_or(0, |byte| u16::from(*byte) * 8);
    let fragment = Fragment {
        ident: u32::from(kind >> 6),
        offset,
        more: kind & 0x20 != 0,
    };
    let payload = body.get(1..).unwrap_or_default();
    packet(IpProtocol::Udp, to, payload, Some(fragment))
}

/// The gateway must still answer an echo request of either family.
fn works(worker: &mut Worker, link: &mut Link) {
    while link.receive().is_some() {}
    let rest = [0xab, 0xcd, 0, 1];
    let data = b"still there?";
    let ends = (GUEST_V6.into(), GATEWAY_V6.into());
    let echoes = [
        (
            ip(
                IpProtocol::Icmp,
                GATEWAY.into(),
                &wire::icmp(8, 0, rest, data),
            ),
            IPV4_BYTES,
            wire::icmp(0, 0, rest, data),
        ),
        (
            ip(
                IpProtocol::Icmpv6,
                ends.1,
                &wire::icmpv6(ends, 128, 0, rest, data),
            ),
            IPV6_BYTES,
            wire::icmpv6(ends, 129, 0, rest, data),
        ),
    ];
    for (echo, header, reply) in echoes {
        assert!(link.send(&echo));
        assert!(worker.step());
        let frames = std::iter::from_fn(|| link.receive());
        let payload = |frame: Frame| {
            frame
                .bytes
                .get(ETHERNET_BYTES + header..)
                .map(<[u8]>::to_vec)
        };
        let mut payloads = frames.filter_map(payload);
        assert!(payloads.any(|payload| payload == reply), "no answer");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_script_finds_the_gateway_working() {
        net_frames(&[]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn s05_any_bytes_are_no_panic(data in prop::collection::vec(any::<u8>(), 0..4000)) {
            net_frames(&data);
        }

        /// Mostly packets that reach a protocol handler.
        #[test]
        fn s05_any_packets_are_no_panic(
            choice in any::<u8>(),
            records in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..80)), 0..60),
        ) {
            let mut data = vec![choice];
            for (kind, body) in records {
                data.extend([kind, 0, body.len() as u8]);
                data.extend(body);
            }
            net_frames(&data);
        }
    }
}
