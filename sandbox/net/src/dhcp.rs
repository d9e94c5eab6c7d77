//! DHCP server (RFC 2131) with one address, offered to any client, since only the guest is
//! on the link.

use super::{BROADCAST, GATEWAY, GUEST, NETMASK};
use smoltcp::wire::{DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr};
use std::net::Ipv4Addr;

/// Ports of servers and clients.
pub(super) const SERVER_PORT: u16 = 67;
pub(super) const CLIENT_PORT: u16 = 68;

/// Lease time in seconds: a day. Renewal always succeeds.
const LEASE_SECONDS: u32 = 86_400;
/// Minimum message size that old BOOTP relays and clients accept (RFC 1542 section 2.1).
const MIN_BYTES: usize = 300;

/// Option codes that smoltcp does not define (RFC 2132).
const OPTION_DNS: u8 = 6;
const OPTION_MTU: u8 = 26;
const OPTION_BROADCAST: u8 = 28;

/// A reply and its destination.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) to_mac: [u8; 6],
    pub(super) to: Ipv4Addr,
    pub(super) payload: Vec<u8>,
}

/// Answers a message; `None` where the protocol requires silence.
pub(super) fn answer(message: &[u8], mtu: u16) -> Option<Reply> {
    let packet = DhcpPacket::new_checked(message).ok()?;
    let asked = DhcpRepr::parse(&packet).ok()?;
    // The link has no relays.
    if !asked.relay_agent_ip.is_unspecified() {
        return None;
    }
    let kind = match asked.message_type {
        DhcpMessageType::Discover => DhcpMessageType::Offer,
        DhcpMessageType::Request => match asked.server_identifier {
            // Meant for another server.
            Some(server) if server != GATEWAY => return None,
            _ if asks_for_ours(&asked) => DhcpMessageType::Ack,
            _ => DhcpMessageType::Nak,
        },
        DhcpMessageType::Inform => DhcpMessageType::Ack,
        _ => return None,
    };
    let informs = asked.message_type == DhcpMessageType::Inform;
    Some(reply(&asked, kind, !informs, mtu))
}

/// Whether the requested address is the guest's.
fn asks_for_ours(asked: &DhcpRepr<'_>) -> bool {
    match asked.requested_ip {
        Some(address) => address == GUEST,
        None => asked.client_ip == GUEST,
    }
}

