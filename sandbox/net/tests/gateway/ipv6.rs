//! The same over IPv6: neighbor discovery, TCP, UDP, echo requests and names, with servers
//! on this host's ::1.

mod attacks;

use crate::datagrams::reverser;
use crate::frames::{self, SILENCE, bare, ethernet_from, udp as udp_v4};
use crate::peer::{Guest, MAC, NetBackend, TIMEOUT, pattern};
use crate::{config, ethernet};
use a99_sandbox_net::{
    Config, GATEWAY, GATEWAY_MAC, GATEWAY_V6, GUEST, GUEST_V6, HOST_V6, ResolveError, Resolver,
};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetProtocol, Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6FragmentHeader, Ipv6FragmentRepr,
    Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr, TcpControl, TcpPacket, UdpPacket,
};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread;

const CODE_PROHIBITED: (u8, u8) = (1, 1);
const CODE_HOST: (u8, u8) = (1, 3);
const CODE_PORT: (u8, u8) = (1, 4);

fn policy(text: &str) -> Config {
    Config::new(text.parse().expect("a policy"))
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// A frame of the guest, with a hop limit.
fn hops(limit: u8, from: Ipv6Addr, to: Ipv6Addr, protocol: IpProtocol, payload: &[u8]) -> Vec<u8> {
    let repr = Ipv6Repr {
        src_addr: from,
        dst_addr: to,
        next_header: protocol,
        payload_len: payload.len(),
        hop_limit: limit,
    };
    let mut packet = vec![0; 40 + payload.len()];
    repr.emit(&mut Ipv6Packet::new_unchecked(&mut packet[..]));
    packet[40..].copy_from_slice(payload);
    let mut frame = ethernet_from(MAC, EthernetProtocol::Ipv6, &packet);
    if to.is_multicast() {
        frame[..2].fill(0x33);
        frame[2..6].copy_from_slice(&to.octets()[12..]);
    }
    frame
}

fn ipv6(from: Ipv6Addr, to: Ipv6Addr, protocol: IpProtocol, payload: &[u8]) -> Vec<u8> {
    hops(64, from, to, protocol, payload)
}

fn icmp(limit: u8, from: Ipv6Addr, to: Ipv6Addr, repr: &Icmpv6Repr<'_>) -> Vec<u8> {
    let mut message = vec![0; repr.buffer_len()];
    let packet = &mut Icmpv6Packet::new_unchecked(&mut message[..]);
    repr.emit(&from, &to, packet, &ChecksumCapabilities::default());
    hops(limit, from, to, IpProtocol::Icmpv6, &message)
}

fn echo(to: Ipv6Addr, data: &[u8]) -> Vec<u8> {
    let repr = Icmpv6Repr::EchoRequest {
        ident: 0x1234,
        seq_no: 1,
        data,
    };
    icmp(64, GUEST_V6, to, &repr)
}

fn syn(from_port: u16, to: (Ipv6Addr, u16)) -> Vec<u8> {
    let repr = bare(from_port, to.1, TcpControl::Syn);
    let mut bytes = vec![0; repr.buffer_len()];
    let packet = &mut TcpPacket::new_unchecked(&mut bytes);
    let caps = ChecksumCapabilities::default();
    repr.emit(packet, &GUEST_V6.into(), &to.0.into(), &caps);
    ipv6(GUEST_V6, to.0, IpProtocol::Tcp, &bytes)
}

fn udp(from: (Ipv6Addr, u16), to: (Ipv6Addr, u16), payload: &[u8]) -> Vec<u8> {
    let datagram = frames::datagram(from, to, payload);
    ipv6(from.0, to.0, IpProtocol::Udp, &datagram)
}

/// The next answer: source, protocol and payload of a packet to the guest.
fn answer(backend: &mut NetBackend) -> (Ipv6Addr, IpProtocol, Vec<u8>) {
    let frame = backend.receive(TIMEOUT).expect("an answer");
    assert_eq!((&frame[..6], &frame[6..12]), (&MAC[..], &GATEWAY_MAC[..]));
    assert_eq!(frame[12..14], [0x86, 0xdd]);
    let packet = Ipv6Packet::new_checked(&frame[14..]).expect("a packet");
    assert_eq!((packet.version(), packet.dst_addr()), (6, GUEST_V6));
    (
        packet.src_addr(),
        packet.next_header(),
        packet.payload().to_vec(),
    )
}

/// Type and code of the next ICMPv6 message.
fn refusal(backend: &mut NetBackend) -> (u8, u8) {
    let (from, protocol, message) = answer(backend);
    assert_eq!((from, protocol), (GATEWAY_V6, IpProtocol::Icmpv6));
    let packet = Icmpv6Packet::new_checked(&message[..]).expect("a message");
    assert!(packet.verify_checksum(&from, &GUEST_V6));
    (message[0], message[1])
}

fn solicitation(limit: u8, from: Ipv6Addr, to: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let repr = Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit {
        target_addr: target,
        lladdr: None,
    });
    icmp(limit, from, to, &repr)
}

