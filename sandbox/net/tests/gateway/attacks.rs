//! Attacks of a hostile guest on its surroundings (S04) and on the gateway (S05).

use crate::datagrams::ask;
use crate::frames::{SILENCE, answer, echo, icmp, ipv4, segment, syn, udp};
use crate::peer::NetBackend;
use crate::{config, listener};
use a99_sandbox_net::{Config, GATEWAY, GUEST, HOST, ResolveError, Resolver};
use smoltcp::wire::{IpProtocol, TcpControl, TcpPacket};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn policy(text: &str) -> Config {
    Config::new(text.parse().expect("a policy"))
}

/// Addresses that no policy opens without an explicit rule.
const INSIDE: [Ipv4Addr; 12] = [
    Ipv4Addr::new(127, 0, 0, 1),
    Ipv4Addr::new(127, 9, 9, 9),
    Ipv4Addr::new(0, 0, 0, 0),
    Ipv4Addr::new(0, 1, 2, 3),
    Ipv4Addr::new(10, 0, 0, 1),
    Ipv4Addr::new(172, 16, 5, 4),
    Ipv4Addr::new(192, 168, 1, 1),
    Ipv4Addr::new(100, 64, 0, 1),
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 1, 1),
    GATEWAY,
    HOST,
];

#[test]
fn s04_the_inside_is_closed_by_default() {
    for text in ["off", "full", "allow:example.com", "full:*,0.0.0.0/0"] {
        let (listener, port) = listener();
        listener.set_nonblocking(true).expect("a listener");
        let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).expect("a socket");
        peer.set_nonblocking(true).expect("a socket");
        let mut backend = NetBackend::new(&policy(text));
        for to in INSIDE {
            backend.send(syn(4000, (to, port)));
            assert_eq!(icmp(&mut backend), (3, 13), "{text}: TCP to {to}");
            backend.send(udp((GUEST, 4000), (to, port), b"x"));
            assert_eq!(icmp(&mut backend), (3, 13), "{text}: UDP to {to}");
            if to != GATEWAY && to != HOST {
                backend.send(echo(to, b"x"));
                assert_eq!(icmp(&mut backend), (3, 13), "{text}: ping of {to}");
            }
        }
        assert!(listener.accept().is_err() && peer.recv(&mut [0]).is_err());
        assert_eq!(backend.gateway.stats().tcp + backend.gateway.stats().udp, 0);
    }
}

#[test]
fn s04_loopback_opens_port_by_port() {
    let (open, port) = listener();
    let (shut, other) = listener();
    shut.set_nonblocking(true).expect("a listener");
    let mut backend = NetBackend::new(&config(&[port]));
    backend.send(syn(4000, (HOST, other)));
    assert_eq!(icmp(&mut backend), (3, 13));
    backend.send(syn(4000, (HOST, port)));
    let (_, _, bytes) = answer(&mut backend).expect("an answer");
    let packet = TcpPacket::new_checked(&bytes[..]).expect("a segment");
    assert!(packet.syn() && packet.ack());
    open.accept().expect("a connection");
    assert!(shut.accept().is_err());
}

#[test]
fn s04_other_guests_are_not_on_the_link() {
    let mut backend = NetBackend::new(&policy("full:192.168.0.0/16"));
    for last in [0, 2, 3, 4, 253] {
        let to = Ipv4Addr::new(192, 168, 127, last);
        backend.send(syn(4000, (to, 80)));
        assert_eq!(icmp(&mut backend), (3, 1), "{to}");
    }
}

#[test]
fn s04_nobody_speaks_for_others() {
    let (_listener, port) = listener();
    let mut backend = NetBackend::new(&config(&[port]));
    for from in [
        Ipv4Addr::new(192, 168, 127, 4),
        Ipv4Addr::LOCALHOST,
        GATEWAY,
    ] {
        let genuine = syn(4000, (HOST, port));
        backend.send(ipv4(from, HOST, IpProtocol::Tcp, &genuine[34..]));
        backend.send(udp((from, 4000), (HOST, port), b"x"));
        backend.send(ipv4(
            from,
            GATEWAY,
            IpProtocol::Icmp,
            &echo(GATEWAY, b"x")[34..],
        ));
    }
    for group in [
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(192, 168, 127, 255),
        Ipv4Addr::new(224, 0, 0, 251),
    ] {
        backend.send(udp((GUEST, 5353), (group, 5353), b"x"));
        backend.send(syn(4000, (group, port)));
    }
    assert_eq!(backend.receive(SILENCE), None);
    assert_eq!(backend.gateway.stats().tcp + backend.gateway.stats().udp, 0);
}

