//! UDP, names, DHCP and echo requests.

use crate::frames::{SILENCE, answer, echo, icmp, udp};
use crate::peer::{Guest, MAC, NetBackend, pattern};
use crate::{config, ethernet};
use a99_sandbox_net::{Config, GATEWAY, GUEST, HOST, ResolveError, Resolver, host_allows_ping};
use smoltcp::socket::{dhcpv4, udp as sockets};
use smoltcp::wire::{IpProtocol, Ipv4Cidr, Ipv4Packet, UdpPacket};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A server that echoes every datagram, reversed.
pub fn reverser(on: impl Into<IpAddr>) -> u16 {
    let socket = UdpSocket::bind((on.into(), 0)).expect("a socket");
    let port = socket.local_addr().expect("an address").port();
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            bytes[..count].reverse();
            if socket.send_to(&bytes[..count], from).is_err() {
                return;
            }
        }
    });
    port
}

/// The payload of the next datagram, reassembled.
fn datagram(backend: &mut NetBackend) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let frame = backend.receive(crate::peer::TIMEOUT).expect("a datagram");
        let packet = Ipv4Packet::new_checked(&frame[14..]).expect("a packet");
        assert_eq!(packet.next_header(), IpProtocol::Udp);
        assert_eq!(usize::from(packet.frag_offset()), bytes.len());
        bytes.extend_from_slice(packet.payload());
        if !packet.more_frags() {
            break;
        }
    }
    let packet = UdpPacket::new_checked(&bytes[..]).expect("a datagram");
    assert!(packet.verify_checksum(&HOST.into(), &GUEST.into()));
    packet.payload().to_vec()
}

/// Fragments a packet for an MTU of 1500.
fn cut(frame: &[u8]) -> Vec<Vec<u8>> {
    let payload = &frame[34..];
    let chunks = payload.chunks(1480).enumerate();
    let cut = chunks.map(|(index, chunk)| {
        let mut part = frame[..34].to_vec();
        part.extend_from_slice(chunk);
        let mut packet = Ipv4Packet::new_unchecked(&mut part[14..]);
        packet.set_total_len(20 + chunk.len() as u16);
        packet.set_ident(77);
        packet.set_dont_frag(false);
        packet.set_frag_offset((index * 1480) as u16);
        packet.set_more_frags((index + 1) * 1480 < payload.len());
        packet.fill_checksum();
        part
    });
    cut.collect()
}

#[test]
fn datagrams_are_exact() {
    let port = reverser(Ipv4Addr::LOCALHOST);
    for config in [config(&[port]), ethernet(&[port])] {
        let large = config.mtu > 1500;
        let mut backend = NetBackend::new(&config);
        for size in [0, 1, 512, 1472, 1473, 8000, 60_000] {
            let mut body = pattern(size, 3);
            let frame = udp((GUEST, 5000), (HOST, port), &body);
            match large || frame.len() <= 1514 {
                true => backend.send(frame),
                false => cut(&frame)
                    .into_iter()
                    .rev()
                    .for_each(|part| backend.send(part)),
            }
            body.reverse();
            assert!(datagram(&mut backend) == body, "{size} bytes");
        }
        assert_eq!(backend.gateway.stats().udp, 1);
    }
}

#[test]
fn nobody_listens_there() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let port = socket.local_addr().expect("an address").port();
    drop(socket);
    let mut backend = NetBackend::new(&config(&[port]));
    let question = udp((GUEST, 5000), (HOST, port), b"anybody?");
    backend.send(question.clone());
    let (_, _, message) = answer(&mut backend).expect("an answer");
    assert_eq!((message[0], message[1]), (3, 3));
    assert_eq!(message[8..], question[14..]);
}

#[test]
fn sessions_end_after_silence() {
    let port = reverser(Ipv4Addr::LOCALHOST);
    let mut config = config(&[port]);
    config.limits.udp_idle = Duration::from_millis(300);
    let mut backend = NetBackend::new(&config);
    backend.send(udp((GUEST, 5000), (HOST, port), b"abc"));
    assert_eq!(datagram(&mut backend), b"cba");
    backend.wait_until(|gateway| gateway.stats().udp == 0);
    backend.send(udp((GUEST, 5000), (HOST, port), b"def"));
    assert_eq!(datagram(&mut backend), b"fed");
}

#[test]
fn a_stack_of_its_own_talks_udp() {
    let port = reverser(Ipv4Addr::LOCALHOST);
    let mut guest = Guest::new(&config(&[port]));
    let buffer =
        || sockets::PacketBuffer::new(vec![sockets::PacketMetadata::EMPTY; 8], vec![0; 70_000]);
    let mut socket = sockets::Socket::new(buffer(), buffer());
    socket.bind(7000).expect("a free port");
    let handle = guest.sockets.add(socket);
    for round in 0..50u8 {
        let socket: &mut sockets::Socket<'_> = guest.sockets.get_mut(handle);
        socket
            .send_slice(&[round, 1, 2], (HOST, port))
            .expect("room");
        let got = guest.until(|guest| {
            let socket: &mut sockets::Socket<'_> = guest.sockets.get_mut(handle);
            socket.recv().ok().map(|(bytes, _)| bytes.to_vec())
        });
        assert_eq!(got, [2, 1, round]);
    }
}