fn group_of(target: Ipv6Addr) -> Ipv6Addr {
    let low = target.octets();
    let mut group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0).octets();
    group[13..].copy_from_slice(&low[13..]);
    group.into()
}

#[test]
fn neighbor_discovery_finds_the_gateways_addresses_only() {
    let mut backend = NetBackend::new(&config(&[1]));
    let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    for target in [GATEWAY_V6, HOST_V6] {
        for (from, to) in [
            (GUEST_V6, group_of(target)),
            (GUEST_V6, target),
            (local, group_of(target)),
            (Ipv6Addr::UNSPECIFIED, group_of(target)),
        ] {
            backend.send(solicitation(255, from, to, target));
            let frame = backend.receive(TIMEOUT).expect("an answer");
            let packet = Ipv6Packet::new_checked(&frame[14..]).expect("a packet");
            assert_eq!((packet.src_addr(), packet.hop_limit()), (target, 255));
            let asker = if from.is_unspecified() { all } else { from };
            assert_eq!(packet.dst_addr(), asker);
            let multicast = [0x33, 0x33, 0, 0, 0, 1];
            assert_eq!(frame[..6], if asker == all { multicast } else { MAC });
            let message = Icmpv6Packet::new_checked(packet.payload()).expect("a message");
            let caps = ChecksumCapabilities::default();
            let repr = Icmpv6Repr::parse(&target, &asker, &message, &caps).expect("valid");
            let Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
                flags,
                target_addr,
                lladdr: Some(mac),
            }) = repr
            else {
                panic!("{repr:?}");
            };
            assert_eq!((target_addr, mac.as_bytes()), (target, &GATEWAY_MAC[..]));
            let solicited = flags.contains(NdiscNeighborFlags::SOLICITED);
            assert_eq!(solicited, asker != all);
        }
    }
    let forgery = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let neighbour = Ipv6Addr::new(0xfda9, 0x9a99, 0x127, 0, 0, 0, 0, 9);
    for (limit, from, target) in [
        (64, GUEST_V6, GATEWAY_V6),
        (255, GUEST_V6, neighbour),
        (255, GUEST_V6, GUEST_V6),
        (255, GUEST_V6, forgery),
        (255, forgery, GATEWAY_V6),
    ] {
        backend.send(solicitation(limit, from, group_of(target), target));
    }
    let mut damaged = solicitation(255, GUEST_V6, GATEWAY_V6, GATEWAY_V6);
    damaged[14 + 40 + 2] ^= 1;
    backend.send(damaged);
    assert_eq!(backend.receive(SILENCE), None);
}

#[test]
fn the_gateway_answers_echo_requests_of_ipv6() {
    let mut backend = NetBackend::new(&config(&[1]));
    for (to, size) in [(GATEWAY_V6, 56), (HOST_V6, 0), (GATEWAY_V6, 40_000)] {
        let request = echo(to, &vec![9; size]);
        backend.send(request.clone());
        let (from, protocol, message) = answer(&mut backend);
        assert_eq!((from, protocol, message[0]), (to, IpProtocol::Icmpv6, 129));
        assert_eq!(message[4..], request[14 + 40 + 4..]);
        let packet = Icmpv6Packet::new_checked(&message[..]).expect("a message");
        assert!(packet.verify_checksum(&from, &GUEST_V6));
    }
}