#[test]
fn s04_a_name_may_not_lead_inside() {
    struct Rebinding(AtomicUsize);
    impl Resolver for Rebinding {
        fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, ResolveError> {
            let inside = INSIDE[self.0.fetch_add(1, Ordering::Relaxed) % INSIDE.len()];
            Ok(vec![inside.into(), Ipv4Addr::new(93, 184, 216, 34).into()])
        }
    }
    let mut config = policy("allow:*.evil.example");
    config.resolver = Arc::new(Rebinding(AtomicUsize::new(0)));
    let mut backend = NetBackend::new(&config);
    for number in 0..INSIDE.len() {
        let (code, addresses) = ask(&mut backend, &format!("n{number}.evil.example"));
        assert_eq!(
            (code, addresses),
            (0, vec![Ipv4Addr::new(93, 184, 216, 34)])
        );
    }
    for to in INSIDE {
        backend.send(syn(4000, (to, 80)));
        assert_eq!(icmp(&mut backend), (3, 13), "{to}");
    }
}

#[test]
fn s05_half_open_floods_fill_a_bounded_table() {
    let (listener, port) = listener();
    let mut config = config(&[port]);
    config.limits.tcp = 40;
    config.limits.tcp_transitory = Duration::from_millis(300);
    let mut backend = NetBackend::new(&config);
    for from in 1..5000 {
        backend.send(syn(from, (HOST, port)));
    }
    backend.wait_until(|gateway| gateway.stats().tcp == 40);
    backend.wait_until(|gateway| {
        assert!(gateway.stats().tcp <= 40);
        gateway.stats().tcp == 0
    });
    drop(listener);
}

#[test]
fn s05_waiting_for_hosts_is_bounded_and_ends() {
    // A listener with a full backlog: Linux lets further attempts wait.
    let (listener, port) = listener();
    rustix::net::listen(&listener, 0).expect("a backlog");
    let address = listener.local_addr().expect("an address");
    let fill = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100));
    let filled: Vec<_> = (0..4).map_while(|_| fill().ok()).collect();
    assert!(
        (1..4).contains(&filled.len()),
        "{} connections",
        filled.len()
    );
    let mut config = config(&[port]);
    config.limits.connecting = 10;
    config.limits.connect = Duration::from_millis(400);
    let mut backend = NetBackend::new(&config);
    for from in 1..1000 {
        backend.send(syn(from, (HOST, port)));
    }
    backend.wait_until(|gateway| gateway.stats().connecting == 10);
    for _ in 0..10 {
        assert_eq!(icmp(&mut backend), (3, 1));
    }
    backend.wait_until(|gateway| gateway.stats().tcp == 0);
}

/// A flood fills only its own entries: another program can still connect.
#[test]
fn s10_a_flood_of_syns_makes_room_for_a_real_connection() {
    let (listener, port) = listener();
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    let mut config = config(&[port]);
    config.limits.tcp = 40;
    let mut backend = NetBackend::new(&config);
    for from in 1..500 {
        backend.send(syn(from, (HOST, port)));
    }
    backend.wait_until(|gateway| gateway.stats().tcp == 40);
    // None of them completes its handshake.
    backend.send(syn(40_000, (HOST, port)));
    let answered = std::iter::from_fn(|| answer(&mut backend)).any(|(_, _, bytes)| {
        let packet = TcpPacket::new_checked(&bytes[..]).expect("a segment");
        packet.dst_port() == 40_000 && packet.syn() && packet.ack()
    });
    assert!(answered);
    assert!(backend.gateway.stats().tcp <= 40);
}

#[test]
fn s05_udp_floods_fill_a_bounded_table() {
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let port = peer.local_addr().expect("an address").port();
    let mut config = config(&[port]);
    config.limits.udp = 20;
    let mut backend = NetBackend::new(&config);
    peer.set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a socket");
    let reader = peer.try_clone().expect("a socket");
    let reading = std::thread::spawn(move || {
        let mut bytes = [0; 10];
        loop {
            let (_, sender) = reader.recv_from(&mut bytes).expect("a datagram");
            if &bytes[..8] == b"the last" {
                return sender;
            }
        }
    });
    for from in 1..3000 {
        backend.send(udp((GUEST, from), (HOST, port), b"x"));
    }
    // The kernel drops datagrams that the reader has no room for, this one too.
    while !reading.is_finished() {
        backend.send(udp((GUEST, 3000), (HOST, port), b"the last"));
        backend.receive(Duration::from_millis(20));
    }
    let from = reading.join().expect("the last datagram");
    // They are counted at the end of a step.
    backend.wait_until(|gateway| gateway.stats().udp == 20);
    // The newest session survives.
    peer.send_to(b"hello", from).expect("sent");
    let (_, protocol, datagram) = answer(&mut backend).expect("an answer");
    assert_eq!((protocol, &datagram[8..]), (IpProtocol::Udp, &b"hello"[..]));
}