#[test]
fn dhcp_configures_the_guest() {
    for mac in [MAC, [0x52, 0x54, 0, 0xab, 0xcd, 0xef]] {
        let mut guest = Guest::bare(&ethernet(&[1]), mac);
        let handle = guest.sockets.add(dhcpv4::Socket::new());
        let (address, router, servers) = guest.until(|guest| {
            let socket: &mut dhcpv4::Socket<'_> = guest.sockets.get_mut(handle);
            match socket.poll() {
                Some(dhcpv4::Event::Configured(config)) => {
                    Some((config.address, config.router, config.dns_servers.to_vec()))
                }
                _ => None,
            }
        });
        assert_eq!(address, Ipv4Cidr::new(GUEST, 24));
        assert_eq!((router, servers), (Some(GATEWAY), vec![GATEWAY]));
        guest.configure(address, GATEWAY);
        // The address works with any MAC.
        let (unused, port) = crate::listener();
        drop(unused);
        guest.dial(HOST, port, 1000);
        guest.step();
        guest.wait_until(|gateway| gateway.stats().tcp == 0);
    }
}

/// A resolver for two names.
struct Scripted;

impl Resolver for Scripted {
    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        match name {
            "www.example.com" => Ok(vec![Ipv4Addr::new(93, 184, 216, 34).into()]),
            "rebound.example.com" => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
            _ => Err(ResolveError::NotFound),
        }
    }
}

fn named() -> Config {
    let mut config = Config::new("allow:*.example.com".parse().expect("a policy"));
    config.resolver = Arc::new(Scripted);
    config
}

/// Queries a name; returns response code and addresses.
pub fn ask(backend: &mut NetBackend, name: &str) -> (u8, Vec<Ipv4Addr>) {
    let mut query = vec![0x11, 0x22, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(label.len() as u8);
        query.extend_from_slice(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    backend.send(udp((GUEST, 5353), (GATEWAY, 53), &query));
    let (from, _, bytes) = answer(backend).expect("an answer");
    let packet = UdpPacket::new_checked(&bytes[..]).expect("a datagram");
    assert!(packet.verify_checksum(&GATEWAY.into(), &GUEST.into()));
    assert_eq!(
        (from, packet.src_port(), packet.dst_port()),
        (GATEWAY, 53, 5353)
    );
    let message = packet.payload();
    assert_eq!(
        (&message[..2], &message[12..query.len()]),
        (&query[..2], &query[12..])
    );
    let records = message[query.len()..].chunks(16);
    let address = |record: &[u8]| Ipv4Addr::new(record[12], record[13], record[14], record[15]);
    (message[3] & 15, records.map(address).collect())
}

#[test]
fn names_are_answered_as_the_policy_says() {
    let mut backend = NetBackend::new(&named());
    let public = Ipv4Addr::new(93, 184, 216, 34);
    assert_eq!(ask(&mut backend, "www.example.com"), (0, vec![public]));
    assert_eq!(ask(&mut backend, "WWW.Example.COM"), (0, vec![public]));
    assert_eq!(ask(&mut backend, "none.example.com"), (3, vec![]));
    assert_eq!(ask(&mut backend, "rebound.example.com"), (5, vec![]));
    assert_eq!(ask(&mut backend, "www.example.org"), (5, vec![]));
    assert_eq!(ask(&mut backend, "host.agent99.internal"), (0, vec![HOST]));
}

#[test]
fn the_hosts_resolver_is_the_default() {
    let config = Config::new("full".parse().expect("a policy"));
    let mut backend = NetBackend::new(&config);
    // The host resolves it, but to the host itself.
    assert_eq!(ask(&mut backend, "localhost"), (5, vec![]));
}

#[test]
fn pings_go_where_the_policy_lets_them() {
    let mut backend = NetBackend::new(&config(&[1]));
    let request = echo(Ipv4Addr::LOCALHOST, b"0123456789");
    backend.send(request.clone());
    if host_allows_ping() {
        let (from, _, message) = answer(&mut backend).expect("a reply");
        assert_eq!((from, message[0]), (Ipv4Addr::LOCALHOST, 0));
        // The guest's own identifier, sequence number and data.
        assert_eq!(message[4..], request[38..]);
        assert_eq!(backend.gateway.stats().ping, 1);
    } else {
        assert_eq!(icmp(&mut backend), (3, 13));
    }
    backend.send(echo(Ipv4Addr::new(8, 8, 8, 8), b"x"));
    assert_eq!(icmp(&mut backend), (3, 13));
    assert_eq!(backend.receive(SILENCE), None);
}