#[test]
fn connections_over_ipv6_carry_bytes_both_ways() {
    let (listener, port) = listener();
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, from) = listener.accept().expect("a connection");
            assert_eq!(from.ip(), Ipv6Addr::LOCALHOST);
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("all");
            bytes.reverse();
            stream.write_all(&bytes).expect("an open connection");
        }
    });
    for config in [config(&[port]), ethernet(&[port])] {
        let mut guest = Guest::new(&config);
        let handle = guest.connect(HOST_V6, port).expect("connected");
        let mut bytes = pattern(1_000_000, 5);
        guest.write(handle, &bytes);
        guest.tcp(handle).close();
        bytes.reverse();
        assert!(guest.read_to_end(handle) == Ok(bytes), "{}", config.mtu);
        guest.wait_until(|gateway| gateway.stats().tcp == 0);
    }
    server.join().expect("a server");
}

#[test]
fn the_largest_segments_fit_the_link() {
    let (_listener, port) = listener();
    for (config, mss) in [(config(&[port]), 65_460), (ethernet(&[port]), 1440)] {
        let mut backend = NetBackend::new(&config);
        backend.send(syn(4000, (HOST_V6, port)));
        let (from, protocol, bytes) = answer(&mut backend);
        assert_eq!((from, protocol), (HOST_V6, IpProtocol::Tcp));
        let packet = TcpPacket::new_checked(&bytes[..]).expect("a segment");
        assert!(packet.syn() && packet.ack());
        // The option is the first: kind 2, length 4.
        assert_eq!(bytes[20..22], [2, 4]);
        assert_eq!(u16::from_be_bytes([bytes[22], bytes[23]]), mss);
    }
}

#[test]
fn a_closed_port_of_ipv6_refuses() {
    let (unused, port) = listener();
    drop(unused);
    let mut guest = Guest::new(&config(&[port]));
    assert_eq!(guest.connect(HOST_V6, port), None);
    let mut backend = NetBackend::new(&config(&[port]));
    backend.send(udp((GUEST_V6, 5000), (HOST_V6, port), b"anybody?"));
    assert_eq!(refusal(&mut backend), CODE_PORT);
}

#[test]
fn both_families_are_connections_apart() {
    let (v6, port) = listener();
    let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the same port");
    let mut guest = Guest::new(&config(&[port]));
    for (listener, to) in [
        (&v6, IpAddr::from(HOST_V6)),
        (&v4, IpAddr::from(a99_sandbox_net::HOST)),
        (&v6, GATEWAY_V6.into()),
        (&v4, GATEWAY.into()),
    ] {
        let handle = guest.connect(to, port).expect("connected");
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(to.to_string().as_bytes()).expect("open");
        drop(stream);
        let text = guest.read_to_end(handle).expect("an end");
        assert_eq!(text, to.to_string().as_bytes());
    }
}

/// Fragments a frame for an MTU of 1500.
fn cut(frame: &[u8]) -> Vec<Vec<u8>> {
    let packet = Ipv6Packet::new_checked(&frame[14..]).expect("a packet");
    let payload = packet.payload();
    let chunks = payload.chunks(1448).enumerate();
    let cut = chunks.map(|(index, chunk)| {
        let mut part = vec![packet.next_header().into(), 0];
        let repr = Ipv6FragmentRepr {
            frag_offset: (index * 1448 / 8) as u16,
            more_frags: (index + 1) * 1448 < payload.len(),
            ident: 77,
        };
        let mut header = [0; 6];
        repr.emit(&mut Ipv6FragmentHeader::new_unchecked(&mut header[..]));
        part.extend(header);
        part.extend_from_slice(chunk);
        ipv6(
            packet.src_addr(),
            packet.dst_addr(),
            IpProtocol::Ipv6Frag,
            &part,
        )
    });
    cut.collect()
}

/// The payload of the next datagram, reassembled.
fn datagram(backend: &mut NetBackend) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let (_, protocol, payload) = answer(backend);
        if protocol == IpProtocol::Udp {
            bytes = payload;
            break;
        }
        assert_eq!((protocol, payload[0]), (IpProtocol::Ipv6Frag, 17));
        let header = Ipv6FragmentHeader::new_checked(&payload[2..8]).expect("a header");
        assert_eq!(usize::from(header.frag_offset()) * 8, bytes.len());
        bytes.extend_from_slice(&payload[8..]);
        if !header.more_frags() {
            break;
        }
    }
    let packet = UdpPacket::new_checked(&bytes[..]).expect("a datagram");
    assert!(packet.verify_checksum(&HOST_V6.into(), &GUEST_V6.into()));
    packet.payload().to_vec()
}

