//! Attacks of a hostile guest over IPv6, on its surroundings (S04, S10) and on the gateway
//! (S05).

use super::*;
use crate::frames::SILENCE;
use std::time::Duration;

/// Protocols with extension headers, and an unknown one.
const IGNORED: [u8; 8] = [0, 43, 51, 59, 60, 135, 41, 99];

/// Addresses that no policy opens without an explicit rule.
const INSIDE: [&str; 18] = [
    "::1",
    "::",
    "fda9:9a99:127::1",
    "fda9:9a99:127::254",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:192.168.127.254",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "2002:7f00:1::1",
    "2001:0:1::80ff:fffe",
];

#[test]
fn s04_the_inside_of_ipv6_is_closed_by_default() {
    for text in [
        "off",
        "full",
        "allow:example.com",
        "full:*,[::/0],0.0.0.0/0",
    ] {
        let (listener, port) = listener();
        listener.set_nonblocking(true).expect("a listener");
        let peer = UdpSocket::bind((Ipv6Addr::LOCALHOST, port)).expect("a socket");
        peer.set_nonblocking(true).expect("a socket");
        let mut backend = NetBackend::new(&policy(text));
        for to in INSIDE {
            let to: Ipv6Addr = to.parse().expect("an address");
            backend.send(syn(4000, (to, port)));
            assert_eq!(refusal(&mut backend), CODE_PROHIBITED, "{text}: {to}");
            backend.send(udp((GUEST_V6, 4000), (to, port), b"x"));
            assert_eq!(refusal(&mut backend), CODE_PROHIBITED, "{text}: {to}");
            if to != GATEWAY_V6 && to != HOST_V6 {
                backend.send(echo(to, b"x"));
                assert_eq!(refusal(&mut backend), CODE_PROHIBITED, "{text}: {to}");
            }
        }
        let stats = backend.gateway.stats();
        assert_eq!((stats.tcp, stats.udp, stats.ping), (0, 0, 0));
        assert!(listener.accept().is_err() && peer.recv(&mut [0]).is_err());
    }
}

#[test]
fn s04_loopback_of_ipv6_opens_port_by_port() {
    let (open, port) = listener();
    let (shut, other) = listener();
    shut.set_nonblocking(true).expect("a listener");
    for text in [
        format!("allow:[::1]:{port}"),
        format!("allow:localhost:{port}"),
        format!("allow:[fda9:9a99:127::254]:{port}"),
    ] {
        let mut backend = NetBackend::new(&policy(&text));
        backend.send(syn(4000, (HOST_V6, other)));
        assert_eq!(refusal(&mut backend), CODE_PROHIBITED, "{text}");
        backend.send(syn(4000, (HOST_V6, port)));
        assert_eq!(answer(&mut backend).1, IpProtocol::Tcp, "{text}");
        open.accept().expect("a connection");
    }
    assert!(shut.accept().is_err());
    // A rule about the loopback of one family opens only that.
    let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    v4.set_nonblocking(true).expect("a listener");
    let port = v4.local_addr().expect("an address").port();
    let mut backend = NetBackend::new(&policy(&format!("allow:127.0.0.1:{port}")));
    for to in [
        HOST_V6,
        Ipv4Addr::LOCALHOST.to_ipv6_mapped(),
        "64:ff9b::127.0.0.1".parse().expect("an address"),
    ] {
        backend.send(syn(4000, (to, port)));
        assert_eq!(refusal(&mut backend), CODE_PROHIBITED, "{to}");
    }
    assert!(v4.accept().is_err());
}