#[test]
fn s05_pings_are_bounded() {
    let mut config = config(&[1]);
    config.limits.ping = 5;
    let mut backend = NetBackend::new(&config);
    for ident in 0..500u16 {
        let mut frame = echo(Ipv4Addr::LOCALHOST, b"x");
        frame[38..40].copy_from_slice(&ident.to_be_bytes());
        let sum = u16::from_be_bytes([frame[36], frame[37]]);
        // The sum of RFC 1624: the identifier was 0x1234.
        let fixed = u32::from(!sum) + u32::from(!0x1234u16) + u32::from(ident);
        let fixed = !((fixed & 0xffff) as u16 + (fixed >> 16) as u16);
        frame[36..38].copy_from_slice(&fixed.to_be_bytes());
        backend.send(frame);
        backend.receive(Duration::from_millis(1));
        assert!(backend.gateway.stats().ping <= 5);
    }
}

#[test]
fn s05_dhcp_has_one_address_for_all() {
    let mut backend = NetBackend::new(&config(&[1]));
    for number in 0..300u16 {
        let mut message = vec![0; 240];
        message[..3].copy_from_slice(&[1, 1, 6]);
        message[28..34].copy_from_slice(&[2, 0, 0, 0, (number >> 8) as u8, number as u8]);
        message[236..].copy_from_slice(&[99, 130, 83, 99]);
        message.extend([53, 1, 1, 255]);
        backend.send(udp(
            (Ipv4Addr::UNSPECIFIED, 68),
            (Ipv4Addr::BROADCAST, 67),
            &message,
        ));
        let (_, _, datagram) = answer(&mut backend).expect("an offer");
        assert_eq!(datagram[8 + 16..8 + 20], GUEST.octets());
    }
}

#[test]
fn s05_answers_amplify_nothing() {
    struct Many;
    impl Resolver for Many {
        fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, ResolveError> {
            Ok((0..1000)
                .map(|n| Ipv4Addr::from_bits(0x0808_0000 + n).into())
                .collect())
        }
    }
    let mut config = policy("full");
    config.resolver = Arc::new(Many);
    let mut backend = NetBackend::new(&config);
    let (code, addresses) = ask(&mut backend, "many.example");
    assert_eq!((code, addresses.len()), (0, (512 - 12 - 18) / 16));
}

#[test]
fn s05_malformed_options_are_no_harm() {
    let (_listener, port) = listener();
    let mut backend = NetBackend::new(&config(&[port]));
    for seed in 0..2000u32 {
        let mut frame = syn(4000 + (seed % 100) as u16, (HOST, port));
        let noise = crate::peer::pattern(64, u64::from(seed) * 77 + 1);
        let at = 14 + 20 + usize::from(noise[0]) % (frame.len() - 34);
        frame[at] = noise[1];
        frame.truncate(frame.len() - usize::from(noise[2] % 4));
        backend.send(frame);
        let mut header = syn(4000, (HOST, port));
        header[14 + usize::from(noise[3]) % 20] = noise[4];
        backend.send(header);
        backend.send(segment(
            4000,
            (HOST, port),
            TcpControl::Fin,
            Some(seed as i32),
        ));
        while backend.receive(Duration::ZERO).is_some() {}
    }
    while backend.receive(SILENCE).is_some() {}
    backend.send(echo(GATEWAY, b"still there?"));
    // Late answers to earlier frames may come first.
    let mut answers = std::iter::from_fn(|| answer(&mut backend));
    let is_reply = |(_, protocol, message): (_, IpProtocol, Vec<u8>)| {
        protocol == IpProtocol::Icmp && message.starts_with(&[0, 0])
    };
    assert!(answers.any(is_reply));
}

#[test]
fn a_guest_that_takes_nothing_harms_only_itself() {
    let (_listener, port) = listener();
    let mut backend = NetBackend::new(&config(&[port]));
    for _ in 0..20_000 {
        backend.send(echo(GATEWAY, &[7; 1000]));
    }
    // Answers beyond the queue's bound are lost; the gateway continues.
    let mut count = 0;
    while backend.receive(Duration::from_millis(500)).is_some() {
        count += 1;
    }
    assert!(count > 1000, "{count}");
    backend.send(echo(GATEWAY, b"still there?"));
    assert_eq!(icmp(&mut backend), (0, 0));
}