#[test]
fn datagrams_of_ipv6_are_exact() {
    let port = reverser(Ipv6Addr::LOCALHOST);
    for config in [config(&[port]), ethernet(&[port])] {
        let large = config.mtu > 1500;
        let mut backend = NetBackend::new(&config);
        for size in [0, 1, 512, 1452, 1453, 8000, 60_000] {
            let mut body = pattern(size, 3);
            let frame = udp((GUEST_V6, 5000), (HOST_V6, port), &body);
            match large || frame.len() <= 1514 {
                true => backend.send(frame),
                false => {
                    let parts = cut(&frame).into_iter().rev();
                    parts.for_each(|part| backend.send(part));
                }
            }
            body.reverse();
            assert!(datagram(&mut backend) == body, "{size} bytes");
        }
        assert_eq!(backend.gateway.stats().udp, 1);
        if !large {
            // A datagram of IPv6 needs its checksum.
            let mut bare = udp((GUEST_V6, 5000), (HOST_V6, port), b"bare");
            bare[14 + 40 + 6..14 + 40 + 8].fill(0);
            backend.send(bare);
            assert_eq!(backend.receive(SILENCE), None);
        }
    }
}

/// A resolver for names with addresses of both families.
struct Scripted;

impl Resolver for Scripted {
    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let addresses: &[&str] = match name {
            "both.example.com" => &["93.184.216.34", "2606:4700::1111"],
            "six.example.com" => &["2606:4700::1111", "fd12::1"],
            "inside.example.com" => &["::1", "::ffff:127.0.0.1", "fd12::2", "64:ff9b::10.0.0.1"],
            "many.example.com" => {
                let many = (0..1000u16).map(|n| Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0, 0, n));
                return Ok(many.map(IpAddr::V6).collect());
            }
            _ => return Err(ResolveError::NotFound),
        };
        let parsed = addresses.iter().map(|text| text.parse());
        Ok(parsed.map(|address| address.expect("an address")).collect())
    }
}

/// Queries the IPv6 addresses of a name; returns response code and addresses.
fn ask(backend: &mut NetBackend, name: &str) -> (u8, Vec<Ipv6Addr>) {
    let mut query = vec![0x11, 0x22, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(label.len() as u8);
        query.extend_from_slice(label.as_bytes());
    }
    query.extend([0, 0, 28, 0, 1]);
    backend.send(udp_v4((GUEST, 5353), (GATEWAY, 53), &query));
    let (_, _, bytes) = frames::answer(backend).expect("an answer");
    let message = &bytes[8..];
    assert!(message.len() <= 512);
    let records = message[query.len()..].chunks(28);
    let address = |record: &[u8]| {
        assert_eq!(record[..6], [0xc0, 12, 0, 28, 0, 1]);
        let bytes: [u8; 16] = record[12..].try_into().expect("an address");
        Ipv6Addr::from(bytes)
    };
    (message[3] & 15, records.map(address).collect())
}

#[test]
fn names_are_answered_with_addresses_of_ipv6() {
    // Rules about the range, so that the answer does not depend on this host's routes.
    let mut config = policy("allow:*.example.com,[2606:4700::/32]:443");
    config.resolver = Arc::new(Scripted);
    let mut backend = NetBackend::new(&config);
    let public: Ipv6Addr = "2606:4700::1111".parse().expect("an address");
    assert_eq!(ask(&mut backend, "both.example.com"), (0, vec![public]));
    assert_eq!(ask(&mut backend, "six.example.com"), (0, vec![public]));
    assert_eq!(ask(&mut backend, "inside.example.com"), (5, vec![]));
    assert_eq!(ask(&mut backend, "none.example.com"), (3, vec![]));
    assert_eq!(ask(&mut backend, "www.example.org"), (5, vec![]));
    assert_eq!(
        ask(&mut backend, "many.example.com").1.len(),
        (512 - 12 - 22) / 28
    );
    let host = ask(&mut backend, "host.agent99.internal");
    assert_eq!(host, (0, vec![HOST_V6]));
    let inside: Ipv6Addr = "fd12::2".parse().expect("an address");
    backend.send(syn(4000, (inside, 443)));
    assert_eq!(refusal(&mut backend), CODE_PROHIBITED);
}