#[test]
fn s10_a_range_does_not_open_the_hosts_own_addresses_of_ipv6() {
    // Connecting a UDP socket sends nothing.
    let socket = UdpSocket::bind("[::]:0").expect("a socket");
    let own = match socket.connect("[2001:db8::1]:9") {
        Ok(()) => socket.local_addr().expect("an address").ip(),
        Err(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let IpAddr::V6(own) = own else {
        panic!("{own}");
    };
    let listener = TcpListener::bind((own, 0)).expect("a listener");
    listener.set_nonblocking(true).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    for range in ["full:[fc00::/7],[2000::/3]", "allow:[::/0]"] {
        let mut backend = NetBackend::new(&policy(range));
        backend.send(syn(4000, (own, port)));
        assert_eq!(refusal(&mut backend), CODE_PROHIBITED, "{range} {own}");
    }
    assert!(listener.accept().is_err());
    let mut backend = NetBackend::new(&policy(&format!("allow:[{own}]:{port}")));
    backend.send(syn(4000, (own, port)));
    assert_eq!(answer(&mut backend).1, IpProtocol::Tcp);
}

#[test]
fn s04_other_guests_are_not_on_the_link_of_ipv6() {
    let mut backend = NetBackend::new(&policy("full:[fc00::/7]"));
    for last in [0, 2, 3, 4, 0x253] {
        let to = Ipv6Addr::new(0xfda9, 0x9a99, 0x127, 0, 0, 0, 0, last);
        backend.send(syn(4000, (to, 80)));
        assert_eq!(refusal(&mut backend), CODE_HOST, "{to}");
    }
}

#[test]
fn s04_nobody_speaks_for_others_over_ipv6() {
    let (_listener, port) = listener();
    let mut backend = NetBackend::new(&config(&[port]));
    let genuine = syn(4000, (HOST_V6, port));
    for from in [
        Ipv6Addr::new(0xfda9, 0x9a99, 0x127, 0, 0, 0, 0, 4),
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 3),
        Ipv6Addr::LOCALHOST,
        Ipv6Addr::UNSPECIFIED,
        GATEWAY_V6,
        GUEST.to_ipv6_mapped(),
    ] {
        backend.send(ipv6(from, HOST_V6, IpProtocol::Tcp, &genuine[54..]));
        backend.send(udp((from, 4000), (HOST_V6, port), b"x"));
        let request = Icmpv6Repr::EchoRequest {
            ident: 1,
            seq_no: 1,
            data: b"x",
        };
        backend.send(icmp(64, from, GATEWAY_V6, &request));
    }
    for group in ["ff02::1", "ff02::fb", "ff0e::1", "ff02::1:2"] {
        let group: Ipv6Addr = group.parse().expect("an address");
        backend.send(udp((GUEST_V6, 5353), (group, 5353), b"x"));
        backend.send(syn(4000, (group, port)));
        backend.send(echo(group, b"x"));
    }
    // The server for addresses and names speaks IPv4 only.
    backend.send(udp((GUEST_V6, 68), (GATEWAY_V6, 67), &[1; 300]));
    assert_eq!(refusal(&mut backend), CODE_PROHIBITED);
    assert_eq!(backend.receive(SILENCE), None);
    let stats = backend.gateway.stats();
    assert_eq!((stats.tcp, stats.udp), (0, 0));
}

#[test]
fn s05_headers_that_are_not_needed_are_dropped() {
    let (listener, port) = listener();
    listener.set_nonblocking(true).expect("a listener");
    let mut backend = NetBackend::new(&config(&[port]));
    let segment = syn(4000, (HOST_V6, port));
    let segment = &segment[54..];
    for next in IGNORED {
        // Type 0 of a routing header would name another destination (RFC 5095).
        let mut payload = vec![6, 0, 0, 0, 0, 0, 0, 0];
        payload.extend_from_slice(segment);
        backend.send(ipv6(GUEST_V6, HOST_V6, next.into(), &payload));
    }
    // A fragment of a fragment, and the protocols of the other family.
    for next in [44, 1] {
        let mut payload = vec![next, 0, 0, 0, 0, 0, 0, 1];
        payload.extend_from_slice(&[6, 0, 0, 0, 0, 0, 0, 1]);
        payload.extend_from_slice(segment);
        backend.send(ipv6(GUEST_V6, HOST_V6, IpProtocol::Ipv6Frag, &payload));
    }
    let message = echo(GATEWAY_V6, b"x");
    backend.send(ipv6(GUEST_V6, GATEWAY_V6, IpProtocol::Icmp, &message[54..]));
    let mut cut = echo(GATEWAY_V6, b"x");
    cut.truncate(14 + 39);
    backend.send(cut);
    let mut short = echo(GATEWAY_V6, b"x");
    short.pop();
    backend.send(short);
    let mut old = echo(GATEWAY_V6, b"x");
    old[12..14].copy_from_slice(&[8, 0]);
    backend.send(old);
    assert_eq!(backend.receive(SILENCE), None);
    assert!(listener.accept().is_err());
    let dropped = backend.gateway.stats().dropped;
    assert_eq!(dropped, IGNORED.len() as u64 + 6);
    // Padding is not part of a packet, and an atomic fragment is a whole one.
    let mut padded = echo(GATEWAY_V6, b"still here");
    padded.resize(200, 0xaa);
    backend.send(padded);
    assert_eq!(answer(&mut backend).2.len(), 18);
    let mut atomic = vec![58, 0, 0, 0, 0, 0, 0, 1];
    atomic.extend_from_slice(&echo(GATEWAY_V6, b"atom")[54..]);
    backend.send(ipv6(GUEST_V6, GATEWAY_V6, IpProtocol::Ipv6Frag, &atomic));
    assert_eq!(answer(&mut backend).2.len(), 12);
}

#[test]
fn s05_the_tables_are_shared_by_both_families() {
    let (_listener, port) = listener();
    let _v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the same port");
    let mut config = config(&[port]);
    config.limits.tcp = 20;
    config.limits.udp = 20;
    let mut backend = NetBackend::new(&config);
    for from in 1..500 {
        backend.send(syn(from, (HOST_V6, port)));
        backend.send(frames::syn(from, (a99_sandbox_net::HOST, port)));
        backend.send(udp((GUEST_V6, from), (HOST_V6, port), b"x"));
        backend.send(udp_v4((GUEST, from), (a99_sandbox_net::HOST, port), b"x"));
        while backend.receive(Duration::ZERO).is_some() {}
        let stats = backend.gateway.stats();
        assert!(stats.tcp <= 20 && stats.udp <= 20, "{stats:?}");
    }
    backend.wait_until(|gateway| gateway.stats().tcp == 20 && gateway.stats().udp == 20);
}