fn reply(asked: &DhcpRepr<'_>, kind: DhcpMessageType, lease: bool, mtu: u16) -> Reply {
    let refused = kind == DhcpMessageType::Nak;
    let lease = lease && !refused;
    let (dns, mtu, broadcast) = (GATEWAY.octets(), mtu.to_be_bytes(), BROADCAST.octets());
    let options = [
        DhcpOption {
            kind: OPTION_DNS,
            data: &dns,
        },
        DhcpOption {
            kind: OPTION_MTU,
            data: &mtu,
        },
        DhcpOption {
            kind: OPTION_BROADCAST,
            data: &broadcast,
        },
    ];
    let repr = DhcpRepr {
        message_type: kind,
        transaction_id: asked.transaction_id,
        secs: 0,
        client_hardware_address: asked.client_hardware_address,
        client_ip: if refused {
            Ipv4Addr::UNSPECIFIED
        } else {
            asked.client_ip
        },
        your_ip: if lease { GUEST } else { Ipv4Addr::UNSPECIFIED },
        server_ip: if refused {
            Ipv4Addr::UNSPECIFIED
        } else {
            GATEWAY
        },
        router: (!refused).then_some(GATEWAY),
        subnet_mask: (!refused).then_some(NETMASK),
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        broadcast: asked.broadcast,
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(GATEWAY),
        parameter_request_list: None,
        dns_servers: None,
        max_size: None,
        lease_duration: lease.then_some(LEASE_SECONDS),
        renew_duration: lease.then_some(LEASE_SECONDS / 2),
        rebind_duration: lease.then_some(LEASE_SECONDS / 8 * 7),
        additional_options: if refused { &[] } else { &options },
    };
    let mut payload = vec![0; repr.buffer_len().max(MIN_BYTES)];
    // The buffer has exactly the length that smoltcp asked for.
    let emitted = repr.emit(&mut DhcpPacket::new_unchecked(&mut payload[..]));
    debug_assert!(emitted.is_ok());
    // RFC 2131 section 4.1: to the client's address if it has one, else to broadcast if it
    // asks for that, else to the offered address.
    let everyone = (Ipv4Addr::BROADCAST, [0xff; 6]);
    let mac = asked.client_hardware_address.0;
    let (to, to_mac) = match () {
        () if refused || mac[0] & 1 != 0 => everyone,
        () if asked.client_ip == GUEST => (GUEST, mac),
        () if asked.broadcast || !lease => everyone,
        () => (GUEST, mac),
    };
    Reply {
        to_mac,
        to,
        payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use smoltcp::wire::EthernetAddress;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn ask(kind: DhcpMessageType, change: impl FnOnce(&mut DhcpRepr<'_>)) -> Option<Reply> {
        let mut repr = DhcpRepr {
            message_type: kind,
            transaction_id: 0x1234_5678,
            secs: 3,
            client_hardware_address: EthernetAddress(MAC),
            client_ip: Ipv4Addr::UNSPECIFIED,
            your_ip: Ipv4Addr::UNSPECIFIED,
            server_ip: Ipv4Addr::UNSPECIFIED,
            router: None,
            subnet_mask: None,
            relay_agent_ip: Ipv4Addr::UNSPECIFIED,
            broadcast: false,
            requested_ip: None,
            client_identifier: None,
            server_identifier: None,
            parameter_request_list: Some(&[1, 3, 6, 26, 28]),
            dns_servers: None,
            max_size: None,
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: &[],
        };
        change(&mut repr);
        let mut message = vec![0; repr.buffer_len()];
        let mut packet = DhcpPacket::new_unchecked(&mut message[..]);
        repr.emit(&mut packet).expect("a message");
        answer(&message, 1400)
    }

    fn option(reply: &Reply, kind: u8) -> Option<Vec<u8>> {
        let packet = DhcpPacket::new_checked(&reply.payload[..]).expect("a message");
        let option = packet.options().find(|option| option.kind == kind);
        option.map(|option| option.data.to_vec())
    }

    #[test]
    fn a_guest_gets_its_address() {
        let offer = ask(DhcpMessageType::Discover, |_| ()).expect("an offer");
        assert_eq!((offer.to, offer.to_mac), (GUEST, MAC));
        assert!(offer.payload.len() >= MIN_BYTES);
        let ack = ask(DhcpMessageType::Request, |repr| {
            repr.requested_ip = Some(GUEST);
            repr.server_identifier = Some(GATEWAY);
            repr.broadcast = true;
        });
        let ack = ack.expect("an answer");
        assert_eq!((ack.to, ack.to_mac), (Ipv4Addr::BROADCAST, [0xff; 6]));
        for (reply, kind) in [
            (&offer, DhcpMessageType::Offer),
            (&ack, DhcpMessageType::Ack),
        ] {
            let packet = DhcpPacket::new_checked(&reply.payload[..]).expect("a message");
            let repr = DhcpRepr::parse(&packet).expect("valid");
            assert_eq!((repr.message_type, repr.your_ip), (kind, GUEST));
            assert_eq!(
                (repr.router, repr.subnet_mask),
                (Some(GATEWAY), Some(NETMASK))
            );
            assert_eq!(repr.lease_duration, Some(86_400));
            assert_eq!(repr.dns_servers.expect("servers")[..], [GATEWAY]);
            assert_eq!(
                option(reply, OPTION_MTU),
                Some(1400u16.to_be_bytes().to_vec())
            );
            assert_eq!(
                option(reply, OPTION_BROADCAST),
                Some(BROADCAST.octets().to_vec())
            );
        }
    }

    #[test]
    fn renewing_is_answered_directly() {
        let ack = ask(DhcpMessageType::Request, |repr| {
            repr.client_ip = GUEST;
            repr.broadcast = true;
        });
        assert_eq!(ack.map(|ack| (ack.to, ack.to_mac)), Some((GUEST, MAC)));
    }

    #[test]
    fn wrong_requests_are_refused_or_ignored() {
        let nak = ask(DhcpMessageType::Request, |repr| {
            repr.requested_ip = Some(Ipv4Addr::new(10, 0, 0, 7));
        });
        let nak = nak.expect("a refusal");
        assert_eq!(
            (nak.to, option(&nak, 53)),
            (Ipv4Addr::BROADCAST, Some(vec![6]))
        );
        assert_eq!((option(&nak, 51), option(&nak, 3)), (None, None));
        let other = |repr: &mut DhcpRepr<'_>| repr.server_identifier = Some(GUEST);
        assert!(ask(DhcpMessageType::Request, other).is_none());
        let relay = |repr: &mut DhcpRepr<'_>| repr.relay_agent_ip = GUEST;
        assert!(ask(DhcpMessageType::Discover, relay).is_none());
        for kind in [
            DhcpMessageType::Release,
            DhcpMessageType::Decline,
            DhcpMessageType::Offer,
        ] {
            assert!(ask(kind, |_| ()).is_none());
        }
    }

    #[test]
    fn who_has_an_address_is_informed() {
        let ack = ask(DhcpMessageType::Inform, |repr| repr.client_ip = GUEST);
        let ack = ack.expect("an answer");
        let packet = DhcpPacket::new_checked(&ack.payload[..]).expect("a message");
        assert!(packet.your_ip().is_unspecified());
        assert_eq!((option(&ack, 51), option(&ack, 53)), (None, Some(vec![5])));
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            answer(&bytes, 1500);
        }

        #[test]
        fn any_options_are_no_panic(options in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut message = vec![0; 240];
            message[..3].copy_from_slice(&[1, 1, 6]);
            message[236..].copy_from_slice(&[99, 130, 83, 99]);
            message.extend([53, 1, 3]);
            message.extend(options);
            answer(&message, 1500);
        }
    }
}
