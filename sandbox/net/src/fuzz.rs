//! Body of the fuzz target `net_frames`: a guest that sends arbitrary frames.
//!
//! The script's records become frames. Some are sent unchanged; most get headers that route
//! them to one of the protocols. The policy allows one listening port and one that refuses,
//! both on the host's loopback, so that no packet leaves the host.

use super::config::{Checksums, Config};
use super::link::{Link, Shared};
use super::resolver::{ResolveError, Resolver};
use super::wire::{self, ETHERNET_BYTES, Fragment, IPV4_BYTES, TYPE_IPV4};
use super::worker::Worker;
use super::{GATEWAY, GATEWAY_MAC, GUEST, HOST};
use smoltcp::wire::IpProtocol;
use std::net::{Ipv4Addr, TcpListener};
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
    fn resolve(&self, name: &str) -> Result<Vec<Ipv4Addr>, ResolveError> {
        match name.len() % 3 {
            0 => Ok(vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(192, 0, 2, 1)]),
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

/// Builds a frame from the script.
fn frame(kind: u8, script: &mut Script<'_>, open: u16) -> Vec<u8> {
    let body = script.body();
    let to = [GATEWAY, HOST, GUEST, Ipv4Addr::BROADCAST][usize::from(kind >> 4) % 4];
    let port = [open, 1, 53, 67][usize::from(kind >> 6)];
    match kind % 8 {
        0 => body.to_vec(),
        1 => ethernet(0x0806, body),
        2 => ethernet(TYPE_IPV4, body),
        3 => ipv4(IpProtocol::Tcp, to, &tcp(body, port)),
        4 => {
            let from_port = if port == 67 { 68 } else { 4000 };
            let datagram = wire::udp((GUEST, from_port), (to, port), body);
            ipv4(IpProtocol::Udp, to, &datagram.unwrap_or_default())
        }
        5 => {
            let rest = [0, kind, 0, 1];
            ipv4(IpProtocol::Icmp, to, &wire::icmp(8, 0, rest, body))
        }
        6 => fragment(kind, body),
        _ => {
            // A query for the name in the body.
            let mut query = vec![0, kind, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            query.extend_from_slice(body);
            query.extend_from_slice(b"\x04test\0\0\x01\0\x01");
            let datagram = wire::udp((GUEST, 4001), (GATEWAY, 53), &query);
            ipv4(IpProtocol::Udp, GATEWAY, &datagram.unwrap_or_default())
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

fn packet(protocol: IpProtocol, to: Ipv4Addr, payload: &[u8], fragment: Fragment) -> Vec<u8> {
    let mut packet = vec![0; IPV4_BYTES];
    packet.extend_from_slice(payload);
    wire::ipv4(&mut packet, protocol, GUEST, to, fragment);
    ethernet(TYPE_IPV4, &packet)
}

fn ipv4(protocol: IpProtocol, to: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    packet(protocol, to, payload, Fragment::default())
}

/// Builds a segment: the first bytes are flags, port and sequence numbers, the rest options
/// and data.
fn tcp(body: &[u8], port: u16) -> Vec<u8> {
    let at = |index: usize| body.get(index).copied().unwrap_or(0);
    let mut segment = vec![0x0f, at(0) % 16];
    segment.extend_from_slice(&port.to_be_bytes());
    segment.extend_from_slice(&[0, 0, 0, at(1), at(2), at(3), at(4), at(5)]);
    segment.extend_from_slice(&[at(6) | 0x50, at(7), at(8), at(9), 0, 0, 0, 0]);
    segment.extend_from_slice(body.get(10..).unwrap_or_default());
    let header = wire::pseudo_header(GUEST, HOST, IpProtocol::Tcp, segment.len());
    let sum = wire::checksum(&[&header, &segment]);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    segment
}

fn fragment(kind: u8, body: &[u8]) -> Vec<u8> {
    let offset = body.first().map_or(0, |byte| u16::from(*byte) * 8);
    let fragment = Fragment {
        ident: u16::from(kind >> 6),
        offset,
        more: kind & 0x20 != 0,
    };
    packet(
        IpProtocol::Udp,
        HOST,
        body.get(1..).unwrap_or_default(),
        fragment,
    )
}

/// The gateway must still answer an echo request.
fn works(worker: &mut Worker, link: &mut Link) {
    while link.receive().is_some() {}
    let echo = wire::icmp(8, 0, [0xab, 0xcd, 0, 1], b"still there?");
    assert!(link.send(&ipv4(IpProtocol::Icmp, GATEWAY, &echo)));
    assert!(worker.step());
    let frames = std::iter::from_fn(|| link.receive());
    let reply = wire::icmp(0, 0, [0xab, 0xcd, 0, 1], b"still there?");
    let mut payloads = frames.map(|frame| frame.bytes[ETHERNET_BYTES + IPV4_BYTES..].to_vec());
    assert!(payloads.any(|payload| payload == reply), "no answer");
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
